"""Folders of runs, of one role and of BEIR, and files that bring the texts of their queries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from support import exams
from support.commands import Commands

import exampp
from exampp.formats.lines import system_of

P = exams.PASSAGES


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(content)
    return path


def runs_of(collection: exampp.Collection) -> list[str]:
    out = collection.path.parent / "out.run"
    collection.export(out, "runs")
    return sorted(out.read_text().splitlines())


RUN = "q1 Q0 p1 1 2.0 tag\nq2 Q0 p3 1 2.0 tag\n"


@pytest.mark.parametrize("said", [True, False])
def test_a_folder_of_runs_names_its_systems(
    tmp_path: Path, exampp_command: Commands, said: bool
) -> None:
    """All of them have the same tag, as runs of one program do."""
    exams.make(tmp_path).close()
    folder = tmp_path / "runs"
    written(folder / "a.v1.run", RUN)
    (folder / "input.b_p.gz").write_bytes(gzip.compress(RUN.encode()))
    written(folder / "c.json", json.dumps({"q1": {"p2": 0.5, "p1": 1.5}}))
    written(folder / "d.tsv", "q1\tp1\t1\nq1\tp2\t2\n" if said else RUN)
    ran = exampp_command(
        "import", tmp_path / "my.exam", *(["--runs"] if said else []), folder, "--update"
    )
    assert ran.code == 0, ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        found = [line for line in runs_of(collection) if line.split()[5] in ("a.v1", "b_p", "c")]
        assert found == [
            "q1 Q0 p1 1 1.5 c",
            "q1 Q0 p1 1 2.0 a.v1",
            "q1 Q0 p1 1 2.0 b_p",
            "q1 Q0 p2 2 0.5 c",
            "q2 Q0 p3 1 2.0 a.v1",
            "q2 Q0 p3 1 2.0 b_p",
        ]
        of_d = [line for line in runs_of(collection) if line.endswith(" d")]
        assert of_d == (
            ["q1 Q0 p1 1 1.0 d", "q1 Q0 p2 2 0.5 d"]
            if said
            else ["q1 Q0 p1 1 2.0 d", "q2 Q0 p3 1 2.0 d"]
        )


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("bm25.run", "bm25"),
        ("bm25.v2.run.gz", "bm25.v2"),
        ("input.p_bert.gz", "p_bert"),
        ("input.p_bert", "p_bert"),
        ("run.res", "run"),
        (".run", ".run"),
        ("plain", "plain"),
    ],
)
def test_what_a_run_file_is_named_after(name: str, system: str) -> None:
    assert system_of(Path(name)) == system


def test_folders_of_runs_that_are_refused(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        folder = tmp_path / "runs"
        written(folder / "a.run", RUN)
        written(folder / "a.txt", RUN)
        with pytest.raises(exampp.InputError, match=r"a\.txt: two files .* system, a\.run too"):
            collection.import_files(runs=[folder])
        (folder / "a.txt").unlink()
        written(folder / "b.run", exams.RUN)
        with pytest.raises(exampp.InputError, match="several systems, alpha and beta, but"):
            collection.import_files(runs=[folder])
        (tmp_path / "empty").mkdir()
        with pytest.raises(exampp.InputError, match="empty: the folder holds no files"):
            collection.import_files(runs=[tmp_path / "empty"])


def test_text_files_that_hold_runs_are_no_responses(tmp_path: Path) -> None:
    with exams.make(tmp_path) as collection:
        written(tmp_path / "out" / "x.txt", RUN)
        report = collection.import_files(tmp_path / "out", system="mine")
        assert [one.kind for one in report.files] == ["run"]
        assert "q1 Q0 p1 1 2.0 x" in runs_of(collection)


def test_a_folder_of_beir(tmp_path: Path, exampp_command: Commands) -> None:
    folder = tmp_path / "tiny"
    queries = {**exams.QUERIES, "q9": "of the training split"}
    rows = [json.dumps({"_id": k, "text": v, "metadata": {}}) for k, v in queries.items()]
    written(folder / "queries.jsonl", "\n".join(rows))
    rows = [json.dumps({"_id": k, "title": f"T {k}", "text": v}) for k, v in P.items()]
    written(folder / "corpus.jsonl", "\n".join(rows))
    head = "query-id\tcorpus-id\tscore\n"
    written(folder / "qrels" / "test.tsv", f"{head}q1\tp1\t2\nq2\tp3\t1\n")
    written(folder / "qrels" / "train.tsv", f"{head}q9\tp4\t1\n")
    run = written(tmp_path / "bm25.run", "q1 Q0 p2 1 2.0 bm25\n")
    ran = exampp_command("import", tmp_path / "my.exam", folder, run)
    assert ran.code == 0, ran.err
    assert f"{folder}: beir, 4 records" in ran.out
    assert "train.tsv beside it are left aside; --qrels takes them" in ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        counts = {row[0]: row[1] for row in collection.contents().rows}
        # of the corpus what is judged or ranked, and of the queries what the split judges
        assert (counts["queries"], counts["passages"], counts["judgments"]) == (2, 3, 2)
    written(folder / "qrels" / "dev.tsv", head)
    (folder / "qrels" / "test.tsv").unlink()
    ran = exampp_command("import", tmp_path / "my.exam", folder)
    assert ran.code == 2
    assert "which of the qrels? There are dev.tsv, train.tsv" in ran.err


def test_candidates_bring_the_texts_of_their_queries(tmp_path: Path) -> None:
    def line(query: str, text: str, passage: str) -> str:
        found = [{"docid": passage, "score": 1.0, "doc": {"contents": P[passage]}}]
        return json.dumps({"query": {"qid": query, "text": text}, "candidates": found}) + "\n"

    path = written(tmp_path / "bm25.jsonl", line("q1", "other words", "p1") + line("q8", "?", "p2"))
    with exams.make(tmp_path) as collection:
        collection.import_files(path)
        collection.export(tmp_path / "queries.jsonl", "queries")
        rows = map(json.loads, (tmp_path / "queries.jsonl").read_text().splitlines())
        # what is known stays
        assert {row["query_id"]: row["text"] for row in rows} == {**exams.QUERIES, "q8": "?"}
        assert collection.import_files(path).changes == 0


# ---- what responses cite -------------------------------------------------------------------------


def report(run: str, *cited: list[str]) -> str:
    """A report as AutoJudge has it, its documents beside it."""
    return json.dumps(
        {
            "metadata": {"team_id": "t", "run_id": run, "topic_id": "q1"},
            "responses": [{"text": f"Part {n}.", "citations": c} for n, c in enumerate(cited)],
            "documents": {
                "D1": {"id": "D1", "text": P["p1"], "title": "Sky", "url": None},
                "D2": {"id": "D2", "text": P["p2"], "title": None},
                "D3": {"id": "D3", "text": "Nobody cites me."},
            },
        }
    )


def test_what_reports_cite_is_a_system_of_its_own(tmp_path: Path, exampp_command: Commands) -> None:
    exams.make(tmp_path).close()
    path = written(
        tmp_path / "run1.jsonl",
        report("run1", ["D2"], ["D1", "D2"]) + "\n" + report("run2", []) + "\n",
    )
    ran = exampp_command("import", tmp_path / "my.exam", path, "--cited")
    assert ran.code == 0, ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        cited = [line for line in runs_of(collection) if line.endswith(":cited")]
        assert cited == ["q1 Q0 D1 2 0.5 run1:cited", "q1 Q0 D2 1 1.0 run1:cited"]
        collection.export(tmp_path / "passages.jsonl", "passages")
        rows = map(json.loads, (tmp_path / "passages.jsonl").read_text().splitlines())
        texts = {row["passage_id"]: (row.get("title"), row["text"]) for row in rows}
        assert (texts["D1"], texts["D2"]) == (("Sky", P["p1"]), (None, P["p2"]))
        assert "D3" not in texts
        assert collection.import_files(path, cited=True).changes == 0
        # the texts of others are looked up, as those of runs are
        other = written(tmp_path / "other.jsonl", report("run3", ["p3", "lost"]))
        with pytest.raises(exampp.InputError, match="passage 'lost' is not in the collection"):
            collection.import_files(other, cited=True)
        collection.import_files(other)
        assert not any(line.endswith("run3:cited") for line in runs_of(collection))


def test_of_two_texts_of_a_cited_document_the_known_one_stays(
    tmp_path: Path, exampp_command: Commands
) -> None:
    exams.make(tmp_path).close()
    one = written(tmp_path / "one.jsonl", report("run1", ["D1", "D2"]) + "\n")
    other = written(
        tmp_path / "other.jsonl", report("run2", ["D1", "D2"]).replace(P["p1"], "Shorter.") + "\n"
    )
    ran = exampp_command("import", tmp_path / "my.exam", one, other, "--cited")
    assert ran.code == 0, ran.err
    said = f"{other}: known texts of documents stay, of these another is said: D1"
    assert said in ran.err
    with exampp.Collection(tmp_path / "my.exam") as collection:
        collection.grade("draft")
        corpus = written(tmp_path / "corpus.jsonl", '{"id": "D1", "text": "Of the corpus."}\n')
        collection.import_files(one, cited=True, corpus=str(corpus))
        # later, too, where the first text is graded
        assert not collection.import_files(other, cited=True).changes
        collection.export(tmp_path / "passages.jsonl", "passages")
        assert P["p1"] in (tmp_path / "passages.jsonl").read_text()
        assert len([line for line in runs_of(collection) if line.endswith("run2:cited")]) == 2
