"""Compare grades with an earlier version of the exam: a collection, or stored scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from exampp.analysis.changes import (
    Changes,
    ChangeSettings,
    VersionScores,
    compare_scores,
    compare_versions,
)
from exampp.analysis.gate import canonical, with_cutoff
from exampp.analysis.versions import ExamVersion
from exampp.errors import InputError
from exampp.formats.leaderboards import QueryScore
from exampp.formats.lines import read_lines
from exampp.grades.base import ChosenGrades
from exampp.grades.gating import Earlier, stored_scores
from exampp.inputs.graded_file import GradedFile
from exampp.measures.board import Leaderboard
from exampp.measures.exams import SubtopicChoice, resolve_subtopics
from exampp.measures.leaderboard import default_measures, default_min_rating, missing_prerequisite
from exampp.measures.names import Measure
from exampp.measures.qrels import Labelling
from exampp.records.gradebook import Gradebook, choose_systems, systems_named
from exampp.records.graders import grader_label
from exampp.records.systems import systems_matching
from exampp.results.notes import listed, note
from exampp.sanitize import check_path, or_default
from exampp.store.bank import bank_names, bank_of_kind
from exampp.store.connection import connect, is_collection, is_graded_file
from exampp.store.grades import StoredGrader, graders, graders_with_grades
from exampp.store.history import connect_before
from exampp.store.inputs import system_names


def changes_of_grades(
    grades: ChosenGrades,
    since: Earlier,
    measure: str | None = None,
    *,
    min_rating: int | None = None,
    subtopics: SubtopicChoice = "auto",
    labelling: Labelling | None = None,
) -> Changes:
    """See `Grades.changes`."""
    after = _version(grades, grades.path.name)
    scores = _scores_of_version(since)
    least = None if min_rating is None else grades.grader.threshold(min_rating)
    chosen = with_cutoff(
        measure or (scores[0].measure if scores else default_measures(after.book)[0])
    )
    settings = ChangeSettings(
        str(chosen),
        default_min_rating(after.book) if least is None else least,
        resolve_subtopics(after.book, subtopics),
        or_default("labelling", labelling, Labelling),
    )
    if scores is None:
        with earlier_grades(grades, since) as earlier:
            when = _time(since) if isinstance(since, str | Path) else ""
            name = str(since) if when else earlier.path.name
            found = compare_versions(_version(earlier, name), after, settings)
            history = [note("changes-history", when=f"{since} (UTC)")] if when else []
            return replace(found, notes=(*history, *found.notes))
    name = Path(since).name if isinstance(since, str | Path) else "the other leaderboard"
    of_measure, stored = _of_measure(scores, chosen, least, name)
    selected = _selected(grades, {one.system for one in of_measure}, name)
    of_measure = [one for one in of_measure if one.system in selected]
    if stored is not None:
        settings = replace(settings, min_rating=grades.grader.threshold(stored))
    clipped = chosen.kind.clipped
    return compare_scores(VersionScores.of_file(name, of_measure, clipped=clipped), after, settings)


def _version(grades: ChosenGrades, name: str) -> ExamVersion:
    if absent := missing_prerequisite(grades.gradebook):
        raise InputError(f"{name} has no scores to compare: {absent.cause}", hint=absent.hint)
    identities = tuple(one.identity.key for one in graders(grades.connection))
    return ExamVersion(name, grades.gradebook, grades.bank_texts(), identities)


def _scores_of_version(since: Earlier) -> Sequence[QueryScore] | None:
    """Return the scores of a leaderboard or a file of them; None for grades."""
    if not isinstance(since, str | Path):
        return stored_scores(since)
    if is_collection(since) or _time(since):
        return None
    if not check_path(since).exists():
        raise InputError(
            "no such file",
            file=since,
            hint="Name a collection, stored scores, or a date such as 2026-11-03",
        )
    _, first = next(read_lines(since))
    if first.lstrip().startswith(b"["):
        return None
    if not (scores := stored_scores(since, means=True)):
        raise InputError(
            "is neither a collection, nor graded passages, nor a file of scores",
            file=since,
            hint="Store scores with: exampp evaluate COLLECTION --per-query --format json",
        )
    return scores


def _time(since: str | Path) -> str:
    """Return a date or time as it is stored, in UTC; "" for a file or another text."""
    if Path(since).exists():
        return ""
    try:
        time = datetime.fromisoformat(str(since))
    except ValueError:
        return ""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _of_measure(
    scores: Sequence[QueryScore], measure: Measure, min_rating: int | None, name: str
) -> tuple[list[QueryScore], int | None]:
    """Return the scores of a measure, and the minimum rating that they were computed with.

    Raises:
        InputError: The measure or the minimum rating is not among them, or there are several.
    """
    found = [one for one in scores if canonical(one.measure) == str(measure)]
    if not found:
        known = listed(list(dict.fromkeys(one.measure for one in scores)))
        raise InputError(f"{name} has no {measure}", hint=f"Choose with -m from: {known}")
    thresholds = {one.min_rating for one in found}
    known = listed(sorted(one for one in thresholds if one is not None))
    hint = f"Choose with --min-rating from: {known}"
    if min_rating is not None and not thresholds & {min_rating, None}:
        raise InputError(f"{name} has no {measure} at minimum rating {min_rating}", hint=hint)
    if min_rating is None and len(thresholds) > 1:
        raise InputError(f"{name} has {measure} at several minimum ratings", hint=hint)
    fitting = [one for one in found if min_rating is None or one.min_rating in (None, min_rating)]
    return fitting, fitting[0].min_rating


@contextmanager
def earlier_grades(grades: ChosenGrades, since: Earlier) -> Iterator[ChosenGrades]:
    """Open the earlier grades of the same grader, or of the only one of its kind.

    Raises:
        InputError: No grader fits.
    """
    if isinstance(since, ChosenGrades):
        yield since
        return
    if isinstance(since, Leaderboard):
        raise InputError("a leaderboard has no grades", hint="Name a collection")
    path = Path(since)
    if when := _time(path):
        path = grades.path
        if is_graded_file(grades.connection):
            hint = "Compare with an earlier file, not with a date"
            raise InputError("graded passages have no history", file=path, hint=hint)
        connection = connect_before(path, when)
    else:
        connection = connect(path) if is_collection(path) else GradedFile(path).open()
    with closing(connection):
        stored = _same_grader(grades, graders(connection), graders_with_grades(connection), path)
        kind = stored.identity.kind
        banks = bank_names(connection, kind)
        if when and kind != "query" and grades.bank not in banks:
            raise InputError(
                f"the bank {grades.bank} had no {kind}s before {since}",
                file=path,
                hint="Choose a later date. The log has all: exampp bank log",
            )
        known = grades.bank if grades.bank in banks else None
        earlier = replace(
            grades,
            connection=connection,
            stored=stored,
            bank=bank_of_kind(connection, known, kind, path),
            # an earlier state has the systems of now
            runs=grades.runs if when else (),
            systems=(),
            without=(),
        )
        book = earlier.gradebook
        left = _selected(grades, book.systems, path.name, book)
        yield earlier.using(choose_systems(book, sorted(left), ()))


def _selected(
    grades: ChosenGrades, known: Collection[str], name: str, book: Gradebook | None = None
) -> set[str]:
    """Return the systems of an earlier version that are selected now, or would be if not removed.

    Raises:
        InputError: There are none.
    """
    now = grades.gradebook.systems
    removed = {*known} - {*now, *(() if grades.runs else system_names(grades.connection))}
    only, without = (
        set[str]().union(*(systems_matching(one, removed) for one in names))
        for names in (
            systems_named(book, of) if book else of for of in (grades.systems, grades.without)
        )
    )
    found = ({*known} & {*now}) | ((only if grades.systems else removed) - without)
    if known and not found:
        raise InputError(
            f"{name} has none of the selected systems",
            hint=f"Its systems: {listed(sorted(known))}",
        )
    return found


def _same_grader(
    grades: ChosenGrades, known: Sequence[StoredGrader], graded: set[int], file: str | Path
) -> StoredGrader:
    rated = [one for one in known if one.key in graded]
    mine = grades.grader
    for field in ("key", "name", "kind"):
        wanted = getattr(mine, field)
        fitting = [one for one in rated if getattr(one.identity, field) == wanted]
        if len(fitting) == 1:
            return fitting[0]
    names = listed([grader_label(one.identity) for one in rated]) or "none"
    raise InputError(
        f"no grades by {grader_label(mine)}",
        file=file,
        hint=f"Its graders: {names}. Choose one that both have with --grader",
    )
