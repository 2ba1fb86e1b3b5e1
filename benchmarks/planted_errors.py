"""Measures the lists `spurious` and `missing` on planted errors and on passages that a person read.

python benchmarks/planted_errors.py [--data ../shared/data/dl19] [--seeds 8] [--skip-texts]

Planted in the grades of TREC DL 2019, with a seed: 10 % of the items are removed, 10 % spurious
items are added, and 5 % of the grades are flipped. A spurious item is covered by random passages,
by nearly all passages (words of the topic), or as often as an item of another query. Real items may
be bad, too, so that the precision is a lower bound.

Retiring the first 20 items is measured on the real grades: kappa of the labels with the judgments,
and Kendall's tau of Cover@20 and of P@20 by these labels with the official leaderboard. Held out,
the items are chosen on half of the judged passages, and kappa is measured on the other half.

The kinds of missing passages are measured on relevant passages that one item covers: without the
item it is a gap, with a rating of 0 a miss of the grader.

`labels/missing.tsv` has 60 passages, drawn with seed 34 before the rule was made (at most 3 of a
query): 20 served to choose thresholds, 40 are reported. `labels/spurious.tsv` has the first 15
items of two kinds of advice, read after the rule was made: is the item bad, is the first example
false.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

import exampp
from exampp.analysis.items import discriminations
from exampp.measures.cover import item_scores
from exampp.records.gradebook import MISSING, Dossier, Gradebook
from exampp.records.items import BankTexts, Item
from exampp.review.evidence import Criteria
from exampp.review.missing import (
    BY_WORDS,
    DOUBTFUL,
    GAP,
    MISSED,
    PassageIndex,
    Similarity,
    explain,
    explain_passage,
    missing,
    queries_by_effect,
    text_similarity,
)
from exampp.review.query_view import QueryView
from exampp.review.spurious import ADVICE, SpuriousEntry, spurious

CRITERIA = Criteria(min_rating=4, min_relevant=2)
FIRST = 20
SEED_OF_HALVES = 1000
KINDS = ("random passages", "words of the topic", "item of another query")
LABELS = Path(__file__).with_name("labels") / "missing.tsv"
NAMES = {"grader": MISSED, "gap": GAP, "doubtful": DOUBTFUL}

Key = tuple[str, str]
Orders = dict[str, Callable[[SpuriousEntry], Any]]
ORDERS: Orders = {
    "number of non-relevant passages (before)": lambda one: (one.count, one.overturned),
    "share of non-relevant among covering": lambda one: (
        one.count / max(one.count + one.relevant_count, 1),
        one.count,
    ),
    "gap of covered shares": lambda one: (-(one.gap.value or 0.0), one.count),
    "upper limit of the gap": lambda one: (-(one.gap.high or 0.0), one.count),
    "corrected labels, lower limit": lambda one: (one.corrected.low or 0.0, one.count),
    "harm (now)": lambda one: (one.harm, one.overturned),
}


def planted(dossiers: Sequence[Dossier], seed: int) -> tuple[list[Dossier], dict[Key, str]]:
    """Return dossiers with errors, and the kinds of the added items."""
    rng = np.random.default_rng(seed)
    keys = [(one.query_id, item.item_id) for one in dossiers for item in one.items]
    share = len(keys) // 10
    removed = {keys[at] for at in rng.permutation(len(keys))[:share]}
    order = rng.permutation(np.arange(share) % len(dossiers)).tolist()
    kind_of = {at: KINDS[number % len(KINDS)] for number, at in enumerate(order)}
    made, added = [], {}
    for at, one in enumerate(dossiers):
        grades = one.grades
        stays = [
            n for n, item in enumerate(one.items) if (one.query_id, item.item_id) not in removed
        ]
        ratings, items = grades.ratings[:, stays], [one.items[n] for n in stays]
        if at in kind_of:
            other = dossiers[(at + 1 + int(rng.integers(len(dossiers) - 1))) % len(dossiers)]
            column = _coverage(rng, kind_of[at], len(ratings), other)
            new = Item(f"{one.query_id}/planted", one.query_id, "", one.items[0].kind)
            ratings = np.c_[ratings, np.where(column, 5, 0).astype(np.int16)]
            items.append(new)
            added[one.query_id, new.item_id] = kind_of[at]
        flipped = (rng.random(ratings.shape) < 0.05) & (ratings != MISSING)
        ratings = np.where(flipped, np.where(ratings >= 4, 0, 5), ratings).astype(np.int16)
        changed = replace(
            grades,
            ratings=ratings,
            item_ids=tuple(item.item_id for item in items),
            item_subtopics=np.zeros(len(items), np.int32),
            weights=np.ones(len(items)),
            importances=(),
        )
        made.append(replace(one, grades=changed, items=tuple(items), automatic={}))
    return made, added


def _coverage(
    rng: np.random.Generator, kind: str, passages: int, other: Dossier
) -> NDArray[np.bool_]:
    if kind == KINDS[0]:
        return np.asarray(rng.random(passages) < rng.uniform(0.05, 0.4))
    if kind == KINDS[1]:
        return np.asarray(rng.random(passages) < rng.uniform(0.7, 1.0))
    columns = other.grades.ratings >= 4
    return np.asarray(rng.choice(columns[:, rng.integers(columns.shape[1])], passages))


def spurious_items(dossiers: Iterable[Dossier], book: Gradebook) -> list[SpuriousEntry]:
    """Return the entries of all queries, with their discrimination."""
    known = discriminations(item_scores(book, CRITERIA.min_rating), BankTexts())
    return [one for of in dossiers for one in spurious(QueryView(of, CRITERIA), known)]


def book_of(dossiers: Sequence[Dossier], like: Gradebook) -> Gradebook:
    """Return a gradebook of dossiers."""
    return replace(like, queries=tuple(one.grades for one in dossiers))


def key_of(one: SpuriousEntry) -> Key:
    """Return query id and item id."""
    return one.item.query_id, one.item.item_id


def average_precision(hits: Sequence[bool], of: int) -> float:
    """Return the mean over all planted items of the precision at their ranks."""
    found = np.flatnonzero(hits) + 1
    return float((np.arange(1, len(found) + 1) / found).sum() / of)


def spread(values: Sequence[float]) -> str:
    """Return mean and range."""
    return f"{np.mean(values):6.3f} ({min(values):.3f} to {max(values):.3f})"


# ---- planted errors ------------------------------------------------------------------------------


def measure_planted(dossiers: Sequence[Dossier], book: Gradebook, seeds: int) -> None:
    """Print precision and recall of both lists."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ORDERS}
    kinds: dict[str, Counter[str]] = {name: Counter() for name in ORDERS}
    advised, advised_planted = Counter[str](), Counter[str]()
    rows: dict[str, list[tuple[float, ...]]] = {"before": [], "now": []}
    for seed in range(seeds):
        made, added = planted(dossiers, seed)
        entries = spurious_items(made, book_of(made, book))
        for name, order in ORDERS.items():
            ranked = sorted(entries, key=order, reverse=True)
            hits = [key_of(one) in added for one in ranked]
            first = sum(hits[:FIRST])
            found[name].append(
                (first / FIRST, first / len(added), average_precision(hits, len(added)))
            )
            kinds[name] += Counter(
                added[key_of(one)] for one in ranked[:FIRST] if key_of(one) in added
            )
        advised += Counter(one.advice for one in entries)
        advised_planted += Counter(one.advice for one in entries if key_of(one) in added)
        for name, row in _missing_rows(dossiers, made).items():
            rows[name].append(row)
    print(f"\nSpurious: {len(added)} planted items, {seeds} seeds, mean (range)")
    for name, values in found.items():
        precision, recall, average = zip(*values, strict=True)
        of_kind = ", ".join(f"{kind} {kinds[name][kind] / seeds:.1f}" for kind in KINDS)
        print(
            f"  {name:40} P@20 {spread(precision)} R@20 {spread(recall)} AP {spread(average)}"
            f"\n  {'':40} of the first 20: {of_kind}"
        )
    print("Advice: items a seed, of them planted")
    for advice in ADVICE:
        print(
            f"  {advice:20} {advised[advice] / seeds:6.1f} {advised_planted[advice] / seeds:6.1f}"
        )
    print("\nMissing: passages that only planted errors uncovered, mean (range)")
    for name, counts in rows.items():
        planted_, listed, precision, recall, queries = zip(*counts, strict=True)
        print(
            f"  {name:6} planted {np.mean(planted_):.1f}, listed {np.mean(listed):.1f}, "
            f"P@20 {spread(precision)}, R@20 {spread(recall)}, queries in 20 rows {spread(queries)}"
        )


def _missing_rows(
    dossiers: Sequence[Dossier], made: Sequence[Dossier]
) -> dict[str, tuple[float, ...]]:
    """Return counts for the former order (by query) and the present one."""
    entries, uncovered = [], set()
    for before, after in zip(dossiers, made, strict=True):
        view, earlier = QueryView(after, CRITERIA), QueryView(before, CRITERIA)
        lost = earlier.evidence.relevant & earlier.covers.any(axis=1) & ~view.covers.any(axis=1)
        ids = before.grades.passage_ids
        uncovered |= {(before.query_id, ids[row]) for row in np.flatnonzero(lost)}
        entries += missing(view)
    keys = [(one.query_id, one.passage.passage_id) for one in entries]
    former = sorted(keys, key=lambda key: key[0])
    by_query: dict[str, list[Key]] = {}
    for key in keys:
        by_query.setdefault(key[0], []).append(key)
    present = [key for query in queries_by_effect(entries) for key in by_query[query][:3]]
    rows: dict[str, tuple[float, ...]] = {}
    for name, order in (("before", former), ("now", present)):
        hits = sum(key in uncovered for key in order[:FIRST])
        listed = sum(key in uncovered for key in keys)
        queries = len({query for query, _ in order[:FIRST]})
        rows[name] = (len(uncovered), listed, hits / FIRST, hits / len(uncovered), queries)
    return rows


# ---- retiring items ------------------------------------------------------------------------------


def kappa(dossiers: Iterable[Dossier], retired: set[Key], halves: Halves | None = None) -> float:
    """Return Cohen's kappa of labels and judgments, without retired items."""
    table = np.zeros((2, 2))
    for one in dossiers:
        view = QueryView(one, CRITERIA)
        stays = np.array([(one.query_id, item.item_id) not in retired for item in one.items])
        label = view.covers[:, stays].any(axis=1)
        for relevant, passages in ((1, view.evidence.relevant), (0, view.evidence.irrelevant)):
            some = passages if halves is None else passages & halves[one.query_id]
            for covered in (0, 1):
                table[relevant, covered] += np.count_nonzero(some & (label == bool(covered)))
    share = table / table.sum()
    chance = float(share.sum(axis=0) @ share.sum(axis=1))
    return (float(np.trace(share)) - chance) / (1 - chance)


Halves = dict[str, NDArray[np.bool_]]


def taus(
    dossiers: Iterable[Dossier], retired: set[Key], official: dict[str, float]
) -> tuple[float, float]:
    """Return tau of Cover@20 and of P@20 by the labels with the official leaderboard."""
    cover: dict[str, float] = defaultdict(float)
    precision: dict[str, float] = defaultdict(float)
    for one in dossiers:
        stays = [(one.query_id, item.item_id) not in retired for item in one.items]
        covers = (one.grades.ratings >= CRITERIA.min_rating)[:, stays]
        for ranking in one.grades.rankings:
            top = covers[ranking.passages[:20]]
            cover[ranking.system] += float(top.any(axis=0).mean())
            precision[ranking.system] += float(top.any(axis=1).sum()) / 20
    names = [name for name in cover if name in official]
    best = [-official[name] for name in names]
    by_cover, by_precision = (
        float(kendalltau([scores[name] for name in names], best).statistic)
        for scores in (cover, precision)
    )
    return by_cover, by_precision


def measure_retiring(
    dossiers: Sequence[Dossier], book: Gradebook, official: dict[str, float], draws: int
) -> None:
    """Print kappa and tau after retiring the first 20 items of each order."""
    entries = spurious_items(dossiers, book)
    rng = np.random.default_rng(0)
    halves = [_halves(dossiers, SEED_OF_HALVES + number) for number in range(draws)]
    others = [{query: ~half for query, half in one.items()} for one in halves]
    before = [kappa(dossiers, set(), other) for other in others]
    cover, precision = taus(dossiers, set(), official)
    print(f"\nRetiring 20 of {len(entries)} items; held out: gain of kappa, {draws} draws")
    print(f"  {'all items':40} kappa {kappa(dossiers, set()):.3f} tau {cover:.3f} {precision:.3f}")
    drawn = [
        {key_of(entries[at]) for at in rng.permutation(len(entries))[:20]} for _ in range(draws)
    ]
    kappas = [kappa(dossiers, one) for one in drawn]
    both = [taus(dossiers, one, official) for one in drawn]
    gains = [
        kappa(dossiers, one, other) - least
        for one, other, least in zip(drawn, others, before, strict=True)
    ]
    cover, precision = np.mean(both, axis=0).tolist()
    print(
        f"  {'random items':40} kappa {np.mean(kappas):.3f} tau {cover:.3f} {precision:.3f}, "
        f"held out {spread(gains)}"
    )
    for name, order in ORDERS.items():
        first = _first(entries, order)
        cover, precision = taus(dossiers, first, official)
        gains = []
        for half, other, least in zip(halves, others, before, strict=True):
            chosen = _first(_on_half(dossiers, half), order)
            gains.append(kappa(dossiers, chosen, other) - least)
        print(
            f"  {name:40} kappa {kappa(dossiers, first):.3f} tau {cover:.3f} {precision:.3f}, "
            f"held out {spread(gains)}"
        )


def _first(entries: Iterable[SpuriousEntry], order: Callable[[SpuriousEntry], Any]) -> set[Key]:
    ranked = sorted(entries, key=order, reverse=True)
    return {key_of(one) for one in ranked[:FIRST]}


def _halves(dossiers: Iterable[Dossier], seed: int) -> Halves:
    rng = np.random.default_rng(seed)
    return {one.query_id: rng.random(len(one.grades.passage_ids)) < 0.5 for one in dossiers}


def _on_half(dossiers: Iterable[Dossier], halves: Halves) -> list[SpuriousEntry]:
    """Return spurious items by half of the judgments."""
    found = []
    for one in dossiers:
        judgments = np.where(halves[one.query_id], one.grades.judgments, MISSING)
        half = replace(one, grades=replace(one.grades, judgments=judgments.astype(np.int16)))
        found += spurious(QueryView(half, CRITERIA))
    return found


# ---- kinds of missing passages -------------------------------------------------------------------


def measure_kinds(dossiers: Sequence[Dossier], similarity: Similarity, sample: int = 200) -> None:
    """Print the kinds of relevant passages whose only covering item is taken away."""
    cases = [
        (one, int(row))
        for one in dossiers
        for view in [QueryView(one, CRITERIA)]
        for row in np.flatnonzero(view.evidence.relevant & (view.covers.sum(axis=1) == 1))
    ]
    rng = np.random.default_rng(1)
    chosen = [cases[at] for at in rng.permutation(len(cases))[:sample]]
    indices: dict[str, PassageIndex] = {}
    gaps, misses, right = Counter[str](), Counter[str](), Counter[int]()
    for one, row in chosen:
        column = int((one.grades.ratings[row] >= CRITERIA.min_rating).argmax())
        ratings = one.grades.ratings.copy()
        ratings[row, column] = 0
        view = QueryView(replace(one, grades=replace(one.grades, ratings=ratings)), CRITERIA)
        index = indices.setdefault(one.query_id, PassageIndex.of(view))
        missed = explain_passage(view, row, similarity, index)
        misses[missed.kind] += 1
        closest = [close.item.item_id for close in missed.closest]
        right[1] += closest[0] == one.items[column].item_id
        right[3] += one.items[column].item_id in closest
        stays = [n for n in range(len(one.items)) if n != column]
        without = replace(
            one.grades,
            ratings=ratings[:, stays],
            item_ids=tuple(one.grades.item_ids[n] for n in stays),
        )
        items = tuple(one.items[n] for n in stays)
        gap = QueryView(replace(one, grades=without, items=items), CRITERIA)
        gaps[explain_passage(gap, row, similarity, index).kind] += 1
    print(f"\nKinds, by {similarity.name}: {len(chosen)} of {len(cases)} passages of one item")
    for name, counts in (("item taken away (a gap)", gaps), ("rating 0 (a miss)", misses)):
        print(f"  {name:24} " + ", ".join(f"{kind} {counts[kind]}" for kind in NAMES.values()))
    print(f"  the missed item is the closest in {right[1]}, one of the closest three in {right[3]}")


# ---- items and passages that a person read -------------------------------------------------------


def measure_advice(dossiers: Sequence[Dossier], book: Gradebook) -> None:
    """Print how a reader labelled items and example grades, by the advice that they have now."""
    with (LABELS.parent / "spurious.tsv").open(encoding="utf-8") as stream:
        labels = list(csv.DictReader(stream, delimiter="\t"))
    advice = {key_of(one): one.advice for one in spurious_items(dossiers, book)}
    print("\nAdvice: labels of a reader for the first 15 items of each advice")
    for name in ADVICE:
        of = [one for one in labels if advice.get((one["query_id"], one["item_id"])) == name]
        bad = sum(one["item"] == "bad" for one in of)
        false = sum(one["grade"] == "false" for one in of)
        print(f"  {name:20} {len(of)} items: {bad} bad; first example grade: {false} false")


def measure_reading(dossiers: Iterable[Dossier], similarity: Similarity) -> None:
    """Print how often the kind and the closest items agree with the reading."""
    with LABELS.open(encoding="utf-8") as stream:
        labels = list(csv.DictReader(stream, delimiter="\t"))
    queries = {label["query_id"] for label in labels}
    entries = {
        (one.query_id, one.passage.passage_id): one
        for of in dossiers
        if of.query_id in queries
        for one in explain(QueryView(of, CRITERIA), similarity)
    }
    # a near-duplicate is explained by the passage that represents it
    for key, one in list(entries.items()):
        if one.same_as:
            entries[key] = entries[one.query_id, one.same_as]
    print(f"\nMissing, by {similarity.name}: kinds (rows: the reading; columns: the list)")
    for part in ("development", "test"):
        table, right = Counter[Key](), Counter[int]()
        for label in labels:
            if label["part"] != part:
                continue
            one = entries[label["query_id"], label["passage_id"]]
            table[NAMES[label["label"]], one.kind] += 1
            if label["item_ids"]:
                closest = [close.item.item_id for close in one.closest]
                wanted = label["item_ids"].split()
                right[1] += closest[0] in wanted
                right[3] += any(item in wanted for item in closest)
        total, agree = sum(table.values()), sum(table[kind, kind] for kind in NAMES.values())
        rows = Counter[str]()
        columns = Counter[str]()
        for (read, listed), count in table.items():
            rows[read] += count
            columns[listed] += count
        chance = sum(rows[kind] * columns[kind] for kind in NAMES.values()) / total**2
        value = (agree / total - chance) / (1 - chance)
        missed = rows[MISSED]
        print(
            f"  {part}: {agree} of {total} agree, kappa {value:.2f}; closest item right {right[1]} "
            f"of {missed}, one of the closest three {right[3]} of {missed}"
        )
        for read in NAMES.values():
            print(f"    {read:24} " + " ".join(f"{table[read, one]:3}" for one in NAMES.values()))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data/dl19"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--skip-texts", action="store_true", help="without the passages read")
    options = parser.parse_args()
    graded = options.data / "graded.jsonl.gz"
    if not graded.is_file():
        print(f"{graded} is absent: nothing was measured")
        return
    with exampp.open(graded) as opened:
        grades = opened.grades(bank=options.data / "questions.jsonl.gz")
        dossiers = [replace(one, direct_grades=tuple) for one in grades.dossiers(None, ())]
        book = grades.gradebook
    official = json.loads((options.data / "official-leaderboard.json").read_text())
    measure_planted(dossiers, book, options.seeds)
    measure_retiring(dossiers, book, official, options.seeds)
    measure_advice(dossiers, book)
    if not options.skip_texts:
        for similarity in (text_similarity(), BY_WORDS):
            measure_kinds(dossiers, similarity)
            measure_reading(dossiers, similarity)


if __name__ == "__main__":
    main()
