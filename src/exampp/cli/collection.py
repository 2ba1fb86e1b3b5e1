"""`exampp import`, `export` and other commands of a collection: files in and out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import click

import exampp
from exampp.cli import output
from exampp.cli.command import GOES_IN, OptionRule, OptionValues, option_rules
from exampp.cli.output import command, print_line, print_message, report_written, show
from exampp.errors import InputError
from exampp.records.graders import RatingScale, check_scale
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    BankName,
    CollectionFile,
    Display,
    ExportOptions,
    GraderName,
    OnBadLine,
    PartName,
    columns_of,
)
from exampp.records.wording import counted

if TYPE_CHECKING:
    from exampp.inputs.importing import ImportedFile, ImportReport


def plugins(display: Display) -> None:
    """List the graders, prompts, formats, presets and measures that other packages add.

    For each unusable one, the table shows the reason.

    Example: exampp plugins
    """
    from exampp.formats.format import FORMATS
    from exampp.formats.preset import PRESETS
    from exampp.graders.registry import GRADERS
    from exampp.measures.names import MEASURES
    from exampp.prompts import catalogue
    from exampp.results.result import Table

    found = [
        *GRADERS.plugins(),
        *catalogue.plugin_prompts(),
        *FORMATS.plugins(),
        *PRESETS.plugins(),
        *MEASURES.plugins(),
    ]
    rows = [(one.kind, one.name, one.package, one.fault or "can be used") for one in found]
    notes = [] if rows else ["No package adds anything. The documentation explains how to add one."]
    show(Table.of(["kind", "name", "package", "state"], rows, notes=notes), display)


def check(
    files: Annotated[
        list[Path],
        argument(metavar="FILE", help="Collections, banks, gate files or presets."),
    ],
    strict: Annotated[
        bool,
        keyword(
            "--strict",
            help="Report all likely mistakes in a bank, not only certain ones.",
            rare=True,
        ),
    ] = False,
    *,
    display: Display,
) -> None:
    """Check a collection for damage, a bank for mistakes, a gate file, or a preset.

    Reads the whole file of a collection: pages, schema, references, values, hashes and checksums.
    The exit code is 1 if something is wrong.

    Example: exampp check my.exam
    """
    from exampp.project.checking import CheckedFiles, check_files

    found = check_files(files, strict=strict)
    if not display.for_programs and not isinstance(found, CheckedFiles):
        print_line(found.verdict)
    show(found, display)
    if not found.ok:
        output.flush()
        raise click.exceptions.Exit(1)


@option_rules(OptionRule(("--port",), "beside --serve", lambda given: given["serve"]))
def demo(
    collection: Annotated[
        Path | None,
        argument(
            metavar="COLLECTION",
            help="The collection to create. [default: a temporary file, or demo.exam in --files]",
        ),
    ] = None,
    files: Annotated[
        Path | None,
        keyword(
            metavar="FOLDER",
            help="Write the files of the documentation to this folder, to try its commands.",
        ),
    ] = None,
    serve: Annotated[
        bool, keyword("--serve", help="Open the pages in the browser afterwards, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int | None,
        keyword(min=0, max=65535, help="Serve on this port; 0: a free one. [default: 8765]"),
    ] = None,
) -> None:
    """Import, grade and evaluate a small example, offline, in under a minute.

    Example: exampp demo --files tour
    """
    from exampp.demo import write_tour
    from exampp.formats.output import temporary_file
    from exampp.store.connection import link_collection

    started = time.monotonic()
    path = collection or (files or Path(tempfile.mkdtemp(prefix="exampp-"))) / "demo.exam"
    if path.exists():
        raise InputError("already exists", file=path, hint="Choose another name")
    if files:
        write_tour(files)
    with temporary_file(path) as temporary:
        with exampp.Collection.create(temporary) as opened:
            _fill(opened)
            if files:
                opened.export(files / "graded.jsonl.gz")
        link_collection(temporary, path)
    print_line(f"\nDone in {time.monotonic() - started:.0f} s. The collection is {path}\n")
    if serve:
        from exampp import web

        web.serve(path, port=web.PORT if port is None else port)
        return
    print_line("Next:")
    for arguments, what in _next(path, files):
        print_line(f"  {command(*arguments)}\n      {what}")


def _fill(opened: exampp.Collection) -> None:
    """Import, grade and evaluate the example."""
    from exampp.cli.grade import work
    from exampp.demo import demo_files
    from exampp.measures.board import wide_leaderboard

    print_line("1. Import queries, passages, banks, judgments, runs and answers")
    report = opened.import_files(*demo_files())
    counts = (f"{count} {thing}" for thing, count in report.after.items() if count)
    print_line(f"   {', '.join(counts)}")
    print_line("2. Grade every passage against every question, with the offline draft grader")
    print_line(f"   {work(opened.grading('draft'))}")
    print_line("3. Evaluate\n")
    show(wide_leaderboard(opened.grades().evaluate(min_rating=4)))


def _next(path: Path, files: Path | None) -> Iterator[tuple[Sequence[object], str]]:
    """Yield the arguments of the next commands to try, and the purpose of each."""
    yield ("compare", path, "dense", "rewrite"), "equal scores, and where the systems differ"
    yield ("analyze", "significance", path), "which systems differ significantly"
    yield ("review", path, "spurious"), "questions that non-relevant passages answer"
    yield ("serve", path), "review and analysis in the browser"
    if files is None:
        yield ("demo", "--files", "tour"), "write the files that the documentation uses"
    else:
        texts = [files / name for name in ("queries.tsv", "passages.jsonl", "bank.csv", "runs")]
        yield ("import", files / "my.exam", *texts), "the first step of the tour"


def merge(
    into: Annotated[Path, argument(metavar="INTO", help="The collection to merge into.")],
    others: Annotated[
        list[Path], argument(metavar="OTHER", help="The collections to merge; they are only read.")
    ],
    dry_run: Annotated[
        bool, keyword("--dry-run", help="Print what would change; change nothing.")
    ] = False,
    *,
    display: Display,
) -> None:
    """Merge copies or shards of a collection.

    Merges grades, decisions, banks with their history, texts, rankings and judgments. After an
    error, nothing is merged. The table lists conflicts and the value that is stored: a grade rather
    than none, the newest edit of an item, otherwise the value of INTO.

    Example: exampp merge my.exam copy.exam
    """
    with exampp.Collection(into) as opened:
        found = opened.merge(*others, dry_run=dry_run)
    show(found, display)


def citations(
    collection: CollectionFile,
    answers: Annotated[
        list[Path],
        argument(metavar="ANSWERS", help="Answers with citations, such as those of TREC RAG."),
    ],
    corpus: Annotated[
        str | None,
        keyword(
            metavar="CORPUS",
            help="Read the texts of cited passages from this file, folder or irds:ID.",
        ),
    ] = None,
    system: Annotated[
        str | None, keyword(help="Name of the system, for answers without one.")
    ] = None,
    pool: Annotated[
        Path | None,
        keyword(
            metavar="COLLECTION",
            help="Compare sentences with similar passages of their queries in it, too.",
        ),
    ] = None,
) -> None:
    """Make a collection from the sentences of answers and the passages they cite.

    Each sentence is a query and its own nugget; the passages that it cites are its ranking. Grade
    the collection, then measure precision and recall with exampp analyze citations.

    Example: exampp citations cited.exam cited.jsonl --corpus passages.jsonl
    """
    from exampp.citations import CANDIDATES, collect

    with (
        nullcontext() if pool is None else exampp.Collection(pool) as source,
        collect(collection, *answers, corpus=corpus, system=system, pool=source) as exam,
    ):
        counts = {str(thing): count for thing, count in exam.contents().rows}
        sentences, cited = counts["queries"], counts["passages"]
        if pool is None:
            print_line(f"{sentences} sentences, {cited} cited passages")
        else:
            print_line(
                f"{sentences} sentences, {cited} passages: those cited, and up to {CANDIDATES} "
                f"similar ones of {pool} for each sentence"
            )
    model = ("--grader", "openai", "--model", "MODEL", "--prompt", "citation-support")
    print_line(f"Next:\n  {command('grade', collection, *model)}")
    print_line(f"  {command('analyze', 'citations', collection)}")


@option_rules(
    OptionRule(("--yes",), "for remove", lambda values: values["operation"] == "remove"),
    OptionRule(("--format",), "for list", lambda values: values["operation"] == "list"),
)
def systems(
    collection: CollectionFile,
    operation: Annotated[
        Literal["list", "remove"],
        argument(help="list, or remove NAME..."),
    ] = "list",
    names: Annotated[
        list[str] | None, argument(metavar="NAME", help="The systems to remove.")
    ] = None,
    yes: Annotated[bool, keyword("--yes", help="Remove without confirmation.")] = False,
    *,
    display: Display,
) -> None:
    """List the systems, or remove some.

    Removing asks for confirmation and deletes rankings. Passages and grades stay; import a run
    again to restore its system. To leave a system out of an evaluation, use evaluate --leave-out.

    Example: exampp systems my.exam
    """
    wanted = names or []
    with exampp.Collection(collection) as opened:
        if operation == "list":
            if wanted:
                raise InputError(f"list takes no name, not {wanted[0]!r}", hint="Leave it out")
            show(opened.systems.tables(), display)
        else:
            if wanted and not yes:
                click.confirm(f"Remove the rankings of {', '.join(wanted)}?", abort=True)
            removed = opened.systems.remove(*wanted)
            print_line(
                f"Removed {counted(len(wanted), 'system')} with "
                f"{counted(removed, 'ranked passage')}."
            )


Files = list[Path] | None
ExportFormat = Literal[
    "workbench",
    "bank",
    "questions",
    "nuggetizer",
    "argue",
    "trec-nuggets",
    "runs",
    "ranx",
    "candidates",
    "judgments",
    "queries",
    "passages",
    "decisions",
    "beir",
    "croissant",
    "every-eval-ever",
    "gen-ai-events",
    "triplets",
    "beir-train",
]
_OF_GRADES = 4
"""The last formats are results and training data, which need grades."""


def _import(path: Path, files: list[Path], **options: Any) -> ImportReport:
    """Import into a collection; the first import makes it, and a failed one leaves no file.

    Until it is complete, a new collection is a separate file beside the path: no file is ever
    removed that another process could have written to. If another process made the collection
    meanwhile, the files go into that one.
    """
    from exampp.formats.output import remove_leftovers, temporary_file
    from exampp.store.connection import link_collection

    _check_name(path)
    if not path.exists() and path.parent.is_dir():
        with temporary_file(path) as temporary:
            with exampp.Collection.create(temporary) as opened:
                report = opened.import_files(*files, **options)
            if report.dry_run:
                return report
            if link_collection(temporary, path):
                return report
    if path.parent.is_dir():
        # a process may have been killed when the collection was in its place already
        remove_leftovers(path)
    with exampp.Collection.create(path, exist_ok=True) as opened:
        return opened.import_files(*files, **options)


def _check_name(path: Path) -> None:
    """Raise InputError for a file that is not a collection."""
    from exampp.store.connection import is_collection

    if path.is_file() and path.stat().st_size and not is_collection(path):
        raise InputError(
            "not a collection of exampp",
            file=path,
            hint=f"Name the collection first: exampp import my.exam {path.name} ...",
        )


def _of_files(
    option: str, words: str, *roles: str, kinds: Sequence[str] = (), cited: bool = False
) -> OptionRule:
    """Return a rule for options of some files; `cited`: also for cited responses."""

    def holds(given: OptionValues) -> bool:
        from exampp.formats.format import ROLES, role_of_format
        from exampp.inputs.files import given_files
        from exampp.inputs.importing import detected_kinds

        by_role = [given[role] or () for role in ROLES]
        files = given_files(given["files"] or (), given["kind"], by_role)
        wanted = {*kinds, "responses"} if cited and given["cited"] else {*kinds}
        found = detected_kinds(files, given["system"], columns_of(given["columns"]))
        return any(one.kind in wanted or role_of_format(one.kind) in roles for one in found)

    return OptionRule((option,), f"for {words}", holds)


_DATA_SETS = ("dataset", "beir")


@option_rules(
    OptionRule(
        ("--as",),
        "for files that stand without an option",
        lambda given: bool(given["files"] or given["explain"]),
    ),
    _of_files("--bank-name", "banks", "bank"),
    _of_files("--depth", "runs", "runs", kinds=_DATA_SETS, cited=True),
    _of_files("--unknown-passages", "runs", "runs", kinds=_DATA_SETS, cited=True),
    _of_files("--corpus", "runs and judgments", "runs", "qrels", kinds=_DATA_SETS, cited=True),
    _of_files("--system", "responses", "responses", kinds=["candidates"]),
    _of_files("--passage-tokens", "responses", "responses"),
    _of_files("--cited", "responses", kinds=["responses"]),
    _of_files("--scale", "graded passages", kinds=["workbench"]),
)
def import_(
    collection: CollectionFile,
    files: Annotated[
        list[Path] | None,
        argument(
            metavar="FILE",
            help="Queries, passages, banks, runs, qrels, responses or graded passages in any known "
            "format; a folder of runs, texts or BEIR; irds:ID for ir_datasets.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        keyword("--as", help="Kind of FILE, or a preset: PRESET.toml. [default: detected]"),
    ] = None,
    queries: Annotated[
        Files,
        keyword(
            help="Import a file or folder of queries. Repeat for several.",
            panel=GOES_IN,
        ),
    ] = None,
    passages: Annotated[
        Files, keyword(help="Import a file or folder of passages. Repeat for several.")
    ] = None,
    bank: Annotated[
        Files,
        keyword(help="Import a file of questions or nuggets. Repeat for several.", panel=GOES_IN),
    ] = None,
    runs: Annotated[
        Files,
        keyword(
            help="Import a file of rankings, or a folder of files named by system. Repeat for "
            "several."
        ),
    ] = None,
    qrels: Annotated[
        Files,
        keyword(
            help="Import a file or folder of judgments. Repeat for several.",
            panel=GOES_IN,
        ),
    ] = None,
    responses: Annotated[
        Files, keyword(help="Import a file or folder of responses. Repeat for several.")
    ] = None,
    bank_name: Annotated[
        str, keyword(help="Add questions and nuggets to this bank.", rare=True)
    ] = "main",
    on_error: Annotated[
        OnBadLine,
        keyword(
            help="Refuse all files if one has a bad line, or skip and count bad lines.", rare=True
        ),
    ] = "refuse",
    unknown_passages: Annotated[
        Literal["error", "keep"],
        keyword(help="Refuse or keep ranked passages without a text.", rare=True),
    ] = "error",
    corpus: Annotated[
        str | None,
        keyword(
            help="Read the texts of ranked and judged passages from this file, folder or irds:ID."
        ),
    ] = None,
    depth: Annotated[
        int | None,
        keyword(
            min=1,
            help="Import this many passages of each ranking. [default: all; 20 with --corpus]",
            rare=True,
        ),
    ] = None,
    system: Annotated[
        str | None, keyword(help="Name of the system, for responses without one.")
    ] = None,
    passage_tokens: Annotated[
        int,
        keyword(
            min=0,
            help="Cut responses into passages of this many tokens; 0: into sentences.",
            rare=True,
        ),
    ] = 400,
    cited: Annotated[
        bool,
        keyword(
            "--cited",
            help="Add the citations of responses as rankings of systems NAME:cited.",
            rare=True,
        ),
    ] = False,
    update: Annotated[
        bool,
        keyword("--update", help="Allow changes of graded content and of items edited by people."),
    ] = False,
    dry_run: Annotated[
        bool, keyword("--dry-run", help="Print what would change; change nothing.")
    ] = False,
    explain: Annotated[
        bool,
        keyword(
            "--explain",
            help="Print how files are read and their first record; import nothing.",
            rare=True,
        ),
    ] = False,
    style: Annotated[
        Literal["text", "json"],
        keyword("--format", help="Print the changes in this format.", rare=True),
    ] = "text",
    scale: Annotated[
        str | None,
        keyword(
            metavar="LOW..HIGH",
            help="Use this scale, such as 0..3, for grades of unknown prompts. [default: 0 to the "
            "highest label found]",
            rare=True,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        keyword(
            metavar="NAME=COLUMN",
            help="Read this field from a column of another name, as in query_id=topic. Repeat for "
            "several; repeat answer=COLUMN for a table with one column per system.",
        ),
    ] = None,
) -> None:
    """Import files into a collection; the first import creates it.

    After an error, the collection is unchanged. The command prints what it added, changed and
    removed, with examples. It changes graded texts, rankings, grades and items edited by people
    only with --update.

    Example: exampp import my.exam queries.tsv passages.jsonl bank.csv runs/*.run
    """
    for file in bank or ():
        if not file.exists():
            raise InputError(
                "no such file", file=file, hint="--bank takes files; --bank-name names their bank"
            )
    if explain:
        from exampp.inputs.explaining import explain_files
        from exampp.store.connection import is_collection

        is_file = collection.is_file() and not is_collection(collection)
        found = explain_files(
            *([collection] if is_file else []),
            *(files or []),
            kind=kind,
            queries=queries or (),
            passages=passages or (),
            banks=bank or (),
            runs=runs or (),
            qrels=qrels or (),
            responses=responses or (),
            system=system,
            columns=columns_of(columns),
        )
        output.write(found.render("json" if style == "json" else "text"))
        return
    if not any((files, queries, passages, bank, runs, qrels, responses)):
        _check_name(collection)
        raise InputError("no files to import", hint="Name them: exampp import my.exam FILE ...")
    report = _import(
        collection,
        files or [],
        kind=kind,
        queries=queries or (),
        passages=passages or (),
        banks=bank or (),
        runs=runs or (),
        qrels=qrels or (),
        responses=responses or (),
        bank=bank_name,
        on_error=on_error,
        unknown_passages=unknown_passages,
        corpus=corpus,
        depth=depth,
        system=system,
        passage_tokens=passage_tokens,
        cited=cited,
        update=update,
        dry_run=dry_run,
        scale=_rating_scale(scale),
        columns=columns_of(columns),
    )
    if style == "json":
        output.write(report.to_json())
    else:
        _print_report(report)


def _rating_scale(text: str | None) -> RatingScale | None:
    """Return the scale of `--scale`; InputError for an invalid one."""
    if text is None:
        return None
    low, dots, high = text.partition("..")
    if not (dots and low.isdecimal() and high.isdecimal() and len(low + high) < _DIGITS):
        raise InputError(f"{text!r} is not a scale", field="--scale", hint="Give one as 0..3")
    return check_scale((int(low), int(high)))


_DIGITS = 20


def _print_report(report: ImportReport) -> None:
    counts: dict[str, list[str]] = {}
    for one in report.files:
        path = one.file.removesuffix(f" ({one.kind})")
        counts.setdefault(path, []).append(_count_of(one, is_part=one.file != path))
    for path, shown in counts.items():
        print_line(f"{path}: {', '.join(shown)}")
    for sentence in report.remarks:
        print_message(sentence)
    _report_bad_parts(report.skipped_first, report.skipped, "skipped", "bad line")
    _report_bad_parts(report.bad_cells_first, report.bad_cells, "kept as unparsed", "rating")
    if report.replaced.count:
        print_message(str(report.replaced))
    if report.findings.rows:
        show(report.findings)
    print_line("\n".join(_describe_changes(report)))
    if report.retired:
        retired = counted(report.retired, "item")
        print_line(f"Retired {retired} of the bank that none of these files holds.")
    if not report.changes:
        print_line("Nothing changed.")
    elif report.dry_run:
        if report.impact:
            show(report.impact)
        print_message("Nothing was imported (--dry-run).")


_NOUNS = {
    "queries": "query",
    "passages": "passage",
    "candidates": "retrieved passage",
    "run": "ranked passage",
    "responses": "answer",
    "plain-bank": "bank question",
    "qrels": "judgment",
    "pool": "pooled passage",
}
"""Nouns for the records of one part of a file."""


def _count_of(file: ImportedFile, *, is_part: bool) -> str:
    if is_part:
        return counted(file.records, _NOUNS[file.kind])
    kind = f"{file.kind} (by its name)" if file.by_name else file.kind
    return f"{kind}, {counted(file.records, 'record')}"


def _report_bad_parts(first: Sequence[InputError], count: int, fate: str, noun: str) -> None:
    """Report bad parts of the files: the first of them, and how many there were."""
    for error in first:
        print_message(f"{fate}: {error}")
    if count:
        print_message(f"{fate}: {counted(count, noun)}")


def _describe_changes(report: ImportReport) -> Iterator[str]:
    """Yield the counts and the changes, with examples, and the human decisions if there are any."""
    yield from (
        str(difference)
        for difference in report.differences
        if difference.now or difference.thing != "decision"
    )
    for thing in _DECIDED:
        now, new = report.after[thing], report.after[thing] - report.before[thing]
        if now or new:
            yield f"{thing:>10}  {now:>9}" + (f"  ({new:+})" if new else "")
    yield from (
        f"  {example}" for difference in report.differences for example in difference.examples
    )


_DECIDED = ("decided cells", "deciders", "disputed cells", "decided cells of earlier texts")


def _exports_bank(given: OptionValues) -> bool:
    from exampp.formats.format import role_of_format

    return role_of_format(_exported_kind(given)) == "bank"


def _exported_kind(given: OptionValues) -> str:
    return given["kind"] or kind_by_name(Path(given["to"]))


def _exports_with(option: str) -> Callable[[OptionValues], bool]:
    """Return whether the export is one of results that an option changes."""

    def holds(given: OptionValues) -> bool:
        from exampp.exports.table import RESULT_EXPORTS, uses_option

        kind = _exported_kind(given)
        return kind in RESULT_EXPORTS if option == "grader" else uses_option(kind, option)

    return holds


@option_rules(
    OptionRule(
        ("--bank", "--part"),
        "for banks",
        lambda given: _exports_bank(given) or _exports_with("grader")(given),
    ),
    OptionRule(("--grader",), "for results and training data", _exports_with("grader")),
    OptionRule(("--measure",), "for exports of scores", _exports_with("measures")),
    OptionRule(("--min-rating",), "for results and training data", _exports_with("min_rating")),
    OptionRule(("-k",), "for training data", _exports_with("depth")),
    OptionRule(("--negatives",), "for training data", _exports_with("negatives")),
    OptionRule(("--organization",), "for every-eval-ever", _exports_with("organization")),
)
def export(
    collection: CollectionFile,
    to: Annotated[Path, argument(metavar="FILE", help="The file to write; .gz compresses it.")],
    kind: Annotated[
        str | None,
        keyword(
            "--format",
            metavar="KIND",
            help=f"Write records: {', '.join(get_args(ExportFormat)[:-_OF_GRADES])}, and formats "
            f"of packages; write results: {', '.join(get_args(ExportFormat)[-_OF_GRADES:])}. "
            "[default: by the name of FILE]",
        ),
    ] = None,
    bank: BankName = None,
    part: PartName = None,
    grader: GraderName = None,
    *,
    options: ExportOptions,
) -> None:
    """Write a collection, or a part of it, in a standard format.

    Edit a bank written as .csv or .tsv, then apply the changes with exampp bank apply. Training
    data (triplets, beir-train) never use sealed items; evaluate a system trained on them on other
    queries.

    Example: exampp export my.exam graded-again.jsonl.gz
    """
    from exampp.exports.table import RESULT_EXPORTS
    from exampp.formats.output import check_outputs, descriptor

    target = kind or kind_by_name(to)
    if target in RESULT_EXPORTS:
        check_outputs([to], [collection, bank])
        with exampp.open(collection) as graded:
            grades = graded.grades(grader, bank=bank, part=part)
            exported = grades.export(to, target, **asdict(options))
        if descriptor(to) == 1:
            # the table is not part of the file
            print_message(str(exported).rstrip())
        else:
            print_line(f"{to}: {exported.verdict}")
            show(replace(exported, verdict="").tables())
        return
    with exampp.Collection(collection) as opened:
        if target == "bank":
            count = (opened.bank(bank) if bank else opened.bank()).export(to, part=part)
        else:
            count = opened.export(to, target, bank=bank, part=part)
        people = opened.decisions.counts()
        about_sealed = "" if part else _about_sealed(opened, target, bank)
        partial = _about_partial(opened) if target == "workbench" else ""
    meant = kind is None and target == "workbench" and "bank" in to.name.lower()
    what = "graded passages (--format bank writes the bank)" if meant else target
    report_written(to, f"{to}: {what}, {counted(count, 'record')}")
    for text in filter(None, (about_sealed, partial)):
        print_message(text)
    if target in _BESIDE and any(people.values()):
        print_message(
            ", ".join(f"{thing}: {number:,}" for thing, number in people.items() if number)
        )
        print_message(_BESIDE[target])


def _about_partial(opened: exampp.Collection) -> str:
    """Return the sentence about cells that a cascade left to its first grader, if any."""
    from exampp.grading.status import grading_status

    cells = ", ".join(
        f"{one.not_needed:,} of {one.grader.name}"
        for one in grading_status(opened.connection)
        if one.not_needed and one.target is None
    )
    if not cells:
        return ""
    return (
        f"Cells that a cascade left to its first grader have no grade ({cells}). The file does not "
        "say so: they are pending where it is imported."
    )


def _about_sealed(opened: exampp.Collection, target: str, bank: str | None) -> str:
    """Return the sentence about sealed items in a file of this kind; empty if there are none."""
    from exampp.formats.format import role_of_format

    if target in _BESIDE:
        names = [*dict.fromkeys(str(row[0]) for row in opened.banks().rows)]
        sentence = "This file may have grades on {}. Do not publish it before the sealed part."
    elif target in ("beir", "croissant"):
        names, sentence = [bank or "main"], "{} left out: the data set has the public part only."
    elif role_of_format(target) == "bank":
        names = [bank or "main"]
        sentence = "This file contains {}. --part public leaves them out."
    else:
        return ""
    count = sum(opened.bank(name).sealed for name in names)
    return sentence.format(counted(count, "sealed item")) if count else ""


_BESIDE = {
    "decisions": "Withdrawn and replaced decisions are in the file, too.",
    "workbench": "People's decisions are not in this file, which has the graders' own ratings; "
    "--format decisions writes them.",
}
"""The message about human decisions beside a file that contains or omits them."""


_BY_ENDING = {
    **dict.fromkeys((".csv", ".tsv"), "bank"),
    ".run": "runs",
    ".qrels": "judgments",
}


def kind_by_name(path: Path) -> str:
    """Return the kind of file that a name suggests; a workbench file by default."""
    return next((_BY_ENDING[end] for end in path.suffixes if end in _BY_ENDING), "workbench")
