"""Gradings by name: the backend, who it is, how it is asked and how its replies are read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from exampp.errors import ExamError, InputError
from exampp.grade.asking import asker, check_room
from exampp.grade.reading import reader, rules_of
from exampp.grade.run import Grading
from exampp.grade.spread.grader import SpreadGrader
from exampp.grade.spread.on_ray import Cluster, RayWorkers
from exampp.llm.backends import COMMON, DEFAULT_PROMPT, GRADERS, Backend
from exampp.llm.base import LEAST_MASS, MARKED, Grader, check_grader
from exampp.llm.draft import THRESHOLDS
from exampp.llm.options import HF, OPENAI, check_choices, check_values
from exampp.plugins import told
from exampp.prompts import Prompt, content_hash, load, names
from exampp.prompts.declaration import suggest
from exampp.prompts.reading import UNNUMBERED
from exampp.records import GraderIdentity
from exampp.records.choosing import label

MARKING_PROMPT = "question-answering"
"""What a model that marks answers in the passage is asked where nobody says otherwise."""


def _that_grade(kind: str) -> str:
    """The bundled prompts that grade items of a kind."""
    grades = {kind, "answer"} if kind == "question" else {kind}
    return ", ".join(name for name in names() if grades & set(load(name).grades))


def kind_of(prompt: Prompt, kind: str | None) -> str:
    """What a prompt grades; `kind` chooses where it can grade several."""
    kinds = tuple("question" if grades == "answer" else grades for grades in prompt.grades)
    if kind is None:
        return kinds[0]
    if kind not in kinds:
        raise InputError(
            f"the prompt {prompt.name!r} grades {' or '.join(kinds)}, not {kind}",
            mend=f"Leave --kind away, or choose one that does by --prompt: {_that_grade(kind)}",
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


def least_mass_of(settings: Mapping[str, Any]) -> float:
    """What labels must have of the probability, to the grader of these settings."""
    return float(settings.get("least_mass", LEAST_MASS))


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
    "support": "label of support",
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
    if isinstance(grader, SpreadGrader):
        grader.ask_by(prompt, chosen)
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
        reader(
            prompt,
            thresholds=thresholds,
            unnumbered=unnumbered_of(identity.settings),
            least_mass=least_mass_of(identity.settings),
        ),
        rules_of(prompt),
    )


WRITTEN_TOKENS = 2048
"""Tokens of a reply of a writer at most, where nobody says otherwise."""


def make_writer(name: str, options: Mapping[str, Any]) -> Grader:
    """A backend that writes what it is asked for, whatever it is: for generating banks."""
    writers = [one for one, known in GRADERS.built_in.items() if known.writes is not None]
    backend = GRADERS.get(name)
    if backend is None:
        raise _no_grader(name, writers)
    if backend.writes is None:
        mend = f"Give {' or '.join(writers)}"
        raise InputError(f"the grader {name!r} writes no texts", mend=mend)
    given = _given(name, backend, options)
    if "unnumbered" in given:
        raise InputError("a bank that is generated has no ratings", mend="Leave --unnumbered out")
    for option, wanted in backend.writes.items():
        if (value := given.setdefault(option, wanted)) != wanted:
            raise InputError(f"a bank is generated with {option} {wanted!r}, not {value!r}")
    if "max_new_tokens" in backend.options:
        given["max_new_tokens"] = given.get("max_new_tokens") or WRITTEN_TOKENS
    return backend.make(Prompt("items", "", "", ("question",), "", 0, 1), given)


def _no_grader(name: str, known: Iterable[str]) -> InputError:
    meant = suggest(name, known) or f"known: {', '.join(known)}"
    return InputError(f"no grader is called {name!r}", mend=meant[0].upper() + meant[1:])


def _given(name: str, backend: Backend, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, of the types that the backend declares."""
    given = {option: value for option, value in options.items() if value is not None}
    strange = [option for option in given if option not in backend.options]
    if strange:
        shown = sorted(option for option, one in backend.options.items() if one.shown)
        raise InputError(
            f"the grader {name} has no option {_dashed(strange[0])}",
            mend=f"It has {', '.join(map(_dashed, shown))}",
        )
    return check_values(backend.options, given)


def _dashed(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def make_grading(
    name: str,
    options: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    cluster: Cluster | None = None,
    wrap: Callable[[Grader], Grader] | None = None,
) -> Grading:
    """The grading of a backend, by the workers of a cluster where there is a `cluster`.

    `wrap` makes the grader that is asked out of the backend's. Raises InputError for a name or an
    option that it does not know.
    """
    backend = GRADERS.get(name)
    if backend is None:
        raise _no_grader(name, GRADERS.names())
    given = _given(name, backend, options)
    prompt = load(given.get("prompt", backend.prompt))
    kind_of(prompt, given.get("kind"))
    check_answers_of(prompt, (settings or {}).get("answers_of"))
    made = check_grader(
        made_here(name, prompt, given) if cluster is None else _spread(name, prompt, given, cluster)
    )
    made = wrap(made) if wrap else made
    if "prompt" not in given:
        prompt = load(default_prompt(made, backend.prompt))
    return join(
        made,
        made.called or given.get("model", name),
        prompt,
        given.get("kind"),
        thresholds=THRESHOLDS if prompt.reading == "thresholds" else (),
        unnumbered=given.get("unnumbered"),
        settings=settings,
    )


def spread(make: Callable[[], Grader], cluster: Cluster, *, computes: bool = False) -> SpreadGrader:
    """The grader that workers of a cluster make, each for itself; see `RayWorkers`."""
    return SpreadGrader(RayWorkers(cluster, make, computes=computes))


def _spread(name: str, prompt: Prompt, given: Mapping[str, Any], cluster: Cluster) -> Grader:
    if name == OPENAI:
        raise InputError(
            "a server is asked from here, and workers would not make it any faster",
            field="on",
            mend="Leave --on out",
        )
    if (model := given.get("model")) is not None and Path(model).is_dir():
        # workers run in folders of their own
        given = {**given, "model": str(Path(model).resolve())}
    return spread(partial(made_here, name, prompt, given), cluster, computes=name == HF)


def made_here(name: str, prompt: Prompt, given: Mapping[str, Any]) -> Grader:
    """The grader of a backend, loaded into this process."""
    backend = GRADERS.get(name)
    if backend is None:
        raise _no_grader(name, GRADERS.names())
    if name in GRADERS.built_in:
        return backend.make(prompt, given)
    check_choices(backend.options, given)
    try:
        own = {option: value for option, value in given.items() if option not in COMMON}
        return backend.make(prompt, own)
    except ExamError:
        raise
    except (Exception, SystemExit) as error:
        # what others write may fail in any way; it is told in a sentence
        raise InputError(f"the grader {name!r} cannot be made: {told(error)}") from error


def said_of_replies(
    identity: GraderIdentity, known: Sequence[GraderIdentity], collection: Path
) -> str:
    """That a new grader needs no replies, where they were kept for another way of reading."""
    other = read_otherwise(identity, known)
    if other is None:
        return ""
    wanted = unnumbered_of(identity.settings)
    command = ["exampp", "reparse", str(collection), "--grader", other.key[:8]]
    command += ["--unnumbered", wanted]
    return (
        f"{label(other)} differs only in what a text without a number is "
        f"({unnumbered_of(other.settings)}, now {wanted}). Its replies need not be asked for "
        f"again; this reads them:\n  {shlex.join(command)}"
    )
