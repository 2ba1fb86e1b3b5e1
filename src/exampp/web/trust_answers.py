"""How far the leaderboard of a snapshot can be trusted: a question each, answered when asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from exampp.collection import Collection
from exampp.errors import InputError
from exampp.web.snapshot import Snapshot

if TYPE_CHECKING:
    from exampp.analysis.verdict import TrustAnswer

MEASURE_OF_PEOPLE = "P@20"
"""What is corrected where nobody drew a sample for another measure."""


class Question(NamedTuple):
    """What people ask: the question, what the answer is made of, and how it is found.

    `command` is that of `exampp analyze`; `elsewhere` is the page of where its records are.
    """

    asked: str
    about: str
    command: str
    find: Callable[[Snapshot], TrustAnswer]
    elsewhere: tuple[str, str] = ("", "")


def answer(snapshot: Snapshot, key: str, patience: float) -> TrustAnswer | None:
    """The answer to one of the `QUESTIONS`; None while it is being found out."""
    state = _battery(snapshot) if key == "attacks" else None
    return snapshot.kept.soon(("trust", key), lambda: _found(snapshot, key), patience, state)


def _found(snapshot: Snapshot, key: str) -> TrustAnswer:
    from exampp.analysis.verdict import not_green, not_yet

    try:
        found = QUESTIONS[key].find(snapshot)
        return found._replace(line=not_green(found.line, snapshot.bias))
    except InputError as error:
        text = str(error)
        return not_yet(QUESTIONS[key].asked, key, f"{text[:1].upper()}{text[1:]}.")


def _battery(snapshot: Snapshot) -> tuple[int, ...]:
    """Changes when the battery beside the exam does, which is a file of its own."""
    from exampp.analysis.attacks.battery import beside

    path = beside(snapshot.path)
    files = (path, path.with_name(f"{path.name}-wal"))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


def _items(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.verdict import about_items

    return about_items(snapshot.item_analysis())


def _reliability(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.reliability import reliability, scored_column
    from exampp.analysis.verdict import about_reliability

    column = scored_column(snapshot.gradebook, snapshot.board, texts=snapshot.bank_texts())
    return about_reliability(reliability(column))


def _sensitivity(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.sensitivity import Evaluated, sensitivity
    from exampp.analysis.verdict import about_sensitivity

    name = snapshot.choice.grader.name
    return about_sensitivity(sensitivity([Evaluated(name, snapshot.gradebook)]))


def _attacks(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.attacks.result import GamingSettings, find_gaming
    from exampp.analysis.verdict import about_attacks

    with Collection(snapshot.path) as collection:
        grades = snapshot.choice.of(collection)
        makers, highest = grades.item_models(snapshot.gradebook), grades.highest_judgment
    found = find_gaming(
        snapshot.gradebook,
        GamingSettings(snapshot.min_rating),
        exam=snapshot.path,
        makers=makers,
        highest_judgment=highest,
    )
    return about_attacks(found)


def _bias(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.verdict import about_bias

    return about_bias(snapshot.bias)


def _corrected(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.verdict import about_corrected

    with Collection(snapshot.path) as collection:
        grades = snapshot.choice.of(collection)
        plans = grades.decisions.plans()
        measure, plan = (
            (plans[-1].measure, plans[-1].number) if plans else (MEASURE_OF_PEOPLE, None)
        )
        return about_corrected(grades.corrected(measure, plan=plan))


def _calibration(snapshot: Snapshot) -> TrustAnswer:
    from exampp.analysis.calibration import calibrate
    from exampp.analysis.verdict import about_calibration

    return about_calibration(calibrate([snapshot.gradebook], snapshot.path.name))


QUESTIONS: Mapping[str, Question] = {
    "bias": Question(
        "Does the grader favour a system?",
        "ratings of each system's passages beside people's judgments of them",
        "agreement",
        _bias,
        ("/agreement", "Agreement with people"),
    ),
    "reliability": Question(
        "Would other queries show the same order?",
        "how many queries and items it takes, and what to buy next",
        "reliability",
        _reliability,
    ),
    "sensitivity": Question(
        "What survives other choices?",
        "the ranks of systems over thresholds, cutoffs, measures and missing cells",
        "sensitivity",
        _sensitivity,
    ),
    "items": Question(
        "Is the exam a good one?",
        "items that tell systems apart, and items that speak against themselves",
        "items",
        _items,
        ("/items?order=worst", "The worst items"),
    ),
    "attacks": Question(
        "Can the grader be gamed?",
        "attacks beside benign controls, guessing, circularity, who knows whom",
        "attacks",
        _attacks,
    ),
    "corrected": Question(
        "What would people say of all of it?",
        "the leaderboard by grades, as people's decisions correct it, and by people alone",
        "corrected",
        _corrected,
        ("/sample", "The sample"),
    ),
    "calibration": Question(
        "Do ratings tell what people would judge?",
        "probabilities of people's labels, tried on queries that were held out",
        "calibration",
        _calibration,
        ("/agreement", "Agreement with people"),
    ),
}
"""By the name in the address, in the order of the page."""
