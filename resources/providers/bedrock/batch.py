"""Bedrock's batch jobs behind the port: inputs and outputs in S3, jobs by the control plane.

Belongs here: uploads, jobs, listings, downloads. Does not belong here: formats (`wire.py`), what
words mean (`statuses.py`), what errors mean (`errors.py`).

A job's token and name are made from the intent, and its input and output from both: the identical
call names the identical job, so that repeating a creation is safe (PROVIDERS.md 4.1 and 5.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from resources.providers.bedrock.errors import (
    NOTE_LENGTH,
    PROVIDER,
    Trouble,
    for_creation,
    for_file,
    for_job,
    for_reading,
    for_upload,
    translated,
)
from resources.providers.bedrock.session import (
    ROLE_VARIABLE,
    S3_VARIABLE,
    Connection,
    Location,
    check_model,
    location_of,
    split_uri,
)
from resources.providers.bedrock.statuses import job_failure_of, phase_of
from resources.providers.port import (
    Counts,
    CredentialsMissing,
    Download,
    FileMissing,
    Found,
    Intent,
    Job,
    NewJob,
    ProviderError,
    ProviderOptions,
    RemoteFile,
)

SEARCH_MARGIN = timedelta(minutes=15)
"""How far the provider's clock may be behind ours: the search starts so long before the intent."""

PAGE_SIZE = 100
"""Jobs per page of a search; the service allows 1,000 (PROVIDERS.md 4.1)."""

BLOCK_BYTES = 1 << 20
CONNECTIONS = 10
"""As many as the threads of a multipart upload."""

OUTPUT_ENDING = ".jsonl.out"
FIRST_STATUS = "Submitted"


def connect_batch(options: ProviderOptions) -> BedrockBatch:
    """Return a client from the environment's credentials, region and endpoints.

    Raises:
        SdkMissing: boto3 is not installed.
        CredentialsMissing: credentials, region, role or S3 place are not set.
        BadSetting: the S3 place is no `s3://` address.
    """
    if not options.bedrock_role_arn:
        raise CredentialsMissing(PROVIDER, ROLE_VARIABLE)
    if not options.bedrock_s3_uri:
        raise CredentialsMissing(PROVIDER, S3_VARIABLE)
    location = location_of(options.bedrock_s3_uri)
    connection = Connection(options, CONNECTIONS)
    connection.need_signing_keys()
    return BedrockBatch(connection, options.bedrock_role_arn, location)


class BedrockBatch:
    """The port's `BatchClient` for Bedrock.

    Args:
        connection: credentials and clients.
        role_arn: the service role that reads the input and writes the output.
        location: where inputs and outputs lie.
    """

    name = PROVIDER

    def __init__(self, connection: Connection, role_arn: str, location: Location) -> None:
        self._connection = connection
        self._role_arn = role_arn
        self._location = location
        self._bedrock = connection.client("bedrock")
        self._s3 = connection.client("s3")
        self.base_url: str = self._bedrock.meta.endpoint_url

    def account(self) -> str:
        """Return what the credentials identify; secrets only as digests."""
        return self._connection.account(self.base_url)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the service does not know it.
        """
        check_model(self._bedrock, model)

    def create(self, job: NewJob) -> Job:
        """Upload the input, unless the intent has a reference to it, and create the job.

        The service answers with the job's ARN alone, so the returned job is a new one: where the
        call repeated an earlier one, `retrieve` tells how far that job is.

        Raises:
            Refused: the provider said no, or the upload broke off: there is no job.
            Unreachable: no connection came about: there is no job.
            Ambiguous: there may be a job.
        """
        input_uri = job.intent.input_ref or self._upload(job)
        token = token_of(job.intent.intent_id)
        output_uri = self._location.uri("out", job.intent.intent_id) + "/"
        with translated(for_creation):
            created = self._bedrock.create_model_invocation_job(
                jobName=token,
                clientRequestToken=token,
                roleArn=self._role_arn,
                modelId=job.intent.model,
                modelInvocationType="Converse",
                inputDataConfig={
                    "s3InputDataConfig": {"s3InputFormat": "JSONL", "s3Uri": input_uri}
                },
                outputDataConfig={"s3OutputDataConfig": {"s3Uri": output_uri}},
                timeoutDurationInHours=job.window_hours,
            )
        phase, _ = phase_of(FIRST_STATUS)
        return Job(_named(created), FIRST_STATUS, phase, remote=(input_uri,))

    def find(self, intent: Intent) -> Found:
        """Look for the job of an intent among the account's jobs, all pages of them.

        Raises:
            Unavailable: a page could not be had; nothing is known then.
        """
        prefix = token_of(f"{intent.batch_key}-")
        token = token_of(intent.intent_id)
        found = [
            item
            for item in self._listed(prefix, intent.recorded_at - SEARCH_MARGIN)
            if item.get("clientRequestToken") == token or item["jobName"].startswith(prefix)
        ]
        found.sort(key=lambda item: item["submitTime"])
        return Found(jobs=tuple(self._job(item) for item in found), maybe=(), complete=True)

    def retrieve(self, job_id: str) -> Job:
        """Return the job as it is now, with its output files once it has ended.

        Raises:
            JobMissing: the service does not have it, or not now.
        """
        with translated(for_job(job_id)):
            answer = self._bedrock.get_model_invocation_job(jobIdentifier=job_id)
        return self._job(answer)

    def cancel(self, job_id: str) -> None:
        """Ask the service to stop the job; one that is stopping or has ended already is left.

        Raises:
            JobMissing: the service does not have it, or not now.
        """
        try:
            with translated(_unless_too_late(job_id)):
                self._bedrock.stop_model_invocation_job(jobIdentifier=job_id)
        except _TooLate:
            return

    @contextmanager
    def open_file(self, job_id: str, file: RemoteFile, offset: int) -> Iterator[Download]:
        """Stream an output object from a byte offset on.

        Raises:
            FileMissing: the object is not there (any more, or yet).
        """
        answer = self._get(file.ref, offset)
        if answer is None:
            yield Download(iter(()), offset, 0)
            return
        body = answer["Body"]
        partial = answer["ResponseMetadata"]["HTTPStatusCode"] == 206
        try:
            yield Download(
                _blocks(body, file.ref), offset if partial else 0, answer.get("ContentLength")
            )
        finally:
            body.close()

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Delete the objects of a job; those that are gone already are no error."""
        for ref in refs:
            bucket, key = split_uri(ref)
            try:
                with translated(for_file(ref)):
                    self._s3.delete_object(Bucket=bucket, Key=key)
            except FileMissing:
                continue

    def close(self) -> None:
        """Give connections back."""
        self._bedrock.close()
        self._s3.close()

    def _upload(self, job: NewJob) -> str:
        intent_id = job.intent.intent_id
        key = self._location.key("in", f"{intent_id}.jsonl")
        # The open file, not its name: so errors come as they are, not as text of another error.
        with job.request_file.open("rb") as stream, translated(for_upload):
            self._s3.upload_fileobj(stream, self._location.bucket, key)
        uri = self._location.uri("in", f"{intent_id}.jsonl")
        job.on_uploaded(uri)
        return uri

    def _listed(self, name_contains: str, after: datetime) -> Iterator[dict[str, Any]]:
        asked: dict[str, Any] = {
            "nameContains": name_contains,
            "submitTimeAfter": after,
            "maxResults": PAGE_SIZE,
            "sortBy": "CreationTime",
            "sortOrder": "Ascending",
        }
        while True:
            with translated(for_reading):
                page = self._bedrock.list_model_invocation_jobs(**asked)
            yield from page.get("invocationJobSummaries", ())
            if not page.get("nextToken"):
                return
            asked["nextToken"] = page["nextToken"]

    def _job(self, answer: dict[str, Any]) -> Job:
        raw_status = str(answer.get("status", ""))
        phase, outcome = phase_of(raw_status)
        failed = outcome == "provider_failed"
        message = answer.get("message")
        objects = self._outputs(answer) if phase == "ended" else {}
        input_uri = answer["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
        return Job(
            job_id=_named(answer),
            raw_status=raw_status,
            phase=phase,
            outcome=outcome,
            counts=counts_of(answer),
            created_at=_utc(answer.get("submitTime")),
            expires_at=_utc(answer.get("jobExpirationTime")),
            files=tuple(
                RemoteFile("output", uri, size)
                for uri, size in objects.items()
                if uri.endswith(OUTPUT_ENDING)
            ),
            remote=(input_uri, *objects),
            error_class=job_failure_of(message) if failed else None,
            error_note=message[:NOTE_LENGTH] if message and failed else None,
        )

    def _outputs(self, answer: dict[str, Any]) -> dict[str, int]:
        """Return the objects that a job wrote, with their sizes in bytes.

        They lie in a folder of the job's own, so two jobs with one output prefix stay apart.
        """
        folder = answer["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"].rstrip("/")
        short_id = _named(answer).rpartition("/")[2]
        bucket, prefix = split_uri(f"{folder}/{short_id}/")
        objects: dict[str, int] = {}
        with translated(for_file(f"s3://{bucket}/{prefix}")):
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            for page in pages:
                for found in page.get("Contents", ()):
                    objects[f"s3://{bucket}/{found['Key']}"] = found["Size"]
        return objects

    def _get(self, ref: str, offset: int) -> Any:
        """Return an object from an offset on; None where it ends exactly there."""
        bucket, key = split_uri(ref)
        asked = {"Bucket": bucket, "Key": key}
        try:
            with translated(_unless_past_end(ref)):
                if offset:
                    return self._s3.get_object(**asked, Range=f"bytes={offset}-")
                return self._s3.get_object(**asked)
        except _PastEnd as past:
            if past.size == offset:
                return None
        # It is shorter than what is here already: another object by now. All of it is fetched.
        with translated(for_file(ref)):
            return self._s3.get_object(**asked)


def token_of(intent_id: str) -> str:
    """Return job name and request token: letters, digits and hyphens only, as both must be."""
    return f"tallybook-{intent_id}"


def counts_of(answer: dict[str, Any]) -> Counts | None:
    """Return what a job says of its rows; the counters are recent and may be absent."""
    total = answer.get("totalRecordCount")
    processed = answer.get("processedRecordCount")
    counts = Counts(
        total=total,
        succeeded=answer.get("successRecordCount"),
        failed=answer.get("errorRecordCount"),
        pending=None if total is None or processed is None else max(0, total - processed),
    )
    return None if counts == Counts() else counts


def _named(answer: dict[str, Any]) -> str:
    return answer["jobArn"]


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def _blocks(body: Any, ref: str) -> Iterator[bytes]:
    # Length and, for whole objects, checksum are verified by the SDK at the end of the body.
    with translated(for_file(ref)):
        yield from body.iter_chunks(BLOCK_BYTES)


class _TooLate(ProviderError):
    pass


def _unless_too_late(job_id: str) -> Any:
    decide = for_job(job_id)

    def decided(trouble: Trouble) -> ProviderError:
        return _TooLate() if trouble.code == "ConflictException" else decide(trouble)

    return decided


class _PastEnd(ProviderError):
    def __init__(self, size: int | None) -> None:
        super().__init__()
        self.size = size


def _unless_past_end(ref: str) -> Any:
    decide = for_file(ref)

    def decided(trouble: Trouble) -> ProviderError:
        if trouble.status != 416:
            return decide(trouble)
        size = str((trouble.detail or {}).get("ActualObjectSize", ""))
        return _PastEnd(int(size) if size.isdecimal() else None)

    return decided
