"""Gemini's Files API: resumable uploads, file facts, deletion, downloads of generated files.

Belongs here: files and their 48 hours. Does not belong here: the jobs that use them.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.gemini_http import (
    ApiError,
    answer_json,
    exhausted,
    no_such_file,
    not_found,
)
from tests.provider_emulator.http import save_body, stream_bytes
from tests.provider_emulator.world import World

PREFIX = "/gemini"
FILE_BYTES = 2 * 10**9
STORAGE_BYTES = 20 * 10**9
RETENTION_SECONDS = 48 * 3600.0
LONG_NAME = "* {call}.name: File ID (name excluding 'files/') cannot be more than 40 characters.\n"
MOST_ID_CHARACTERS = 40


@dataclass
class StoredFile:
    """A file of one account."""

    name: str
    key: str
    path: Path
    size: int
    created_at: datetime
    expires_at: datetime
    display_name: str = ""
    mime_type: str = ""
    sha256: str = ""
    ready_at: datetime | None = None
    generated: bool = False


@dataclass
class Upload:
    """A resumable upload that is going on."""

    key: str
    path: Path
    announced: int
    display_name: str
    mime_type: str
    received: int = 0


def rfc3339(moment: datetime) -> str:
    """Return a time as the wire has it, with nine decimals."""
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}252Z"


class Files:
    """All files of an emulator."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._files: dict[str, StoredFile] = {}
        self._uploads: dict[str, Upload] = {}

    # --- what jobs need -----------------------------------------------------------------------

    def usable(self, name: str, key: str) -> StoredFile:
        """Return an uploaded file that a job may read.

        Raises:
            ApiError: it is not there, or still being processed.
        """
        file = self._find(name, key)
        if self._state(file) != "ACTIVE":
            raise ApiError(
                400,
                f"The File {name.removeprefix('files/')} is not in an ACTIVE state and usage is "
                "not allowed.",
                "FAILED_PRECONDITION",
            )
        return file

    def add_generated(self, name: str, key: str, path: Path, at: datetime) -> None:
        """Keep a result file that a job wrote."""
        kept = float(self._world.settings.get("gemini.results_seconds", RETENTION_SECONDS))
        self._files[name] = StoredFile(
            name=name,
            key=key,
            path=path,
            size=path.stat().st_size,
            created_at=at,
            expires_at=at + timedelta(seconds=kept),
            mime_type="application/jsonl",
            generated=True,
        )

    def drop(self, name: str) -> None:
        """Delete a file with its job."""
        self._files.pop(name, None)

    # --- calls --------------------------------------------------------------------------------

    async def start(self, request: Request, key: str, version: str) -> Response:
        """Begin a resumable upload."""
        headers = request.headers
        if headers.get("x-goog-upload-protocol") != "resumable":
            raise ApiError(400, "Only resumable uploads are emulated.")
        if headers.get("x-goog-upload-command") != "start":
            raise ApiError(400, "Upload command must be start.")
        told = await request.json() if await request.body() else {}
        file = told.get("file", {})
        size = int(headers.get("x-goog-upload-header-content-length", "0"))
        self._check_size(key, size)
        upload_id = self._world.new_id("upload-")
        self._uploads[upload_id] = Upload(
            key=key,
            path=self._world.folder / upload_id,
            announced=size,
            display_name=file.get("displayName", file.get("display_name", "")),
            mime_type=headers.get("x-goog-upload-header-content-type", ""),
        )
        self._uploads[upload_id].path.touch()
        url = (
            f"{self._world.base_url}{PREFIX}/upload/{version}/files?upload_id={upload_id}"
            "&upload_protocol=resumable"
        )
        return Response(
            headers={
                "X-Goog-Upload-URL": url,
                "X-Goog-Upload-Status": "active",
                "X-Goog-Upload-Chunk-Granularity": "262144",
            }
        )

    async def receive(self, request: Request) -> Response:
        """Take bytes of an upload. No key is sent here: the upload's id is the permission."""
        upload_id = request.query_params["upload_id"]
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise not_found()
        commands = [one.strip() for one in request.headers["x-goog-upload-command"].split(",")]
        if "query" in commands:
            return Response(
                headers={
                    "X-Goog-Upload-Status": "active",
                    "X-Goog-Upload-Size-Received": str(upload.received),
                }
            )
        if request.headers.get("x-goog-upload-offset") != str(upload.received):
            raise ApiError(400, "Upload offset does not match the bytes received so far.")
        part = upload.path.with_suffix(".part")
        size = await save_body(request, part)
        with upload.path.open("ab") as whole:
            whole.write(part.read_bytes())
        part.unlink()
        upload.received += size
        if "finalize" not in commands:
            return Response(headers={"X-Goog-Upload-Status": "active"})
        if upload.received != upload.announced:
            raise ApiError(400, "The size of the upload is not the announced one.")
        del self._uploads[upload_id]
        file = self._keep(upload)
        return answer_json({"file": self._facts(file)}, headers={"X-Goog-Upload-Status": "final"})

    def get(self, name: str, key: str) -> Response:
        """Tell the facts of a file."""
        _check_id(name, "GetFileRequest")
        return answer_json(self._facts(self._find(name, key)))

    def list(self, key: str) -> Response:
        """Tell the facts of an account's files."""
        now = self._world.clock.now()
        own = [one for one in self._files.values() if one.key == key and one.expires_at > now]
        return answer_json({"files": [self._facts(one) for one in own]} if own else {})

    def delete(self, name: str, key: str) -> Response:
        """Delete a file."""
        _check_id(name, "DeleteFileRequest")
        del self._files[self._find(name, key).name]
        return answer_json({})

    async def download(
        self, request: Request, name: str, key: str, fault: Fault | None
    ) -> Response:
        """Send a generated file; uploads cannot be downloaded."""
        try:
            file = self._find(name, key)
        except ApiError:
            raise not_found() from None
        if not file.generated:
            raise ApiError(400, "Only generated files can be downloaded.")
        return await stream_bytes(
            request,
            file.path,
            fault=fault,
            media_type="application/octet-stream",
            allow_range=bool(self._world.settings.get("gemini.ranges", True)),
        )

    # --- inside -------------------------------------------------------------------------------

    def _check_size(self, key: str, size: int) -> None:
        settings = self._world.settings
        if size > int(settings.get("gemini.file_bytes", FILE_BYTES)):
            raise ApiError(400, f"File size {size} exceeds the limit of a file.")
        used = sum(one.size for one in self._files.values() if one.key == key)
        if used + size > int(settings.get("gemini.storage_bytes", STORAGE_BYTES)):
            raise exhausted("FileStorageBytesPerProject")

    def _keep(self, upload: Upload) -> StoredFile:
        now = self._world.clock.now()
        settings = self._world.settings
        kept = float(settings.get("gemini.file_seconds", RETENTION_SECONDS))
        processing = float(settings.get("gemini.processing_seconds", 0.0))
        with upload.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        file = StoredFile(
            name=f"files/{self._world.new_id('')[:12]}",
            key=upload.key,
            path=upload.path,
            size=upload.received,
            created_at=now,
            expires_at=now + timedelta(seconds=kept),
            display_name=upload.display_name,
            mime_type=upload.mime_type,
            sha256=digest,
            ready_at=now + timedelta(seconds=processing),
        )
        self._files[file.name] = file
        return file

    def _find(self, name: str, key: str) -> StoredFile:
        file = self._files.get(name)
        if file is None or file.key != key or file.expires_at <= self._world.clock.now():
            raise no_such_file(name)
        return file

    def _state(self, file: StoredFile) -> str:
        ready = file.ready_at is None or file.ready_at <= self._world.clock.now()
        return "ACTIVE" if ready else "PROCESSING"

    def _facts(self, file: StoredFile) -> dict[str, Any]:
        facts = {
            "name": file.name,
            "displayName": file.display_name,
            "mimeType": file.mime_type,
            "sizeBytes": str(file.size),
            "createTime": rfc3339(file.created_at),
            "updateTime": rfc3339(file.created_at),
            "expirationTime": rfc3339(file.expires_at),
            "sha256Hash": base64.b64encode(file.sha256.encode()).decode(),
            "uri": f"{self._world.base_url}{PREFIX}/v1beta/{file.name}",
            "state": self._state(file),
            "source": "GENERATED" if file.generated else "UPLOADED",
        }
        return {name: value for name, value in facts.items() if value}


def _check_id(name: str, call: str) -> None:
    """Refuse long ids: result files have ids of 42 characters, which these calls do not take."""
    if len(name.removeprefix("files/")) > MOST_ID_CHARACTERS:
        raise ApiError(400, LONG_NAME.format(call=call))
