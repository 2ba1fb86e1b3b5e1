"""Tiny models with random weights and tokenizers of their own, saved to disk in about a second.

Modules that name this one as a plugin are run first, see `conftest.py`, and torch is imported by
their fixtures and tests: where others run, it costs four seconds for nothing.

Random weights never end a reply, so `teach` trains a T5 to reply as FLAN-T5 does to the rating
prompts: with a label, and nothing behind it.

Test modules import this one before they name it as a plugin: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exampp.graders.local import grader
from exampp.graders.local.checkpoint import LoadedModel, load_model, require
from exampp.prompts import load_grading_prompt as load_prompt

for _package in ("torch", "transformers"):
    if importlib.util.find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed", allow_module_level=True)

Build = Callable[[str, Callable[[Path], object]], Path]
"""The fixture `built`."""
LABELS = ("0", "1", "2", "3", "4", "5")
_TEXT = """
river lake stone bridge tower market garden winter letter Passage tells of the and a What is
said in text Rate from to Question Context Answer it long was who when where city king year
"""
WORDS = tuple(_TEXT.split())
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_CHARACTERS = [c for c in string.printable if c.isprintable() and c != " "]


def _t5_tokenizer(split_zero: bool) -> Any:
    _, transformers = require()
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [(c, -8.0) for c in _CHARACTERS]
    pieces += [("▁" + c, -6.0) for c in LABELS if c != "0" or not split_zero]
    known = " ".join(load_prompt(n).user for n in ("question-self-rating", "question-answering"))
    words = {*WORDS, *re.findall(r"[A-Za-z]{2,}", known), "Yes", "No", "unanswerable"}
    pieces += [("▁" + word, -5.0) for word in sorted(words)]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=2)


def _t5_config(tokenizer: Any, **more: Any) -> Any:
    _, transformers = require()
    return transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
        **more,
    )


def save(folder: Path, model: Any, tokenizer: Any) -> Path:
    """Save a model and its tokenizer, and return the folder."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def build_t5(folder: Path, *, split_zero: bool = False, taught: bool = False) -> Path:
    """A T5 of 2 + 2 layers; with `split_zero`, `0` is two pieces, as in the real FLAN-T5."""
    torch, transformers = require()
    tokenizer = _t5_tokenizer(split_zero)
    torch.manual_seed(1)
    config = _t5_config(tokenizer, tie_word_embeddings=False)
    model = transformers.T5ForConditionalGeneration(config).eval()
    if taught:
        teach(model, tokenizer, LABELS)
    return save(folder, model, tokenizer)


def build_t5_reader(folder: Path) -> Path:
    """A T5 for extractive question answering, with the special tokens of the published ones.

    Their tokenizers know `<cls>`, and do not set it themselves.
    """
    torch, transformers = require()
    tokenizer = _t5_tokenizer(split_zero=True)
    tokenizer.add_special_tokens({"cls_token": "<cls>"})
    torch.manual_seed(4)
    model = transformers.T5ForQuestionAnswering(_t5_config(tokenizer))
    return save(folder, model, tokenizer)


def teach(model: Any, tokenizer: Any, labels: Sequence[str], steps: int = 30) -> None:
    """Train a T5 for a second to reply with some label and to end there, unsure which label."""
    torch, _ = require()
    prompts = [f"Question: What is the {word} Context: {word} {n}" for n, word in enumerate(WORDS)]
    batch = tokenizer(prompts, return_tensors="pt", padding=True)
    replies = [labels[n * 7 % len(labels)] for n in range(len(prompts))]
    targets = tokenizer(replies, return_tensors="pt", padding=True)["input_ids"]
    targets[targets == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(**batch, labels=targets).loss.backward()
        optimizer.step()


def build_llama(folder: Path, *, chat: bool = True, width: int = 32) -> Path:
    """A Llama of 2 layers with a byte-level BPE, and a chat template if wanted."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    torch, transformers = require()
    special = ["<|end|>", "<|im_start|>", "<|im_end|>"]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator([" ".join(WORDS), "0 1 2 3 4 5 6 7 8 9 user assistant"] * 4, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|end|>", model_max_length=1024
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    if chat:
        tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        eos_token_id=2,
        bos_token_id=None,
        pad_token_id=0,
        initializer_range=0.3,
    )
    return save(folder, transformers.LlamaForCausalLM(config), tokenizer)


def build_bert(folder: Path) -> Path:
    """A BERT of 2 layers for extractive question answering, of at most 64 tokens."""
    torch, transformers = require()
    words = sorted({word.lower() for word in WORDS})
    characters = [c for c in _CHARACTERS if not c.isupper()]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    tokens += ["##" + c for c in characters if c.isalnum()] + [w for w in words if len(w) > 1]
    tokenizer = transformers.BertTokenizer(
        vocab={t: i for i, t in enumerate(tokens)}, model_max_length=64
    )
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    return save(folder, transformers.BertForQuestionAnswering(config), tokenizer)


@pytest.fixture(scope="session")
def torch() -> Any:
    return require()[0]


@pytest.fixture(scope="session")
def transformers() -> Any:
    return require()[1]


_fetch_once = functools.cache(load_model)


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process reads the folder of a model once: graders share its weights, and nothing else."""

    def fetched(model: str, **options: Any) -> LoadedModel:
        once = _fetch_once(model, **options)
        tokenizer = copy.deepcopy(once.tokenizer)
        return replace(once, model=copy.copy(once.model), tokenizer=tokenizer)

    monkeypatch.setattr(grader, "load_model", fetched)


def _folder(name: str, build: Callable[..., object], **options: Any) -> Any:
    """Return a fixture: the folder of a model that is built once a session."""

    @pytest.fixture(scope="session")
    def folder(built: Build) -> Path:
        return built(name, functools.partial(build, **options))

    return folder


t5 = _folder("tiny-t5", build_t5)
t5_taught = _folder("tiny-t5-taught", build_t5, taught=True)
t5_split = _folder("tiny-t5-split", build_t5, split_zero=True, taught=True)
llama = _folder("tiny-llama", build_llama)
llama_plain = _folder("tiny-llama-plain", build_llama, chat=False)
t5_reader = _folder("tiny-t5-reader", build_t5_reader)
bert = _folder("tiny-bert", build_bert)
