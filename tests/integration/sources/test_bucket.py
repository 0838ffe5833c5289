"""Buckets as sources, against a local S3 server and against one that fails."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

from resources.sources.bucket import BucketListing, open_bucket
from resources.sources.bucket_client import BucketClientMissing
from resources.sources.declared import BucketSource
from resources.sources.document_id import document_id, exact_document_id, parse_document_id
from resources.sources.listing import LISTED_SCHEMA, READ_SCHEMA
from resources.sources.port import EntryRefused, SourceEmpty, SourceMissing, SourceUnreadable
from tests.support.bucket_server import (
    CREDENTIALS,
    Answer,
    BucketServer,
    bucket_server,
    credentials,
    scripted_server,
)

__all__ = ["bucket_server", "credentials"]
pytestmark = pytest.mark.usefixtures("credentials")


def declared(endpoint: str, bucket: str, prefix: str = "", **more: Any) -> BucketSource:
    return BucketSource(
        name="shelf",
        kind="bucket",
        workload="equipment_manuals",
        url=f"s3://{bucket}{prefix}",
        endpoint=endpoint,
        **more,
    )


def opened(endpoint: str, bucket: str, prefix: str = "", **more: Any) -> BucketListing:
    return open_bucket("shelf", declared(endpoint, bucket, prefix, **more))


@pytest.fixture(scope="module")
def loader() -> Any:
    """Return what reads the client's own descriptions, which takes it half a second each time."""
    from botocore.loaders import create_loader

    return create_loader()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, loader: Any) -> None:
    monkeypatch.setattr("botocore.session.create_loader", lambda path: loader)
    monkeypatch.setattr(
        "botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0
    )


def listed(source: BucketListing) -> pl.DataFrame:
    frames = list(source.listing())
    return pl.concat(frames) if frames else pl.DataFrame(schema=LISTED_SCHEMA)


def to_read(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("excluded").is_null())


def sha(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def fill(server: BucketServer, objects: dict[str, bytes], bucket: str | None = None) -> str:
    name = bucket or server.new_bucket()
    client = server.client()
    for key, body in objects.items():
        client.put_object(Bucket=name, Key=key, Body=body)
    return name


@pytest.mark.slow
def test_three_pages_of_keys_are_listed_and_read_in_order(bucket_server: BucketServer) -> None:
    # Straight into the server's memory: three thousand requests would take a while.
    from moto.s3.models import s3_backends

    bucket = bucket_server.new_bucket()
    backend = s3_backends["123456789012"]["aws"]
    for number in range(3_000):
        backend.put_object(bucket, f"manuals/{number:04}.txt", f"text {number}".encode())
    source = opened(bucket_server.endpoint, bucket, "/manuals")
    listing = source.listing()
    frames = list(listing)
    assert [frame.height for frame in frames] == [1_000, 2_000]
    assert listing.report().entries == 3_000
    assert listing.report().complete
    whole = pl.concat(frames)
    assert whole.schema == pl.Schema(LISTED_SCHEMA)
    assert whole["document_id"].to_list() == [f"shelf/{n:04}.txt" for n in range(3_000)]
    assert whole["checksum"].null_count() == 3_000
    few = whole.head(100)
    read = pl.concat(list(source.read(few)))
    assert read.schema == pl.Schema(READ_SCHEMA)
    assert read["document_id"].to_list() == few["document_id"].to_list()
    assert read["checksum"].to_list() == [sha(f"text {n}".encode()) for n in range(100)]
    assert read.select("size", "mtime_ns", "mark").equals(few.select("size", "mtime_ns", "mark"))


KEYS = [
    # No path of any file system would do for these.
    "a//b", "//", "/lead", "///deep", "a/../b", "../up", "..", ".", "./x", "a/.", "folder/",
    "ctl\x01x", "tab\tx", "nul\x00x", "del\x7fx", "\x85", "\u2028", "%2e%2e/x", "/..",
    "ü.txt", "a b+c%20.txt", "q?x#y&z", "a%2Fb", "per%cent", "日本/語.txt", "\U0001f600",
    "back\\slash", "star*", "tilde~", "<>&\"'.txt", "@at:colon", "..dots", "a/.hidden",
    "a?versionId=null", " blanks ", "\ufffd", "\ufffe", "a=b", "(1)!$,;",
]  # fmt: skip


def test_keys_are_opaque_and_their_ids_lead_back(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {key: key.encode() for key in KEYS})
    source = opened(bucket_server.endpoint, bucket)
    frame = listed(source)
    places = frame["place"].to_list()
    assert sorted(places) == sorted(key.encode() for key in KEYS)
    assert [parse_document_id(text)[1] for text in frame["document_id"]] == places
    assert frame["excluded"].null_count() == len(KEYS)
    read = pl.concat(list(source.read(frame)))
    assert read["checksum"].to_list() == [sha(place) for place in places]
    assert read.select("size", "mtime_ns", "mark").equals(frame.select("size", "mtime_ns", "mark"))
    for text, place in zip(frame["document_id"], places, strict=True):
        with source.open(text) as stream:
            assert stream.read() == place
    seen = list(source.look_up(frame["document_id"].to_list()))
    assert [each.row for each in seen] == frame.rows()


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        pytest.param(b"line\nend\r", "line%0Aend%0D", id="line-ends"),
        pytest.param(b"\xff\xfe/\xc3", "%FF%FE/%C3", id="bytes-that-are-no-text"),
        pytest.param(b"e\xcc\x81\xff", "e%CC%81%FF", id="decomposed-beside-no-text"),
        pytest.param(b"a/../../b//", "a/../../b//", id="folders"),
    ],
)
def test_a_key_is_asked_for_as_it_was_listed(key: bytes, sent: str) -> None:
    asked: list[str] = []

    def answer(path: str, number: int) -> Answer:
        if "list-type" in path:
            body = page([(quote(key), 3, '"1"')]).replace(
                b"<KeyCount>", b"<EncodingType>url</EncodingType><KeyCount>"
            )
            return Answer(body=body)
        asked.append(path)
        if path != f"/bucket/{sent}":
            return Answer(404, error("NoSuchKey"))
        headers = {"ETag": '"1"', "Last-Modified": "Mon, 30 Nov 2026 01:02:03 GMT"}
        return Answer(body=b"abc", headers=headers)

    with scripted_server(answer) as endpoint:
        source = opened(endpoint, "bucket")
        frame = listed(source)
        assert frame["place"].to_list() == [key]
        assert pl.concat(list(source.read(frame)))["checksum"].to_list() == [sha(b"abc")]
        assert asked == [f"/bucket/{sent}"]
        with source.open(frame["document_id"].item()) as stream:
            assert stream.read() == b"abc"


# Neither in NFC nor in NFD.
MIXED = [
    "caf\u00e9/cre\u0301me.txt", "\u212a1", "a;\u037eb\u1fef`", "5 \u212aK;", "\u212a\u0301x",
    "e\u0323\u0302-e\u0302\u0323", "\uac00\u1100\u1161", "x/\u212b\u00c5", "\u0301a\u0301\u00e9",
]  # fmt: skip


@pytest.mark.parametrize("prefix", ["", "/in/\u00e9"], ids=["whole", "below-a-prefix"])
def test_a_key_that_mixes_spellings_is_found_by_its_id(
    bucket_server: BucketServer, prefix: str
) -> None:
    before = f"{prefix[1:]}/" if prefix else ""
    bucket = fill(bucket_server, {before + key: key.encode() for key in [*MIXED, "plain", "caf"]})
    frame = listed(opened(bucket_server.endpoint, bucket, prefix))
    assert frame["excluded"].null_count() == len(MIXED) + 2
    source = opened(bucket_server.endpoint, bucket, prefix)
    for text, place in frame.select("document_id", "place").iter_rows():
        source._spelt.clear()
        with source.open(text) as stream:
            assert stream.read() == place
    ids = [*frame["document_id"], "shelf/K2", "shelf/caf\u00e9/gone", "shelf/gone"]
    seen = list(source.look_up(ids))
    assert [each.document_id for each in seen] == ids
    assert [each.row for each in seen[:-3]] == frame.rows()
    assert [each.outcome for each in seen[-3:]] == ["gone"] * 3
    exact = exact_document_id("shelf", "cafe\u0301/cre\u0301me.txt".encode())
    with pytest.raises(EntryRefused, match="no longer there"):
        source.open(exact)


def test_neighbours_are_listed_once(
    bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = [f"in/{n}\u00e9e\u0301" for n in range(5)]
    bucket = fill(bucket_server, {key: key.encode() for key in raw})
    source = opened(bucket_server.endpoint, bucket)
    ids = [document_id("shelf", key.encode()) for key in raw]
    lists: list[str | None] = []
    pages = source._client.pages

    def counted(prefix: str | None = None, **more: Any) -> Any:
        lists.append(prefix)
        return pages(prefix, **more)

    monkeypatch.setattr(source._client, "pages", counted)
    for text, key in zip(ids, raw, strict=True):
        with source.open(text) as stream:
            assert stream.read() == key.encode()
    assert lists == ["in/"], "what the first list showed is remembered"


def test_a_bucket_that_vanishes_does_not_make_its_documents_gone(
    bucket_server: BucketServer,
) -> None:
    bucket = fill(bucket_server, {"a": b"1"})
    source = opened(bucket_server.endpoint, bucket)
    source.check()
    bucket_server.client().delete_object(Bucket=bucket, Key="a")
    bucket_server.client().delete_bucket(Bucket=bucket)
    with pytest.raises(SourceMissing):
        list(source.look_up(["shelf/a"]))


def test_an_object_under_the_name_of_the_prefix_is_not_below_it(
    bucket_server: BucketServer,
) -> None:
    bucket = fill(bucket_server, {"in/": b"bytes", "in/a": b"1", "in/b/": b"bytes"})
    frame = listed(opened(bucket_server.endpoint, bucket, "/in"))
    assert frame["document_id"].to_list() == ["shelf/a", "shelf/b/"]


def test_folder_markers_are_no_documents(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {"in/": b"", "in/deep/": b"", "in/deep/a": b"x", "out/b": b"y"})
    assert listed(opened(bucket_server.endpoint, bucket, "/in/"))["document_id"].to_list() == [
        "shelf/deep/a"
    ]


def test_a_prefix_ends_at_a_slash(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {"in/a": b"x", "inner/b": b"y", "in//c": b"z"})
    frame = listed(opened(bucket_server.endpoint, bucket, "/in"))
    assert frame["document_id"].to_list() == ["shelf//c", "shelf/a"]


def test_what_is_excluded_without_reading(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {"big": b"12345", "none": b"", "ok": b"1234", "@" * 800: b"x"})
    frame = listed(opened(bucket_server.endpoint, bucket, max_file_bytes=4))
    found = dict(zip(frame["place"], frame["excluded"], strict=True))
    assert found == {
        b"big": "too_large",
        b"none": "empty",
        b"ok": None,
        b"@" * 800: "name_too_long",
    }
    assert frame["document_id"].n_unique() == 4


def test_keys_that_fold_to_one_id_collide(bucket_server: BucketServer) -> None:
    twins = ["u\u0308.txt", "ü.txt", "\u2126", "\u03a9", "o\u0308"]
    bucket = fill(bucket_server, {key: key.encode() for key in [*twins, "plain"]})
    source = opened(bucket_server.endpoint, bucket)
    frame = listed(source)
    assert frame["document_id"].n_unique() == 6
    clash = frame.filter(pl.col("excluded") == "id_collision")["place"].to_list()
    assert sorted(clash) == sorted(key.encode() for key in twins[:4])
    # A decomposed name alone is a document like any other, under the composed id.
    with source.open("shelf/ö") as stream:
        assert stream.read() == "o\u0308".encode()


def test_a_sign_that_folds_to_ascii(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {"\u212a1": b"a", "K1": b"b", "\u212a2": b"c"})
    frame = listed(opened(bucket_server.endpoint, bucket))
    found = {
        place.decode(): (i, e)
        for i, place, e in frame.select("document_id", "place", "excluded").iter_rows()
    }
    assert found == {
        "K1": ("shelf/K1", None),
        "\u212a1": ("shelf/%E2%84%AA1", "id_collision"),
        "\u212a2": ("shelf/K2", None),
    }


def test_new_changed_and_removed_show_by_their_marks(bucket_server: BucketServer) -> None:
    bucket = fill(bucket_server, {"a": b"1", "b": b"2", "c": b"3"})
    source = opened(bucket_server.endpoint, bucket)
    before = dict(listed(source).select("document_id", "mark").iter_rows())
    fill(bucket_server, {"b": b"9", "d": b"4"}, bucket)
    bucket_server.client().delete_object(Bucket=bucket, Key="c")
    after = dict(listed(source).select("document_id", "mark").iter_rows())
    assert after.keys() == {"shelf/a", "shelf/b", "shelf/d"}
    assert after["shelf/a"] == before["shelf/a"]
    assert after["shelf/b"] != before["shelf/b"]


def test_the_etag_of_an_upload_in_parts_is_a_mark_like_any_other(
    bucket_server: BucketServer,
) -> None:
    bucket = bucket_server.new_bucket()
    client = bucket_server.client()
    parts = [b"a" * (5 * 1024 * 1024), b"b" * 100]
    upload = client.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    tags = [
        client.upload_part(Bucket=bucket, Key="big", UploadId=upload, PartNumber=number, Body=part)[
            "ETag"
        ]
        for number, part in enumerate(parts, 1)
    ]
    client.complete_multipart_upload(
        Bucket=bucket,
        Key="big",
        UploadId=upload,
        MultipartUpload={
            "Parts": [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
        },
    )
    source = opened(bucket_server.endpoint, bucket)
    frame = listed(source)
    assert frame["mark"].to_list()[0].endswith("-2")
    read = pl.concat(list(source.read(frame)))
    assert read["checksum"].to_list() == [sha(b"".join(parts))]


@pytest.mark.parametrize(
    ("change", "checksum", "excluded", "detail"),
    [
        pytest.param({"a": b"newer"}, sha(b"newer"), None, "", id="another-version"),
        pytest.param({"a": b""}, None, "empty", "", id="emptied"),
        pytest.param(None, None, "unreadable", "no longer there", id="removed"),
    ],
)
def test_an_object_that_changed_after_the_listing(
    bucket_server: BucketServer,
    change: dict[str, bytes] | None,
    checksum: str | None,
    excluded: str | None,
    detail: str,
) -> None:
    bucket = fill(bucket_server, {"a": b"old"})
    source = opened(bucket_server.endpoint, bucket)
    frame = listed(source)
    if change is None:
        bucket_server.client().delete_object(Bucket=bucket, Key="a")
    else:
        fill(bucket_server, change, bucket)
    (row,) = pl.concat(list(source.read(frame))).to_dicts()
    assert (row["checksum"], row["excluded"], row["detail"]) == (checksum, excluded, detail)
    if checksum:
        # Size and mark are of the bytes that were read, not of those that were listed.
        assert row["size"] == 5
        assert row["mark"] == listed(source)["mark"].item()


def test_an_object_that_never_rests_is_unreadable() -> None:
    def answer(path: str, number: int) -> Answer:
        if "list-type" in path:
            return Answer(body=page([("a", 3, '"0"')]))
        return Answer(
            status=412 if number % 2 else 200,
            body=b"abc",
            headers={"ETag": f'"{number}"', "Last-Modified": "Mon, 30 Nov 2026 01:02:03 GMT"},
        )

    with scripted_server(answer) as endpoint:
        source = opened(endpoint, "bucket")
        (row,) = pl.concat(list(source.read(listed(source)))).to_dicts()
    assert (row["excluded"], row["detail"]) == ("unreadable", "changed while being read")


def page(
    items: list[tuple[str, int, str]], *, following: str | None = None, count: int | None = None
) -> bytes:
    contents = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-11-30T01:02:03.456Z</LastModified>"
        f"<ETag>{etag}</ETag><Size>{size}</Size></Contents>"
        for key, size, etag in items
    )
    after = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    return (
        '<?xml version="1.0"?><ListBucketResult '
        'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<KeyCount>{len(items) if count is None else count}</KeyCount>"
        f"<IsTruncated>{'true' if following else 'false'}</IsTruncated>{after}{contents}"
        "</ListBucketResult>"
    ).encode()


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>secret words</Message></Error>".encode()


FIRST = page([("a", 1, '"1"')], following="t1")
NO_LIST = "its answer is no whole list of objects"
BREAKS: dict[str, tuple[Callable[[int], Answer], str]] = {
    "denied": (lambda number: Answer(403, error("AccessDenied")), "access denied"),
    "bad-keys": (lambda number: Answer(403, error("InvalidAccessKeyId")), "access denied"),
    "bad-secret": (lambda number: Answer(403, error("SignatureDoesNotMatch")), "access denied"),
    "expired": (lambda number: Answer(400, error("ExpiredToken")), "access denied"),
    "failed": (lambda number: Answer(500, b"oops"), "the server failed, or broke off"),
    "busy": (lambda number: Answer(503, error("SlowDown")), "the server is busy"),
    "other-region": (
        lambda number: Answer(301, error("PermanentRedirect")),
        "the bucket is in another region",
    ),
    "elsewhere": (
        lambda number: Answer(302, b"", {"Location": "http://127.0.0.1:9/"}),
        "the bucket is in another region",
    ),
    "odd": (lambda number: Answer(418, b"teapot"), "the server refused with status 418"),
    "no-xml": (lambda number: Answer(200, b"<html>hello"), "the server failed, or broke off"),
    "no-list": (lambda number: Answer(200, b"<html>hello</html>"), NO_LIST),
    "nothing": (lambda number: Answer(200, b""), NO_LIST),
    "cut": (
        lambda number: Answer(200, page([("b", 1, '"2"')]), cut=50),
        "the server failed, or broke off",
    ),
    "short": (lambda number: Answer(200, page([("b", 1, '"2"')], count=2)), NO_LIST),
    "no-end": (
        lambda number: Answer(200, FIRST.replace(b">true<", b">false<")),
        NO_LIST,
    ),
    "no-next": (
        lambda number: Answer(200, page([("b", 1, '"2"')]).replace(b">false<", b">true<")),
        NO_LIST,
    ),
    "bad-time": (lambda number: Answer(200, FIRST.replace(b"2026-11-30T", b"x")), NO_LIST),
    "bad-size": (lambda number: Answer(200, FIRST.replace(b"<Size>1", b"<Size>one")), NO_LIST),
    "no-key": (lambda number: Answer(200, FIRST.replace(b"<Key>a</Key>", b"")), NO_LIST),
    "error-as-success": (
        lambda number: Answer(200, error("InternalError")),
        "the server failed, or broke off",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("pages", [0, 1], ids=["at-once", "in-the-middle"])
def test_a_list_that_cannot_be_had_is_an_error_and_no_shorter_list(name: str, pages: int) -> None:
    answers, problem = BREAKS[name]

    def answer(path: str, number: int) -> Answer:
        return Answer(body=FIRST) if number < pages else answers(number)

    with scripted_server(answer) as endpoint, pytest.raises(SourceUnreadable) as raised:
        listed(opened(endpoint, "bucket"))
    message = str(raised.value)
    assert "source shelf" in message
    assert f"{problem})" in message
    for word in ("test-secret", "test-key", "secret words", "teapot"):
        assert word not in message
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_list_whose_pages_repeat_is_an_error() -> None:
    with (
        scripted_server(lambda path, number: Answer(body=FIRST)) as endpoint,
        pytest.raises(SourceUnreadable, match=NO_LIST),
    ):
        listed(opened(endpoint, "bucket"))


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.sources.bucket_client.READ_SECONDS", 0.1)
    silent = threading.Event()

    def answer(path: str, number: int) -> Answer:
        asked.append(path)
        silent.wait(5)
        return Answer(body=FIRST)

    asked: list[str] = []
    with scripted_server(answer) as endpoint:
        with pytest.raises(SourceUnreadable, match="it did not answer in time"):
            listed(opened(endpoint, "bucket"))
        silent.set()
    assert len(asked) == 3


def test_a_busy_server_is_asked_again() -> None:
    def answer(path: str, number: int) -> Answer:
        return Answer(503) if number < 2 else Answer(body=page([("a", 1, '"1"')]))

    with scripted_server(answer) as endpoint:
        assert listed(opened(endpoint, "bucket"))["document_id"].to_list() == ["shelf/a"]


def test_an_object_whose_line_breaks_is_read_again() -> None:
    broken: list[str] = []

    def answer(path: str, number: int) -> Answer:
        if "list-type" in path:
            return Answer(body=page([("a", 6, '"1"')]))
        headers = {"ETag": '"1"', "Last-Modified": "Mon, 30 Nov 2026 01:02:03 GMT"}
        broken.append(path)
        return Answer(body=b"abcdef", headers=headers, cut=4 if len(broken) < breaks else None)

    with scripted_server(answer) as endpoint:
        source = opened(endpoint, "bucket")
        frame = listed(source)
        breaks = 3
        assert pl.concat(list(source.read(frame)))["checksum"].to_list() == [sha(b"abcdef")]
        broken.clear()
        with source.open("shelf/a") as stream:
            assert stream.read() == b"abcdef"
        broken.clear()
        breaks = 99
        (row,) = pl.concat(list(source.read(frame))).to_dicts()
        assert (row["excluded"], row["checksum"]) == ("unreadable", None)
        assert len(broken) == 3
        with pytest.raises(EntryRefused, match="could not be reached"):
            source.open("shelf/a")


def test_an_object_that_lies_in_an_archive_of_the_server() -> None:
    def answer(path: str, number: int) -> Answer:
        listing = "list-type" in path
        return Answer(body=page([("a", 6, '"1"')])) if listing else Answer(403, error(code))

    code = "InvalidObjectState"
    with scripted_server(answer) as endpoint:
        source = opened(endpoint, "bucket")
        (row,) = pl.concat(list(source.read(listed(source)))).to_dicts()
    assert row["detail"] == "it lies in an archive of the server"


def test_a_key_that_is_encoded_as_forms_are() -> None:
    body = page([("a+b%2Bc%25", 1, '"1"')]).replace(
        b"<KeyCount>", b"<EncodingType>url</EncodingType><KeyCount>"
    )
    with scripted_server(lambda path, number: Answer(body=body)) as endpoint:
        assert listed(opened(endpoint, "bucket"))["place"].to_list() == [b"a b+c%"]


def test_nobody_listens() -> None:
    with scripted_server(lambda path, number: Answer()) as endpoint:
        pass
    with pytest.raises(SourceUnreadable, match="could not be reached"):
        listed(opened(endpoint, "bucket"))


def test_no_bucket_and_an_empty_one(bucket_server: BucketServer) -> None:
    with pytest.raises(SourceMissing, match="there is no bucket no-such-bucket"):
        listed(opened(bucket_server.endpoint, "no-such-bucket"))
    bucket = fill(bucket_server, {"folder/": b""})
    with pytest.raises(SourceEmpty, match="allow_empty"):
        listed(opened(bucket_server.endpoint, bucket))
    source = opened(bucket_server.endpoint, bucket, allow_empty=True)
    listing = source.listing()
    assert list(listing) == []
    assert listing.report().entries == 0


def test_a_bucket_that_fails_while_it_is_read_is_not_many_bad_documents() -> None:
    broken = threading.Event()

    def answer(path: str, number: int) -> Answer:
        if "list-type" in path and not broken.is_set():
            return Answer(body=page([("a", 1, '"1"'), ("b", 1, '"2"')]))
        return Answer(403, error("AccessDenied"))

    with scripted_server(answer) as endpoint:
        source = opened(endpoint, "bucket")
        frame = listed(source)
        rows = pl.concat(list(source.read(frame)))
        assert rows["detail"].to_list() == ["access denied"] * 2
        broken.set()
        with pytest.raises(SourceUnreadable, match="access denied"):
            list(source.read(frame))


@pytest.fixture
def no_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of credentials, the only place but the environment where some may be."""
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return file


def test_without_credentials(
    bucket_server: BucketServer, no_chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = bucket_server.new_bucket()
    bucket_server.client().put_object(Bucket=bucket, Key="a", Body=b"1", ACL="public-read")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(SourceUnreadable, match="no credentials were found"):
        listed(opened(bucket_server.endpoint, bucket))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(SourceUnreadable, match="AWS_ACCESS_KEY_ID"):
        listed(opened(bucket_server.endpoint, bucket))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(SourceUnreadable, match="no credentials were found"):
        listed(opened(bucket_server.endpoint, bucket))
    monkeypatch.delenv("AWS_PROFILE")
    source = opened(bucket_server.endpoint, bucket, anonymous=True)
    assert pl.concat(list(source.read(listed(source))))["checksum"].to_list() == [sha(b"1")]


def test_credentials_are_found_as_boto3_finds_them(
    no_chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_chain.write_text(
        "[default]\naws_access_key_id = of-default\naws_secret_access_key = s\n"
        "[other]\naws_access_key_id = of-other\naws_secret_access_key = s\n"
    )
    signed: list[str] = []

    def answer(path: str, number: int) -> Answer:
        return Answer(body=page([("a", 1, '"1"')]))

    def asked_as() -> str:
        with scripted_server(answer, heard=signed.append) as endpoint:
            listed(opened(endpoint, "bucket"))
        return signed.pop().partition("Credential=")[2].partition("/")[0]

    assert asked_as() == "test-key"
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    assert asked_as() == "of-default"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert asked_as() == "of-other"


def test_nothing_is_signed_for_a_public_bucket() -> None:
    heard: list[str] = []
    body = page([("a", 1, '"1"')])
    with scripted_server(lambda path, number: Answer(body=body), heard=heard.append) as endpoint:
        listed(opened(endpoint, "bucket", anonymous=True))
    assert heard == [""]


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boto3.session", "botocore.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
        source = opened("http://127.0.0.1:9", "bucket")
        with pytest.raises(BucketClientMissing, match=r"tallybook\[bucket\]"):
            listed(source)
        monkeypatch.undo()


def test_the_environment_does_not_lead_elsewhere(
    bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = fill(bucket_server, {"a": b"1"})
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "eu-west-9")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "true")
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    source = opened(bucket_server.endpoint, bucket)
    assert pl.concat(list(source.read(listed(source))))["checksum"].to_list() == [sha(b"1")]


@pytest.mark.parametrize(
    "endpoint",
    ["http://example.org", "http://10.0.0.1:9000", "ftp://127.0.0.1", "https://example.org:x"],
)
def test_an_endpoint_that_keys_may_not_be_sent_to(endpoint: str) -> None:
    with pytest.raises(SourceUnreadable, match="its endpoint cannot be used"):
        open_bucket("shelf", declared(endpoint, "bucket"))
