"""The subset of S3 that batch inference needs; objects lie on disk.

Belongs here: PUT (plain, or aws-chunked with trailers), GET with ranges, HEAD, DELETE, listing
(version 2) and multipart uploads. Does not belong here: jobs (`bedrock_jobs.py`).

Any bucket exists but those in `world.settings["s3.missing_buckets"]`. Objects are visible only
under the access key that made them, or whose job did.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator.aws_chunked import BrokenChunks, ChunkDecoder
from tests.provider_emulator.bedrock_http import (
    AwsError,
    caller_of,
    planted,
    s3_error_response,
    s3_headers,
    xml_response,
)
from tests.provider_emulator.http import stream_bytes
from tests.provider_emulator.world import World

MAX_LIST_KEYS = 1000
MIN_PART_BYTES = 5 << 20
"""Every part of an upload but the last is at least so large."""

_METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"]
_PART_NUMBER = re.compile(rb"<PartNumber>(\d+)</PartNumber>")
_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass(frozen=True)
class StoredObject:
    """An object: where its bytes are, its tag, and its CRC-32 where the whole is known."""

    path: Path
    size: int
    etag: str
    modified: datetime
    crc32: str | None = None


@dataclass
class Upload:
    """A multipart upload under way."""

    account: str
    bucket: str
    key: str
    parts: dict[int, StoredObject] = field(default_factory=dict)


class ObjectStore:
    """Objects by account, bucket and key."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.folder / "s3"
        self.folder.mkdir(exist_ok=True)
        self.objects: dict[tuple[str, str, str], StoredObject] = {}
        self.uploads: dict[str, Upload] = {}

    def new_path(self) -> Path:
        """Return a path for new bytes."""
        return self.folder / self.world.new_id("object-")

    def find(self, account: str, bucket: str, key: str) -> StoredObject | None:
        """Return an object of an account, or None."""
        with self.world.lock:
            return self.objects.get((account, bucket, key))

    def put_file(self, account: str, bucket: str, key: str, stored: StoredObject) -> None:
        """Make bytes on disk an object; what stood there before is deleted."""
        with self.world.lock:
            self.remove(account, bucket, key)
            self.objects[account, bucket, key] = stored

    def put_bytes(self, account: str, bucket: str, key: str, lines: list[bytes]) -> None:
        """Make bytes an object, as a service of the same account would."""
        path = self.new_path()
        digest, size = hashlib.md5(), 0
        with path.open("wb") as file:
            for line in lines:
                digest.update(line)
                size += file.write(line)
        stored = StoredObject(path, size, digest.hexdigest(), self.world.clock.now())
        self.put_file(account, bucket, key, stored)

    def remove(self, account: str, bucket: str, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        with self.world.lock:
            stored = self.objects.pop((account, bucket, key), None)
        if stored is not None:
            stored.path.unlink(missing_ok=True)

    def keys(self, account: str, bucket: str, prefix: str) -> list[str]:
        """Return the keys with a prefix, in order."""
        with self.world.lock:
            return sorted(
                key
                for owner, place, key in self.objects
                if (owner, place) == (account, bucket) and key.startswith(prefix)
            )


def routes(world: World, store: ObjectStore, before_read: Callable[[], None]) -> list[BaseRoute]:
    """Return the routes under `/s3`.

    Args:
        world: the emulator's state.
        store: the objects.
        before_read: called before objects are read or listed, so that jobs write what is due.
    """
    handler = _Handler(world, store, before_read)
    return [
        Route("/s3/{bucket}", handler.on_bucket, methods=["GET", "HEAD"]),
        Route("/s3/{bucket}/", handler.on_bucket, methods=["GET", "HEAD"]),
        Route("/s3/{bucket}/{key:path}", handler.on_object, methods=_METHODS),
    ]


class _Handler:
    def __init__(self, world: World, store: ObjectStore, before_read: Callable[[], None]) -> None:
        self._world = world
        self._store = store
        self._before_read = before_read

    async def on_bucket(self, request: Request) -> Response:
        return await self._answered(request, self._list)

    async def on_object(self, request: Request) -> Response:
        return await self._answered(request, self._operation(request))

    async def _answered(
        self, request: Request, operation: Callable[[Request, str], Awaitable[Response]]
    ) -> Response:
        try:
            account = caller_of(request).account
            missing = self._world.settings.get("s3.missing_buckets", ())
            if request.path_params["bucket"] in missing:
                raise AwsError(404, "NoSuchBucket", "The specified bucket does not exist")
            return await operation(request, account)
        except AwsError as error:
            return s3_error_response(self._world, error)
        except BrokenChunks as broken:
            error = AwsError(400, "InvalidRequest", str(broken))
            return s3_error_response(self._world, error)
        except ClientDisconnect:
            return Response(status_code=400)

    def _operation(self, request: Request) -> Callable[[Request, str], Awaitable[Response]]:
        query = request.query_params
        if "uploads" in query or "uploadId" in query:
            return {
                "POST": self._begin if "uploads" in query else self._complete,
                "PUT": self._put_part,
                "DELETE": self._abort,
            }.get(request.method, self._unknown)
        return {
            "GET": self._get,
            "HEAD": self._head,
            "PUT": self._put,
            "DELETE": self._delete,
        }.get(request.method, self._unknown)

    async def _unknown(self, request: Request, account: str) -> Response:
        raise AwsError(501, "NotImplemented", "this operation of S3 is not emulated")

    # Objects

    async def _put(self, request: Request, account: str) -> Response:
        bucket, key = _place(request)
        dropped, _ = planted(self._world, request, "upload", key=key)
        if dropped is not None:
            return dropped
        stored = await self._save(request)
        self._store.put_file(account, bucket, key, stored)
        headers = {"ETag": f'"{stored.etag}"', "x-amz-checksum-crc32": stored.crc32 or ""}
        return Response(status_code=200, headers=s3_headers(self._world, headers))

    async def _get(self, request: Request, account: str) -> Response:
        key = _place(request)[1]
        dropped, fault = planted(self._world, request, "download", key=key)
        if dropped is not None:
            return dropped
        stored = self._wanted(request, account)
        asked = request.headers.get("range")
        if asked and _first_byte(asked) >= stored.size:
            error = AwsError(416, "InvalidRange", "The requested range is not satisfiable")
            more = {"RangeRequested": asked, "ActualObjectSize": stored.size}
            return s3_error_response(self._world, error, more)
        return await stream_bytes(
            request,
            stored.path,
            fault=fault,
            media_type="binary/octet-stream",
            allow_range=True,
            headers=s3_headers(self._world, _object_headers(request, stored)),
        )

    async def _head(self, request: Request, account: str) -> Response:
        dropped, _ = planted(self._world, request, "file", key=_place(request)[1])
        if dropped is not None:
            return dropped
        stored = self._wanted(request, account)
        headers = {**_object_headers(request, stored), "Content-Length": str(stored.size)}
        return Response(headers=s3_headers(self._world, headers), media_type="binary/octet-stream")

    async def _delete(self, request: Request, account: str) -> Response:
        bucket, key = _place(request)
        dropped, _ = planted(self._world, request, "delete", key=key)
        if dropped is not None:
            return dropped
        self._store.remove(account, bucket, key)
        return Response(status_code=204, headers=s3_headers(self._world))

    def _wanted(self, request: Request, account: str) -> StoredObject:
        self._before_read()
        bucket, key = _place(request)
        stored = self._store.find(account, bucket, key)
        if stored is None:
            raise AwsError(404, "NoSuchKey", "The specified key does not exist.")
        return stored

    async def _save(self, request: Request) -> StoredObject:
        """Copy a body to disk and compare it with the checksum that came with it."""
        path = self._store.new_path()
        chunked = "aws-chunked" in request.headers.get("content-encoding", "")
        decoder = ChunkDecoder() if chunked else None
        digest, crc, size = hashlib.md5(), 0, 0
        with path.open("wb") as file:
            async for block in request.stream():
                data = decoder.feed(block) if decoder else block
                digest.update(data)
                crc = zlib.crc32(data, crc)
                size += file.write(data)
        if decoder is not None and not decoder.finished:
            raise BrokenChunks("the body has no last chunk")
        crc32 = base64.b64encode(crc.to_bytes(4, "big")).decode()
        name = "x-amz-checksum-crc32"
        sent = (decoder.trailers if decoder else {}).get(name) or request.headers.get(name)
        if sent is not None and sent != crc32:
            path.unlink()
            raise AwsError(400, "BadDigest", "The CRC32 you specified did not match what we got")
        return StoredObject(path, size, digest.hexdigest(), self._world.clock.now(), crc32)

    # Listing

    async def _list(self, request: Request, account: str) -> Response:
        query = request.query_params
        prefix = query.get("prefix", "")
        dropped, _ = planted(self._world, request, "file", prefix=prefix)
        if dropped is not None:
            return dropped
        self._before_read()
        bucket = request.path_params["bucket"]
        after = query.get("continuation-token") or query.get("start-after") or ""
        keys = [key for key in self._store.keys(account, bucket, prefix) if key > after]
        limit = min(
            int(query.get("max-keys", MAX_LIST_KEYS)),
            int(self._world.settings.get("s3.max_list_keys", MAX_LIST_KEYS)),
        )
        page = keys[:limit]
        encode = quote if query.get("encoding-type") == "url" else str
        contents = ""
        for key in page:
            stored = self._store.find(account, bucket, key)
            if stored is not None:
                contents += _listed(escape(encode(key)), stored)
        more = len(keys) > limit
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        encoding = "<EncodingType>url</EncodingType>" if encode is quote else ""
        return xml_response(
            self._world,
            f"<ListBucketResult {_NAMESPACE}><Name>{bucket}</Name>"
            f"<Prefix>{escape(encode(prefix))}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{limit}</MaxKeys>{encoding}<IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{contents}</ListBucketResult>",
        )

    # Multipart uploads

    async def _begin(self, request: Request, account: str) -> Response:
        bucket, key = _place(request)
        dropped, _ = planted(self._world, request, "upload", key=key)
        if dropped is not None:
            return dropped
        upload_id = self._world.new_id("upload-")
        self._store.uploads[upload_id] = Upload(account, bucket, key)
        return xml_response(
            self._world,
            f"<InitiateMultipartUploadResult {_NAMESPACE}><Bucket>{bucket}</Bucket>"
            f"<Key>{escape(key)}</Key><UploadId>{upload_id}</UploadId>"
            "</InitiateMultipartUploadResult>",
        )

    async def _put_part(self, request: Request, account: str) -> Response:
        number = int(request.query_params.get("partNumber", "0"))
        dropped, _ = planted(self._world, request, "upload", key=_place(request)[1], part=number)
        if dropped is not None:
            return dropped
        upload = self._upload(request, account)
        stored = await self._save(request)
        upload.parts[number] = stored
        headers = {"ETag": f'"{stored.etag}"', "x-amz-checksum-crc32": stored.crc32 or ""}
        return Response(status_code=200, headers=s3_headers(self._world, headers))

    async def _complete(self, request: Request, account: str) -> Response:
        upload = self._upload(request, account)
        dropped, _ = planted(self._world, request, "upload", key=upload.key)
        if dropped is not None:
            return dropped
        parts = _chosen_parts(upload, await request.body())
        path = self._store.new_path()
        digests = b""
        with path.open("wb") as file:
            for part in parts:
                digests += bytes.fromhex(part.etag)
                with part.path.open("rb") as piece:
                    while block := piece.read(1 << 20):
                        file.write(block)
        etag = f"{hashlib.md5(digests).hexdigest()}-{len(parts)}"
        stored = StoredObject(path, path.stat().st_size, etag, self._world.clock.now())
        self._store.put_file(account, upload.bucket, upload.key, stored)
        self._forget(request.query_params["uploadId"])
        return xml_response(
            self._world,
            f"<CompleteMultipartUploadResult {_NAMESPACE}><Bucket>{upload.bucket}</Bucket>"
            f"<Key>{escape(upload.key)}</Key><ETag>&quot;{etag}&quot;</ETag>"
            "</CompleteMultipartUploadResult>",
        )

    async def _abort(self, request: Request, account: str) -> Response:
        self._upload(request, account)
        self._forget(request.query_params["uploadId"])
        return Response(status_code=204, headers=s3_headers(self._world))

    def _upload(self, request: Request, account: str) -> Upload:
        upload = self._store.uploads.get(request.query_params.get("uploadId", ""))
        place = (account, *_place(request))
        if upload is None or (upload.account, upload.bucket, upload.key) != place:
            raise AwsError(404, "NoSuchUpload", "The specified upload does not exist.")
        return upload

    def _forget(self, upload_id: str) -> None:
        upload = self._store.uploads.pop(upload_id)
        for part in upload.parts.values():
            part.path.unlink(missing_ok=True)


def _place(request: Request) -> tuple[str, str]:
    return request.path_params["bucket"], request.path_params["key"]


def _first_byte(header: str) -> int:
    first = header.removeprefix("bytes=").partition("-")[0]
    return int(first) if first.isdecimal() else 0


def _object_headers(request: Request, stored: StoredObject) -> dict[str, str]:
    headers = {
        "ETag": f'"{stored.etag}"',
        "Last-Modified": format_datetime(stored.modified, usegmt=True),
    }
    whole = "range" not in request.headers
    if whole and stored.crc32 and request.headers.get("x-amz-checksum-mode") == "ENABLED":
        headers["x-amz-checksum-crc32"] = stored.crc32
        headers["x-amz-checksum-type"] = "FULL_OBJECT"
    return headers


def _listed(key: str, stored: StoredObject) -> str:
    return (
        f"<Contents><Key>{key}</Key><LastModified>{stored.modified:%Y-%m-%dT%H:%M:%S.000Z}"
        f"</LastModified><ETag>&quot;{stored.etag}&quot;</ETag><Size>{stored.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def _chosen_parts(upload: Upload, body: bytes) -> list[StoredObject]:
    """Return the parts that the completing call names.

    Raises:
        AwsError: one of them is not there, or too small.
    """
    numbers = [int(one) for one in _PART_NUMBER.findall(body)]
    if not numbers or any(number not in upload.parts for number in numbers):
        raise AwsError(400, "InvalidPart", "One or more of the specified parts could not be found.")
    parts = [upload.parts[number] for number in numbers]
    if any(part.size < MIN_PART_BYTES for part in parts[:-1]):
        raise AwsError(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum")
    return parts
