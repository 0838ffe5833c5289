"""The verdict on a result line: every failure class that an envelope or the schema shows."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_assets.failures import RETRYABLE, Verdict, classify, unanswered
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Repair
from resources.providers.port import Finish, ResultLine


def check(text: str) -> str:
    if text == "malformed":
        raise AnswerMalformed("told")
    if text == "invalid":
        raise AnswerInvalid("field `x` is missing")
    return f"normal {text}"


def line(
    status: int = 200, text: str | None = "fine", finish: Finish | None = "stop", **more: Any
) -> ResultLine:
    return ResultLine("id", status, text, finish, **more)


def refused(status: int, code: str | None = None) -> ResultLine:
    return line(status, None, None, error_code=code)


@pytest.mark.parametrize(
    ("result", "disposition", "failure_class"),
    [
        pytest.param(line(), "succeeded", None, id="success"),
        pytest.param(refused(0), "retryable_failure", "transport", id="no-status"),
        pytest.param(line(200, None, None), "retryable_failure", "transport", id="no-body"),
        pytest.param(
            line(200, None, "filtered"), "permanent_failure", "content_filtered", id="withheld"
        ),
        pytest.param(line(200, None, "refused"), "permanent_failure", "refused", id="refused-mute"),
        pytest.param(line(0), "retryable_failure", "transport", id="text-without-status"),
        pytest.param(refused(204), "retryable_failure", "transport", id="no-content"),
        pytest.param(line(206), "retryable_failure", "transport", id="partial-content"),
        pytest.param(refused(408), "retryable_failure", "transport", id="request-timeout"),
        pytest.param(refused(429), "retryable_failure", "rate_limited", id="rate"),
        pytest.param(refused(503), "retryable_failure", "overloaded", id="unavailable"),
        pytest.param(refused(529), "retryable_failure", "overloaded", id="overloaded"),
        pytest.param(refused(500), "retryable_failure", "server_error", id="server"),
        pytest.param(refused(504), "retryable_failure", "server_error", id="gateway"),
        pytest.param(refused(999), "retryable_failure", "server_error", id="unheard-of"),
        pytest.param(
            refused(429, "token_limit_exceeded"), "retryable_failure", "capacity", id="capacity"
        ),
        pytest.param(refused(0, "expired"), "expired", "expired", id="expired"),
        pytest.param(refused(200, "expired"), "expired", "expired", id="expired-with-200"),
        pytest.param(refused(0, "cancelled"), "cancelled", "cancelled", id="cancelled"),
        pytest.param(line(finish="truncated"), "retryable_failure", "truncated", id="truncated"),
        pytest.param(line(finish=None), "retryable_failure", "truncated", id="no-finish-reason"),
        pytest.param(line(finish="paused"), "retryable_failure", "truncated", id="paused"),
        pytest.param(
            line(finish="malformed"), "permanent_failure", "malformed_json", id="bad-form"
        ),
        pytest.param(line(finish="unknown"), "retryable_failure", "truncated", id="unknown-finish"),
        pytest.param(
            line(text="malformed", finish="truncated"),
            "retryable_failure",
            "truncated",
            id="cut-json",
        ),
        pytest.param(
            line(finish="filtered"), "permanent_failure", "content_filtered", id="filtered"
        ),
        pytest.param(line(finish="refused"), "permanent_failure", "refused", id="refused"),
        pytest.param(line(text="malformed"), "permanent_failure", "malformed_json", id="json"),
        pytest.param(line(text="invalid"), "permanent_failure", "schema_violation", id="schema"),
        pytest.param(refused(400), "permanent_failure", "invalid_request", id="bad-request"),
        pytest.param(refused(404), "permanent_failure", "invalid_request", id="not-found"),
        pytest.param(
            refused(404, "model_not_found"), "permanent_failure", "unsupported", id="no-model"
        ),
        pytest.param(line(302), "permanent_failure", "invalid_request", id="redirected"),
        pytest.param(line(-1), "permanent_failure", "invalid_request", id="no-such-status"),
        pytest.param(refused(401), "retryable_failure", "auth", id="unauthorised"),
        pytest.param(refused(403), "retryable_failure", "auth", id="forbidden"),
        pytest.param(refused(402), "retryable_failure", "quota", id="payment"),
        pytest.param(
            refused(429, "insufficient_quota"), "retryable_failure", "quota", id="quota-as-429"
        ),
        pytest.param(refused(413), "permanent_failure", "too_large", id="entity-too-large"),
        pytest.param(
            refused(413, "request_too_large"), "permanent_failure", "too_large", id="size-as-413"
        ),
        *(
            pytest.param(refused(400, code), "permanent_failure", "too_large", id=code)
            for code in (
                "context_length_exceeded",
                "request_too_large",
                "string_above_max_length",
            )
        ),
        pytest.param(
            refused(400, "string_below_min_length"),
            "permanent_failure",
            "invalid_request",
            id="another-code",
        ),
        pytest.param(
            refused(200, "context_length_exceeded"),
            "retryable_failure",
            "transport",
            id="no-answer-but-200",
        ),
    ],
)
def test_classify(result: ResultLine, disposition: str, failure_class: str | None) -> None:
    verdict = classify(result, check)
    assert (verdict.disposition, verdict.failure_class) == (disposition, failure_class)
    assert bool(verdict.diagnostics) == (disposition != "succeeded"), "a failure says why"
    assert verdict.answer == ("normal fine" if disposition == "succeeded" else None)


def test_an_answer_is_not_looked_at_unless_it_is_whole() -> None:
    def never(text: str) -> str:
        raise AssertionError(text)

    for result in (line(finish="truncated"), line(500), line(finish="refused"), line(finish=None)):
        assert classify(result, never).disposition != "succeeded"


def test_diagnostics_name_the_place_only() -> None:
    verdict = classify(line(text="invalid"), check)
    assert verdict.diagnostics == "field `x` is missing"
    for result in (line(text="malformed"), line(finish="unknown"), refused(400, "secret")):
        assert "secret" not in classify(result, check).diagnostics


def without_marks(text: str) -> str | None:
    return text.replace("!", "") if "!" in text else None


REPAIR = Repair("marks", 3, without_marks)


def test_an_answer_is_mended_only_where_it_has_to_be() -> None:
    def strict(text: str) -> str:
        if "!" in text:
            raise AnswerMalformed("told")
        return check(text)

    mended = classify(line(text="{}!"), strict, [REPAIR])
    assert (mended.disposition, mended.answer) == ("succeeded", "normal {}")
    assert [(made.rule, made.version) for made in mended.repairs] == [("marks", 3)]
    assert classify(line(text="{}"), strict, [REPAIR]) == Verdict("succeeded", answer="normal {}")


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(line(text="malformed"), id="not-mendable"),
        pytest.param(line(text="invalid"), id="of-another-shape"),
        pytest.param(line(text="{}!", finish="truncated"), id="truncated"),
        pytest.param(line(text="{}!", finish=None), id="not-said-to-be-whole"),
        pytest.param(line(text="{}!", finish="refused"), id="refused"),
        pytest.param(line(text="{}!", finish="malformed"), id="malformed-says-its-provider"),
        pytest.param(line(500, "{}!"), id="failed"),
    ],
)
def test_what_cannot_be_mended_keeps_its_verdict(result: ResultLine) -> None:
    verdict = classify(result, check, [REPAIR])
    assert verdict == classify(result, check)
    assert verdict.disposition != "succeeded"


@pytest.mark.parametrize("failure_class", sorted(RETRYABLE))
def test_retryable_classes(failure_class: str) -> None:
    verdict = unanswered("provider_failed", failure_class, "code")
    assert verdict == Verdict(
        "retryable_failure", failure_class, "the job failed as a whole (code)"
    )


@pytest.mark.parametrize(
    "failure_class",
    [
        "invalid_request",
        "unsupported",
        "refused",
        "content_filtered",
        "too_large",
        "malformed_json",
        "schema_violation",
        "never heard of",
    ],
)
def test_every_other_class_is_permanent(failure_class: str) -> None:
    verdict = unanswered("provider_failed", failure_class, None)
    assert verdict.disposition == "permanent_failure"


@pytest.mark.parametrize(
    ("outcome", "disposition", "failure_class"),
    [
        pytest.param("completed", "retryable_failure", "missing_result", id="completed"),
        pytest.param(None, "retryable_failure", "missing_result", id="embedded"),
        pytest.param("lost", "retryable_failure", "missing_result", id="given-up"),
        pytest.param("expired", "expired", "expired", id="expired"),
        pytest.param("cancelled", "cancelled", "cancelled", id="cancelled"),
        pytest.param(
            "provider_failed", "retryable_failure", "server_error", id="failed-without-a-class"
        ),
    ],
)
def test_a_missing_line_means_what_the_job_says(
    outcome: str | None, disposition: str, failure_class: str
) -> None:
    verdict = unanswered(outcome, None, None)
    assert (verdict.disposition, verdict.failure_class) == (disposition, failure_class)
    assert verdict.diagnostics
