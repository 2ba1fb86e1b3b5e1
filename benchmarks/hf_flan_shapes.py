"""Models of the shape of FLAN-T5 with random weights, and prompts for them to read.

Nothing can be downloaded where these benchmarks run, so the weights are random. What they cannot
do by themselves is to reply with a rating and to end there, as FLAN-T5 does; `set_ratings` solves
for the output rows of the labels and of the end that do just that on the prompts of the benchmark.
"""

from __future__ import annotations

import functools
import gzip
import json
import random
import re
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from exampp.graders.base import Request
from exampp.prompts import fill
from exampp.prompts import load_grading_prompt as load_prompt

PROMPT = load_prompt("question-self-rating")
LABELS = PROMPT.labels
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dl19"
SHAPES = {
    "tiny": {"d_model": 128, "d_ff": 256, "num_layers": 2, "num_heads": 4, "d_kv": 64},
    "base": {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12, "d_kv": 64},
    "large": {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_heads": 16, "d_kv": 64},
}
VOCABULARY = 32128
LIMIT = 512


@functools.cache
def read_texts() -> tuple[list[str], list[str]]:
    """Questions and passages of TREC DL 2019, or made-up ones where the data are not there."""
    if not DATA.is_dir():
        chance = random.Random(7)
        words = ["".join(chance.choices(string.ascii_lowercase, k=5)) for _ in range(2000)]
        texts = [" ".join(chance.choices(words, k=chance.randint(30, 90))) for _ in range(400)]
        return [text[:50] for text in texts[:100]], texts
    with gzip.open(DATA / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        banks = [json.loads(line)["questions"] for line in lines]
    questions = [question["question_text"] for bank in banks for question in bank]
    with gzip.open(DATA / "graded.jsonl.gz", "rt", encoding="utf-8") as lines:
        passages = [passage["text"] for passage in json.loads(next(lines))[1]]
    return questions, passages


def make_tokenizer(texts: Iterable[str], *, split_zero: bool = True) -> Any:
    """A T5 tokenizer with the words of the texts; with `split_zero`, `0` is two, as in FLAN-T5."""
    words = sorted({w for text in texts for w in re.findall(r"[A-Za-z]+|[^\sA-Za-z]", text)})
    single = sorted({c for text in texts for c in text if not c.isspace()})
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(character, -9.0) for character in single]
    starts = [w for w in words if w != "0" or not split_zero][: VOCABULARY - len(pieces) - 100]
    pieces += [("▁" + word, -5.0) for word in starts]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=0)


def make_asks(tokenizer: Any, cells: int, per_passage: int) -> list[Request]:
    """Rating prompts of some 250 to 510 tokens, `per_passage` questions for each context."""
    questions, passages = read_texts()
    chance = random.Random(11)
    empty = fill(PROMPT, {"question": questions[0], "context": ""}).user
    overhead = len(tokenizer(empty)["input_ids"]) + 40
    asks: list[Request] = []
    while len(asks) < cells:
        words = " ".join(chance.sample(passages, 6)).split()
        room = min(chance.randint(100, 450), LIMIT - overhead)  # long ones are cut
        while len(tokenizer(" ".join(words))["input_ids"]) > room:
            words = words[: int(len(words) * 0.97)]
        for question in chance.sample(questions, per_passage)[: cells - len(asks)]:
            context = " ".join(words)
            user = fill(PROMPT, {"question": question, "context": context}).user
            asks.append(Request(len(asks), question, context, user))
    return asks


def make_model(size: str) -> Any:
    """A T5 of the shape of FLAN-T5 with random weights, in float32."""
    torch.manual_seed(13)
    config: Any = transformers.T5Config
    shape = config(
        vocab_size=VOCABULARY,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        **SHAPES[size],
    )
    model: Any = transformers.T5ForConditionalGeneration(shape)
    # transformers 5 ties the output layer of every new T5 to its embeddings; FLAN-T5's is not
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model.eval()


def set_ratings(model: Any, tokenizer: Any, asks: Sequence[Request]) -> None:
    """Let the model rate each prompt at random, with an end behind the rating.

    The last hidden states of every start of a reply are collected; the output rows of the tokens
    that may follow are the least-squares solution for logits of 16 plus noise where they may
    follow and of 0 where they may not. All other rows are scaled down.
    """
    sequences = [tokenizer(label, add_special_tokens=False)["input_ids"] for label in LABELS]
    starts = sorted({tuple(ids[:n]) for ids in sequences for n in range(len(ids) + 1)})
    follows = {
        start: {
            [*ids, tokenizer.eos_token_id][len(start)]
            for ids in sequences
            if tuple(ids[: len(start)]) == start
        }
        for start in starts
    }
    states, kinds = [], []
    for ask in asks:
        ids = torch.tensor([tokenizer(ask.user)["input_ids"]], device=model.device)
        with torch.inference_mode():
            encoded = model.get_encoder()(input_ids=ids).last_hidden_state
            for start in starts:
                steps = torch.tensor([[0, *start]], device=model.device)
                out = model.decoder(input_ids=steps, encoder_hidden_states=encoded)
                states.append(out.last_hidden_state[0, -1].cpu())
                kinds.append(start)
    inverse = torch.linalg.pinv(torch.stack(states).double())
    noise = torch.Generator().manual_seed(17)
    with torch.no_grad():
        model.lm_head.weight.mul_(0.02)
        for token in sorted(set().union(*follows.values())):
            wanted = torch.tensor([16.0 if token in follows[kind] else 0.0 for kind in kinds])
            spread = torch.randn(len(kinds), generator=noise) * (wanted > 0)
            if token == tokenizer.eos_token_id:
                spread.zero_()
            model.lm_head.weight[token] = (inverse @ (wanted + spread).double()).float()


def encoder_flops(size: str, tokens: int) -> float:
    """Floating-point operations of the encoder on a prompt of so many tokens."""
    shape = SHAPES[size]
    inner = shape["num_heads"] * shape["d_kv"]
    per_token = 8 * shape["d_model"] * inner + 6 * shape["d_model"] * shape["d_ff"]
    return float(shape["num_layers"] * (tokens * per_token + 4 * tokens**2 * inner))
