"""The grading of whatever a user gives: a grader by name, one of their own, or a function."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from exampp.errors import InputError
from exampp.grade.batch_choice import bind, by_batches, check_nothing_out
from exampp.grade.batches import Batches
from exampp.grade.graders import (
    check_answers_of,
    default_prompt,
    join,
    make_grading,
    said_of_replies,
    spread,
)
from exampp.grade.run import Grading, GradingRun
from exampp.grade.spread.on_ray import Cluster
from exampp.llm.backends import COMMON, GRADERS
from exampp.llm.base import Grader, check_grader
from exampp.llm.function import CONCURRENCY, FunctionGrader
from exampp.llm.options import KINDS, Options, check_options
from exampp.prompts import Prompt, load
from exampp.records.choosing import choose_grader, label
from exampp.records.grading import USUAL_SCALE, GraderIdentity, RatingScale, check_scale
from exampp.records.readings import said_without_key, said_without_text
from exampp.store.bank import item_kinds
from exampp.store.bank_choice import bank_of_kind
from exampp.store.cells import GradingScope, Shard, items_without_key, items_without_text
from exampp.store.grades import graders, known_grader

LONGEST_NAME = 100


class GradingOptions(Options, total=False):
    """What may be said of a run of a grader: `Collection.grading` has the defaults."""

    name: str | None
    scale: RatingScale | None
    batch: int | None
    same_text_same_grade: bool
    bank: str | None
    depth: int
    select: str
    answers_of: str | None
    max_failures: int
    max_queries: int | None
    shard: str | None
    take_over: bool
    on: str | Cluster | None
    batches: bool | Batches


class OfFunction(NamedTuple):
    """Options of a function: `batch` cells a call, and whether equal texts share one."""

    name: str | None = None
    scale: RatingScale | None = None
    batch: int | None = None
    same_text_same_grade: bool = False


def plan(
    connection: sqlite3.Connection,
    path: Path,
    grader: str | Grader | Callable[..., Any],
    options: Mapping[str, Any],
    said: OfFunction,
    *,
    bank: str | None,
    depth: int,
    max_queries: int | None,
    shard: str | None,
    answers_of: str | None,
    select: str,
    max_failures: int,
    take_over: bool,
    on: str | Cluster | None = None,
    batches: bool | Batches = False,
) -> GradingRun:
    """The run of a grader over a collection that is at `path`; see `Collection.grading`.

    Raises InputError for what is no grader, and for an option that it does not have or that would
    change nothing.
    """
    stored = graders(connection)
    known = [one.identity for one in stored]
    source = None
    if answers_of is not None:
        chosen = choose_grader(known, grader=answers_of)
        source = next(one for one in stored if one.identity == chosen)
    kinds = item_kinds(connection, bank)
    answers = source.identity.key if source else None
    cluster = Cluster(on) if isinstance(on, str) else on
    chosen_batches = Batches() if batches is True else batches or None
    if cluster is not None and chosen_batches:
        raise InputError("a cluster takes no batches", mend="Leave on out, or batches")
    grading = (
        by_batches(connection, grader, options, chosen_batches, answers)
        if chosen_batches
        else _grading(grader, options, said, kinds, answers, cluster)
    )
    if same := known_grader(connection, grading.identity):
        _check_scale(grading.identity, same.identity)
        low, high = grading.identity.lowest, grading.identity.highest
        grading = replace(grading, identity=replace(same.identity, lowest=low, highest=high))
        if not batches:
            check_nothing_out(connection, same.key)
    bind(grading)
    kind = grading.identity.kind
    exam = GradingScope(
        kind,
        bank_of_kind(connection, bank, kind, path),
        depth,
        by_query=kind != "query" and "query" in grading.prompt.slots,
        answers_of=source.key if source else None,
        verifies=grading.prompt.verifies,
        max_queries=max_queries,
        shard=None if shard is None else read_shard(shard),
        each_cell=not grading.grader.same_text_same_grade,
    )
    keyless = items_without_key(connection, exam)
    notes = [
        grading.grader.note,
        said_of_replies(grading.identity, known, path),
        said_without_key(keyless) if keyless else "",
        said_without_text(*items_without_text(connection, exam), kind),
    ]
    return GradingRun(
        connection,
        grading,
        exam,
        select=select,
        max_failures=max_failures,
        take_over=take_over,
        notes=[note for note in notes if note],
    )


def _check_scale(asked: GraderIdentity, known: GraderIdentity) -> None:
    """A scale says how replies are read, not what is asked: its grades are not for another one."""
    if (asked.lowest, asked.highest) == (known.lowest, known.highest):
        return
    raise InputError(
        f"the prompt {asked.prompt!r} rates from {asked.lowest} to {asked.highest} now, and "
        f"{label(known)} has rated from {known.lowest} to {known.highest}",
        mend="Give the prompt another name, which makes it another grader, or read the replies "
        "that were kept on the new scale: exampp reparse --rules FILE",
    )


def _grading(
    grader: str | Grader | Callable[..., Any],
    options: Mapping[str, Any],
    said: OfFunction,
    kinds: Sequence[str],
    answers_of: str | None,
    cluster: Cluster | None,
) -> Grading:
    settings = {"answers_of": answers_of} if answers_of else None
    if callable(grader) and not hasattr(grader, "answer"):
        if answers_of:
            raise InputError("a function grades passages", mend="Leave answers_of out")
        return function_grading(grader, said, kinds, check_options(options), cluster)
    if said.scale is not None or said.batch is not None or said.same_text_same_grade:
        raise InputError(
            "scale, batch and same_text_same_grade are options of a function",
            mend="Leave them out; a grader class has an attribute same_text_same_grade",
        )
    if isinstance(grader, str):
        if said.name is not None:
            raise InputError(f"the grader {grader} has a name", mend="Leave name out")
        return make_grading(grader, options, settings, cluster)
    if isinstance(grader, type):
        raise InputError(f"{grader.__name__} is a class", mend="Give one that is made of it")
    own, wanted = check_grader(grader), check_options(options)
    if strange := [name for name in wanted if name not in ("model", *COMMON)]:
        what = f"a grader that you give has no option {strange[0]}"
        known = f"It has {', '.join(COMMON)} and model, or a name; what else it can do is its own"
        raise InputError(what, mend=known)
    prompt = load(wanted.get("prompt") or default_prompt(own))
    check_answers_of(prompt, answers_of)
    name = said.name or wanted.get("model") or own.called or type(own).__name__
    if cluster is not None:
        own = _spread(own, cluster)
    kind, unnumbered = wanted.get("kind"), wanted.get("unnumbered")
    return join(own, name, prompt, kind, unnumbered=unnumbered, settings=settings)


def _spread(grader: Grader, cluster: Cluster) -> Grader:
    spread_grader = spread(partial(_itself, grader), cluster)
    spread_grader.same_text_same_grade = grader.same_text_same_grade
    return spread_grader


def _itself(grader: Grader) -> Grader:
    return grader


_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def read_shard(text: str) -> Shard:
    """A part of the passages, as in `3/16`. Raises InputError for a text that names none."""
    found = _SHARD.fullmatch(text) if isinstance(text, str) else None
    number, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise InputError(
            f"shard is {text!r}", mend="Give its number and how many there are: 1/16 to 16/16"
        )
    return Shard(number, of)


def function_grading(
    function: Callable[..., Any],
    said: OfFunction,
    kinds: Sequence[str],
    options: Options,
    cluster: Cluster | None = None,
) -> Grading:
    """The grading of a function, known by its name, scale and kind alone: these continue it.

    `kinds` are those of which there are items; where there are questions and nuggets, `options`
    choose. Raises InputError for a function without a name, and for options of other graders.
    """
    checked = _checked_name(said.name)
    if strange := [option for option in options if option not in ("kind", "concurrency")]:
        what = f"a function has no option {strange[0].replace('_', '-')}"
        raise InputError(what, mend="It has name, scale, kind, batch and concurrency")
    low, high = check_scale(said.scale or USUAL_SCALE)
    concurrency = cast("int", options.get("concurrency", CONCURRENCY))
    grader: Grader = FunctionGrader(
        function,
        (low, high),
        batch=said.batch,
        concurrency=concurrency,
        same_text_same_grade=said.same_text_same_grade,
    )
    kind = _kind(options.get("kind"), kinds)
    if cluster is not None:
        grader = _spread(grader, cluster)
    # a function sees the query, so that its ratings are of the query's text, too
    prompt = Prompt(checked, "a function", "", (kind,), "rating", low, high, ("query",))
    return join(grader, checked, prompt, kind)


def _checked_name(name: str | None) -> str:
    if name is None:
        raise InputError(
            "what is this grader called?",
            mend='Name it, as in name="mine-v1": its ratings are kept under that name, and the '
            "same name continues. A function that rates otherwise is another grader",
        )
    is_text = isinstance(name, str) and name.strip() == name and name.isprintable()
    if not is_text or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(f"a grader cannot be called {name!r}", mend="Give a short text, on a line")
    if name in GRADERS.names():
        raise InputError(f"{name!r} is the name of another grader", mend="Choose another name")
    return name


def _kind(wanted: str | None, kinds: Sequence[str]) -> str:
    if wanted is not None:
        if wanted not in KINDS:
            raise InputError(f"kind is {wanted!r}", mend=f"Give one of {', '.join(KINDS)}")
        return wanted
    if len(kinds) > 1:
        what = f"what is to be graded? There are items of kind {' and '.join(kinds)}"
        raise InputError(what, mend="Say it with kind")
    return kinds[0] if kinds else KINDS[0]
