"""Both rules for answer keys on real extracted answers: pairs of answers to one question.

Reads the grades of LLMJudge (../shared/data) and takes one answer as the key of another. A seeded
sample of four groups (accepted by both rules, by one, by neither with a shared word) is labelled in
benchmarks/labels/answer_pairs.tsv: `python benchmarks/answer_pairs.py [--show]`. The labels hold
ids only; --show prints the texts.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path

from exampp.prompts import verify_answer
from exampp.prompts.answers import is_unanswerable
from exampp.prompts.words import content_stems

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data" / "llmjudge" / "test-graded.jsonl.gz"
LABELS = HERE / "labels" / "answer_pairs.tsv"
PROMPT = "QuestionCompleteConciseUnanswerablePromptWithChoices"
SEED, EACH, LONGEST = 20261126, 20, 12
Answer = tuple[str, str, str]
"""Passage, question and text of an extracted answer."""


def answers_by_question() -> dict[str, list[Answer]]:
    """Return the extracted answers, by question id; each text once."""
    found: defaultdict[str, dict[str, Answer]] = defaultdict(dict)
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            for passage in json.loads(line)[1]:
                for grades in passage["exam_grades"]:
                    if (grades.get("prompt_info") or {}).get("prompt_class") != PROMPT:
                        continue
                    for question, answer in grades["answers"]:
                        text = answer.strip()
                        if text and not is_unanswerable(text):
                            one = (passage["paragraph_id"], question, text)
                            found[question].setdefault(text.lower(), one)
    return {question: [*of.values()] for question, of in sorted(found.items())}


def group_of(key: str, answer: str) -> str:
    """Return which rules accept an answer, "" for pairs without a shared word."""
    papers, guarded = (verify_answer(answer, [key], None, m).correct for m in ("exam", "guarded"))
    if not papers and not guarded and not content_stems(key) & content_stems(answer):
        return ""
    return ("both" if guarded else "papers") if papers else "guarded" if guarded else "neither"


def sample() -> list[tuple[str, Answer, Answer]]:
    """Return the seeded sample: group, key and answer; one pair per question and group."""
    groups: defaultdict[str, list[tuple[str, Answer, Answer]]] = defaultdict(list)
    rng = random.Random(SEED)
    for answers in answers_by_question().values():
        pairs = [
            (key, answer)
            for key, answer in permutations(answers[:30], 2)
            if len(key[2].split()) <= LONGEST
        ]
        rng.shuffle(pairs)
        seen = set[str]()
        for key, answer in pairs[:60]:
            group = group_of(key[2], answer[2])
            if group and group not in seen:
                seen.add(group)
                groups[group].append((group, key, answer))
    return [one for _, of in sorted(groups.items()) for one in rng.sample(of, min(EACH, len(of)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the texts of the sample")
    show = parser.parse_args().show
    if not DATA.exists():
        print(f"{DATA} is absent: nothing to compare")
        return
    if show:
        for number, (group, key, answer) in enumerate(sample(), 1):
            print(number, group, key[0], answer[0], key[1], key[2], answer[2], sep="\t")
        return
    by_id = {
        (question, one[0]): one[2] for question, of in answers_by_question().items() for one in of
    }
    counts: Counter[tuple[str, bool, bool]] = Counter()
    with LABELS.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            key_text = by_id[row["question"], row["key"]]
            text = by_id[row["question"], row["answer"]]
            for rule, mode in (("papers", "exam"), ("guarded", "guarded")):
                accepted = verify_answer(text, [key_text], None, mode).correct
                counts[rule, accepted, row["same"] == "yes"] += 1
    for rule in ("papers", "guarded"):
        right, wrong = counts[rule, True, True], counts[rule, True, False]
        missed = counts[rule, False, True]
        print(f"{rule}: {right} of {right + wrong} accepted are the same answer; {missed} missed")


if __name__ == "__main__":
    main()
