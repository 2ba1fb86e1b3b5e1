"""Plan a grading run and estimate its cost."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from exampp.errors import ExamError, InputError
from exampp.graders.base import MARKED, FirstCell, Grader, Reply, check_grader
from exampp.graders.draft import THRESHOLDS
from exampp.graders.function import FunctionGrader
from exampp.graders.options import CallOptions, NamedOptions, declared_options, read_options
from exampp.graders.registry import DEFAULT_PROMPT, DEFAULT_PROMPTS, GRADERS, Backend
from exampp.grading.batches import Batches, BatchGrader
from exampp.grading.cascade import check_first, identity_of_cascade
from exampp.grading.requests import (
    EXTRACTION,
    SELF_RATING,
    Grading,
    ReplyRules,
    build_request,
    check_prompt_fits,
    matching_mode,
    unnumbered_setting,
)
from exampp.grading.run import UNSTORED, GradingRun
from exampp.grading.target import CellDraw, Stop, grading_target
from exampp.grading.workers import Cluster, RayWorkers, SpreadGrader
from exampp.measures.names import Measure
from exampp.plugins import describe_error
from exampp.prompts import Prompt, load_grading_prompt, names, prompt_content_hash
from exampp.prompts.generation import (
    GenerationPrompt,
    GenerationRequest,
    asks_for_json,
    reply_properties,
)
from exampp.records.cascade import AUDITED, UNSURE_WITHIN, CascadeRule, cascade_rule
from exampp.records.graders import (
    ITEM_KINDS,
    MATCHINGS,
    UNNUMBERED,
    USUAL_SCALE,
    GraderIdentity,
    RatingScale,
    State,
    check_scale,
    choose_grader,
    grader_label,
)
from exampp.records.readings import describe_items_without_key, describe_items_without_text
from exampp.records.wording import suggest
from exampp.sanitize import check_choice
from exampp.store import runs as kept
from exampp.store.bank import bank_of_kind, item_kinds
from exampp.store.cells import (
    POOLS,
    GradingScope,
    PendingCells,
    Pool,
    Shard,
    items_without_key,
    items_without_text,
    pending_cells,
)
from exampp.store.grades import (
    Rules,
    StoredGrader,
    find_grader,
    graders,
    known_grader,
    reading_rules,
)
from exampp.store.inputs import system_keys
from exampp.store.runs import FILE, OPEN, PREPARED, describe_batches

if TYPE_CHECKING:
    from exampp.graders.openai import OpenAICompatibleGrader


MARKING_PROMPTS = {"nugget": "nugget-extraction"}
"""Default prompts of models that mark answers in the passage, by kind; else question-answering."""


def prompt_kind(prompt: Prompt, kind: str | None, in_bank: Sequence[str] = ()) -> str:
    """Return what a prompt grades; `kind` selects one of several, or the first in the bank."""
    kinds = tuple("question" if grades == "answer" else grades for grades in prompt.grades)
    if kind is None:
        return next((one for one in kinds if one in in_bank), kinds[0])
    if kind in kinds:
        return kind
    grades = {kind, "answer"} if kind == "question" else {kind}
    others = ", ".join(name for name in names() if grades & set(load_grading_prompt(name).grades))
    raise InputError(
        f"the prompt {prompt.name!r} grades {' or '.join(kinds)}, not {kind}",
        hint=f"Remove --kind, or use a prompt for it: --prompt {others}",
    )


def check_answers_of(prompt: Prompt, answers_of: str | None) -> None:
    """Reject a verification prompt without extracted answers, and answers for other prompts.

    Without extracted answers, the prompt would grade the passages instead.
    """
    verifies = "answer" in prompt.grades
    if verifies and answers_of is None:
        raise InputError(
            f"the prompt {prompt.name!r} verifies answers extracted by another grader",
            hint="Name that grader with --answers-of; to extract answers, grade with --prompt "
            "question-answering",
        )
    if answers_of is not None and not verifies:
        raise InputError(
            f"the prompt {prompt.name!r} does not verify answers, so --answers-of has no effect",
            hint="Remove --answers-of, or use --prompt answer-verification",
        )


def _unnumbered(grader: Grader, prompt: Prompt, requested: str | None) -> dict[str, str]:
    declared = grader.unnumbered if prompt.reading == SELF_RATING else None
    if declared is not None:
        return unnumbered_setting(requested or declared)
    if requested is not None:
        why = (
            f"the prompt {prompt.name!r} does not request a self-rating"
            if prompt.reading != SELF_RATING
            else "with this decode every reply is a label"
        )
        raise InputError(f"--unnumbered has no effect: {why}", hint="Remove it")
    return {}


def _matching(prompt: Prompt, requested: str | None) -> dict[str, str]:
    """Return the setting of the rule that matches extracted answers; empty for the papers' rule."""
    if prompt.reading != EXTRACTION:
        if requested is not None:
            what = f"--matching has no effect: the prompt {prompt.name!r} does not extract answers"
            raise InputError(what, hint="Remove it")
        return {}
    return {} if requested == "papers" else {"read": MATCHINGS["guarded"]}


def _as_before(connection: sqlite3.Connection, grading: Grading) -> Grading:
    """Return the grading by the papers' rule if the collection already matches answers by it."""
    settings = {name: value for name, value in grading.identity.settings.items() if name != "read"}
    identity = replace(grading.identity, settings=settings)
    known = {
        matching_mode(one.identity.settings)
        for one in graders(connection)
        if extracts_answers(one.identity.prompt, reading_rules(connection, one.key))
    }
    is_known = find_grader(connection, grading.identity) is not None
    if is_known or not (known == {"exam"} or find_grader(connection, identity) is not None):
        return grading
    return replace(grading, identity=identity, rules=ReplyRules.of(grading.prompt, settings))


def extracts_answers(prompt: str, rules: Rules | None) -> bool:
    """Return whether a stored grader extracts answers, by its rules or its prompt's name."""
    if rules:
        return rules.get("reading") == EXTRACTION
    return prompt in names() and load_grading_prompt(prompt).reading == EXTRACTION


def default_prompt(grader: Grader | None, kind: str, usual: str = DEFAULT_PROMPT) -> str:
    """Return the default prompt for a kind of item: `usual`, or one that the grader can answer."""
    if grader is not None and grader.readings == MARKED:
        return MARKING_PROMPTS.get(kind, "question-answering")
    return DEFAULT_PROMPTS[kind] if usual == DEFAULT_PROMPT else usual


def check_prompt(grader: Grader, prompt: Prompt) -> None:
    """Reject a prompt that a grader cannot answer: its replies would be misread.

    An extractive model marks a span for any prompt, and a span is not a rating.
    """
    readings = grader.readings
    if prompt.reading not in readings:
        fitting = [name for name in names() if load_grading_prompt(name).reading in readings]
        raise InputError(
            f"this grader cannot answer the prompt {prompt.name!r}, which needs a "
            f"{READINGS_IN_WORDS[prompt.reading]}",
            field="prompt",
            hint=f"It can answer {', '.join(fitting)}, and custom prompts with the same reading",
        )


READINGS_IN_WORDS = {
    "self-rating": "rating",
    "rating": "rating",
    "yes-no": "yes or no",
    "support": "support label",
    "extraction": "text from the passage",
    "thresholds": "similarity score",
}


def join_grading(
    grader: Grader,
    model: str,
    prompt: Prompt,
    kind: str | None = None,
    *,
    thresholds: tuple[float, ...] = (),
    unnumbered: str | None = None,
    matching: str | None = None,
    answers_of: str | None = None,
) -> Grading:
    """Combine a backend and a prompt; the identity determines every reply and rating.

    `unnumbered` defaults to the backend's declaration: None if every reply is a label. Without a
    declaration, as for custom graders, it is an answer.
    """
    check_prompt(check_grader(grader), prompt)
    check_prompt_fits(prompt, grader)
    item_kind = prompt_kind(prompt, kind)
    if isinstance(grader, SpreadGrader):
        grader.ask_by(prompt, item_kind)
    identity = GraderIdentity(
        model,
        prompt.name,
        item_kind,
        prompt.lowest,
        prompt.highest,
        {
            **grader.settings,
            **({"prompt_hash": prompt_content_hash(prompt)} if prompt.user else {}),
            **({"thresholds": list(thresholds)} if thresholds else {}),
            **_unnumbered(grader, prompt, unnumbered),
            **_matching(prompt, matching),
            **({"answers_of": answers_of} if answers_of else {}),
        },
    )
    return Grading(grader, prompt, identity, ReplyRules.of(prompt, identity.settings))


WRITTEN_TOKENS = 2048
"""Default maximum tokens of a generated reply."""
MOST_TOKENS_OF_ITEM = 60
"""Tokens by which that maximum grows with every item; a question has about 20."""


def without_server(model: object = None, known: Sequence[GraderIdentity] = ()) -> dict[str, str]:
    """Return options of a server's grader that sends nothing: it works as the newest known one."""
    decodes = (one.settings.get("decode") for one in reversed(known) if one.model == model)
    return {"assume": str(next(decodes, "auto")), "api_key": "none"}


def make_writer(
    name: str, options: Mapping[str, Any], prompt: GenerationPrompt, wish: GenerationRequest
) -> Grader:
    """Return a backend that writes items.

    Where the prompt asks for JSON, a server that can is made to keep to its schema.
    """
    writers = [one for one, known in GRADERS.built_in.items() if known.writes is not None]
    backend = _backend(name, writers)
    if backend.writes is None:
        hint = f"Use {' or '.join(writers)}"
        raise InputError(f"the grader {name!r} cannot generate text", hint=hint)
    values = {option: value for option, value in options.items() if value is not None}
    if "unnumbered" in values:
        raise InputError("a generated bank has no ratings", hint="Remove --unnumbered")
    for option, required in backend.writes.items():
        possible = required if isinstance(required, tuple) else (required,)
        default = "text" if "text" in possible and not asks_for_json(prompt, wish) else possible[0]
        if (value := values.setdefault(option, default)) not in possible:
            needed = " or ".join(map(repr, possible))
            raise InputError(f"generating a bank needs {option} {needed}, not {value!r}")
    if "max_new_tokens" in declared_options(backend.options):
        tokens = max(WRITTEN_TOKENS, MOST_TOKENS_OF_ITEM * wish.asked(prompt))
        values.setdefault("max_new_tokens", tokens)
    properties = reply_properties(prompt, wish)
    items = Prompt("items", "", "", (prompt.makes,), "", 0, 1, properties=properties)
    return make_grader(name, items, values)


def _backend(name: str, known: Iterable[str] | None = None) -> Backend:
    """Return a backend; raise InputError for an unknown one, which suggests those in `known`."""
    if backend := GRADERS.get(name):
        return backend
    known = list(GRADERS.names() if known is None else known)
    hint = suggest(name, known) or f"Use one of {', '.join(known)}, and name a model by --model"
    raise InputError(f"unknown grader {name!r}", hint=hint)


def make_grading(
    name: str,
    options: Mapping[str, Any],
    answers_of: str | None = None,
    cluster: Cluster | None = None,
    wrap: Callable[[Grader], Grader] | None = None,
    in_bank: Sequence[str] = (),
    prepare: Callable[[Grader, Prompt, str], None] = lambda *_: None,
) -> Grading:
    """Return the grading of a backend, by the workers of a cluster if given.

    `prepare` gets the grader of the backend, the prompt and the kind before the grader is asked for
    its settings, and `wrap` may replace it. The kinds of items `in_bank` determine the default
    prompt.

    Raises:
        InputError: The backend or an option is unknown.
    """
    backend = _backend(name)
    values = {option: value for option, value in options.items() if value is not None}
    read_options(backend.options, values, f"the grader {name}", RUN_OPTIONS)
    usual = values.get("kind") or next(iter(in_bank), ITEM_KINDS[0])
    prompt = load_grading_prompt(
        values.get("prompt") or default_prompt(None, usual, backend.prompt)
    )
    kind = prompt_kind(prompt, values.get("kind"), in_bank)
    check_answers_of(prompt, answers_of)
    if cluster is None:
        grader = check_grader(make_grader(name, prompt, values))
    elif name == "openai":
        raise InputError(
            "requests to a server are sent from this machine; workers would not speed them up",
            field="on",
            hint="Remove --on",
        )
    else:
        if (model := values.get("model")) is not None and Path(model).is_dir():
            # workers run in other folders
            values["model"] = str(Path(model).resolve())
        make = partial(make_grader, name, prompt, values)
        grader = SpreadGrader(RayWorkers(cluster, make, computes=name == "hf"))
    prepare(grader, prompt, kind)
    grader = wrap(grader) if wrap else grader
    if "prompt" not in values:
        prompt = load_grading_prompt(default_prompt(grader, kind, backend.prompt))
    return join_grading(
        grader,
        grader.model_name or values.get("model", name),
        prompt,
        kind,
        thresholds=THRESHOLDS if prompt.reading == "thresholds" else (),
        unnumbered=values.get("unnumbered"),
        matching=values.get("matching"),
        answers_of=answers_of,
    )


def make_grader(name: str, prompt: Prompt, values: Mapping[str, Any]) -> Grader:
    """Return the grader of a backend, loaded into this process."""
    backend = _backend(name)
    options = read_options(backend.options, values, f"the grader {name}")
    try:
        return backend.make(options, prompt)
    except (Exception, SystemExit) as error:
        # a plug-in may raise anything
        if name in GRADERS.built_in or isinstance(error, ExamError):
            raise
        raise InputError(f"the grader {name!r} failed to load: {describe_error(error)}") from error


def make_batch_grading(
    connection: sqlite3.Connection,
    grader: object,
    options: Mapping[str, Any],
    batches: Batches,
    answers_of: str | None,
    in_bank: Sequence[str] = (),
    prepare: Callable[[Grader, Prompt, str], None] = lambda *_: None,
) -> Grading:
    """Return the grading of a server's grader, by batches; see `make_grading` for `prepare`.

    Raises:
        InputError: The grader does not support batches.
    """
    if not isinstance(grader, str) or grader != "openai":
        called = f"the grader {grader}" if isinstance(grader, str) else "this grader"
        raise InputError(f"{called} does not support batches", hint="Use --grader openai")
    # a file needs no server, and therefore no key
    out = kept.batches_of(connection, None, (PREPARED, OPEN))
    offline = batches.offline or (batches.cancel and grader not in {row.provider for row in out})
    if offline:
        options = {"api_key": "none", **options}

    def wrap(backend: Grader) -> Grader:
        inner = cast("OpenAICompatibleGrader", backend)
        return BatchGrader(inner, connection, batches, offline=offline)

    return make_grading(grader, options, answers_of, wrap=wrap, in_bank=in_bank, prepare=prepare)


def check_no_open_batches(connection: sqlite3.Connection, grader: int) -> None:
    """Raise InputError if a grader has open batches: new requests would be paid for twice."""
    if rows := kept.batches_of(connection, grader, (PREPARED, OPEN)):
        is_file = rows[0].provider == FILE
        how = "Read its replies with --replies FILE" if is_file else "Wait for it with --batch"
        raise InputError(
            f"this grader has open requests: {describe_batches(rows)}",
            hint=f"{how}, or end it with --cancel-batches",
        )


LONGEST_NAME = 100


class FunctionOptions(NamedTuple):
    """Options of a function: name, scale, and whether equal texts share a call."""

    name: str | None = None
    scale: RatingScale | None = None
    same_text_same_grade: bool = False


RUN_OPTIONS = (
    *("bank", "depth", "pool", "select", "answers_of", "max_failures", "max_queries", "shard"),
    *("on", "batches", "dry_run", "measures", "min_rating", "may_miss"),
    *("after", "unsure", "audit", "audit_seed", "until", "margin", "baseline_system"),
    *FunctionOptions._fields,
)
"""Options of a run, which a misspelt option of a grader may mean."""


_UNSUPPORTED = {
    "--until": ("--may-miss", "--after", "--max-queries", "--shard", "--retry-failed", "--batch"),
    "--after": ("--for", "--may-miss", "--answers-of"),
    "--may-miss": ("--max-queries", "--shard"),
}
"""Options that choose cells or queries, and other options that they do not support."""


def _check_supported(given: Mapping[str, bool]) -> None:
    """Raise InputError for two given options that do not support each other."""
    for option, others in _UNSUPPORTED.items():
        for other in others:
            if given[option] and given[other]:
                raise InputError(
                    f"{option} does not support {other}, which chooses other cells or queries",
                    hint=f"Remove {other}",
                )


def plan_run(
    connection: sqlite3.Connection,
    path: Path,
    grader: str | Grader | Callable[..., Any],
    options: Mapping[str, Any],
    function: FunctionOptions,
    *,
    bank: str | None,
    depth: int,
    pool: str,
    max_queries: int | None,
    shard: str | None,
    answers_of: str | None,
    select: str,
    max_failures: int,
    on: str | Cluster | None = None,
    batches: bool | Batches = False,
    dry_run: bool = False,
    measures: Sequence[Measure | str] = (),
    min_rating: int | Sequence[int] | None = None,
    may_miss: float | None = None,
    until: Stop | None = None,
    after: str | None = None,
    unsure: float = UNSURE_WITHIN,
    audit: float | None = None,
    audit_seed: int = 0,
) -> GradingRun:
    """Return the run of a grader over a collection at `path`; see `Collection.grading`.

    Raises:
        InputError: The grader or an option is unknown, or an option has no effect.
    """
    check_choice("pool", pool, POOLS)
    stored = graders(connection)
    known = [one.identity for one in stored]
    source = None if answers_of is None else _chosen(stored, answers_of)
    kinds = item_kinds(connection, bank)
    answers = source.identity.key if source else None
    cluster = Cluster(on) if isinstance(on, str) else on
    chosen_batches = Batches() if batches is True else batches or None
    _check_supported(
        {
            "--for": bool(measures),
            "--may-miss": may_miss is not None,
            "--until": until is not None,
            "--after": after is not None,
            "--max-queries": max_queries is not None,
            "--shard": shard is not None,
            "--answers-of": source is not None,
            "--retry-failed": select != "pending",
            "--batch": chosen_batches is not None,
        }
    )
    if until is not None and until.baseline is not None:
        system_keys(connection, [until.baseline])
    if cluster is not None and chosen_batches:
        raise InputError("a cluster does not support batches", hint="Remove on or batches")
    if dry_run and grader == "openai":
        options = {**options, **without_server(options.get("model"), known)}

    def scope_of_prompt(prompt: Prompt, kind: str, *, each_cell: bool = False) -> GradingScope:
        return GradingScope(
            kind,
            bank_of_kind(connection, bank, kind, path),
            depth,
            by_query=kind != "query" and not {"query", "conversation"}.isdisjoint(prompt.slots),
            answers_of=source.key if source else None,
            verifies=prompt.verifies,
            max_queries=max_queries,
            shard=None if shard is None else parse_shard(shard),
            each_cell=each_cell,
            pool=cast("Pool", pool),
        )

    prepare = partial(_prepare, connection, scope_of_prompt)
    grading = (
        make_batch_grading(connection, grader, options, chosen_batches, answers, kinds, prepare)
        if chosen_batches
        else _grading_of(grader, options, function, kinds, answers, cluster, prepare)
    )
    if grading.prompt.reading == EXTRACTION and options.get("matching") is None:
        grading = _as_before(connection, grading)
    if same := known_grader(connection, grading.identity):
        _check_scale(grading.identity, same.identity)
        low, high = grading.identity.lowest, grading.identity.highest
        grading = replace(grading, identity=replace(same.identity, lowest=low, highest=high))
        if not batches:
            check_no_open_batches(connection, same.key)
    if isinstance(grading.grader, BatchGrader):
        grading.grader.bind(grading.identity)
    kind = grading.identity.kind
    exam = scope_of_prompt(grading.prompt, kind, each_cell=not grading.grader.same_text_same_grade)
    target = None
    if after is None:
        draw = CellDraw(may_miss, audit, audit_seed)
        target = grading_target(measures, min_rating, grading.identity, depth, draw, until)
    else:
        first = _chosen(stored, after)
        share = AUDITED if audit is None else audit
        rule = cascade_rule(first.identity, _only_rating(min_rating), unsure, share, audit_seed)
        exam = _after(connection, exam, first, rule, grading.identity)
    keyless = items_without_key(connection, exam)
    notes = [
        grading.grader.note,
        describe_items_without_key(keyless) if keyless else "",
        describe_items_without_text(*items_without_text(connection, exam), kind),
    ]
    return GradingRun(
        connection,
        grading,
        exam,
        select=select,
        max_failures=max_failures,
        notes=[note for note in notes if note],
        dry_run=dry_run,
        target=target,
    )


def _chosen(stored: Sequence[StoredGrader], name: str) -> StoredGrader:
    """Return the only stored grader that a name matches."""
    chosen = choose_grader([one.identity for one in stored], grader=name)
    return next(one for one in stored if one.identity == chosen)


def _only_rating(min_rating: int | Sequence[int] | None) -> int | None:
    """Return the minimum rating of a cascade; raise InputError for several."""
    ratings = [min_rating] if min_rating is None or isinstance(min_rating, int) else min_rating
    if len(ratings) > 1:
        raise InputError("a cascade has one minimum rating", hint="Give --min-rating once")
    return next(iter(ratings), None)


def _after(
    connection: sqlite3.Connection,
    exam: GradingScope,
    first: StoredGrader,
    rule: CascadeRule,
    second: GraderIdentity,
) -> GradingScope:
    """Return the scope of the second grader of a cascade."""
    if first.identity == second:
        raise InputError(
            f"{second.name} is both graders of the cascade", hint="Name another with --after"
        )
    identity_of_cascade([first, StoredGrader(UNSTORED, second)], rule)
    check_first(connection, first, exam)
    return exam._replace(after=(first.key, rule))


def _check_scale(grader: GraderIdentity, known: GraderIdentity) -> None:
    """Raise InputError if the prompt's scale differs from that of the stored grades."""
    if (grader.lowest, grader.highest) == (known.lowest, known.highest):
        return
    raise InputError(
        f"the prompt {grader.prompt!r} now rates from {grader.lowest} to {grader.highest}, "
        f"but {grader_label(known)} has rated from {known.lowest} to {known.highest}",
        hint="Give the prompt another name, which makes it another grader, or reread the stored "
        "replies on the new scale: exampp reparse --rules FILE",
    )


def _grading_of(
    grader: str | Grader | Callable[..., Any],
    options: Mapping[str, Any],
    function: FunctionOptions,
    kinds: Sequence[str],
    answers_of: str | None,
    cluster: Cluster | None,
    prepare: Callable[[Grader, Prompt, str], None],
) -> Grading:
    if callable(grader) and not hasattr(grader, "answer"):
        if answers_of:
            raise InputError("a function grades passages, not answers", hint="Remove answers_of")
        return function_grading(grader, function, kinds, options, cluster)
    if function.scale is not None or function.same_text_same_grade:
        raise InputError(
            "scale and same_text_same_grade only apply to functions",
            hint="Remove them; a grader class has an attribute same_text_same_grade",
        )
    if isinstance(grader, str):
        if function.name is not None:
            raise InputError(f"the grader {grader} already has a name", hint="Remove name")
        return make_grading(grader, options, answers_of, cluster, in_bank=kinds, prepare=prepare)
    if isinstance(grader, type):
        raise InputError(f"{grader.__name__} is a class", hint="Pass an instance")
    own = check_grader(grader)
    named = read_options(NamedOptions, options, "a grader object", RUN_OPTIONS)
    usual = named.kind or next(iter(kinds), ITEM_KINDS[0])
    prompt = load_grading_prompt(named.prompt or default_prompt(own, usual))
    kind = prompt_kind(prompt, named.kind, kinds)
    check_answers_of(prompt, answers_of)
    name = function.name or named.model or own.model_name or type(own).__name__
    if cluster is not None:
        own = _on_workers(own, cluster)
    return join_grading(
        own,
        name,
        prompt,
        kind,
        unnumbered=named.unnumbered,
        matching=named.matching,
        answers_of=answers_of,
    )


def _on_workers(grader: Grader, cluster: Cluster) -> Grader:
    spread = SpreadGrader(RayWorkers(cluster, partial(check_grader, grader)))
    spread.same_text_same_grade = grader.same_text_same_grade
    return spread


_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def parse_shard(text: str) -> Shard:
    """Return a part of the passages, as in `3/16`; raise InputError for any other text."""
    match = _SHARD.fullmatch(text) if isinstance(text, str) else None
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise InputError(f"shard is {text!r}", hint="Write number/count, from 1/16 to 16/16")
    return Shard(number, of)


def function_grading(
    function: Callable[..., Any],
    settings: FunctionOptions,
    kinds: Sequence[str],
    options: Mapping[str, Any],
    cluster: Cluster | None = None,
) -> Grading:
    """Return the grading of a function, identified by name, scale and kind.

    `kinds` are those that have items; if there are questions and nuggets, `options` select one.

    Raises:
        InputError: The function has no name, or an option belongs to other graders.
    """
    if options.get("model") is not None:
        raise InputError(
            "a function has no option model", hint='Use name="mine-v1": ratings are stored under it'
        )
    call_options = read_options(CallOptions, options, "a function", RUN_OPTIONS)
    checked = _checked_name(settings.name)
    low, high = check_scale(settings.scale or USUAL_SCALE)
    grader: Grader = FunctionGrader(
        function,
        (low, high),
        concurrency=call_options.concurrency,
        same_text_same_grade=settings.same_text_same_grade,
    )
    if call_options.kind is None and len(kinds) > 1:
        what = f"there are items of kind {' and '.join(kinds)}; which are to be graded?"
        raise InputError(what, hint="Set kind")
    kind = call_options.kind or (kinds[0] if kinds else ITEM_KINDS[0])
    if cluster is not None:
        grader = _on_workers(grader, cluster)
    # a function sees the query, so its ratings depend on the query text, too
    prompt = Prompt(checked, "a function", "", (kind,), "rating", low, high, ("query",))
    return join_grading(grader, checked, prompt, kind)


def _checked_name(name: str | None) -> str:
    if name is None:
        raise InputError(
            "the grader has no name",
            hint='Add one, such as name="mine-v1": ratings are stored under it, and the same '
            "name continues. A function that rates differently needs another name",
        )
    is_text = isinstance(name, str) and name.strip() == name and name.isprintable()
    if not is_text or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(f"invalid grader name {name!r}", hint="Use a short text on one line")
    if name in GRADERS.names():
        raise InputError(f"{name!r} is already the name of another grader", hint="Use another name")
    return name


def _prepare(
    connection: sqlite3.Connection,
    scope: Callable[[Prompt, str], GradingScope],
    grader: Grader,
    prompt: Prompt,
    kind: str,
) -> None:
    """Let a grader with `try_on` choose its mode on the first cells, or as in an earlier run."""

    def known() -> list[Mapping[str, Any]]:
        identities = [one.identity for one in graders(connection)]
        return [one.settings for one in identities if (one.prompt, one.kind) == (prompt.name, kind)]

    if (try_on := getattr(grader, "try_on", None)) is not None:
        # graded or not, in any shard: every process tries the same cells
        exam = scope(prompt, kind)._replace(shard=None)
        try_on(lambda: first_cells(connection, grader, prompt, exam), known)


FIRST, APART = 4, 7
"""Cells to try a grader on, and their distance in the order of cells."""


def first_cells(
    connection: sqlite3.Connection, grader: Grader, prompt: Prompt, exam: GradingScope
) -> list[FirstCell]:
    """Return some of the first cells of an exam, with the check whether a reply is read."""
    rules = ReplyRules(prompt, unnumbered=UNNUMBERED[1])
    cells = []
    some = islice(pending_cells(connection, None, exam), 0, FIRST * APART, APART)
    for number, one in enumerate(some):
        with suppress(InputError):
            request = build_request(prompt, exam.kind, grader, number, one)
            cells.append(FirstCell(request, partial(_has_grade, rules, one)))
    return cells


def _has_grade(rules: ReplyRules, cells: PendingCells, reply: Reply) -> bool:
    return rules.read(cells, reply).state is State.GRADED
