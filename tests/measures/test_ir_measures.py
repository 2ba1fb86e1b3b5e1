"""Measures of an exam beside those of ir_measures: the same values, in its own calls."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, ScoredDoc
from support import exams

import exampp
from exampp.graders.base import Request
from exampp.graders.scripted import ScriptedGrader
from exampp.integrations import ir_measures as integration
from exampp.integrations.ir_measures import Cover, exam_measure, nCover, qrels
from exampp.measures.names import KINDS


@pytest.fixture(autouse=True)
def _no_exam_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration, "_NAMED", {})
    monkeypatch.setattr(integration, "_READ", {})


def rate(ask: Request) -> str:
    return str((len(ask.item) + 2 * len(ask.passage)) % 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with exams.make(tmp_path) as exam:
        exam.grade(ScriptedGrader(rate, record=False))
    return tmp_path / "my.exam"


def runs(grades: exampp.Grades) -> dict[str, list[ScoredDoc]]:
    found: defaultdict[str, list[ScoredDoc]] = defaultdict(list)
    for query in grades.gradebook.queries:
        for ranking in query.rankings:
            # a run of ir_measures has scores alone: those that leave the ranking as it is
            for rank, place in enumerate(ranking.passages):
                at = query.passage_ids[place]
                found[ranking.system].append(ScoredDoc(query.query_id, at, -float(rank)))
    return found


def check(grades: exampp.Grades, min_rating: int) -> None:
    wanted = {"Cover@2": Cover, "nCover@5": nCover}
    board = grades.evaluate(list(wanted), min_rating=min_rating)
    for system, run in list(runs(grades).items()):
        objects: dict[str, Any] = {
            name: kind(grades, min_rating=min_rating) @ int(name.partition("@")[2])
            for name, kind in wanted.items()
        }
        # whatever the qrels say, the exam's queries are the denominator
        with pytest.warns(match="of the exam are missing in the qrels and count"):
            found = ir_measures.calc_aggregate([*objects.values(), AP], qrels(grades)[:1], run)
        for name, one in objects.items():
            assert found[one] == pytest.approx(board.scores(name)[system], abs=1e-12)


def test_the_values_are_those_of_evaluate(path: Path) -> None:
    with exampp.Collection(path) as exam:
        check(exam.grades(), 3)


def test_they_print_as_exampp_writes_them_and_none_is_taken_for_another(path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        assert str(Cover(grades) @ 20) == "Cover@20"
        assert str(exam_measure(grades, "nDCG") @ 10) == "ExamnDCG@10"
        # with parameters, too, a measure is never that of ir_measures
        assert exam_measure(grades, "RR(rel=3)") @ 10 != ir_measures.RR(rel=3) @ 10
        assert exam_measure(grades, "nDCG") @ 10 != ir_measures.nDCG @ 10
        other = Path(exam.path).with_name("other.exam")
        exam.export(other.with_suffix(".jsonl"))
    with exampp.open(other.with_suffix(".jsonl")) as second:
        assert str(Cover(second.grades(), min_rating=2) @ 5) == "Cover(min_rating=2,exam='other')@5"


def test_every_measure_can_be_one_of_an_exam(path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        for name in (name for name, kind in KINDS.items() if not kind.required):
            assert exam_measure(grades, name).measure == name
        judged = qrels(grades)
        run = [ScoredDoc(one.query_id, one.doc_id, 1.0) for one in judged]
        found = ir_measures.calc_aggregate([exam_measure(grades, "R") @ 2], judged, run)
        (value,) = found.values()
        assert value == pytest.approx(
            ir_measures.calc_aggregate([ir_measures.R(rel=4) @ 2], judged, run)[
                ir_measures.R(rel=4) @ 2
            ]
        )


def test_other_queries_in_the_qrels_are_told(path: Path) -> None:
    # pt.Experiment takes the measures of one query for those of all, and knows no missing value
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        judged = qrels(grades)
        known = {one.query_id for one in judged}
        run = [ScoredDoc(one.query_id, one.doc_id, 1.0) for one in judged]
        wanted = Cover(grades) @ 2
        ir_measures.calc_aggregate([wanted], judged, run)  # a warning is an error in tests
        more = [*judged, ir_measures.Qrel("unknown", "p1", 1)]
        with pytest.warns(match="1 query of the qrels have no graded exam and are skipped") as said:
            found = list(ir_measures.iter_calc([wanted], more, run))
        assert "(unknown)" in str(said[0].message)
        assert {one.query_id for one in found} == known


def test_what_it_needs_is_said(path: Path) -> None:
    with exampp.Collection(path) as exam, pytest.raises(exampp.InputError, match="Coverr"):
        exam_measure(exam, "Coverr")
    with exampp.Collection(path) as exam:
        exam.grade(ScriptedGrader(rate, record=False), name="second")
        with pytest.raises(exampp.InputError, match="2 graders match"):
            Cover(exam)


def run_of(grades: exampp.Grades) -> list[ScoredDoc]:
    return runs(grades)["alpha"]


def test_parsed_measures_are_those_of_the_named_exam(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        wanted = grades.evaluate(["Cover@2"], min_rating=3).scores("Cover@2")["alpha"]
        run, judged = run_of(grades), qrels(grades)
    written = f"Cover(min_rating=3,exam='{path}')@2"
    measure = ir_measures.parse_measure(written)
    assert str(measure) == written
    assert measure.calc_aggregate(judged, run) == pytest.approx(wanted)
    default = ir_measures.parse_measure("Cover(min_rating=3)@2")
    with pytest.raises(exampp.InputError, match="names no exam"):
        default.calc_aggregate(judged, run)
    monkeypatch.setenv("EXAMPP_EXAM", str(path))
    assert default.calc_aggregate(judged, run) == pytest.approx(wanted)
    monkeypatch.delenv("EXAMPP_EXAM")
    # the first exam that the process used is that of measures without one
    Cover(path)
    assert default.calc_aggregate(judged, run) == pytest.approx(wanted)


def test_a_grader_is_named_where_there_are_several(path: Path) -> None:
    with exampp.Collection(path) as exam:
        run, judged = run_of(exam.grades()), qrels(exam)
        exam.grade(lambda _item, _passage: 5, name="generous", scale=(0, 5))
    measure = ir_measures.parse_measure(f"Cover(exam='{path}')@20")
    with pytest.raises(exampp.InputError, match="2 graders match"):
        measure.calc_aggregate(judged, run)
    generous = measure(grader="generous")
    assert generous.calc_aggregate(judged, run) == 1


LOOKED_FOR = "exampp.measures, importlib.util; importlib.util.find_spec('ir_measures')"


@pytest.mark.parametrize(
    "order",
    [
        "exampp.measures, ir_measures",
        "ir_measures, exampp.measures",
        f"{LOOKED_FOR}; import ir_measures",
    ],
)
def test_ir_measures_parses_them_in_a_process_that_imported_the_measures(order: str) -> None:
    # nothing else is loaded for it
    code = (
        f"import {order}\nimport sys; integration = 'exampp.integrations.ir_measures'\n"
        "assert integration not in sys.modules\n"
        "import ir_measures.util, importlib.resources\n"
        "assert importlib.resources.files('ir_measures').joinpath('util.py').is_file()\n"
        "print(ir_measures.parse_measure('Cover@20'), ir_measures.parse_measure('nDCG@10'))\n"
        "print(ir_measures.parse_measure('ExamnDCG(gains={0:1,5:2})@5'))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout.split() == ["Cover@20", "nDCG@10", "ExamnDCG(gains={0:1,5:2})@5"]


def test_they_pickle_to_another_process(path: Path, tmp_path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        run, judged = run_of(grades), qrels(grades)
        wanted = [Cover(grades, min_rating=3) @ 2, exam_measure(path, "NumRet"), nCover(path) @ 5]
        values = {str(k): v for k, v in ir_measures.calc_aggregate(wanted, judged, run).items()}
    assert pickle.loads(pickle.dumps(wanted)) == wanted
    (tmp_path / "work").mkdir()
    (tmp_path / "in").write_bytes(pickle.dumps((wanted, judged, run)))
    code = (
        "import pickle, sys\n"
        "wanted, judged, run = pickle.load(open(sys.argv[1], 'rb'))\n"
        "import ir_measures\n"
        "found = ir_measures.calc_aggregate(wanted, judged, run)\n"
        "print({str(measure): value for measure, value in found.items()})\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "in")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path / "work")
    found = eval(ran.stdout)
    assert found.keys() == values.keys()
    assert all(math.isclose(found[name], values[name], abs_tol=1e-12) for name in values)


def test_a_pickled_measure_keeps_its_exam_where_another_is_the_first(
    path: Path, tmp_path: Path
) -> None:
    with exams.make(tmp_path, "other.exam") as exam:
        exam.grade(ScriptedGrader(lambda _: "5", record=False))
        other = exam.path
    packed = pickle.dumps(Cover(other) @ 2)
    integration._NAMED.clear()
    Cover(path)
    again = pickle.loads(packed)
    assert again.source.path == str(other)
    assert str(again) == "Cover(exam='other')@2"


def test_a_file_is_read_once_for_all_its_measures_and_again_when_it_changed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def count(place: str) -> exampp.Collection:
        opened.append(str(place))
        return exampp.open(place)

    with exampp.Collection(path) as exam:
        run, judged = run_of(exam.grades()), qrels(exam)
    monkeypatch.setattr(integration, "open_exam", count)
    named = [f"{name}(exam='{path}')@{k}" for name in ("Cover", "nCover") for k in (1, 2, 5)]
    measures = [*map(ir_measures.parse_measure, named), AP]
    before = ir_measures.calc_aggregate(measures, judged, run)
    assert len(before) == 7
    ir_measures.calc_aggregate(measures, judged, run)
    assert opened == [str(path)]
    with exampp.Collection(path) as exam:
        exam.bank().add("q1", "What is new?", author="ann")
    after = ir_measures.calc_aggregate(measures, judged, run)
    assert opened == [str(path)] * 2
    assert after[measures[2]] < before[measures[2]]
    assert after[AP] == before[AP]


def test_values_of_several_providers_are_those_of_each(path: Path) -> None:
    with exampp.Collection(path) as exam:
        grades = exam.grades()
        run, judged = run_of(grades), qrels(grades)
        mixed = [Cover(grades) @ 2, ir_measures.nDCG @ 2, exam_measure(grades, "NumRet")]
        found = sorted(map(str, ir_measures.iter_calc(mixed, judged, run)))
        assert found == sorted(
            str(one) for measure in mixed for one in measure.iter_calc(judged, run)
        )
        means = ir_measures.calc_aggregate(mixed, judged, run)
        board = grades.evaluate(["Cover@2", "NumRet"])
        # counts are summed, as in exampp
        for name, measure in (("Cover@2", mixed[0]), ("NumRet", mixed[2])):
            assert means[measure] == pytest.approx(board.scores(name)["alpha"])


def test_the_command_of_ir_measures_knows_them(path: Path, tmp_path: Path) -> None:
    with exampp.Collection(path) as exam:
        exam.export(tmp_path / "all.run", "runs")
        exam.grades().write_qrels(tmp_path / "best.qrels")
        wanted = exam.grades().evaluate(["Cover@2"]).scores("Cover@2")["alpha"]
    lines = (tmp_path / "all.run").read_text().splitlines(keepends=True)
    (tmp_path / "alpha.run").write_text("".join(one for one in lines if one.endswith("alpha\n")))
    command = [sys.executable, "-m", "exampp.integrations.ir_measures", "best.qrels", "alpha.run"]

    def run(*measures: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *measures], capture_output=True, text=True, check=False, cwd=tmp_path
        )

    ran = run(f"Cover(exam='{path.name}')@2", "P@2")
    assert ran.stdout.startswith(f"Cover(exam='{path.name}')@2\t{wanted:.4f}\nP@2\t")
    failed = run("Cover@2")
    assert failed.returncode == 1
    assert failed.stderr.startswith("ir_measures: Cover@2 names no exam. Write ")
    assert "Traceback" not in failed.stderr
