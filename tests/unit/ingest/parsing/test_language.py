"""Language of a text, and of a text in several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.ingest.parsing import language

SENTENCES = {
    "en": "Before you connect the device to the mains, check that the voltage is correct. ",
    "de": "Vor dem Anschluss an das Stromnetz prüfen Sie bitte, ob die Spannung stimmt. ",
    "fr": "Avant de brancher l'appareil sur le secteur, vérifiez que la tension est correcte. ",
    "es": "Antes de conectar el aparato a la red, compruebe que la tensión es la correcta. ",
    "lt": "Prieš prijungdami įrenginį prie elektros tinklo, patikrinkite, ar įtampa tinkama. ",
    "ru": "Перед подключением прибора к сети проверьте, соответствует ли напряжение сети. ",
    "uk": "Перед під'єднанням пристрою до мережі перевірте, чи відповідає напруга живлення. ",
    "ja": "本機を電源に接続する前に、電圧が正しいことを確認してください。",
    "zh": "在将设备连接到电源之前，请检查电压是否正确。请仔细阅读本使用说明书。",
    "ko": "기기를 전원에 연결하기 전에 전압이 올바른지 확인하십시오. 설명서를 읽어 주십시오.",
    "el": "Πριν συνδέσετε τη συσκευή στο ρεύμα, ελέγξτε ότι η τάση είναι σωστή. ",
    "tr": "Cihazı şebekeye bağlamadan önce gerilimin doğru olup olmadığını kontrol ediniz. ",
}


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_one_language(code: str) -> None:
    page = "\n".join([SENTENCES[code]] * 8)
    assert language.detect([page, page]) == (code, ())


def test_the_first_of_languages_of_like_share_is_the_main_one() -> None:
    pages = ["\n".join([SENTENCES[code]] * 6) for code in ("en", "de", "fr")]
    main, others = language.detect(pages)
    assert main == "en"
    assert sorted(others) == ["de", "fr"]


def test_a_foreign_cover_does_not_decide() -> None:
    body = "\n".join([SENTENCES["es"]] * 10)
    assert language.detect([SENTENCES["en"], body, body]) == ("es", ())


def test_contents_and_code_do_not_speak_for_the_body() -> None:
    noise = "\n".join(["Table of the contents ......... 12", "int main() { return 0; }"] * 30)
    assert language.detect([noise, "\n".join([SENTENCES["lt"]] * 5)]) == ("lt", ())


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([], id="no pages"),
        pytest.param(["", "  \n "], id="no text"),
        pytest.param(["12 34 56.7 % 0x1F"], id="no letters"),
        pytest.param(["Hello, world!"], id="two words"),
        pytest.param(["abcdefghijklmnopqrstuvwxyz" * 3], id="no words"),
    ],
)
def test_too_little_to_tell(pages: list[str]) -> None:
    assert language.detect(pages) == (None, ())


def test_columns_in_three_languages_are_all_seen() -> None:
    page = "\n".join(SENTENCES[code] for code in ("en", "de", "fr") for _ in range(20))
    main, others = language.detect([page] * 14)
    assert (main, sorted(others)) == ("en", ["de", "fr"])


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Manual", "Latin"),
        ("Руководство RL14", "Cyrillic"),
        ("取扱説明書です", "Japanese"),
        ("使用说明书", "Han"),
        ("설명서", "Hangul"),
        ("دليل", "Arabic"),
        ("123 !?", None),
    ],
)
def test_main_script(text: str, script: str | None) -> None:
    assert language.main_script(text) == script


@given(st.lists(st.tuples(st.sampled_from(["en", "de", "fr", None]), st.integers(1, 500))))
def test_prevailing_languages_hold_most_of_the_text(pieces: list[tuple[str | None, int]]) -> None:
    main, others = language.prevailing(pieces)
    assert main not in others
    if main is None:
        assert others == ()
        return
    total = sum(weight for _, weight in pieces)
    shares = {
        code: sum(weight for found, weight in pieces if found == code) / total
        for code in (main, *others)
    }
    assert min(shares.values()) >= language.SUBSTANTIAL_SHARE
    assert sum(shares.values()) >= language.MAJORITY_SHARE - 1e-9


def test_many_texts_at_once_are_each_as_alone() -> None:
    mixed = [
        "\n".join([SENTENCES[one] * 3, SENTENCES[two] * 3])
        for one, two in (("de", "en"), ("ja", "ru"))
    ]
    texts = ["", "pump", "12 34", *SENTENCES.values(), *mixed, SENTENCES["de"] * 40]
    assert language.detect_many(texts) == [language.detect([text]) for text in texts]
    assert language.detect_many([]) == []
