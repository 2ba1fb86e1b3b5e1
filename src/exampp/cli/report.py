"""`exampp report`: everything known about a leaderboard, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import exampp
from exampp.cli.board_options import (
    OF_GRADED_FILES,
    OF_OFFICIAL,
    AtLeast,
    CountDecisions,
    DecisionMode,
    Gains,
    Label,
    LabelGains,
    LabelKind,
    LeftOut,
    MinRating,
    Officials,
    OnError,
    RoundTo,
    RunFiles,
    Scale,
    SubtopicMode,
    Subtopics,
    SystemNames,
    rating_scale,
)
from exampp.cli.command import counting
from exampp.cli.declare import option
from exampp.cli.options import (
    BankName,
    CollectionOrWorkbench,
    GraderName,
    ItemKind,
    OnBadLine,
    PromptName,
)
from exampp.cli.output import remark


@counting(OF_GRADED_FILES, OF_OFFICIAL)
def report(
    collection: CollectionOrWorkbench,
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            help="The page to write, such as report.html; .json: the same as data.",
        ),
    ],
    official: Officials = None,
    round_to: RoundTo = None,
    title: Annotated[
        str, option(help="What the page is called. [default: the name of the file]")
    ] = "",
    json: Annotated[Path | None, option(help="Write the report as JSON, too.")] = None,
    measure: Annotated[
        list[str] | None,
        option(
            "--measure",
            "-m",
            help="Cover@20, nCover@20, or any measure of ir_measures; repeat for several. The "
            "figures show the first. [default: Cover@20, nCover@20, nDCG@20, P@20, AP]",
        ),
    ] = None,
    min_rating: MinRating = None,
    min_relevant: Annotated[
        int | None,
        option(
            help="Lowest judgment that counts as relevant. [default: 2, or 1 where none is higher]"
        ),
    ] = None,
    grader: GraderName = None,
    prompt: PromptName = None,
    kind: ItemKind = None,
    bank: BankName = None,
    run: RunFiles = None,
    system: SystemNames = None,
    leave_out: LeftOut = None,
    subtopics: Subtopics = SubtopicMode.auto,
    label: LabelKind = Label.BEST,
    at_least: AtLeast = 1,
    gains: LabelGains = Gains.graded,
    decisions: CountDecisions = DecisionMode.WITH,
    on_error: OnError = OnBadLine.refuse,
    scale: Scale = None,
) -> None:
    """Write one self-contained page: tables, plots, warnings, methods and references.

    COLLECTION may be a file of graded passages; --bank then names a bank file.

    Example: exampp report my.exam -o report.html --official leaderboard.json
    """
    from exampp.analysis.grader_bias import QUESTION
    from exampp.formats import leaderboards
    from exampp.formats.output import keep_inputs, writing
    from exampp.report.page import renderer, to_json

    boards = leaderboards.files_of(official or ())
    keep_inputs([output, json], [collection, bank, *boards, *(run or ())])
    render = renderer(output)
    with exampp.open(collection, on_error.value, rating_scale(scale)) as opened:
        document = opened.grades(
            grader,
            prompt=prompt,
            kind=kind.value if kind else None,
            bank=bank,
            runs=run or (),
            systems=system or (),
            without=leave_out or (),
            decisions=decisions.value,
        ).report(
            title=title,
            official=official or (),
            measures=measure or (),
            min_rating=min_rating,
            min_relevant=min_relevant,
            subtopics=subtopics.value,
            labelling=exampp.Labelling(label.value, at_least, gains.value),
            decimals=round_to,
        )
    written = {output: render(document)}
    if json:
        written[json] = to_json(document)
    for path, text in written.items():
        with writing(path) as stream:
            stream.write(text.encode())
        remark(f"{path}: {len(text.encode()) / 1000:,.0f} kB")
    for line in document.verdict:
        if line.question == QUESTION:
            remark(f"{line.question} {line.answer}")
