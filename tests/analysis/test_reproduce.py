"""The papers' printed tables: what follows from print, and from the published DL 2019 file."""

from __future__ import annotations

import json

import pytest
import scipy
from support.commands import Commands
from support.gradebooks import dl19, dl19_data, official_ranks

import exampp
from exampp.analysis.reproduce import (
    PRINT,
    Inputs,
    PrintedCell,
    Reproduction,
    printed_tables,
    reproduce,
)
from exampp.formats import trec

CAR = "FLAN-T5-EXAM, Table 3, TREC CAR Y3 leaderboard"
DL19 = "FLAN-T5-EXAM, DL 2019 leaderboard"
DL20 = "FLAN-T5-EXAM, DL 2020 leaderboard"


def cells(found: Reproduction, table: str, source: str = PRINT) -> dict[tuple[str, str], float]:
    return {
        (one.row, one.column): one.computed
        for one in found.cells
        if one.table == table and one.source == source and one.computed is not None
    }


def test_correlations_follow_from_the_printed_scores_of_car() -> None:
    """All six printed correlations of the three columns, to the digit."""
    of_table = [one for one in reproduce().cells if one.table == CAR]
    ours = {(one.row, one.column) for one in of_table if one.equal}
    columns = ("TQA EXAM Cover", "GenQ EXAM Cover", "GenQ EXAM Qrels")
    assert ours == {(row, column) for row in ("spearman", "kendall") for column in columns}


def test_correlations_as_scipy_computes_them() -> None:
    for title in (CAR, DL19, DL20):
        (table,) = (one for one in printed_tables() if one.title == title)
        official = table.column("official rank")
        for column in set(table.columns) - set(table.ranks):
            printed = table.column(column)
            systems = [one for one in official if one in printed]
            x = [float(printed[one]) for one in systems]
            y = [-float(official[one]) for one in systems]
            found = cells(reproduce(), title)
            assert found["spearman", column] == pytest.approx(scipy.stats.spearmanr(x, y)[0])
            assert found["kendall", column] == pytest.approx(scipy.stats.kendalltau(x, y)[0])


def test_the_print_of_dl_2020_gives_other_correlations_than_the_text() -> None:
    found = cells(reproduce(), DL20)
    assert round(found["spearman", "EXAM Qrels"], 3) == 0.938
    assert round(found["kendall", "EXAM Qrels"], 3) == 0.806
    printed = {one.row: one.printed for one in reproduce().cells if one.table == DL20}
    assert printed == {"spearman": "0.96", "kendall": "0.84"}


def test_kappas_and_totals_follow_from_printed_counts() -> None:
    """Of 20 printed kappas, 16 are those of their counts; one 2 x 2 table has one kappa."""
    kappas = [one for one in reproduce().cells if one.column == "kappa"]
    assert (len(kappas), sum(one.equal for one in kappas)) == (20, 16)
    assert {(one.printed, round(one.computed or 0, 3)) for one in kappas if not one.equal} == {
        ("0.078", 0.077),
        ("0.079", 0.077),
        ("0.35", 0.337),
        ("0.38", 0.368),
    }
    totals = [one for one in reproduce().cells if one.column == "total"]
    assert len(totals) == 20
    assert all(one.equal for one in totals)


def test_every_table_is_listed_with_its_cells_or_with_what_it_needs() -> None:
    found = reproduce()
    computed = {one.table for one in found.cells}
    assert {one.paper for one in found.printed} == {"EXAM++", "FLAN-T5-EXAM", "Workbench"}
    for table in found.printed:
        assert table.title in computed or table.needs, table.title
    rows = {row[0]: row[-1] for row in found.records()["papers"].rows}
    assert "graded passages" in str(rows["EXAM++, Table 3, correlations on TREC CAR Y3"])


@pytest.mark.parametrize(
    ("printed", "computed", "equal"),
    [
        ("0.72", 0.7151, True),
        ("0.72", 0.7249, True),
        ("0.72", 0.7251, False),
        ("1", 0.9999, True),
        ("0.3", 0.2904, True),
        ("nan", None, True),
        ("nan", 0.5, False),
        ("0.5", None, False),
    ],
)
def test_equal_at_the_printed_precision(printed: str, computed: float, equal: bool) -> None:
    assert PrintedCell("t", PRINT, "r", "c", printed, computed).equal is equal


def test_the_published_file_of_dl_2019() -> None:
    """Counts and kappas to the digit; Cover to both digits; scores near the printed ones."""
    book = exampp.open(dl19_data() / "graded.jsonl.gz").grades().gradebook
    found = reproduce(Inputs({"dl19": book}, {}, {"official": official_ranks()}))
    counts = [one for one in found.cells if one.table.endswith("Agreement on DL 2019")]
    assert sum(one.source == "dl19" for one in counts) == 16
    assert all(one.equal for one in counts)
    of_file = cells(found, DL19, "dl19")
    assert round(of_file["spearman", "EXAM Cover"], 3) == 0.719
    assert round(of_file["kendall", "EXAM Cover"], 3) == 0.535
    assert round(of_file["spearman", "EXAM Qrels"], 3) == 0.908
    assert round(of_file["kendall", "EXAM Qrels"], 3) == 0.754
    covers = [
        one
        for one in found.cells
        if one.source == "dl19" and one.column == "EXAM Cover" and "_" in one.row
    ]
    assert all(-0.02 < (one.difference or 0) < 0.001 for one in covers), "the file lacks passages"


def test_published_qrels_are_evaluated_at_every_level() -> None:
    """The EXAM-Qrels under the name of a published file: correlations computed independently."""
    judgments = list(trec.read_qrels(dl19_data() / "expected" / "qrels-best-rating.qrels"))
    names = {"QuestionSelfRatedUnanswerablePromptWithChoices": judgments}
    inputs = Inputs({"dl19": dl19()}, names, {"official": official_ranks()})
    tables = json.loads((dl19_data() / "expected" / "qrels-measures.json").read_text())
    found = [one for one in reproduce(inputs).cells if "appendix" in one.table]
    assert len(found) == 5 * 4 * 2
    for one in found:
        measure = one.row.split()[1]
        level, statistic = one.column.split(", ")
        of_level = tables[level]["correlation"]
        key = next(name for name in of_level if name.replace(f"(rel={level})", "") == measure)
        wanted = of_level[key]["spearman" if statistic == "spearman" else "kendall_tau_b"]
        # the file ranks full precision, trec_eval's print ties some
        assert one.computed == pytest.approx(wanted, abs=0.005), (one, wanted)


def test_files_of_other_collections_add_nothing() -> None:
    found = reproduce(Inputs({}, {"mine": []}, {"official": {"a": 1.0, "b": 2.0}}))
    assert found.cells == reproduce().cells
    assert found.notes[0] == "official is not used: its systems are in no printed leaderboard."
    assert found.notes[1].startswith("mine is not used. Published qrels: FagB, ")
    assert not reproduce().notes


def test_the_command_prints_tables_and_machine_formats(exampp_command: Commands) -> None:
    ran = exampp_command("reproduce")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(exampp_command("reproduce", "--format", "json").out)
    assert len(data["cells"]["rows"]) == len(reproduce().cells)


def test_the_command_reads_files(exampp_command: Commands) -> None:
    data = dl19_data()
    ran = exampp_command(
        "reproduce",
        data / "graded.jsonl.gz",
        "--official",
        data / "official-leaderboard.json",
        "--format",
        "tsv",
    )
    assert ran.code == 0
    assert "\tgraded.jsonl.gz\t16\t16\t" in ran.out
