"""Banks beside a reference bank, each with all its kinds of items: a grader grades them by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from exampp.errors import InputError
from exampp.records.graders import same_but_for_kind
from exampp.sanitize import check_lists
from exampp.store.bank import all_bank_names, read_bank, unknown_bank
from exampp.store.inputs import texts_of

if TYPE_CHECKING:
    from exampp.analysis.banks import BankComparison, MatchedBanks
    from exampp.grades.base import ChosenGrades
    from exampp.records.gradebook import Gradebook
    from exampp.store.sql import GuardedConnection


def of_all_kinds(grades: ChosenGrades) -> tuple[ChosenGrades, ...]:
    """Return the grades, and those of the same grader on items of other kinds of the bank."""
    others = (
        replace(grades, stored=one.stored)
        for one in grades.others()
        if one.bank == grades.bank
        and one.grader.kind != grades.grader.kind
        and same_but_for_kind(one.grader, grades.grader)
    )
    return grades, *others


def match_stored_banks(
    connection: GuardedConnection,
    reference: str,
    banks: Sequence[str],
    matcher: str,
    grades_of: Callable[[str], Iterable[ChosenGrades]],
) -> MatchedBanks:
    """Match the items of banks of a collection with those of the bank `reference`.

    `grades_of` returns the grades of a bank by kind of item, which the matcher `coverage` reads.

    Raises:
        InputError: A bank or the matcher is unknown, or nothing can be compared.
    """
    from exampp.analysis.banks import match_banks

    check_lists(banks=banks)
    known = all_bank_names(connection)
    wanted = (reference, *(banks or known))
    if unknown := next((one for one in wanted if one not in known), None):
        raise unknown_bank(unknown, known)
    entries = {name: list(read_bank(connection, name)) for name in dict.fromkeys(wanted)}

    def books_of(bank: str) -> list[Gradebook]:
        return [one.gradebook for one in grades_of(bank)]

    return match_banks(reference, entries, matcher, books_of)


_FEW_ITEMS = 500
"""Maximum number of items that a report compares by their texts, in about two seconds."""


def banks_of_report(grades: ChosenGrades) -> BankComparison | None:
    """Return the comparison of banks that a report shows, if there is one.

    These are graded matches, or else a few items of other banks, compared with the bank by text.
    """
    from exampp.analysis.banks import are_matches, compare_banks

    if are_matches(grades.gradebook):
        return compare_graded(grades, None, 0, shared=False, min_rating=None)
    connection = grades.connection
    names = all_bank_names(connection)
    if grades.bank not in names or len(names) < 2:
        return None
    items = sum(len(entry.items) for name in names for entry in read_bank(connection, name))
    if items > _FEW_ITEMS:
        return None
    # InputError: no other bank has a query of this one
    with suppress(InputError):
        return compare_banks(match_stored_banks(connection, grades.bank, (), "text", lambda _: ()))
    return None


def compare_graded(
    grades: ChosenGrades, k: int | None, best: int, *, shared: bool, min_rating: int | None
) -> BankComparison:
    """See `Grades.banks`."""
    from exampp.analysis.banks import are_matches, compare_banks, read_matches

    books = [one.gradebook for one in of_all_kinds(grades)]
    books = [one for one in books if one.is_graded] or books
    passages = {one for book in books for query in book.queries for one in query.passage_ids}
    texts = texts_of(grades.connection, list(passages)) if are_matches(books[0]) else {}
    matched = read_matches(books, grades.bank_texts().entries, texts, min_rating)
    return compare_banks(matched, k=k, best=best, shared=shared)
