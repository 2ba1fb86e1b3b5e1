"""The measures there are, as data: their parameters, their cutoffs, their other names.

Our own are `Cover` and `nCover`, and nuggetizer's nugget scores (see `nuggets`); the rest are those
of ir_measures 0.4. The table stands here and is not asked of ir_measures, so that a measure can be
read and checked without importing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from exampp.errors import InputError
from exampp.plugins import Registry

Gains = tuple[tuple[int, int], ...]
ParamValue = int | float | bool | str | Gains


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """One family of measures.

    `params` maps a parameter to its type; `required` names those without a default. `at` is what
    follows the @: "cutoff" (a number of passages), "recall" (0 to 1) or "" for nothing, and
    `at_required` whether it must be there. `level`: a rating threshold stands in for its `rel`.
    `subtopics`: it is computed from subtopic judgments; `cover`: from the items that are covered.
    `share`: no query has a value outside of 0 to 1. `added`: it is added up over queries, not
    averaged.
    `formula`: it is declared by others (see `declared_measures`), and reads a rating threshold
    where `threshold` says so.
    """

    params: Mapping[str, type] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    at: str = ""
    at_required: bool = False
    level: bool = False
    subtopics: bool = False
    cover: bool = False
    share: bool = True
    added: bool = False
    threshold: bool = False
    formula: Callable[[Any], float | None] | None = None

    @property
    def labelled(self) -> bool:
        """Whether it reads the labels of passages, and not the ratings of items."""
        return not (self.cover or self.subtopics or self.formula)


_REL: Mapping[str, type] = {"rel": int}
_JUDGED: Mapping[str, type] = {"rel": int, "judged_only": bool}
_SCALE: Mapping[str, type] = {"min_rel": int, "max_rel": int}
_SCALE_T: Mapping[str, type] = {"T": float, **_SCALE}
_ALPHA: Mapping[str, type] = {"rel": int, "alpha": float}


def _cut(
    params: Mapping[str, type], *, required: bool = False, subtopics: bool = False
) -> MeasureKind:
    level = "rel" in params
    return MeasureKind(params, (), "cutoff", required, level=level, subtopics=subtopics)


def _nuggets() -> MeasureKind:
    return MeasureKind({"strict": bool, "partial": int}, at="cutoff", cover=True)


def _whole(params: Mapping[str, type], *, subtopics: bool = False) -> MeasureKind:
    return MeasureKind(params, level="rel" in params, subtopics=subtopics)


def _scaled(params: Mapping[str, type], at: str = "") -> MeasureKind:
    return MeasureKind(params, ("max_rel",), at=at, at_required=bool(at))


KINDS: Mapping[str, MeasureKind] = {
    "Cover": MeasureKind({"weights": str}, at="cutoff", cover=True),
    "nCover": MeasureKind(at="cutoff", cover=True),
    "nDCG": _cut({"dcg": str, "gains": dict, "judged_only": bool}),
    "P": _cut(_JUDGED, required=True),
    "AP": _cut(_JUDGED),
    "RR": _cut(_JUDGED),
    "Rprec": _whole(_JUDGED),
    "R": _cut(_JUDGED, required=True),
    "Judged": _cut({}),
    "Bpref": _whole(_REL),
    "Success": _cut(_JUDGED, required=True),
    "SetP": _whole({**_JUDGED, "relative": bool}),
    "SetR": _whole(_REL),
    "SetF": _whole({**_JUDGED, "beta": float}),
    "SetAP": _whole(_JUDGED),
    "RBP": _cut({"rel": int, "p": float}),
    "ERR": _cut({}),
    "IPrec": MeasureKind(_JUDGED, at="recall", at_required=True, level=True),
    "infAP": _whole(_REL),
    "Accuracy": _cut(_REL),
    "Compat": _whole({"p": float, "normalize": bool}),
    "alpha_nDCG": _cut(_ALPHA, required=True, subtopics=True),
    "alpha_DCG": replace(_cut(_ALPHA, required=True, subtopics=True), share=False),
    "ERR_IA": _cut(_REL, required=True, subtopics=True),
    "nERR_IA": _cut(_REL, required=True, subtopics=True),
    "AP_IA": _whole(_REL, subtopics=True),
    "P_IA": _cut(_REL, required=True, subtopics=True),
    "NRBP": _whole({**_ALPHA, "beta": float}, subtopics=True),
    "nNRBP": _whole({**_ALPHA, "beta": float}, subtopics=True),
    "StRecall": _cut(_REL, required=True, subtopics=True),
    "NumQ": MeasureKind(share=False, added=True),
    # rel would turn the number of passages returned into that of relevant ones, so that no
    # threshold may set it: that number is NumRelRet.
    "NumRet": MeasureKind(_REL, share=False, added=True),
    "NumRel": replace(_whole(_REL), share=False, added=True),
    "NumRelRet": replace(_whole(_REL), share=False, added=True),
    "BPM": _scaled(_SCALE_T, at="cutoff"),
    # Its dcg can be nothing but log2, and is left away.
    "SDCG": _scaled(_SCALE, at="cutoff"),
    "INST": _scaled(_SCALE_T),
    "INSQ": _scaled(_SCALE_T),
    "NERR8": _scaled(_SCALE, at="cutoff"),
    "NERR9": _scaled(_SCALE, at="cutoff"),
    "NERR10": _scaled({"p": float, **_SCALE}),
    "NERR11": _scaled(_SCALE_T),
    "NuggetAll": _nuggets(),
    "NuggetVital": _nuggets(),
    "NuggetWeighted": _nuggets(),
}


def _undeclared(name: str, declared: object) -> MeasureKind:
    """Refuse what a package declares in place of a measure: those add themselves when loaded."""
    raise InputError(
        f"{declared!r} is not what exampp.measure({name!r}) gives",
        mend="Name in the entry point what is declared with exampp.measure under the same name",
    )


MEASURES = Registry("exampp.measures", "measure", KINDS, _undeclared)
"""Every measure by name: those above, and those that are declared by others."""

Alias = tuple[str, tuple[tuple[str, ParamValue], ...]]

ALIASES: Mapping[str, Alias] = {
    "MAP": ("AP", ()),
    "MRR": ("RR", ()),
    "NDCG": ("nDCG", ()),
    "Precision": ("P", ()),
    "Recall": ("R", ()),
    "RPrec": ("Rprec", ()),
    "BPref": ("Bpref", ()),
    "MAP_IA": ("AP_IA", ()),
    "\N{GREEK SMALL LETTER ALPHA}_nDCG": ("alpha_nDCG", ()),
    "\N{GREEK SMALL LETTER ALPHA}_DCG": ("alpha_DCG", ()),
    "SetRelP": ("SetP", (("relative", True),)),
    "all_score": ("NuggetAll", ()),
    "vital_score": ("NuggetVital", ()),
    "weighted_score": ("NuggetWeighted", ()),
    "strict_all_score": ("NuggetAll", (("strict", True),)),
    "strict_vital_score": ("NuggetVital", (("strict", True),)),
    "strict_weighted_score": ("NuggetWeighted", (("strict", True),)),
    "strict_all": ("NuggetAll", (("strict", True),)),
    "strict_vital": ("NuggetVital", (("strict", True),)),
    "strict_weighted": ("NuggetWeighted", (("strict", True),)),
}
"""Second names of ir_measures and nuggetizer, with the parameters that they stand for."""

TREC_NAMES: Mapping[str, Alias] = {
    "map": ("AP", ()),
    "map_cut": ("AP", ()),
    "recip_rank": ("RR", ()),
    "ndcg": ("nDCG", ()),
    "ndcg_cut": ("nDCG", ()),
    "recall": ("R", ()),
    "success": ("Success", ()),
    "iprec_at_recall": ("IPrec", ()),
    "bpref": ("Bpref", ()),
    "set_P": ("SetP", ()),
    "set_relative_P": ("SetP", (("relative", True),)),
    "set_recall": ("SetR", ()),
    "set_F": ("SetF", ()),
    "set_map": ("SetAP", ()),
    "num_q": ("NumQ", ()),
    "num_ret": ("NumRet", ()),
    "num_rel": ("NumRel", ()),
    "num_rel_ret": ("NumRelRet", ()),
}
"""Names of trec_eval; `name.20` and `name_20` carry the cutoff."""

TREC_NEEDS_CUTOFF = ("map_cut", "ndcg_cut")

CHOICES: Mapping[str, tuple[str, ...]] = {
    "dcg": ("log2", "exp-log2"),
    "weights": ("discrimination", "2pl"),
}
