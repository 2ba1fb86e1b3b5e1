"""The queries, the four lists, the history, the exports and the plots, as pages."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import exams, live
from support.live import Client
from support.waiting import wait_for
from test_overview import text_of

import exampp
from exampp.graders.scripted import ScriptedGrader
from exampp.measures.qrels import write_exam_qrels
from exampp.web.rendering import rating_shade


@pytest.fixture(scope="module")
def dl19(dl19_exam: Path) -> Iterator[Client]:
    with live.visiting(dl19_exam) as client:
        yield client


def count(page: str, thing: str) -> int:
    found = re.search(rf"([\d,]+) {thing}s?\b", text_of(page))
    assert found is not None
    return int(found[1].replace(",", ""))


def listed(page: str) -> int:
    """Count the listed queries."""
    return page.count('<a class="title"')


# ---- queries -------------------------------------------------------------------------------------


def test_queries_can_be_found_and_ordered(dl19: Client) -> None:
    page = dl19.get("/queries", find="GOLDFISH grow").text
    assert listed(page) == 1
    assert "156493" in page
    by_cover = dl19.get("/queries", order="cover").text
    values = [float(v) for v in re.findall(r'<td class="n">(0\.\d{3}|1\.000)</td>', by_cover)][::2]
    assert len(values) == 43
    assert values == sorted(values)
    assert listed(dl19.get("/queries", find="no such words").text) == 0


def test_a_search_as_one_types_answers_with_the_list_alone(dl19: Client) -> None:
    part = dl19.request("GET", "/queries?find=flea", {"hx-request": "true"}).text
    assert "<html" not in part
    assert listed(part) == 1


# ---- the four lists ------------------------------------------------------------------------------


def test_verify_shows_the_best_and_the_worst_of_each_item_first(dl19: Client) -> None:
    page = dl19.get("/lists/verify", query="156493").text
    first = page.split("</table>")[0]
    grades = [int(g) for g in re.findall(r'<b class="grade r\d">(\d)</b>(?! <span)', first)]
    assert grades[::2] == sorted(grades[::2], reverse=True)
    assert grades[0] >= grades[1]


def test_the_grid_has_a_row_a_passage_and_a_column_an_item(dl19: Client) -> None:
    page = dl19.get("/lists/grid", query="156493").text
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    assert body.count("<tr>") == 50
    assert body.count('<td class="c">') == 500
    assert "page 1 of 6" in text_of(page)


def test_an_unknown_list_query_or_plot_is_not_found(dl19: Client) -> None:
    assert dl19.get("/lists/nothing").status == 404
    assert dl19.get("/lists/verify", query="no such").status in (400, 404)
    assert dl19.get("/lists/missing", by="guessing").status == 400
    assert dl19.get("/plots/nothing.svg").status == 404
    assert dl19.get("/plots/leaderboard.svg", by="9").status == 404
    assert dl19.get("/plots/leaderboard.svg", theme="paper").status == 400
    assert dl19.get("/plots/leaderboard.png", theme="page").status == 400


# ---- history -------------------------------------------------------------------------------------


def decide(path: Path, author: str, rating: int, reason: str = "") -> tuple[str, int]:
    with exampp.Collection(path) as collection:
        item = collection.grades().gradebook.queries[0].item_ids[0]
        made = collection.grades().decisions.decide(
            "q1", item, "p1", rating, author=author, reason=reason
        )
    return item, made.number


def test_decisions_are_listed_and_can_be_taken_back_by_who_made_them(
    path: Path, client: Client
) -> None:
    _, first = decide(path, "ada", 3)
    _, second = decide(path, "ada", 5, "says so\n<b>loudly</b>")
    _, third = decide(path, "grace", 1)
    page = client.get("/history").text
    assert "says so\n&lt;b&gt;loudly&lt;/b&gt;" in page
    undoable = re.findall(r'name="number" value="(\d+)"', page)
    assert undoable == [str(second)]  # the first was replaced, the third is not ada's
    assert client.post("/history/undo", {"number": str(second)}, what="decisions").status == 303
    with exampp.Collection(path) as collection:
        last = collection.decisions.list()[-1].decision
    assert (last.author, last.rating) == ("ada", 3)
    for refused in (first, third, 99, f"{third},{second}"):
        answer = client.post("/history/undo", {"number": str(refused)}, what="decisions")
        assert answer.status == 409
        assert "Undo failed" in answer.text
    assert "says so" not in client.get("/history", author="grace").text


def test_edits_of_the_bank_are_listed_and_can_be_undone(path: Path, client: Client) -> None:
    with exampp.Collection(path) as collection:
        item = collection.grades().gradebook.queries[0].item_ids[0]
        collection.bank().edit("reword", item, "A better question?", query_id="q1", author="grace")
        number = int(str(collection.bank().log().rows[-1][0]))
    unknown = client.get("/history", what="edits", bank="none")
    assert (unknown.status, "has no bank" in unknown.text) == (400, True)
    page = client.get("/history", what="edits").text
    assert "A better question?" in page
    assert 'aria-label="Banks"' not in page
    with exampp.Collection(path) as collection:
        collection.add(bank=[{"query_id": "q1", "nugget": "Air scatters blue."}])
        assert [row[0] for row in collection.banks().rows] == ["main", "main"]
    # two kinds of one name are one bank
    assert 'aria-label="Banks"' not in client.get("/history", what="edits").text
    assert client.post("/history/undo", {"number": str(number)}, what="edits").status == 303
    with exampp.Collection(path) as collection:
        last = collection.bank().log().rows[-1]
        assert (last[2], last[3]) == ("ada", "undo")
        assert "What does air scatter?" in str(last[6])


def test_many_edits_at_once_are_one_entry(dl19: Client) -> None:
    page = text_of(dl19.get("/history", what="edits").text)
    assert "430 items at once" in page
    assert "1\u2013430" in page


# ---- exports -------------------------------------------------------------------------------------


def test_every_export_can_be_taken_away(path: Path, client: Client) -> None:
    decide(path, "ada", 5)
    page = client.get("/export").text
    files = re.findall(r'href="(/export/[^"]+)"', page)
    assert len(files) > 10
    for file in files:
        answer = client.get(file)
        if "triplets" in file or "training-set" in file:
            # the small exam has too few passages
            assert "no query has a positive passage and a hard negative" in text_of(answer.text)
            continue
        assert answer.status == 200, file
        assert answer.body, file
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="my-{file.rpartition("/")[2].partition("?")[0]}"'
        )


def test_before_grading_no_page_is_saved_as_a_file(tmp_path: Path) -> None:
    exams.make(tmp_path).close()
    with live.visiting(tmp_path / "my.exam") as client:
        for file in re.findall(r'href="(/export/[^"]+)"', client.get("/export").text):
            assert "content-disposition" in client.get(file).headers, file
        for file in ("/export/leaderboard.json", "/export/best.qrels", "/plots/leaderboard.svg"):
            assert client.get(file).status == 404
        assert client.get("/plots").status == 200


def test_exports_hold_what_the_collection_holds(path: Path, client: Client, tmp_path: Path) -> None:
    decide(path, "ada", 5)
    with exampp.Collection(path) as collection:
        collection.grades().write_qrels(tmp_path / "own.qrels")
    own = (tmp_path / "own.qrels").read_bytes()
    assert client.get("/export/best.qrels").body == own
    with exampp.Collection(path) as collection:
        evaluated = collection.grades()
        # of the whole gradebook, as `exampp evaluate --qrels` has it
        write_exam_qrels(evaluated.gradebook, tmp_path / "evaluated.qrels")
    assert (tmp_path / "evaluated.qrels").read_bytes() == own
    assert "What does air scatter?" in client.get("/export/bank.csv").text
    packed = gzip.decompress(client.get("/export/graded.jsonl.gz").body)
    assert b"Aligned electron spins" in packed
    assert "ada" in client.get("/export/decisions.tsv").text
    # a folder is sent as an archive
    with zipfile.ZipFile(io.BytesIO(client.get("/export/data-set.zip").body)) as archive:
        assert "data-set/croissant.json" in archive.namelist()
    with zipfile.ZipFile(io.BytesIO(client.get("/export/every-eval-ever.zip").body)) as archive:
        assert sum(name.endswith(".json") for name in archive.namelist()) == 2


def test_an_export_leaves_nothing_behind(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "files"))
    before = set((tmp_path / "files").iterdir())
    assert client.get("/export/bank.csv").status == 200
    # the folder goes when all has been sent
    wait_for(lambda: set((tmp_path / "files").iterdir()) == before)


# ---- plots ---------------------------------------------------------------------------------------


def test_every_plot_is_also_a_file(client: Client) -> None:
    for name in ("leaderboard", "heatmap", "grades"):
        assert f'src="/plots/{name}.svg' in client.get("/plots").text
        assert len(list(csv.reader(io.StringIO(client.get(f"/plots/{name}.csv").text)))) > 1
    svg = client.get("/plots/heatmap.svg", theme="dark")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert svg.text.startswith("<svg")
    assert "<script" not in svg.text
    assert client.get("/plots/grades.png").body.startswith(b"\x89PNG")
    assert json.loads(client.get("/plots/grades.json").text)["$schema"]


def test_lists_mean_by_default_what_the_terminal_means(dl19: Client, dl19_exam: Path) -> None:
    with exampp.Collection(dl19_exam) as collection:
        for name, thing, least in (("missing", "relevant passage", 3), ("spurious", "item", 4)):
            # the terminal explains every missing passage, which takes long for all queries
            query = "183378"
            rows = collection.grades().review(name, min_rating=least, query_id=query).rows
            page = dl19.get(f"/lists/{name}", min_rating=str(least), query=query).text
            assert count(page, thing) == len(rows) > 1
    assert 'name="min_relevant" value="2"' in dl19.get("/lists/missing").text


def other_graders(path: Path) -> None:
    """A grader of the query itself that finds all relevant, and one that extracts answers."""
    with exampp.Collection(path) as collection:
        direct = ScriptedGrader("2", name="direct")
        collection.grade(direct, prompt="thomas", depth=20)
        collection.grade(
            ScriptedGrader("the blue colour", name="reader"), prompt="question-answering", depth=20
        )


def test_grades_of_the_query_itself_tell_relevance(client: Client, path: Path) -> None:
    other_graders(path)
    with exampp.Collection(path) as collection:
        grades = collection.grades(prompt="question-self-rating")
        rows = grades.review("missing", by="graders", min_rating=5).rows
    assert rows
    page = client.get("/lists/missing", by="graders", min_rating="5").text
    assert count(page, "relevant passage") == len(rows)


def test_extracted_answers_stand_beside_the_ratings(client: Client, path: Path) -> None:
    other_graders(path)
    assert "the blue colour" in client.get("/lists/grid", query="q1").text
    assert "the blue colour" in client.get("/lists/verify", query="q1").text


def test_the_colour_of_a_verdict_is_that_of_the_scale(path: Path) -> None:
    other_graders(path)
    with live.visiting(path, prompt="question-answering") as client:
        for page in ("/lists/grid?query=q1", "/lists/verify?query=q1"):
            assert '<b class="grade r1">1</b>' not in client.get(page).text
    assert rating_shade(1, 0, 1) == 5


def test_a_proposed_item_is_in_the_form_and_saved_as_an_edit(path: Path, client: Client) -> None:
    page = client.get("/bank", query="q1", new="Light is <scattered>.")
    assert "Light is &lt;scattered&gt;." in page.text
    with exampp.Collection(path) as collection:
        before = len(collection.bank().items("q1"))
    form = {"new-text": "Light is scattered.", "new-weight": "1"}
    saved = client.post("/bank/edit", form, query="q1")
    assert saved.status == 303
    with exampp.Collection(path) as collection:
        assert len(collection.bank().items("q1")) == before + 1


def test_missing_passages_are_those_of_python(dl19: Client, dl19_exam: Path) -> None:
    with exampp.Collection(dl19_exam) as collection:
        grades = collection.grades()
        wanted = grades.missing(["1037798"], grades.criteria(), None)
    page = dl19.get("/lists/missing", query="1037798").text
    for one in wanted:
        assert (one.passage.passage_id in page) is not bool(one.same_as)
        assert not one.kind or one.kind.capitalize() in page


def test_spurious_items_are_listed_by_advice(dl19: Client, dl19_exam: Path) -> None:
    with exampp.Collection(dl19_exam) as collection:
        grades = collection.grades()
        entries = grades.oversight(grades.criteria()).spurious
    for advice in ("reword or retire", "judge the grades", "cannot tell yet"):
        of_advice = [one for one in entries if one.advice == advice]
        page = dl19.get("/lists/spurious", advice=advice).text
        assert count(page, "item") == len(of_advice)
        assert of_advice[0].item.text in text_of(page)
    assert count(dl19.get("/lists/spurious", advice="nonsense").text, "item") == len(entries)


def test_missing_passages_of_one_kind(dl19: Client, dl19_exam: Path) -> None:
    with exampp.Collection(dl19_exam) as collection:
        grades = collection.grades()
        (query,) = ["1037798"]
        wanted = grades.missing([query], grades.criteria(), None)
    kinds = {one.kind for one in wanted}
    for kind in kinds:
        page = dl19.get("/lists/missing", query=query, kind=kind).text
        for one in wanted:
            shown = one.kind == kind and not one.same_as
            assert (one.passage.passage_id in page) is shown


@pytest.mark.parametrize(
    ("by", "meaning"),
    [
        ("graders", "passages that most graders of the query itself rate 2 or higher"),
        ("decisions", "passages in which people or the grader found an answer are relevant"),
    ],
)
def test_the_page_explains_relevance_as_the_terminal_does(
    client: Client, by: str, meaning: str
) -> None:
    page = client.get("/lists/spurious", by=by).text
    assert f"By {by} (2 queries): {meaning}" in text_of(page)


def test_grades_for_a_measure_are_not_a_list(tmp_path: Path) -> None:
    exams.make(tmp_path).close()
    path = tmp_path / "my.exam"
    with exampp.Collection(path) as collection:
        collection.grade(ScriptedGrader(live.rate), measures=["Cover@2"], min_rating=1)
    with live.visiting(path) as client:
        for name in ("missing", "spurious"):
            answer = client.get(f"/lists/{name}")
            assert answer.status == 400
            assert "need the grades of all items. Only cells that Cover@2" in text_of(answer.text)
        for page in (
            "/",
            "/lists/verify",
            "/lists/grid",
            "/items",
            "/trust/bias",
        ):
            assert client.get(page).status == 200, page
        assert "Fill gaps" not in client.get("/").text


def test_without_known_relevance_no_list_is_called_empty(tmp_path: Path) -> None:
    with exampp.create(tmp_path / "rag.exam") as collection:
        collection.add(
            [{"question": "Why?", "system": "a", "answer": "Air scatters blue light."}],
            bank=[{"query": "Why?", "question": "What does air scatter?"}],
        )
        collection.grade("draft")
        for name in ("missing", "spurious"):
            table = collection.grades().review(name)
            assert table.verdict.startswith("Nothing can be listed: it is unknown")
    with live.visiting(tmp_path / "rag.exam") as client:
        for name in ("missing", "spurious"):
            page = client.get(f"/lists/{name}").text
            assert "Nothing can be listed: it is unknown" in page
            assert "Every relevant passage" not in page
