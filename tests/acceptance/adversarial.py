"""Play every trick on real documents and tell what got through.

    python -m tests.acceptance.adversarial [--samples] [--gold] [--table] [--only TRICK ...]

Belongs here: choosing the documents of each trick, running, counting and telling. Does not belong
here: the tricks (`tricks.py`) and the stages (`bench.py`). The last line is for machines:
`answers=<n> accepted=<n> wrong_rule=<n>`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.batch_tricks import BATCH_TRICKS, BatchTrick, different
from tests.acceptance.bench import Ask, Judged, Verdict, judge_answers
from tests.acceptance.corpus import (
    FULL,
    CorpusMissing,
    Document,
    corpus_folder,
    load_corpus,
    load_samples,
)
from tests.acceptance.gold import Case, make_case
from tests.acceptance.trick import Setting, Told, Trick, tell
from tests.acceptance.tricks import TRICKS

PLAYED = 4
"""Documents that a trick is played on, where so many give occasion."""
LEAST_PLAYED = 3
CONTROLS = 4
"""Right answers of other documents in the same batch: they must not suffer."""


@dataclass(frozen=True)
class Played:
    """What came of a trick.

    Attributes:
        id: the trick.
        told: what it does.
        rules: those that should stop it.
        wrong: what became of the wrong answers.
        controls: what became of the right ones beside them.
        alerts: those that it raised.
    """

    id: str
    told: str
    rules: frozenset[str]
    wrong: list[Verdict]
    controls: list[Verdict]
    alerts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def accepted(self) -> list[Verdict]:
        """Wrong answers that would be published unseen."""
        return [verdict for verdict in self.wrong if verdict.accepted]

    @property
    def wrong_rule(self) -> list[Verdict]:
        """Wrong answers that only other rules stopped."""
        return [
            verdict
            for verdict in self.wrong
            if not verdict.accepted and not verdict.stopped_by & self.rules
        ]

    @property
    def harmed(self) -> list[Verdict]:
        """Right answers that were not accepted."""
        return [verdict for verdict in self.controls if not verdict.accepted]


def judge_gold(cases: Sequence[Case]) -> list[Verdict]:
    """The right answers of an archive as one batch."""
    return _judged([[right(case) for case in cases]]).verdicts[0]


def right(case: Case) -> Ask:
    """The right answer about a document."""
    return Ask(case.document.name, case.document, tell(case.answer))


def play(cases: Sequence[Case], tricks: Iterable[Trick]) -> list[Played]:
    """Play tricks on one answer each.

    Args:
        cases: documents whose right answers are accepted.
        tricks: in the order of the report.
    """
    batches: list[list[Ask]] = []
    chosen: list[tuple[Trick, int]] = []
    for number, trick in enumerate(tricks):
        wrong = _occasions(trick, cases, number)
        if not wrong:
            continue
        names = {ask.document.name for ask in wrong}
        controls = [right(case) for case in _controls(cases, names, PLAYED + CONTROLS - len(wrong))]
        chosen.append((trick, len(wrong)))
        batches.append([*wrong, *controls])
    verdicts = _judged(batches).verdicts if batches else []
    return [
        Played(trick.id, trick.told, trick.rules, found[:count], found[count:])
        for (trick, count), found in zip(chosen, verdicts, strict=True)
    ]


def _occasions(trick: Trick, cases: Sequence[Case], number: int) -> list[Ask]:
    """Wrong answers about the first documents that give occasion, from another one each time."""
    at = number * 5 % len(cases)
    turned = [*cases[at:], *cases[:at]]
    asks: list[Ask] = []
    for case in turned:
        others = [other for other in cases if other is not case]
        told = trick.make(Setting(case, others, len(asks)))
        if told is not None:
            asks.append(_ask(trick.id, told))
        if len(asks) == PLAYED:
            break
    return asks


def _controls(cases: Sequence[Case], taken: set[str], count: int) -> list[Case]:
    free = [case for case in cases if case.document.name not in taken]
    return sorted(different(free), key=lambda case: len(case.document.text))[:count]


def play_batch(cases: Sequence[Case], trick: BatchTrick) -> Played:
    """Play one trick on a batch of different documents."""
    chosen = different(cases)
    told = trick.make(chosen)
    asks = [
        right(case) if each is None else _ask(trick.id, each)
        for case, each in zip(chosen, told, strict=True)
    ]
    lines = trick.catalogue(chosen) if trick.catalogue else None
    judged = _judged([asks], lines)
    pairs = list(zip(told, judged.verdicts[0], strict=True))
    # A batch that is doubted as a whole waits as a whole, right answers among it.
    doubted = any(kind == "answers_astray" for kind, _ in judged.alerts)
    return Played(
        trick.id,
        trick.told,
        trick.rules,
        [verdict for each, verdict in pairs if each is not None],
        [verdict for each, verdict in pairs if each is None and not doubted],
        judged.alerts,
    )


def _ask(name: str, told: Told) -> Ask:
    return Ask(f"{name}: {told.document.name}", told.document, tell(told.answer), told.echoes)


def _judged(batches: Sequence[Sequence[Ask]], catalogue: list[str] | None = None) -> Judged:
    with tempfile.TemporaryDirectory(prefix="tallybook-adversarial-") as name:
        folder = Path(name)
        known = None
        if catalogue is not None:
            known = folder / "known.csv"
            known.write_text("\n".join(["identifier,maker,name", *catalogue]) + "\n")
        return judge_answers(folder, batches, known)


def accepted_cases(documents: Sequence[Document]) -> tuple[list[Case], list[Verdict]]:
    """The documents whose right answers are accepted, and what became of all of them."""
    cases = [make_case(document) for document in documents]
    verdicts = judge_gold(cases)
    good = [
        case
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.accepted and case.document.gold.text_layer == FULL
    ]
    return good, verdicts


def _tell_gold(verdicts: Sequence[Verdict]) -> None:
    for layer in (True, False):
        part = [v for v in verdicts if (v.ask.document.gold.text_layer == FULL) is layer]
        accepted = sum(verdict.accepted for verdict in part)
        kind = "with a full text layer" if layer else "scanned or damaged text"
        print(f"right answers, {kind}: {accepted} of {len(part)} accepted")
        for verdict in part:
            if not verdict.accepted:
                print(f"  {verdict.ask.name}: {_why(verdict)}")


def _why(verdict: Verdict) -> str:
    told = [f"{f.rule} ({f.field}: {f.note})" for f in verdict.findings if f.severity != "note"]
    return "; ".join(told) or verdict.state


def _tell(played: Played) -> None:
    bad = played.accepted or played.wrong_rule or played.harmed
    mark = "!" if bad or len(played.wrong) < LEAST_PLAYED else " "
    print(
        f"{mark} {played.id:34s} {len(played.wrong):3d} wrong answers, "
        f"{len(played.accepted)} accepted, {len(played.wrong_rule)} by another rule"
    )
    for verdict in played.accepted:
        print(f"    accepted: {verdict.ask.name}")
    for verdict in played.wrong_rule:
        print(f"    expected {', '.join(sorted(played.rules))}: {_why(verdict)}")
    for verdict in played.harmed:
        print(f"    right, and not accepted: {verdict.ask.name}: {_why(verdict)}")


def table() -> str:
    """Every trick with its rules, in Markdown."""
    lines = ["| trick | what is wrong | stopped by |", "| --- | --- | --- |"]
    for trick in (*TRICKS, *BATCH_TRICKS):
        names = ", ".join(f"`{name}`" for name in sorted(trick.rules))
        lines.append(f"| `{trick.id}` | {trick.told} | {names} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and tell; exit status 1 where a wrong answer is accepted, or no corpus is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", action="store_true", help="the sample manuals, not the corpus")
    parser.add_argument("--gold", action="store_true", help="the right answers alone")
    parser.add_argument("--table", action="store_true", help="what the tricks are, in Markdown")
    parser.add_argument("--only", nargs="+", default=[], help="names, or beginnings of names")
    options = parser.parse_args(arguments)
    if options.table:
        print(table())
        return 0
    try:
        documents = load_samples() if options.samples else load_corpus(corpus_folder())
    except CorpusMissing as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    cases, verdicts = accepted_cases(documents)
    _tell_gold(verdicts)
    if options.gold:
        return 0
    wanted = tuple(options.only) or ("",)
    played = play(cases, [trick for trick in TRICKS if trick.id.startswith(wanted)])
    played += [play_batch(cases, each) for each in BATCH_TRICKS if each.id.startswith(wanted)]
    for each in played:
        _tell(each)
    answers = sum(len(each.wrong) for each in played)
    accepted = sum(len(each.accepted) for each in played)
    wrong_rule = sum(len(each.wrong_rule) for each in played)
    print(f"tricks={len(played)} right_answers_harmed={sum(len(each.harmed) for each in played)}")
    print(f"answers={answers} accepted={accepted} wrong_rule={wrong_rule}")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
