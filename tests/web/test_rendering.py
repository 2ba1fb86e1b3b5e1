"""Texts on a page: nothing hides or reorders anything; shades of ratings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from exampp.web.rendering import linked, rating_shade, templates, visible


def test_control_characters_are_shown_not_sent() -> None:
    assert visible("a\x1b[31mb\x00\x7f") == "a\u241b[31mb\u2400\u2421"
    assert visible("\u202eabc\u2066") == "\u27e8RLO\u27e9abc\u27e8LRI\u27e9"
    assert visible("a\tb\nc\r") == "a\tb\nc\r"
    assert visible("\ud800") == "\ufffd"


def test_commands_in_a_text_lead_to_the_pages_that_do_the_same() -> None:
    assert linked("<b>: exampp grade. Or exampp imports") == (
        '&lt;b&gt;: <a href="/grade">exampp grade</a>. Or exampp imports'
    )


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("zero\u200bwidth", "zero\u27e8ZWSP\u27e9width"),
        ("soft\u00adhyphen \ufeff", "soft\u27e8SHY\u27e9hyphen \u27e8BOM\u27e9"),
        ("ig\u200dno\u200cre \u2060", "ig\u27e8ZWJ\u27e9no\u27e8ZWNJ\u27e9re \u27e8WJ\u27e9"),
        ("a\U000e0068\U000e0069\U000e0001", "a\u27e8TAGS hi?\u27e9"),
        ("\U0001f3f4\U000e0061\U000e0062", "\U0001f3f4\u27e8TAGS ab\u27e9"),
        ("\u3164\u2063\ufff9", "\u27e8HF\u27e9\ufffd\ufffd"),
        ("\u2764\ufe0f\ufe0e\U000e0101", "\u2764\ufe0f\u27e82 SELECTORS\u27e9"),
    ],
)
def test_what_cannot_be_seen_is_shown(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u0915\u094d\u200d\u0937 \u0d28\u0d4d\u200d",  # Hindi, Malayalam
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "\u0e44\u0e17\u0e22\u200b\u0e44\u0e17\u0e22",  # Thai
        "\u845b\U000e0100 na\u0308ive \u2028 1\ufe0f\u20e3",
    ],
)
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("rating", "lowest", "highest", "expected"),
    [
        (0, 0, 5, 0),
        (3, 0, 5, 3),
        (5, 0, 5, 5),
        (0, 0, 1, 0),
        (1, 0, 1, 5),
        (2, 1, 3, 2),
        (7, 0, 5, 5),
    ],
)
def test_shades_span_the_scale(rating: int, lowest: int, highest: int, expected: int) -> None:
    assert rating_shade(rating, lowest, highest) == expected


@pytest.mark.parametrize("folder", ["private", "taken", "missing"])
def test_templates_are_loaded_without_a_folder_for_their_code(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / folder
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    if folder != "missing":
        place.mkdir()
    if folder == "taken":
        (place / f"_jinja2-cache-{os.getuid()}").write_text("")
    loaded = templates.__wrapped__()
    assert loaded.get_template("plain.html")
    stored = [one.name for one in place.rglob("exampp-*")] if folder != "missing" else []
    assert bool(stored) == (folder == "private")
    # a page never writes to disk
    assert loaded.bytecode_cache is None
