"""`exampp review`, `record`, `search` and `serve`: lists, one query, search, and the web pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import exampp
from exampp.cli import output
from exampp.cli.command import Command, OptionRule, OptionValues, former_arguments, option_rules
from exampp.cli.options import AccessLog, MinRating, Officials
from exampp.cli.output import print_message, show
from exampp.errors import InputError
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    BankName,
    CollectionFile,
    Display,
    ExamFile,
    GraderName,
    NotesDisplay,
    SearchKind,
)

if TYPE_CHECKING:
    from exampp.results.result import Table

ListName = Literal[
    "verify",
    "grid",
    "missing",
    "spurious",
    "answers",
    "decisions",
    "disputes",
    "agreement",
    "sample",
]
NAMES = get_args(ListName)
WIDTHS = {"markdown": 200, "latex": 120, "html": 400}
"""Characters of a text for people if the width of the terminal is unknown."""
LIMITS = {"verify": 6, "grid": 20, "missing": 30, "spurious": 30}
"""Default length of a list for people."""
BESIDE_TEXT = 60
LEAST_WIDTH = 40
"""Columns of a terminal for all but the text, and the minimum for the text."""


OPTIONS_OF = {
    **dict.fromkeys(
        ("verify", "grid"),
        ("--item", "--by", "--depth", "--limit", "--min-answers"),
    ),
    **dict.fromkeys(
        ("missing", "spurious"),
        ("--item", "--by", "--depth", "--limit", "--min-rating", "--min-relevant"),
    ),
    "answers": ("--limit",),
    "decisions": ("--author", "--limit"),
    "disputes": ("--limit",),
    "agreement": ("--min-rating",),
    "sample": ("--labels",),
}
"""Options of some lists only, beside --query and --format, which all have."""
OF_DRAWING = ("--measure", "--design", "--seed", "--min-rating", "--min-relevant")
"""Options of drawing a sample."""


def _of_lists(option: str) -> OptionRule:
    lists = [name for name, options in OPTIONS_OF.items() if option in options]
    only = f"for {', '.join(lists)}" if lists else ""
    if option == "--min-rating":
        # it says which answers are counted
        only += ", and with --min-answers"

    if option in OF_DRAWING:
        only += f"{', and ' if lists else ''}to draw a sample with --labels"

    def holds(given: OptionValues) -> bool:
        counted = option == "--min-rating" and given["min_answers"] > 0
        drawing = given["name"] == "sample" and given["labels"] is not None
        drawing = drawing and option in OF_DRAWING
        return counted or drawing or given["name"] in (None, *lists)

    return OptionRule((option,), only, holds)


@option_rules(
    *map(_of_lists, dict.fromkeys([*(o for of in OPTIONS_OF.values() for o in of), *OF_DRAWING])),
    OptionRule(
        ("--number",),
        "for sample, where none is drawn",
        lambda given: given["name"] in (None, "sample") and given["labels"] is None,
    ),
    OptionRule(
        ("--query",), "for the lists, not for sample", lambda given: given["name"] != "sample"
    ),
    OptionRule(
        ("--grader", "--bank"),
        "for lists of one grader, not for decisions",
        lambda given: given["name"] != "decisions",
    ),
)
@former_arguments({"plan": "exampp review COLLECTION sample"})
def review(
    collection: ExamFile,
    name: Annotated[
        ListName | None,
        argument(
            metavar="LIST",
            help="verify: grades item by item. grid: passages by items. missing: relevant "
            "passages that no item covers. spurious: items that passages cover which are not "
            "relevant. answers: extracted answers on which rules for answer keys differ. "
            "decisions, disputes, agreement: human decisions. sample: passages for people to "
            "judge, drawn with --labels.",
        ),
    ] = None,
    query: Annotated[str | None, keyword(help="List only this query.")] = None,
    item: Annotated[
        str | None, keyword(help="List only this item: its id, or the start of several ids.")
    ] = None,
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that covers an item. [default: 4, or the highest of a shorter "
            "scale]",
            rare=True,
        ),
    ] = None,
    min_relevant: Annotated[
        int | None,
        keyword(
            help="Lowest judgment of a relevant passage. [default: 2, or 1 if none is higher]",
            rare=True,
        ),
    ] = None,
    by: Annotated[
        Literal["auto", "judgments", "systems", "graders", "decisions"],
        keyword(
            help="Take relevance from this source; auto: the first that is available.", rare=True
        ),
    ] = "auto",
    depth: Annotated[
        int,
        keyword(min=1, help="Count this many passages of each ranking as returned.", rare=True),
    ] = 20,
    min_answers: Annotated[
        int,
        keyword(min=0, help="List only passages that cover this many items or more.", rare=True),
    ] = 0,
    limit: Annotated[
        int | None,
        keyword(
            min=0,
            help="List this many cells of each item (verify), passages of each query (grid), or "
            "rows; 0: all. [default: 6, 20, 30; all for tsv, csv, json, decisions, disputes]",
        ),
    ] = None,
    grader: GraderName = None,
    bank: BankName = None,
    author: Annotated[
        str | None, keyword(help="List only the decisions of this person.", rare=True)
    ] = None,
    labels: Annotated[
        int | None,
        keyword(
            min=1,
            help="Draw and store a sample of about this many passages, or items for Cover. "
            "[default: show the newest sample]",
        ),
    ] = None,
    measure: Annotated[
        str,
        keyword("--measure", "-m", help="Draw the sample for P@20, RBP@20 or Cover@20.", rare=True),
    ] = "P@20",
    design: Annotated[
        Literal["uniform", "influence"],
        keyword(
            help="Draw with equal probabilities, or by influence on the differences of systems.",
            rare=True,
        ),
    ] = "influence",
    seed: Annotated[
        int,
        keyword(
            min=0,
            help="Seed of the sample. With the same seed, more --labels extend the sample.",
            rare=True,
        ),
    ] = 0,
    number: Annotated[
        int | None, keyword(help="Show this sample. [default: the newest]", rare=True)
    ] = None,
    *,
    display: NotesDisplay,
) -> None:
    """List grades and decisions that reveal mistakes of the grader or the bank.

    With sample --labels 400, draw passages to judge; exampp analyze corrected then corrects the
    leaderboard. COLLECTION may be a file of graded passages; --bank then names its bank file.

    Example: exampp review my.exam verify --limit 5
    """
    from exampp.records.graders import choose_grader
    from exampp.review import assessor_agreement as made
    from exampp.store.connection import is_collection

    if name is None:
        raise InputError(
            "no list is named",
            hint=f"Name one of {', '.join(NAMES)}; exampp serve shows all as pages",
        )
    with exampp.open(collection) as opened:
        if name in LIMITS:
            found = opened.grades(grader, bank=bank).review_tables(
                name,
                min_rating=min_rating,
                min_relevant=min_relevant,
                by=by,
                depth=depth,
                query_id=query,
                item=item,
                limit=_limit(name, limit, display),
                width=_width(display),
                min_answers=min_answers,
            )
            _show_parts(found, display)
            return
        if name == "answers":
            differences = opened.grades(grader, bank=bank).answer_differences(query)
            width = max(LEAST_WIDTH, (_width(display) or 0) // 2)
            shown = 30 if limit is None else limit or None
            show(differences if display.for_programs else differences.tables(shown, width), display)
            return
        if not is_collection(collection):
            raise InputError("a graded file has no decisions", hint="Give a collection")
        if name == "sample":
            grades = opened.grades(grader, bank=bank)
            if labels is not None:
                number = grades.decisions.plan(
                    labels,
                    measure,
                    design=design,
                    seed=seed,
                    min_rating=min_rating,
                    min_relevant=min_relevant,
                ).number
            show(grades.decisions.sample(number), display)
        elif name == "decisions":
            decided = opened.decisions.list(query_id=query, author=author, last=limit or None)
            show(made.decisions_table(decided), display)
        elif name == "disputes":
            one = choose_grader(opened.graders, grader=grader) if grader else None
            disputes = opened.decisions.disputes(query_id=query, grader=one, bank=bank)
            show(made.disputes_table(disputes, limit or None), display)
        else:
            grades = opened.grades(grader, bank=bank)
            judged = grades.decisions.judging(query_id=query, min_rating=min_rating)
            confusion = made.confusion_table(made.everybody(judged), judged.scale)
            tables = {"confusion": confusion, "agreement": made.agreement_table(judged)}
            show(tables, display)


def _limit(name: str, limit: int | None, display: Display) -> int | None:
    if limit is None and not display.for_programs:
        return LIMITS[name]
    return limit or None


def _width(display: Display) -> int | None:
    if display.for_programs:
        return None
    terminal = shutil.get_terminal_size((120, 24)).columns
    return WIDTHS.get(display.style, max(LEAST_WIDTH, terminal - BESIDE_TEXT))


def _show_parts(parts: Iterator[Table], display: Display) -> None:
    """Print the parts of a list one by one, as they are made; as json they are one table."""
    if display.style == "json":
        from exampp.review.lists import concatenate

        show(concatenate(parts), display)
        return
    separated = display.style in ("tsv", "csv")
    number = -1
    for number, part in enumerate(parts):
        if number and separated:
            _show_rows(part, display.style)
            continue
        if number:
            output.write("\n")
        show(part, display)
    if number < 0:
        print_message("No cell fits.")


def _show_rows(part: Table, style: str) -> None:
    """Print rows without the line of headings, which came with the first part."""
    from exampp.results.result import render

    headings = render(type(part)(part.columns, ()), style)
    output.write(render(part, style).removeprefix(headings))
    for note in part.notes:
        print_message(note)


class ReviewCommand(Command):
    """Accept `review LIST COLLECTION` as `review COLLECTION LIST`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        if len(args) > 1 and args[0] in NAMES and args[1] not in NAMES:
            args = [args[1], args[0], *args[2:]]
        return super().parse_args(ctx, args)


app = ReviewCommand("review", review)


def record(
    collection: ExamFile,
    query: Annotated[str, argument(metavar="QUERY", help="The id or the text of the query.")],
    systems: Annotated[
        list[str] | None,
        keyword(
            "--system",
            help="Show the answer of this system. Repeat for several. [default: the best two]",
        ),
    ] = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    bank: BankName = None,
    *,
    display: NotesDisplay,
) -> None:
    """Show one query of a RAG collection: answers, contexts, reference, items.

    Each sentence of an answer has its citations, and the items for which the grader quotes it.
    Contexts are in rank order, with the items that they cover.

    Example: exampp record demo.exam volcanoes --system chat-v1 --system chat-v2
    """
    with exampp.open(collection) as opened:
        found = opened.record(query, systems or (), grader=grader, bank=bank, min_rating=min_rating)
    show(found, display)


def search(
    collection: CollectionFile,
    words: Annotated[list[str], argument(metavar="WORDS", help="Words that must all occur.")],
    kinds: Annotated[
        list[SearchKind] | None,
        keyword("--in", help="Search only these. Repeat for several. [default: all]"),
    ] = None,
    limit: Annotated[int, keyword(min=1, help="List at most this many of each kind.")] = 10,
    grader: GraderName = None,
    bank: BankName = None,
    *,
    display: Display,
) -> None:
    """Search queries, items, passages, replies, reasons of decisions, and edits.

    Case does not matter, and parts of words match, also in ids and names of systems. A quoted
    argument of several words is one phrase.

    Example: exampp search my.exam "New York" weather --in passages
    """
    # only now: its library is not needed for the help
    from exampp.review.search import search_table

    wanted = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    with exampp.Collection(collection) as opened:
        found = opened.search(
            wanted,
            kinds=kinds or get_args(SearchKind),
            most=limit,
            grader=grader,
            bank=bank,
        )
    show(search_table(found, wanted, whole=display.for_programs), display)


def serve(
    collection: Annotated[
        Path | None,
        argument(
            metavar="COLLECTION",
            help="The collection, such as my.exam; a new NAME.exam is created. [default: my.exam]",
        ),
    ] = None,
    host: Annotated[str, keyword(help="Listen on this address.", rare=True)] = "127.0.0.1",
    port: Annotated[
        int | None,
        keyword(min=0, max=65535, help="Listen on this port; 0: a free one. [default: 8765]"),
    ] = None,
    assessor: Annotated[
        list[str] | None,
        keyword(help="Add an assessor with this name. Repeat for several."),
    ] = None,
    blind: Annotated[
        bool, keyword("--blind", help="Hide automatic grades until the assessor has decided.")
    ] = False,
    shared: Annotated[
        float,
        keyword(
            min=0,
            max=100,
            help="Give this percentage of the queue to all assessors, blind.",
            rare=True,
        ),
    ] = 10,
    guidelines: Annotated[
        Path | None,
        keyword(
            exists=True,
            dir_okay=False,
            help="Show this Markdown file of instructions to assessors.",
            rare=True,
        ),
    ] = None,
    official: Officials = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    bank: BankName = None,
    allowed_host: Annotated[
        list[str] | None,
        keyword(
            help="Answer to this host name too, NAME or NAME:PORT: the one that browsers use "
            "if a reverse proxy is in front. Repeat for several.",
            rare=True,
        ),
    ] = None,
    prefix: Annotated[
        str,
        keyword(help="Path of the pages on the reverse proxy, such as /exam.", rare=True),
    ] = "",
    proxy: Annotated[
        list[str] | None,
        keyword(
            help="Believe X-Forwarded-For and X-Forwarded-Proto from this address or network. "
            "Repeat for several.",
            rare=True,
        ),
    ] = None,
    access_log: AccessLog = None,
) -> None:
    """Open a collection in the browser: add files, grade, judge, edit the bank, see the effect.

    Prints your address and that of each assessor, and serves until Ctrl-C. You are the owner;
    an assessor judges cells. Give out other roles and lasting invitations with exampp people.

    Example: exampp serve my.exam --assessor ann --assessor bob
    """
    from exampp import web

    web.serve(
        collection or web.DEFAULT_PATH,
        host=host,
        port=web.PORT if port is None else port,
        assessors=assessor or [],
        blind=blind,
        shared=shared / 100,
        guidelines=guidelines,
        official=official or None,
        min_rating=min_rating,
        grader=grader,
        bank=bank,
        allowed_hosts=allowed_host or [],
        prefix=prefix,
        proxies=proxy or [],
        access_log=access_log,
    )


def people(
    collection: CollectionFile,
    invite: Annotated[
        str | None,
        keyword(metavar="NAME", help="Invite a person; an earlier invitation of that name ends."),
    ] = None,
    role: Annotated[
        Literal["assessor", "editor", "owner"],
        keyword(
            help="Role of the invited person. An assessor judges; an editor also edits the bank, "
            "settles disputes and downloads files; an owner may do everything."
        ),
    ] = "assessor",
    revoke: Annotated[
        str | None,
        keyword(metavar="NAME", help="End the invitation of a person, also where it is in use."),
    ] = None,
    address: Annotated[
        str, keyword(help="Address of the server, for the link of an invitation.")
    ] = "http://127.0.0.1:8765",
    *,
    display: Display,
) -> None:
    """List, invite and revoke the people who may open a collection in the browser.

    An invitation is a link, printed once. It stays valid until it is revoked, also after a
    restart of the server. A running server applies the change at once.

    Example: exampp people my.exam --invite ann --address https://exams.example.org
    """
    from exampp.web.people import People

    with exampp.Collection(collection):
        known = People(collection)
    if revoke is not None:
        person = known.revoke(revoke)
        print_message(f"{person.name} no longer has access")
    if invite is not None:
        token = known.invite(invite, role)
        print_message(f"Send this link to {invite} ({role}). It is not shown again:")
        print(f"{address.rstrip('/')}/?token={token}")
        return
    if revoke is None:
        show(known.table(), display)
