"""The sentences of a report that go into a paper: the methods, made from the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

import numpy as np

from exampp.analysis.agreement import label_name
from exampp.analysis.phrases import OVER_ALL, percent
from exampp.analysis.report_data import ReportData
from exampp.measures.qrels import Labelling
from exampp.records.gradebook import MISSING
from exampp.records.wording import counted
from exampp.results.latex import latex_escape

# The papers behind what a report used, as BibTeX: `references.bib` beside this module.
#
# Fields that are not known for certain are not there.


_FILE = files("exampp.analysis").joinpath("references.bib").read_text(encoding="utf-8")
_ENTRY = re.compile(r"@\w+\{(\w+),\n.*?\n\}\n", re.DOTALL)

REFERENCES: Mapping[str, str] = {entry[1]: entry[0] for entry in _ENTRY.finditer(_FILE)}
"""What can be cited: the entries by their keys. A field that is not known for certain is absent."""


_CITED = re.compile(r" \[@[^\]]+\]")
_CORRECTIONS = {
    "holm": "corrected for multiple comparisons by Holm's procedure [@holm1979multiple]",
    "bh": "with the false discovery rate controlled by the procedure of Benjamini and Hochberg "
    "[@benjamini1995fdr]",
    "none": "without correction for multiple comparisons",
}


def label_words(labelling: Labelling) -> str:
    """How ratings become the label of a passage, in words."""
    if labelling.kind == "count":
        said = "the number of items rated at the threshold or above"
    else:
        said = f"the {label_name(labelling.at_least)} over the items of the bank"
    gains = {"above": ", 0 below the threshold", "binary": ", 1 from the threshold on, else 0"}
    return said + gains.get(labelling.gains, "")


def methods_paragraph(found: ReportData) -> str:
    """A paragraph that says how the numbers came about, with citations as `[@key; @key]`."""
    parts = (_data, _cover, _qrels, _tests, _correlation, _agreement, _program)
    return " ".join(sentence for part in parts for sentence in part(found))


def without_citations(paragraph: str) -> str:
    """The paragraph to be read."""
    return _CITED.sub("", paragraph).replace("`", "")


def as_latex(paragraph: str) -> str:
    """The paragraph for a paper: citations by key, everything else escaped."""
    pieces = []
    for index, piece in enumerate(re.split(r"( \[@[^\]]+\]|`[^`]*`)", paragraph)):
        if index % 2 == 0:
            pieces.append(latex_escape(piece))
        elif piece.startswith("`"):
            pieces.append(rf"\texttt{{{latex_escape(piece[1:-1])}}}")
        else:
            keys = ",".join(re.findall(r"@([a-z0-9]+)", piece))
            pieces.append(rf"~\cite{{{keys}}}")
    return "".join(pieces)


def bibliography(paragraph: str) -> str:
    """BibTeX of what the paragraph cites, in the order of `REFERENCES`."""
    cited = {key for one in _CITED.findall(paragraph) for key in re.findall(r"@([a-z0-9]+)", one)}
    return "\n".join(entry for key, entry in REFERENCES.items() if key in cited)


def _data(found: ReportData) -> Iterator[str]:
    book, grader = found.book, found.book.grader
    items = [len(query.item_ids) for query in book.queries if query.item_ids]
    mean = f"{np.mean(items):.1f} per query in the mean, " if items else ""
    cells = sum(q.pool_size * len(q.item_ids) for q in book.queries)
    graded = sum(int((q.ratings != MISSING).sum()) for q in book.queries)
    share = f"{graded / cells:.1%}" if cells else "none"
    version = found.source.bank_version
    known = f"version {version}" if version else "as graded"
    draft = " (draft grades, made without a language model)" if grader.is_draft else ""
    yield (
        f"We evaluated {counted(len(book.systems), 'system')} on "
        f"{counted(len(book.queries), 'query')} with EXAM++ "
        f"[@farzi2024exampp; @dietz2024workbench]."
    )
    yield (
        f"The exam is a bank of {sum(items):,} {grader.kind}s ({mean}{known})."
        if grader.kind != "query"
        else "Passages were graded against the query itself."
    )
    yield (
        f"{grader.model}{draft} graded each of "
        f"{sum(q.pool_size for q in book.queries):,} passages "
        f"against each {grader.kind} with the prompt `{grader.prompt}` on a scale from "
        f"{grader.lowest} to {grader.highest}; {share} of the {cells:,} cells have a grade."
    )


def _cover(found: ReportData) -> Iterator[str]:
    names = [c.measure for c in found.board.columns if c.measure.kind.cover]
    for measure in names:
        whole = "the whole bank of a query"
        if measure.name == "nCover":
            whole = "the items that any graded passage covers"
        yield (
            f"{measure} [@sander2021exam; @farzi2024exam] is the weight of the items that some "
            f"passage among a system's first {measure.cutoff} answers with a rating of "
            f"{found.settings.min_rating} or above, divided by the weight of {whole}."
        )
    if names:
        yield (
            f"Means are over {counted(len(found.main.query_ids), 'query')}, a query that a "
            "system does not answer counting 0; cells without a grade count as not covered."
        )


def _qrels(found: ReportData) -> Iterator[str]:
    measures = [c.measure for c in found.board.columns if not c.measure.kind.cover]
    names = [
        f"{one} [@jarvelin2002cumulated]" if one.name == "nDCG" else str(one)
        for one in measures
        if not one.kind.formula
    ]
    if names:
        yield (
            f"{_joined(names)} were computed as trec_eval does "
            "[@macavaney2022irmeasures] on EXAM-Qrels, in which the label of a passage is "
            f"{label_words(found.settings.labelling)}; a passage is relevant from "
            f"{found.settings.labelling.level(found.settings.min_rating)} on."
        )
    declared = [str(one) for one in measures if one.kind.formula]
    if declared:
        yield f"Computed outside of exampp: {_joined(declared)}."


def _tests(found: ReportData) -> Iterator[str]:
    tested, settings = found.tested, found.settings.testing
    pairs = [pair for pair in tested.pairs if pair.p is not None]
    if not pairs:
        return
    apart = sum(bool(settings.differs(pair)) for pair in pairs)
    yield (
        f"Systems were compared under {found.name} by two-sided paired randomisation tests over "
        f"queries [@smucker2007significance] ({tested.permutations:,} sign patterns), "
        f"{_CORRECTIONS[settings.correction]}: of {len(pairs):,} pairs, {apart:,} "
        f"({apart / len(pairs):.1%}) do not behave alike at {settings.alpha:g}. Letters name the "
        "groups of systems that are not told apart [@piepho2004letters]."
    )
    yield (
        f"Intervals ({percent(1 - settings.alpha)}) are those of means and differences {OVER_ALL}, "
        + (
            "by the limits of Gaffke [@gaffke2005mean; @phan2021mean]."
            if found.main.measure.kind.share
            else "by Student's t."
        )
    )


def _correlation(found: ReportData) -> Iterator[str]:
    for name, ranks in found.settings.official.items():
        both = counted(len(set(ranks) & set(found.board.systems)), "system")
        yield (
            f"The leaderboard was compared with {name} over the {both} of both, by "
            "Spearman's rho [@spearman1904association] and Kendall's tau-b [@kendall1945ties]."
        )
        given = found.correlation
        if given and given.has_intervals(name):
            yield (
                f"Their {percent(given.level)} intervals are for the mean over exams of as many "
                f"queries: shaped as in a bootstrap over queries ({given.samples:,} samples), with "
                "the variance extrapolated from random halves and quarters of the queries "
                "[@politis1999subsampling]."
            )


def _agreement(found: ReportData) -> Iterator[str]:
    for block in found.agreement[:1]:
        yield (
            f"Agreement of labels with human judgments (relevant from {block.min_relevant} on) was "
            f"measured on {block.units:,} passages by Cohen's kappa [@cohen1960kappa], with "
            "intervals clustered by query."
        )


def _program(found: ReportData) -> Iterator[str]:
    if found.source.made:
        yield f"All numbers were made with {found.source.made.partition(',')[0]}."


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
