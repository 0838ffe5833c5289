"""The file of sources: what is refused, in words without values, and what is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.settings import load_settings
from resources.sources.declared import (
    FolderSource,
    InvalidSources,
    TableSource,
    UnknownSource,
    declared_sources,
    read_sources,
    source_named,
)

SECRET = "s3cret-word"
FOLDER = "kind: folder, workload: shop, path: docs"
TABLE = "kind: table, workload: shop, path: t.csv, key: id, text: [body]"
SQL = "kind: sql, workload: shop, url_env: SHOP_URL, key: id, text: [body]"
QUEUE = "kind: queue, workload: shop, transport: folder, path: in"


def file_of(folder: Path, text: str | bytes) -> Path:
    file = folder / "sources.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "mapping", id="nothing"),
        pytest.param("sources: [a]", "mapping", id="a_list"),
        pytest.param("sources: [", "line 1", id="no_yaml"),
        pytest.param(b"sources: \xff", "UTF-8", id="no_utf8"),
        pytest.param("sources: " + "[" * 3_000, "nested", id="too_deep"),
        pytest.param("sources: {a: &a {documents: *a}}", "nested", id="holds_itself"),
        pytest.param("sources: {a: !!python/object/apply:os.getcwd []}", "tag", id="a_call"),
        pytest.param(f"sources: {{a: {{{FOLDER}}}, a: {{{FOLDER}}}}}", "twice", id="named_twice"),
        pytest.param(f"sources: {{A b: {{{FOLDER}}}}}", "a-z, 0-9", id="name"),
        pytest.param(f"sources: {{1: {{{FOLDER}}}}}", "string", id="a_number_as_name"),
        pytest.param("sources: {a: text}", "kind", id="no_declaration"),
        pytest.param("sources: {a: {kind: ftp}}", "kind", id="unknown_kind"),
        pytest.param(f"sources: {{a: {{{FOLDER}, colour: red}}}}", "colour", id="unknown_field"),
        pytest.param(
            'sources: {a: {kind: folder, workload: shop, path: "a\\0b"}}', "a.folder.path", id="nul"
        ),
        pytest.param(f"sources: {{a: {{{TABLE}, path: t.xls}}}}", "twice", id="path_twice"),
        pytest.param(
            "sources: {a: {kind: table, workload: shop, path: t.xls, key: id, text: [b]}}",
            ".parquet",
            id="no_table",
        ),
        pytest.param(
            "sources: {a: {kind: table, workload: shop, path: t.csv, key: id, text: []}}",
            "at least 1",
            id="no_text",
        ),
        pytest.param(f"sources: {{a: {{{SQL}}}}}", "either", id="neither_table_nor_query"),
        pytest.param(f"sources: {{a: {{{SQL}, table: t, query: q}}}}", "either", id="both"),
        pytest.param(f"sources: {{a: {{{SQL}, table: t; drop}}}}", "pattern", id="no_name"),
        pytest.param(
            f"sources: {{a: {{{SQL}, table: t, url: 'postgresql://u:{SECRET}@h/d'}}}}",
            "a.sql.url: Extra inputs",
            id="a_password",
        ),
        pytest.param(
            f"sources: {{a: {{kind: sql, url_env: 'postgresql://u:{SECRET}@h/d'}}}}",
            "a.sql.url_env: String should match",
            id="a_password_as_variable",
        ),
        pytest.param(
            "sources: {a: {kind: bucket, workload: shop, url: 's3://box', "
            f"endpoint: 'https://ada:{SECRET}@h'}}}}",
            "a.bucket.endpoint",
            id="a_password_in_an_endpoint",
        ),
        pytest.param(
            "sources: {a: {kind: bucket, workload: shop, url: 's3://box', "
            f"endpoint: 'https://h?X-Amz-Signature={SECRET}'}}}}",
            "a.bucket.endpoint",
            id="a_signed_endpoint",
        ),
        pytest.param(
            f"sources: {{a: {{kind: bucket, workload: shop, url: 's3://ada:{SECRET}@box/x'}}}}",
            "a.bucket.url",
            id="a_password_in_a_bucket",
        ),
        pytest.param(
            "sources: {a: {kind: queue, workload: shop, transport: sqs, "
            f"queue_url: 'https://ada:{SECRET}@h/q', documents: {{kind: folder, path: docs}}}}}}",
            "a.queue.queue_url",
            id="a_password_in_a_queue",
        ),
        pytest.param(
            "sources: {a: {kind: queue, workload: shop, transport: sqs, "
            f"queue_url: 'https://[{SECRET}', documents: {{kind: folder, path: docs}}}}}}",
            "a.queue.queue_url",
            id="no_address_of_a_queue",
        ),
        pytest.param(f"sources: {{a: {{{QUEUE}}}}}", "documents", id="queue_of_nothing"),
        pytest.param(
            f"sources: {{a: {{{QUEUE}, documents: {{kind: sql}}}}}}",
            "documents",
            id="queue_of_rows",
        ),
        pytest.param(
            'sources: {a: {kind: queue, workload: shop, transport: folder, path: "a\\0b", '
            "documents: {kind: folder, path: docs}}}",
            "a.queue.path",
            id="nul_in_a_queue",
        ),
        pytest.param(
            'sources: {a: {kind: queue, workload: shop, transport: folder, path: "in", '
            'documents: {kind: folder, path: "a\\0b"}}}',
            "documents",
            id="nul_in_its_documents",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(InvalidSources, match="Nothing was scanned") as caught:
        read_sources(file_of(tmp_path, text))
    assert told in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_bomb_of_references_costs_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    lines.append("sources: {a: {kind: folder, workload: shop, path: *a11, removed: *a11}}")
    with pytest.raises(InvalidSources) as caught:
        read_sources(file_of(tmp_path, "\n".join(lines)))
    assert len(str(caught.value)) < 2_000


def test_places_count_from_the_file_and_names_are_sorted(tmp_path: Path) -> None:
    file = file_of(tmp_path, f"sources: {{b: {{{FOLDER}}}, a: {{{TABLE}, removed: withdraw}}}}")
    settings = load_settings(state=tmp_path / "state", sources=file)
    table, folder = declared_sources(settings)
    assert isinstance(folder, FolderSource) and folder.path == tmp_path / "docs"
    assert isinstance(table, TableSource) and table.path == tmp_path / "t.csv"
    assert (table.removed, folder.removed, folder.approval) == ("withdraw", "keep", False)
    assert source_named(settings, "b") == folder
    with pytest.raises(UnknownSource, match="'c'; declared are a, b"):
        source_named(settings, "c")


def test_a_file_that_was_named_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    settings = load_settings(state=tmp_path / "state", sources=tmp_path / "none.yaml")
    with pytest.raises(InvalidSources, match="cannot be read"):
        declared_sources(settings)
