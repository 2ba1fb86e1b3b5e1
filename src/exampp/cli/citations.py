"""`exampp citations`: the sentences of answers and what they cite, as a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from exampp.cli.declare import argument, option
from exampp.cli.options import CollectionFile
from exampp.cli.output import say
from exampp.cli.program import command


def citations(
    collection: CollectionFile,
    answers: Annotated[
        list[Path],
        argument(metavar="ANSWERS", help="Answers with citations, such as of TREC RAG."),
    ],
    corpus: Annotated[
        str | None,
        option(
            metavar="CORPUS",
            help="Where the texts of what is cited are: a file, a folder, irds:ID.",
        ),
    ] = None,
    system: Annotated[
        str | None, option(help="The system of answers that do not name theirs.")
    ] = None,
) -> None:
    """Make a collection of the sentences of answers and of what they cite.

    Every sentence is a query with itself as the nugget, and what it cites its ranking. Grade it
    like any other, then see precision and recall with analyze citations.

    Example: exampp citations cited.exam cited.jsonl --corpus passages.jsonl
    """
    from exampp.citations import collect

    with collect(collection, *answers, corpus=corpus, system=system) as exam:
        counts = {str(thing): count for thing, count in exam.contents().rows}
        sentences, cited = counts["queries"], counts["passages"]
        say(f"{sentences} sentences, {cited} cited passages")
    model = ("--grader", "openai", "--model", "MODEL", "--prompt", "citation-support")
    say(f"Next:\n  {command('grade', collection, *model)}")
    say(f"  {command('analyze', 'citations', collection)}")
