"""Where a bucket is asked for, and what its client's errors and pages mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.utils import parse_timestamp
from urllib3.response import HTTPResponse

from resources.sources.bucket_client import (
    BucketClient,
    ObjectGone,
    address_of,
    checked_endpoint,
    moment_of,
    whole_seconds_ns,
)
from resources.sources.port import SourceUnreadable


@pytest.mark.parametrize(
    ("url", "endpoint", "region", "expected"),
    [
        ("s3://box", None, "eu-west-1", ("box", "", "https://s3.eu-west-1.amazonaws.com")),
        ("s3://box/", None, "cn-north-1", ("box", "", "https://s3.cn-north-1.amazonaws.com.cn")),
        ("s3://box/a/b", "http://localhost:9/", "x", ("box", "a/b/", "http://localhost:9")),
        ("s3://box/a/", "https://h", "x", ("box", "a/", "https://h")),
        ("s3://box/a?b#c", "https://h", "x", ("box", "a?b#c/", "https://h")),
        ("s3://box//a", "https://h", "x", ("box", "/a/", "https://h")),
    ],
)
def test_addresses(
    url: str, endpoint: str | None, region: str, expected: tuple[str, str, str]
) -> None:
    address = address_of("shelf", url, endpoint, region, anonymous=False)
    assert (address.bucket, address.prefix, address.server) == expected
    assert address.location == f"s3://{expected[0]}/{expected[1]} at {expected[2]}"


def test_an_endpoint_elsewhere_needs_https() -> None:
    assert checked_endpoint("shelf", "https://h:9000") == "https://h:9000"
    with pytest.raises(SourceUnreadable, match="its endpoint cannot be used"):
        checked_endpoint("shelf", "http://h:9000")


@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param("https://[::1", id="half_an_address"),
        pytest.param("https://h:x", id="no_port"),
        pytest.param("https://h:99999", id="port_beyond"),
        pytest.param("https://ex ample", id="blank"),
        pytest.param("https://\u212bb\u2100", id="signs_that_fold_to_others"),
        pytest.param("https://ada:secret@h", id="password"),
        pytest.param("https://h?X-Amz-Signature=secret", id="signed"),
    ],
)
def test_what_is_no_endpoint(endpoint: str) -> None:
    with pytest.raises(SourceUnreadable, match="its endpoint cannot be used") as caught:
        checked_endpoint("shelf", endpoint)
    assert "secret" not in str(caught.value)


def test_a_region_that_is_none() -> None:
    address = address_of("shelf", "s3://box", None, "no region", anonymous=True)
    with pytest.raises(SourceUnreadable, match="its address is not one of a bucket"):
        next(BucketClient(address, 1).pages())


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        pytest.param(None, "https://box.s3.eu-west-1.amazonaws.com/", id="amazon"),
        pytest.param("https://h:9000", "https://h:9000/box/", id="another"),
        pytest.param("http://127.0.0.1:9/base", "http://127.0.0.1:9/base/box/", id="a-path"),
    ],
)
def test_where_requests_go(endpoint: str | None, url: str) -> None:
    address = address_of("shelf", "s3://box", endpoint, "eu-west-1", anonymous=True)
    bucket = BucketClient(address, 1)
    client: Any = bucket._client()
    asked: list[str] = []

    def answered(request: Any, **told: object) -> Any:
        asked.append(request.url)
        return AWSResponse(request.url, 404, {}, HTTPResponse(BytesIO(), preload_content=False))

    client.meta.events.register("before-send.s3", answered)
    with pytest.raises(ObjectGone):
        bucket.head(b"a/../b")
    assert asked == [f"{url}a/../b"]
    config = client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (10, 30)
    assert config.retries["total_max_attempts"] == 3


@pytest.mark.parametrize(
    "told",
    [
        "2026-11-30T01:02:03.456Z",
        "2026-11-30T01:02:03Z",
        "2026-11-30T02:02:03+01:00",
        "Mon, 30 Nov 2026 01:02:03 GMT",
        "1796000523",
        1796000523,
        1796000523.5,
    ],
)
def test_times_are_read_as_the_client_reads_them(told: str | float) -> None:
    assert moment_of(told) == parse_timestamp(told)
    assert whole_seconds_ns(moment_of(told)) == 1796000523 * 1_000_000_000


@pytest.mark.parametrize("told", ["", "yesterday", "2026-13-30T01:02:03Z", "TZ"])
def test_what_is_no_time(told: str) -> None:
    with pytest.raises(ValueError, match="Invalid timestamp"):
        moment_of(told)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(1970, 1, 1, 0, 0, 1, 999_999, UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 58, 500_000, UTC), -2),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
    ],
)
def test_times_are_cut_to_the_second(moment: datetime, expected: int) -> None:
    assert whole_seconds_ns(moment) == expected * 1_000_000_000
