r"""The `aws-chunked` content coding, in which AWS SDKs send bodies with checksums behind them.

Belongs here: taking it apart while it arrives. Does not belong here: what the checksums are of.

    <hexadecimal size>[;chunk-signature=...]\r\n <bytes> \r\n
    0\r\n <name>:<value>\r\n \r\n
"""

from __future__ import annotations


class BrokenChunks(ValueError):
    """The body is not in the coding that its header names."""


class ChunkDecoder:
    """Takes an `aws-chunked` body apart, piece by piece.

    Attributes:
        trailers: lower-case names and values of what stood behind the last chunk.
        finished: whether the last chunk was seen.
    """

    def __init__(self) -> None:
        self.trailers: dict[str, str] = {}
        self.finished = False
        self._rest = b""
        self._left = 0
        self._behind_chunk = False

    def feed(self, data: bytes) -> bytes:
        """Return the payload in another piece of the body.

        Raises:
            BrokenChunks: a size or a separator is not where it should be.
        """
        self._rest += data
        payload = []
        while True:
            if self._left:
                taken, self._rest = self._rest[: self._left], self._rest[self._left :]
                self._left -= len(taken)
                payload.append(taken)
                if self._left or not taken:
                    break
                self._behind_chunk = True
            line, found, rest = self._rest.partition(b"\r\n")
            if not found:
                break
            self._rest = rest
            self._read_line(line)
        return b"".join(payload)

    def _read_line(self, line: bytes) -> None:
        if self._behind_chunk:
            if line:
                raise BrokenChunks("a chunk is longer than its size says")
            self._behind_chunk = False
        elif self.finished:
            name, found, value = line.decode("latin-1").partition(":")
            if found:
                self.trailers[name.strip().lower()] = value.strip()
        else:
            try:
                self._left = int(line.partition(b";")[0], 16)
            except ValueError:
                raise BrokenChunks("a chunk has no size") from None
            self.finished = self._left == 0
