"""Errors of the rule that recognises abstention, on examples made by hand.

    python benchmarks/abstention.py

`labels/abstention.tsv` has 120 responses in ten forms, with their label. The rule was written with
the part `development`; the part `test` was written before the rule and first read by it afterwards.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from exampp.prompts.abstention import abstains

LABELS = Path(__file__).parent / "labels/abstention.tsv"


def main() -> None:
    """Print the errors of both parts, by form."""
    with LABELS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for part in ("development", "test"):
        some = [row for row in rows if row["part"] == part]
        wrong = [row for row in some if abstains(row["text"]) != (row["label"] == "abstains")]
        missed = sum(row["label"] == "abstains" for row in wrong)
        labels = Counter(row["label"] for row in some)
        print(
            f"{part}: {missed} of {labels['abstains']} abstentions missed, "
            f"{len(wrong) - missed} of {labels['answers']} answers taken for abstentions"
        )
        for row in wrong:
            print(f"  {row['label']}, {row['form']}: {row['text']}")


if __name__ == "__main__":
    main()
