"""Prompt templates: what is refused, and that filling one is a single pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.prompting.template import InvalidPrompt, Template, parse_template

USER = "=== {reference} begins ===\n{pages}\n=== {reference} ends ==="
GOOD = f"Extract.\n%%%\n{USER}\n"


def test_the_two_parts() -> None:
    assert parse_template(GOOD.encode()) == Template("Extract.", USER)


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        pytest.param(f"\n\nExtract.\n\n%%%\n\n{USER}\n\n", "Extract.", id="blank-lines-around"),
        pytest.param(f"One.\n\nTwo.\n%%%\n{USER}", "One.\n\nTwo.", id="no-line-feed-at-the-end"),
        pytest.param(f'Like {{"a": [1]}}.\n%%%\n{USER}', 'Like {"a": [1]}.', id="json-in-it"),
        pytest.param(f"\n  Do.\u2028\n%%%\n{USER}", "  Do.\u2028", id="other-space-is-kept"),
        pytest.param(f"A %%% within.\n%%%\n{USER}", "A %%% within.", id="separator-within-a-line"),
    ],
)
def test_what_a_template_may_hold(text: str, instructions: str) -> None:
    assert parse_template(text.encode()) == Template(instructions, USER)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(USER, "has no line %%%", id="no-separator"),
        pytest.param("", "has no line %%%", id="empty"),
        pytest.param(f"Extract. %%%\n{USER}", "has no line %%%", id="separator-not-alone"),
        pytest.param(f"One.\n%%%\nTwo.\n%%%\n{USER}", "has 2 lines %%%", id="two-separators"),
        pytest.param(f"One.\n%%%\n{USER}\n%%%", "has 2 lines %%%", id="separator-at-the-end"),
        pytest.param(f"%%%\n{USER}", "has no instructions", id="separator-first"),
        pytest.param(f" \n\n%%%\n{USER}", "has no instructions", id="blank-instructions"),
        pytest.param(
            f"Read {{pages}}.\n%%%\n{USER}", "{pages} in its instructions", id="pages-above"
        ),
        pytest.param(
            f"Read {{reference}}.\n%%%\n{USER}", "{reference} in its instr", id="reference-above"
        ),
        pytest.param(f"Hello {{name}}.\n%%%\n{USER}", "{name} in its instr", id="other-above"),
        pytest.param(f"A.\n%%%\n{USER}{{model}}", "unknown placeholder {model}", id="unknown"),
        pytest.param(f"A.\n%%%\n{USER}{{ pages }}", "unknown placeholder { pages }", id="spaces"),
        pytest.param(f"A.\n%%%\n{USER}{{Pages}}", "unknown placeholder {Pages}", id="capital"),
        pytest.param("A.\n%%%\n{reference}\n{reference}", "{pages} 0 times", id="no-pages"),
        pytest.param(f"A.\n%%%\n{USER}\n{{pages}}", "{pages} 2 times", id="pages-twice"),
        pytest.param(
            "A.\n%%%\n{reference}\n> {pages}\n{reference}", "{pages} within a line", id="not-alone"
        ),
        pytest.param("A.\n%%%\n{pages}\n{reference}", "no {reference} before", id="no-begin"),
        pytest.param("A.\n%%%\n{reference}\n{pages}\nend", "no {reference} after", id="no-end"),
        pytest.param("A.\n%%%\n", "{pages} 0 times", id="no-user-part"),
        pytest.param(GOOD.replace("\n", "\r\n"), "carriage returns", id="windows-lines"),
        pytest.param("\ufeff" + GOOD, "byte order mark", id="byte-order-mark"),
    ],
)
def test_a_template_that_cannot_be_used(text: str, complaint: str) -> None:
    with pytest.raises(InvalidPrompt) as refused:
        parse_template(text.encode())
    assert complaint in str(refused.value)
    assert "under a new name" in str(refused.value), "the remedy is named"


def test_a_template_that_is_no_text() -> None:
    with pytest.raises(InvalidPrompt, match=r"not UTF-8 text \(byte 3\)"):
        parse_template(b"abc\xff" + GOOD.encode())


def test_filling() -> None:
    assert parse_template(GOOD.encode()).render("doc-1", "page text") == (
        "Extract.",
        "=== doc-1 begins ===\npage text\n=== doc-1 ends ===",
    )


_PARTS = st.sampled_from(
    ["{pages}", "{reference}", "%%%", "\n%%%\n", "{", "}", "\\1", "\\g<1>", "{0}", "%s", "$x"]
)


@given(st.lists(st.text() | _PARTS).map("".join))
def test_what_is_filled_in_is_not_filled_again(pages: str) -> None:
    instructions, user = parse_template(GOOD.encode()).render("doc-1", pages)
    assert instructions == "Extract."
    assert user == f"=== doc-1 begins ===\n{pages}\n=== doc-1 ends ==="
