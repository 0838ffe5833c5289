"""A ticket's own words: its text without column names, earlier mails, greetings and signatures.

Belongs here: finding the sentences that the writer of the ticket wrote. Does not belong here: what
they say (`keywords.py`, `products.py`).

Each sentence stays a piece of the page as it is printed, so that it can be quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_LABEL = re.compile(
    r"(?:subject|title|body|message|text|description|betreff|titel|nachricht|beschreibung|objet"
    r"|titre|corps|texte)\s?: +",
    re.IGNORECASE,
)
"""How a row's columns are written before their values."""
_SUBJECT = re.compile(r"(?:subject|title|betreff|titel|objet|titre)\b", re.IGNORECASE)
_ANSWERED = re.compile(r"^(?:(?:re|aw|fw|fwd|wg|tr|rép)\s?: *)+", re.IGNORECASE)
_EARLIER = re.compile(
    r"^\s*(?:-{2,} ?(?:original message|forwarded message|ursprüngliche nachricht"
    r"|weitergeleitete nachricht|message d['’]origine|message transféré)\b"
    r"|on\b.{3,80}\bwrote ?:\s*$|am\b.{3,80}\bschrieb\b.{0,60}:\s*$"
    r"|le\b.{3,80}\ba écrit ?:\s*$)",
    re.IGNORECASE,
)
"""The line above an earlier mail; all that follows is that mail."""
_QUOTED = re.compile(r"^\s*[>|]")
_CLOSING = re.compile(
    r"^\s*(?:(?:with )?(?:kind|best|warm)?\s*regards|yours (?:sincerely|faithfully|truly)|cheers"
    r"|many thanks|thanks(?: in advance)?|sincerely"
    r"|mit (?:freundlichen|besten|lieben) grüßen|(?:viele|beste|liebe|freundliche) grüße|mfg|gruß"
    r"|(?:bien )?cordialement|(?:avec )?(?:mes )?(?:meilleures )?salutations|bien à vous)"
    r"\s*[,.!]?\s*$",
    re.IGNORECASE,
)
"""A line that ends a letter; what follows is a name."""
_GREETING = re.compile(
    r"^\s*(?:hello|hi|hey|dear|good (?:morning|afternoon|evening|day)|to whom it may concern"
    r"|hallo|guten (?:tag|morgen|abend)|sehr geehrte|liebe[sr]?|bonjour|bonsoir|madame|monsieur"
    r"|chère?)\b[^.!?\n]{0,60}[,!.]?\s*$",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?…])[\"”»)]?\s+|\n\s*\n")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:nr|no|art|ref|réf|z\.\s?b|ca|bzw|st|dr|mr|mrs|m|mme|vs|e\.g|i\.e|p\.\s?ex)\.$",
    re.IGNORECASE,
)
_KEPT = 32_768
"""Tickets whose words are kept: those of a shard, which several rules read."""


@dataclass(frozen=True)
class Message:
    """What the writer of a ticket wrote.

    Attributes:
        subject: the subject, as printed, without marks of an answer; empty where there is none.
        sentences: the subject, then the sentences of the body, as printed.
        earlier: does an earlier mail follow?
    """

    subject: str
    sentences: tuple[str, ...]
    earlier: bool

    @property
    def text(self) -> str:
        """All of it, a sentence a line, white space folded."""
        return "\n".join(" ".join(sentence.split()) for sentence in self.sentences)


@lru_cache(maxsize=_KEPT)
def read_message(text: str) -> Message:
    """The own words in a ticket's text."""
    subject, rest = _subject(text)
    own, earlier = _own_lines(rest)
    sentences = [sentence for block in own for sentence in _sentences(block)]
    return Message(subject, tuple([subject, *sentences] if subject else sentences), earlier)


def _subject(text: str) -> tuple[str, str]:
    head, _, rest = text.partition("\n\n")
    label = _LABEL.match(head)
    if label is None or _SUBJECT.match(head) is None:
        return "", text
    return _ANSWERED.sub("", head[label.end() :].strip()), rest


def _own_lines(text: str) -> tuple[list[str], bool]:
    """The blocks of neighbouring lines that are the writer's own; did an earlier mail end them?"""
    blocks: list[list[str]] = [[]]
    earlier = closed = False
    label = _LABEL.match(text)
    for line in text[label.end() if label else 0 :].split("\n"):
        if _EARLIER.match(line):
            earlier = True
            break
        if _QUOTED.match(line):
            earlier = True
            blocks.append([])
        elif _CLOSING.match(line):
            closed = True
        elif closed or _GREETING.match(line):
            blocks.append([])
        else:
            blocks[-1].append(line)
    return ["\n".join(lines) for lines in blocks if lines], earlier


def _sentences(block: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(block):
        if _SHORTENED.search(block[start : match.start()]):
            continue
        if piece := block[start : match.start()].strip():
            yield piece
        start = match.end()
    if piece := block[start:].strip():
        yield piece
