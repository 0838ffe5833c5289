"""The words that tell what a ticket is about and how soon it wants an answer.

Belongs here: the cues in English, German and French, and finding them in sentences. Does not
belong here: what follows from them (`baseline.py`, `rules/`). A changed cue is a new version of the
rules that read it, and of the baseline's model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

STRONG, WEAK = 2, 1

_CATEGORY_CUES = {
    "billing": (
        (
            STRONG,
            r"invoices?|bills?\b|billed|overcharged|charged (?:twice|again|for)|refund(?:ed|s)?"
            r"|direct debit|receipts?|payments?|reimburse\w*"
            r"|rechnung\w*|abgebucht|abbuchung\w*|erstatte[nt]\w*|rückerstattung\w*|erstattung"
            r"|gutschrift\w*|lastschrift\w*|mahnung\w*|zahlungs?\w*|bezahl(?:t|en)\b"
            r"|factures?|facturée?s?|facturation|débitée?s?|prélèvements?|prélevée?s?"
            r"|rembours\w+|paiements?",
        ),
        (
            WEAK,
            r"price|credit card|bank account|card was charged|charged|vat|paid|preis|betrag"
            r"|kreditkarte|bankkonto|überweisung|mehrwertsteuer|prix|carte bancaire|montant|tva"
            r"|payé",
        ),
    ),
    "delivery": (
        (
            STRONG,
            r"deliver(?:y|ies|ed|ing)?|undelivered|parcels?|packages?|shipments?|shipped|shipping"
            r"|couriers?|tracking|paket\w*|päckchen|sendung\w*|liefer(?:ung|n|t|zeit|termin)\w*"
            r"|geliefert\w*|zusteller\w*|zustellung\w*|zugestellt|versandt|verschickt|versand"
            r"|livraisons?|livrée?s?|livrer|livreurs?|colis|expédiée?s?|expédition"
            r"|transporteurs?",
        ),
        (WEAK, r"arrived?|address|angekommen|anschrift|adresse de livraison|suivi|arrivée?s?"),
    ),
    "defect": (
        (
            STRONG,
            r"broken|broke (?:down|after)|defective|defect|faulty|stopped working"
            r"|(?:does|do|did|will|is|are)(?: not|n['’]t) (?:work|working|start|heat|charge)\b"
            r"|(?:does|do|did|will)(?: not|n['’]t) (?:turn|switch) on\b"
            r"|leaks?|leaking|cracked|smoke(?! (?:detector|alarm)s?)|burning smell"
            r"|sparks|overheat\w*|malfunction\w*"
            r"|out of order"
            r"|defekt\w*|kaputt\w*|funktioniert (?:leider )?(?:nicht|nimmer)|undicht\w*|rauch\b"
            r"|funken|brandgeruch"
            r"|(?:heizt|startet|druckt|lädt|saugt|läuft|geht) (?:leider |noch immer )?nicht\b"
            r"|druckt nicht mehr|zerbrochen|gerissen|schaltet nicht ein"
            r"|en panne|défectueu(?:x|se|ses)|ne (?:fonctionne|marche|démarre|chauffe|s['’]allume)"
            r" (?:plus|pas)|cassée?s?|fuit|fuite|fumée|étincelles|fissurée?s?",
        ),
        (
            WEAK,
            r"error|noise|repair|technician|fehler\b|geräusch|reparatur|techniker|erreur|bruit"
            r"|réparation|technicien|panne",
        ),
    ),
    "account": (
        (
            STRONG,
            r"passwords?|log(?:ged)? ?in|log on|sign in|login|my account|the account"
            r"|account is (?:locked|blocked)|passwor[dt]\w*|kennwort|kundenkonto|benutzerkonto"
            r"|anmeldung|anmelden|einloggen|mot de passe|me connecter|se connecter|mon compte"
            r"|identifiants?",
        ),
        (
            WEAK,
            r"account|locked|e-?mail address|user name|konto\b|gesperrt|zugang|e-mail-adresse"
            r"|benutzername|compte|bloquée?|adresse de messagerie|adresse e-?mail",
        ),
    ),
    "complaint": (
        (
            STRONG,
            r"unacceptable|complain(?:t|ts|ing)?|rude\w*|disappointed|poor service|disgrace\w*"
            r"|never again|impolite|frechheit|beschwer(?:en|de|den)|unverschämt\w*"
            r"|unfreundlich\w*|enttäuscht\w*|inakzeptabel|zumutung|inadmissible|inacceptable"
            r"|plainte|impolie?|déçue?s?|mécontente?|désagréable|scandaleux",
        ),
        (WEAK, r"hung up|on hold|aufgelegt|warteschleife|raccroché|angry|verärgert|en colère"),
    ),
    "other": (
        (
            STRONG,
            r"interview|newspaper|job application|internship|sponsor\w*|advertis\w*|partnership"
            r"|schülerzeitung|bewerbung\w*|praktikum|kooperation\w*|werbung|candidature"
            r"|partenariat|stage en entreprise|journal du lycée",
        ),
        (WEAK, r"for our school|zeitung|founder|gründerin|journaliste"),
    ),
}  # fmt: skip
_QUESTION_CUES = (
    r"which|what (?:is|are|size)|how (?:do|can|long|often)|can i|could you tell|do you have"
    r"|do you sell|is it possible|is there|are there|does it fit"
    r"|welche[rsn]?|wie (?:kann|oft|lange|viel)|kann ich|gibt es|ist es möglich|haben sie|passt"
    r"|quel(?:le)?s?|comment|est-ce que|puis-je|avez-vous|y a-t-il|pouvez-vous me dire"
)

_URGENT = (
    r"urgent(?:ly)?|immediately|asap|as soon as possible|right away|at once|emergency"
    r"|smoke(?! (?:detector|alarm)s?)"
    r"|burning smell|sparks|electric shock|on fire|caught fire|injured"
    r"|dringend\w*|sofort|umgehend|unverzüglich|so schnell wie möglich|notfall|eilt|rauch\b"
    r"|brandgeruch|funken|stromschlag|verletzt|brennt"
    r"|urgente?s?|d['’]urgence|immédiatement|au plus vite|dès que possible|fumée|étincelles"
    r"|décharge électrique|blessée?s?|prend feu"
)
_HIGH = (
    r"cannot work|can['’]t work|whole team|production (?:is|has) (?:stopped|down)|at a standstill"
    r"|(?:third|fourth|fifth) time|until tomorrow|by tomorrow|need (?:\w+ ){1,4}today|deadline"
    r"|nicht arbeiten|ganze(?:s)? team|steht still|zum (?:dritten|vierten|fünften) mal"
    r"|bis morgen|noch heute|frist"
    r"|(?:peut|peux|pouvons|peuvent) plus travailler|toute l['’]équipe|à l['’]arrêt"
    r"|(?:troisième|quatrième|cinquième) fois|avant demain|aujourd['’]hui même"
)
_LOW = (
    r"no (?:hurry|rush)|not (?:at all )?urgent(?: at all)?|whenever you (?:have|find) (?:the )?time"
    r"|when you (?:get a chance|have a moment)|nothing urgent|take your time"
    r"|keine eile|nicht (?:dringend|eilig)|eilt nicht|wenn sie (?:mal )?zeit (?:haben|finden)"
    r"|hat zeit|lassen sie sich zeit"
    r"|(?:rien|pas) (?:d['’])?urgent|pas pressée?|quand vous (?:aurez|avez) le temps"
    r"|prenez votre temps"
)
_PRESSES = (
    r"quick(?:ly)?|soon|in time|waiting|wait (?:too |any |much )?long(?:er)?"
    r"|without (?:it|them|him|her)"
    r"|tomorrow|tonight|schnell\w*|bald\b|fristgerecht|rechtzeitig|pünktlich"
    r"|ohne (?:ihn|sie|es|das gerät)|vite|rapidement|à temps|demain|sans (?:lui|elle|cela)"
)
_PRAISE = (
    r"great|good|fast|quick|thanks?|thank you|happy|kind|perfect|excellent|satisfied|lovely"
    r"|schnell|danke|super|gut|gute[rns]?|zufrieden|toll|freundlich|lob"
    r"|merci(?! de\b| d['’])|rapide|parfaite?|contente?|ravie?|bravo"
)
_HEDGE = r"if|were|would be|call this|falls|wenn|wäre|würde|si|serait|even though|although|obwohl"


def _words(pattern: str) -> re.Pattern[str]:
    # For texts in lower case: alternatives are skipped by their first letter then, which they are
    # not where case is ignored, and that costs five times as much.
    return re.compile(rf"\b(?:{pattern})(?!\w)")


def _flat(sentence: str) -> str:
    return " ".join(sentence.lower().split())


_CATEGORIES = MappingProxyType(
    {
        category: tuple((weight, _words(pattern)) for weight, pattern in cues)
        for category, cues in _CATEGORY_CUES.items()
    }
)
_QUESTION = _words(_QUESTION_CUES)
_LEVELS = MappingProxyType({"urgent": _words(_URGENT), "high": _words(_HIGH)})
_NO_HURRY = _words(_LOW)
_HEDGED = _words(_HEDGE)
_PRESSED = _words(_PRESSES)
_PRAISED = _words(_PRAISE)


@dataclass(frozen=True)
class Cue:
    """A category's cues in one sentence.

    Attributes:
        weight: of all of them together.
        sentence: as printed.
    """

    weight: int
    sentence: str


def category_cues(sentences: Sequence[str]) -> Mapping[str, list[Cue]]:
    """Category → the sentences that have cues of it, in order; each distinct cue counts once."""
    found: dict[str, list[Cue]] = {}
    flat = [_flat(sentence) for sentence in sentences]
    for category, cues in _CATEGORIES.items():
        seen: set[str] = set()
        for sentence, lowered in zip(sentences, flat, strict=True):
            weight = 0
            for cue, word in _found(cues, lowered):
                weight += 0 if word in seen else cue
                seen.add(word)
            if weight:
                found.setdefault(category, []).append(Cue(weight, sentence))
    return found


def _found(cues: Sequence[tuple[int, re.Pattern[str]]], lowered: str) -> Iterator[tuple[int, str]]:
    for weight, pattern in cues:
        yield from ((weight, match[0]) for match in pattern.finditer(lowered))


def asks(sentence: str) -> bool:
    """Does a sentence ask something, with a question mark and a word that asks?"""
    flat = _flat(sentence)
    return "?" in flat and _QUESTION.search(flat) is not None


def has_cue(category: str, text: str) -> bool:
    """Has a text a cue of a category?"""
    if category == "question":
        return asks(text)
    lowered = _flat(text)
    return any(pattern.search(lowered) for _, pattern in _CATEGORIES[category])


def level_in(sentence: str) -> str | None:
    """The priority that a sentence speaks of: urgent, high or low; None where it speaks of none.

    "Not urgent" is low. What is low and more at once is the higher one.
    """
    flat = _flat(sentence)
    rest = _NO_HURRY.sub(" ", flat)
    for level, pattern in _LEVELS.items():
        if pattern.search(rest):
            return level
    return "low" if rest != flat else None


def presses(sentence: str) -> bool:
    """Does a sentence hint at haste, without words that would tell how much?"""
    return _PRESSED.search(_flat(sentence)) is not None


def praises(sentence: str) -> bool:
    """Does a sentence say something good? What it names is no trouble then, as a rule."""
    return _PRAISED.search(_flat(sentence)) is not None


def is_hedged(sentence: str) -> bool:
    """Does a sentence say under which condition something would hold?"""
    return _HEDGED.search(_flat(sentence)) is not None
