"""A ticket's own words, and what they tell of category, priority and product."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.support_tickets.keywords import (
    asks,
    category_cues,
    is_hedged,
    level_in,
)
from pipeline_assets.workloads.support_tickets.message import read_message
from pipeline_assets.workloads.support_tickets.products import may_be_named, product_names


@pytest.mark.parametrize(
    ("text", "subject", "sentences", "earlier"),
    [
        pytest.param("It leaks. Help!", "", ["It leaks.", "Help!"], False, id="no-labels"),
        pytest.param(
            "subject: It leaks\n\nbody: Hello,\n\nit leaks.\n\nKind regards\nAda Moor",
            "It leaks",
            ["It leaks", "it leaks."],
            False,
            id="greeting-and-signature",
        ),
        pytest.param("betreff: AW: RE: Leck", "Leck", ["Leck"], False, id="marks-of-an-answer"),
        pytest.param(
            "body: New words.\n\nOn 3 May the service wrote:\n> Old words.",
            "",
            ["New words."],
            True,
            id="earlier-english",
        ),
        pytest.param(
            "Neues.\n\nAm 3. Mai schrieb der Dienst:\nAltes.", "", ["Neues."], True, id="german"
        ),
        pytest.param(
            "Neuf.\n\nLe 3 mai, le service a écrit :\nVieux.", "", ["Neuf."], True, id="french"
        ),
        pytest.param(
            "New.\n-----Original Message-----\nFrom: x\nOld.", "", ["New."], True, id="outlook"
        ),
        pytest.param("> Old.\nNew.\n> Old.\nNewer.", "", ["New.", "Newer."], True, id="between"),
        pytest.param("See no. 5. Then call.", "", ["See no. 5.", "Then call."], False, id="short"),
        pytest.param("One\nline. Two", "", ["One\nline.", "Two"], False, id="wrapped"),
        pytest.param("", "", [], False, id="nothing"),
    ],
)
def test_own_words(text: str, subject: str, sentences: list[str], earlier: bool) -> None:
    message = read_message(text)
    assert (message.subject, list(message.sentences), message.earlier) == (
        subject,
        sentences,
        earlier,
    )
    assert all(sentence in text for sentence in message.sentences)


@pytest.mark.parametrize(
    ("sentence", "categories"),
    [
        ("The invoice is wrong.", {"billing"}),
        ("Die Rechnung stimmt nicht.", {"billing"}),
        ("La facture est fausse.", {"billing"}),
        ("My parcel is late.", {"delivery"}),
        ("Das Paket fehlt.", {"delivery"}),
        ("Le colis manque.", {"delivery"}),
        ("It doesn't work.", {"defect"}),
        ("Er funktioniert nicht.", {"defect"}),
        ("Elle ne marche plus.", {"defect"}),
        ("I forgot my password.", {"account"}),
        ("Die Anmeldung klappt nicht.", {"account"}),
        ("Mon mot de passe est faux.", {"account"}),
        ("This is unacceptable.", {"complaint"}),
        ("Ich möchte mich beschweren.", {"complaint"}),
        ("C'est inadmissible.", {"complaint"}),
        ("An interview, please.", {"other"}),
        ("The smoke detector is nice.", set()),
        ("The billiard table is green.", set()),
        ("We moved to Paketstadt.", {"delivery"}),
        ("Nothing of all that.", set()),
    ],
)
def test_cues(sentence: str, categories: set[str]) -> None:
    assert set(category_cues([sentence])) == categories


def test_a_cue_counts_once() -> None:
    found = category_cues(["The parcel.", "The parcel again.", "The courier."])
    assert [cue.weight for cue in found["delivery"]] == [2, 2]


@pytest.mark.parametrize(
    ("sentence", "level"),
    [
        ("This is urgent.", "urgent"),
        ("Bitte sofort.", "urgent"),
        ("Au plus vite, merci.", "urgent"),
        ("It is not urgent.", "low"),
        ("Es ist nicht dringend.", "low"),
        ("Rien d'urgent.", "low"),
        ("Es eilt nicht.", "low"),
        ("There is no hurry, but the smoke worries me.", "urgent"),
        ("We cannot work.", "high"),
        ("Zum dritten Mal schreibe ich.", "high"),
        ("Nous ne pouvons plus travailler.", "high"),
        ("Nobody is insurgent here.", None),
        ("The lamp is green.", None),
    ],
)
def test_levels(sentence: str, level: str | None) -> None:
    assert level_in(sentence) == level


def test_a_condition_is_a_hedge() -> None:
    assert is_hedged("If it were winter, it would be urgent.")
    assert is_hedged("Wenn es Winter wäre.")
    assert not is_hedged("It is urgent.")


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("Which filter fits?", True),
        ("Welcher Filter passt?", True),
        ("Quel filtre ?", True),
        ("Which filter fits.", False),
        ("Really?", False),
    ],
)
def test_questions(sentence: str, asked: bool) -> None:
    assert asks(sentence) is asked


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My KT-15 is cold.", ["KT-15"]),
        ("Kettle KT-15 and again KT-15.", ["KT-15"]),
        ("The Lumella 300 and the Ventaro X2.", ["Lumella 300", "Ventaro X2"]),
        ("Die Cafora 8 tropft.", ["Cafora 8"]),
        ("Invoice RE-2041 of 3 March, order 20931.", []),
        ("Bestellung 4711 vom 12. Mai, Fehler E04.", []),
        ("Commande 1234, erreur E12.", []),
        ("It cost 89 euros on Monday 12.", []),
        ("It runs on Windows 11.", []),
        ("A CO2 sensor.", []),
        ("", []),
    ],
)
def test_products(text: str, names: list[str]) -> None:
    assert product_names(text) == names


@pytest.mark.parametrize(
    ("text", "language", "may"),
    [
        ("Our Nimbus is broken.", "en", True),
        ("Notre Nimbus est en panne.", "fr", True),
        ("Unser Gerät ist kaputt.", "de", False),
        ("Unser „Nimbus“ ist kaputt.", "de", True),
        ("Das Modell Nimbus ist kaputt.", "de", True),
        ("On Monday, in March, I called.", "en", False),
        ("The lamp is broken.", "en", False),
    ],
)
def test_what_may_be_a_name(text: str, language: str, may: bool) -> None:
    assert may_be_named(text, language) is may
