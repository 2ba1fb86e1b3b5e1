"""Measures `exampp bank improve`: false claims, planted bad items, and an official leaderboard.

PYTHONPATH=tests python benchmarks/improve.py noise|planted|official|made [--data ../shared/data]
    [--runs 500]

noise: the rate of confirmed gains where nothing can be gained, on the passages and runs of TREC DL
2019 and on a made exam with copies of a system: system labels shuffled in every query, the grades
of every item shuffled over the passages, and grades shuffled among the items of a passage (all
items are equally good). Beside it, the rate if related systems may be in different halves.

planted: made exams of 40 queries, 30 systems and 10 items a query, of which some are bad. A round
retires the confirmed proposals; rounds end when no gain is confirmed. Shares of bad items found and
of good items retired, and Kendall's tau-b of Cover@20 with the skill of the systems. Some items on
trial are good, some are random.

official: TREC DL 2019 with 430 questions: gain in agreement and in tau with the official order, on
held-out systems; and the tau of all systems, by which no selection should be chosen.

made: LLMJudge dev (25 queries, 10 questions each, graded by FLAN-T5-large, judged by people) has no
rankings. Here rankings are made of its passages by `SYSTEMS` random rankers (BM25 with random
settings, words of the query, beginnings of passages and noise), which see neither grades nor
judgments. Their official order is nDCG@10 by the judgments; gains as in `official`, for several
draws of rankers, and the rate of confirmed gains with shuffled grades.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
from scipy.stats import kendalltau
from support.planted_items import BAD, GOOD, planted_exam

import exampp
from exampp.analysis import improvement
from exampp.analysis.improvement import ADD, RETIRE, ImprovementSettings, improve
from exampp.analysis.item_trials import trial_exam
from exampp.inputs.officials import read_officials
from exampp.measures.cover import item_scores
from exampp.records.gradebook import Gradebook, QueryGrades
from exampp.records.items import BankTexts
from exampp.stats.estimate import Floats
from exampp.stats.proportions import share_interval

Random = np.random.Generator
MOST_ROUNDS = 6


# ---- noise ---------------------------------------------------------------------------------------


def labels(random: Random, query: QueryGrades) -> QueryGrades:
    names = [one.system for one in query.rankings]
    shuffled = random.permutation(names).tolist()
    rankings = [
        replace(one, system=name) for one, name in zip(query.rankings, shuffled, strict=True)
    ]
    return replace(query, rankings=tuple(rankings))


def grades(random: Random, query: QueryGrades) -> QueryGrades:
    return replace(query, ratings=random.permuted(query.ratings, axis=0))


def items(random: Random, query: QueryGrades) -> QueryGrades:
    return replace(query, ratings=random.permuted(query.ratings, axis=1))


SHUFFLES = (labels, grades, items)


def claims(
    book: Gradebook, shuffle: Callable[[Random, QueryGrades], QueryGrades], runs: int, least: int
) -> tuple[int, float]:
    """Return how many of the shuffled exams have a confirmed gain, and their mean gain."""
    count, gains = 0, []
    for seed in range(runs):
        random = np.random.default_rng(seed)
        shuffled = replace(book, queries=tuple(shuffle(random, one) for one in book.queries))
        found = improve(
            shuffled, BankTexts(), min_rating=least, settings=ImprovementSettings(seed=seed)
        )
        count += found.is_confirmed
        gains.append(found.gains[0].difference.value or 0.0)
    return count, float(np.mean(gains))


def claim_rate(
    book: Gradebook, shuffle: Callable[[Random, QueryGrades], QueryGrades], runs: int
) -> str:
    count, gain = claims(book, shuffle, runs, 4)
    rate = share_interval(count, runs)
    return (
        f"{shuffle.__name__} shuffled: {count} = {rate.value:.3f} [{rate.low:.3f}, "
        f"{rate.high:.3f}], mean gain {gain:+.4f}"
    )


def noise(data: Path, runs: int) -> None:
    exams = {"made exam, 10 copies of a system": planted_exam(1, {}, systems=25, copies=10)}
    if data.exists():
        exams["TREC DL 2019"] = dl19(data)[0]
    print(f"Confirmed gains in {runs} shuffled exams each, with a 95 % interval")
    for related in (improvement.SIMILAR, 2.0):
        improvement.SIMILAR = related
        print("related systems together" if related < 1 else "systems divided regardless")
        for name, book in exams.items():
            for shuffle in SHUFFLES:
                print(f"  {name}, {claim_rate(book, shuffle, runs)}", flush=True)


# ---- planted items -------------------------------------------------------------------------------

PLANTS: tuple[dict[str, int], ...] = (
    {},
    {"random": 1},
    {"random": 1, "reversed": 1, "saturated": 1},
    {"random": 1, "reversed": 1, "saturated": 1, "leaked": 1, "ambiguous": 1},
    {"reversed": 3},
)


def kind_of(item_id: str) -> str:
    name = item_id.partition("/")[2]
    return next(kind for kind in (GOOD, *BAD) if name.startswith(kind))


def followed(book: Gradebook, proposals: tuple[improvement.Proposal, ...]) -> Gradebook:
    """Follow the proposals: without the retired items, with those added."""
    changes = {(one.query_id, one.item_id): one.change for one in proposals}

    def of(query: QueryGrades) -> QueryGrades:
        change = [changes.get((query.query_id, item)) for item in query.item_ids]
        stays = [at for at, one in enumerate(change) if one != RETIRE]
        weights = np.where([one == ADD for one in change], 1.0, query.weights)
        return replace(
            query,
            item_ids=tuple(query.item_ids[at] for at in stays),
            item_subtopics=query.item_subtopics[stays],
            weights=weights[stays],
            ratings=query.ratings[:, stays],
        )

    return replace(book, queries=tuple(map(of, book.queries)))


def skill_tau(book: Gradebook, seed: int) -> float:
    """Kendall's tau-b of the scores with the skill that the systems were made with."""
    skill = np.random.default_rng(seed).uniform(0, 2, len(book.systems))
    scores = item_scores(book, 4)
    in_force = scores.weights > 0
    return float(kendalltau(np.round(scores.cover(in_force), 9), skill).statistic)


def planted(exams: int) -> None:
    for bad in PLANTS:
        found, total = Counter[str](), Counter[str]()
        rounds, confirmed, taus = [], 0, []
        for seed in range(exams):
            book = planted_exam(seed, bad)
            before = skill_tau(book, seed)
            for query in book.queries:
                total.update(map(kind_of, query.item_ids))
            done = 0
            while done < MOST_ROUNDS:
                result = improve(book, BankTexts(), min_rating=4)
                if not result.is_confirmed:
                    break
                found.update(kind_of(one.item_id) for one in result.proposals)
                book, done = followed(book, result.proposals), done + 1
            rounds.append(done)
            confirmed += done > 0
            taus.append((before, skill_tau(book, seed)))
        one, other = np.mean(taus, axis=0)
        print(
            f"{bad or 'no bad items'}: a gain in {confirmed} of {exams} exams, rounds "
            f"{dict(sorted(Counter(rounds).items()))}, tau with skill {one:.3f} -> {other:.3f}"
        )
        for kind, count in total.items():
            print(
                f"    {kind}: {found[kind]} of {count} retired = {found[kind] / count:.2f}",
                flush=True,
            )
    print("Items on trial: 2 good and 2 random ones per query, bank with 5 random of 10 items")
    added, gains = Counter[str](), 0
    for seed in range(exams):
        book = planted_exam(seed, {"random": 5}, trial=(GOOD, GOOD, "random", "random"))
        result = improve(book, BankTexts(), min_rating=4)
        gains += result.is_confirmed
        added.update(kind_of(one.item_id) for one in result.accepted if one.change == ADD)
    print(f"    a gain in {gains} of {exams}; added of {exams * 80} each: {dict(added)}")


# ---- TREC DL 2019 --------------------------------------------------------------------------------


def dl19(data: Path) -> tuple[Gradebook, BankTexts]:
    with tempfile.TemporaryDirectory() as folder, exampp.create(Path(folder) / "dl19.exam") as exam:
        exam.import_files(data / "graded.jsonl.gz", data / "questions.jsonl.gz")
        chosen = exam.grades()
        return chosen.gradebook, chosen.bank_texts()


def described(gain: improvement.Gain) -> str:
    low, high = gain.difference.low, gain.difference.high
    value = f"{gain.difference.value:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"  {gain.measure}: {gain.before:.3f} -> {gain.after:.3f}, {value}"


def official(data: Path) -> None:
    book, texts = dl19(data)
    start = time.process_time()
    ranks = read_officials(data / "official-leaderboard.json")
    for least in (4, 5):
        result = improve(book, texts, min_rating=least, officials=ranks)
        print(result.headline)
        print(*map(described, result.gains), sep="\n")
    print(f"{(time.process_time() - start) / 2:.1f} s CPU a trial, with lint")
    exam = trial_exam(book, 4, 20)
    of = exam.statistics(np.arange(len(exam.scores.systems)))
    better = ranks["official-leaderboard.json"]
    known = np.array([one in better for one in exam.scores.systems])
    order = [-better[one] for one in exam.scores.systems if one in better]
    print("In sample (all systems choose and are ranked): items, tau-b with the official order")
    for way in exam.selections:
        selected = exam.select(way, of)
        scores = np.round(exam.scores.cover(selected)[known], 9)
        print(f"  {way}: {selected.sum()}, {kendalltau(scores, order).statistic:.3f}")


# ---- LLMJudge with made rankings -----------------------------------------------------------------

SYSTEMS = 40
DEPTH = 50
_WORD = re.compile(r"[a-z0-9]+")


def made_runs(graded: Path, seed: int) -> str:
    """Return rankings of the passages of every query by random rankers, as a TREC run file."""
    random = np.random.default_rng(seed)
    settings = [
        (random.uniform(0.4, 2.5), random.uniform(0, 1), random.choice((10, 20, 40, 1000)),
         random.uniform(0.4, 1), random.uniform(0, 2.5))
        for _ in range(SYSTEMS)
    ]  # fmt: skip
    lines = []
    with gzip.open(graded, "rt", encoding="utf-8") as file:
        for query_id, passages in map(json.loads, file):
            data = passages[0]["paragraph_data"]["judgments"][0]
            words = _WORD.findall(data["titleQuery"].lower())
            texts = [_WORD.findall(one["text"].lower()) for one in passages]
            for number, (k1, b, first, share, noise) in enumerate(settings):
                chosen = [one for one in words if random.random() < share] or words[:1]
                scores = bm25([text[:first] for text in texts], chosen, k1, b)
                scores += random.normal(size=len(scores)) * noise * scores.std()
                for rank, at in enumerate(np.argsort(-scores)[:DEPTH], 1):
                    passage = passages[at]["paragraph_id"]
                    lines.append(
                        f"{query_id} Q0 {passage} {rank} {DEPTH - rank} made-{number:02}\n"
                    )
    return "".join(lines)


def bm25(texts: list[list[str]], words: list[str], k1: float, b: float) -> Floats:
    """Return the BM25 score of every text (Robertson and Zaragoza 2009, with idf above 0)."""
    counts = np.array([[text.count(word) for word in words] for text in texts], float)
    lengths = np.array([len(text) for text in texts], float)
    found = (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(texts) - found + 0.5) / (found + 0.5))
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    scores: Floats = (idf * counts * (k1 + 1) / (counts + norm[:, None])).sum(axis=1)
    return scores


def ndcg_order(run: Path, qrels: Path) -> dict[str, float]:
    """Return the rank of every system by nDCG@10 with the judgments."""
    by_system: dict[str, list[ir_measures.ScoredDoc]] = {}
    for line in run.read_text().splitlines():
        query, _, passage, _, score, system = line.split()
        scored = ir_measures.ScoredDoc(query, passage, float(score))
        by_system.setdefault(system, []).append(scored)
    lines = map(str.split, qrels.read_text().splitlines())
    judged = [ir_measures.Qrel(query, passage, int(label)) for query, _, passage, label in lines]
    measure = ir_measures.nDCG @ 10
    means = {
        system: ir_measures.calc_aggregate([measure], judged, run)[measure]
        for system, run in by_system.items()
    }
    return {one: float(rank) for rank, one in enumerate(sorted(means, key=lambda o: -means[o]), 1)}


def made(data: Path, draws: int, runs: int) -> None:
    for seed in range(draws):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "made.run"
            run.write_text(made_runs(data / "llmjudge-dev-graded.jsonl.gz", seed))
            ranks = {"judgments": ndcg_order(run, data / "llmjudge-dev.qrels")}
            with exampp.create(Path(folder) / "my.exam") as exam:
                exam.import_files(data / "llmjudge-dev-graded.jsonl.gz", run)
                (name,) = (
                    one.name
                    for one in exam.graders
                    if "self-rating" in one.name and one.kind == "question"
                )
                chosen = exam.grades(name)
                book, texts = chosen.gradebook, chosen.bank_texts()
        for least in (4, 5):
            result = improve(book, texts, min_rating=least, officials=ranks)
            print(f"draw {seed}, rated {least} or above. {result.headline} {result.caption}")
            print(*map(described, result.gains), sep="\n")
        if seed == 0:
            for shuffle in SHUFFLES:
                print(f"  {claim_rate(book, shuffle, runs)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=("noise", "planted", "official", "made"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=500)
    args = parser.parse_args()
    if args.part == "noise":
        noise(args.data / "dl19", args.runs)
    elif args.part == "planted":
        planted(args.runs)
    elif args.part == "made":
        made(args.data / "science", 5, args.runs)
    else:
        official(args.data / "dl19")


if __name__ == "__main__":
    main()
