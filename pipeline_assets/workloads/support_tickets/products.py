"""Product names in a ticket's own words.

Belongs here: which words look like a product's name. Does not belong here: which of them the ticket
is about, and what follows (`baseline.py`, `rules/`).

A name that a rule can tell has a number: `KT-15`, `Lumella 300`, `Ventaro X2`. Numbers of orders,
invoices, errors and dates are none.
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?<![\w/.-])(?:(?P<word>[A-ZÀ-Þ][A-Za-zÀ-ÿ]{2,}) )?"
    r"(?P<model>[A-Z]{1,5}-?\d{1,4}[A-Z]?|\d{1,4})(?![\w/-]|[.,:]\d|\.? ?(?:%|€|\$))"
)
_NUMBERED = re.compile(
    r"(?:\b(?:order|invoice|bill|ticket|customer|tracking|reference|case|item|error|code|page|step"
    r"|room|floor|version|windows|android|iphone|ipad|no|number|bestellung|rechnung|auftrag|kunde"
    r"|kundennummer|bestellnummer|rechnungsnummer|vorgang|fehler|fehlercode|seite|schritt|nr|nummer"
    r"|commande|facture|client|dossier|erreur|numéro|article|artikel|in|on|at|since|from|until"
    r"|by|before|after|am|vom|bis|seit|um|le|du|depuis|les|article)\b|[#°])[.:]?\s*$",
    re.IGNORECASE,
)
"""What stands before a number that names no product."""
_DATES = frozenset(
    "january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep sept"
    " oct nov dec januar februar märz mai juni juli oktober dezember montag dienstag mittwoch"
    " donnerstag freitag samstag sonntag janvier février mars avril juin juillet août septembre"
    " octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche".split()
)
_NO_PRODUCT = frozenset(
    "A4 A5 A3 USB2 USB3 MP3 MP4 H264 IPX4 CO2 COVID-19 B2B Q1 Q2 Q3 Q4 PDF2".split()
)
_LEAST_MODEL = 4
"""Signs of a model that stands for itself; a shorter one has its word before it."""
_ORDINARY = frozenset(
    "the this that these those our your their his her its for and but with within about only both"
    " der die das den dem ein eine mein meine meinen meinem unser unsere ihr ihre bitte nach von"
    " les des une mon ma mes notre nos votre vos pour avec nous vous depuis".split()
)
_NAMED = re.compile(
    r"[„“\"«][A-ZÀ-Þ]|[a-zà-ÿ][A-ZÀ-Þ][a-zà-ÿ]|\b(?i:model|modell|modèle|typ|type|marke|brand|marque)"
    r" [A-ZÀ-Þ]",
)
_MID_CAPITAL = re.compile(r"(?<=[a-zà-ÿ,] )(?!I\b)[A-ZÀ-Þ][A-Za-zÀ-ÿ]+")


def product_names(text: str) -> list[str]:
    """The distinct names of products in a text, in order, as printed."""
    names: list[str] = []
    for match in _NAME.finditer(text):
        name = _name(match, text[: match.start()])
        if name is not None and name not in names:
            names.append(name)
    # "KT-15" is what "Kettle KT-15" is called for short.
    return [one for one in names if not any(one != other and one in other for other in names)]


def _name(match: re.Match[str], before: str) -> str | None:
    word, model = match["word"], match["model"]
    if model in _NO_PRODUCT or _NUMBERED.search(f"{before}{word or ''}"):
        return None
    if word is not None and word.casefold() in _DATES | _ORDINARY:
        word = None
    if len(model) >= _LEAST_MODEL and not model.isdigit():
        return model
    return f"{word} {model}" if word is not None else None


def may_be_named(text: str, language: str | None) -> bool:
    """May a text without such a name name a product all the same?

    A capital inside a sentence tells so where the language has none for common nouns.
    """
    if _NAMED.search(text):
        return True
    return language != "de" and any(
        word.casefold() not in _DATES | _ORDINARY for word in _MID_CAPITAL.findall(text)
    )
