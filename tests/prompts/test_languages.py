"""Languages as data: which a text is in, which replies decline in it, how answers are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

import exampp
from exampp.errors import InputError
from exampp.graders.scripted import ScriptedGrader
from exampp.prompts.answers import is_unanswerable, verify_answer
from exampp.prompts.prompt import parse_prompt
from exampp.prompts.replies import read_reply
from exampp.prompts.words import ENGLISH, language_of, languages

TEXTS = {
    "English": "The reefs are built by small animals that live in warm seas and for which the sun "
    "is as important as the water.",
    "German": "Die Riffe werden von kleinen Tieren gebaut, die in warmen Meeren leben und für "
    "die das Licht so wichtig ist wie das Wasser.",
    "French": "Les récifs sont construits par de petits animaux qui vivent dans les mers chaudes "
    "et pour lesquels la lumière est aussi importante que l'eau.",
    "Spanish": "Los arrecifes son construidos por pequeños animales que viven en los mares y "
    "para los que la luz es tan importante como el agua.",
    "Italian": "Le barriere sono costruite da piccoli animali che vivono nei mari caldi e per i "
    "quali la luce è importante come l'acqua, anche se non sono piante.",
    "Portuguese": "Os recifes são construídos por pequenos animais que vivem em mares quentes e "
    "para os quais a luz é tão importante como a água.",
    "Dutch": "De riffen worden gebouwd door kleine dieren die in warme zeeën leven en voor wie "
    "het licht net zo belangrijk is als het water.",
    "Cyrillic": "Рифы строят маленькие животные, которые живут в тёплых морях.",
    "Chinese or Japanese": "珊瑚礁是由小动物建造的。",
    "Arabic": "تبني الشعاب المرجانية حيوانات صغيرة.",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_known_by_its_commonest_words(name: str) -> None:
    assert language_of([TEXTS[name]]) == name
    assert language_of(TEXTS[name].split()) == name


@pytest.mark.parametrize(
    "texts", [[], [""], ["42"], ["Krakatoa 1883"], ["lorem ipsum dolor sit amet " * 9]]
)
def test_what_is_too_little_or_nothing_known_is_not_guessed(texts: list[str]) -> None:
    assert language_of(texts) is None


@pytest.mark.parametrize("code", [code for code in languages() if code != ENGLISH])
def test_replies_decline_in_their_language_and_in_english(code: str) -> None:
    for expression in languages()[code].unanswerable:
        assert is_unanswerable(f'"{expression.capitalize()}."', code)
    assert is_unanswerable("Unanswerable", code)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("bekannt", "de"),
        ("Das lässt sich sagen", "de"),
        ("connu", "fr"),
        ("conocido", "es"),
        ("bekend", "nl"),
        ("keine antwort", ENGLISH),
        ("Licht", "de"),
    ],
)
def test_what_does_not_decline(reply: str, code: str) -> None:
    assert not is_unanswerable(reply, code)


def test_a_rating_is_read_in_the_language_of_its_prompt() -> None:
    assert read_reply("self-rating", "Keine Antwort.", language="de").rating == 0
    # in English these are words like any other
    assert read_reply("self-rating", "Keine Antwort.").rating == 1
    assert read_reply("self-rating", "4: fast vollständig", language="de").rating == 4


def test_answers_are_compared_by_the_stems_of_the_language() -> None:
    keys = ["Die kleinen Tiere"]
    assert verify_answer("kleines Tier", keys, language="de").rule == "normalised"
    assert not verify_answer("kleines Tier", ["die grünen Pflanzen"], language="de").correct
    assert read_reply("extraction", "kleines Tier", keys=keys, language="de").rating == 1
    assert read_reply("extraction", "unbekannt", keys=keys, language="de").rule == "unanswerable"


PROMPT = """
name = "frage"
title = "Wie gut die Passage die Frage beantwortet: 0 bis 5"
grades = "question"
reading = "self-rating"
language = "de"
scale = { lowest = 0, highest = 5 }
cut = "context"
user = '''
Wie gut beantwortet der Text die Frage? Antworte mit einer Zahl von 0 (gar nicht) bis 5.
Frage: {question}
Text: {context}'''
"""


def test_a_prompt_says_its_language(tmp_path: Path) -> None:
    assert parse_prompt(PROMPT).language == "de"
    assert parse_prompt(PROMPT.replace('language = "de"\n', "")).language == ENGLISH
    with pytest.raises(InputError, match=r"'language' is \"xx\".*known: en, de, fr"):
        parse_prompt(PROMPT.replace('"de"', '"xx"'))
    (tmp_path / "frage.toml").write_text(PROMPT)
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q": "riffe"},
            passages={"p": TEXTS["German"]},
            bank={"q": ["Wer baut Riffe?"]},
            runs={"a": {"q": {"p": 1}}},
        )
        grader = ScriptedGrader(lambda _: "Keine Antwort")
        exam.grade(grader, prompt=str(tmp_path / "frage.toml"))
        (row,) = exam.grades().evaluate(["Cover@1"], min_rating=1).rows
        assert row.mean == 0


def test_a_bank_in_another_language_than_the_passages_is_found(tmp_path: Path) -> None:
    asked = [
        "Wer baut die Riffe in den warmen Meeren?",
        "Was ist für die Tiere so wichtig wie das Wasser?",
    ]
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q": "reefs"}, passages={"p": TEXTS["English"]}, bank={"q": asked})
        found = [row for row in exam.bank("main").lint().rows if "other-language" in row]
        assert len(found) == 1
        assert any("in German, the passages in English" in str(cell) for cell in found[0])
        exam.add(passages={"p": TEXTS["German"]}, update=True)
        assert not [row for row in exam.bank("main").lint().rows if "other-language" in row]


def test_languages_are_those_of_the_stemmer() -> None:
    import Stemmer

    known = set(Stemmer.algorithms())
    assert {one.stemmer for one in languages().values()} <= known
    assert all(len(one.common) >= 30 and one.negations for one in languages().values())
