"""From a prompt and its slots to the text that is sent.

Slot texts are put in literally and in a single pass: braces inside a passage stay what they are,
and no slot text is searched for further slots. When the whole is too long for the model, only
the slot that the prompt names is shortened; instructions and question stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exampp.errors import InputError
from exampp.prompts.declaration import PLACEHOLDER, Prompt

Offsets = Callable[[str], Sequence[tuple[int, int]]]
Overhead = Callable[["Filled"], int]


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt ready to send; `kept` counts the characters that remain of a slot that was cut."""

    system: str
    user: str
    cut: bool = False
    kept: int | None = None


def fill(prompt: Prompt, slots: Mapping[str, str]) -> Filled:
    """Put the slot texts into the prompt, literally and in a single pass.

    Texts for slots that the prompt does not have are ignored, so one mapping serves all prompts.
    Raises InputError if a declared slot has no text, or the prompt has no text to fill.
    """
    if not prompt.user:
        raise InputError(
            f"the prompt '{prompt.name}' has no text: it is graded without asking a model",
            mend="choose another prompt for this grader (exampp prompts list)",
        )
    for name in prompt.slots:
        if name not in slots:
            raise InputError(
                f"the prompt '{prompt.name}' needs a text for {{{name}}}",
                field=name,
                mend=f"the prompt grades items of the kind {' or '.join(prompt.grades)}",
            )

    def put(match: re.Match[str]) -> str:
        return slots[match[2]] if match[2] else f"{{{match[1]}}}"

    return Filled(PLACEHOLDER.sub(put, prompt.system), PLACEHOLDER.sub(put, prompt.user))


def fit(
    prompt: Prompt,
    slots: Mapping[str, str],
    limit: int,
    offsets: Offsets,
    overhead: Overhead = lambda _: 0,
) -> Filled:
    """Fill the prompt so that it has at most `limit` tokens, cutting its `cut` slot if it must.

    `offsets(text)` gives the (start, end) character offsets of the model's tokens, without
    special tokens; `overhead(filled)` the number of tokens that special tokens and a chat
    template add. The slot is cut at the end of a token of its own text, which is sliced and
    never decoded from ids. A text can have other tokens inside the prompt than alone, so every
    candidate is counted as a whole before it is returned.

    Raises InputError if instructions and question alone exceed the limit, or leave no room for a
    single token of the slot. Source: FLAN-T5-EXAM, section 3.2.2 (the question remains intact).
    """

    def count(filled: Filled) -> int:
        return sum(len(offsets(t)) for t in (filled.system, filled.user) if t) + overhead(filled)

    whole = fill(prompt, slots)
    if count(whole) <= limit:
        return whole
    text = slots[prompt.cut]
    alone = count(fill(prompt, {**slots, prompt.cut: ""}))
    if alone > limit:
        raise _no_room(prompt, f"takes {alone} tokens without its {prompt.cut}", limit)
    ends = [end for _, end in offsets(text)]
    room = limit - alone
    keep = min(len(ends), room)
    while keep > 0 and ends[keep - 1] > 0:
        end = ends[keep - 1]
        filled = fill(prompt, {**slots, prompt.cut: text[:end]})
        excess = count(filled) - limit
        if excess <= 0:
            return Filled(filled.system, filled.user, cut=True, kept=end)
        keep = min(keep - 1, keep * room // (room + excess))
    raise _no_room(prompt, f"leaves no room for its {prompt.cut} ({alone} tokens without)", limit)


def _no_room(prompt: Prompt, what: str, limit: int) -> InputError:
    return InputError(
        f"the prompt '{prompt.name}' {what}, the limit is {limit}",
        mend="shorten the item's text, or grade with a model that takes longer prompts",
    )
