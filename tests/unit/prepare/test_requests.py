"""Request files: offsets, lengths and digests name the exact bytes, and the file repeats."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from partitions.processing_version import PACKAGED_SPECS, find_spec
from pipeline_assets.prepare import requests
from pipeline_assets.prepare.requests import write_requests
from resources.artifacts import ArtifactMissing, ArtifactStore
from resources.contracts import PARSED_TEXT, ContractRefused, store_frame
from resources.providers.port import split_lines
from resources.record_ids import custom_id, reference

SPEC = find_spec("manuals-baseline-1", [PACKAGED_SPECS])
KEY = "0123456789ab"
TEXTS = {
    "a": ["line\u2028separator", "next\u0085line", "carriage\rreturn\r\n"],
    "b": ["", "𝒳 astral \U0001f527", ""],
    "c": ['\u0000\u001f"\\/', "\ufeffmark\u202eturned"],
    "d": ["plain"],
}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path)


def pack(store: ArtifactStore, names: str) -> str:
    rows = [
        (name * 64, number, "text", 0, text)
        for name in names
        for number, text in enumerate(TEXTS[name], start=1)
    ]
    frame = pl.DataFrame(rows, schema=dict(PARSED_TEXT.schema), orient="row")
    return store_frame(store, "text", PARSED_TEXT, [frame.sort("checksum", "page")]).digest


def records(packs: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (f"w:m/{name}@{name * 12}:v", name * 64, digest)
            for names, digest in packs.items()
            for name in names
        ],
        schema=["record_id", "checksum", "text_pack"],
        orient="row",
    ).sort("record_id")


def test_every_line_is_where_its_row_says(store: ArtifactStore) -> None:
    rows = records({"ac": pack(store, "ca"), "bd": pack(store, "bd")})
    file = write_requests(store, SPEC, KEY, rows)
    data = file.stored.path.read_bytes()
    assert file.stored.size == len(data)
    assert data.endswith(b"\n")
    cut = []
    for index, (digest, offset, length) in enumerate(file.lines.iter_rows()):
        line = data[offset : offset + length]
        cut.append(line)
        assert data[offset + length : offset + length + 1] == b"\n"
        body = line[line.index(b'"body":') + len(b'"body":') : -1]
        assert hashlib.sha256(body).hexdigest() == digest
        request = json.loads(line)
        name = "abcd"[index]
        assert request["custom_id"] == custom_id(KEY, index)
        assert request["body"] == {
            "model": SPEC.model,
            "document": reference(f"w:m/{name}@{name * 12}:v"),
            "pages": [
                {"number": number, "text": text} for number, text in enumerate(TEXTS[name], start=1)
            ],
        }
    with file.stored.path.open("rb") as stream:
        assert [line.data for line in split_lines(stream)] == cut


def test_nothing_of_the_record_but_its_text_is_told(store: ArtifactStore) -> None:
    file = write_requests(store, SPEC, KEY, records({"d": pack(store, "d")}))
    data = file.stored.path.read_bytes()
    assert b"m/d" not in data
    assert b"d" * 64 not in data


def test_the_same_records_give_the_same_file(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = records({"ac": pack(store, "ca"), "bd": pack(store, "bd")})
    first = write_requests(store, SPEC, KEY, rows)
    monkeypatch.setattr(requests, "RECORDS_AT_ONCE", 1)
    again = write_requests(store, SPEC, KEY, rows)
    assert again.stored == first.stored
    assert again.lines.equals(first.lines)
    other_packs = records({"a": pack(store, "a"), "bcd": pack(store, "dcb")})
    assert write_requests(store, SPEC, KEY, other_packs).stored.digest == first.stored.digest
    assert write_requests(store, SPEC, KEY[::-1], rows).stored.digest != first.stored.digest


def test_no_records(store: ArtifactStore) -> None:
    file = write_requests(store, SPEC, KEY, records({"a": pack(store, "a")}).clear())
    assert file.lines.is_empty()
    assert file.stored.size == 0


def test_a_pack_that_is_gone(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactMissing):
        write_requests(store, SPEC, KEY, records({"a": "0" * 64}))
    assert not (store.root / "request").exists()


def test_a_pack_without_the_document_is_not_an_empty_document(store: ArtifactStore) -> None:
    with pytest.raises(ContractRefused, match="holds no page of the document"):
        write_requests(store, SPEC, KEY, records({"ab": pack(store, "a")}))
    assert not (store.root / "request").exists()
