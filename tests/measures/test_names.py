from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exampp.errors import InputError
from exampp.measures.formulas import ir_measure
from exampp.measures.names import (
    ALIASES,
    CHOICES,
    KINDS,
    TREC_NAMES,
    Measure,
    as_measures,
    parse_measure,
)

PLAIN = """
    nDCG@20 P@20 AP AP@100 RR RR@10 Rprec R@20 Judged@20 Judged Bpref Success@10 SetP
    RBP(p=0.8) ERR@20 Cover@20 nCover@20 Cover P(rel=2)@10 nDCG(dcg='exp-log2')@10 IPrec@0.1
    nDCG(gains={0:0,1:5})@10 SetF(beta=0.5) AP(judged_only=True) alpha_nDCG(alpha=0.3)@20 NumQ
    BPM(max_rel=5)@10 Compat(p=0.9) StRecall@20 SetP(relative=True) NERR10(max_rel=3,p=0.5)
"""

SAME = {
    "ndcg_cut.20": "nDCG@20",
    "ndcg_cut_20": "nDCG@20",
    "P.20": "P@20",
    "P_20": "P@20",
    "map": "AP",
    "map_cut.10": "AP@10",
    "map_cut_10": "AP@10",
    "recip_rank": "RR",
    "recall.20": "R@20",
    "recall_20": "R@20",
    "Rprec": "Rprec",
    "ndcg": "nDCG",
    "bpref": "Bpref",
    "success.1": "Success@1",
    "iprec_at_recall_0.10": "IPrec@0.1",
    "iprec_at_recall.0.1": "IPrec@0.1",
    "set_relative_P": "SetP(relative=True)",
    "num_rel_ret": "NumRelRet",
    "MAP": "AP",
    "MRR@10": "RR@10",
    "NDCG@5": "nDCG@5",
    "Precision(rel=2)@5": "P(rel=2)@5",
    "SetRelP": "SetP(relative=True)",
    "\N{GREEK SMALL LETTER ALPHA}_nDCG@20": "alpha_nDCG@20",
    "ndcg@20": "nDCG@20",
    "cover@5": "Cover@5",
    "ncover": "nCover",
    " P( rel = 2 ) @ 10 ": "P(rel=2)@10",
    'nDCG(dcg="exp-log2")': "nDCG(dcg='exp-log2')",
    "nDCG(dcg=log2)": "nDCG(dcg='log2')",
    "AP(judged_only=true,rel=3)": "AP(judged_only=True,rel=3)",
    "RBP(p=1)": "RBP(p=1.0)",
    "nDCG(gains={})": "nDCG(gains={})",
}


@pytest.mark.parametrize("text", PLAIN.split())
def test_prints_as_it_reads(text: str) -> None:
    assert str(parse_measure(text)) == text


@pytest.mark.parametrize(("text", "same"), SAME.items())
def test_other_ways_to_write(text: str, same: str) -> None:
    assert parse_measure(text) == parse_measure(same)
    assert str(parse_measure(text)) == same


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nDGC@20", "unknown measure 'nDGC'. Did you mean nDCG? Measures: Cover, nCover, nDCG"),
        ("", "unknown measure"),
        ("zzzzzzzz", "unknown measure 'zzzzzzzz'. Measures: Cover"),
        ("P@20@10", "not a number"),
        ("P@0", "cutoff of P must be a whole number of at least 1, not 0"),
        ("P@-1", "not -1"),
        ("P@1.5", "not 1.5"),
        ("P@ten", "'ten' in the measure 'P@ten' is not a number"),
        ("P@inf", "not a number"),
        ("P.0", "not 0"),
        ("P.5,10", "not a number"),
        ("P@", "not a number"),
        ("P", "needs a cutoff. Write P@20"),
        ("ndcg_cut", "needs a cutoff. Write ndcg_cut.20"),
        ("Rprec@10", "Rprec has no cutoff"),
        ("IPrec", "needs a recall"),
        ("IPrec@1.5", "between 0 and 1"),
        ("P(rel=0)@10", "rel of the measure P must be 1 or more"),
        ("P(rel=x)@10", "rel of the measure P must be a whole number, not 'x'"),
        ("P(rel=1.5)@10", "a whole number, not 1.5"),
        ("P(rel=1,rel=2)@10", "given twice"),
        ("P(k=3)@10", "no parameter 'k'. Its parameters are rel, judged_only"),
        ("P(rel)@10", "are invalid. Write them as name=value"),
        ("Judged(x=1)", "Its parameters are none"),
        ("nDCG(dcg=ln)@10", "dcg of the measure nDCG must be log2 or exp-log2"),
        ("nDCG(gains={1})@10", "Write them as {label:gain"),
        ("RBP(p=2)", "p of the measure RBP must not be 2.0"),
        ("RBP(p=-1)", "must not be -1.0"),
        ("ERR(rel=3)", "no parameter 'rel'"),
        ("BPM@10", "needs the parameter max_rel"),
        ("Cover@0", "cutoff of Cover"),
    ],
)
def test_nonsense_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_measure(text)
    assert says in str(refused.value)


def _value(key: str, kind: type) -> st.SearchStrategy[Any]:
    if key == "rel":
        return st.integers(1, 10)
    if kind is str:
        return st.sampled_from(CHOICES[key])
    return {
        int: st.integers(-5, 99),
        float: st.floats(0, 1),
        bool: st.booleans(),
        dict: st.dictionaries(st.integers(-2, 9), st.integers(0, 99)).map(
            lambda gains: tuple(gains.items())
        ),
    }[kind]


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    name = draw(st.sampled_from(list(KINDS)))
    kind = KINDS[name]
    wanted = [key for key in kind.params if key in kind.required or draw(st.booleans())]
    params = tuple((key, draw(_value(key, kind.params[key]))) for key in wanted)
    at: int | float | None = None
    if kind.at and (kind.at_required or draw(st.booleans())):
        at = draw(st.integers(1, 10**6) if kind.at == "cutoff" else st.floats(0, 1))
    return Measure(name, at, params)


@given(measures())
def test_any_measure_survives_its_string(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure
    assert hash(parse_measure(str(measure))) == hash(measure)


@given(measures())
def test_any_measure_is_one_of_ir_measures(measure: Measure) -> None:
    if not measure.kind.exampp_only:
        ir_measure(measure).validate_params()


def test_the_table_knows_all_of_ir_measures() -> None:
    from ir_measures.measures import base

    # the registry may have measures of exampp, too
    registry = {
        name: one
        for name, one in base.registry.items()
        if type(one).__module__.startswith("ir_measures.")
    }
    twice = {name for name, kind in KINDS.items() if kind.exampp_only} & set(registry)
    assert not twice, f"ir_measures has {twice}: take exampp_only=True out of KINDS"
    for name, theirs in registry.items():
        if name == "NumRelRet":
            continue
        ours = KINDS[ALIASES[name][0] if name in ALIASES else _plain(name)]
        # Their provider of diversity measures breaks on judged_only.
        theirs_params = set(theirs.SUPPORTED_PARAMS) - {"cutoff", "recall"}
        if ours.subtopics:
            theirs_params -= {"judged_only"}
        if name == "SDCG":
            theirs_params -= {"dcg"}
        assert set(ours.params) == theirs_params, name
        assert bool(ours.at) == bool({"cutoff", "recall"} & set(theirs.SUPPORTED_PARAMS)), name


def _plain(name: str) -> str:
    return TREC_NAMES[name][0] if name in TREC_NAMES else name


def test_levels() -> None:
    assert str(parse_measure("P@20").at_level(3)) == "P(rel=3)@20"
    assert str(parse_measure("P(rel=2)@20").at_level(3)) == "P(rel=2)@20"
    assert not parse_measure("P(rel=2)@20").takes_level
    for text in ("nDCG@20", "ERR@20", "NumRet", "Judged@5", "Compat"):
        assert not parse_measure(text).takes_level
        assert str(parse_measure(text).at_level(3)) == text
    for text in ("RBP", "StRecall@5", "NumRelRet", "Cover@20"):
        assert parse_measure(text).takes_level
    assert str(parse_measure("Cover").at_level(3)) == "Cover"


def test_measures_come_from_anything_that_prints_like_one() -> None:
    import ir_measures

    given_twice = [ir_measures.P(rel=2) @ 10, "P(rel=2)@10", Measure("AP"), "map"]
    assert [str(m) for m in as_measures(given_twice)] == ["P(rel=2)@10", "AP"]


def test_a_measure_without_cutoff_takes_one() -> None:
    assert str(parse_measure("Cover").cut(20)) == "Cover@20"
    assert str(parse_measure("Cover@5").cut(20)) == "Cover@5"
    assert parse_measure("IPrec@0.1").cutoff is None
    assert parse_measure("AP").cutoff is None
