"""What no printed value holds: links, markup, control characters, orders to a model.

Belongs here: patterns and the questions that ask them. Does not belong here: which field is asked,
and what a finding does (the rules). The patterns are for whole columns at once, so they are in the
syntax that both Python and Polars read: no look-around.
"""

from __future__ import annotations

import polars as pl

INSTRUCTION = (
    r"(?i)(?:\b(?:ignore|disregard|forget|override)\b[^.\n]{0,30}\b(?:previous|prior|above|earlier"
    r"|all|any|these|your)\b[^.\n]{0,30}\b(?:instructions?|prompts?|rules?|context|directions?)\b"
    r"|\b(?:ignore|disregard|forget|override)\b[^.\n]{0,20}"
    r"\b(?:instructions?|prompts?|rules?|directions?)\b"
    r"|\bdear (?:ai|reviewer|grader|assistant|model|bot)\b"
    r"|\b(?:approve|accept|publish|confirm) this (?:answer|record|result|document|metadata)\b"
    r"|\byou (?:extract|must extract|are extracting) metadata\b|\bsystem\s*:\s*you\b"
    r"|\bmark (?:all|each|every|the) (?:\w+ )?(?:field|value|answer)s? as\b"
    r"|\b(?:ignore|disregard)\s+(?:everything|what)\b[^.\n]{0,30}\b(?:above|before|told)\b"
    r"|\b(?:ignor\w+|vergiss|vergessen|missachte\w*|oubliez|olvida\w*|dimentica\w*|negeer"
    r"|игнориру\w+|забудь\w*|ігнору\w+|zignoruj\w*)\b"
    r"[^.\n]{0,40}(?:anweisung|instruktion|instruction|instrucci|istruzion|instruç|инструкци"
    r"|указани|інструкці|вказівк|instrukcj|instrukcij|instructies|pokyny)"
    r"|\bas an? (?:ai|artificial intelligence|language model)\b|\bals (?:ki|sprachmodell)\b"
    r"|\byour system prompt\b|\b(?:developer message|prompt injection)\b"
    r"|\byou are (?:now )?(?:a|an|the) (?:ai|assistant|language model|helpful|chat ?bot)\b"
    r"|\b(?:note|attention|message|instructions?|to)\W{1,3}(?:to |for )?(?:the |any )?(?:ai|llm"
    r"|language model|assistant|chat ?bot|extractor|metadata (?:model|extractor))\b"
    r"|\bnew instructions?\s*:|\b(?:answer|respond|reply) (?:only|exactly) with\b"
    r"|\b(?:answer|respond|reply|return|output)\b[^.\n]{0,20}\b(?:json|following json)\b"
    r"|\b(?:set|use|report|give|make|change|write)\b[^.\n]{0,20}\b(?:title|description|language"
    r"|product_identifiers|identifier|model number)\b\s*(?:field\s*)?(?:to|as|=|:)\s"
    r"|<\|?(?:im_start|im_end|system|endoftext)\|?>|\[/?INST\]"
    r"|(?:忽略|无视|無視|忘记)[^。\n]{0,12}(?:指令|指示|说明|提示|命令)|指示を無視|命令を無視)"
)
"""A text that speaks to a model, or tells the answer that it wants."""

LINK = (
    r"(?i)(?:\b[a-z][a-z0-9+.-]{1,9}://|\bwww\.\S|\bmailto:|[\w.+-]+@[\w-]+\.[a-z]{2,}"
    r"|\b[\w-]{2,}\.(?:com|org|net|info|ru|de|fr|it|es|uk|ua|pl|lt|cn|jp|eu|edu|gov)(?:/\S*)?"
    r"(?:\s|[,.;)]|$))"
)
"""A web or mail address."""

MARKUP = (
    r"(?i)(?:</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>|<!--|&(?:[a-z]{2,8}|#\d{2,6});|\]\(|!\[|```|\*\*\S"
    r"|__\S|^\s{0,3}#{1,6}\s|\{\{|\{%|\\n|\\u[0-9a-f]{4}|\\[a-z]+\{|^\s*[\[{]\s*\"|\"\s*:\s*[\"{\[])"
)
"""HTML, Markdown, templates, TeX, JSON and their escapes."""

CONTROL = (
    r"[\x{0000}-\x{001f}\x{007f}-\x{009f}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}-\x{206f}"
    r"\x{feff}\x{fffd}\x{fff0}-\x{fffb}\x{e000}-\x{f8ff}\x{e0000}-\x{e0fff}]"
)
"""Control, direction, private and replacement characters (Polars' syntax)."""

_NOUNS = ("title", "description", "language", "identifiers", "identifier", "model number")
_HINTS = {
    "instruction": [
        "ignor", "disregard", "forget", "override", "vergiss", "missachte", "oubliez", "olvida",
        "dimentica", "negeer", "игнориру", "Игнориру", "ИГНОРИРУ", "забуд", "Забуд", "ЗАБУД",
        "ігнору", "Ігнору", "ІГНОРУ", "as an ai", "as a ai", "as an artificial", "language model",
        "als ki", "sprachmodell", "your system prompt", "developer message", "prompt injection",
        "you are ", "to ai", "for ai", "to the ai", "for the ai", "to any ai", "llm", "assistant",
        "chatbot", "chat bot", "dear ", "this answer", "this record", "this result",
        "this document", "this metadata", "extract metadata", "extracting metadata", "system:",
        "system :", "mark ", "extractor", "metadata model", "note to", "new instruction",
        "only with", "exactly with", "json", "im_start", "im_end", "<|", "<system", "<endoftext",
        "[inst]", "[/inst]", "忽略", "无视", "無視", "忘记",
        *(noun + sign for noun in _NOUNS for sign in (" to", " as", ":", " =", "=", " field")),
    ],
    "link": ["://", "www.", "mailto:", "@", *(
        "." + end for end in (
            "com", "org", "net", "info", "ru", "de", "fr", "it", "es", "uk", "ua", "pl", "lt", "cn",
            "jp", "eu", "edu", "gov",
        )
    )],
    "markup": ["<", "&", "](", "![", "```", "**", "__", "#", "{", "\\", '"', "["],
}  # fmt: skip
"""One of these is in every text that the pattern fits; a hundred times faster to look for."""


def instructing(texts: pl.DataFrame, column: str = "text") -> pl.DataFrame:
    """The rows whose text speaks to a model."""
    return _matching(texts, column, "instruction", INSTRUCTION)


def foreign_matter(values: pl.DataFrame) -> pl.DataFrame:
    """What values hold that no printed one does: row, text → row, note, one a finding."""
    found = [
        (values.filter(pl.col("text").str.contains(CONTROL)), "control or hidden characters"),
        (instructing(values), "instructions to its reader's program"),
        (_matching(values, "text", "link", LINK), "a web or mail address"),
        (_matching(values, "text", "markup", MARKUP), "markup"),
    ]
    return pl.concat([rows.select("row", note=pl.lit(f"holds {what}")) for rows, what in found])


def _matching(texts: pl.DataFrame, column: str, hints: str, pattern: str) -> pl.DataFrame:
    hinted = texts.filter(
        pl.col(column).str.contains_any(_HINTS[hints], ascii_case_insensitive=True)
    )
    return hinted.filter(pl.col(column).str.contains(pattern))
