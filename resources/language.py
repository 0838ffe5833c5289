"""Which language a text is written in. Pure on text; the models ship with the installed package.

Knows nothing of documents or pages. Lingua runs in its low-accuracy mode with an explicit list of
languages: on whole paragraphs it is as right as the full mode, with a tenth of the memory.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import NamedTuple

from lingua import Language, LanguageDetector, LanguageDetectorBuilder

# Languages that manuals are commonly printed in; every further one makes short lines less certain.
_LANGUAGES = (
    Language.ARABIC, Language.BELARUSIAN, Language.BOKMAL, Language.BULGARIAN, Language.CHINESE,
    Language.CROATIAN, Language.CZECH, Language.DANISH, Language.DUTCH, Language.ENGLISH,
    Language.ESTONIAN, Language.FINNISH, Language.FRENCH, Language.GERMAN, Language.GREEK,
    Language.HEBREW, Language.HINDI, Language.HUNGARIAN, Language.INDONESIAN, Language.ITALIAN,
    Language.JAPANESE, Language.KOREAN, Language.LATVIAN, Language.LITHUANIAN,
    Language.POLISH, Language.PORTUGUESE, Language.ROMANIAN, Language.RUSSIAN, Language.SERBIAN,
    Language.SLOVAK, Language.SLOVENE, Language.SPANISH, Language.SWEDISH, Language.THAI,
    Language.TURKISH, Language.UKRAINIAN, Language.VIETNAMESE,
)  # fmt: skip

_CHUNK_LETTERS = 160  # about two lines of print: enough for the low-accuracy mode
_WHOLE_CHARACTERS = 800  # of the joined sample; lingua's time is linear in the length
_MAX_CHUNKS = 10
_MIN_WEIGHT = 30  # letters; a label or two says nothing reliable
_MIN_SHARE = 0.6  # of the sampled text, for one language to be the language
_OTHER_SHARE = 0.25  # of the sampled text, for a further language to be named

_LETTERS = re.compile(r"[^\W\d_]+")
# One Chinese, Japanese or Korean sign says about as much as three letters.
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Detection(NamedTuple):
    """What `detect` found.

    Attributes:
        language: ISO 639-1 code, or None when the text is too short or no language prevails.
        languages: every language with a quarter or more of the sampled text, largest first.
    """

    language: str | None
    languages: tuple[str, ...]


def detect(text: str) -> Detection:
    """Detect the language of `text` from up to 10 pieces spread evenly over it.

    Two methods have to agree: the vote of the pieces, weighted by their length, and the sample
    as a whole.
    """
    chunks = _chunks(text)
    if not chunks:
        return Detection(None, ())
    votes: Counter[str] = Counter()
    for chunk in chunks:
        code = detect_piece(chunk)
        if code is not None:
            votes[code] += weight(chunk)
    total = sum(weight(chunk) for chunk in chunks)
    if total < _MIN_WEIGHT or not votes:
        return Detection(None, ())
    ranked = votes.most_common()
    languages = tuple(code for code, share in ranked if share >= _OTHER_SHARE * total)
    first, share = ranked[0]
    agreed = share >= _MIN_SHARE * total and _detect_whole(chunks) == first
    return Detection(first if agreed else None, languages)


def detect_piece(text: str) -> str | None:
    """The most likely language of one short piece (ISO 639-1), or None when lingua has no idea."""
    language = _detector().detect_language_of(text)
    return None if language is None else language.iso_code_639_1.name.lower()


def weight(text: str) -> int:
    """How much text this is: letters, dense scripts counted threefold."""
    letters = len("".join(_LETTERS.findall(text)))
    return letters + 2 * len(_DENSE.findall(text))


def _detect_whole(chunks: list[str]) -> str | None:
    each = max(1, _WHOLE_CHARACTERS // len(chunks))
    return detect_piece("\n".join(chunk[:each] for chunk in chunks))


def _chunks(text: str) -> list[str]:
    chunks: list[str] = []
    pending: list[str] = []
    size = 0
    for line in text.splitlines():
        line_weight = weight(line)
        # Lines of figures, codes and dot leaders have no language.
        if line_weight < 0.5 * len(line.replace(" ", "")) or line_weight == 0:
            continue
        pending.append(line)
        size += line_weight
        if size >= _CHUNK_LETTERS:
            chunks.append("\n".join(pending))
            pending, size = [], 0
    if pending and (size >= _MIN_WEIGHT or not chunks):
        chunks.append("\n".join(pending))
    if len(chunks) <= _MAX_CHUNKS:
        return chunks
    step = len(chunks) / _MAX_CHUNKS
    return [chunks[int(at * step)] for at in range(_MAX_CHUNKS)]


@functools.lru_cache(maxsize=1)
def _detector() -> LanguageDetector:
    return LanguageDetectorBuilder.from_languages(*_LANGUAGES).with_low_accuracy_mode().build()
