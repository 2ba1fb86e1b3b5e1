"""Whether a grader can be gamed: attacks, luck, circularity, the ledger, the price of a defence.

What needs a graded battery is left out where there is none; the rest needs no new grades.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from exampp.analysis.attacks.battery import beside, how_made, place_of
from exampp.analysis.attacks.circularity import CUTOFF, circularity
from exampp.analysis.attacks.findings import attack_results, untouched
from exampp.analysis.attacks.ledger import ledger
from exampp.analysis.attacks.tables import Gaming, GradedBattery
from exampp.errors import InputError
from exampp.evaluate.exams import SubtopicChoice
from exampp.formats.uses import SystemUse
from exampp.outside import or_default
from exampp.records.gradebook import Gradebook
from exampp.records.topics import relevant_from
from exampp.store.bank import Makers
from exampp.store.battery import unread_replies
from exampp.store.connection import connect, is_collection
from exampp.store.gradebook import read_gradebook
from exampp.store.grades import known_grader


@dataclass(frozen=True, slots=True)
class GamingSettings:
    """How it is looked at: from which rating and judgment on, down to which rank `k`.

    `min_rating` is by default that of the grader, `min_relevant` 2, or 1 where no judgment is
    higher. `officials` are official leaderboards by name, system to rank; `uses` is what people say
    that systems were made with (`formats.uses`).
    """

    min_rating: int | None = None
    min_relevant: int | None = None
    k: int = CUTOFF
    officials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    uses: Sequence[SystemUse] = ()
    subtopics: SubtopicChoice = "auto"


def find_gaming(
    book: Gradebook,
    settings: GamingSettings | None = None,
    *,
    exam: Path,
    makers: Makers,
    highest_judgment: int | None,
    battery: str | Path | None = None,
) -> Gaming:
    """All that is known of a grader; the battery is by default the one beside the `exam`.

    Raises:
        InputError: The file named is no battery, the exam is one, or `k` is below 1.
    """
    if any(map(place_of, itertools.chain.from_iterable(q.passage_ids for q in book.queries))):
        raise InputError(
            "is a battery of attacks, and no exam",
            file=exam,
            mend="Name the exam that it was made from, and the battery by --battery",
        )
    settings = or_default("settings", settings, GamingSettings)
    min_rating = book.grader.threshold(settings.min_rating)
    min_relevant = relevant_from(settings.min_relevant, highest_judgment)
    graded, why = read_battery(book, min_rating, exam, None if battery is None else Path(battery))
    return Gaming(
        book.grader,
        book.bank_label,
        min_rating,
        graded,
        why,
        untouched(book, highest_judgment, min_rating),
        circularity(
            book,
            min_rating=min_rating,
            min_relevant=min_relevant,
            officials=settings.officials,
            k=settings.k,
            subtopics=settings.subtopics,
        ),
        ledger(book, makers.models, makers.items, settings.uses),
    )


def read_battery(
    book: Gradebook, min_rating: int, exam: Path, battery: Path | None = None
) -> tuple[GradedBattery | None, str]:
    """The battery as the grader of a gradebook graded it, or None and why there is none.

    Raises InputError for a file that was named and is no battery.
    """
    path = battery or beside(exam)
    if battery is None and not is_collection(exam):
        return None, "No attack was tried: a battery is made from a collection (exampp import)."
    if battery is None and not path.exists():
        return None, f"No attack was tried. Make a battery: exampp analyze attacks {exam} --build"
    with closing(connect(path)) as connection:
        made = how_made(connection, path)
        grader = known_grader(connection, book.grader)
        if grader is None:
            return None, (
                f"{book.grader.name} has not graded the battery {path}. Grade it as you graded the "
                f"exam: exampp grade {path} --grader ..."
            )
        bank = str(made["bank"])
        found = attack_results(
            read_gradebook(connection, grader, _bank_of(book, bank)),
            unread_replies(connection, grader, _bank_of(book, bank)),
            min_rating,
        )
    return GradedBattery(found, path, made), ""


def _bank_of(book: Gradebook, bank: str) -> str:
    # what grades queries has no bank but its own
    return book.bank_label if book.grader.kind == "query" else bank
