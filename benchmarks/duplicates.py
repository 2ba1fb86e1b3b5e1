"""Duplicates in real banks and among planted pairs: how many are found, and how many are right.

    python benchmarks/duplicates.py [DATA]        # DATA: the folder of real banks, ../shared/data

- Real banks: pairs and groups found in each, and the share of right ones among the pairs that a
  reader labelled (`labels/duplicates.tsv`: ids and labels only; `drawn` with a seed before the last
  four rules were added, `rest` are the other pairs found since). `--draw` writes a new sample of
  paraphrases to label, drawn with a seed from the pairs found.
- Planted pairs (`labels/planted_duplicates.tsv`): paraphrases, and pairs that differ in a name,
  number, negation, opposite, question word or order of roles. The rules were chosen on the set
  `chosen`; the set `fresh` was written afterwards and changed nothing.
- Grades: the pairs of questions in a graded bank whose answers agree most. All eight ask different
  things, so grades confirm no duplicate.
- Time for a bank of 100,000 items (`--speed`).
"""

from __future__ import annotations

import argparse
import csv
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

import exampp
from exampp.formats.detect import read_bank_file
from exampp.items.duplicates import duplicate_groups, duplicate_pairs
from exampp.records import Item

LABELS = Path(__file__).with_name("labels")
BANKS = {
    "dl19-questions": "dl19/questions.jsonl.gz",
    "dl19-second": "dl19/questions-second-bank.jsonl.gz",
    "dl19-nuggets": "dl19/nuggets.jsonl.gz",
    "dl20-questions": "dl20/questions.jsonl.gz",
    "dl20-nuggets": "dl20/nuggets.jsonl.gz",
    "car-questions": "car-y3/questions.jsonl.gz",
    "car-nuggets": "car-y3/nuggets.jsonl.gz",
}
SEED, DRAWN = 60, 60
Pair = tuple[str, str, str, str]


def rows(name: str) -> list[dict[str, str]]:
    with (LABELS / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def planted() -> None:
    print("planted pairs        set     found of")
    found: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for row in rows("planted_duplicates.tsv"):
        key = (row["kind"], row["set"])
        total[key] += 1
        found[key] += bool(duplicate_pairs([row["one"], row["other"]]))
    for (kind, chosen), count in total.items():
        print(f"{kind:20} {chosen:8} {found[kind, chosen]:4} {count:3}")
    for chosen in ("chosen", "fresh"):
        apart = [key for key in total if key[1] == chosen and key[0] != "same"]
        missed, hard = sum(found[key] for key in apart), sum(total[key] for key in apart)
        recall = found["same", chosen] / total["same", chosen]
        print(f"{chosen}: recall {recall:.2f}, kept apart {1 - missed / hard:.3f}")


def by_query(path: Path) -> Iterator[list[Item]]:
    items: dict[tuple[str, str], list[Item]] = {}
    for entry in read_bank_file(path):
        for item in entry.items:
            items.setdefault((item.query_id, item.kind), []).append(item)
    yield from items.values()


def real(data: Path, draw: bool) -> None:
    labels = {
        (row["bank"], row["query"], row["one"], row["other"]): row["label"]
        for row in rows("duplicates.tsv")
    }
    drawn = Counter(row["label"] for row in rows("duplicates.tsv") if row["sample"] == "drawn")
    print(f"drawn when the rules were chosen: {drawn['same']} of {drawn.total()} right")
    found: dict[Pair, str] = {}
    texts: dict[tuple[str, str], str] = {}
    print("bank             items pairs equal paraphrases groups in-groups seconds")
    for name, file in BANKS.items():
        start, size, groups = time.process_time(), 0, []
        pairs = []
        for items in by_query(data / file):
            size += len(items)
            groups += duplicate_groups(items)
            for one, other, differs in duplicate_pairs([item.text for item in items]):
                pairs.append(
                    ((name, items[one].query_id, items[one].item_id, items[other].item_id), differs)
                )
                texts |= {(name, items[at].item_id): items[at].text for at in (one, other)}
        found |= dict(pairs)
        equal = sum(not differs for _, differs in pairs)
        inside = sum(len(group.items) for group in groups)
        seconds = time.process_time() - start
        print(
            f"{name:15} {size:6} {len(pairs):5} {equal:5} {len(pairs) - equal:11} "
            f"{len(groups):6} {inside:9} {seconds:7.1f}"
        )
    if draw:
        some = sorted(pair for pair, differs in found.items() if differs)
        for pair in random.Random(SEED).sample(some, min(DRAWN, len(some))):
            print("\t".join((*pair, texts[pair[0], pair[2]], texts[pair[0], pair[3]])))
        return
    precision(found, labels)


def precision(found: Iterable[Pair], labels: dict[Pair, str]) -> None:
    known = Counter(labels[pair] for pair in found if pair in labels)
    right, total = known["same"], sum(known.values())
    if total:
        print(f"labelled paraphrases that are found: {total}, right: {right} ({right / total:.2f})")


def grades(data: Path) -> None:
    """Print how alike the grades of different questions are: too alike to confirm a duplicate."""
    texts = {
        item.item_id: item.text
        for entry in read_bank_file(data / "questions.jsonl.gz")
        for item in entry.items
    }
    found: list[tuple[float, str, str]] = []
    with exampp.open(data / "graded.jsonl.gz") as graded:
        for query in graded.grades().gradebook.queries:
            covered = query.ratings[: query.pool_size] >= 4
            items = [at for at in range(len(query.item_ids)) if 0 < covered[:, at].mean() < 1]
            phi = np.atleast_2d(np.corrcoef(covered[:, items].T))
            found += (
                (float(phi[one, other]), query.item_ids[items[one]], query.item_ids[items[other]])
                for one, other in combinations(range(len(items)), 2)
            )
    found.sort(reverse=True)
    print(f"grades of {len(found):,} pairs of questions, most alike first (none a duplicate)")
    for value, *pair in found[:8]:
        print(f"phi {value:.2f}: " + " / ".join(str(texts[one]).strip() for one in pair))


def speed() -> None:
    subjects = [f"item {number}" for number in range(100)]
    asks = ["What is {}?", "How does {} work?", "Who found {} in {}?", "Why does {} matter in {}?"]
    start, pairs = time.process_time(), 0
    for query in range(2_000):
        texts = [
            random.Random(query * 50 + at).choice(asks).format(subjects[at], 1900 + at)
            for at in range(50)
        ]
        pairs += len(duplicate_pairs(texts))
    print(
        f"100,000 items of 2,000 queries: {time.process_time() - start:.0f} s of CPU, {pairs} pairs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    planted()
    if not options.data.is_dir():
        print(f"{options.data}: no real banks, so no figures of them")
        return
    real(options.data, options.draw)
    grades(options.data / "dl19")


if __name__ == "__main__":
    main()
