"""What lint finds, and what it must leave alone. Most questions are from real banks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import exampp
from exampp.formats import bank as workbench_bank
from exampp.items.lint import RULES, Finding, lint
from exampp.records import BankEntry, Item


def items(*texts: str, kind: str = "question", answers: tuple[str, ...] = ()) -> tuple[Item, ...]:
    return tuple(Item(str(n), "q", text, kind, answers=answers) for n, text in enumerate(texts))


def found(*texts: str, kind: str = "question", query: str = "") -> list[tuple[str, str, str]]:
    """(rule, item, detail) of every finding."""
    entry = BankEntry("q", items(*texts, kind=kind), query)
    return [(one.rule, one.item_id, one.detail) for one in lint([entry], {})]


@pytest.mark.parametrize(
    ("text", "rule", "detail"),
    [
        ("?!", "empty", ""),
        ("10. How does amplitude affect standing waves?", "list-mark", "10."),
        ("- What is a reef?", "list-mark", "-"),
        ("What is enzyme cooperativity and why is it important?", "double-barrelled", "and why"),
        ("What challenges does dye bring, and how are they met?", "double-barrelled", "and how"),
        ("How do waves form and do they break?", "double-barrelled", "and do they"),
        ("What is a narcotic? How does caffeine fit in?", "double-barrelled", "?"),
        ("Can flatworms regenerate?", "yes-no", "can"),
        ("In neutron emission, does the number of protons change?", "yes-no", "does"),
        ("Isn't basalt a volcanic rock?", "yes-no", "isn't"),
        ("What is currently known about roundworms?", "time-dependent", "currently"),
        ("What are the latest models of plumes?", "time-dependent", "latest"),
        ("What do recent studies of finches show?", "time-dependent", "recent studies"),
        ("How much rain has fallen to date?", "time-dependent", "to date"),
        (
            "What is our current understanding of atoms?",
            "time-dependent",
            "our current understanding",
        ),
    ],
)
def test_what_is_found_in_a_question(text: str, rule: str, detail: str) -> None:
    assert (rule, "0", detail) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "What does air scatter?",
        "How and why do stars form?",
        "What are the advantages and disadvantages of wind power?",
        "Which fossils date from when trilobites lived?",
        "Can you explain the concept of relative velocity?",
        "Is a mole on the skin harmless or a cancer?",
        "How does electric current flow in a wire?",
        "What are ocean currents driven by?",
        "What is the date of the treaty?",
        "What did the recently deceased king rule, in the words of his time",
        "3.14 is the start of which number?",
        "Under what conditions is basalt formed?",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    rules = {rule for rule, _, _ in found(text)} - {"time-dependent" if "recently" in text else ""}
    assert rules == set()


def test_two_items_that_say_the_same() -> None:
    assert found("What is a reef?", "what is a REEF", "What is the reef?") == [
        ("duplicate", "1", "as 0"),
        ("duplicate", "2", "as 0"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        (
            "What are the health effects of long-term exposure to low levels of radiation?",
            "What are the long-term health effects of exposure to radiation?",
            False,
        ),
        ("Stable ancient cores of continents", "Ancient and stable cores of continents", True),
        (
            "How does the mass of a star affect its lifetime?",
            "How does the size of a star affect its lifetime?",
            False,
        ),
        (
            "What are the main advantages of using wind power?",
            "What are the main disadvantages of using wind power?",
            False,
        ),
        ("What is a reef?", "What is a reef in the Red Sea made of?", False),
    ],
)
def test_near_duplicates(one: str, other: str, is_near: bool) -> None:
    rules = [rule for rule, _, _ in found(one, other)]
    assert rules == ["near-duplicate"] * is_near


@pytest.mark.parametrize(
    ("one", "other", "detail"),
    [
        (
            "na\u00efve?",
            "nai\u0308ve?",
            "like 0: U+0308 (combining diaeresis) at character 4 is not",
        ),
        (
            "photosynthesis",
            "photo\u200bsynthesis",
            "like 0: invisible U+200B (zero width space) at",
        ),
        (
            "photo\u00adsynthesis",
            "photosynthesis",
            "like 0: there invisible U+00AD (soft hyphen) at",
        ),
        (
            "What is rain?",
            "What\u00a0is rain?",
            "like 0: U+00A0 (no-break space) at character 5 looks",
        ),
        ("the \ufb01rst?", "the first?", "like 0: there U+FB01 (latin small ligature fi) at char"),
        ("Rain\ufeff?", "Rain?", "like 0: there invisible U+FEFF (zero width no-break space) at"),
    ],
)
def test_items_that_look_alike(one: str, other: str, detail: str) -> None:
    ((rule, item, said),) = found(one, other)
    assert (rule, item) == ("twin", "1")
    assert said.startswith(detail)
    assert said.endswith("; retire or reword one of them")


def test_what_is_seen_makes_no_twins() -> None:
    assert {rule for rule, _, _ in found("How big is x\u00b2 here?", "How big is x2 here?")} <= {
        "near-duplicate"
    }
    accents = found("Caf\u00e9 or bar, which?", "Cafe or bar, which?")
    assert {rule for rule, _, _ in accents} <= {"near-duplicate"}


def test_duplicates_are_looked_for_within_a_query_and_kind() -> None:
    question, nugget = items("basalt"), items("basalt", kind="nugget")
    entries = [
        BankEntry("q", question),
        BankEntry("r", (Item("0", "r", "basalt"),)),
        BankEntry("q", nugget, subtopic_id="f"),
    ]
    assert lint(entries, {}) == []


def test_nuggets_have_rules_of_their_own() -> None:
    assert found("Is lava hot?", "one two three four", kind="nugget") == []
    assert found("one two three four five", "today's lava", kind="nugget") == [
        ("time-dependent", "1", "today's"),
        ("long-nugget", "0", "5 words"),
    ]


@pytest.mark.parametrize(
    ("text", "query", "repeats"),
    [
        ("What is the exosphere?", "the exosphere", True),
        ("Who are the Three Percenters?", "who are the three percenters", True),
        ("What is geology?", "Earth science and its branches / Geology", True),
        ("Where does the exosphere end?", "the exosphere", False),
        ("Why?", "the exosphere", False),
    ],
)
def test_questions_that_repeat_the_query(text: str, query: str, repeats: bool) -> None:
    assert [rule for rule, _, _ in found(text, query=query)] == ["repeats-query"] * repeats


def test_keys_are_missing_only_where_others_have_them() -> None:
    keyed = items("a?", "b?", "c?", answers=("x",))
    bare = Item("9", "q", "d?")
    far = Item("8", "r", "e?")
    entries = [BankEntry("q", (*keyed, bare)), BankEntry("r", (far,))]
    assert [(one.rule, one.item_id) for one in lint(entries, {})] == [
        ("no-key", "9"),
        ("no-key", "8"),
    ]
    few = [
        BankEntry("q", (keyed[0], bare)),
        BankEntry("r", (far, *(Item(f"r{n}", "r", f"{n}x") for n in range(9)))),
    ]
    assert [(one.rule, one.item_id) for one in lint(few, {})] == [("no-key", "9")]
    assert lint([BankEntry("q", items("a?", "b?"))], {}) == []


def test_queries_without_items_and_items_without_a_query() -> None:
    entries = [BankEntry("q", items("a?")), BankEntry("typo", (Item("1", "typo", "b?"),))]
    assert lint(entries, {"q": "about a", "r": "about r"}) == [
        Finding("no-items", "r", "", "about r", "no questions"),
        Finding("unknown-query", "typo", "1", "b?"),
    ]
    assert lint(entries, {}) == []


def test_every_rule_says_why_and_is_in_order() -> None:
    entry = BankEntry("q", items("?", "Is a reef alive today?", "Is a reef alive today?"))
    rules = [one.rule for one in lint([entry], {"r": ""})]
    assert rules == sorted(rules, key=list(RULES).index)
    assert set(rules) <= RULES.keys()


def test_lint_of_a_collection(collection: exampp.Collection, tmp_path: Path) -> None:
    assert collection.bank().lint().notes == ("no findings",)
    collection.bank().add("q1", "Is the sky blue?", author="ann")
    (tmp_path / "more.json").write_text('{"q8": "a query"}')
    collection.import_files(tmp_path / "more.json", kind="queries")
    table = collection.bank().lint()
    assert [(row[0], row[1], row[5]) for row in table.rows] == [
        ("yes-no", "q1", RULES["yes-no"]),
        ("repeats-query", "q1", RULES["repeats-query"]),
        ("no-items", "q8", RULES["no-items"]),
    ]
    with pytest.raises(exampp.InputError, match="has no bank 'x'"):
        collection.bank("x").lint()


def test_lint_of_a_bank_that_came_before_its_queries(tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text("query_id\tquestion\nq7\tWhat is a typo?\n")
    (tmp_path / "queries.json").write_text('{"q1": "a query"}')
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(tmp_path / "bank.tsv")
        collection.import_files(tmp_path / "queries.json", kind="queries")
        assert [(row[0], row[1], row[5]) for row in collection.bank().lint().rows] == [
            ("no-items", "q1", RULES["no-items"]),
            ("unknown-query", "q7", RULES["unknown-query"]),
        ]


REAL = {
    "car-y3/questions": {
        "list-mark": 180,
        "duplicate": 6,
        "near-duplicate": 11,
        "double-barrelled": 929,
        "yes-no": 607,
        "time-dependent": 70,
        "repeats-query": 7,
    },
    "car-y3/nuggets": {
        "duplicate": 16,
        "near-duplicate": 14,
        "time-dependent": 1,
        "repeats-query": 10,
        "long-nugget": 929,
    },
    "dl19/questions": {
        "double-barrelled": 11,
        "yes-no": 97,
        "time-dependent": 4,
        "repeats-query": 2,
    },
}


@pytest.mark.parametrize("name", REAL)
def test_findings_in_real_banks(shared_data: Path, name: str) -> None:
    entries = list(workbench_bank.read(shared_data / f"{name}.jsonl.gz"))
    counts = Counter(one.rule for one in lint(entries, {}))
    assert counts == REAL[name]
