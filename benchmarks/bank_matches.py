"""Measure the comparison of banks: planted banks, matchers without a model, intervals.

python benchmarks/bank_matches.py [--only planted matchers intervals effects real] [--draws 1000]
    [--seed 38] [--data ../shared/data]

planted    Banks made of a bank of TREC DL 2019, so that recall and precision are known: a part of
           it, paraphrases, noise from other queries, items split in two, items merged. Matched by a
           scripted grader that knows the truth, and by the matchers without a model.
matchers   Precision and recall of the matchers on pairs of two banks that were read and labelled
           (labels/bank_matches.tsv), weighted to all pairs. The pairs were drawn by the cosine of
           their texts, with numpy.random.default_rng(381), before they were read.
intervals  How often the intervals hold the mean over endless queries: 40 banks of 5 to 40 queries,
           from several populations of queries and items. And how often a bank is called lower
           than the best one, where all are equally good.
effects    How often intervals of Kendall's tau between the leaderboards of two banks hold its mean
           over exams of as many queries.
real       Two banks and the nuggets of TREC DL 2019, and questions and nuggets of TREC CAR Y3.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from exampp.analysis.bank_effects import common_tau
from exampp.analysis.banks import (
    BankScore,
    MatchedBanks,
    compare_banks,
    is_above_zero,
    match_banks,
)
from exampp.formats import bank as bank_format
from exampp.graders.draft import THRESHOLDS, load_encoder, max_similarity
from exampp.items.duplicates import text_vectors
from exampp.items.matches import MATCHERS
from exampp.records import BankEntry, Item
from exampp.stats.estimate import Floats
from exampp.stats.item_matches import DIFFERENT, PART, RELATIONS, SAME, WIDER
from exampp.stats.proportions import mean_share
from exampp.stats.rank_correlation import kendall

LABELS = Path(__file__).parent / "labels" / "bank_matches.tsv"
PARTS = ("planted", "matchers", "intervals", "effects", "real")
Facets = Mapping[str, frozenset[str]]
"""The facets that each item asks for, by its id."""


def read_bank(path: Path) -> list[BankEntry]:
    return list(bank_format.read(path))


# ---- planted banks -------------------------------------------------------------------------------


def joined(one: Item, other: Item) -> Item:
    """One item that asks for both."""
    second = other.text[:1].lower() + other.text[1:]
    text = f"{one.text.rstrip('? .')}, and {second}"
    return replace(one, item_id=f"{one.item_id}+{other.item_id}", text=text)


def reworded(item: Item) -> Item:
    """The item in other words."""
    body = item.text.rstrip("? .")
    return replace(item, item_id=f"{item.item_id}~", text=f"Please explain: {body.lower()}?")


def facets_of(entries: Iterable[BankEntry]) -> Facets:
    """The facets of items, from their ids: those of an item, joined by +."""
    return {
        item.item_id: frozenset(item.item_id.replace("~", "").split("+"))
        for entry in entries
        for item in entry.items
    }


def planted(
    entries: Sequence[BankEntry],
) -> dict[str, tuple[list[BankEntry], list[BankEntry], float, float]]:
    """(reference, bank, recall, precision) by name."""

    def made(change: Callable[[Sequence[Item], int], Sequence[Item]]) -> list[BankEntry]:
        return [replace(e, items=tuple(change(e.items, n))) for n, e in enumerate(entries)]

    whole = list(entries)
    even = made(lambda items, _: items[: len(items) // 2 * 2])
    merged = [replace(e, items=tuple(map(joined, e.items[::2], e.items[1::2]))) for e in even]

    def noise(items: Sequence[Item], n: int) -> Sequence[Item]:
        other = entries[(n + 1) % len(entries)].items[:5]
        return (*items, *(replace(one, query_id=items[0].query_id) for one in other))

    half = made(lambda items, _: items[: len(items) // 2])
    kept = np.mean([len(h.items) / len(w.items) for h, w in zip(half, whole, strict=True)])
    noisy = made(noise)
    right = np.mean([len(w.items) / len(n.items) for w, n in zip(whole, noisy, strict=True)])
    return {
        "subset": (whole, half, float(kept), 1.0),
        "paraphrase": (whole, made(lambda items, _: [*map(reworded, items)]), 1.0, 1.0),
        "noise": (whole, noisy, 1.0, float(right)),
        "split": (merged, even, 1.0, 1.0),
        "half of the split": (
            merged,
            made(lambda items, _: items[: len(items) // 2 * 2 : 2]),
            0.5,
            1.0,
        ),
        "merged": (even, merged, 1.0, 1.0),
    }


def by_truth(matched: MatchedBanks, reference: Facets, facets: Facets) -> MatchedBanks:
    """The banks with the relations that a perfect matcher gives."""

    def relation(item: Item, other: Item) -> int:
        one, two = facets[item.item_id], reference[other.item_id]
        if one == two:
            return SAME
        return WIDER if one > two else PART if one < two else DIFFERENT

    queries = tuple(
        one._replace(
            relations={
                bank: np.array(
                    [[relation(item, other) for other in one.reference] for item in items], np.int16
                ).reshape(len(items), len(one.reference))
                for bank, items in one.items.items()
            }
        )
        for one in matched.queries
    )
    return replace(matched, queries=queries, matcher="truth")


def planted_banks(data: Path) -> None:
    entries = read_bank(data / "dl19" / "questions.jsonl.gz")
    print("\nplanted banks: recall and precision, and their error by a perfect matcher and others")
    for name, (reference, bank, recall, precision) in planted(entries).items():
        found = [f"{name:18} true {recall:.3f} {precision:.3f}"]
        banks = {"reference": reference, "bank": bank}
        texts = match_banks("reference", banks)
        ways = {"perfect": by_truth(texts, facets_of(reference), facets_of(bank)), "text": texts}
        ways["similarity"] = match_banks("reference", banks, "similarity")
        for way, matched in ways.items():
            (row,) = compare_banks(matched).rows
            found.append(f"{way} {row.recall.value:.3f} {row.precision.value:.3f}")
        print("   ".join(found), flush=True)


# ---- matchers on labelled pairs ------------------------------------------------------------------


def matchers(data: Path) -> None:
    items = {
        item.item_id: item
        for name in ("questions", "questions-second-bank")
        for entry in read_bank(data / "dl19" / f"{name}.jsonl.gz")
        for item in entry.items
    }
    pairs = [*csv.DictReader(LABELS.open(encoding="utf-8"), delimiter="\t")]
    texts = [(items[one["reference"]], items[one["item"]]) for one in pairs]
    related = np.array([one["relation"] != RELATIONS[DIFFERENT] for one in pairs])
    same = np.array([one["relation"] == RELATIONS[SAME] for one in pairs])
    sizes = {"0.9": 102, "0.8": 500, "0.7": 1156, "0.6": 1263, "0.4": 1139, "-1": 140}
    drawn = Counter(one["cosine_from"] for one in pairs)
    weights = np.array([sizes[one["cosine_from"]] / drawn[one["cosine_from"]] for one in pairs])
    print(f"\nmatchers on {len(pairs)} labelled pairs: {Counter(one['relation'] for one in pairs)}")
    cosines = np.array(
        [float(np.prod(text_vectors([a.text, b.text]), axis=0).sum()) for a, b in texts]
    )
    found = {
        name: np.array([match([a], [b])[0, 0] == SAME for a, b in texts])
        for name, match in MATCHERS.items()
        if name != "keys"
    }
    encode = load_encoder()
    drafts = np.array(
        [max_similarity(encode(a.text).vectors, encode(b.text).vectors) for a, b in texts]
    )
    found |= {f"draft from {at + 1}": drafts >= THRESHOLDS[at] for at in (3, 4)}
    found |= {f"cosine {at:.2f}": cosines >= at for at in (0.75, 0.8, 0.85, 0.9)}
    for name, hits in found.items():
        parts = {"related": related, "the same": same}
        right = {of: weights[hits & one].sum() / weights[hits].sum() for of, one in parts.items()}
        share = {of: weights[hits & one].sum() / weights[one].sum() for of, one in parts.items()}
        print(
            f"{name:12} {int(hits.sum()):3} pairs: "
            + ", ".join(f"{of} {value:.2f}" for of, value in right.items())
            + "; found: "
            + ", ".join(f"of {of} {value:.2f}" for of, value in share.items())
        )


# ---- intervals -----------------------------------------------------------------------------------


class Population(NamedTuple):
    """Recall per query of banks, whose mean differs: `sizes` weighted reference items in a query.

    `items` and `queries` are standard deviations of their difficulty (logits). Of the items,
    `shared` are asked for by every bank; of the queries, `bare` have no item of a bank. One in five
    items that a bank asks for is asked for in part.
    """

    name: str
    items: float
    queries: float
    shared: float = 0.0
    bare: float = 0.0
    sizes: tuple[int, int] = (3, 15)

    def draw(self, random: np.random.Generator, strength: Floats, queries: int) -> Floats:
        """The recall of each bank in each query, [banks, queries]."""
        most = self.sizes[1]
        size = random.integers(self.sizes[0], most + 1, (queries, 1))
        weights = random.integers(1, 4, (queries, most)) * (np.arange(most) < size)
        logits = strength[:, None, None] + random.normal(
            0, self.queries, (len(strength), queries, 1)
        )
        logits = logits + random.normal(0, self.items, (queries, most))
        hits = random.random(logits.shape) < 1 / (1 + np.exp(-logits))
        credit = hits * np.where(random.random(hits.shape) < 0.2, 0.5, 1.0)
        credit = np.where(random.random((queries, most)) < self.shared, 1.0, credit)
        recall = (credit * weights).sum(axis=2) / weights.sum(axis=1)
        return np.where(random.random(recall.shape) < self.bare, 0.0, recall)


class Beta(NamedTuple):
    """Recall of 10 items is binomial, with a chance that differs between queries."""

    name: str
    evenness: float

    def draw(self, random: np.random.Generator, strength: Floats, queries: int) -> Floats:
        """The recall of each bank in each query, [banks, queries]."""
        mean = 1 / (1 + np.exp(-strength))[:, None]
        shape = len(strength), queries
        chances = random.beta(mean * self.evenness, (1 - mean) * self.evenness, shape)
        return random.binomial(10, chances) / 10


POPULATIONS = (
    Beta("beta, uneven queries", 2),
    Beta("beta, even queries", 8),
    Population("items and queries alike", 0.3, 0.3),
    Population("items uneven", 1.5, 1.0),
    Population("half of the items shared", 1.5, 1.0, shared=0.5),
    Population("queries very uneven", 1.0, 3.0),
    Population("a fifth of the queries bare", 1.0, 1.0, shared=0.2, bare=0.2),
    Population("2 to 4 reference items", 1.5, 1.5, shared=0.2, sizes=(2, 4)),
)


def intervals(draws: int, seed: int, banks: int = 40) -> None:
    """Means of recall are estimated from 40,000 queries."""
    random = np.random.default_rng(seed)
    strength = np.linspace(-3.5, 3.5, banks)
    print(f"\nintervals: {banks} banks, {draws} draws; of all, and lowest and highest by bank")
    for population in POPULATIONS:
        many = [population.draw(random, strength, 2000).mean(axis=1) for _ in range(20)]
        means = np.mean(many, axis=0)
        for queries in (5, 10, 20, 40):
            hits, widths = np.zeros((2, banks))
            for _ in range(draws):
                for bank, values in enumerate(population.draw(random, strength, queries)):
                    found = mean_share(values)
                    low, high = found.low or 0.0, 1.0 if found.high is None else found.high
                    hits[bank] += low <= means[bank] <= high
                    widths[bank] += high - low
            share = hits / draws
            print(
                f"{population.name:28} {queries:2} queries: {share.mean():.3f} ({share.min():.3f} "
                f"to {share.max():.3f}), mean width {widths.mean() / draws:.3f}",
                flush=True,
            )


def false_statements(draws: int, banks: int = 40, queries: int = 20, items: int = 10) -> None:
    """All banks have the same mean; their queries are as hard for all, or for each by chance."""
    random = np.random.default_rng(39)
    level = 1 - 0.05 / (banks * (banks - 1) / 2)
    print(f"\nfalse statements that a bank is lower: {banks} equal banks, {draws} draws")
    for mean in (0.1, 0.3, 0.5, 0.9):
        wrong = {"own": 0, "shared": 0}
        for _ in range(draws):
            shapes = {"own": (banks, queries), "shared": (1, queries)}
            for name, shape in shapes.items():
                chances = random.beta(mean * 8, (1 - mean) * 8, shape)
                values = random.binomial(items, np.broadcast_to(chances, (banks, queries))) / items
                order = np.argsort(values.mean(axis=1))
                # the lowest bank is the likeliest to be called lower
                wrong[name] += is_above_zero(values[order[-1]] - values[order[0]], level)
        print(f"mean {mean}: " + ", ".join(f"{n} {w / draws:.3f}" for n, w in wrong.items()))


def effects(samples: int, systems: int = 20) -> None:
    """Systems differ; queries shift them for both banks, and each bank has noise."""
    random = np.random.default_rng(40)
    print(f"\nintervals of tau between two banks: {systems} systems, {samples} exams")

    def drawn(queries: int, noise: float) -> tuple[Floats, Floats]:
        strength = np.linspace(0, 1, systems)[:, None]
        common = strength + random.normal(0, 0.5, (systems, queries))
        one, other = (common + random.normal(0, noise, common.shape) for _ in range(2))
        return one, other

    for queries in (25, 43):
        for noise in (0.5, 1.5):
            exams = [drawn(queries, noise) for _ in range(2000)]
            means = ([one.mean(axis=1) for one in of] for of in exams)
            truth = float(np.mean([kendall(*of).value or 0.0 for of in means]))
            found = [common_tau(*drawn(queries, noise)) for _ in range(samples)]
            known = [(one.low, one.high) for one in found if one.low is not None]
            held = np.mean([low <= truth <= (high or 1.0) for low, high in known])
            print(
                f"{queries} queries, noise {noise}: true {truth:.3f}, held {held:.3f} of "
                f"{len(known)}",
                flush=True,
            )


# ---- real banks ----------------------------------------------------------------------------------


def shown(name: str, row: BankScore, matcher: str) -> str:
    recall, precision = (
        f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in (row.recall, row.precision)
    )
    return (
        f"{name}, {matcher}: recall {recall}, precision {precision}, redundancy "
        f"{row.redundancy.value:.3f}, novelty {row.novelty.value:.3f}, {row.queries} queries"
    )


def real_banks(data: Path) -> None:
    print("\nreal banks")
    folder = data / "dl19"
    dl = {
        n: read_bank(folder / f"{n}.jsonl.gz")
        for n in ("questions", "questions-second-bank", "nuggets")
    }
    car = {n: read_bank(data / "car-y3" / f"{n}.jsonl.gz") for n in ("questions", "nuggets")}
    for track, banks in (("DL 2019", dl), ("CAR Y3", car)):
        for matcher in ("text", "similarity"):
            for row in compare_banks(match_banks("questions", banks, matcher)).rows:
                print(shown(f"{track} {row.bank} beside questions", row, matcher), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=PARTS)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=38, help="of the intervals")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    if "intervals" in options.only:
        intervals(options.draws, options.seed)
        false_statements(options.draws)
    if "effects" in options.only:
        effects(options.draws // 2)
    if not (options.data / "dl19").is_dir():
        print(f"{options.data} is missing, so only intervals are measured")
        return
    for name, run in (("planted", planted_banks), ("matchers", matchers), ("real", real_banks)):
        if name in options.only:
            run(options.data)


if __name__ == "__main__":
    main()
