"""The provider port: what a stage may ask of a provider, and the one shape of a result line.

Belongs here: the protocol and the shared line type. Does not belong here: any provider's wire
format (a module each) and any decision about a result (collect and accept).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

import msgspec


class ResultLine(msgspec.Struct, frozen=True):
    """One line that a provider returned, in the common shape.

    Attributes:
        custom_id: the attempt's id as echoed; None where the line has none.
        status_code: HTTP status of the row, 200 for success, 0 where the provider gave none.
        text: the model's answer, None where there is none.
        finish_reason: the provider's word for why it stopped; `stop` is a whole answer.
        error_code: the provider's own code of a failed row.
        model_revision: the model that answered, where the provider says.
        input_tokens: None where unknown; unknown is not zero.
        output_tokens: None where unknown.
    """

    custom_id: str | None
    status_code: int
    text: str | None = None
    finish_reason: str | None = None
    error_code: str | None = None
    model_revision: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class MalformedLine(ValueError):
    """A line of a result file that is not of the provider's format."""


class SourceLine(NamedTuple):
    """A line as it stands in a file: number from 0, byte offset, bytes without the newline.

    A tuple, since a million of them are made: a frozen dataclass takes three times as long.
    """

    number: int
    offset: int
    data: bytes


def split_lines(stream: BinaryIO, block: int = 1 << 20) -> Iterator[SourceLine]:
    r"""Cut a byte stream on `\n` alone and drop one trailing `\r`; blank lines are skipped.

    Text-mode splitting also cuts at U+2028 and U+0085, which stand raw inside answers.
    """
    number, offset, rest = 0, 0, b""
    while data := stream.read(block):
        pieces = (rest + data).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            if piece.strip():
                yield SourceLine(number, offset, piece.removesuffix(b"\r"))
            offset += len(piece) + 1
            number += 1
    if rest.strip():
        yield SourceLine(number, offset, rest.removesuffix(b"\r"))


class EmbeddedProvider(Protocol):
    """A provider that answers inside the run, without a network."""

    name: str

    def answer_line(self, request: bytes) -> bytes:
        """The result line (no newline) for a request line.

        Raises:
            MalformedLine: the request is not one that this provider wrote.
        """
        ...

    def read_line(self, line: bytes) -> ResultLine:
        """A result line in the common shape.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        ...
