"""Events from a queue behind the SQS API, through boto3.

Belongs here: receiving and deleting messages. Does not belong here: what they say (`events.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from resources.sources.bucket_client import checked_endpoint
from resources.sources.event_queue.transport import Received
from resources.sources.port import SourceError, SourceMissing, SourceUnreadable

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

WAIT_SECONDS = 2
"""How long a call waits for the first message; a call that does not wait asks only some servers."""
BATCH = 10
"""Messages of a call; the service takes no more."""
_MISSING = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "InvalidAddress",
    }
)


class QueueClientMissing(SourceError):
    """The client of the SQS API is not installed."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"source {source}: a queue behind the SQS API needs a library that is not installed. "
            "Install the extra: pip install 'tallybook[queue]'."
        )


class SqsTransport:
    """A queue of messages.

    Args:
        source: the source's name, for messages.
        queue_url: the queue.
        endpoint: another server than Amazon's.
        region: where the queue is.

    Raises:
        SourceUnreadable: the queue's address or the endpoint cannot be used.
    """

    def __init__(self, source: str, queue_url: str, endpoint: str | None, region: str) -> None:
        self._source = source
        self._queue = checked_endpoint(source, queue_url)
        self._endpoint = None if endpoint is None else checked_endpoint(source, endpoint)
        self._region = region
        self._made: Any = None

    @property
    def location(self) -> str:
        """The queue's address."""
        return self._queue

    def receive(self, limit: int, seconds: float) -> list[Received]:
        """Messages until none comes, `limit` is reached or the time is over.

        Raises:
            QueueClientMissing: boto3 is not installed.
            SourceMissing, SourceUnreadable: the queue cannot be asked.
        """
        received: list[Received] = []
        until = time.monotonic() + seconds
        while len(received) < limit:
            messages = self._call(
                "receive_message",
                MaxNumberOfMessages=min(BATCH, limit - len(received)),
                WaitTimeSeconds=WAIT_SECONDS if not received else 0,
            ).get("Messages", [])
            received += [
                Received(
                    f"sqs {message['MessageId']}",
                    message["Body"].encode("utf-8", "replace"),
                    message["ReceiptHandle"],
                )
                for message in messages
            ]
            if not messages or time.monotonic() >= until:
                break
        return received

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Delete messages; one that cannot be deleted is delivered again, which changes nothing.

        Raises:
            SourceMissing, SourceUnreadable: the queue cannot be asked.
        """
        for start in range(0, len(receipts), BATCH):
            self._call(
                "delete_message_batch",
                Entries=[
                    {"Id": str(number), "ReceiptHandle": receipt}
                    for number, receipt in enumerate(receipts[start : start + BATCH])
                ],
            )

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise QueueClientMissing(self._source) from None
        try:
            return getattr(self._client(), operation)(QueueUrl=self._queue, **arguments)
        except (BotoCoreError, ClientError) as error:
            # Not as its cause: a client's error may quote what was sent.
            raise self._refused(error) from None

    def _client(self) -> Any:
        if self._made is None:
            from boto3.session import Session
            from botocore.config import Config

            self._made = Session(region_name=self._region).client(
                "sqs",
                endpoint_url=self._endpoint,
                config=Config(
                    connect_timeout=10,
                    read_timeout=30,
                    retries={"total_max_attempts": 3, "mode": "standard"},
                    ignore_configured_endpoint_urls=True,
                ),
            )
        return self._made

    def _refused(self, error: BotoCoreError | ClientError) -> SourceError:
        answer: Any = getattr(error, "response", {})
        code = answer.get("Error", {}).get("Code", "")
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _MISSING or status == 404:
            return SourceMissing(
                f"source {self._source}: there is no queue {self._queue}; expected the queue that "
                "events are sent to: create it, or correct queue_url in the sources file"
            )
        return SourceUnreadable(
            f"source {self._source}: the queue {self._queue} cannot be asked "
            f"({_problem(type(error).__name__, code, status)}); expected a queue that these "
            "credentials may receive from and delete from: correct the credentials, the region or "
            "the endpoint. No event was lost"
        )


def _problem(kind: str, code: str, status: int) -> str:
    if kind in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return "no credentials were found"
    if status in (401, 403) or "Denied" in code or "Token" in code or "Signature" in code:
        return "access denied"
    if status in (429, 503):
        return "the server is busy"
    return f"the server refused with status {status}" if status else "it could not be reached"
