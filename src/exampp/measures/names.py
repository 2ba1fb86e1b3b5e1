"""Measures as values: each has a short string that parses back to the measure.

    nDCG@20   P@20   P(rel=2)@10   AP   RR@10   RBP(p=0.8)   Cover@20   nCover@20
    ndcg_cut.20   P_20   map   recip_rank      (trec_eval notation)

Tables and files use this string. `scores` computes measures. `KINDS` has the measures of
ir_measures 0.4 as data, so that a measure can be parsed and checked without importing it, and those
of exampp alone.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from exampp.errors import InputError
from exampp.plugins import Registry

Gains = tuple[tuple[int, int], ...]
ParamValue = int | float | bool | str | Gains


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """One family of measures.

    Attributes:
        params: Parameter names and types.
        required: Parameters without a default.
        at: Meaning of the number after the @: "cutoff" (passages), "recall" (0 to 1) or "" for
            none.
        at_required: Whether the @ is required.
        level: A rating threshold replaces its `rel`.
        subtopics: Computed from subtopic judgments.
        cover: Computed from the covered items.
        share: All values are from 0 to 1.
        added: Summed over queries instead of averaged.
        clipped: The mean of a system is 0 if it is below.
        exampp_only: ir_measures does not have it.
        formula: Function of a declared measure (see `declared_measures`).
        threshold: The function reads a rating threshold.
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
    clipped: bool = False
    exampp_only: bool = False
    threshold: bool = False
    formula: Callable[[Any], float | None] | None = None

    @property
    def labelled(self) -> bool:
        """Return whether the measure reads labels of passages instead of ratings of items."""
        return not (self.cover or self.subtopics or self.formula)


_REL: Mapping[str, type] = {"rel": int}
_JUDGED: Mapping[str, type] = {"rel": int, "judged_only": bool}
_SCALE: Mapping[str, type] = {"min_rel": int, "max_rel": int}
_SCALE_T: Mapping[str, type] = {"T": float, **_SCALE}
_ALPHA: Mapping[str, type] = {"rel": int, "alpha": float}


_NUGGETS = MeasureKind({"strict": bool, "partial": int}, at="cutoff", cover=True, exampp_only=True)


def _cut(
    params: Mapping[str, type], *, required: bool = False, subtopics: bool = False
) -> MeasureKind:
    return MeasureKind(params, (), "cutoff", required, level="rel" in params, subtopics=subtopics)


def _without_cutoff(params: Mapping[str, type], *, subtopics: bool = False) -> MeasureKind:
    return MeasureKind(params, level="rel" in params, subtopics=subtopics)


def _scaled(params: Mapping[str, type], at: str = "") -> MeasureKind:
    return MeasureKind(params, ("max_rel",), at=at, at_required=bool(at))


KINDS: Mapping[str, MeasureKind] = {
    "Cover": MeasureKind(at="cutoff", cover=True, exampp_only=True),
    "nCover": MeasureKind(at="cutoff", cover=True, exampp_only=True),
    "nDCG": _cut({"dcg": str, "gains": dict, "judged_only": bool}),
    "P": _cut(_JUDGED, required=True),
    "AP": _cut(_JUDGED),
    "RR": _cut(_JUDGED),
    "Rprec": _without_cutoff(_JUDGED),
    "R": _cut(_JUDGED, required=True),
    "Judged": _cut({}),
    "Bpref": _without_cutoff(_REL),
    "Success": _cut(_JUDGED, required=True),
    "SetP": _without_cutoff({**_JUDGED, "relative": bool}),
    "SetR": _without_cutoff(_REL),
    "SetF": _without_cutoff({**_JUDGED, "beta": float}),
    "SetAP": _without_cutoff(_JUDGED),
    "RBP": _cut({"rel": int, "p": float}),
    "ERR": _cut({}),
    "IPrec": MeasureKind(_JUDGED, at="recall", at_required=True, level=True),
    "infAP": _without_cutoff(_REL),
    "Accuracy": _cut(_REL),
    "Compat": _without_cutoff({"p": float, "normalize": bool}),
    "alpha_nDCG": _cut(_ALPHA, required=True, subtopics=True),
    "alpha_DCG": replace(_cut(_ALPHA, required=True, subtopics=True), share=False),
    "ERR_IA": _cut(_REL, required=True, subtopics=True),
    "nERR_IA": _cut(_REL, required=True, subtopics=True),
    "AP_IA": _without_cutoff(_REL, subtopics=True),
    "P_IA": _cut(_REL, required=True, subtopics=True),
    "NRBP": _without_cutoff({**_ALPHA, "beta": float}, subtopics=True),
    "nNRBP": _without_cutoff({**_ALPHA, "beta": float}, subtopics=True),
    "StRecall": _cut(_REL, required=True, subtopics=True),
    "NumQ": MeasureKind(share=False, added=True),
    # rel would turn the number of returned passages into that of relevant ones (NumRelRet), so no
    # threshold may set it
    "NumRet": MeasureKind(_REL, share=False, added=True),
    "NumRel": replace(_without_cutoff(_REL), share=False, added=True),
    "NumRelRet": replace(_without_cutoff(_REL), share=False, added=True),
    "BPM": _scaled(_SCALE_T, at="cutoff"),
    # Its dcg can only be log2, and is omitted.
    "SDCG": _scaled(_SCALE, at="cutoff"),
    "INST": _scaled(_SCALE_T),
    "INSQ": _scaled(_SCALE_T),
    "NERR8": _scaled(_SCALE, at="cutoff"),
    "NERR9": _scaled(_SCALE, at="cutoff"),
    "NERR10": _scaled({"p": float, **_SCALE}),
    "NERR11": _scaled(_SCALE_T),
    "NuggetAll": _NUGGETS,
    "NuggetVital": _NUGGETS,
    "NuggetWeighted": _NUGGETS,
    "Avoided": MeasureKind(at="cutoff", cover=True, exampp_only=True),
    "Points": MeasureKind(at="cutoff", cover=True, share=False, clipped=True, exampp_only=True),
}


def _undeclared(name: str, declared: object) -> MeasureKind:
    """Reject measures declared by an entry point; they register themselves when loaded."""
    raise InputError(
        f"{declared!r} is not the result of exampp.measure({name!r})",
        hint="Declare a measure with exampp.measure under the same name in the entry point",
    )


MEASURES = Registry("exampp.measures", "measure", KINDS, _undeclared)
"""All measures by name: those above and declared ones."""

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
"""Aliases of ir_measures and nuggetizer, with the parameters that they imply."""

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
"""Names of trec_eval; `name.20` and `name_20` include the cutoff."""

TREC_NEEDS_CUTOFF = ("map_cut", "ndcg_cut")

CHOICES: Mapping[str, tuple[str, ...]] = {"dcg": ("log2", "exp-log2")}

_FORM = re.compile(r"\s*([^\s(@]+)\s*(?:\((.*)\))?\s*(?:@(.*))?", re.DOTALL)
_PARAM = re.compile(r"""\s*(\w+)\s*=\s*('[^']*'|"[^"]*"|\{[^{}]*\}|[^,'"{}]+?)\s*(?:,|$)""")
_TREC_CUT = re.compile(r"(P|map_cut|ndcg_cut|recall|success|iprec_at_recall)[._](\d.*)", re.DOTALL)
_FOLDED = {name.casefold(): name for name in (*TREC_NAMES, *ALIASES, *KINDS)}


CUTOFF = 20
"""Default cutoff of Cover, nCover and nugget scores."""
LARGEST_NUMBER = 2**31 - 1
"""Maximum of cutoffs, gains and other whole numbers in a measure."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of rankings, such as `P(rel=2)@10`.

    `at` is the number after the @ (a cutoff; for IPrec a recall); `params` are sorted by name, a
    mapping of gains being a sorted tuple of pairs. Defaults of parameters are not filled in.

    Raises:
        InputError: The measure or a parameter is unknown, or a value is invalid.
    """

    name: str
    at: int | float | None = None
    params: tuple[tuple[str, ParamValue], ...] = ()

    def __post_init__(self) -> None:
        kind = self.kind
        checked = sorted((key, _checked_param(self.name, kind, key, v)) for key, v in self.params)
        for required in kind.required:
            if required not in dict(checked):
                raise InputError(
                    f"the measure {self.name} needs the parameter {required}",
                    hint=f"Write {self.name}({required}=...)",
                )
        if len(dict(checked)) != len(checked):
            raise InputError(f"a parameter of the measure {self.name} is given twice")
        object.__setattr__(self, "params", tuple(checked))
        object.__setattr__(self, "at", _checked_at(self.name, kind, self.at))

    def __str__(self) -> str:
        params = ",".join(f"{key}={_format_value(value)}" for key, value in self.params)
        text = f"{self.name}({params})" if params else self.name
        return text if self.at is None else f"{text}@{self.at}"

    @property
    def kind(self) -> MeasureKind:
        """The family of the measure: its parameters and what it is computed from."""
        kind = MEASURES.get(self.name)
        if kind is None:
            raise _unknown_name_error(self.name)
        return kind

    @property
    def cutoff(self) -> int | None:
        """The number of passages of a ranking that the measure reads; None: all."""
        return self.at if isinstance(self.at, int) and self.kind.at == "cutoff" else None

    def param(self, key: str) -> ParamValue | None:
        """Return the value of a parameter, None if it is not set."""
        return dict(self.params).get(key)

    @property
    def takes_level(self) -> bool:
        """Return whether the measure depends on a rating threshold."""
        kind = self.kind
        return kind.cover or kind.threshold or (kind.level and self.param("rel") is None)

    def at_level(self, level: int) -> Measure:
        """Return the measure with `rel` set, if it accepts `rel` and has none."""
        if not self.kind.level or not self.takes_level:
            return self
        return replace(self, params=(*self.params, ("rel", level)))

    def cut(self, k: int) -> Measure:
        """Return the measure with the cutoff k, unless it already has one."""
        return self if self.at is not None else replace(self, at=k)


def parse_measure(text: str) -> Measure:
    """Parse a measure from its string; names of trec_eval and aliases are accepted.

    Raises:
        InputError: The string is not a measure; the error suggests a similar one.
    """
    trec = _TREC_CUT.fullmatch(text.strip())
    if trec:
        name, params = TREC_NAMES.get(trec[1], (trec[1], ()))
        return Measure(name, _number(trec[2], text), params)
    form = _FORM.fullmatch(text)
    if form is None:
        raise _unknown_name_error(text.strip())
    written, inside, after = form[1], form[2], form[3]
    if written in TREC_NEEDS_CUTOFF:
        raise InputError(f"the measure {written} needs a cutoff", hint=f"Write {written}.20")
    name, implied = _canonical(written)
    params = (*implied, *_read_params(inside, text))
    return Measure(name, None if after is None else _number(after, text), params)


def heading(measure: str, min_rating: int | None) -> str:
    """Return a column heading: the measure, and the threshold if it depends on one."""
    return measure if min_rating is None else f"{measure} \u2265{min_rating}"


def as_measures(measures: Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Convert measures, strings or objects that print like measures; drop duplicates."""
    return tuple(dict.fromkeys(map(_as_measure, measures)))


def _as_measure(value: object) -> Measure:
    if callable(value) and not str(value).strip()[:1].isalpha():
        raise InputError(
            f"{value!r} is a function, not a measure",
            hint='Declare it: exampp.measure("Name")(function)',
        )
    return value if isinstance(value, Measure) else parse_measure(str(value))


def _canonical(written: str) -> tuple[str, tuple[tuple[str, ParamValue], ...]]:
    name = written
    if name not in KINDS and name not in ALIASES and name not in TREC_NAMES:
        folded = _FOLDED.get(written.casefold())
        name = written if folded is None or written in MEASURES else folded
    return ALIASES.get(name) or TREC_NAMES.get(name) or (name, ())


def _unknown_name_error(name: str) -> InputError:
    names = MEASURES.names()
    known = {**_FOLDED, **{one.casefold(): one for one in names}}
    near = difflib.get_close_matches(name.casefold(), known, 1, 0.5)
    meant = f"Did you mean {known[near[0]]}? " if near else ""
    suggestions = (
        f"Measures: {', '.join(names)}. Custom measures: see Extending in the documentation"
    )
    return InputError(f"unknown measure {name!r}", hint=meant + suggestions)


def _read_params(inside: str | None, text: str) -> list[tuple[str, ParamValue]]:
    params: list[tuple[str, ParamValue]] = []
    rest = (inside or "").strip()
    while rest:
        match = _PARAM.match(rest)
        if match is None:
            raise InputError(
                f"the parameters of the measure {text!r} are invalid",
                hint="Write them as name=value, separated by commas",
            )
        params.append((match[1], _read_value(match[2], text)))
        rest = rest[match.end() :].strip()
    return params


def _read_value(raw: str, text: str) -> ParamValue:
    if raw[0] in "'\"":
        return raw[1:-1]
    if raw.casefold() in ("true", "false"):
        return raw.casefold() == "true"
    if raw[0] == "{":
        pairs = [pair.split(":") for pair in raw[1:-1].split(",") if pair.strip()]
        numbers = [[_read_number(part, int) for part in pair] for pair in pairs]
        if all(len(pair) == 2 and None not in pair for pair in numbers):
            return tuple((int(label or 0), int(gain or 0)) for label, gain in numbers)
        raise InputError(
            f"the gains of the measure {text!r} are invalid",
            hint="Write them as {label:gain,label:gain}",
        )
    number = _read_number(raw, int, float)
    return raw if number is None else number


def _number(raw: str, text: str) -> int | float:
    number = _read_number(raw, int, float)
    if number is None:
        raise InputError(f"{raw.strip()!r} in the measure {text!r} is not a number")
    return number


def _read_number(raw: str, *kinds: type[int] | type[float]) -> int | float | None:
    """Return a 32-bit number, the precision of evaluation tools; None if it is not a number."""
    for kind in kinds:
        with suppress(ValueError):
            number = kind(raw)
            if (
                (abs(number) <= LARGEST_NUMBER)
                if isinstance(number, int)
                else math.isfinite(number)
            ):
                return number
    return None


def _checked_at(name: str, kind: MeasureKind, at: int | float | None) -> int | float | None:
    if at is None:
        if kind.at_required:
            raise InputError(
                f"the measure {name} needs a {kind.at}",
                hint=f"Write {name}@{20 if kind.at == 'cutoff' else 0.1}",
            )
        return None
    if kind.at == "recall":
        if isinstance(at, bool) or not 0 <= at <= 1:
            raise InputError(f"the recall of {name} must be between 0 and 1, not {at}")
        return float(at)
    if not kind.at:
        raise InputError(f"the measure {name} has no cutoff", hint=f"Write {name}")
    if not isinstance(at, int) or isinstance(at, bool) or at < 1:
        raise InputError(f"the cutoff of {name} must be a whole number of at least 1, not {at}")
    return at


def _checked_param(name: str, kind: MeasureKind, key: str, value: ParamValue) -> ParamValue:
    expected_type = kind.params.get(key)
    if expected_type is None:
        known = ", ".join(kind.params) or "none"
        raise InputError(
            f"the measure {name} has no parameter {key!r}", hint=f"Its parameters are {known}"
        )
    if expected_type is float and type(value) is int:
        value = float(value)
    if expected_type is dict and isinstance(value, tuple):
        return tuple(sorted(dict(value).items()))
    if type(value) is not expected_type or value not in CHOICES.get(key, (value,)):
        expected = " or ".join(CHOICES.get(key, ())) or _EXPECTED[expected_type]
        raise InputError(f"{key} of the measure {name} must be {expected}, not {value!r}")
    if key == "rel" and isinstance(value, int) and not 1 <= value < 2**15:
        raise InputError(f"rel of the measure {name} must be 1 or more, not {value}")
    if isinstance(value, float) and not (value >= 0 and (key not in _SHARES or value <= 1)):
        raise InputError(f"{key} of the measure {name} must not be {value}")
    return value


_SHARES = ("p", "alpha")

_EXPECTED: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a word",
    dict: "gains as {label:gain}",
}


def _format_value(value: ParamValue) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(f"{label}:{gain}" for label, gain in value) + "}"
    return repr(value)
