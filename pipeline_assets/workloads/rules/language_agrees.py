"""Rule `language_agrees`: the answer's language is that of the parsed text.

Agreement of two independent guesses is asked for; where the text gives none, a person decides.
Version 1 sends every text in several languages to a person, version 2 only one in which the
answer's does not prevail.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard
from resources.language import detect_piece, weight

_NO_GUESS = "the parsed text gives no language to compare with"
_OTHER = "the parsed text is in another language"
_SEVERAL = "the parsed text is in several languages"
_NONE_GIVEN = "no language is given"
_PIECE, _LEAST, _PIECES = 300, 60, 60
"""Of a text in several languages so many pieces are looked at again, of so many characters, with
so many letters or more."""
_PREVAILS = 0.6
"""Of the text; as much as the parser asks of one language."""

_CODES = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da "
    "de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy "
    "hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg "
    "li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or "
    "os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta "
    "te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu".split()
)
"""ISO 639-1; the codes that it withdrew are no codes."""
_SAME = {"no": "nb", "nn": "nb"}
"""Norwegian has a code of its own beside those of its two forms."""


def check(shard: Shard) -> pl.DataFrame:
    """A finding where the languages differ, cannot be compared or are several."""
    both = _compared(shard)
    note = (
        pl.when(pl.col("text_language").is_null())
        .then(pl.lit(_NO_GUESS))
        .when(pl.col("language") != pl.col("text_language"))
        .then(pl.lit(_OTHER))
        .when(pl.col("others") != "")
        .then(pl.lit(_SEVERAL))
    )
    found = both.select("row", note=note).filter(pl.col("note").is_not_null())
    return _told(shard, found)


def check_prevailing(shard: Shard) -> pl.DataFrame:
    """A finding where the code is none, the languages differ, or none prevails."""
    both = _compared(shard)
    same = pl.col("language").replace(_SAME) == pl.col("text_language").replace(_SAME)
    note = (
        pl.when(~pl.col("language").is_in(_CODES))
        .then(pl.lit("not an ISO 639-1 code"))
        .when(pl.col("text_language").is_null())
        .then(pl.lit(_NO_GUESS))
        .when(~same)
        .then(pl.lit(_OTHER))
    )
    judged = both.with_columns(note=note)
    found = judged.filter(pl.col("note").is_not_null()).select("row", "note")
    several = judged.filter(pl.col("note").is_null() & (pl.col("others") != ""))
    if several.height:
        found = pl.concat([found, _not_prevailing(shard, several)])
    return _told(shard, found)


def _compared(shard: Shard) -> pl.DataFrame:
    return shard.values.filter(pl.col("language_status") == "found").join(
        shard.records.select("row", text_language="language", others="languages"), on="row"
    )


def _told(shard: Shard, found: pl.DataFrame) -> pl.DataFrame:
    absent = shard.values.filter(pl.col("language_status") == "absent").select(
        "row", note=pl.lit(_NONE_GIVEN)
    )
    return pl.concat([found, absent]).select("row", field=pl.lit("language"), note="note")


def _not_prevailing(shard: Shard, several: pl.DataFrame) -> pl.DataFrame:
    """Of texts in several languages, those in which the answer's is not most of the text."""
    wanted: dict[int, str] = {
        row: str(_SAME.get(code, code)) for row, code in several.select("row", "language").rows()
    }
    unproven = set(wanted)
    for texts in shard.document_texts(several["row"]):
        for (key,), pages in texts.sort("page").group_by("row", maintain_order=True):
            row = int(str(key))
            if _share(pages["text"], wanted[row]) >= _PREVAILS:
                unproven.discard(row)
    return pl.DataFrame({"row": pl.Series(sorted(unproven), dtype=pl.Int64)}).select(
        "row", note=pl.lit(f"{_SEVERAL}, and this one does not prevail")
    )


def _share(pages: Iterable[str], code: str) -> float:
    """How much of a document's sampled text is in a language, from 0 to 1."""
    pieces = [
        piece
        for text in pages
        for at in range(0, len(text), _PIECE)
        if weight(piece := text[at : at + _PIECE]) >= _LEAST
    ]
    step = max(1.0, len(pieces) / _PIECES)
    sampled = [pieces[int(at * step)] for at in range(min(_PIECES, len(pieces)))]
    weights = [(weight(piece), detect_piece(piece)) for piece in sampled]
    total = sum(amount for amount, _ in weights)
    own = sum(amount for amount, found in weights if _SAME.get(found or "", found) == code)
    return own / total if total else 0.0


RULE = Rule(id="language_agrees", version=1, severity="review", check=check, family="language")
RULE_2 = Rule(
    id="language_agrees", version=2, severity="review", check=check_prevailing, family="language"
)
