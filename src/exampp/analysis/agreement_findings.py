"""All that is to be said of the agreement of some graders, with judgments and among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from exampp.analysis.agreement import (
    LAYOUTS,
    Layout,
    RaterComparison,
    check_layouts,
    joint_alpha,
)
from exampp.analysis.agreement_qrels import with_qrels
from exampp.analysis.agreement_raters import (
    DEFAULT_AT_LEAST,
    RatedUnits,
    among_graders,
    check_min_rating,
    check_min_relevant,
    panel,
    ways,
    with_judgments,
)
from exampp.analysis.agreement_tables import (
    AgreementBlock,
    Joint,
    by_pair,
    confusion_table,
    joint_table,
    label_name,
    statistics_table,
    tidy,
    tidy_counts,
)
from exampp.analysis.grader_bias import GraderBias, grader_bias
from exampp.errors import InputError
from exampp.evaluate.people import said_by_people
from exampp.records import Judgment
from exampp.records.gradebook import GRADE_JUDGED, MISSING, Gradebook
from exampp.records.wording import counted
from exampp.report.result import Result
from exampp.report.table import Table
from exampp.stats.estimate import Estimate

Against = Literal["judgments", "graders", "people"]


@dataclass(frozen=True, slots=True, repr=False)
class Agreements(Result):
    """What `find` found, and what to know when reading it.

    `judged` are graders and qrels against judgments and qrels, `mutual` graders against each other,
    `joint` all of them together, `people` people against graders and against each other. `bias` is
    the check of each grader for a favoured system, where its passages are judged.
    """

    judged: tuple[AgreementBlock, ...] = ()
    mutual: tuple[AgreementBlock, ...] = ()
    joint: tuple[Joint, ...] = ()
    people: tuple[AgreementBlock, ...] = ()
    bias: tuple[GraderBias, ...] = ()
    notes: tuple[str, ...] = ()

    def tables(self, *, mutual_counts: bool = False) -> dict[str, Table]:
        """Confusion tables and statistics, pair by pair; `mutual_counts`: of graders too."""
        tables: list[Table] = []
        for of_pair in by_pair(self.judged):
            tables += [*map(confusion_table, of_pair), statistics_table(of_pair)]
        for of_pair in by_pair(self.mutual):
            tables += map(confusion_table, of_pair if mutual_counts else ())
            tables.append(statistics_table(of_pair))
        tables += [joint_table(self.joint)] if self.joint else []
        for of_pair in by_pair(self.people):
            tables += [*map(confusion_table, of_pair), statistics_table(of_pair)]
        tables += [table for found in self.bias for table in found.tables().values()]
        last = tables.pop() if tables else Table.of(["label", "layout"], [], "Agreement")
        tables.append(replace(last, notes=(*last.notes, *self.notes)))
        return {str(number): table for number, table in enumerate(tables, 1)}

    def estimates(self) -> list[Estimate]:
        """Every statistic of every comparison; none where nothing could be compared."""
        found = [one.estimates for one in (*self.judged, *self.mutual, *self.people)]
        found += [one.estimates for one in self.joint]
        return [estimate for estimates in found for estimate in estimates.values()]

    def records(self) -> dict[str, Table]:
        """All counts, and all statistics, one a row."""
        both = (*self.judged, *self.mutual, *self.people)
        found = {"confusion": tidy_counts(both), "agreement": tidy(both, self.joint, self.notes)}
        if self.bias:
            tables = [one.records()["bias"] for one in self.bias]
            rows = tuple(row for table in tables for row in table.rows)
            notes = tuple(note for table in tables for note in table.notes)
            found["bias"] = replace(tables[0], rows=rows, notes=notes)
        return found


def find(
    books: Sequence[Gradebook],
    *,
    people: Sequence[RaterComparison] = (),
    qrels: Mapping[str, Iterable[Judgment]] | None = None,
    at_least: Sequence[int] = DEFAULT_AT_LEAST,
    min_rating: int | None = None,
    min_relevant: Sequence[int] = (),
    layouts: Sequence[str] = LAYOUTS,
    against: Against | None = None,
) -> Agreements:
    """Agreement of graders with judgments and with each other, in one pass over their grades.

    `people` are comparisons to stand beside them (see `agreement_people`). `qrels` are label files
    by name: they are compared with graders, with judgments and with each other, and need no graders
    (`find([], qrels={"a": ..., "b": ...})`). `at_least` says which of
    a passage's ratings is its label (1: the best); `min_rating` is the lowest that is STRICT, by
    default 4 of 0-5 and two thirds up any other scale; `min_relevant` the lowest relevant
    judgment, by default 2 or the highest there is. `against` leaves the rest out.

    Raises:
        InputError: There is no such layout or `against`, or a number is off the scale.
    """
    if against not in (None, *get_args(Against)):
        raise InputError(
            f"labels are not compared against {against!r}",
            mend=f"Choose from {', '.join(get_args(Against))}",
        )
    if qrels and against not in (None, "judgments"):
        raise InputError(
            f"qrels are compared as judgments are, not against {against}",
            mend="Leave out --against, or use --against judgments",
        )
    wanted = check_layouts(layouts)
    check_min_rating(books, min_rating)
    notes = list(dict.fromkeys(note for book in books for note in _book_notes(book)))
    judged: tuple[AgreementBlock, ...] = ()
    mutual: tuple[AgreementBlock, ...] = ()
    joint: tuple[Joint, ...] = ()
    bias: tuple[GraderBias, ...] = ()
    if against in (None, "judgments"):
        found = panel(books, at_least, judged=True)
        judged = tuple(_judged(found, qrels or {}, min_rating, min_relevant, wanted))
        bias = tuple(one for one in map(grader_bias, books) if one.is_compared and one.is_judged)
        notes += _left_out(found) if len(found.query) or not qrels else ()
    if against in (None, "graders") and len(books) > 1:
        found = panel(books, at_least)
        mutual = blocks(among_graders(found, min_rating), wanted)
        joint = all_together(found, wanted, min_rating) if len(books) > 2 else ()
    if judged or mutual:
        notes += dict.fromkeys(note for book in books for note in _beyond(book, at_least))
    if against == "graders" and len(books) < 2:
        notes.append("Agreement of graders is undefined, because there is only one grader.")
    decided = blocks(people, wanted)
    if against == "people" and not decided:
        notes.append("Agreement with people is undefined, because nobody has decided a cell.")
    return Agreements(judged, mutual, joint, decided, bias, tuple(notes))


def _judged(
    found: RatedUnits,
    qrels: Mapping[str, Iterable[Judgment]],
    min_rating: int | None,
    min_relevant: Sequence[int],
    layouts: Sequence[Layout],
) -> Iterator[AgreementBlock]:
    """Graders against judgments, then whatever there is against qrels."""
    cuts: Sequence[int | None] = tuple(dict.fromkeys(min_relevant)) or (None,)
    if len(found.query):
        check_min_relevant(found.judgments, min_relevant)
        for cut in cuts:
            yield from blocks(with_judgments(found, min_rating, cut), layouts)
    files = {name: tuple(judgments) for name, judgments in qrels.items()}
    for cut in cuts if files else ():
        compared = with_qrels(found.books, files, found.at_least, min_rating, cut)
        yield from blocks(compared, layouts)


def blocks(
    comparisons: Iterable[RaterComparison], layouts: Sequence[Layout]
) -> tuple[AgreementBlock, ...]:
    """Every comparison in every layout."""
    return tuple(
        AgreementBlock(c, layout, c.estimates(layout)) for c in comparisons for layout in layouts
    )


def all_together(
    found: RatedUnits, layouts: Sequence[Layout], min_rating: int | None = None
) -> tuple[Joint, ...]:
    """All graders together, by each m-th best rating and in every layout."""
    name = f"alpha of all {len(found.books)} graders"
    return tuple(
        Joint(name, at_least, layout, units, queries, estimates)
        for m, at_least in ways(found, *found.books)
        for raters in (found.raters(m, min_rating),)
        for layout in layouts
        for units, queries, estimates in (joint_alpha(raters, found.query, found.queries, layout),)
    )


def _book_notes(book: Gradebook) -> Iterator[str]:
    if book.grader.is_draft:
        yield "These are draft grades: good for trying things out, not for conclusions."
    if book.left_out.cells:
        yield f"{book.grader.name}: left out, as asked for: {said_by_people(book.left_out)}."
    if book.oversight.cells:
        yield (
            f"{book.grader.name}: labels rest on people's decisions, too "
            f"({said_by_people(book.oversight)}); --decisions without leaves them out."
        )
    yield from book.notes


def _beyond(book: Gradebook, at_least: Sequence[int]) -> Iterator[str]:
    """That no passage can have so many ratings."""
    most = max((len(query.item_ids) for query in book.queries), default=0)
    beyond = [label_name(m) for m in dict.fromkeys(at_least) if m > most]
    if beyond and book.grader.kind != "query":
        yield (
            f"The {', '.join(beyond)} by {book.grader.name} is {book.grader.lowest} for every "
            f"passage, because no query has more than {counted(most, 'item')} (--at-least)."
        )


def _left_out(found: RatedUnits) -> Iterator[str]:
    """Judged passages without a label of some grader; that nothing is judged at all."""
    judged = found.judgments != MISSING
    if not judged.any():
        yield "Agreement with judgments is undefined, because there are no judgments."
    labels = found.labels[found.at_least[0]]
    for book, of_grader in zip(found.books, labels, strict=True):
        without = int((judged & (of_grader == MISSING)).sum())
        if without:
            yield (
                f"{without} of {int(judged.sum())} judged passages have no grade by "
                f"{book.grader.name} and are left out. {GRADE_JUDGED}."
            )
