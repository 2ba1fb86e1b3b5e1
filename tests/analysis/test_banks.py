"""Banks beside a reference bank: planted banks, people's decisions, lists, and wrong input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from support.commands import Commands

import exampp
from exampp.analysis.banks import BankComparison, BankScore
from exampp.bank_matches import collect_matches
from exampp.collection import Collection
from exampp.errors import InputError
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.grades import matching

# the letters of an item are what it asks for
REFERENCE = {"q1": ["about ab", "about c", "about d"], "q2": ["about e", "about f"]}
Banks = Mapping[str, Mapping[str, Sequence[str]]]


def truth(ask: Request) -> str:
    """The relation of an item to a reference item, by their letters."""
    one, other = ({*text.split()[-1]} for text in (ask.passage, ask.item))
    return "3" if one == other else "2" if one > other else "1" if one < other else "0"


def exam_of(folder: Path, banks: Banks) -> Collection:
    exam = exampp.create(folder / "my.exam")
    exam.add(queries={"q1": "one", "q2": "two"}, bank=REFERENCE, bank_name="manual")
    for name, bank in banks.items():
        exam.add(bank=bank, bank_name=name)
    return exam


def matched(folder: Path, banks: Banks) -> Collection:
    """A collection of matches, graded by a grader that knows the truth."""
    with exam_of(folder, banks) as exam:
        matches = collect_matches(folder / "my.matches.exam", exam, "manual")
    matches.grade(ScriptedGrader(truth), prompt="item-match", model="scripted")
    return matches


def scores(found: BankComparison) -> dict[str, BankScore]:
    return {one.bank: one for one in found.rows}


PLANTED = {
    # recall and precision of q1 and q2; an item that asks for a part counts half
    "subset": ({"q1": ["about ab"], "q2": ["about e"]}, (1 / 3 + 1 / 2) / 2, 1),
    "noise": (
        {"q1": ["about ab", "about c", "about d", "about z"], "q2": [*REFERENCE["q2"]]},
        1,
        7 / 8,
    ),
    "split": ({"q1": ["about a", "about b", "about c", "about d"], "q2": REFERENCE["q2"]}, 1, 1),
    "half": (
        {"q1": ["about a", "about c", "about d"], "q2": REFERENCE["q2"]},
        (2.5 / 3 + 1) / 2,
        1,
    ),
    "merged": ({"q1": ["about abc", "about d"], "q2": ["about ef"]}, 1, 1),
    "half merged": ({"q1": [*REFERENCE["q1"]], "q2": ["about ez", "about f"]}, 1, (1 + 0.75) / 2),
    "one query": ({"q1": REFERENCE["q1"]}, 0.5, 1),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_perfect_matcher_measures_planted_banks(tmp_path: Path, name: str) -> None:
    bank, recall, precision = PLANTED[name]
    with matched(tmp_path, {"other": bank}) as matches:
        (row,) = matches.grades("scripted").banks().rows
    assert row.recall.value == pytest.approx(recall)
    assert row.precision.value == pytest.approx(precision)


def test_texts_match_without_a_grader(tmp_path: Path) -> None:
    bank = {"q1": ["What causes tides?", "Who was Newton?"], "q2": ["Define a fjord."]}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q1": "tides", "q2": "fjords"},
            bank={"q1": ["Why are there tides?", "What causes tides?"], "q2": ["What is a fjord?"]},
            bank_name="manual",
        )
        exam.add(bank=bank, bank_name="other")
        found = exam.compare_banks("manual")
    (row,) = found.rows
    assert row.precision.value == pytest.approx((1 / 2 + 1) / 2)
    assert [one.text for one in found.new] == ["Who was Newton?"]
    assert "about a quarter" in str(found)
    assert "other asks for" in found.headline


def test_equal_keys_match_and_items_without_a_key_do_not(tmp_path: Path) -> None:
    def bank(*keys: str) -> list[dict[str, object]]:
        return [
            {"query_id": "q1", "question": f"Question {n} of {keys}?", "answer": key}
            for n, key in enumerate(keys)
        ]

    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "one"}, bank=bank("The Moon", ""), bank_name="manual")
        exam.add(bank=bank("the moon", ""), bank_name="other")
        found = exam.compare_banks("manual", matcher="keys")
        exam.add(bank={"q1": ["No key?"]}, bank_name="bare")
        with pytest.raises(InputError, match="no item of the bank 'bare' has an answer key"):
            exam.compare_banks("bare", matcher="keys")
    (row,) = found.rows
    assert (row.recall.value, row.precision.value) == (0.5, 0.5)
    assert "Without a key: 2 items of 4." in str(found)


def test_similar_texts_match_where_a_query_has_no_other_items(tmp_path: Path) -> None:
    with exam_of(tmp_path, {"other": {"q1": REFERENCE["q1"]}}) as exam:
        (row,) = exam.compare_banks("manual", matcher="similarity").rows
    assert (row.recall.value, row.precision.value) == (0.5, 1)


def test_banks_with_equal_recall_lead_together(tmp_path: Path) -> None:
    half = {"q1": REFERENCE["q1"]}
    with matched(tmp_path, {"a": half, "b": half, "c": {"q1": ["about z"]}}) as matches:
        assert (
            matches.grades("scripted")
            .banks()
            .headline.startswith("a and b have the highest recall of manual, 50%; ")
        )
    far = {"q1": ["about y"]}
    (tmp_path / "far").mkdir()
    with exam_of(tmp_path / "far", {"a": far, "b": far}) as exam:
        assert exam.compare_banks("manual").headline == (
            "No item of any other bank asks for anything in manual."
        )


def test_many_banks_that_are_not_clearly_lower_are_not_listed(tmp_path: Path) -> None:
    banks = {name: {"q1": REFERENCE["q1"][:2]} for name in "bcde"}
    with matched(tmp_path, {"a": {"q1": REFERENCE["q1"]}, **banks}) as matches:
        found = matches.grades("scripted").banks(shared=True)
    assert found.headline == (
        "a has the highest recall of manual, 100%; no other bank is clearly lower."
    )
    assert found.rows[0].recall.low is None
    assert any("only 1 query counts" in one for one in found.notes)
    assert not any("Intervals (95%)" in one for one in found.notes)


def test_banks_without_a_common_query_are_left_out_of_matches(
    tmp_path: Path, exampp_command: Commands
) -> None:
    with exam_of(tmp_path, {"near": REFERENCE}) as exam:
        exam.add(queries={"q3": "three"}, bank={"q3": ["about g"]}, bank_name="far")
        exam.add(bank={"q1": [{"nugget": "about c", "weight": -1}]}, bank_name="avoid")
    done = exampp_command.line(
        f"bank match {tmp_path}/my.exam {tmp_path}/matches.exam --reference manual"
    )
    assert "with no wanted item on a query of manual: far, avoid\n" in done.out
    assert "analyze banks" in done.out
    assert "--grader item-match" in done.out


def test_items_match_that_the_same_passages_cover(tmp_path: Path) -> None:
    covers = {"What is a?": "12", "What of A?": "123", "Why b?": "4", "Who?": "12"}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(
            queries={"q1": "one"},
            passages={n: f"Passage {n}" for n in "1234"},
            runs={"s": {"q1": [*"1234"]}},
        )
        exam.add(bank={"q1": ["What is a?", "Why b?"]}, bank_name="manual")
        exam.add(bank={"q1": ["What of A?", "Who is c?"]}, bank_name="other")

        def rate(item: object, passage: object) -> int:
            return 5 * (str(passage)[-1] in covers.get(str(item), ""))

        exam.grade(rate, name="judge", bank="manual")
        with pytest.raises(InputError, match=r"bank 'other' have no grades by judge.*--bank other"):
            exam.compare_banks("manual", matcher="coverage")
        exam.grade(rate, name="judge", bank="other")
        found = exam.compare_banks("manual", matcher="coverage")
    # 2 of 3 passages are common; an item that no passage covers matches nothing
    assert [(one.text, one.reference_text) for one in found.pairs] == [("What of A?", "What is a?")]
    assert found.rows[0].recall.value == 0.5


def test_repetitions_are_redundant_and_ranks_count(tmp_path: Path) -> None:
    banks = {
        "early": {"q1": ["about ab", "about c"], "q2": ["about e"]},
        "late": {"q1": ["about z", "about c", "about ab"], "q2": ["about y", "about e"]},
        "twice": {"q1": ["What is ab?", "Define ab."], "q2": ["about e"]},
    }
    with matched(tmp_path, banks) as matches:
        grades = matches.grades("scripted")
        rows, first = scores(grades.banks()), scores(grades.banks(k=1))
    assert rows["early"].recall.value == rows["late"].recall.value
    assert (rows["early"].ndcg.value or 0) > (rows["late"].ndcg.value or 0)
    assert rows["twice"].redundancy.value == pytest.approx((1 / 2 + 0) / 2)
    assert first["late"].recall.value == 0
    assert first["early"].recall.value == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_people_override_matches_and_are_disclosed(tmp_path: Path) -> None:
    with matched(tmp_path, {"other": {"q1": ["about z"], "q2": ["about e"]}}) as matches:
        grades = matches.grades("scripted")
        assert scores(grades.banks())["other"].recall.value == pytest.approx((0 + 1 / 2) / 2)
        query = next(one for one in grades.gradebook.queries if one.query_id == "q1")
        item = next(
            one.item_id
            for entry in grades.bank_texts().entries
            for one in entry.items
            if one.text == "about c"
        )
        grades.decisions.decide("q1", item, query.passage_ids[0], 3, author="ann")
        found = matches.grades("scripted").banks()
        assert scores(found)["other"].recall.value == pytest.approx((1 / 3 + 1 / 2) / 2)
        assert "1 person decided 1 pair" in str(found)
        assert "other 0.250 to 0.417" in str(found)
        assert [one.by_people for one in found.pairs if one.query_id == "q1"] == [True]
        without = matches.grades("scripted", decisions="without").banks()
        assert scores(without)["other"].recall.value == pytest.approx(1 / 4)


def test_ungraded_pairs_leave_out_their_query(tmp_path: Path) -> None:
    def some(ask: Request) -> str:
        return truth(ask) if ask.query == "two" else "I cannot tell"

    with exam_of(tmp_path, {"other": {"q1": ["about c"], "q2": ["about e"]}}) as exam:
        matches = collect_matches(tmp_path / "my.matches.exam", exam, "manual")
    with matches:
        matches.grade(ScriptedGrader(some), prompt="item-match", model="scripted")
        found = matches.grades("scripted").banks()
    assert scores(found)["other"].recall.value == 0.5
    assert "left out of a bank: other (1)" in str(found)


def test_the_plot_has_the_intervals_of_the_table(tmp_path: Path) -> None:
    banks = {name: PLANTED[name][0] for name in ("subset", "noise", "one query")}
    with matched(tmp_path, banks) as matches:
        found = matches.grades("scripted").banks(k=3)
    figure = found.plot()
    plotted = {tuple(row[:2]): tuple(row[2:]) for row in figure.data.rows}
    names, rows = found.records()["banks"].for_programs()
    for row in (dict(zip(names, row, strict=True)) for row in rows):
        for measure in ("recall", "precision"):
            interval = tuple(row[f"{measure}{end}"] for end in ("", "_low", "_high"))
            assert plotted[f"{measure}@3", row["bank"]] == interval
    assert [row[1] for row in figure.data.rows][:3] == [one.bank for one in found.rows]
    assert not figure.draft


def test_reports_have_the_banks_that_are_cheap_or_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def section(exam: Collection) -> str:
        report = exam.grades("scripted", bank="manual").report()
        return {one.key: one.verdict for one in report.sections}.get("banks", "")

    with matched(tmp_path, {"other": {"q1": ["about abc"], "q2": ["about ef"]}}) as matches:
        assert section(matches) == matches.grades("scripted").banks().headline
    with exampp.open(tmp_path / "my.exam") as exam:
        exam.add(passages={"p": "about ab"}, runs={"bm25": {"q1": ["p"]}})
        exam.grade(ScriptedGrader(lambda _: "5"), bank="manual", model="scripted")
        assert section(exam) == exam.compare_banks("manual").headline
        monkeypatch.setattr(matching, "_FEW_ITEMS", 6)
        assert not section(exam)
    (tmp_path / "alone").mkdir()
    monkeypatch.undo()
    with exam_of(tmp_path / "alone", {}) as alone:
        alone.add(queries={"q3": "three"}, bank={"q3": ["about z"]}, bank_name="far")
        alone.add(passages={"p": "about ab"}, runs={"bm25": {"q1": ["p"]}})
        alone.grade(ScriptedGrader(lambda _: "5"), bank="manual", model="scripted")
        assert not section(alone)


MIXED = {"q1": [{"question": "about ab"}, {"nugget": "about c"}], "q2": [{"nugget": "about e"}]}


def test_a_bank_of_questions_and_nuggets_is_matched_as_a_whole(tmp_path: Path) -> None:
    """Recall of q1: "about ab" weighs 1 of 2, and "about c" of nuggets the other half."""
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "one", "q2": "two"}, bank=MIXED, bank_name="manual")
        exam.add(bank={"q1": ["about c"], "q2": ["about e"]}, bank_name="some")
        exam.add(bank={"q1": [{"nugget": "about ab"}]}, bank_name="other")
        matches = collect_matches(tmp_path / "my.matches.exam", exam, "manual")
        texts = exam.compare_banks("manual")
    recall = {"some": (1 / 2 + 1) / 2, "other": (1 / 2 + 0) / 2}
    with matches:
        for kind in ("question", "nugget"):
            grader = ScriptedGrader(truth)
            matches.grade(grader, prompt="item-match", model="scripted", kind=kind)
        graded = matches.compare_banks(grader="item-match")
        for found in (texts, matches.compare_banks(grader="text"), graded):
            assert {one.bank: one.recall.value for one in found.rows} == recall
            assert {one.bank: one.precision.value for one in found.rows} == {"some": 1, "other": 1}
            assert not any("left out" in one for one in found.notes)
            assert {(one.bank, one.text) for one in found.pairs} == {
                ("some", "about c"),
                ("some", "about e"),
                ("other", "about ab"),
            }
        # either of both graders leads to the whole
        nuggets = matches.grades("item-match", kind="nugget")
        assert scores(nuggets.banks())["some"].recall == scores(graded)["some"].recall
        pair = next(one for one in graded.pairs if one.text == "about e")
        assert graded.notes[0] == "Items are matched by scripted:item-match."
        nuggets.decisions.decide("q2", pair.reference_id, f"some#{pair.item_id}", 0, author="ada")
        decided = matches.compare_banks(grader="item-match")
        assert scores(decided)["some"].recall.value == 1 / 4
        assert any("1 person decided 1 pair" in one for one in decided.notes)


def test_kinds_that_a_grader_did_not_match_are_named(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "one", "q2": "two"}, bank=MIXED, bank_name="manual")
        exam.add(bank={"q1": ["about c"]}, bank_name="some")
        matches = collect_matches(tmp_path / "my.matches.exam", exam, "manual")
    with matches:
        grader = ScriptedGrader(truth)
        matches.grade(grader, prompt="item-match", model="scripted", kind="question")
        found = matches.compare_banks(grader="item-match")
    assert found.rows[0].recall.value == 0
    assert any("did not match 2 nuggets of the reference bank" in one for one in found.notes)


def test_passages_that_cover_items_of_all_kinds_match_them(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "one"}, bank={"q1": [{"question": "about a"}]}, bank_name="manual")
        exam.add(bank={"q1": [{"nugget": "tell of a"}, {"nugget": "of b"}]}, bank_name="other")
        exam.add(passages={"pa": "a", "pb": "b"}, runs={"s": {"q1": ["pa", "pb"]}})

        def says(item: object, passage: object) -> int:
            return 5 * (str(getattr(item, "text", ""))[-1] == getattr(passage, "text", ""))

        exam.grade(says, name="judge", kind="question", bank="manual")
        with pytest.raises(InputError, match="nuggets of the bank 'other' have no grades"):
            exam.compare_banks("manual", matcher="coverage")
        exam.grade(says, name="judge", kind="nugget", bank="other")
        (row,) = exam.compare_banks("manual", matcher="coverage").rows
    assert (row.recall.value, row.precision.value) == (1, 1 / 2)


def test_the_lists_of_many_banks(tmp_path: Path) -> None:
    banks = {
        "a": {"q1": ["about ab", "What is z?"], "q2": ["about e"]},
        "b": {"q1": ["about ab", "Define z."], "q2": []},
    }
    with matched(tmp_path, banks) as matches:
        found = matches.grades("scripted").banks(best=2)
    asked = {one.text: one.banks for one in found.missing}
    assert asked == {
        "about ab": ("a", "b"),
        "about e": ("a",),
        **dict.fromkeys(("about c", "about d", "about f"), ()),
    }
    assert [one.banks for one in found.new] == [("a", "b")]
    assert [(one.query_id, one.text) for one in found.best] == [
        ("q1", "about ab"),
        ("q2", "about e"),
    ]
    assert found.best[0].recall == pytest.approx(1 / 3)
    assert list(found.tables()) == ["banks", "missing", "new", "best"]


def test_an_existing_collection_gets_what_changed(tmp_path: Path) -> None:
    with exam_of(tmp_path, {"other": {"q1": ["about c"], "q2": ["about e"]}}) as exam:
        with collect_matches(tmp_path / "my.matches.exam", exam, "manual") as matches:
            matches.grade(ScriptedGrader(truth), prompt="item-match", model="scripted")
        exam.add(bank={"q1": ["about d"], "q2": ["about e"]}, bank_name="third")
        grader = ScriptedGrader(truth)
        with collect_matches(tmp_path / "my.matches.exam", exam, "manual") as matches:
            matches.grade(grader, prompt="item-match", model="scripted")
            found = matches.grades("scripted").banks()
    assert {one.bank for one in found.rows} == {"other", "third"}
    # the three pairs of the new text: the other text of "third" is known
    assert len(grader.calls) == 3


def test_subtopics_are_compared_each_and_averaged_within_their_query(tmp_path: Path) -> None:
    def rows(texts: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
        return [
            {"query_id": query, "subtopic_id": subtopic, "question": text}
            for (query, subtopic), text in texts.items()
        ]

    known = {("q1", "s1"): "What is a?", ("q1", "s2"): "What is b?", ("q2", "s1"): "What is c?"}
    other = {("q1", "s1"): "Define a.", ("q1", "s2"): "Define a.", ("q2", "s1"): "Define c."}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries={"q1": "one", "q2": "two"}, bank=rows(known), bank_name="manual")
        exam.add(bank=rows(other), bank_name="other")
        (row,) = exam.compare_banks("manual").rows
        with collect_matches(tmp_path / "my.matches.exam", exam, "manual") as matches:
            (again,) = matches.grades().banks().rows
    assert row.recall.value == pytest.approx((1 / 2 + 1) / 2)
    assert row.queries == 2
    assert again == row


def test_ids_of_items_may_repeat_and_those_of_queries_have_marks(tmp_path: Path) -> None:
    def rows(texts: Mapping[str, str]) -> list[dict[str, str]]:
        return [
            {"query_id": query, "item_id": "1", "question": text} for query, text in texts.items()
        ]

    queries = ("c#1", "c#2", "100%23")
    letters = dict(zip(queries, "abc", strict=True))
    known = {query: f"What is {letter}?" for query, letter in letters.items()}
    other = {query: f"Define {letter}." for query, letter in letters.items()}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries=dict.fromkeys(queries, "one"), bank=rows(known), bank_name="manual")
        exam.add(bank=rows(other), bank_name="other")
        (row,) = exam.compare_banks("manual").rows
        with collect_matches(tmp_path / "my.matches.exam", exam, "manual") as matches:
            found = matches.grades().banks()
    assert found.rows == (row,)
    assert row.queries == 3
    assert row.recall.value == 1.0
    assert {one.query_id for one in found.pairs} == {*queries}


def test_items_to_avoid_ask_for_nothing(tmp_path: Path) -> None:
    avoided = {"query_id": "q1", "question": "about ab", "weight": -1}
    with exam_of(tmp_path, {"other": {"q1": ["about c"]}}) as exam:
        exam.add(bank=[avoided, {"query_id": "q1", "question": "about c"}], bank_name="signed")
        rows = scores(exam.compare_banks("manual"))
    assert rows["signed"]._replace(bank="other") == rows["other"]


def test_clearly_worse_banks_are_behind(tmp_path: Path) -> None:
    queries = {f"q{n}": f"topic {n}" for n in range(30)}
    with exampp.create(tmp_path / "my.exam") as exam:
        exam.add(queries=queries, bank={q: ["What is a?", "What is b?"] for q in queries})
        for name, texts in (
            ("all", ["Define a.", "Define b."]),
            ("most", ["Define a.", "Define b."]),
            ("none", ["Define z."]),
        ):
            bank = {q: texts[: 1 if name == "most" and q == "q0" else 2] for q in queries}
            exam.add(bank=bank, bank_name=name)
        found = exam.compare_banks("main")
    assert [(one.bank, one.behind) for one in found.rows] == [
        ("all", False),
        ("most", False),
        ("none", True),
    ]
    assert found.headline.endswith("not clearly lower: most.")


def test_queries_that_no_bank_has_count_unless_they_are_left_out(tmp_path: Path) -> None:
    with matched(tmp_path, {"a": {"q1": REFERENCE["q1"]}, "b": {"q1": ["about c"]}}) as matches:
        grades = matches.grades("scripted")
        found, shared = grades.banks(), grades.banks(shared=True)
    assert [one.recall.value for one in found.rows] == pytest.approx([1 / 2, 1 / 6])
    assert [one.recall.value for one in shared.rows] == pytest.approx([1, 1 / 3])
    assert "1 query of manual without items in any other bank" in str(found)
    assert "without items" not in str(shared)


@pytest.fixture
def one_bank(tmp_path: Path) -> Iterator[Collection]:
    with exam_of(tmp_path, {}) as exam:
        yield exam


def test_what_cannot_be_compared_says_why(one_bank: Collection, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no bank to compare with 'manual'.*--bank"):
        one_bank.compare_banks("manual")
    with pytest.raises(InputError, match=r"no bank 'hand'.*It has manual"):
        one_bank.compare_banks("hand")
    one_bank.add(queries={"q3": "three"}, bank={"q3": ["What?"]}, bank_name="other")
    with pytest.raises(InputError, match="no other bank has a query of the bank 'manual'"):
        one_bank.compare_banks("manual")
    with pytest.raises(InputError, match="unknown way to match 'vibes'"):
        one_bank.compare_banks("manual", matcher="vibes")
    one_bank.add(passages={"p1": "text"}, runs={"s": {"q1": ["p1"]}})
    one_bank.grade("draft", bank="manual")
    with pytest.raises(InputError, match=r"not items of banks.*exampp bank match"):
        one_bank.grades(bank="manual").banks()


def test_the_command_plots_banks_without_grades(
    tmp_path: Path, exampp_command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks = {"other": {"q1": ["about c"]}, "far": {"q2": ["about z"]}}
    exam_of(tmp_path, banks).close()
    monkeypatch.chdir(tmp_path)

    def plot(line: str) -> str:
        return exampp_command.line(f"plot {line}").err

    done = plot("banks my.exam --reference manual --bank far --bank other -o b.csv")
    assert done == "b.csv: Banks beside the reference bank manual\n"
    rows = (tmp_path / "b.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in rows[1:3]] == [
        ["recall", "other", str(1 / 6)],
        ["recall", "far", "0.0"],
    ]
    assert "no reference bank" in plot("banks my.exam -o b.csv")
    assert "no bank 'new'" in plot("banks my.exam --reference new -o b.csv")
    assert "--grader changes nothing here" in plot(
        "banks my.exam --reference manual --grader draft -o b.csv"
    )
    assert "--reference changes nothing here" in plot("grades my.exam --reference manual -o b.csv")
    assert "shows one value of --bank" in plot("turns my.exam --bank a --bank b -o b.csv")
