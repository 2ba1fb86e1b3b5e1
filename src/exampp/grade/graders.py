"""Gradings by name: the backend, who it is, how it is asked and how its replies are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exampp.errors import InputError
from exampp.grade.asking import asker, check_room
from exampp.grade.reading import reader, rules_of
from exampp.grade.run import Grading
from exampp.llm.base import MARKED, Grader, check_grader
from exampp.llm.draft import THRESHOLDS, DraftGrader
from exampp.llm.options import Options, declarations, options_of
from exampp.prompts import Prompt, content_hash, load, names
from exampp.prompts.declaration import meanings_of, suggest
from exampp.prompts.reading import UNNUMBERED
from exampp.records import GraderIdentity

DEFAULT_PROMPT = "question-self-rating"
MARKING_PROMPT = "question-answering"
"""What a model that marks answers in the passage is asked where nobody says otherwise."""


def kind_of(prompt: Prompt, kind: str | None) -> str:
    """What a prompt grades; `kind` chooses where it can grade several."""
    kinds = tuple("question" if grades == "answer" else grades for grades in prompt.grades)
    if kind is None:
        return kinds[0]
    if kind not in kinds:
        raise InputError(
            f"the prompt {prompt.name!r} grades {' or '.join(kinds)}, not {kind}",
            mend="Leave --kind away, or choose another prompt (exampp prompts list)",
        )
    return kind


def check_answers_of(prompt: Prompt, answers_of: str | None) -> None:
    """Refuse a verification without answers to verify, and answers for a prompt that reads none.

    A passage in the place of an extracted answer would be graded as if it were one.
    """
    verifies = "answer" in prompt.grades
    if verifies and answers_of is None:
        raise InputError(
            f"the prompt {prompt.name!r} verifies answers that another grader extracted",
            mend="Name that grader with --answers-of; to extract answers, grade with "
            "--prompt question-answering",
        )
    if answers_of is not None and not verifies:
        raise InputError(
            f"the prompt {prompt.name!r} verifies no answers, so --answers-of would change nothing",
            mend="Leave --answers-of out, or choose --prompt answer-verification",
        )


SELF_RATING = "self-rating"
"""The rules of reading to which it matters what a text without a number is."""


def unnumbered_of(settings: Mapping[str, Any]) -> str:
    """What a text without a number is to the grader of these settings; absence means an answer."""
    return str(settings.get("unnumbered", UNNUMBERED[0]))


def unnumbered_setting(unnumbered: str) -> dict[str, str]:
    """The same as a part of settings: graders that were made before it could be chosen keep theirs.

    Raises InputError for what is not one of `prompts.reading.UNNUMBERED`.
    """
    if unnumbered not in UNNUMBERED:
        raise InputError(
            f"unnumbered is {unnumbered!r}", mend=f"Give one of {', '.join(UNNUMBERED)}"
        )
    return {} if unnumbered == UNNUMBERED[0] else {"unnumbered": unnumbered}


def read_otherwise(
    identity: GraderIdentity, known: Sequence[GraderIdentity]
) -> GraderIdentity | None:
    """The grader among those known that differs only in what a text without a number is.

    None where the grader itself is known: then nothing is asked for a second time.
    """
    if any(one.by_content.key == identity.by_content.key for one in known):
        return None
    return next((one for one in known if _replies_of(one) == _replies_of(identity)), None)


def _replies_of(identity: GraderIdentity) -> str:
    """What two graders share whose replies are the same, however they are read."""
    identity = identity.by_content
    settings = {name: v for name, v in identity.settings.items() if name != "unnumbered"}
    return replace(identity, settings=settings).key


def _unnumbered(grader: Grader, prompt: Prompt, wanted: str | None) -> dict[str, str]:
    declared = grader.unnumbered if prompt.reading == SELF_RATING else None
    if declared is not None:
        return unnumbered_setting(wanted or declared)
    if wanted is not None:
        why = (
            f"the prompt {prompt.name!r} asks for no self-rating"
            if prompt.reading != SELF_RATING
            else "with this decode every reply is a label"
        )
        raise InputError(f"--unnumbered would change nothing: {why}", mend="Leave it out")
    return {}


def default_prompt(grader: Grader, usual: str = DEFAULT_PROMPT) -> str:
    """The name of what a grader is asked where nobody says: `usual`, or what it can answer."""
    return MARKING_PROMPT if grader.readings == MARKED else usual


def check_prompt(grader: Grader, prompt: Prompt) -> None:
    """Refuse a prompt that a grader cannot answer: its replies would be read as what they are not.

    An extractive model marks a span whatever it is asked for, and a span is no rating.
    """
    readings = grader.readings
    if prompt.reading not in readings:
        fitting = [name for name in names() if load(name).reading in readings]
        raise InputError(
            f"this grader cannot answer the prompt {prompt.name!r}, which wants a "
            f"{READINGS_IN_WORDS[prompt.reading]}",
            field="prompt",
            mend=f"It answers {', '.join(fitting)}, and prompts of yours that are read like them",
        )


READINGS_IN_WORDS = {
    "self-rating": "rating",
    "rating": "rating",
    "yes-no": "yes or no",
    "extraction": "text from the passage",
    "thresholds": "measure of likeness",
}


def join(
    grader: Grader,
    model: str,
    prompt: Prompt,
    kind: str | None = None,
    *,
    thresholds: tuple[float, ...] = (),
    unnumbered: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grading:
    """Join a backend and a prompt; what the identity holds determines every reply and rating.

    `unnumbered` is by default what the backend declares: None where every reply is a label, and
    where nothing is declared, as for a grader of your own, an answer.
    """
    check_prompt(check_grader(grader), prompt)
    check_room(prompt, grader)
    chosen = kind_of(prompt, kind)
    identity = GraderIdentity(
        model,
        prompt.name,
        chosen,
        prompt.lowest,
        prompt.highest,
        {
            **grader.settings,
            **({"prompt_hash": content_hash(prompt)} if prompt.user else {}),
            **({"thresholds": list(thresholds)} if thresholds else {}),
            **_unnumbered(grader, prompt, unnumbered),
            **(settings or {}),
        },
    )
    return Grading(
        grader,
        prompt,
        identity,
        asker(prompt, chosen, grader),
        reader(prompt, thresholds=thresholds, unnumbered=unnumbered_of(identity.settings)),
        rules_of(prompt),
    )


def _draft(_: Prompt, __: Options) -> Grader:
    return DraftGrader()


def _hf(prompt: Prompt, options: Options) -> Grader:
    # each backend loads when it is asked for: evaluating must not pay for grading
    from exampp.llm import hf

    names = ("revision", "device", "dtype", "quantize", "decode", "beams", "limit", "batch_tokens")
    given = options.given()
    chosen = {name: given[name] for name in (*names, "max_new_tokens") if name in given}
    template = options.chat_template_kwargs
    return hf.load(_named(options), labels=prompt.labels, template=template, **chosen)


def _openai(prompt: Prompt, options: Options) -> Grader:
    from exampp.llm import openai

    given = options.given()
    policy = {"concurrency": "max_concurrency", "retries": "max_retries", "timeout": "timeout"}
    prices = (options.price_read, options.price_written)
    if (prices[0] is None) != (prices[1] is None):
        raise InputError("a price needs both --price-read and --price-written")
    price = None
    if prices[0] is not None and prices[1] is not None:
        price = openai.Price(prices[0], prices[1], options.price_cached)
    names = {name: name for name in _SAMPLING} | {"max_new_tokens": "max_tokens"}
    sampling = openai.Sampling(**{names[name]: given[name] for name in names if name in given})
    return openai.OpenAICompatibleGrader(
        _named(options),
        options.base_url,
        options.api_key,
        prompt.labels,
        prompt.field,
        meanings_of(prompt),
        decode=given.get("decode", "auto"),
        revision=options.revision or "",
        sampling=sampling,
        policy=openai.Patience(**{policy[name]: given[name] for name in policy if name in given}),
        limits=openai.Limits(options.max_requests, options.max_cost, price),
        redirect_to=options.redirect_to,
        endpoint=given.get("endpoint", "chat"),
        limit=options.limit,
    )


_SAMPLING = (
    *("temperature", "seed", "top_p", "reasoning_effort"),
    *("chat_template_kwargs", "extra_body"),
)


def _named(options: Options) -> str:
    if options.model is None:
        raise InputError("which model?", mend="Name it with --model")
    return options.model


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of grader: how it is made, and its prompt by default."""

    make: Callable[[Prompt, Options], Grader]
    prompt: str


BACKENDS: Mapping[str, Backend] = {
    "draft": Backend(_draft, "draft"),
    "hf": Backend(_hf, DEFAULT_PROMPT),
    "openai": Backend(_openai, DEFAULT_PROMPT),
}
"""Graders by name: the offline stand-in, models on this machine, and servers."""


WRITTEN_TOKENS = 2048
"""Tokens of a reply of a writer at most, where nobody says otherwise."""


def make_writer(name: str, options: Options) -> Grader:
    """A backend that writes what it is asked for, whatever it is: for generating banks."""
    if name not in BACKENDS:
        raise _no_grader(name, _WRITERS)
    if name not in _WRITERS:
        raise InputError(f"the grader {name!r} writes no texts", mend=f"Give {_WRITERS_LISTED}")
    _check_options(name, options)
    if options.unnumbered is not None:
        raise InputError("a bank that is generated has no ratings", mend="Leave --unnumbered out")
    decode = options.decode or _WRITERS[name]
    if decode != _WRITERS[name]:
        raise InputError(f"a bank is generated with decode {_WRITERS[name]!r}, not {decode!r}")
    tokens = options.max_new_tokens or WRITTEN_TOKENS
    blank = Prompt("items", "", "", ("question",), "", 0, 1)
    return BACKENDS[name].make(blank, replace(options, decode=decode, max_new_tokens=tokens))


_WRITERS = {"hf": "generate", "openai": "text"}
_WRITERS_LISTED = " or ".join(_WRITERS)


def _no_grader(name: str, known: Iterable[str]) -> InputError:
    meant = suggest(name, known) or f"known: {', '.join(known)}"
    return InputError(f"no grader is called {name!r}", mend=meant[0].upper() + meant[1:])


def _check_options(name: str, options: Options) -> None:
    known = options_of(name)
    strange = [option for option in options.given() if option not in known]
    if strange:
        shown = [o for o, one in declarations().items() if o in known and one.shown]
        raise InputError(
            f"the grader {name} has no option {_dashed(strange[0])}",
            mend=f"It has {', '.join(map(_dashed, sorted(shown)))}",
        )


def _dashed(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def make_grading(name: str, options: Options, settings: Mapping[str, Any] | None = None) -> Grading:
    """The grading of a backend; InputError for a name or an option that it does not know."""
    if name not in BACKENDS:
        raise _no_grader(name, BACKENDS)
    _check_options(name, options)
    backend = BACKENDS[name]
    prompt = load(options.prompt or backend.prompt)
    kind_of(prompt, options.kind)
    check_answers_of(prompt, (settings or {}).get("answers_of"))
    made = backend.make(prompt, options)
    if options.prompt is None:
        prompt = load(default_prompt(made, backend.prompt))
    thresholds = THRESHOLDS if prompt.reading == "thresholds" else ()
    model = made.called or options.model or name
    return join(
        made,
        model,
        prompt,
        options.kind,
        thresholds=thresholds,
        unnumbered=options.unnumbered,
        settings=settings,
    )
