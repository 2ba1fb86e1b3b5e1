"""Measures `exampp bank improve`: false claims, planted bad items, and an official leaderboard.

PYTHONPATH=tests python benchmarks/improve.py noise|planted|official|made
    [--data ../shared/data] [--runs 500]

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

made: data sets with judgments and real grades, ranked by 56 known rankers (`support.rankers`) that
see neither. LLMJudge dev has no runs; TREC DL 2019 shows how made rankings differ from real ones.
The official order is nDCG@10 by human judgments (ir_measures). For each seed of the halves: gain in
agreement, and in tau of Cover@k and of nDCG@10 by EXAM-Qrels. Then the rate of confirmed gains in
shuffled exams.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
from ir_measures import Qrel, ScoredDoc, nDCG
from scipy.stats import kendalltau
from support.planted_items import BAD, GOOD, planted_exam
from support.rankers import Rankers

import exampp
from exampp.analysis import improvement
from exampp.analysis.improvement import ADD, RETIRE, Gain, ImprovementSettings, improve
from exampp.analysis.item_trials import cross_fit, trial_exam
from exampp.inputs.officials import read_officials
from exampp.measures.cover import item_scores
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.records.gradebook import Gradebook, QueryGrades
from exampp.records.items import BankTexts
from exampp.stats.estimate import Estimate
from exampp.stats.held_out import draw_halves, jackknifed, related_groups
from exampp.stats.item_analysis import ranked
from exampp.stats.proportions import share_interval
from exampp.stats.rank_correlation import kendall_rows

Random = np.random.Generator
MOST_ROUNDS = 6
SEEDS = 5


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


def print_claims(name: str, book: Gradebook, runs: int) -> None:
    for shuffle in SHUFFLES:
        count, gain = claims(book, shuffle, runs, 4)
        rate = share_interval(count, runs)
        print(
            f"  {name}, {shuffle.__name__} shuffled: {count} = {rate.value:.3f} "
            f"[{rate.low:.3f}, {rate.high:.3f}], mean gain {gain:+.4f}",
            flush=True,
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
            print_claims(name, book, runs)


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


# ---- official leaderboards -----------------------------------------------------------------------


def dl19(data: Path) -> tuple[Gradebook, BankTexts]:
    with tempfile.TemporaryDirectory() as folder, exampp.create(Path(folder) / "dl19.exam") as exam:
        exam.import_files(data / "graded.jsonl.gz", data / "questions.jsonl.gz")
        chosen = exam.grades()
        return chosen.gradebook, chosen.bank_texts()


def described(measure: str, before: float, after: float, gain: Estimate) -> str:
    interval = f"[{gain.low or 0:+.3f}, {gain.high or 0:+.3f}]"
    return f"{measure}: {before:.3f} -> {after:.3f}, {after - before:+.3f} {interval}"


def official(data: Path) -> None:
    book, texts = dl19(data)
    start = time.process_time()
    ranks = read_officials(data / "official-leaderboard.json")
    for least in (4, 5):
        result = improve(book, texts, min_rating=least, officials=ranks)
        print(result.headline)
        for gain in result.gains:
            print(f"  {described(*gain)}")
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


# ---- made rankings -------------------------------------------------------------------------------

JUDGED = {
    "LLMJudge dev": ("science/llmjudge-dev-graded.jsonl.gz", ""),
    "TREC DL 2019": ("dl19/graded.jsonl.gz", "dl19/queries.json"),
}
"""Graded files with judgments, and the texts of their queries if they are in another file."""


def made_runs(
    graded: Path, titles: dict[str, str]
) -> tuple[dict[str, list[ScoredDoc]], dict[str, float]]:
    """Return the run of every ranker on the passages of a graded file, and its nDCG@10."""
    texts, qrels = {}, []
    with gzip.open(graded, "rt", encoding="utf-8") as lines:
        for query, passages in map(json.loads, lines):
            for passage in passages:
                texts[query, passage["paragraph_id"]] = passage["text"]
                for one in passage["paragraph_data"]["judgments"]:
                    titles.setdefault(query, one["titleQuery"])
                    qrels.append(Qrel(query, passage["paragraph_id"], one["relevance"]))
    rankers, runs = Rankers(texts), dict[str, list[ScoredDoc]]()
    for query in rankers.rows:
        for system, ranking in rankers.rankings(query, titles[query]).items():
            runs.setdefault(system, []).extend(ScoredDoc(query, *one) for one in ranking)
    ndcg = {
        system: round(ir_measures.calc_aggregate([nDCG @ 10], qrels, run)[nDCG @ 10], 9)
        for system, run in runs.items()
    }
    return runs, ndcg


def made_exams(data: Path) -> Iterator[tuple[str, Gradebook, dict[str, float]]]:
    """Yield exams with made rankings: name, gradebook, and official ranks by judgments."""
    for name, (graded, queries) in JUDGED.items():
        if not (data / graded).exists():
            print(f"{name}: {data / graded} is missing")
            continue
        titles = json.loads((data / queries).read_text()) if queries else {}
        runs, ndcg = made_runs(data / graded, titles)
        print(f"{name}: nDCG@10 {', '.join(f'{one} {ndcg[one]:.3f}' for one in ndcg)}")
        ranks = {one: 1.0 + sum(v > ndcg[one] for v in ndcg.values()) for one in ndcg}
        with tempfile.TemporaryDirectory() as folder, exampp.open(data / graded) as exam:
            files = [Path(folder, f"{system}.run") for system in runs]
            for file, run in zip(files, runs.values(), strict=True):
                rows = [f"{q} Q0 {passage} 0 {score} {file.stem}\n" for q, passage, score in run]
                file.write_text("".join(rows))
            for grader in exam.graders:
                if grader.prompt.endswith("self-rating"):
                    grades = exam.grades(prompt=grader.prompt, runs=files)
                    yield f"{name}, {grader.prompt}", grades.gradebook, ranks


def of_qrels(book: Gradebook, least: int, ranks: Mapping[str, float], seed: int) -> Gain:
    """Return the gain in tau of nDCG@10 by EXAM-Qrels for held-out systems."""
    exam = trial_exam(book, least, 20)
    groups = related_groups(exam.similarity(), improvement.SIMILAR)
    halves = draw_halves(groups, improvement.SPLITS, seed)
    fit = cross_fit(exam, halves, seed)
    names = exam.scores.systems
    taus = []
    for half in halves:
        of = exam.statistics(half.chosen_by)
        ways = np.array([exam.select(way, of) for way in fit.selections])
        selected = ways[fit.chosen[exam.scores.query], np.arange(len(exam.in_force))]
        retired = {key for key, stays in zip(exam.keys, selected, strict=True) if not stays}
        sides = []
        for chosen in (book, without(book, retired)):
            board = evaluate_gradebook(chosen, ["nDCG@10"], least)
            rows = [board.column_systems.index(names[at]) for at in half.held_out.tolist()]
            values = board.columns[0].values.values[rows]
            left = (values.sum(axis=1, keepdims=True) - values) / (values.shape[1] - 1)
            means = np.vstack([values.mean(axis=1), left.T])
            order = [-ranks[names[at]] for at in half.held_out.tolist()]
            sides.append(kendall_rows(ranked(means), order).values)
        taus.append(sides)
    before, after = np.mean(taus, axis=0)
    gain = jackknifed(float(after[0] - before[0]), after[1:] - before[1:])
    return Gain("tau of EXAM-Qrels", float(before[0]), float(after[0]), gain)


def without(book: Gradebook, retired: set[tuple[str, str]]) -> Gradebook:
    def of(query: QueryGrades) -> QueryGrades:
        gone = [(query.query_id, item) in retired for item in query.item_ids]
        return replace(query, weights=np.where(gone, 0.0, query.weights))

    return replace(book, queries=tuple(map(of, book.queries)))


def made(data: Path, runs: int) -> None:
    for name, book, ranks in made_exams(data):
        for least, k in ((4, 20), (5, 20), (4, 5), (5, 5)):
            print(f"{name}, Cover@{k} with ratings from {least}")
            for seed in range(SEEDS):
                result = improve(
                    *(book, BankTexts()),
                    min_rating=least,
                    k=k,
                    officials={"nDCG@10 by judgments": ranks},
                    settings=ImprovementSettings(seed=seed),
                )
                gains = list(result.gains)
                if k == 20 and gains:
                    gains.append(of_qrels(book, least, ranks, seed))
                print(f"  seed {seed}: {result.headline}")
                for one in gains:
                    print(f"    {described(*one)}", flush=True)
        print_claims(name, book, runs)


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
    elif args.part == "official":
        official(args.data / "dl19")
    else:
        made(args.data, args.runs)


if __name__ == "__main__":
    main()
