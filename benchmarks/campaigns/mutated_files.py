"""Damages a valid file of every format that exampp reads, and reads it: a sentence, or success.

    python benchmarks/campaigns/mutated_files.py [--count 100000] [--seed 1]

Any exception but exampp's own, a collection that is not as it was, a file left behind, and a case
that takes more than `SECONDS` of CPU time are findings: they are printed with the seed of the case,
which `--seed N --count 1` repeats. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import zstandard

import exampp
from exampp.errors import ExamError
from exampp.formats import leaderboards
from exampp.prompts import load_generation
from exampp.prompts import load_grading_prompt as load_prompt

SECONDS = 5.0
MEBIBYTES = 1400
"""Memory that reading may take beyond the earlier peak of the process."""
Read = Callable[[exampp.Collection, Path], object]


class Sample(NamedTuple):
    """A valid file: its name, what it holds, and how it is read."""

    name: str
    content: bytes
    read: Read


class Finding(NamedTuple):
    """A fault: input, place and text."""

    seed: int
    sample: str
    what: str


# ---- samples -------------------------------------------------------------------------------------

QUERIES = {"q1": "why is the sky blue", "q2": "how do magnets work"}
PASSAGES = {
    "p1": "Air scatters blue light more than red light.",
    "p2": "At sunset the light crosses more air.",
    "p3": "Aligned electron spins make a magnet.",
}
QUESTIONS = {"q1": ["What does air scatter?", "Why are sunsets red?"], "q2": ["What is magnetic?"]}
RUN = "q1 Q0 p1 1 2.0 alpha\nq1 Q0 p2 2 1.0 alpha\nq2 Q0 p3 1 2.0 alpha\nq1 Q0 p2 1 1.0 beta\n"
QUESTION = {
    "beingAsked": {"processedText": "Geologists study"},
    "answerChoices": {"a": {"processedText": "rocks"}, "b": {"processedText": "oceans"}},
    "correctAnswer": {"processedText": "a"},
}
LESSON = {
    "globalID": "L_1",
    "lessonName": "earth science",
    "questions": {"nonDiagramQuestions": {"NDQ_1": QUESTION}, "diagramQuestions": {}},
}
ARGUE = {
    "query_id": "q1",
    "title_query": "machu picchu",
    "format_version": "v3",
    "nugget_bank": {
        "Where is it?": {
            "question": "Where is it?",
            "question_id": "1",
            "query_id": "q1",
            "aggregator_type": "AND",
            "importance": "okay",
            "answers": {"in Peru": {"answer": "in Peru"}},
            "sub_nuggets": [{"question": "Which country?", "answers": [{"answer": "Peru"}]}],
        }
    },
    "claim_bank": {"It is old.": {"claim": "It is old.", "query_id": "q1", "importance": 3}},
}
NUGGETIZER = {
    "query": "why is the sky blue",
    "qid": "q1",
    "nuggets": [
        {"text": "air scatters", "importance": "vital"},
        {"text": "red", "importance": "okay"},
    ],
}
RESPONSE = {
    "topic_id": "q1",
    "run_id": "gamma",
    "answer": [{"text": "Air scatters light.", "citations": [0]}, {"text": "So it is."}],
    "references": ["p1"],
}
CANDIDATES = {
    "query": {"qid": "q1", "text": "why"},
    "candidates": [{"docid": "p1", "score": 2.5, "doc": {"title": "T", "contents": "Air."}}],
}
RAGTIME = {
    "metadata": {"team_id": "t", "topic_id": "q1", "run_id": "r"},
    "nugget_bank": [
        {
            "question": "Where is it?",
            "aggregator_type": "OR",
            "answers": [{"answer": "in Peru", "references": ["d1"]}],
        }
    ],
}
ASSIGNED = {
    **NUGGETIZER,
    "answer_text": "Air scatters blue light.",
    "response_length": 4,
    "run_id": "delta",
    "nuggets": [
        {"text": "air scatters", "importance": "vital", "assignment": "support"},
        {"text": "red", "importance": "okay", "assignment": "partial_support"},
        {"text": "sea", "importance": "okay", "assignment": "not_support"},
    ],
}
REPORT = {
    "metadata": {"team_id": "t", "run_id": "epsilon", "topic_id": "q1", "narrative": "why blue"},
    "responses": [{"text": "Air scatters light.", "citations": {"d1": 0.9}}, {"text": "So."}],
    "documents": {"d1": {"id": "d1", "text": "Air.", "title": "T", "url": None}},
}
REQUEST = {"request_id": "q3", "title": "leaves", "problem_statement": "why red", "background": "a"}
QUESTION_LINE = {"query_id": "q1", "query_text": "sky", "qid": "q1/1", "question": "Why blue?"}
DIRECT = {"correctAnswered": True, "answer": "2", "llm": "m", "self_ratings": 2}
GRADED = [
    "q1",
    [
        {
            "paragraph_id": "p1",
            "text": PASSAGES["p1"],
            "paragraph_data": {
                "judgments": [{"paragraphId": "p1", "query": "q1", "relevance": 2}],
                "rankings": [{"method": "a", "paragraphId": "p1", "rank": 0, "score": 1.5}],
            },
            "exam_grades": None,
            "grades": [{**DIRECT, "prompt_info": {"prompt_class": "Thomas"}}],
        }
    ],
]
TREC_EVAL = "runid\tall\ta\nmap\tq1\t.5\nmap\tall\t0.5\n"
BOARDS = {
    "trec_eval": TREC_EVAL + TREC_EVAL.replace("a\nmap", "b\nmap"),
    "ir_measures": "run_id\tquery_id\tmeasure\tvalue\na\tq1\tAP\t0.5\nb\tq1\tAP\t1\n",
    "autojudge": "a\tq1\tAP\t0.5\na\tall\tAP\t0.5\nb\tq1\tAP\t1\nb\tall\tAP\t1\n",
    "tot": "a AP q1 0.5\na AP all 0.5\nb AP q1 1\nb AP all 1\n",
    "jsonl": '{"run_id": "a", "topic_id": "q1", "measure": "AP", "value": 0.5}\n',
    "workbench": "method\texam\t+/-\tn-exam\t+/-\na\t0.5\t0.1\t0.6\t0.1\n_overall_\t1\t0\t1\t0\n",
    "results": '{"method": "a", "examScore": 0.5, "nExamScore": 0.6}\n',
}
"""Tables of scores as other programs write them."""
UMBRELA = {"query": QUERIES["q1"], "passage": PASSAGES["p1"], "judgment": 3, "result_status": 1}
RAGAS = {
    "user_input": "why is the sky blue",
    "retrieved_contexts": [PASSAGES["p1"], PASSAGES["p2"]],
    "retrieved_context_ids": ["p1", "2"],
    "response": "Air scatters light.",
    "reference": "air",
    "reference_contexts": [PASSAGES["p1"]],
}
PROMPTFOO = {
    "vars": {"query": "why is the sky blue", "context": "Air."},
    "promptIdx": 0,
    "prompt": {"raw": "x", "label": "x"},
    "provider": {"id": "a", "label": "b"},
    "response": {"output": "Air.", "metadata": {"context": ["Air.", "Sea."]}},
}
OBSERVATION = {
    "id": "a",
    "traceId": "t",
    "type": "SPAN",
    "startTime": "2026-01-01T00:00:00Z",
    "parentObservationId": None,
    "input": {"question": "why?"},
    "output": "So.",
}
RETRIEVED = {
    **OBSERVATION,
    "id": "b",
    "type": "RETRIEVER",
    "parentObservationId": "a",
    "output": '[{"page_content": "Air.", "metadata": {"source": "p1"}}, "Sea."]',
}
SPANS = (
    {
        "name": "x",
        "context": {"trace_id": "t"},
        "span_kind": "CHAIN",
        "parent_id": None,
        "attributes": {"input": {"value": "why?"}, "output.value": "So."},
    },
    {
        "name": "y",
        "context": {"trace_id": "t"},
        "span_kind": "RETRIEVER",
        "parent_id": "a",
        "attributes": {"retrieval.documents.0.document.content": "Air."},
    },
)
_AI = "ai.observability"
EVENTS = (
    {
        "record_attributes": {
            f"{_AI}.span_type": "record_root",
            f"{_AI}.record_id": "r",
            f"{_AI}.record_root.input": "why?",
            f"{_AI}.record_root.output": "So.",
        },
        "resource_attributes": {f"{_AI}.app_name": "a"},
        "trace": {"trace_id": "t", "parent_id": "", "span_id": "s"},
    },
    {
        "record_attributes": {
            f"{_AI}.span_type": "retrieval",
            f"{_AI}.record_id": "r",
            f"{_AI}.retrieval.retrieved_contexts": ["Air.", "Sea."],
        },
        "resource_attributes": {f"{_AI}.app_name": "a"},
        "trace": {"trace_id": "t", "parent_id": "s", "span_id": "u"},
    },
)


def _import(collection: exampp.Collection, path: Path) -> object:
    return collection.import_files(path, dry_run=True, unknown_passages="keep")


def _skipping(collection: exampp.Collection, path: Path) -> object:
    return collection.import_files(path, dry_run=True, unknown_passages="keep", on_error="skip")


def _citing(collection: exampp.Collection, path: Path) -> object:
    return collection.import_files(path, dry_run=True, unknown_passages="keep", cited=True)


def _board(_: exampp.Collection, path: Path) -> object:
    return leaderboards.read(path), leaderboards.read_scores(path)


def _graded(_: exampp.Collection, path: Path) -> object:
    with exampp.open(path) as opened:
        return opened.grades().evaluate(["Cover@20"])


def _collection(_: exampp.Collection, path: Path) -> object:
    with exampp.Collection(path) as opened:
        opened.status(), opened.bank().log(), opened.grades().evaluate(["Cover@20", "nDCG@10"])
        list(opened.grades().dossiers())
        return opened.export(path.with_name("out.jsonl.gz"))


def _lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _tables(head: str, separator: str) -> bytes:
    rows = [f"{q}{separator}{text}\n" for q, texts in QUESTIONS.items() for text in texts]
    return (head + "".join(rows)).encode()


def _car(kind: int) -> bytes:
    import cbor2

    page = [0, "Earth", b"enwiki:Earth", [[0, "Rocks", b"Rocks", [[0, "Old", b"Old", []]]]]]
    paragraph = [0, b"a1", [[0, "Geology of "], [1, [0, "A", [], b"enwiki:A", "rocks"]]]]
    item = cbor2.dumps(page if kind == 1 else paragraph)
    return cbor2.dumps(["CAR", [kind], [["x", "y"]]]) + b"\x9f" + item + b"\xff"


def _parquet(row: Mapping[str, object]) -> bytes:
    import polars

    stream = io.BytesIO()
    polars.DataFrame([row]).write_parquet(stream)
    return stream.getvalue()


def _made() -> dict[str, bytes]:
    """Files of the formats that are written by hand or by others."""
    return {
        "queries.json": json.dumps(QUERIES).encode(),
        "queries.jsonl": _lines(*({"query_id": q, "text": t} for q, t in QUERIES.items())),
        "queries.tsv": "".join(f"{q}\t{t}\n" for q, t in QUERIES.items()).encode(),
        "passages.jsonl": _lines(
            *({"id": p, "text": t, "title": "T"} for p, t in PASSAGES.items())
        ),
        "passages.tsv": "".join(f"{p}\t{t}\tT\n" for p, t in PASSAGES.items()).encode(),
        "bank.csv": _tables("query_id,question\n", ","),
        "bank.tsv": _tables("query_id\tquestion\n", "\t"),
        "tqa.json": json.dumps([LESSON]).encode(),
        "nuggetizer.jsonl": _lines(NUGGETIZER),
        "argue.json": json.dumps(ARGUE, indent=1).encode(),
        "argue.jsonl": _lines(ARGUE),
        "nuggets.txt": b"q1\t1\tvital\tair scatters\nq2\t1\tokay\tspins\n",
        "responses.jsonl": _lines(RESPONSE, {**RESPONSE, "topic_id": "q2"}),
        "candidates.jsonl": _lines(CANDIDATES),
        "systems.run": RUN.encode(),
        "requests.jsonl": _lines(REQUEST),
        "questions.jsonl": _lines(QUESTION_LINE, {**QUESTION_LINE, "qid": "q1/2"}),
        "ragtime.jsonl": _lines(RAGTIME),
        "assignments.jsonl": _lines(ASSIGNED, {**ASSIGNED, "run_id": "zeta"}),
        "reports.jsonl": _lines(REPORT, {**REPORT, "metadata": {"run_id": "e", "topic_id": "q2"}}),
        "direct.jsonl": _lines(GRADED),
        "run.json": b'{"q1": {"p1": 2.5, "p2": 1e-3}, "q2": {"p3": 7}}',
        "qrels.json": b'{"q1": {"p1": 2, "p2": 0}, "q2": {"p3": -1}}',
        "test.tsv": b"query-id\tcorpus-id\tscore\nq1\tp1\t2\nq2\tp3\t1\n",
        "msmarco.run": b"q1\tp1\t1\nq1\tp2\t2\n",
        "judgments.qrels": b"q1 0 p1 3\nq1 0 p2 1\nq2 0 p3 -1\n",
        "umbrela.jsonl": _lines(UMBRELA, {**UMBRELA, "passage": "x", "result_status": 0}),
        "ragas.jsonl": _lines(RAGAS, {**RAGAS, "user_input": "how?"}),
        "ragas.csv": b"user_input,retrieved_contexts,response\nwhy?,\"['Air.', 'Sea.']\",So.\n",
        "ragas.parquet": _parquet(RAGAS),
        "corpus.parquet": _parquet({"_id": "p1", "title": "T", "text": "Air."}),
        "deepeval.json": json.dumps([{"input": "why?", "retrieval_context": ["Air."]}]).encode(),
        "promptfoo.json": json.dumps({"results": {"results": [PROMPTFOO]}}, indent=1).encode(),
        "promptfoo.jsonl": _lines(PROMPTFOO, {**PROMPTFOO, "provider": {"id": "c"}}),
        "langfuse.jsonl": _lines(OBSERVATION, RETRIEVED),
        "langfuse.json": json.dumps({"observations": [OBSERVATION, RETRIEVED]}).encode(),
        "spans.jsonl": _lines(*SPANS),
        "events.jsonl": _lines(*EVENTS),
        "own.csv": b"Question;Answer;Context 1;Context 2\nwhy?;So.;Air.;Sea.\n",
        "topics.cbor": _car(1),
        "paragraphs.cbor": _car(2),
    }


def _exported(collection: exampp.Collection, folder: Path) -> dict[str, bytes]:
    """Files that exampp itself writes."""
    names = {
        "graded.jsonl": "workbench",
        "workbench-bank.jsonl": "bank",
        "decisions.tsv": "decisions",
    }
    for name, kind in names.items():
        collection.export(folder / name, kind)
    collection.bank().split(0.5, seed=1, author="ann")
    collection.bank().export(folder / "sealed.jsonl", part="sealed")
    return {name: (folder / name).read_bytes() for name in (*names, "sealed.jsonl")}


def build(folder: Path) -> tuple[Path, dict[str, Sample]]:
    """A small graded collection, and a sample of every format."""
    made = _made()
    for name in ("queries.json", "passages.jsonl", "bank.csv", "systems.run", "judgments.qrels"):
        (folder / name).write_bytes(made[name])
    path = folder / "my.exam"
    with exampp.Collection.create(path) as collection:
        collection.import_files(
            *(folder / name for name in ("queries.json", "passages.jsonl", "bank.csv")),
            *(folder / name for name in ("systems.run", "judgments.qrels")),
        )
        collection.grade("draft")
        exported = _exported(collection, folder)
    samples = {name: Sample(name, content, _import) for name, content in made.items()}
    samples |= {
        name: Sample(name, content, _import)
        for name, content in exported.items()
        if "sealed" not in name
    }
    skipped = ("passages.jsonl", "systems.run", "graded.jsonl", "responses.jsonl")
    for name in (*skipped, "ragas.jsonl", "langfuse.jsonl", "promptfoo.json", "umbrela.jsonl"):
        samples[f"{name}, skipping"] = samples[name]._replace(read=_skipping)
    packed = {
        "gz": gzip.compress(exported["graded.jsonl"], mtime=0),
        "zst": zstandard.compress(RUN.encode()),
    }
    samples["graded.jsonl.gz"] = Sample("graded.jsonl.gz", packed["gz"], _import)
    samples["systems.run.zst"] = Sample("systems.run.zst", packed["zst"], _import)
    samples["graded, evaluated"] = Sample("graded.jsonl", exported["graded.jsonl"], _graded)
    samples["reports.jsonl, cited"] = samples["reports.jsonl"]._replace(read=_citing)
    samples |= {
        f"board of {name}": Sample(f"{name}.txt", content.encode(), _board)
        for name, content in BOARDS.items()
    }
    board = b'{"alpha": 1, "beta": 2}'
    others: dict[str, Sample] = {
        "leaderboard.json": Sample("leaderboard.json", board, lambda _, p: leaderboards.read(p)),
        "leaderboard.tsv": Sample(
            "l.tsv", b"system\trank\nalpha\t1\nbeta\t2\n", lambda _, p: leaderboards.read(p)
        ),
        "sealed": Sample("sealed.jsonl", exported["sealed.jsonl"], lambda c, p: c.bank().verify(p)),
        "prompt": Sample("p.toml", _bundled("catalogue"), lambda _, p: load_prompt(p)),
        "generation": Sample("g.toml", _bundled("generation"), lambda _, p: load_generation(p)),
        "collection": Sample("other.exam", path.read_bytes(), _collection),
    }
    return path, samples | others


def _bundled(folder: str) -> bytes:
    first = sorted((Path(exampp.__file__).parent / "prompts" / folder).glob("*.toml"))[0]
    return first.read_bytes().replace(b'name = "', b'name = "my-')


# ---- mutations -----------------------------------------------------------------------------------

NUMBERS = (b"1e999", b"-1", b"NaN", b"Infinity", str(10**30).encode(), b"9" * 5000, b"1.5", b"-0")
WORDS = (
    *(b"\\ud800", b"\\u0000", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\t", b",", b"\r"),
    *(b"null", b"true", b"[]", b"{}", b'""', b" ", b"[" * 3000, b'{"a":' * 3000, b"\xe2\x80\xa8"),
    *(
        b"&a *a",
        b"!!python/object:os.system x",
        b"- " * 50,
        b"\xed\xa0\x80",
        b'"',
        b"\\",
        b"\x1f\x8b",
    ),
)


def _spot(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: _spot(data, chance)]


def _drop(data: bytes, chance: random.Random) -> bytes:
    start = _spot(data, chance)
    return data[:start] + data[start + chance.choice((1, 4, 64)) :]


def _double(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted((_spot(data, chance), _spot(data, chance)))
    return data[:end] + data[start:end] + data[end:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + chance.choice(WORDS + NUMBERS) + data[at:]


def _value(data: bytes, chance: random.Random) -> bytes:
    """One number, or one string, becomes something else."""
    import re

    found = list(re.finditer(rb'"[^"\n]{0,80}"|(?<![\w.])-?\d+(?:\.\d+)?', data))
    if not found:
        return _insert(data, chance)
    one = chance.choice(found)
    return data[: one.start()] + chance.choice(NUMBERS + WORDS) + data[one.end() :]


def _swap(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def _separators(data: bytes, chance: random.Random) -> bytes:
    return data.replace(
        *chance.choice(((b"\t", b" "), (b"\n", b"\r\n"), (b",", b"\t"), (b":", b"=")))
    )


def _empty(data: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"", b"\n", b" " * len(data), b"\0" * min(len(data), 4096), b"{}", b"[]"))


MUTATIONS = (_flip, _cut, _drop, _double, _insert, _insert, _value, _value, _swap, _separators)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The data after one to three mutations; now and then nothing is left of it."""
    if chance.random() < 0.01:
        return _empty(data, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(MUTATIONS)(data or b" ", chance)
    return data


# ---- running -------------------------------------------------------------------------------------


class Campaign:
    """Reads damaged files, case by case, in one folder and beside one collection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.samples = build(folder)
        self.before = self._digest()
        self.names = {one.name for one in folder.iterdir()}
        self.outcomes: Counter[str] = Counter()
        self.most = _peak() + MEBIBYTES * 1024

    def _digest(self) -> str:
        from exampp.store.connection import connect

        opened = connect(self.path)
        dump = "\n".join(opened.iterdump())
        opened.close()
        return hashlib.sha256(dump.encode("utf-8", "replace")).hexdigest()

    def run(self, seed: int, count: int) -> list[Finding]:
        """Cases `seed` to `seed + count - 1`; what is wrong with them."""
        findings: list[Finding] = []
        with exampp.Collection(self.path) as collection:
            for case in range(seed, seed + count):
                findings += self._case(collection, case)
        if self._digest() != self.before:
            findings.append(Finding(seed, "all", "the collection is not as it was"))
        return findings

    def _case(self, collection: exampp.Collection, seed: int) -> list[Finding]:
        chance = random.Random(seed)
        name = chance.choice(sorted(self.samples))
        sample = self.samples[name]
        place = self.folder / f"case-{sample.name}"
        place.write_bytes(mutated(sample.content, chance))
        found: list[str] = []
        started = time.process_time()
        try:
            sample.read(collection, place)
            self.outcomes["read"] += 1
        except ExamError as error:
            self.outcomes["refused"] += 1
            if len(str(error)) > 2000:
                found.append(f"a message of {len(str(error))} characters")
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            found.append(
                f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            )
        if (took := time.process_time() - started) > SECONDS:
            found.append(f"took {took:.1f} s")
        if _peak() > self.most:
            found.append("took too much memory")
        for left in self.folder.glob("case-*"):
            left.unlink()
        (self.folder / "out.jsonl.gz").unlink(missing_ok=True)
        if collection.connection.in_transaction:
            found.append("a transaction was left open")
        left_over = {one.name for one in self.folder.iterdir()} - self.names
        if left_over := {one for one in left_over if not one.startswith("my.exam-")}:
            found.append(f"left behind: {sorted(left_over)[:3]}")
        return [Finding(seed, name, what[:300]) for what in found]


def _peak() -> int:
    """The most memory that this process has ever held, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(seed: int, count: int) -> tuple[list[Finding], Mapping[str, int]]:
    """Run cases in a folder of their own; findings, and how many were read and refused."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        campaign = Campaign(Path(made))
        return campaign.run(seed, count), campaign.outcomes


def main() -> None:
    """Run the campaign and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    started = time.process_time()
    findings, outcomes = run(given.seed, given.count)
    for what, seeds in _grouped(findings).items():
        print(f"{len(seeds):6}  {what}  (seeds {', '.join(map(str, seeds[:3]))})")
    took = time.process_time() - started
    print(
        f"{given.count} mutated files in {took:.0f} s: {outcomes['read']} read, "
        f"{outcomes['refused']} refused with a sentence, {len(findings)} findings"
    )
    sys.exit(bool(findings))


def _grouped(findings: list[Finding]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for one in findings:
        groups.setdefault(f"{one.sample}: {one.what}", []).append(one.seed)
    return dict(sorted(groups.items(), key=lambda pair: -len(pair[1])))


if __name__ == "__main__":
    main()
