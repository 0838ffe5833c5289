"""The words of the trade: kinds of documents, labels, little words."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary

SAYS_MORE = frozenset(("How-To: Replace a fuse",))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("User's Manual", "en"),
        ("INSTALLATION GUIDE", "en"),
        ("How-To: Replace a fuse", "en"),
        ("Data Sheet", "en"),
        ("Bedienungsanleitung", "de"),
        ("Benutzerhandbuch", "de"),
        ("Mode d’emploi", "fr"),
        ("Manuel d'utilisation", "fr"),
        ("Manual de usuario", "es"),
        ("Manual do utilizador", "pt"),
        ("Manuale d'uso", "it"),
        ("Gebruikershandleiding", "nl"),
        ("Bruksanvisning", "nordic"),
        ("Käyttöohje", "fi"),
        ("Instrukcja obsługi", "pl"),
        ("Návod k použití", "cs"),
        ("Használati útmutató", "hu"),
        ("Manual de utilizare", "ro"),
        ("Kasutusjuhend", "et"),
        ("Lietošanas pamācība", "lv"),
        ("Vartotojo instrukcija", "lt"),
        ("Руководство по эксплуатации", "ru"),
        ("Посібник користувача", "uk"),
        ("Οδηγίες χρήσης", "el"),
        ("Kullanım kılavuzu", "tr"),
        ("사용 설명서", "ko"),
        ("取扱説明書", "ja"),
        ("使用说明书", "zh"),
    ],
)
def test_kind_words(text: str, language: str) -> None:
    assert vocabulary.kind_languages(text) & {language}
    assert vocabulary.names_kind(text)
    assert vocabulary.says_more_than_kind(text) is (text in SAYS_MORE)


@pytest.mark.parametrize("text", ["Manually operated", "Guidelines", "Tape Deck TD-5", "Handy"])
def test_words_that_name_no_kind(text: str) -> None:
    assert not vocabulary.names_kind(text)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("User Manual", False),
        ("INSTRUCTION MANUAL", False),
        ("Manual de usuario", False),
        ("Quick Start Guide", False),
        ("Mixer User Manual", True),
        ("MX-12 Manual", True),
    ],
)
def test_what_a_title_is_about(text: str, more: bool) -> None:
    assert vocabulary.says_more_than_kind(text) is more


@pytest.mark.parametrize(
    ("before", "host"),
    [
        ("Wall Holder for ", True),
        ("Netzteil für ", True),
        ("Cable for use with the ", True),
        ("User manual for ", False),
        ("Installation guide for the ", False),
        ("Bedienungsanleitung für ", False),
        ("Box for HD-900 ", False),
        ("Tape deck ", False),
        ("For ", False),
    ],
)
def test_hosts(before: str, host: bool) -> None:
    assert vocabulary.follows_for(before) is host


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("Model: KD18", "KD18"),
        ("Models: KD18, KD19", "KD18, KD19"),
        ("Model No.: KD18", "KD18"),
        ("Modell: KD18", "KD18"),
        ("Модель: КД18", "КД18"),
        ("型号：KD18", "KD18"),
        ("Applies to: KD18", "KD18"),
        ("Model railway", None),
        ("The model: KD18", None),
    ],
)
def test_labels(line: str, rest: str | None) -> None:
    assert vocabulary.after_model_label(line) == rest


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("INVOICE 4711", True),
        ("Rechnung Nr. 12", True),
        ("Dear Mr Smith,", True),
        ("Abstract", True),
        ("Keep the receipt in a safe place with this manual.", False),
        ("Dear customer,", False),
    ],
)
def test_other_papers(line: str, other: bool) -> None:
    assert vocabulary.names_other_paper(line) is other
