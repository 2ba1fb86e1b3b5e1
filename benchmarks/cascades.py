"""Cascades on real grades: share of the strong grader, agreement with it alone, and the audit.

    python benchmarks/cascades.py --queries 12 --count 1000

It needs TREC DL 2019 (`--data`) with the grades of FLAN-T5-large, the strong grader. `--count`
audits with different seeds show how often the limit holds there. The cheap graders are `draft` and
`words`, the share of the words of a question that the passage has. The stored grades of the strong
grader are used; nothing is sent.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import exampp
from exampp.records import Item, Passage
from exampp.records.cascade import CascadeRule
from exampp.records.gradebook import MISSING, Gradebook
from exampp.stats.agreement import cohen_kappa
from exampp.stats.cascade import CascadeAudit
from exampp.stats.rank_correlation import kendall

STRONG = "google/flan-t5-large"
MIN_RATING = 4


DATA = Path("../shared/data/dl19")


def by_words(item: Item, passage: Passage) -> int:
    """Rate by the share of the question's words of four or more letters that the passage has."""
    words = set(re.findall(r"\w{4,}", (item.text or "").lower()))
    found = words & set(re.findall(r"\w{4,}", passage.text.lower()))
    return round(5 * len(found) / max(1, len(words)))


def answers(book: Gradebook, queries: set[str]) -> NDArray[np.bool_]:
    """Return whether each cell counts as an answer; cells without a grade do not."""
    parts = [one.ratings[: one.pool_size] for one in book.queries if one.query_id in queries]
    return np.concatenate([(part >= MIN_RATING).ravel() for part in parts])


def cover(grades: exampp.Grades, queries: set[str]) -> list[float]:
    (column,) = grades.evaluate(["Cover@20"]).columns
    order = [
        number for number, one in enumerate(grades.gradebook.queries) if one.query_id in queries
    ]
    return [float(row[order].mean()) for row in column.values.values]


def graded(folder: Path, data: Path, queries: int) -> exampp.Collection:
    exam = exampp.create(folder / "my.exam")
    exam.import_files(data / "graded.jsonl.gz", data / "questions.jsonl.gz")
    exam.grade(by_words, name="words", max_queries=queries)
    exam.grade("draft", max_queries=queries)
    return exam


def cells(book: Gradebook) -> Iterator[tuple[tuple[str, str, str], int]]:
    for query in book.queries:
        for (row, column), rating in np.ndenumerate(query.ratings):
            if rating != MISSING:
                yield (query.query_id, query.item_ids[column], query.passage_ids[row]), int(rating)


def replay(exam: exampp.Collection) -> None:
    print("cheap unsure strong rates | kappa, tau: cheap alone, cascade | audit | differs in truth")
    strong = exam.grades(STRONG)
    for name in ("words", "draft"):
        cheap = exam.grades(name)
        first = dict(cells(cheap.gradebook))
        second = dict(cells(strong.gradebook))
        queries = {query for query, _, _ in first}
        truth, alone = answers(strong.gradebook, queries), cover(strong, queries)
        for unsure in (0.5, 1.5, 2.5):
            found = exam.panel(name, STRONG).cascade(unsure=unsure)
            rule = CascadeRule("", MIN_RATING, unsure)
            sure = [cell for cell, rating in first.items() if not rule.is_unsure(rating)]
            differ = sum((first[c] >= MIN_RATING) != (second[c] >= MIN_RATING) for c in sure)
            rated = 1 - sum(not rule.is_audited(*cell) for cell in sure) / len(first)
            shown = []
            for one in (cheap, exam.grades(found.grader.key)):
                counts = np.histogram2d(answers(one.gradebook, queries), truth, 2)[0]
                tau = kendall(cover(one, queries), alone).value
                shown.append(f"{cohen_kappa(counts).value:.2f} {tau:.2f}")
            audit = found.audit
            print(
                f"{name} {unsure} {rated:.1%} | {', '.join(shown)} | {audit.different} of "
                f"{audit.audited:,}, at most {audit.bound:.1%} | {differ / len(sure):.1%}",
                flush=True,
            )


def audits(exam: exampp.Collection, count: int) -> None:
    second = dict(cells(exam.grades(STRONG).gradebook))
    for name in ("words", "draft"):
        first = dict(cells(exam.grades(name).gradebook))
        for audit in (0.01, 0.05):
            rules = [CascadeRule("", MIN_RATING, 0.5, audit, seed) for seed in range(count)]
            sure = [cell for cell, rating in first.items() if not rules[0].is_unsure(rating)]
            differs = np.array(
                [(first[c] >= MIN_RATING) != (second[c] >= MIN_RATING) for c in sure]
            )
            below = 0
            for rule in rules:
                drawn = np.array([rule.is_audited(*cell) for cell in sure])
                found = CascadeAudit(len(sure), int(drawn.sum()), int(differs[drawn].sum()))
                below += found.bound < differs.mean()
            print(
                f"{name}, audit {audit:.0%}: of {count:,} audits the limit is below the true "
                f"{differs.mean():.1%} in {below / count:.1%}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--queries", type=int, default=12)
    parser.add_argument("--count", type=int, default=1000)
    chosen = parser.parse_args()
    if not chosen.data.exists():
        print(f"{chosen.data} is absent")
        return
    with TemporaryDirectory() as folder, graded(Path(folder), chosen.data, chosen.queries) as exam:
        replay(exam)
        audits(exam, chosen.count)


if __name__ == "__main__":
    main()
