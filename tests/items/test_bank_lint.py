"""Findings of lint, and items without findings. Most questions are from real banks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import exampp
from exampp.formats import bank as workbench_bank
from exampp.items.lint import RULES, Finding, lint
from exampp.records import BankEntry, Item
from exampp.records.items import DIFFERENT, ItemEvidence


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
        ("So are there any reefs in Peru or Chile?", "yes-no", "are"),
        ("In neutron emission, does temperature affect the decay?", "yes-no", "does"),
        ("Is it possible to see a supernova by day?", "yes-no", "is"),
        (
            "Can you tell me whether there are certain kinds of it?",
            "yes-no",
            "can you tell me whether",
        ),
        ("Do you know if other basalts float?", "yes-no", "do you know if"),
        ("Are eels diurnal or nocturnal?", "gives-away", "diurnal or nocturnal"),
        ("1977 or 1978?", "gives-away", "1977 or 1978"),
        ("Are sharks warm- or cold-blooded?", "gives-away", "warm- or cold-blooded"),
        ("Who invented it?", "unresolved", "it"),
        ("Has Peru ever been flooded?", "yes-no", "has"),
        ("What conclusion does the author draw?", "source-reference", "does the author"),
        ("Is the king still alive?", "time-dependent", "still alive"),
        ("Can corals move, and if so, how?", "double-barrelled", "and if so"),
        ("Can corals move? Provide examples of it.", "double-barrelled", "?"),
        ("How do reefs form; why do they die?", "double-barrelled", "why"),
        ("What was the name of the", "fragment", "ends in 'the'"),
        ("instances?", "fragment", "one word"),
        ("What does the author say about reefs?", "source-reference", "does the author"),
        ("How, according to the text, do reefs grow?", "source-reference", "according to the text"),
        ("Which of the reefs mentioned above is dead?", "source-reference", "mentioned above"),
        ("Have you considered the height of the tower?", "reader", "Have you"),
        ("How is it treated?", "unresolved", "it"),
        ("Where are they found?", "unresolved", "they"),
        ("What is its main cause?", "unresolved", "its"),
        ("How does this disease spread among goats?", "unresolved", "this disease spread"),
        ("What can people do here?", "unresolved", "here"),
        ("Can you explain basalt and describe its uses?", "double-barrelled", "and describe"),
        ("Tell me if there are other basalts", "yes-no", "tell me if"),
        ("Is it true that basalt floats?", "yes-no", "is"),
        ("How old is Vanessa Redgrave?", "time-dependent", "how old is"),
        ("What is the weather in Jamaica?", "time-dependent", "what is the weather in"),
        (
            "Based on the given passage, why is basalt dark?",
            "source-reference",
            "based on the given passage",
        ),
        ("What is the current temperature in Jamaica?", "time-dependent", "current temperature"),
        ("What is the queen worth now?", "time-dependent", "worth now"),
        ("What is currently known about roundworms?", "time-dependent", "currently"),
        ("What are the latest models of plumes?", "time-dependent", "latest"),
        ("What do recent studies of finches show?", "time-dependent", "recent studies"),
        ("How much rain has fallen to date?", "time-dependent", "to date"),
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
        "Can you tell me how reefs form?",
        "Do you know what reefs are made of?",
        "How do reefs form, and why not in cold water?",
        "In which context is the document signed?",
        "What is our current understanding of atoms?",
        "How strong are currents in a circuit, and the current density?",
        "What are hotels known for?",
        "How do you measure the height of a tower?",
        "What is in the document called Magna Carta?",
        "What is Here Comes the Sun about?",
        "What is the weather pattern called El Nino?",
        "What is the most recent common ancestor of apes?",
        "How does the type of stress affect the type of mountain that develops?",
        "Why does water expand when it freezes?",
        "How long does it take for a reef to form?",
        "What does basalt do when it cools?",
        "Which reefs are in this reef's sea?",
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


def test_a_plain_yes_no_question_is_doubtful() -> None:
    entry = BankEntry("q", items("Can flatworms regenerate?", "Isn't basalt a volcanic rock?"))
    assert lint([entry], {}) == []
    rules = [(one.rule, one.detail) for one in lint([entry], {}, doubtful=True)]
    assert rules == [("yes-no-fact", "can"), ("yes-no-fact", "isn't")]


def test_an_answer_of_the_key_in_the_question_gives_it_away() -> None:
    asked = [
        ("When, in 1977, did it open?", "1977"),
        ("Which 2 rivers meet?", "2"),
        ("Who is he?", "he"),
        ("What do Sea Cows eat?", "sea cow"),
        ("Who founded Rome, if Romulus did not?", "Romulus"),
    ]
    of = [Item(str(n), "q", text, answers=(key,)) for n, (text, key) in enumerate(asked)]
    given = [
        one.item_id for one in lint([BankEntry("q", tuple(of))], {}) if one.rule == "gives-away"
    ]
    assert given == ["0", "4"]


def test_rules_for_english_skip_other_languages() -> None:
    german = "Was kommt an einem Riff in dem warmen Meer so gut an?"
    entry = BankEntry("q", items(german, "Wer baut die Riffe in den Meeren, und wie kommt er an?"))
    assert lint([entry], {}) == []


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


def test_items_that_people_marked_as_different_are_no_duplicates() -> None:
    first, second, third = items("What is a reef?", "what is a REEF", "What is the reef?")
    marked = replace(second, extra={DIFFERENT: ["0"]})
    findings = lint([BankEntry("q", (first, marked, third))], {})
    assert [(one.rule, one.item_id, one.detail) for one in findings] == [("duplicate", "2", "as 0")]


def test_what_is_seen_makes_no_twins() -> None:
    assert {rule for rule, _, _ in found("How big is x\u00b2 now?", "How big is x2 now?")} <= {
        "near-duplicate",
        "time-dependent",
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


@pytest.mark.parametrize(
    ("text", "rule", "detail"),
    [
        ("today's lava", "time-dependent", "today's"),
        ("British in the", "fragment", "ends in 'the'"),
        ("They have been", "fragment", "ends in 'been'"),
        ("instances.", "fragment", "one word"),
        ("and the Second", "fragment", "starts with 'and'"),
        ("based on true", "fragment", "ends in 'on true'"),
        ("They orbit the Sun.", "unresolved", "They"),
        ("Concise, insightful nuggets", "prompt-echo", "nuggets"),
        ("Limited to 4 words.", "prompt-echo", "limited to 4 words"),
        ("Meaning of lava", "no-fact", ""),
    ],
)
def test_what_is_found_in_a_nugget(text: str, rule: str, detail: str) -> None:
    assert (rule, "0", detail) in found(text, kind="nugget", query="what is lava")


@pytest.mark.parametrize(
    "text",
    [
        "Is lava hot?",
        "one two three four five six",
        "Housing affecting well-being.",
        "Carotenoids become vitamin A.",
        "Chemical energy is potential.",
        "Genetics",
        "sedimentation",
        "Lava is molten rock",
        "IT department costs",
        "Of Mice and Men",
    ],
)
def test_what_is_left_alone_in_a_nugget(text: str) -> None:
    assert found(text, kind="nugget", query="what is lava") == []


def test_words_of_the_query_are_not_an_echo_of_the_prompt() -> None:
    assert found("Golden nuggets weigh most", kind="nugget", query="where are nuggets found") == []


def test_the_answer_of_a_yes_no_query_states_a_fact() -> None:
    assert found("Lava is hot", kind="nugget", query="is lava hot") == []
    assert [one[0] for one in found("Lava is hot", kind="nugget", query="hot lava")] == ["no-fact"]


@pytest.mark.parametrize(
    ("text", "query", "is_broad"),
    [
        ("What is important about the exosphere?", "the exosphere", True),
        ("Can you provide a brief overview of LPS laws?", "lps laws", True),
        ("What is the exosphere?", "the exosphere", False),
        ("What is important about helium in the exosphere?", "the exosphere", False),
    ],
)
def test_questions_that_every_passage_on_the_topic_answers(
    text: str, query: str, is_broad: bool
) -> None:
    assert [rule for rule, _, _ in found(text, query=query)] == ["too-broad"] * is_broad


@pytest.mark.parametrize(
    ("query", "questions", "is_asked"),
    [
        ("what is a sigmet", ["Who issues a sigmet?"], False),
        ("sigmet definition", ["Who issues a sigmet?"], False),
        ("what is a sigmet", ["What is a sigmet?", "Who issues a sigmet?"], True),
        ("define: sigmet", ["What does the acronym SIGMET stand for in aviation?"], True),
        ("what is a sigmet used for", ["Who issues a sigmet?"], True),
        ("how long is a sigmet", ["Who issues a sigmet?"], True),
    ],
)
def test_queries_whose_own_question_is_missing(
    query: str, questions: list[str], is_asked: bool
) -> None:
    findings = found(*questions, query=query)
    assert findings == [("query-not-asked", "", "add it as a question")] * (not is_asked)


# ---- order ---------------------------------------------------------------------------------------


def test_the_largest_stake_comes_first() -> None:
    texts = ("Are there any reefs?", "Are there any atolls?", "What is new today?", "Why?", "How?")
    evidence = {
        # 20 % of Cover hangs on the first, 60 % of its covering passages are not relevant
        ("q", "0"): ItemEvidence(0.2, relevant=0.4, not_relevant=0.3, wrongly=6, wrong=0.6),
        ("q", "1"): ItemEvidence(0.5, relevant=0.4, not_relevant=0.3, wrongly=3, wrong=0.3),
        ("q", "2"): ItemEvidence(0.3, relevant=0.9, not_relevant=0.1, wrongly=1, wrong=0.1),
        ("q", "3"): ItemEvidence(0.0, relevant=0.9, not_relevant=0.1, wrongly=1, wrong=0.1),
        ("q", "4"): ItemEvidence(0.0, relevant=0.9, not_relevant=0.1, wrongly=1, wrong=0.1),
    }
    entry = BankEntry("q", items(*texts))
    findings = lint([entry], {}, evidence=evidence)
    assert [(one.item_id, one.rule) for one in findings] == [
        ("2", "time-dependent"),
        ("1", "yes-no"),
        ("0", "yes-no"),
    ]
    # all credit of an answer that changes is in doubt, of a yes-no question the wrong part
    rules = [RULES["time-dependent"], RULES["yes-no"], RULES["yes-no"]]
    shares = [0.3, 0.5 * 0.3, 0.2 * 0.6]
    stakes = [rule.precision * share for rule, share in zip(rules, shares, strict=True)]
    assert [one.stake for one in findings] == pytest.approx(stakes)


def test_without_grades_the_stake_is_the_share_of_the_weight() -> None:
    heavy = Item("0", "q", "What is new today?", weight=3)
    light = Item("1", "q", "What was new?")
    (one,) = lint([BankEntry("q", (heavy, light))], {})
    assert one.stake == pytest.approx(0.75 * RULES["time-dependent"].precision)
    assert (one.relevant, one.not_relevant) == (None, None)


def test_grades_decide_about_yes_no_questions() -> None:
    texts = ("Are there any reefs?", "Are there any atolls?", "Why?")
    gaps = {"0": 0.1, "1": 0.5, "2": 0.3}
    evidence = {("q", one): ItemEvidence(0.3, gap, 0.0, 0, 0.0) for one, gap in gaps.items()}
    entry = BankEntry("q", items(*texts))
    assert [one.item_id for one in lint([entry], {}, evidence=evidence)] == ["0"]
    assert len(lint([entry], {}, evidence=evidence, doubtful=True)) == 2


def test_an_item_that_nearly_all_passages_cover_never_fails() -> None:
    evidence = {
        ("q", "0"): ItemEvidence(0.5, 0.9, 0.6, 6, 0.5),
        ("q", "1"): ItemEvidence(0.5, 0.9, 0.4, 4, 0.5),
        ("q", "2"): ItemEvidence(0.5, 0.5, 0.6, 6, 0.5),
    }
    findings = lint([BankEntry("q", items("Why?", "How?", "When?"))], {}, evidence=evidence)
    assert [(one.rule, one.item_id) for one in findings] == [("never-fails", "0")]


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
        Finding("no-items", "r", "", "about r", "no questions", 1.0),
        Finding("unknown-query", "typo", "1", "b?"),
    ]
    assert lint(entries, {}) == []


def test_lint_of_a_collection(collection: exampp.Collection, tmp_path: Path) -> None:
    assert collection.bank().lint().headline == "No findings."
    collection.bank().add("q1", "Is the sky blue today?", author="ann")
    (tmp_path / "more.json").write_text('{"q8": "a query"}')
    collection.import_files(tmp_path / "more.json", kind="queries")
    report = collection.bank().lint()
    assert [(one.rule, one.query_id) for one in report.findings] == [
        ("no-items", "q8"),
        ("time-dependent", "q1"),
    ]
    assert report.headline.startswith("2 findings on 1 of ")
    with pytest.raises(exampp.InputError, match="has no bank 'x'"):
        collection.bank("x").lint()


def test_lint_of_a_bank_that_came_before_its_queries(tmp_path: Path) -> None:
    (tmp_path / "bank.tsv").write_text("query_id\tquestion\nq7\tWhat is a typo?\n")
    (tmp_path / "queries.json").write_text('{"q1": "a query"}')
    with exampp.Collection.create(tmp_path / "my.exam") as collection:
        collection.import_files(tmp_path / "bank.tsv")
        collection.import_files(tmp_path / "queries.json", kind="queries")
        assert [(row[0], row[1], row[-1]) for row in collection.bank().lint().rows] == [
            ("no-items", "q1", RULES["no-items"].why),
            ("unknown-query", "q7", RULES["unknown-query"].why),
        ]


def test_a_dismissed_finding_returns_with_another_text(collection: exampp.Collection) -> None:
    bank = collection.bank()
    (added,) = bank.add("q1", "Are there any clouds today?").rows
    item = str(added[1])
    changed = bank.edit("dismiss", item, "yes-no", author="ann", reason="it is answered")
    assert changed.rows == (("q1", item, "dismiss", "", "yes-no"),)
    assert [one.rule for one in bank.lint().findings] == ["time-dependent"]
    assert "1 dismissed finding not shown" in bank.lint().render()
    assert [row[3] for row in bank.log().rows[-1:]] == ["dismiss"]
    bank.edit("dismiss", item, "time-dependent")
    (last,) = bank.log(last=1).rows
    assert (last[3], last[7]) == ("dismiss", "time-dependent")
    with pytest.raises(exampp.InputError, match=r"cannot be undone.*dismiss ITEM"):
        bank.undo(int(str(last[0])))
    assert bank.lint().headline == "No findings."
    with pytest.raises(exampp.InputError, match="would not change"):
        bank.edit("dismiss", item, "yes-no")
    with pytest.raises(exampp.InputError, match="nonsense"):
        bank.edit("dismiss", item, "nonsense")
    bank.edit("reword", item, "Are there any atolls today?")
    assert len(bank.lint().findings) == 2
    bank.edit("reword", item, "Are there any clouds today?")
    bank.edit("dismiss", item)
    assert len(bank.lint().findings) == 2


def test_a_dismissal_travels_with_the_bank(collection: exampp.Collection, tmp_path: Path) -> None:
    bank = collection.bank()
    (added,) = bank.add("q1", "Are there any clouds?").rows
    bank.edit("dismiss", str(added[1]), "yes-no")
    bank.export(tmp_path / "bank.jsonl")
    with exampp.Collection.create(tmp_path / "other.exam") as other:
        other.import_files(tmp_path / "bank.jsonl")
        assert "yes-no" not in [one.rule for one in other.bank().lint().findings]


REAL = {
    "car-y3/questions": {
        "list-mark": 70,
        "double-barrelled": 307,
        "yes-no": 127,
        "time-dependent": 24,
        "duplicate": 1,
    },
    "car-y3/nuggets": {"fragment": 3, "unresolved": 9, "duplicate": 5, "near-duplicate": 4},
    "dl19/nuggets": {"fragment": 29, "prompt-echo": 11},
}


@pytest.mark.parametrize("name", REAL)
def test_findings_in_real_banks(shared_data: Path, name: str) -> None:
    entries = list(workbench_bank.read(shared_data / f"{name}.jsonl.gz"))[:250]
    counts = Counter(one.rule for one in lint(entries, {}))
    assert {rule: counts[rule] for rule in REAL[name]} == REAL[name]
