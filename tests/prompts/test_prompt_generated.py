"""What is read out of a reply to a request for items, and what never becomes one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.prompts.generation import ParsedItem, read_items

AB = ["What is a?", "Why b?"]
READ: list[tuple[str, str, list[str]]] = [
    ('{"questions": ["What is a?", "Why b?"]}', "json", AB),
    ('["What is a?", "Why b?"]', "json", AB),
    ('{"questions": [" What is a? ", "Why\\nb?", "Why b?"]}', "json", AB),
    ('{"questions": ["1. What is a?", "2. Why b?"]}', "json", AB),
    ('{"questions": ["1. What is a?", "Why b?"]}', "json", AB),
    ('{"questions": {"1": "What is a?", "2": "Why b?"}}', "json", AB),
    ('{"question_1": "What is a?", "question_2": "Why b?"}', "json", AB),
    ('{"data": {"questions": ["What is a?", "Why b?"]}}', "json", AB),
    ('{"questions": [["What is a?", "Why b?"]]}', "json", AB),
    ('{"questions": [null, 3, "What is a?", "Why b?"]}', "json", AB),
    ('{"questions": "What is a?"}', "json", AB[:1]),
    ('{"questions": "1. What is a?\\n2. Why b?"}', "json", AB),
    ('<think>{"questions": ["No?"]}</think>["What is a?", "Why b?"]', "json", AB),
    ('Sure!\n```json { "questions" : ["What is a?", "Why b?"] }```\nAs in [1].', "fenced", AB),
    ('Sure: {"questions": ["What is a?", "Why b?"]} Anything else?', "embedded", AB),
    ('{"question": "What is a?"}\n{"question": "Why b?"}', "embedded", AB),
    ("['What is a?', 'Why b?']", "python", AB),
    ("The list [of 2]:\n['What is a?',\n \"Why b?\"]\n\nHope it helps [1].", "python", AB),
    ("questions = [\n  'What is a?',\n  \"Why b?\",\n]", "python", AB),
    ('{"questions": ["What is a?", "Why b?"],}', "python", AB),
    ("1. What is a?\n   - a letter\n2) Why b?", "list", AB),
    ("**1. What is a?**\n**2. Why b?**", "list", AB),
    ("Letters:\n1. Vowels:\n2. What is a?\n3. Why b?", "list", AB),
    ("Here they are:\n- What is a?\n* Why b?", "list", AB),
    ("Q1: What is a?\nQ2: Why b?", "list", AB),
    ("What is a?\nWhy b?", "list", AB),
    ("**Question 1:** What is a?\n\n**Question 2**: Why b?", "list", AB),
    ("Question: What is a?", "list", AB[:1]),
    ("1. “Dune” is by whom?\n2. 1984 is?", "list", ["“Dune” is by whom?", "1984 is?"]),
]
UNREAD = [
    ('{"questions": ["What is a?" "Why b?"]}', "no questions"),
    ('{"questions": ["What is "a"?", "Why b?"]}', "no questions"),
    ('{"questions": ["What is a?", "Why b?', "no questions"),
    ('```json\n{"questions": [\n"What is a?",\n"Why b?"', "no questions"),
    ('[{"question": "What is a?"}, {"question": "Why b', "no questions"),
    ("", "empty"),
    (" \n", "empty"),
    ("<think>hm</think>", "empty"),
    ("I'm sorry, but I can't help with that.", "refused"),
    ('{"questions": ["I\'m sorry, but I cannot help with that."]}', "refused"),
    ("{}", "no questions"),
    ('{"questions": []}', "no questions"),
    ('{"questions": ["", "...", "?"]}', "no questions"),
    ('{ "questions" : [question_text_1, question_text_2, ...] }', "no questions"),
    ('{"error": "overloaded"}', "no questions"),
    ('{"message": ["busy"], "code": 3}', "no questions"),
    ("[[1, 2], [3]]", "no questions"),
    ("3", "no questions"),
    ("null", "no questions"),
    ("The 1990s were good years.", "no questions"),
    ("<html>Bad gateway</html>", "no questions"),
    ("[" * 5000, "no questions"),
    ('{"a":' * 5000, "no questions"),
    ("What is a?", "no questions"),
]


@pytest.mark.parametrize(("reply", "rule", "texts"), READ, ids=[r[0][:40] for r in READ])
def test_read(reply: str, rule: str, texts: list[str]) -> None:
    found = read_items(reply, "question")
    assert [one.text for one in found.made] == texts
    assert found.rule == rule


@pytest.mark.parametrize(("reply", "why"), UNREAD, ids=[r[0][:40] for r in UNREAD])
def test_not_read(reply: str, why: str) -> None:
    found = read_items(reply, "question")
    assert found.made == ()
    assert why in found.rule


def test_answers_stay_with_their_questions() -> None:
    reply = (
        '{"questions": [{"question": "A b?", "answer": "x"}, '
        '{"question": "C d?", "answers": ["y", 3]}, {"question": "E f?"}]}'
    )
    assert read_items(reply, "question").made == (
        ParsedItem("A b?", ("x",)),
        ParsedItem("C d?", ("y", "3")),
        ParsedItem("E f?"),
    )


def test_a_list_that_was_cut_loses_its_last_line() -> None:
    found = read_items("1. What is a?\n2. Why is th", "question", truncated=True)
    assert found.made == (ParsedItem("What is a?"),)
    assert "cut off" in read_items("1. What is", "question", truncated=True).rule


def test_nuggets() -> None:
    for reply in (
        '{"nuggets": ["Black music"]}',
        "- Black music",
        "Nugget 1: Black music",
        '{"key_facts": ["Black music"]}',
    ):
        assert read_items(reply, "nugget").made == (ParsedItem("Black music"),)
    assert not read_items("Black music\nEarly innovation", "nugget").made


@given(st.lists(st.from_regex(r"\A[A-Z][a-z ]{3,20}[a-z]\?\Z"), min_size=1, unique=True), st.data())
def test_half_a_reply_never_makes_half_an_item(texts: list[str], data: st.DataObject) -> None:
    whole = json.dumps({"questions": texts})
    reply = whole[: data.draw(st.integers(0, len(whole)))]
    known = {" ".join(text.split()) for text in texts}
    assert {one.text for one in read_items(reply, "question").made} <= known


@given(st.text())
def test_whatever_comes_is_read_without_an_error(reply: str) -> None:
    for one in read_items(reply, "question").made:
        assert one.text.strip()
        one.text.encode()
