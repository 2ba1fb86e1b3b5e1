"""SQuAD examples as what a model is trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from exampp.llm.hf.squad import Example
from exampp.llm.hf.texts import PlainTexts

UNANSWERABLE = "unanswerable"
"""What a seq2seq model is taught to reply to a question that the context does not answer."""

STRIDE = 128
Feature = Mapping[str, Any]
Prompt = Callable[[str, str], str]
"""(question, context) to the text of a prompt."""


def seq2seq_features(
    texts: PlainTexts, examples: Iterable[Example], prompt: Prompt, limit: int
) -> Iterator[Feature]:
    """Prompts with answers. A context is cut at the end of a token where the prompt is too long.

    An example is left out if the cut takes away its answer, or if nothing of the context remains.
    """
    for example in examples:
        question, context = texts.safe(example.question), texts.safe(example.context)
        end = _room(texts, question, context, prompt, limit)
        needed = example.start + len(example.answer) if example.answer is not None else 1
        if end < needed:
            continue
        ids = texts.ids([(prompt(question, context[:end]), "")])[0]
        target = UNANSWERABLE if example.answer is None else texts.safe(example.answer)
        labels = texts.tokenizer(target)["input_ids"]
        yield {"input_ids": list(ids), "attention_mask": [1] * len(ids), "labels": labels}


def _room(texts: PlainTexts, question: str, context: str, prompt: Prompt, limit: int) -> int:
    """The characters of the context that fit into a prompt of `limit` tokens."""

    def excess(end: int) -> int:
        return len(texts.ids([(prompt(question, context[:end]), "")])[0]) - limit

    if excess(len(context)) <= 0:
        return len(context)
    ends = [end for _, end in texts.offsets(context)]
    low, high = 0, len(ends)  # so many tokens fit, so many do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(ends[middle - 1]) <= 0 else (low, middle)
    return ends[low - 1] if low else 0


def extractive_features(
    texts: PlainTexts, examples: Iterable[Example], window: int
) -> Iterator[Feature]:
    """Windows over contexts, with the tokens where the answer starts and ends.

    Both are [CLS] where the window does not hold the whole answer. A question that leaves less
    than half of the window to the context is left out.
    """
    for example in examples:
        question, context = texts.safe(example.question), texts.safe(example.context)
        if len(texts.offsets(question)) > window // 2 or not context.strip():
            continue
        encoded = texts.windows(question, context, length=window, stride=min(STRIDE, window // 4))
        for index in range(len(encoded["input_ids"])):
            yield _window(texts.tokenizer, encoded, index, example)


def _window(tokenizer: Any, encoded: Any, index: int, example: Example) -> Feature:
    ids = encoded["input_ids"][index]
    start = end = null = ids.index(tokenizer.cls_token_id)
    if example.answer is not None:
        last = example.start + len(example.answer)
        inside = [
            place
            for place, part in enumerate(encoded.sequence_ids(index))
            if part == 1 and _overlaps(encoded["offset_mapping"][index][place], example.start, last)
        ]
        offsets = encoded["offset_mapping"][index]
        whole = inside and offsets[inside[0]][0] <= example.start and offsets[inside[-1]][1] >= last
        start, end = (inside[0], inside[-1]) if whole else (null, null)
    names = [name for name in ("token_type_ids", "attention_mask") if name in encoded]
    return {
        "input_ids": ids,
        **{name: encoded[name][index] for name in names},
        "start_positions": start,
        "end_positions": end,
    }


def _overlaps(offsets: tuple[int, int], start: int, end: int) -> bool:
    return offsets[0] < end and offsets[1] > start
