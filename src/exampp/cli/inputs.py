"""`exampp init`, `import`, `export`: files in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import exampp
from exampp.cli import streams
from exampp.cli.board_options import Scale, rating_scale
from exampp.cli.command import Counts, Given, counting
from exampp.cli.declare import argument, option
from exampp.cli.options import BankName, CollectionFile, ExportFormat, OnBadLine, UnknownPassages
from exampp.cli.output import remark, say, show, show_several, told
from exampp.cli.panels import GOES_IN
from exampp.cli.program import command
from exampp.cli.run import write_template
from exampp.errors import InputError
from exampp.formats.output import tidy, unfinished
from exampp.records.wording import counted
from exampp.store.connection import is_collection
from exampp.store.durable import link_collection

if TYPE_CHECKING:
    from exampp.inputs.import_report import ImportReport


Files = list[Path] | None


class ImportStyle(StrEnum):
    """How an import says what it did."""

    text = "text"
    json = "json"


def init(
    collection: Annotated[
        Path | None,
        argument(metavar="COLLECTION", help="The collection, such as my.exam."),
    ] = None,
    config: Annotated[
        Path | None, option(help="Write a commented configuration file, for exampp run.")
    ] = None,
    rescue: Annotated[
        Path | None,
        option(help="Fill it with what can be read of this collection, which is damaged."),
    ] = None,
) -> None:
    """Make an empty collection, or with --config a file that describes a whole exam.

    Example: exampp init my.exam
    """
    if rescue is not None and collection is not None and config is None:
        from exampp.store.rescue import rescue as save

        if collection.exists():
            raise InputError("exists already", file=collection, mend="Choose another name")
        with unfinished(collection) as made:
            saved_tables = save(rescue, made)
            link_collection(made, collection)
        for table, saved, orphans in saved_tables:
            lost = f", {orphans} whose other rows are lost" if orphans else ""
            say(f"{table:>16}  {saved:>9}{lost}")
    elif rescue is not None:
        raise InputError("--rescue fills a new collection", mend="Name it, and no --config")
    elif config is not None:
        write_template(config, collection)
        say(f"{config}: a configuration. Fill it in, then: {command('run', config)}")
    elif collection is not None:
        exampp.Collection.create(collection).close()
        following = command("import", collection)
        say(f"{collection}: an empty collection. Next: {following} FILE ...")
    else:
        raise InputError("what is to be made?", mend="Name a collection, or a file with --config")


def _import(path: Path, files: list[Path], **options: Any) -> ImportReport:
    """Import into a collection; the first import makes it, and a failed one leaves no file behind.

    Until it is complete, a new collection is a file of its own beside the path: nothing is ever
    removed that another process could have written to. Where another process made the collection
    meanwhile, the files go into that one.
    """
    if path.is_file() and path.stat().st_size and not is_collection(path):
        raise InputError(
            "is no collection of exampp",
            file=path,
            mend=f"Name the collection first: exampp import my.exam {path.name} ...",
        )
    if not path.exists() and path.parent.is_dir():
        with unfinished(path) as made:
            with exampp.Collection.create(made) as opened:
                report = opened.import_files(*files, **options)
            if report.dry_run:
                return report
            if link_collection(made, path):
                return report
    if path.parent.is_dir():
        # a process may have been killed when the collection was in its place already
        tidy(path)
    with exampp.Collection.create(path, exist_ok=True) as opened:
        return opened.import_files(*files, **options)


def _of_files(option: str, words: str, *kinds: str, cited: bool = False) -> Counts:
    """An option that counts for files of some kinds; `cited`: for what responses cite, too."""

    def holds(given: Given) -> bool:
        from exampp.formats.declared import like
        from exampp.formats.held import holding
        from exampp.formats.lines import accept, refuse
        from exampp.inputs.columns import Renaming
        from exampp.inputs.files import GivenFile as File
        from exampp.inputs.files import rows_of
        from exampp.inputs.importing import file_kinds
        from exampp.inputs.rag import unfold

        files = [File(Path(path), given["kind"]) for path in given["files"] or ()]
        files += [File(Path(p), role=role) for role in _ROLES for p in given[role] or ()]
        citing = ("responses",) if cited and given["cited"] else ()
        # what is wrong with a record is told when it is taken
        renaming = Renaming(columns_of(given["columns"]))
        files, parts = unfold(files, given["system"], accept, renaming)
        rows = rows_of(files, renaming, refuse)
        with holding({**parts, **rows}):
            found = file_kinds(files, system=given["system"] is not None)
            return any(like(file.kind) in (*kinds, *citing) for file in found)

    return Counts((option,), f"for {words}", holds)


_ROLES = ("queries", "passages", "bank", "runs", "qrels", "responses")
_RANKED = ("run", "ranx", "candidates", "dataset", "beir")
_GENERATED = ("responses", "texts")
_BANKS = ("bank", "plain-bank", "questions", "tqa", "nuggetizer", "argue", "trec-nuggets")


@counting(
    Counts(("--as",), "for files that stand without an option", lambda given: bool(given["files"])),
    _of_files("--bank-name", "banks", *_BANKS, "assignments"),
    _of_files("--depth", "runs", *_RANKED, cited=True),
    _of_files("--unknown-passages", "runs", *_RANKED, cited=True),
    _of_files("--corpus", "runs and judgments", *_RANKED, "qrels", "ranx-qrels", cited=True),
    _of_files("--system", "responses", *_GENERATED, "candidates"),
    _of_files("--passage-tokens", "responses", *_GENERATED),
    _of_files("--cited", "responses", "responses"),
    _of_files("--scale", "graded passages", "workbench"),
)
def import_(
    collection: CollectionFile,
    files: Annotated[
        list[Path] | None,
        argument(
            metavar="FILE",
            help="Queries, passages, banks, runs, qrels, responses, graded passages, in any known "
            "format; a folder of runs, of texts or of BEIR; irds:ID for a dataset of ir_datasets.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        option("--as", help="What the files are, where it cannot be told from them."),
    ] = None,
    queries: Annotated[
        Files,
        option(
            help="A file of queries, or a folder of such; may be repeated.",
            panel=GOES_IN,
        ),
    ] = None,
    passages: Annotated[
        Files, option(help="A file of passages, or a folder of such; may be repeated.")
    ] = None,
    bank: Annotated[
        Files,
        option(help="A file of questions or nuggets; may be repeated.", panel=GOES_IN),
    ] = None,
    runs: Annotated[
        Files,
        option(
            help="A file of rankings, or a folder of files that are named after their systems; may "
            "be repeated."
        ),
    ] = None,
    qrels: Annotated[
        Files,
        option(
            help="A file of judgments, or a folder of such; may be repeated.",
            panel=GOES_IN,
        ),
    ] = None,
    responses: Annotated[
        Files, option(help="A file or folder of responses; may be repeated.")
    ] = None,
    bank_name: Annotated[
        str, option(help="The name of the bank that questions and nuggets go into.")
    ] = "main",
    on_error: Annotated[
        OnBadLine, option(help="Refuse everything at a bad line, or skip and count it.")
    ] = OnBadLine.refuse,
    unknown_passages: Annotated[
        UnknownPassages,
        option(help="Ranked passages without a text: an error, or kept as ungraded."),
    ] = UnknownPassages.error,
    corpus: Annotated[
        str | None,
        option(
            help="Where the texts of ranked and judged passages are looked up: a file or a folder "
            "of passages, or irds:ID."
        ),
    ] = None,
    depth: Annotated[
        int | None,
        option(min=1, help="Passages of each run that are taken. [default: all; 20 with --corpus]"),
    ] = None,
    system: Annotated[
        str | None, option(help="The system of responses that do not name it.")
    ] = None,
    passage_tokens: Annotated[
        int,
        option(min=0, help="Tokens of a passage of a response at most; 0: a passage a sentence."),
    ] = 400,
    cited: Annotated[
        bool,
        option(
            "--cited", help="What responses cite becomes a ranking, too, of a system NAME:cited."
        ),
    ] = False,
    update: Annotated[
        bool,
        option("--update", help="Let files change what is graded, and items people edited."),
    ] = False,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would change; change nothing.")
    ] = False,
    style: Annotated[ImportStyle, option("--format", help="How it is said.")] = ImportStyle.text,
    scale: Scale = None,
    columns: Annotated[
        list[str] | None,
        option(
            metavar="NAME=COLUMN",
            help="A column of a table that goes by a name of its own, as in query_id=topic; may be "
            "repeated.",
        ),
    ] = None,
) -> None:
    """Bring files into a collection, which is made if there is none.

    All files or none: after an error the collection is as it was. What was added, changed and
    removed is said, with examples. The same files again change nothing. Texts, rankings and
    grades of what is graded, and items that people edited, are changed only with --update.

    Example: exampp import my.exam queries.tsv passages.jsonl bank.csv runs/*.run
    """
    for file in bank or ():
        if not file.exists():
            raise InputError(
                "no such file", file=file, mend="--bank takes files; --bank-name names their bank"
            )
    if not any((files, queries, passages, bank, runs, qrels, responses)):
        raise InputError("no files to import", mend="Name them: exampp import my.exam FILE ...")
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
        on_error=on_error.value,
        unknown_passages=unknown_passages.value,
        corpus=corpus,
        depth=depth,
        system=system,
        passage_tokens=passage_tokens,
        cited=cited,
        update=update,
        dry_run=dry_run,
        scale=rating_scale(scale),
        columns=columns_of(columns),
    )
    if style is ImportStyle.json:
        streams.write(report.to_json())
    else:
        _say(report)


def columns_of(given: Sequence[str] | None) -> dict[str, str]:
    """The columns of `--columns NAME=COLUMN`; InputError for one that is no such pair."""
    found: dict[str, str] = {}
    for one in given or ():
        name, sign, column = one.partition("=")
        if not (name.strip() and sign and column.strip()):
            mend = 'Give NAME=COLUMN, as in --columns question="Gold question"'
            raise InputError(f"--columns is {one!r}", mend=mend)
        if name.strip() in found:
            raise InputError(f"--columns says twice what {name.strip()} is", mend="Leave one out")
        found[name.strip()] = column.strip()
    return found


def _say(report: ImportReport) -> None:
    for file in report.files:
        told = f"{file.kind} (by its name)" if file.by_name else file.kind
        say(f"{file.file}: {told}, {counted(file.records, 'record')}")
    for sentence in report.remarks:
        remark(sentence)
    _tell(report.skipped_first, report.skipped, "skipped", "bad line")
    _tell(report.bad_cells_first, report.bad_cells, "kept as unparsed", "rating")
    if report.replaced.count:
        remark(f"{report.replaced}")
    if report.findings.rows:
        show(report.findings, "text")
    say("\n".join(_told(report)))
    if report.retired:
        retired = counted(report.retired, "item")
        say(f"Retired {retired} of the bank that none of these files holds.")
    if not report.changes:
        say("Nothing changed.")
    elif report.dry_run:
        if report.impact:
            show_several(report.impact, "text")
        remark("Nothing was imported (--dry-run).")


def _tell(first: Sequence[InputError], count: int, fate: str, noun: str) -> None:
    """What became of bad parts of the files: the first of them, and how many there were."""
    for error in first:
        remark(f"{fate}: {error}")
    if count:
        remark(f"{fate}: {counted(count, noun)}")


def _told(report: ImportReport) -> Iterator[str]:
    """What there is now and what changed, with examples; what people decided, if they did."""
    yield from (str(told) for told in report.differences if told.now or told.thing != "decision")
    for thing in _DECIDED:
        now, new = report.after[thing], report.after[thing] - report.before[thing]
        if now or new:
            yield f"{thing:>10}  {now:>9}" + (f"  ({new:+})" if new else "")
    yield from (f"  {example}" for told in report.differences for example in told.examples)


_DECIDED = ("decided cells", "deciders", "disputed cells", "decided cells of earlier texts")


def _exports_bank(given: Given) -> bool:
    from exampp.formats.declared import like

    return like(given["kind"] or kind_by_name(Path(given["to"]))) in (*_BANKS, "assignments")


@counting(Counts(("--bank",), "for banks", _exports_bank))
def export(
    collection: CollectionFile,
    to: Annotated[Path, argument(metavar="FILE", help="The file to write (.gz packs it).")],
    kind: Annotated[
        str | None,
        option(
            "--format",
            metavar="KIND",
            help=f"What is written: {', '.join(ExportFormat)}, or a format of a package. "
            "[default: by the file's name]",
        ),
    ] = None,
    bank: BankName = None,
) -> None:
    """Write a collection, or a part of it, in a format of the field.

    Example: exampp export my.exam graded-again.jsonl.gz
    """
    with exampp.Collection(collection) as opened:
        chosen = kind or kind_by_name(to)
        count = opened.export(to, chosen, bank=bank)
        people = opened.decisions.counts()
    told(to, f"{to}: {chosen}, {counted(count, 'record')}")
    if chosen in _BESIDE and any(people.values()):
        remark(", ".join(f"{thing}: {number:,}" for thing, number in people.items() if number))
        remark(_BESIDE[chosen])


_BESIDE = {
    "decisions": "Withdrawn and replaced decisions are in the file, too.",
    "workbench": "People's decisions are not in this file, which has the graders' own ratings; "
    "--format decisions writes them.",
}
"""What to say of people's decisions beside a file that holds or lacks them."""


_BY_ENDING = {
    **dict.fromkeys((".csv", ".tsv", ".yaml", ".yml"), "bank"),
    ".run": "runs",
    ".qrels": "judgments",
}


def kind_by_name(path: Path) -> str:
    """What a file of this name is expected to hold; a workbench file if its ending says nothing."""
    return next((_BY_ENDING[end] for end in path.suffixes if end in _BY_ENDING), "workbench")
