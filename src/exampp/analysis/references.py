"""The papers behind what a report used, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Reference(NamedTuple):
    """One entry: its type, and its fields as far as they are known."""

    type: str
    fields: Mapping[str, str]


REFERENCES: Mapping[str, Reference] = {
    "farzi2024exampp": Reference(
        "inproceedings",
        {
            "author": "Farzi, Naghmeh and Dietz, Laura",
            "title": "{EXAM++}: {LLM}-based Answerability Metrics for {IR} Evaluation",
            "booktitle": "LLM4Eval: The First Workshop on Large Language Models for Evaluation "
            "in Information Retrieval",
            "series": "CEUR Workshop Proceedings",
            "volume": "3752",
            "year": "2024",
            "url": "https://ceur-ws.org/Vol-3752/paper3.pdf",
        },
    ),
    "dietz2024workbench": Reference(
        "inproceedings",
        {
            "author": "Dietz, Laura",
            "title": "A Workbench for Autograding Retrieve/Generate Systems",
            "booktitle": "Proceedings of the 47th International ACM SIGIR Conference on Research "
            "and Development in Information Retrieval",
            "year": "2024",
            "doi": "10.1145/3626772.3657871",
        },
    ),
    "farzi2024exam": Reference(
        "misc",
        {
            "author": "Farzi, Naghmeh and Dietz, Laura",
            "title": "An Exam-based Evaluation Approach Beyond Traditional Relevance Judgments",
            "eprint": "2402.00309",
            "archiveprefix": "arXiv",
            "year": "2024",
        },
    ),
    "sander2021exam": Reference(
        "inproceedings",
        {
            "author": "Sander, David P. and Dietz, Laura",
            "title": "{EXAM}: How to Evaluate Retrieve-and-Generate Systems for Users Who Do Not "
            "(Yet) Know What They Want",
            "booktitle": "DESIRES",
            "pages": "136--146",
            "year": "2021",
        },
    ),
    "macavaney2022irmeasures": Reference(
        "inproceedings",
        {
            "author": "MacAvaney, Sean and Macdonald, Craig and Ounis, Iadh",
            "title": "Streamlining Evaluation with ir-measures",
            "booktitle": "Advances in Information Retrieval (ECIR)",
            "year": "2022",
        },
    ),
    "jarvelin2002cumulated": Reference(
        "article",
        {
            "author": 'J{\\"a}rvelin, Kalervo and Kek{\\"a}l{\\"a}inen, Jaana',
            "title": "Cumulated Gain-based Evaluation of {IR} Techniques",
            "journal": "ACM Transactions on Information Systems",
            "volume": "20",
            "number": "4",
            "pages": "422--446",
            "year": "2002",
        },
    ),
    "kendall1945ties": Reference(
        "article",
        {
            "author": "Kendall, Maurice G.",
            "title": "The Treatment of Ties in Ranking Problems",
            "journal": "Biometrika",
            "volume": "33",
            "number": "3",
            "pages": "239--251",
            "year": "1945",
        },
    ),
    "spearman1904association": Reference(
        "article",
        {
            "author": "Spearman, Charles",
            "title": "The Proof and Measurement of Association between Two Things",
            "journal": "The American Journal of Psychology",
            "volume": "15",
            "number": "1",
            "pages": "72--101",
            "year": "1904",
        },
    ),
    "politis1999subsampling": Reference(
        "book",
        {
            "author": "Politis, Dimitris N. and Romano, Joseph P. and Wolf, Michael",
            "title": "Subsampling",
            "publisher": "Springer",
            "year": "1999",
        },
    ),
    "yilmaz2008tauap": Reference(
        "inproceedings",
        {
            "author": "Yilmaz, Emine and Aslam, Javed A. and Robertson, Stephen",
            "title": "A New Rank Correlation Coefficient for Information Retrieval",
            "booktitle": "Proceedings of the 31st Annual International ACM SIGIR Conference on "
            "Research and Development in Information Retrieval",
            "year": "2008",
        },
    ),
    "webber2010rbo": Reference(
        "article",
        {
            "author": "Webber, William and Moffat, Alistair and Zobel, Justin",
            "title": "A Similarity Measure for Indefinite Rankings",
            "journal": "ACM Transactions on Information Systems",
            "volume": "28",
            "number": "4",
            "year": "2010",
        },
    ),
    "cohen1960kappa": Reference(
        "article",
        {
            "author": "Cohen, Jacob",
            "title": "A Coefficient of Agreement for Nominal Scales",
            "journal": "Educational and Psychological Measurement",
            "volume": "20",
            "number": "1",
            "pages": "37--46",
            "year": "1960",
        },
    ),
    "smucker2007significance": Reference(
        "inproceedings",
        {
            "author": "Smucker, Mark D. and Allan, James and Carterette, Ben",
            "title": "A Comparison of Statistical Significance Tests for Information Retrieval "
            "Evaluation",
            "booktitle": "Proceedings of the Sixteenth ACM Conference on Information and "
            "Knowledge Management",
            "pages": "623--632",
            "year": "2007",
        },
    ),
    "korn1999surveys": Reference(
        "book",
        {
            "author": "Korn, Edward L. and Graubard, Barry I.",
            "title": "Analysis of Health Surveys",
            "publisher": "Wiley",
            "year": "1999",
        },
    ),
    "holm1979multiple": Reference(
        "article",
        {
            "author": "Holm, Sture",
            "title": "A Simple Sequentially Rejective Multiple Test Procedure",
            "journal": "Scandinavian Journal of Statistics",
            "volume": "6",
            "number": "2",
            "pages": "65--70",
            "year": "1979",
        },
    ),
    "benjamini1995fdr": Reference(
        "article",
        {
            "author": "Benjamini, Yoav and Hochberg, Yosef",
            "title": "Controlling the False Discovery Rate: A Practical and Powerful Approach to "
            "Multiple Testing",
            "journal": "Journal of the Royal Statistical Society: Series B",
            "volume": "57",
            "number": "1",
            "pages": "289--300",
            "year": "1995",
        },
    ),
    "piepho2004letters": Reference(
        "article",
        {
            "author": "Piepho, Hans-Peter",
            "title": "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons",
            "journal": "Journal of Computational and Graphical Statistics",
            "volume": "13",
            "year": "2004",
        },
    ),
}
"""What can be cited, by key. Fields that are not known for certain are not there."""


def bibtex(keys: Iterable[str]) -> str:
    """The entries of some keys, each once, in the order of `REFERENCES`."""
    wanted = set(keys)
    unknown = wanted - set(REFERENCES)
    if unknown:
        raise ValueError(f"there are no references {sorted(unknown)}")
    return "\n".join(_entry(key, REFERENCES[key]) for key in REFERENCES if key in wanted)


def _entry(key: str, reference: Reference) -> str:
    fields = "".join(f"  {name} = {{{value}}},\n" for name, value in reference.fields.items())
    return f"@{reference.type}{{{key},\n{fields}}}\n"
