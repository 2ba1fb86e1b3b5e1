"""`exampp review`: what people look at, and what they decided."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli import output
from exampp.cli.command import (
    Command,
    OptionRule,
    OptionValues,
    argument,
    moved,
    option,
    option_rules,
)
from exampp.cli.options import (
    OF_GRADED_FILES,
    BankName,
    CollectionFile,
    CollectionOrWorkbench,
    GraderName,
    ItemKind,
    MinRating,
    OnBadLine,
    PromptName,
    Scale,
    Style,
    TableStyle,
    rating_scale,
)
from exampp.cli.output import print_message, show, show_several
from exampp.errors import InputError

if TYPE_CHECKING:
    from exampp.results.result import Table


class ListName(StrEnum):
    """What can be looked at."""

    verify = "verify"
    grid = "grid"
    missing = "missing"
    spurious = "spurious"
    decisions = "decisions"
    disputes = "disputes"
    agreement = "agreement"
    plan = "plan"


class Basis(StrEnum):
    """By whose word a passage is relevant."""

    auto = "auto"
    judgments = "judgments"
    systems = "systems"
    graders = "graders"
    decisions = "decisions"


class DesignName(StrEnum):
    """How a sample is drawn."""

    uniform = "uniform"
    influence = "influence"
    uncertainty = "uncertainty"


MACHINE = (Style.tsv, Style.csv, Style.json)
WIDTHS = {Style.markdown: 200, Style.latex: 120, Style.html: 400}
"""Characters of a text that people see, where no terminal says how wide it is."""
LIMITS = {ListName.verify: 6, ListName.grid: 20, ListName.missing: 30, ListName.spurious: 30}
"""How much of a list people see unless they say otherwise."""
BESIDE_TEXT = 60
LEAST_WIDTH = 40
"""Of a terminal, so many columns hold what is no text, and a text gets at least so many."""


OPTIONS_OF = {
    **dict.fromkeys(
        (ListName.verify, ListName.grid),
        ("--item", "--by", "--depth", "--answers-of", "--limit", "--min-answers"),
    ),
    **dict.fromkeys(
        (ListName.missing, ListName.spurious),
        ("--item", "--by", "--depth", "--limit", "--min-rating", "--min-relevant", "--scale"),
    ),
    ListName.decisions: ("--author", "--limit"),
    ListName.disputes: ("--limit",),
    ListName.agreement: ("--min-rating",),
    ListName.plan: ("--labels",),
}
"""Options of some lists alone, beside --query and --format, which all take."""
OF_DRAWING = ("--measure", "--design", "--seed", "--min-rating", "--min-relevant")
"""Options of a plan that is drawn."""
OF_GRADER = ("--grader", "--prompt", "--kind", "--bank")


def _of_lists(option: str) -> OptionRule:
    lists = [name for name, options in OPTIONS_OF.items() if option in options]
    only = f"for {', '.join(lists)}" if lists else ""
    if option == "--min-rating":
        # it says which answers are counted
        only += ", and with --min-answers"

    if option in OF_DRAWING:
        only += f"{', and ' if lists else ''}to draw a plan with --labels"

    def holds(given: OptionValues) -> bool:
        counted = option == "--min-rating" and given["min_answers"] > 0
        drawing = given["name"] == ListName.plan and given["labels"] is not None
        drawing = drawing and option in OF_DRAWING
        return counted or drawing or given["name"] in (None, *lists)

    return OptionRule((option,), only, holds)


@option_rules(
    OF_GRADED_FILES,
    *map(_of_lists, dict.fromkeys([*(o for of in OPTIONS_OF.values() for o in of), *OF_DRAWING])),
    OptionRule(
        ("--number",),
        "for plan, where none is drawn",
        lambda given: given["name"] in (None, ListName.plan) and given["labels"] is None,
    ),
    OptionRule(("--query",), "for the lists, not for plan", lambda given: given["name"] != "plan"),
    OptionRule(
        OF_GRADER,
        "for lists of one grader, not for decisions",
        lambda given: given["name"] != ListName.decisions,
    ),
)
@moved("exampp serve COLLECTION", "--serve", "--host", "--port", "--assessor", "--blind")
def review(
    collection: CollectionOrWorkbench,
    name: Annotated[
        ListName | None,
        argument(
            metavar="LIST",
            help="verify: what the grader said, item by item. grid: passages by items. missing: "
            "relevant passages that no item covers. spurious: items covered by passages that are "
            "not relevant. decisions, disputes, agreement: what people decided. plan: a sample for "
            "people to decide, drawn with --labels.",
        ),
    ] = None,
    query: Annotated[str | None, option(help="Only this query.")] = None,
    item: Annotated[str | None, option(help="Only this item, or those whose ids start so.")] = None,
    min_rating: Annotated[
        int | None,
        option(
            help="Lowest rating that covers an item. [default: 4, or the highest of a shorter "
            "scale]"
        ),
    ] = None,
    min_relevant: Annotated[
        int | None,
        option(
            help="Lowest judgment of a relevant passage. [default: 2, or 1 where none is higher]"
        ),
    ] = None,
    by: Annotated[
        Basis, option(help="What tells relevant passages; auto: the first that is there.")
    ] = Basis.auto,
    depth: Annotated[
        int, option(min=1, help="Passages of each ranking that count as returned.")
    ] = 20,
    answers_of: Annotated[
        str | None, option(help="The grader whose replies are the extracted answers.")
    ] = None,
    min_answers: Annotated[
        int,
        option(min=0, help="Only passages that cover so many items of their query or more."),
    ] = 0,
    limit: Annotated[
        int | None,
        option(
            min=0,
            help="Cells of each item (verify), passages of each query (grid), rows; 0: all. "
            "[default: 6, 20, 30 for people; all for tsv, csv, json, decisions, disputes]",
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    author: Annotated[str | None, option(help="Only this person's decisions.")] = None,
    labels: Annotated[
        int | None,
        option(
            min=1,
            help="Draw a sample of about so many passages, or items for Cover, for people to "
            "decide, and keep it. [default: show the newest plan]",
        ),
    ] = None,
    measure: Annotated[
        str,
        option("--measure", "-m", help="What the sample is for: P@20, RBP@20 or Cover@20."),
    ] = "P@20",
    design: Annotated[
        DesignName,
        option(
            help="Chances all equal, by the influence on differences of systems, or also by how "
            "uncertain earlier judgments show the grades to be."
        ),
    ] = DesignName.influence,
    seed: Annotated[
        int, option(min=0, help="The same seed draws the same, and of more labels more.")
    ] = 0,
    number: Annotated[int | None, option(help="Which plan to show. [default: the newest]")] = None,
    on_error: Annotated[
        OnBadLine, option(help="A bad line of a graded file: refuse the file, or skip.")
    ] = OnBadLine.refuse,
    scale: Scale = None,
    style: TableStyle = Style.text,
) -> None:
    """Look at grades and decisions: four lists that show what is wrong with grader or bank.

    plan --labels 400 draws a sample by which exampp analyze corrected makes leaderboards true.

    COLLECTION may be a file of graded passages; --bank then names a bank file with its texts.

    Example: exampp review my.exam verify --limit 5
    """
    from exampp.records.graders import choose_grader
    from exampp.review import assessor_agreement as made
    from exampp.store.connection import is_collection

    if name is None:
        raise InputError(
            "what is to be looked at?",
            mend=f"Name one of {', '.join(ListName)}; exampp serve shows all as pages",
        )
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        of_kind = kind.value if kind else None
        if name in LIMITS:
            found = opened.grades(grader, prompt=prompt, kind=of_kind, bank=bank).review_tables(
                name.value,
                min_rating=min_rating,
                min_relevant=min_relevant,
                by=by.value,
                depth=depth,
                query_id=query,
                item=item,
                answers_of=answers_of,
                limit=_limit(name, limit, style),
                width=_width(style),
                min_answers=min_answers,
            )
            _show_parts(found, style)
            return
        if not is_collection(collection):
            raise InputError("a graded file holds no decisions", mend="Give a collection")
        if name is ListName.plan:
            grades = opened.grades(grader, prompt=prompt, kind=of_kind, bank=bank)
            if labels is not None:
                number = grades.decisions.plan(
                    labels,
                    measure,
                    design=design.value,
                    seed=seed,
                    min_rating=min_rating,
                    min_relevant=min_relevant,
                ).number
            drawn = grades.decisions.sample(number)
            show_several(drawn.records() if style in MACHINE else drawn.tables(), style.value)
        elif name is ListName.decisions:
            decided = opened.decisions.list(query_id=query, author=author, last=limit or None)
            show(made.decisions_table(decided), style.value)
        elif name is ListName.disputes:
            one = None
            if grader or prompt or kind:
                one = choose_grader(opened.graders, grader=grader, prompt=prompt, kind=of_kind)
            disputes = opened.decisions.disputes(query_id=query, grader=one, bank=bank)
            show(made.disputes_table(disputes, limit or None), style.value)
        else:
            grades = opened.grades(grader, prompt=prompt, kind=of_kind, bank=bank)
            judged = grades.decisions.judging(query_id=query, min_rating=min_rating)
            confusion = made.confusion_table(made.everybody(judged), judged.scale)
            tables = {"confusion": confusion, "agreement": made.agreement_table(judged)}
            show_several(tables, style.value)


def _limit(name: ListName, limit: int | None, style: Style) -> int | None:
    if limit is None and style not in MACHINE:
        return LIMITS[name]
    return limit or None


def _width(style: Style) -> int | None:
    if style in MACHINE:
        return None
    terminal = shutil.get_terminal_size((120, 24)).columns
    return WIDTHS.get(style, max(LEAST_WIDTH, terminal - BESIDE_TEXT))


def _show_parts(parts: Iterator[Table], style: Style) -> None:
    """Print the parts of a list one by one, as they are made; as json they are one table."""
    if style is Style.json:
        from exampp.review.lists import joined

        show(joined(parts), style.value)
        return
    separated = style in (Style.tsv, Style.csv)
    number = -1
    for number, part in enumerate(parts):
        if number and separated:
            _show_rows(part, style)
            continue
        if number:
            output.write("\n")
        show(part, style.value)
    if number < 0:
        print_message("No cell fits.")


def _show_rows(part: Table, style: Style) -> None:
    """Rows without the line of headings, which came with the first part."""
    from exampp.results.result import render

    headings = render(type(part)(part.columns, ()), style.value)
    output.write(render(part, style.value).removeprefix(headings))
    for note in part.notes:
        print_message(note)


class ReviewCommand(Command):
    """`review LIST COLLECTION` means what `review COLLECTION LIST` does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        if len(args) > 1 and args[0] in list(ListName) and args[1] not in list(ListName):
            args = [args[1], args[0], *args[2:]]
        return super().parse_args(ctx, args)


app = ReviewCommand("review", review)


class SearchedKind(StrEnum):
    """What is looked through."""

    queries = "queries"
    items = "items"
    passages = "passages"
    replies = "replies"
    decisions = "decisions"
    edits = "edits"
    systems = "systems"


def search(
    collection: CollectionFile,
    words: Annotated[list[str], argument(metavar="WORDS", help="All of them must occur.")],
    kinds: Annotated[
        list[SearchedKind] | None,
        option("--in", help="Look through these alone; may be repeated. [default: all]"),
    ] = None,
    limit: Annotated[int, option(min=1, help="So many of each kind.")] = 10,
    grader: GraderName = None,
    bank: BankName = None,
    style: TableStyle = Style.text,
) -> None:
    """Find queries, items, passages, replies of graders, reasons of decisions and edits.

    Words are found in either case and as parts of longer ones, also in ids and in the names of
    systems. What the shell hands over as one word stands together.

    Example: exampp search my.exam "New York" weather --in passages
    """
    # only now: its library is not needed for the help
    from exampp.collection import search_table

    wanted = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    with exampp.Collection(collection) as opened:
        found = opened.search(
            wanted,
            kinds=[kind.value for kind in kinds or SearchedKind],
            most=limit,
            grader=grader,
            bank=bank,
        )
    whole = style in (Style.tsv, Style.csv, Style.json)
    show(search_table(found, wanted, whole=whole), style.value)


def serve(
    collection: CollectionFile,
    host: Annotated[str, option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        option(min=0, max=65535, help="The port; 0 takes a free one. [default: 8765]"),
    ] = None,
    assessor: Annotated[
        list[str] | None, option(help="An assessor's name; repeat for several.")
    ] = None,
    blind: Annotated[
        bool, option("--blind", help="Hide automatic grades until one has decided.")
    ] = False,
    shared: Annotated[
        float,
        option(min=0, max=100, help="Percent of the queue's cells that everybody decides, blind."),
    ] = 10,
    guidelines: Annotated[
        Path | None,
        option(exists=True, dir_okay=False, help="A Markdown file that says how to decide."),
    ] = None,
    min_rating: MinRating = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
) -> None:
    """Open a collection in the browser: judge, edit the bank, see what it changes.

    Prints the address of each assessor, and serves until Ctrl-C.

    Example: exampp serve my.exam --assessor ann --assessor bob
    """
    from exampp import web

    web.serve(
        collection,
        host=host,
        port=web.PORT if port is None else port,
        assessors=assessor or [],
        blind=blind,
        shared=shared / 100,
        guidelines=guidelines,
        min_rating=min_rating,
        grader=grader,
        prompt=prompt,
        kind=kind.value if kind else None,
        bank=bank,
    )
