"""`exampp bank`: generate, show, edit, check and seal a bank, and show its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import click

import exampp
from exampp.cli.backend_options import backend_options
from exampp.cli.command import (
    GOES_IN,
    Group,
    OptionRule,
    OptionValues,
    option_rules,
    without_options,
)
from exampp.cli.options import (
    LIMITS,
    OF_MEASURES,
    Depth,
    Grace,
    MatchBy,
    MinRating,
    Officials,
    Subtopics,
    opened_grades,
)
from exampp.cli.output import (
    command,
    interruptible,
    print_dry_run,
    print_line,
    print_message,
    progress_bar,
    show,
    this_command,
)
from exampp.errors import InputError, Unfinished
from exampp.records.options import argument, keyword
from exampp.records.selection import CollectionFile, Display, NotesDisplay, PartName, Selection
from exampp.records.wording import counted
from exampp.stopping import GRACE_SECONDS

if TYPE_CHECKING:
    from exampp.bank import Bank
    from exampp.items.generation import GenerationOutcome, GenerationRun
    from exampp.results.result import Table


Author = Annotated[str | None, keyword(help="Name of the editor. [default: the user]", rare=True)]


@option_rules(
    OptionRule(
        ("--format", "--grace", *LIMITS),
        "where requests are sent, not with --dry-run",
        lambda values: not values["dry_run"],
    ),
)
@backend_options(
    writes=True,
    helps={
        "max_new_tokens": "Maximum tokens of a reply. [default: 2048, or 60 per item if more]",
        "decode": "Read a reply as text or as JSON. auto: JSON if the prompt asks for it and the "
        "server can be made to keep to a schema, else text. [default: auto]",
    },
)
def generate_bank(
    collection: CollectionFile,
    grader: Annotated[
        str,
        keyword(
            help="Generate with hf (a model on this machine) or openai (any OpenAI-compatible "
            "server)."
        ),
    ],
    prompt: Annotated[
        str,
        keyword(
            help="Use this prompt: car-questions, car-nuggets, dl-questions, dl-nuggets, or a TOML "
            "file."
        ),
    ] = "dl-questions",
    *,
    options: Mapping[str, Any],
    display: Display,
    bank: Annotated[str, keyword(help="Add the items to this bank.")] = "main",
    per: Annotated[
        Literal["query", "subtopic"] | None,
        keyword(
            help="Send one request per query or per subtopic. [default: depends on the prompt]",
            rare=True,
        ),
    ] = None,
    keys: Annotated[
        bool,
        keyword("--keys", help="Generate answer keys, too, marked as machine-made.", rare=True),
    ] = False,
    query: Annotated[
        str | None, keyword(help="Generate items only for this query.", rare=True)
    ] = None,
    count: Annotated[
        int | None,
        keyword(
            min=1,
            help="Ask for this many items per request. [default: depends on the prompt]",
        ),
    ] = None,
    more: Annotated[
        int | None,
        keyword(min=1, help="With --query: add this many items to those of the bank.", rare=True),
    ] = None,
    grounded: Annotated[
        int | None,
        keyword(
            min=1, help="Show this many of the query's best passages in the prompt.", rare=True
        ),
    ] = None,
    grace: Grace = GRACE_SECONDS,
    dry_run: Annotated[
        bool, keyword("--dry-run", help="Print the requests; send nothing.")
    ] = False,
) -> None:
    """Generate questions or nuggets with a model for every query or subtopic.

    Each reply is stored when it arrives; the same command continues after an interrupt and retries
    failed requests. Items that equal others of the query in all but form are dropped. Paraphrases
    are stored and marked.

    Example: exampp bank generate my.exam --grader openai --model gpt-5-mini --prompt dl-questions
    --dry-run
    """
    with exampp.Collection(collection) as opened:
        run = opened.bank(bank).generation(
            grader,
            prompt=prompt,
            per=per,
            keys=keys,
            query_id=query,
            count=count or 0,
            more=more or 0,
            grounded=grounded or 0,
            dry_run=dry_run,
            **options,
        )
        if dry_run:
            _preview(run, options.get("price_read"), options.get("price_written"))
            return
        _show(run, make(run, grace), display)


def make(run: GenerationRun, grace: float) -> list[GenerationOutcome]:
    """Run to the end, unless it is stopped, within `grace` seconds; return all outcomes."""
    outcomes = []
    with interruptible(run.stop, grace), progress_bar("generating") as update:
        for one in run.steps():
            outcomes.append(one)
            update(run.progress)
    return outcomes


def _show(run: GenerationRun, outcomes: list[GenerationOutcome], display: Display) -> None:
    from exampp.items.generation import generation_tables

    requests, near = generation_tables(run, outcomes)
    tables = {"near": near} if near.rows or display.style == "json" else {}
    show({**tables, "requests": requests}, display)
    if run.left:
        why = f" ({run.why_stopped})" if run.why_stopped else ""
        raise Unfinished(
            f"stopped with {run.left} requests left{why}; this continues:\n  {this_command()}"
        )
    if run.progress.all_failed:
        raise Unfinished(f"all requests failed; this retries:\n  {this_command()}")


def _preview(run: GenerationRun, price_read: float | None, price_written: float | None) -> None:
    found = run.preview(price_read, price_written)
    for note in found.notes:
        print_message(note)
    print_dry_run(found.facts, found.prompts)


app = Group(
    "bank",
    help="Generate, show, edit and check the questions of the exam.",
    renamed={"export": "exampp export COLLECTION FILE"},
)

app.verb("generate")(generate_bank)

NamedBank = Annotated[str, keyword("--bank", help="Name of the bank.")]
GraderOfBank = Annotated[
    str | None,
    keyword(help="Use the grades of this grader. [default: the first that graded the bank]"),
]
QueryId = Annotated[str | None, keyword("--query", help="Show only this query.")]
Reason = Annotated[str, keyword(help="Store this reason with every edit.", rare=True)]


KEPT_WITH_EDITS = OptionRule(
    ("--author", "--reason"), "where something is edited", lambda given: not given["dry_run"]
)


Operation = Literal[
    "add", "reword", "retire", "restore", "weight", "key", "merge", "same", "different", "dismiss"
]
BankItemKind = Literal["question", "nugget"]


@dataclass(frozen=True, slots=True)
class EditOptions:
    """Options of an edit: the bank, the author and reason, and the dry run."""

    dry_run: Annotated[
        bool,
        keyword("--dry-run", help="Show the effect on labels and scores without a change."),
    ] = False
    bank: NamedBank = "main"
    author: Author = None
    reason: Reason = ""

    @property
    def by(self) -> dict[str, Any]:
        """Return author and reason as keywords."""
        return {"author": self.author, "reason": self.reason}

    def make(self, collection: Path, edit: Callable[[Bank], Table], display: Display) -> None:
        """Make an edit and show what it changed; or try it out, and show what it would do too."""
        with exampp.Collection(collection) as opened:
            bank = opened.bank(self.bank)
            if self.dry_run:
                trial = bank.trial(edit)
                changes = trial.changes
                show(trial.tables(), display)
            else:
                changes = edit(bank)
                show(changes, display)
        if not changes.rows:
            print_message("Nothing changed.")
        elif self.dry_run:
            many = counted(len(changes.rows), "change")
            print_message(f"{many}; nothing was changed (--dry-run)")


@app.verb("show")
def show_bank(
    collection: CollectionFile,
    query: QueryId = None,
    bank: NamedBank = "main",
    part: PartName = None,
    *,
    display: Display,
) -> None:
    """Show the items of a bank with their ids, keys and weights.

    Example: exampp bank show my.exam --query volcanoes
    """
    with exampp.Collection(collection) as opened:
        table = opened.bank(bank).show(query, part=part)
    show(table, display)


@app.verb("lint")
def lint_bank(
    collection: CollectionFile,
    bank: NamedBank = "main",
    grader: GraderOfBank = None,
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        keyword(help="Lowest judgment that is relevant. [default: 2, or 1]", rare=True),
    ] = None,
    every: Annotated[
        bool, keyword("--all", help="Show all findings, also those of rules that are often wrong.")
    ] = False,
    *,
    display: NotesDisplay,
) -> None:
    """List likely mistakes and near-duplicates of a bank, the most harmful first.

    Example: exampp bank lint my.exam
    """
    from exampp.items.lint import SHOWN

    with exampp.Collection(collection) as opened:
        found = opened.bank(bank).lint(
            grader, min_rating=min_rating, min_relevant=min_relevant, doubtful=every
        )
    shown = found.records() if display.for_programs else found.tables(None if every else SHOWN)
    show(shown if len(shown) > 1 else shown["findings"], display)


@app.verb("duplicates")
def list_duplicates(
    collection: CollectionFile,
    bank: NamedBank = "main",
    *,
    display: NotesDisplay,
) -> None:
    """List the groups of items that ask the same thing, in the same or in other words.

    Confirm a group with `bank edit COLLECTION same ITEM OTHER`, or reject it with `different`.
    `evaluate --duplicates once` counts the items of a group as one.

    Example: exampp bank duplicates my.exam
    """
    with exampp.Collection(collection) as opened:
        show(opened.bank(bank).duplicates(), display)


@app.verb("edit")
@option_rules(
    OptionRule(
        ("--subtopic", "--answer", "--model"),
        "for what is added",
        lambda values: values["operation"] == "add",
    ),
    OptionRule(
        ("--query",),
        "to find an item, not to add one",
        lambda values: values["operation"] != "add",
    ),
    KEPT_WITH_EDITS,
)
def edit_bank(
    collection: CollectionFile,
    operation: Annotated[
        Operation, argument(help=f"What to do: {', '.join(get_args(Operation))}.")
    ],
    subject: Annotated[
        str, argument(metavar="ITEM", help="The id of the item or its start; for add, the query.")
    ],
    values: Annotated[
        list[str] | None,
        argument(
            metavar="VALUE", help="The text, the weight, the answers, the other item, or the rules."
        ),
    ] = None,
    query: Annotated[
        str | None, keyword(help="Query of the item, if the id is not enough.", rare=True)
    ] = None,
    kind: Annotated[
        BankItemKind | None,
        keyword(help="Kind of the item. [default for add: question]"),
    ] = None,
    subtopic: Annotated[str | None, keyword(help="Subtopic of the new item.")] = None,
    answer: Annotated[
        list[str] | None,
        keyword(help="Add a known answer to the new item. Repeat for several."),
    ] = None,
    model: Annotated[
        str,
        keyword(help="Model that made the new item.", panel=GOES_IN, rare=True),
    ] = "",
    *,
    edit: EditOptions,
    display: Display,
) -> None:
    """Add, reword, retire or weight an item, set its key, mark duplicates, or dismiss findings.

    `merge` keeps the first of several items and retires the others. `same` marks the others as
    duplicates of the first, `different` marks all as different; the opposite mark takes it back.

    The log records each edit with its author and reason. A reworded item is pending again; an
    earlier wording gets its grades back. A dismissed finding of `bank lint` returns if the text
    changes.

    Example: exampp bank edit my.exam add volcanoes 'What is tephra?'
    """
    arguments = values or []
    if operation == "add" and len(arguments) != 1:
        raise InputError("add takes a query and a text", hint="Quote the text")

    def change(bank: Bank) -> Table:
        if operation == "add":
            return bank.add(
                subject,
                arguments[0],
                kind=kind or "question",
                subtopic_id=subtopic,
                answers=answer or (),
                model=model,
                **edit.by,
            )
        return bank.edit(operation, subject, *arguments, query_id=query, kind=kind, **edit.by)

    edit.make(collection, change, display)


@app.verb("apply")
@option_rules(KEPT_WITH_EDITS)
def apply_bank(
    collection: CollectionFile,
    file: Annotated[Path, argument(metavar="FILE", help="An exported bank, edited.")],
    retire_missing: Annotated[
        bool, keyword("--retire-missing", help="Retire items that are not in the file.")
    ] = False,
    force: Annotated[
        bool,
        keyword("--force", help="Apply even if the bank has changed since the export.", rare=True),
    ] = False,
    *,
    edit: EditOptions,
    display: Display,
) -> None:
    """Apply an edited export (exampp export COLLECTION bank.csv) as edits of the bank.

    Example: exampp bank apply my.exam edited.csv --dry-run
    """

    def change(bank: Bank) -> Table:
        return bank.apply(file, retire_missing=retire_missing, force=force, **edit.by)

    edit.make(collection, change, display)


@app.verb("improve")
@option_rules(
    OptionRule(
        ("--author", "--reason"), "with --apply", lambda values: bool(values["apply_changes"])
    )
)
def improve_bank(
    collection: CollectionFile,
    bank: NamedBank = "main",
    grader: GraderOfBank = None,
    min_rating: MinRating = None,
    k: Depth = 20,
    subtopics: Subtopics = "auto",
    official: Officials = None,
    decide: Annotated[
        int,
        keyword(min=0, help="List this many cells whose human decisions move the order most."),
    ] = 0,
    splits: Annotated[
        int, keyword(min=1, help="Divide the systems this many times at random.", rare=True)
    ] = 10,
    seed: Annotated[int, keyword(min=0, help="Seed of the random halves.", rare=True)] = 0,
    apply_changes: Annotated[
        bool, keyword("--apply", help="Retire and add these items, if the gain is confirmed.")
    ] = False,
    author: Author = None,
    reason: Reason = "",
    *,
    display: NotesDisplay,
) -> None:
    """Find items to retire or to add, and confirm the gain on other systems.

    Items are chosen by one half of the systems. The other half shows whether queries then agree
    better on the order of systems. No gain is reported unless its interval excludes 0, and
    shuffled grades have none as large. Items of weight 0 are on trial, and may be added.

    Example: exampp bank improve my.exam
    """
    from exampp.analysis.improvement import ImprovementSettings

    with exampp.Collection(collection) as opened:
        edited = opened.bank(bank)
        found = edited.improve(
            grader,
            min_rating=min_rating,
            k=k,
            subtopics=subtopics,
            official=official or (),
            decisions=decide,
            settings=ImprovementSettings(splits, seed),
        )
        show(found, display)
        if not apply_changes:
            return
        if not found.is_confirmed:
            print_message("Nothing changed.")
            return
        before = edited.version().number
        changes = edited.accept(found, author=author, reason=reason)
    print_message(f"{counted(len(changes.rows), 'change')}. This takes them back:")
    print_message(f"  {command('bank', 'revert', collection, '--to', str(before))}")


@app.verb("log")
@option_rules(OptionRule(("--kind",), "with --item", lambda given: given["item"] is not None))
def log_bank(
    collection: CollectionFile,
    query: QueryId = None,
    item: Annotated[str | None, keyword(help="Show only this item: its id or its start.")] = None,
    kind: Annotated[
        BankItemKind | None, keyword(help="Kind of the item, if the id is not enough.", rare=True)
    ] = None,
    last: Annotated[
        int | None, keyword(min=1, help="Show only this many of the last edits.")
    ] = None,
    bank: NamedBank = "main",
    *,
    display: Display,
) -> None:
    """List every edit of a bank, newest last.

    Example: exampp bank log my.exam --last 10
    """
    with exampp.Collection(collection) as opened:
        table = opened.bank(bank).log(query, item=item, kind=kind, last=last)
    show(table, display)


@app.verb("list", rare=True)
def list_banks(
    collection: CollectionFile,
    *,
    display: Display,
) -> None:
    """List the banks of a collection.

    Example: exampp bank list my.exam
    """
    with exampp.Collection(collection) as opened:
        show(opened.banks(), display)


@app.verb("diff", rare=True)
def diff_bank(
    collection: CollectionFile,
    one: Annotated[str, argument(metavar="A", help="An edit's number, now, or a bank's name.")],
    other: Annotated[
        str, argument(metavar="B", help="An edit's number, now, or a bank's name.")
    ] = "now",
    bank: NamedBank = "main",
    *,
    display: Display,
) -> None:
    """Show the changes between two states of a bank, or between two banks.

    Example: exampp bank diff my.exam 1
    """
    with exampp.Collection(collection) as opened:
        show(opened.bank(bank).diff(one, other), display)


@app.verb("revert", rare=True)
@option_rules(KEPT_WITH_EDITS)
def revert_bank(
    collection: CollectionFile,
    to: Annotated[
        str | None, keyword(help="Restore the whole bank as of this edit (see exampp bank log).")
    ] = None,
    undo: Annotated[
        list[int] | None,
        keyword("--edit", help="Take back this edit, the newest of its item. Repeat for several."),
    ] = None,
    *,
    edit: EditOptions,
    display: Display,
) -> None:
    """Restore an earlier state of a bank, or take back some edits, all or none.

    The log keeps all edits, so that you can revert a revert.

    Example: exampp bank revert my.exam --to 1 --dry-run
    """
    if (to is None) == (not undo):
        raise InputError("no edit to restore or take back", hint="Give --to EDIT or --edit EDIT")

    def change(bank: Bank) -> Table:
        return bank.undo(*undo, **edit.by) if undo else bank.revert(to or "", **edit.by)

    edit.make(collection, change, display)


@app.verb("split", rare=True)
def split_bank(
    collection: CollectionFile,
    secret: Annotated[float, keyword(help="Seal this share of the items, between 0 and 1.")],
    seed: Annotated[int, keyword(help="Seed of the draw of sealed items.", rare=True)] = 0,
    public: Annotated[Path | None, keyword(help="Write the public part to this file.")] = None,
    sealed: Annotated[Path | None, keyword(help="Write the sealed part to this file.")] = None,
    again: Annotated[bool, keyword("--again", help="Replace an earlier split.", rare=True)] = False,
    bank: NamedBank = "main",
    *,
    display: Display,
) -> None:
    """Seal a part of a bank and print a commitment to it.

    Publish the commitment with the public part; keep the sealed part and the collection secret.

    Example: exampp bank split my.exam --secret 0.5 --sealed sealed.jsonl
    """
    with exampp.Collection(collection) as opened:
        table = opened.bank(bank).split(
            secret,
            seed=seed,
            again=again,
            public=public,
            sealed=sealed,
        )
    for column, path in enumerate((public, sealed), 1):
        if path is not None:
            print_message(f"{path}: {sum(int(str(row[column])) for row in table.rows)} items")
    show(table, display)


def _of_collection(values: OptionValues) -> bool:
    from exampp.store.connection import is_collection

    return values["against"] is not None or is_collection(values["file"])


@app.verb("verify", rare=True)
@option_rules(OptionRule(("--bank",), "for a collection", _of_collection))
def verify_bank(
    file: Annotated[
        Path, argument(metavar="FILE", help="A file of sealed items, or a collection.")
    ],
    commitment: Annotated[
        str | None, keyword(help="Compare with this published commitment.")
    ] = None,
    against: Annotated[
        Path | None, keyword(help="List every change from this collection, which was split.")
    ] = None,
    bank: NamedBank = "main",
    *,
    display: Display,
) -> None:
    """Verify that sealed items match the commitment; the exit code is 1 if they do not.

    Example: exampp bank verify sealed.jsonl
    """
    from exampp.items.sealing import verify_file
    from exampp.store.connection import is_collection

    if against is not None:
        with exampp.Collection(against) as opened:
            found = opened.bank(bank).verify(file, commitment=commitment)
    elif is_collection(file):
        with exampp.Collection(file) as opened:
            found = opened.bank(bank).verify(commitment=commitment)
    else:
        found = verify_file(file, commitment)
    show(found.table(), display)
    if not found.unchanged:
        raise click.exceptions.Exit(1)


@app.verb("match", rare=True)
@option_rules(
    OptionRule(("--grader",), "with --by coverage", lambda values: values["by"] == "coverage")
)
def match_banks(
    collection: CollectionFile,
    matches: Annotated[
        Path,
        argument(metavar="MATCHES", help="The collection of matches, such as my.matches.exam."),
    ],
    reference: Annotated[str, keyword(help="The reference bank.")],
    bank: Annotated[
        list[str] | None,
        keyword(help="Compare this bank. Repeat for several. [default: all others]"),
    ] = None,
    by: MatchBy = "text",
    grader: Annotated[
        str | None, keyword(help="Use the grades of this grader, with --by coverage.", rare=True)
    ] = None,
) -> None:
    """Make a collection in which a model or people match the items of banks.

    The items of the other banks are its passages, and the reference bank is its bank. Matches
    without a model are its first grades. Run it again after a change of the banks.

    Example: exampp bank match teams.exam matches.exam --reference main
    """
    from exampp.bank_matches import collect_matches
    from exampp.formats.output import check_outputs

    check_outputs([matches], [collection])
    with (
        exampp.Collection(collection) as opened,
        collect_matches(matches, opened, reference, bank or (), by, grader) as made,
    ):
        counts = {str(thing): int(str(count)) for thing, count in made.contents().rows}
        nouns = {"systems": "bank", "queries": "query", "passages": "item"}
        sizes = ", ".join(counted(counts[thing], noun) for thing, noun in nouns.items())
        print_line(f"{sizes} to match with {reference}")
        every = dict.fromkeys(str(name) for name, *_ in opened.banks().rows)
        matched = {reference, *(one.system for one in made.systems)}
        if bare := [name for name in bank or every if name not in matched]:
            print_line(
                f"Left out, with no wanted item on a query of {reference}: {', '.join(bare)}"
            )
        kinds = dict.fromkeys(str(kind) for _, kind, *_ in made.banks().rows)
    model = ("--grader", "openai", "--model", "MODEL", "--prompt", "item-match")
    print_line("Next:")
    for kind in kinds:
        only = ("--kind", kind) * (len(kinds) > 1)
        print_line(f"  {command('grade', matches, *model, *only)}")
    print_line(f"  {command('analyze', 'banks', matches, '--grader', 'item-match')}")


@app.verb("compare", rare=True)
@option_rules(OF_MEASURES["--min-rating"])
@without_options("systems", "without", "decisions")
def compare_parts(
    selection: Selection,
    measure: Annotated[
        str, keyword("--measure", "-m", help="Cover@20, nCover@20, or any measure of ir_measures.")
    ] = "Cover@20",
    min_rating: MinRating = None,
    subtopics: Subtopics = "auto",
    *,
    display: NotesDisplay,
) -> None:
    """Compare all systems on the public and the sealed part of a bank.

    A system that scores much higher on the public items was tuned to them.

    Example: exampp bank compare my.exam -m Cover@20
    """
    with opened_grades(selection, [measure]) as grades:
        table = grades.compare_parts(measure, min_rating=min_rating, subtopics=subtopics)
    show(table, display)
