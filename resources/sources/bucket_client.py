"""The client of a bucket behind the S3 API: boto3, and what its errors mean.

Belongs here: where a bucket is, the client and its limits, the list page by page, single objects,
and errors in closed wording. Does not belong here: documents (`bucket.py`).

boto3 is an extra and slow to import, so it is imported when a bucket is first asked. Credentials
are found by boto3's own chain and never leave it. Its errors may quote what was sent or answered,
so none of them is the cause of one of ours.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from resources.clock import is_loopback
from resources.sources.port import SourceError, SourceMissing, SourceUnreadable

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
TRIES = 3
"""Of a request; boto3 waits in between, longer each time."""
PAGE_KEYS = 1_000
"""Keys of a page; servers give no more."""
_SECOND_NS = 1_000_000_000

_DENIED = frozenset(
    {
        "AccessDenied",
        "AllAccessDisabled",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
_OTHER_REGION = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
)
# By the names of the client's classes: their module is slow to import.
_NO_CREDENTIALS = frozenset(
    {
        "ConfigParseError",
        "CredentialRetrievalError",
        "InfiniteLoopConfigError",
        "InvalidConfigError",
        "MetadataRetrievalError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
_TIMES_OUT = frozenset({"ConnectTimeoutError", "ReadTimeoutError"})


class BucketClientMissing(SourceError):
    """The client of the S3 API is not installed."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"source {source}: a bucket needs a library that is not installed. Install the extra: "
            "pip install 'tallybook[bucket]'."
        )


@dataclass(frozen=True)
class Address:
    """Where a bucket is, and as whom it is asked.

    Attributes:
        source: the source's name, for messages.
        bucket: the bucket's name.
        prefix: what every key of the source starts with; empty, or it ends in "/".
        endpoint: another server than Amazon's, without a slash at the end; None: Amazon's.
        region: where the bucket is.
        anonymous: ask without credentials.
    """

    source: str
    bucket: str
    prefix: str
    endpoint: str | None
    region: str
    anonymous: bool

    @property
    def server(self) -> str:
        """The server, for people to read."""
        tail = ".cn" if self.region.startswith("cn-") else ""
        return self.endpoint or f"https://s3.{self.region}.amazonaws.com{tail}"

    @property
    def location(self) -> str:
        """The place, for people to read."""
        return f"s3://{self.bucket}/{self.prefix} at {self.server}"


class ListedKey(NamedTuple):
    """An object as its bucket lists it.

    Attributes:
        key: the key's own bytes.
        size: bytes.
        mtime_ns: last change, in whole seconds: answers about one object tell no more.
        etag: the server's name of this version, without quotes; None where it gives none.
    """

    key: bytes
    size: int
    mtime_ns: int
    etag: str | None


class ObjectGone(Exception):
    """The object is not there."""


class ObjectChanged(Exception):
    """Another version of the object is there now."""


class ObjectTrouble(Exception):
    """An object could not be had; whether it is the bucket is not known.

    Attributes:
        problem: closed wording.
        passing: it may be had by another try.
    """

    def __init__(self, problem: str, *, passing: bool) -> None:
        self.problem = problem
        self.passing = passing
        super().__init__(problem)


def address_of(
    source: str, url: str, endpoint: str | None, region: str, anonymous: bool
) -> Address:
    """The address that a declaration gives.

    Raises:
        SourceUnreadable: the endpoint is not one that credentials may be sent to.
    """
    parts = urlsplit(url)
    prefix = url.partition("://")[2].partition("/")[2]
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    server = None if endpoint is None else checked_endpoint(source, endpoint)
    return Address(source, parts.netloc, prefix, server, region, anonymous)


def checked_endpoint(source: str, endpoint: str) -> str:
    """An endpoint without a slash at its end.

    Raises:
        SourceUnreadable: it is neither https nor this machine, or holds more than a server.
    """
    if not _is_server(endpoint):
        # Not repeated: a password may stand in it.
        raise SourceUnreadable(
            f"source {source}: its endpoint cannot be used; expected https://host[:port], or "
            "http:// for this machine alone, without user and password: correct it in the sources "
            "file. Credentials come from the environment"
        )
    return endpoint.rstrip("/")


def _is_server(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        named = bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", endpoint)
    except ValueError:  # no address, no port, or signs that fold to others
        return False
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(endpoint))
    return safe and plain and named


def refusal(address: Address, problem: str) -> SourceUnreadable:
    """The error of a bucket that cannot be listed, by a problem in closed wording."""
    return SourceUnreadable(
        f"source {address.source}: {address.location} cannot be listed ({problem}); expected a "
        "bucket whose objects these credentials may list and read: correct the credentials, the "
        "region or the endpoint, or wait until the server answers. Nothing is known about its "
        "documents until then"
    )


class BucketClient:
    """One bucket, asked through one client that its threads share.

    Args:
        address: the bucket.
        connections: how many requests are under way at the same time at most.
    """

    def __init__(self, address: Address, connections: int) -> None:
        self._address = address
        self._connections = connections
        self._made: Any = None
        self._making = threading.Lock()

    def pages(self, prefix: str | None = None, most: int = PAGE_KEYS) -> Iterator[list[ListedKey]]:
        """All objects below a prefix in the server's order, a page at a time.

        Args:
            prefix: what the keys start with, of the whole key; the address's by default.
            most: objects of a page.

        Raises:
            BucketClientMissing: boto3 is not installed.
            SourceMissing: there is no such bucket.
            SourceUnreadable: the list, or the rest of it, cannot be had.
        """
        with self._for_the_list():
            pages = iter(
                self._client()
                .get_paginator("list_objects_v2")
                .paginate(
                    Bucket=self._address.bucket,
                    Prefix=self._address.prefix if prefix is None else prefix,
                    # Said here, so that keys come as they were sent: boto3 would else decode them,
                    # and put a sign of its own in the place of bytes that are no text.
                    EncodingType="url",
                    PaginationConfig={"PageSize": most},
                )
            )
        while True:
            with self._for_the_list():
                page = next(pages, None)
                if page is None:
                    return
                keys = _whole_page(page)
            yield keys

    def head(self, key: bytes) -> ListedKey:
        """What an object is like.

        Raises:
            ObjectGone, ObjectTrouble: it cannot be told, or there is none.
            BucketClientMissing, SourceUnreadable: nothing can be asked.
        """
        with self._for_an_object():
            answer = self._client().head_object(Bucket=self._address.bucket, Key=key)
            return _described(key, answer)

    @contextmanager
    def opened(
        self, key: bytes, etag: str | None, block_bytes: int
    ) -> Generator[tuple[ListedKey, Iterator[bytes]]]:
        """An object, and its bytes in blocks; of the version that `etag` names, if it is given.

        Raises, in the block too:
            ObjectGone, ObjectChanged, ObjectTrouble: nothing that was taken may be used.
            BucketClientMissing, SourceMissing, SourceUnreadable: nothing can be asked.
        """
        condition = {} if etag is None else {"IfMatch": f'"{etag}"'}
        with self._for_an_object():
            answer = self._client().get_object(Bucket=self._address.bucket, Key=key, **condition)
            body = answer["Body"]
            try:
                yield _described(key, answer), body.iter_chunks(block_bytes)
            finally:
                body.close()

    def _client(self) -> Any:
        with self._making:
            if self._made is None:
                self._made = self._new_client()
        return self._made

    def _new_client(self) -> Any:
        try:
            from boto3.session import Session
            from botocore import UNSIGNED
            from botocore.config import Config
            from botocore.session import get_session
        except ImportError:
            raise BucketClientMissing(self._address.source) from None
        endpoint = self._address.endpoint
        more: dict[str, Any] = {}
        if self._address.anonymous:
            more["signature_version"] = UNSIGNED
        if endpoint is not None:
            # The environment may ask for variants of Amazon's servers, which this one is not.
            more |= {"use_fips_endpoint": False, "use_dualstack_endpoint": False}
            more["s3"] = {"addressing_style": "path"}
            if is_loopback(endpoint):
                more["proxies"] = {}
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": TRIES, "mode": "standard"},
            max_pool_connections=self._connections,
            ignore_configured_endpoint_urls=True,
            # Keys are given as bytes, which the client sends as they are and its checks refuse.
            parameter_validation=False,
            **more,
        )
        try:
            base = get_session()
            base.get_component("response_parser_factory").set_parser_defaults(
                timestamp_parser=moment_of
            )
            session = Session(region_name=self._address.region, botocore_session=base)
            client = session.client("s3", endpoint_url=endpoint, config=config)
        except ValueError:
            raise refusal(self._address, "its address is not one of a bucket") from None
        client.meta.events.register("before-call.s3", _stay_here)
        return client

    @contextmanager
    def _for_the_list(self) -> Generator[None]:
        from_client = _errors_of_the_client(self._address.source)
        try:
            yield
        except from_client as error:
            raise self._refused(error) from None
        except (KeyError, ValueError):
            raise refusal(self._address, "its answer is no whole list of objects") from None

    @contextmanager
    def _for_an_object(self) -> Generator[None]:
        from_client = _errors_of_the_client(self._address.source)
        try:
            yield
        except from_client as error:
            raise self._about_an_object(error) from None

    def _about_an_object(self, error: Exception) -> Exception:
        kind, code, status = _told(error)
        if code == "NoSuchBucket" or kind in _NO_CREDENTIALS:
            return self._refused(error)
        if status == 404:
            return ObjectGone()
        if status == 412:
            return ObjectChanged()
        if code == "InvalidObjectState":
            return ObjectTrouble("it lies in an archive of the server", passing=False)
        if code in _DENIED or status in (401, 403):
            return ObjectTrouble("access denied", passing=False)
        return ObjectTrouble("the server failed, or could not be reached", passing=True)

    def _refused(self, error: Exception) -> SourceError:
        """The error of a bucket whose list cannot be had."""
        kind, code, status = _told(error)
        address = self._address
        if kind in _NO_CREDENTIALS:
            return SourceUnreadable(
                f"source {address.source}: no credentials were found; expected AWS_ACCESS_KEY_ID "
                "and AWS_SECRET_ACCESS_KEY in the environment, or a profile or a role where boto3 "
                "looks for them: set them, or say `anonymous: true` for a public bucket"
            )
        if status == 404 and code in ("NoSuchBucket", "404", ""):
            return SourceMissing(
                f"source {address.source}: there is no bucket {address.bucket} at "
                f"{address.server}; expected the bucket that holds the documents: create it, or "
                "correct the source's url in the sources file"
            )
        return refusal(address, _problem(kind, code, status))


def _stay_here(context: dict[str, Any], **told: object) -> None:
    """Let no answer lead the client elsewhere: the region is the one that is declared.

    It asks a bucket that answers with a redirection where it is, and that question is answered
    with a redirection too: it goes on until there is no stack left.
    """
    del told
    context.setdefault("s3_redirect", {})["redirected"] = True


def _problem(kind: str, code: str, status: int) -> str:
    """What an error of the list means, in closed wording."""
    if kind in ("PaginationError", "ResponseParserError"):
        return "its answer is no whole list of objects"
    if kind in _TIMES_OUT:
        return "it did not answer in time"
    if code in _DENIED or status in (401, 403):
        return "access denied"
    if code in _OTHER_REGION or 300 <= status < 400:
        return "the bucket is in another region"
    if status in (429, 503):
        return "the server is busy"
    if status >= 500:  # the client's name for half an answer, too
        return "the server failed, or broke off"
    if status:
        return f"the server refused with status {status}"
    return "it could not be reached, or broke off"


def _errors_of_the_client(source: str) -> tuple[type[Exception], ...]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError
    except ImportError:
        raise BucketClientMissing(source) from None
    return (BotoCoreError, ClientError, ResponseParserError, HTTPError)


def _told(error: Exception) -> tuple[str, str, int]:
    """Class, the server's own word, and its status (0: it did not answer)."""
    answer: dict[str, Any] = getattr(error, "response", None) or {}
    code = str(answer.get("Error", {}).get("Code", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return type(error).__name__, code, status


def moment_of(told: str | float) -> datetime:
    """A time as servers write it; the client's own way takes two thirds of a list's time.

    Raises:
        ValueError: it is none.
    """
    if isinstance(told, str) and "T" in told and told.endswith("Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(told)
    from botocore.utils import parse_timestamp

    return parse_timestamp(told)


def _whole_page(page: dict[str, Any]) -> list[ListedKey]:
    """The keys of a page.

    Raises:
        KeyError, ValueError: it is not a whole page.
    """
    encoded = page.get("EncodingType") == "url"
    keys = [_as_listed(_raw_key(item["Key"], encoded), item) for item in page.get("Contents", [])]
    # A page that does not say whether there is another one is none.
    goes_on = bool(page["IsTruncated"])
    if goes_on != bool(page.get("NextContinuationToken")):
        raise ValueError("it is not told how the list goes on")
    if page.get("KeyCount", len(keys)) != len(keys):
        raise ValueError("keys are missing")
    return keys


def _raw_key(key: str, encoded: bool) -> bytes:
    # As forms encode: a space comes as "+", a plus as "%2B".
    return unquote_to_bytes(key.replace("+", " ")) if encoded else key.encode()


def _as_listed(key: bytes, told: dict[str, Any]) -> ListedKey:
    """An object from what a page, or an answer about it alone, says."""
    etag = (told.get("ETag") or "").strip('"') or None
    size = told["Size"] if "Size" in told else told["ContentLength"]
    return ListedKey(key, int(size), whole_seconds_ns(told["LastModified"]), etag)


def _described(key: bytes, answer: dict[str, Any]) -> ListedKey:
    try:
        return _as_listed(key, answer)
    except (KeyError, ValueError):
        raise ObjectTrouble("its answer does not say what it is like", passing=False) from None


def whole_seconds_ns(moment: datetime) -> int:
    """A time in nanoseconds since 1970, cut to the second."""
    return int(moment.timestamp() // 1) * _SECOND_NS
