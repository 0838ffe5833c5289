"""The canary documents of this workload: short manuals with known answers, and a long one.

Makers, products and texts are invented. Every field is printed plainly, so an answer that misses
one says something about the provider, the model or the transport, not about the document. Each
document tries what one of these may break: other languages, line separators that are no line
feed, characters outside the first Unicode plane, writing from right to left, sheer length.

Belongs here: the texts and what is right. Does not belong here: sending and judging them.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import msgspec

from pipeline_assets.workloads.equipment_manuals.answer import Answer
from pipeline_assets.workloads.workload import CanaryDocument

LEAST_BUDGET = 1_000
"""Tokens. Below it, 5 % of the budget are less than a line and what stands around a page."""

_PAGE_LINES = 45  # as on a printed page
_PAGES_AT_ONCE = 64
# As a request marks a page, with digits that hardly share a token: what is counted is the most.
_AROUND_PAGE = "=== doc-a1b2c3d4e5f6a7b8 page {} ===\n{}\n"


class CanaryTooSmall(ValueError):
    """A token budget that the long canary document cannot fill as closely as it promises."""

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"a long canary document needs a budget of {least} tokens or more, found {budget}: "
            "raise document_tokens in the version's spec"
        )


def _expected(title: str, *identifiers: str) -> dict[str, tuple[str, ...]]:
    """What is right: the title as printed, on one line, and every identifier."""
    return {"title": (title,), "product_identifiers": identifiers}


_ENGLISH = CanaryDocument(
    name="english",
    pages=(
        """\
Bench Grinder BG-140
Operating Instructions

The BG-140 is a bench grinder for sharpening chisels, drills and other small tools.
Read all pages before the first use and keep them with the machine. The grinder stands on a
level bench and is fixed there with two bolts. Wear eye protection and keep the guards closed
while the wheels are turning.
""",
        """\
1. Starting the BG-140

Connect the BG-140 to a socket with an earth contact. Let the wheels run for one minute without
a load before you begin to grind. Move the workpiece evenly over the whole width of the wheel,
and cool it in water as soon as it becomes warm.
""",
    ),
    language="en",
    expect=_expected("Bench Grinder BG-140 Operating Instructions", "BG-140"),
)

_GERMAN = CanaryDocument(
    name="german",
    pages=(
        """\
Luftentfeuchter LE-26
Bedienungsanleitung

Der LE-26 ist ein Luftentfeuchter für Keller, Waschküchen und andere Räume bis dreißig
Quadratmeter. Stellen Sie das Gerät auf einen ebenen Boden und halten Sie ringsum einen Abstand
von zwanzig Zentimetern zur Wand ein. Das Gerät darf nicht im Freien betrieben werden.
""",
        """\
1. Betrieb

Schließen Sie den LE-26 an eine Steckdose mit Schutzleiter an und wählen Sie die gewünschte
Feuchte am Drehknopf. Leeren Sie den Behälter, sobald die rote Lampe leuchtet. Reinigen Sie den
Filter alle vier Wochen mit lauwarmem Wasser und lassen Sie ihn vor dem Einsetzen trocknen.
""",
    ),
    language="de",
    expect=_expected("Luftentfeuchter LE-26 Bedienungsanleitung", "LE-26"),
)

_FRENCH = CanaryDocument(
    name="french",
    pages=(
        """\
Pompe de relevage PR-75
Notice d'utilisation

La PR-75 est une pompe de relevage pour les eaux claires des caves et des citernes. Elle se met
en marche et s'arrête toute seule selon le niveau de l'eau. Elle ne doit jamais fonctionner à
sec, ni servir à pomper des liquides inflammables.
""",
        """\
1. Mise en service

Plongez la PR-75 entièrement dans l'eau avant de la brancher. Le tuyau ne doit pas être plié, et
le flotteur doit pouvoir bouger librement. Nettoyez la grille deux fois par an à l'eau claire et
rangez la pompe à l'abri du gel pendant l'hiver.
""",
    ),
    language="fr",
    expect=_expected("Pompe de relevage PR-75 Notice d'utilisation", "PR-75"),
)

_LINE_SEPARATORS = CanaryDocument(
    name="line separators",
    pages=(
        "Belt Sander SB-610\n"
        "User Manual\n"
        "\n"
        "The SB-610 is a belt sander for flat surfaces of wood, plastic and soft metal.\u2028"
        "Hold it with both hands and let it reach its full speed before it touches the work.\u0085"
        "Guide it along the grain and lift it off before you switch the motor off again.\n",
        "1. Changing the belt\u2028"
        "\u2028"
        "Unplug the SB-610 and turn the lever to the left, so that the belt hangs loose.\u0085"
        "Pull the old belt off and push the new one on, with its arrow in the direction that\n"
        "the rollers turn. Turn the lever back and centre the belt with the small knob.\u2029"
        "Empty the dust bag when it is half full; a full bag makes the motor run hot.\n",
    ),
    language="en",
    expect=_expected("Belt Sander SB-610 User Manual", "SB-610"),
)

_ASTRAL = CanaryDocument(
    name="astral characters",
    pages=(
        """\
\U00020bb7川炊飯器 RK-310
取扱説明書

本製品「RK-310」は、ご家庭で一度に五合までのお米をおいしく炊くための電気炊飯器です。
ご使用になる前に、この説明書を最後までよくお読みになり、いつでも見られる所に保管してください。
内釜の外側と底についた水滴は、乾いた布でよくふき取ってから本体に入れてください。
\U0001f50c 電源プラグは根元までしっかり差し込んでください。
\U0001f9d2 小さなお子様には使わせないでください。
""",
        """\
お手入れのしかた

「RK-310」のふたと内釜は、使うたびに薄めた台所用洗剤とやわらかいスポンジで洗ってください。
本体は水で洗わず、よくしぼった布でふいてください。\U0001f30a 水に浸けると故障の原因になります。
\U0001f373 炊き込みご飯の後は、においが残らないように湯を沸かしてから内釜を洗ってください。
調理例の「\U00029e3d」(ほっけ)は、骨を取ってからお米の上にのせて炊いてください。
""",
    ),
    language="ja",
    expect=_expected("\U00020bb7川炊飯器 RK-310 取扱説明書", "RK-310"),
)

_RIGHT_TO_LEFT = CanaryDocument(
    name="right to left",
    pages=(
        """\
دليل المستخدم لمكنسة الورش WV-330

The WV-330 is a vacuum cleaner for small workshops.

اقرأ هذه التعليمات كلها قبل تشغيل الجهاز لأول مرة واحتفظ بها في مكان قريب.
صُممت المكنسة لجمع الغبار الجاف ونشارة الخشب والسوائل في الورش الصغيرة.
لا تستخدم الجهاز لجمع الرماد الساخن أو المواد القابلة للاشتعال.
ضع الجهاز على أرض مستوية وتأكد من إغلاق المشابك قبل التشغيل.
""",
        """\
التشغيل والصيانة

وصّل المكنسة WV-330\u200e بمقبس كهربائي مؤرض ثم اضغط على مفتاح التشغيل.
أفرغ الخزان عندما يمتلئ ونظف المرشح بالماء الفاتر كل أسبوعين.
اترك المرشح حتى يجف تماما قبل أن تعيده إلى مكانه في الجهاز.
افصل القابس عن الكهرباء قبل كل تنظيف ولا تسحب الجهاز من السلك.
احفظ الجهاز في مكان جاف بعيدا عن متناول الأطفال وعن أشعة الشمس.
""",
    ),
    language="ar",
    expect=_expected("دليل المستخدم لمكنسة الورش WV-330", "WV-330"),
)

CANARY_DOCUMENTS: tuple[CanaryDocument, ...] = (
    _ENGLISH,
    _GERMAN,
    _FRENCH,
    _LINE_SEPARATORS,
    _ASTRAL,
    _RIGHT_TO_LEFT,
)
"""Every short canary document, always in this order."""

_LONG_FRONT = """\
Band Saw BW-450
Workshop Manual

The BW-450 is a band saw for boards and beams of up to four hundred millimetres.
This manual follows the machine through its whole life, from the day it is unpacked to the day
it is taken apart. Keep it beside the BW-450, and hand it on together with the machine.
"""

_PROSE = (
    "Before each shift, look at the blade of the BW-450 in good light and feel for dull teeth.",
    "A blade that has lost its set wanders in the cut and leaves a surface that is never flat.",
    "Open both doors and turn the upper wheel by hand until the joint of the blade has passed.",
    "Sawdust between the blade and the tyre lifts the blade and wears the rubber within weeks.",
    "Brush the tyres clean with a stiff brush, and never with a chisel or any other steel tool.",
    "The table stands on a cradle with a scale, and two levers hold it at the chosen angle.",
    "After the table has been tilted, bring the guides down again until they clear the work.",
    "The side guides stand a sheet of paper away from the blade and never touch it at rest.",
    "The thrust bearing turns only while wood is pushed against the blade, not between cuts.",
    "Tension is right when the blade gives way by the width of a finger under a light push.",
    "Let the tension off in the evening, so that the frame and the wheels can rest overnight.",
    "A new blade is run for ten minutes without load, and its tension is then corrected once.",
    "The motor sits on a hinged plate, and its own weight keeps the drive belt of it tight.",
    "Replace the drive belt when its edges are frayed or when it slips as the saw is started.",
    "Oil the hinges of the doors twice a year, and wipe off whatever runs down on the frame.",
    "The bearings of both wheels are sealed, so they need no grease for as long as they last.",
    "Extraction begins before the saw does and goes on for some time after the saw has stopped.",
    "Round timber is held in a cradle, since it would turn under the blade and throw it off.",
    "Narrow curves are sawn with a narrow blade, in several relief cuts rather than in one.",
    "Push the last part of a board with a stick, and keep both hands away from the line of cut.",
    "The brake stops the wheels within ten seconds, and a longer time means that it is worn.",
    "Resin is taken off the blade with a mild cleaner, after which the blade is dried at once.",
    "Store spare blades coiled in three loops, hung on a wooden peg in a dry part of the shop.",
    "The BW-450 is moved on rollers, never lifted by its table or by the arm of its guides.",
    "Level the frame with the four feet, and tighten their nuts only when nothing rocks any more.",
    "Write down in the log of the workshop what was changed, by whom and at which running hour.",
    "Dark marks on the cut show that the feed was too slow or that the blade has become dull.",
    "When the sound of the saw changes, let go of the work, switch off and look for the cause.",
    "The fence is set parallel to the cut that the blade makes, not to the edge of the table.",
    "Thin veneer is laid on a plain board, which supports its lower side right up to the blade.",
    "A cracked tyre is pulled off, the wheel is cleaned, and a new tyre is stretched on warm.",
)
_STEP = 7  # shares no factor with the number of sentences, so neighbouring pages differ


def largest(budget_tokens: int, tokens_of: Callable[[Sequence[str]], list[int]]) -> CanaryDocument:
    """A document that fills 95 to 100 % of a token budget, its page markers included.

    Args:
        budget_tokens: at most so many tokens.
        tokens_of: texts → how many tokens each has, as the requests are counted.

    Raises:
        CanaryTooSmall: the budget is below `LEAST_BUDGET`, or the first page alone exceeds it.
    """
    first = _count((_LONG_FRONT,), 1, tokens_of)[0]
    if budget_tokens < max(LEAST_BUDGET, first):
        raise CanaryTooSmall(budget_tokens, max(LEAST_BUDGET, first))
    pages, left = [_LONG_FRONT], budget_tokens - first
    while True:
        following = [_prose_page(len(pages) + ahead) for ahead in range(_PAGES_AT_ONCE)]
        totals = list(accumulate(_count(following, len(pages) + 1, tokens_of)))
        fitting = bisect_right(totals, left)
        pages += following[:fitting]
        left -= totals[fitting - 1] if fitting else 0
        if fitting < len(following):
            break
    part = _largest_part(following[fitting], len(pages) + 1, left, tokens_of)
    return CanaryDocument(
        name="largest",
        pages=(*pages, part) if part else tuple(pages),
        language="en",
        expect=_expected("Band Saw BW-450 Workshop Manual", "BW-450"),
    )


def _prose_page(index: int) -> str:
    """Page `index` of the long document, from 1 on: always the same."""
    return "".join(f"{line}\n" for line in _prose_lines(index))


def _prose_lines(index: int) -> Iterator[str]:
    for line in range(_PAGE_LINES):
        yield _PROSE[(index * _STEP + line) % len(_PROSE)]


def _largest_part(
    page: str, number: int, left: int, tokens_of: Callable[[Sequence[str]], list[int]]
) -> str:
    """The first lines of a page that fit what is left; empty where not one does."""
    lines = page.splitlines(keepends=True)
    parts = list(accumulate(lines))
    return "".join(lines[: bisect_right(_count(parts, number, tokens_of, same=True), left)])


def _count(
    pages: Sequence[str],
    first: int,
    tokens_of: Callable[[Sequence[str]], list[int]],
    *,
    same: bool = False,
) -> list[int]:
    """Tokens of pages from number `first` on (or all of that number), markers included."""
    return tokens_of(
        [
            _AROUND_PAGE.format(first if same else first + ahead, page)
            for ahead, page in enumerate(pages)
        ]
    )


def wrong_fields(document: CanaryDocument, answer: str) -> list[str]:
    """Fields of an answer that are not what a canary document says.

    Args:
        document: with what is expected.
        answer: the answer in its normal form (`columns.check_answer`).
    """
    given = msgspec.json.decode(answer, type=Answer)
    wrong = []
    title, expected = _folded(given.title.value), _folded(document.expect["title"][0])
    # A model may leave a line of the title out; another title, or none, is wrong.
    if not title or not (title in expected or expected in title):
        wrong.append("title")
    identifiers = {entry.value for entry in given.product_identifiers}
    if not identifiers.issuperset(document.expect["product_identifiers"]):
        wrong.append("product_identifiers")
    if given.language.value != document.language:
        wrong.append("language")
    if not _folded(given.description.value):
        wrong.append("description")
    return wrong


def _folded(text: str | None) -> str:
    return " ".join(unicodedata.normalize("NFKC", text or "").casefold().split())
