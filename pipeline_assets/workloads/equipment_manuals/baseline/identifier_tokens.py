"""Tokens that look like a model or part number, and how often a document prints them.

Looks only: whether a token names the document's subject is decided in `identifiers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText

_PART = r"[^\W_]+"
_TOKEN = re.compile(rf"(?<![\w.@/\\-]){_PART}(?:[-‐‑–/.+]{_PART})*\+?(?![\w@\\])")
# "PC 1500", "HP 41C": a short name in capitals and a number that belongs to it.
_SPACED = re.compile(
    r"(?<![\w.-])(?P<name>[A-ZА-ЯЁІЇЄ]{1,4}) (?P<number>\d{2,5}[A-Z]{0,2})(?![\w.-])"
)

_UNIT = (
    r"(?:[kmMGµμun]?(?:V|A|W|VA|Hz|F|Ω|ohm|H|Pa|bar|J|N|Nm)(?:ac|dc|pp|rms|h)?|[VA](?:AC|DC)"
    r"|dB[mivuW]?"
    r"|[kMGT]?(?:bit|bits|byte|bps|bit/s|B)|[KMGT]B|[KMG]|[cmkµμn]?m|[mµ]?[sgl]|kg|lbs?|oz|ft|in"
    r"|inch"
    r"|h|min|sec|ms|ns|rpm|°?[CF]|x|X|p|i|P|D|G|st|nd|rd|th|er|e|ème|pin|pins|ch|way|port|bay"
    r"|V/\d+\w*|er|te|ой|й|го|мм|см|м|кг|г|В|А|Вт|кВт|Гц|кГц|МГц|мА|мкФ|Ом|кОм|мс|шт|л|год|р|г)"
)
_STANDARD = (
    r"(?:ISO|IEC|DIN|IEEE|ANSI|ITU|ETSI|ASTM|GOST|ГОСТ|ДСТУ|EIA|JIS|IPC|RFC|CCITT|ECMA|SMPTE|CISPR"
    r"|FIPS|NEMA|ATEX|CFR)[-/ ]?\d[\w./-]*"
    r"|(?:EN|BS|NF|UL|VDE|CSA|TIA|ТУ|GB(?:/T)?)[- ]?\d{3,}[\w./-]*"
    r"|\d+/\d+/E[CU]|(?:EC|EU|EEC)[- ]?\d+/\d+"
    r"|IP-?[0-6X][0-9X]K?|IK\d\d|802\.\d+\w*|X\.\d{2,3}"
)
_INTERFACE = (
    r"RS-?(?:232|422|423|485)\w?|USB-?[\d.]+\w*|HDMI-?[\d.]+|DDR[\dL]+|PCI-?E?x?\d*|SATA\d*"
    r"|RJ-?\d+\w?"
    r"|D[BE]-?\d{1,2}|CAT-?\d\w?|I[2²][CS]|PS/2|DVB-?\w\d?|WI-?FI-?\d|\d+G|IPV[46]|TCP/IPV?\d?"
)
_FORMAT = (
    r"MP[34]|MPEG-?\d\w*|H\.?26\d|JPEG\d*|AC-?3|UTF-?\d+|UCS-?\d|SHA-?\d+|MD5|AES-?\d*|WPA\d"
    r"|HTML\d?|CSS\d|FAT(?:12|16|32)|EXT\d|X86(?:[-_]64)?|X64|ARM(?:V\d\w*|64)|OS/2|WIN\d+"
    r"|WINDOWS\d+"
)
_MATERIAL = (
    r"CO2|H2O|NH3|O2|N2|R-?(?:32|134A|290|404A|407C|410A|449A|454B|600A|744)|CR-?\d{4}"
    r"|LR-?\d{1,2}|(?:AA|AAA)-?\d"
)
_SIZE = (
    r"M(?:\d|1\d|2[0-4])(?:[x×][\d.]+)?|[AB][0-6]|P[HZ]\d|PT100|TX\d{1,2}"
    r"|\d+[x×*]\d+(?:[x×*]\d+)?\w*|\d+(?:-[^\W\d_]{2,})+(?:-\d)?"
)
_VERSION = r"(?:V|VER|VERS|VERSION|REV|R|РЕВ|ВЕР)[.-]?\d+(?:\.\d+)+[A-Z]?|V\d{1,2}|REV\.?\d+"
_REFERENCE = r"Q[1-4]|(?:FIG|TAB|NO|№)\.?\d+|\d(?:ST|ND|RD|TH)"
_DATE = r"24/7|\d{1,4}[-./]\d{1,2}(?:[-./]\d{1,4})?|(?:19|20)\d\d\w?"
_NOT_MODELS = re.compile(
    "|".join(
        (
            _STANDARD,
            _INTERFACE,
            _FORMAT,
            _MATERIAL,
            _SIZE,
            _VERSION,
            _REFERENCE,
            _DATE,
        )
    ),
    re.IGNORECASE,
)
_SIZED = re.compile(rf"[±~<>≤≥+-]?\d+(?:[.,/-]\d+)*[-]?(?:{_UNIT})(?:[-/]\d+(?:{_UNIT})?)*")
_ORDINARY = re.compile(r"[a-zа-яёіїє]+")
_SPACED_NOT_NAMES = re.compile(
    r"NO|NR|REV|VER|VOL|PAGE|FIG|TAB|PART|STEP|DAY|WEEK|YEAR|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP"
    r"|OCT"
    r"|NOV|DEC|MAI|MÄR|OKT|DEZ|ISO|IEC|EN|DIN|RS|USB|IP|UL|CE|RFC|BS|TEL|FAX|BOX|DVD|CD|TO|OF|IN"
    r"|AT|BY"
    r"|AND|FOR|THE|ON|MAX|MIN|ГОСТ|ТУ|ТОВ|СТР|РИС|AV|ST|CH|WIN|COM|LPT|PORT|PIN|TYP|SET|LED|AC|DC"
    r"|CAN"
)

_BOUNDARY_BEFORE = r"(?<![^\W_])"
_BOUNDARY_AFTER = r"(?![^\W_])"


@dataclass(frozen=True)
class Token:
    """A printed token that looks like a model or part number.

    Attributes:
        text: as printed.
        start: code-point offset in the text that was searched.
        weak: too short to name a product without the words beside it ("K7", "X1").
    """

    text: str
    start: int
    weak: bool


@dataclass(frozen=True)
class Occurrences:
    """Where a document prints a token.

    Attributes:
        pages: numbers of the pages that have it, in order.
        count: how often in all, in the counted pages.
        of_pages: how many pages were looked at.
    """

    pages: tuple[int, ...]
    count: int
    of_pages: int

    @property
    def recurs(self) -> bool:
        """Whether it is printed often enough to be a subject.

        That is on two pages, or three times; twice on a leaflet of one or two pages.
        """
        return len(self.pages) >= 2 or self.count >= (2 if self.of_pages <= 2 else 3)


def find_tokens(text: str) -> tuple[Token, ...]:
    """Tokens of `text` that mix letters and digits and are no unit, standard, date or version."""
    found: list[Token] = []
    taken: list[tuple[int, int]] = []
    for match in _SPACED.finditer(text):
        if not _SPACED_NOT_NAMES.fullmatch(match.group("name")):
            found.append(Token(match.group(), match.start(), weak=False))
            taken.append(match.span())
    for match in _TOKEN.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in taken):
            continue
        pieces = _split_list(match.group())
        at = match.start()
        for piece in pieces:
            start = text.index(piece, at)
            at = start + len(piece)
            if looks_like_model(piece):
                found.append(Token(piece, start, weak=_is_weak(piece)))
    return tuple(sorted(found, key=lambda token: token.start))


def looks_like_model(token: str) -> bool:
    """Whether a token without spaces has the looks of a model or part number."""
    if not (any(map(str.isalpha, token)) and any(map(str.isdigit, token))):
        return False
    if len(token) < 2 or len(token) > 40:
        return False
    if _NOT_MODELS.fullmatch(token) or _SIZED.fullmatch(token):
        return False
    # A model has at least one capital; "abc1" is a variable or a file.
    return not all(_ORDINARY.fullmatch(run) for run in re.findall(r"[^\W\d_]+", token))


def occurrences(token: str, pages: Sequence[PageText]) -> Occurrences:
    """Count a token on the pages; joints may be printed as a dash, a space or nothing."""
    runs = re.findall(r"[^\W\d_]+|\d+|[^\w\s‐‑–-]+", token)
    pattern = re.compile(
        _BOUNDARY_BEFORE + r"[\s‐‑–-]?".join(map(re.escape, runs)) + _BOUNDARY_AFTER, re.I
    )
    counts = {page.number: len(pattern.findall(page.text)) for page in pages}
    return Occurrences(
        pages=tuple(number for number, count in counts.items() if count),
        count=sum(counts.values()),
        of_pages=len(pages),
    )


def _split_list(token: str) -> list[str]:
    """Cut "AB12/AB12L" at the slash when each side is a model by itself."""
    parts = token.split("/")
    if len(parts) > 1 and all(looks_like_model(part) and len(part) > 2 for part in parts):
        return parts
    return [token]


def _is_weak(token: str) -> bool:
    return sum(character.isalnum() for character in token) < 3
