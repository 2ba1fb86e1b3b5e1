"""Precision and recall of the rules of `bank lint`, from labels made by reading.

    python benchmarks/lint.py [DATA]

`labels/lint.tsv` has the bank, query and item of every item that was read, without its text. Rows
with a rule are findings of the rule, at most 40, drawn with a seed; they give its precision. Rows
without a rule are 150 random items, labelled before any finding was seen; they give precision and
recall of all findings together. "ok" is no defect; other labels name the defect. DATA has the banks
(`../shared/data` by default).
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from duplicates import BANKS

import exampp
from exampp.formats import bank as workbench_bank
from exampp.items.lint import LEAST_PRECISION, RULES, Finding, lint

PAIRS = {"duplicate", "near-duplicate", "twin"}
HERE = Path(__file__).parent


def main() -> None:
    """Print both tables, or that the banks are absent."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "shared/data"
    if not (data / "dl19").is_dir():
        sys.exit(f"{data} has no banks; give the folder that has dl19, dl20 and car-y3")
    with (HERE / "labels/lint.tsv").open(encoding="utf-8") as lines:
        labels = list(csv.DictReader(lines, delimiter="\t"))
    rules: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    total: Counter[str] = Counter()
    for bank, file in BANKS.items():
        for one in findings_of(bank, data / file, data / "dl19/graded.jsonl.gz"):
            rules[bank, one.query_id, one.item_id].add(one.rule)
            total[one.rule] += 1
    print_rules(labels, rules, total)
    print_sample(labels, rules)


def findings_of(bank: str, path: Path, graded: Path) -> list[Finding]:
    """Return all findings on a bank, with grades for the one that has grades."""
    if bank != "dl19-questions":
        return lint(list(workbench_bank.read(path)), {}, doubtful=True)
    with (
        TemporaryDirectory() as folder,
        exampp.Collection.create(Path(folder) / "dl19.exam") as exam,
    ):
        exam.import_files(graded, path)
        return list(exam.bank().lint(doubtful=True).findings)


def print_rules(
    labels: list[dict[str, str]],
    rules: dict[tuple[str, str, str], set[str]],
    total: Counter[str],
) -> None:
    """Print the precision of each rule, beside the counts that the rule states."""
    print(f"{'rule':18}findings  defects  read  stated")
    for rule, stated in RULES.items():
        read = [
            one["label"] != "ok"
            for one in labels
            if one["rule"] == rule and rule in rules[one["bank"], one["query"], one["item"]]
        ]
        if total[rule] or read:
            counts = f"{sum(read):9}{len(read):6}" if read else f"{'-':>9}{'-':>6}"
            print(f"{rule:18}{total[rule]:8}{counts}  {stated.measured or 'by definition'}")


def print_sample(labels: list[dict[str, str]], rules: dict[tuple[str, str, str], set[str]]) -> None:
    """Print precision and recall on the random items, and the recall of each kind of defect."""
    # items were labelled alone, so rules about pairs are left out
    shown = {rule for rule, one in RULES.items() if one.precision >= LEAST_PRECISION} - PAIRS
    sample = [one for one in labels if not one["rule"]]
    flagged = [bool(rules[one["bank"], one["query"], one["item"]] & shown) for one in sample]
    defects = [one["label"] != "ok" for one in sample]
    both = sum(a and b for a, b in zip(flagged, defects, strict=True))
    print(f"\n{len(sample)} random items, {sum(defects)} with a defect:")
    print(f"precision {both} of {sum(flagged)}, recall {both} of {sum(defects)}")
    kinds = Counter(one["label"] for one in sample)
    found = Counter(one["label"] for one, seen in zip(sample, flagged, strict=True) if seen)
    for kind, count in kinds.most_common():
        print(f"  {kind:12}{found[kind]:3} of {count}")


if __name__ == "__main__":
    main()
