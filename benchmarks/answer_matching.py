"""Precision and recall of both rules that match extracted answers with answer keys.

Reads the labelled triples in tests/data: `first` was written before the guarded rule, `second` and
`third` by people who had not seen it: `python benchmarks/answer_matching.py [--speed]`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from exampp.prompts import verify_answer

DATA = Path(__file__).parent.parent / "tests" / "data"
PARTS = ("first", "second", "third")
Triple = dict[str, str]
RULES = {"papers": "exam", "guarded": "guarded"}


def triples(part: str) -> list[Triple]:
    """Return the labelled triples of a part; keys are separated by ` | `."""
    with (DATA / f"answer_triples_{part}.tsv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def is_correct(triple: Triple, mode: str) -> bool:
    """Return whether a rule accepts the answer of a triple."""
    keys = triple["key"].split(" | ")
    return verify_answer(triple["answer"], keys, None, mode, triple["question"]).correct


def count(several: Iterable[Triple], mode: str) -> Counter[str]:
    """Count true and false accepts and rejects of a rule."""
    kinds = {(True, "yes"): "tp", (True, "no"): "fp", (False, "yes"): "fn", (False, "no"): "tn"}
    return Counter(kinds[is_correct(one, mode), one["correct"]] for one in several)


def share(part: int, rest: int) -> str:
    """Format a share with its counts."""
    return f"{part}/{part + rest} = {part / (part + rest):.2f}" if part + rest else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true")
    wanted = parser.parse_args()
    for part in PARTS:
        several = triples(part)
        kinds: defaultdict[str, list[Triple]] = defaultdict(list)
        for one in several:
            kinds[one["kind"]].append(one)
        print(f"\n{part} part: {len(several)} triples, accepted correctly / wrongly / missed")
        print(f"{'kind':20}" + "".join(f"{rule:>16}" for rule in RULES))
        for kind, of_kind in kinds.items():
            cells = [count(of_kind, mode) for mode in RULES.values()]
            print(f"{kind:20}" + "".join(f"{n['tp']:>8}{n['fp']:>4}{n['fn']:>4}" for n in cells))
        for rule, mode in RULES.items():
            n = count(several, mode)
            precision, recall = share(n["tp"], n["fp"]), share(n["tp"], n["fn"])
            print(f"{rule}: precision {precision}, recall {recall}")
    if wanted.speed:
        several = [one for part in PARTS for one in triples(part)]
        answers = [
            {**one, "answer": f"{one['answer']} It says {chr(97 + n)}."}
            for n in range(26)
            for one in several
        ]
        for rule, mode in RULES.items():
            start = time.process_time()
            for one in answers:
                is_correct(one, mode)
            print(f"{rule}: {len(answers) / (time.process_time() - start):,.0f} answers a second")


if __name__ == "__main__":
    main()
