"""Systems of answers and of the passages behind them, and the words that select them."""

from __future__ import annotations

import pytest
from support.gradebooks import make_book, make_query, make_ranking

from exampp import InputError
from exampp.formats.fields import text_digest
from exampp.records.gradebook import Gradebook, choose_systems, passage_kinds, systems_named

ANSWER, OTHER = text_digest("It scatters."), text_digest("Nobody knows.")


def book_of(*systems: tuple[str, list[int]]) -> Gradebook:
    """A book of one query with the passages: an answer, another one, and a document."""
    rankings = [make_ranking(name, some) for name, some in systems]
    return make_book(make_query([[5], [0], [3]], *rankings, passage_ids=[ANSWER, OTHER, "D1"]))


def test_names_and_ids_tell_answers_from_contexts() -> None:
    book = book_of(
        ("rag", [0]), ("rag:contexts", [2, 0]), ("chat", [0, 1]), ("bm25", [2]), ("mixed", [0, 2])
    )
    assert passage_kinds(book) == {
        "rag": "answers",
        "rag:contexts": "contexts",
        "chat": "answers",
        "bm25": "contexts",
        "mixed": "contexts",
    }
    # an answer with an imported id is recognised by the ranking of its contexts
    assert passage_kinds(book_of(("a", [2]), ("a:cited", [2])))["a"] == "answers"


def test_a_word_selects_the_systems_of_a_kind() -> None:
    book = book_of(("rag", [0]), ("rag:contexts", [2]), ("chat", [1]))
    assert choose_systems(book, ["answers"], []).systems == ("rag", "chat")
    assert choose_systems(book, ["contexts"], []).systems == ("rag:contexts",)
    assert choose_systems(book, [], ["contexts"]).systems == ("rag", "chat")
    assert choose_systems(book, ["contexts", "chat"], []).systems == ("rag:contexts", "chat")


def test_a_system_named_like_a_kind_stands_for_itself() -> None:
    book = book_of(("answers", [2]), ("chat", [1]))
    assert systems_named(book, ["answers"]) == ("answers",)


def test_a_kind_that_no_system_has_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown system 'answers'"):
        choose_systems(book_of(("bm25", [2])), ["answers"], [])
    with pytest.raises(InputError, match="unknown system 'nobody'"):
        choose_systems(book_of(("bm25", [2])), ["nobody"], [])
