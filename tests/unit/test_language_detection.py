"""Which language a text is in; short, mixed and wordless texts have none."""

from __future__ import annotations

import pytest

from resources.language import detect, detect_piece, weight

TEXTS = {
    "en": "Clean the surface with a soft cloth and a little warm water, and let it dry completely.",
    "de": "Reinigen Sie die Oberfläche mit einem weichen Tuch und lassen Sie sie gut trocknen.",
    "fr": "Nettoyez la surface avec un chiffon doux et laissez-la sécher avant de la remettre.",
    "es": "Limpie la superficie con un paño suave y deje que se seque antes de volver a usarla.",
    "it": "Pulire la superficie con un panno morbido e lasciarla asciugare prima di riaccendere.",
    "pt": "Limpe a superfície com um pano macio e deixe-a secar antes de ligar o aparelho.",
    "nl": "Maak het oppervlak schoon met een zachte doek en laat het drogen voor u het gebruikt.",
    "pl": "Powierzchnię czyścić miękką ściereczką, a następnie pozostawić do wyschnięcia.",
    "cs": "Povrch čistěte měkkým hadříkem a před opětovným zapnutím jej nechte zcela uschnout.",
    "lt": "Valykite paviršių minkšta šluoste ir leiskite jam išdžiūti prieš vėl įjungdami.",
    "lv": "Tīriet virsmu ar mīkstu drānu un ļaujiet tai nožūt, pirms atkal ieslēdzat ierīci.",
    "et": "Puhastage pinda pehme lapiga ja laske sellel enne seadme sisselülitamist ära kuivada.",
    "ru": "Протирайте поверхность мягкой тканью и дайте ей высохнуть, прежде чем включать прибор.",
    "uk": "Протирайте поверхню м'якою тканиною і дайте їй висохнути, перш ніж вмикати прилад.",
    "ja": "表面は柔らかい布にぬるま湯を含ませて拭き、乾かしてから電源を入れてください。",
    "zh": "请用柔软的布和少量温水清洁表面，待其完全干燥后再重新接通电源。",
    "ko": "부드러운 천과 약간의 따뜻한 물로 표면을 닦고 완전히 말린 후 다시 전원을 켜십시오.",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items(), ids=TEXTS.keys())
def test_language(language: str, text: str) -> None:
    assert detect(text) == (language, (language,))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("12 34 . . . . 56\n----", id="no letters"),
        pytest.param("Power On", id="too short"),
    ],
)
def test_no_language(text: str) -> None:
    assert detect(text).language is None


def test_halves_in_two_languages_name_both() -> None:
    text = "\n".join([TEXTS["en"]] * 8 + [TEXTS["fr"]] * 8)
    assert set(detect(text).languages) == {"en", "fr"}


def test_three_languages_choose_none() -> None:
    text = "\n".join([TEXTS["en"]] * 8 + [TEXTS["fr"]] * 8 + [TEXTS["ru"]] * 8)
    found = detect(text)
    assert found.language is None
    assert len(found.languages) >= 2


def test_a_few_lines_in_another_language_do_not_count() -> None:
    text = "\n".join([TEXTS["lt"]] * 16 + [TEXTS["en"]])
    assert detect(text) == ("lt", ("lt",))


def test_lines_without_words_are_skipped() -> None:
    figures = "0x4F 0x11 0x00 . . . . . . . . 17\n" * 50
    assert detect(figures + TEXTS["de"] * 2).language == "de"


def test_long_text_is_sampled_over_its_whole_length() -> None:
    text = "\n".join([TEXTS["en"]] * 400 + [TEXTS["de"]] * 400)
    assert set(detect(text).languages) == {"en", "de"}


def test_weight_counts_dense_scripts_threefold() -> None:
    assert weight("ab 12") == 2
    assert weight("電源") == 6


def test_piece_without_a_language() -> None:
    assert detect_piece("12 34") is None
