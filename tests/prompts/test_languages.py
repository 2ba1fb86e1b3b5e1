"""The language of a text, and banks in another one than their passages."""

from __future__ import annotations

from pathlib import Path

import pytest

import exampp
from exampp.prompts.words import language_of

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
