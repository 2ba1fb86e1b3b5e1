"""Planned and actual costs of every way of grading, on a server that counts tokens.

    PYTHONPATH=tests python benchmarks/grading_costs.py [--only NAME] [--queries 6] [--intervals]

Each exam is planned with `exam.grading_costs`, then graded in every way in its own copy: one or ten
items a request, for all cells or for Cover@20, and by batches. A token is four characters for the
server, as for the plan. `limits` are the planned limits before any grade; `trial` is the estimate
after a third of the queries has grades, of all pending cells of the others.
TREC DL 2019 replays its real grades (`--data`), the other exams have drawn ones. `--intervals`
counts instead how often the limits from some queries of TREC DL 2019 hold for all others.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from support.counted_tokens import CountingBatches, Rate, drawn, server

import exampp
from exampp.demo import demo_files
from exampp.grading.batches import Batches
from exampp.grading.costs import RequestLoad, WayToGrade, _from_replays, _load, _simulated
from exampp.grading.run import UNSTORED
from exampp.grading.target import TargetCells
from exampp.records.gradebook import MISSING
from exampp.records.graders import GradingTarget
from exampp.store.cells import pending_of_query
from exampp.store.grades import StoredGrader

PRICES = {"price_read": 0.15, "price_written": 0.60}


def dl19(path: Path, data: Path, queries: int) -> Rate:
    """Some queries of TREC DL 2019, with the grades of the papers' model."""
    whole = path.with_name("whole.exam")
    ratings: dict[tuple[str, str], int] = {}
    with exampp.create(whole) as exam:
        exam.import_files(data / "graded.jsonl.gz", data / "questions.jsonl.gz")
        book = exam.grades().gradebook
        first = {query.query_id for query in book.queries[:queries]}
        text = dict(
            exam.connection.execute(
                "SELECT passage_id, text FROM passage JOIN passage_version USING (version)"
            )
        )
        items = exam.connection.execute(
            "SELECT q.query_id, i.item_id, v.text FROM item i JOIN query q USING (query) "
            "JOIN item_version v ON v.version = i.version WHERE i.kind = 'question'"
        ).fetchall()
        word = {item: text for _, item, text in items}
        rows = exam.connection.execute(
            "SELECT q.query_id, p.passage_id, s.name, r.rank FROM ranking r JOIN query q USING "
            "(query) JOIN passage p USING (passage) JOIN system s USING (system)"
        ).fetchall()
        queries_text = dict(exam.connection.execute("SELECT query_id, text FROM query"))
    for query in book.queries:
        for (row, column), rating in np.ndenumerate(query.ratings):
            if rating != MISSING and query.query_id in first:
                key = word[query.item_ids[column]], text[query.passage_ids[row]]
                ratings[key] = int(rating)
    with exampp.create(path) as exam:
        exam.add(
            queries={one: queries_text[one] for one in first},
            passages={p: text[p] for q, p, _, _ in rows if q in first},
            runs=[
                {"query_id": q, "passage_id": p, "system": s, "score": -r}
                for q, p, s, r in rows
                if q in first
            ],
            bank=[
                {"query_id": query, "item_id": item, "question": question}
                for query, item, question in items
                if query in first
            ],
        )
    whole.unlink()
    return lambda item, passage: ratings[item, passage]


def made(
    path: Path, queries: int, systems: int, items: int, words: Callable[[Any], int], kind: str
) -> Rate:
    """An exam of drawn texts; with one passage a system it is one of generated answers."""
    random = np.random.default_rng(5)
    depth = 1 if kind == "nugget" else 20
    passages, runs = dict[str, str](), dict[str, dict[str, list[str]]]()
    for query in range(queries):
        pool = [f"q{query}-p{n}" for n in range(systems if depth == 1 else 60)]
        for one in pool:
            text = random.choice(WORDS, max(3, words(random)))
            passages[one] = " ".join([one, *text])
        for system in range(systems):
            ranked = [pool[system]] if depth == 1 else list(random.choice(pool, depth, False))
            runs.setdefault(f"s{system}", {})[f"q{query}"] = ranked
    with exampp.create(path) as exam:
        exam.add(
            queries={f"q{n}": f"query number {n}" for n in range(queries)},
            passages=passages,
            runs=runs,
            bank=[
                {
                    "query_id": f"q{query}",
                    "text": f"{' '.join(random.choice(WORDS, 9))} {query} {item}?",
                    "kind": kind,
                }
                for query in range(queries)
                for item in range(items)
            ],
        )
    return drawn


WORDS = np.array([f"w{'abcdefghij'[n % 10] * (1 + n % 9)}" for n in range(500)])


def demo(path: Path) -> Rate:
    with exampp.create(path) as exam:
        exam.import_files(*demo_files())
    return drawn


def run(path: Path, url: str, options: dict[str, Any], batches: bool = False) -> tuple[float, ...]:
    """Grade a copy; return requests, tokens read and written, and cost."""
    copy = path.with_name("copy.exam")
    shutil.copyfile(path, copy)
    with exampp.Collection(copy) as exam:
        how = Batches(poll=0) if batches else False
        spent = exam.grade("openai", base_url=url, batches=how, **options).spent
    copy.unlink()
    return spent.requests, spent.tokens_read, spent.tokens_written, spent.cost or 0.0


def planned(path: Path, options: dict[str, Any]) -> dict[tuple[str, bool], WayToGrade]:
    with exampp.Collection(path) as exam:
        costs = exam.grading_costs("openai", **options)
    return {(way.prompt, bool(way.target)): way for way in costs.ways}


def compare(name: str, make: Callable[[Path], Rate], trial: int, **more: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "my.exam")
        rate = make(path)
        options: dict[str, Any] = {"model": "m", "decode": "text", **PRICES, **more}
        ways = planned(path, options)
        print(f"\n{name}: {next(iter(ways.values())).cells.value:,.0f} cells", flush=True)
        print(f"{'way':<36}{'':>10}{'requests':>20}{'read':>22}{'written':>20}{'cost':>18}")
        with server(rate) as plain, CountingBatches(rate) as provider:
            for (prompt, target), way in ways.items():
                chosen = {**options, "prompt": prompt, "measures": ["Cover@20"] * target}
                numbers = (way.requests, way.read, way.written, way.cost)
                shown = f"{prompt}{' --for Cover@20' if target else ''}"
                actual = run(path, plain.url, chosen)
                report(shown, "planned", numbers, actual)
                if target:
                    after_trial(path, plain.url, chosen, trial)
                if way.batch_cost.high is not None or way.batch_cost.value is not None:
                    by_batch = run(path, provider.url, chosen, batches=True)
                    report("  by batches", "planned", (*numbers[:3], way.batch_cost), by_batch)


def after_trial(path: Path, url: str, options: dict[str, Any], trial: int) -> None:
    """Grade some queries in this way, and plan the rest."""
    copy = path.with_name("trial.exam")
    shutil.copyfile(path, copy)
    with exampp.Collection(copy) as exam:
        exam.grade("openai", base_url=url, max_queries=trial, **options)
        (way,) = (
            one
            for one in exam.grading_costs("openai", **options).ways
            if one.target and one.prompt == options["prompt"]
        )
        spent = exam.grade("openai", base_url=url, **options).spent
    copy.unlink()
    actual = (spent.requests, spent.tokens_read, spent.tokens_written, spent.cost or 0.0)
    expected = (way.requests, way.read, way.written, way.cost)
    report(f"  after {trial} queries", "trial", expected, actual)


def intervals(data: Path, draws: int = 1000) -> None:
    """Count how often the limits after a trial of random queries hold for the other queries."""
    random = np.random.default_rng(1)
    names = ("requests", "items", "characters")
    with TemporaryDirectory() as folder:
        path = Path(folder, "my.exam")
        rate = dl19(path, data, 43)
        for prompt, least in product(("question-self-rating", "question-rating-many"), (3, 4, 5)):
            pairs = loads(path, rate, prompt, least)
            actual, most = (RequestLoad.total(one) for one in zip(*pairs, strict=True))
            print(f"\n{prompt}, Cover@20 >={least}: {actual.requests:,.0f} of {most.requests:,.0f}")
            print(f"requests, for {actual.items:,.0f} of {most.items:,.0f} items", flush=True)
            for trial in (3, 5, 10):
                held = Counter[str]()
                for _ in range(draws):
                    order = [pairs[at] for at in random.permutation(len(pairs))]
                    rest = (RequestLoad.total(one) for one in zip(*order[trial:], strict=True))
                    actual, most = rest
                    _, low, high = _from_replays(order[:trial], most, len(order) - trial)
                    for name in names:
                        limits = getattr(low, name) - 1e-6, getattr(high, name) + 1e-6
                        held[name] += limits[0] <= getattr(actual, name) <= limits[1]
                shown = ", ".join(f"{held[name] / draws:.3f} of {name}" for name in names)
                print(f"  limits from {trial} queries hold for {shown}", flush=True)


def loads(path: Path, rate: Rate, prompt: str, least: int) -> list[tuple[RequestLoad, RequestLoad]]:
    """The load of every query with its grades, and if no grade covered its item."""
    options: dict[str, Any] = {"model": "m", "decode": "text", "prompt": prompt}
    with exampp.Collection(path) as exam:
        run = exam.grading(
            "openai", measures=["Cover@20"], min_rating=least, dry_run=True, **options
        )
        grader = StoredGrader(UNSTORED, run.grading.identity)
        target = GradingTarget(("Cover@20",), (least,))
        cells, pairs = TargetCells(run.connection, grader, run.exam, target), []
        for query in run.query_order(cells):
            found = list(pending_of_query(run.connection, query, None, run.exam, "pending"))
            graded = _simulated(
                run, cells.plan(query, found), lambda one: rate(one.item, one.passage)
            )
            pairs.append((graded, _load(run, cells.plan(query, found).needed)))
        return pairs


def report(way: str, how: str, planned: tuple[Any, ...], actual: tuple[float, ...]) -> None:
    cells = []
    for one, found in zip(planned, actual, strict=True):
        if one.value is not None:
            cells.append(f"{one.value / found - 1:+.1%} of {found:,.4g}")
            if one.low is not None:
                cells[-1] += " in" if one.low <= found <= one.high else " OUT"
        else:
            inside = "in" if one.low <= found <= one.high else "OUT"
            cells.append(f"{one.low:,.4g}..{one.high:,.4g} {inside} {found:,.4g}")
    print(f"{way:<36}{how:<9} " + "  ".join(cells), flush=True)


def main() -> None:
    """Print planned and actual costs of some exams."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=here / "shared" / "data" / "dl19")
    parser.add_argument("--only", default="")
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--intervals", action="store_true")
    chosen = parser.parse_args()
    if chosen.queries < 2:
        parser.error("--queries must be at least 2: a trial leaves some queries")
    data, count = chosen.data, chosen.queries
    if chosen.intervals:
        intervals(data)
        return
    exams: dict[str, tuple[Any, ...]] = {
        "demo": (demo, 5, {}),
        "RAG answers": (lambda path: made(path, 25, 12, 12, answer_words, "nugget"), 8, {}),
        "long passages": (lambda path: made(path, 8, 6, 10, long_words, "question"), 3, {}),
        "long, limit 1000": (
            lambda path: made(path, 8, 6, 10, long_words, "question"),
            3,
            {"limit": 1000},
        ),
        "TREC DL 2019": (lambda path: dl19(path, data, count), max(1, count // 3), {}),
    }
    for name, (make, trial, more) in exams.items():
        if chosen.only in name:
            if name == "TREC DL 2019" and not data.exists():
                print(f"{name}: {data} is absent")
                continue
            compare(name, make, trial, **more)


def answer_words(random: Any) -> int:
    return int(random.normal(180, 40))


def long_words(random: Any) -> int:
    return int(random.lognormal(6, 0.9))


if __name__ == "__main__":
    main()
