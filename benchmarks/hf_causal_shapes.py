"""Causal models of published shapes with random weights, and a tokenizer for the benchmark's texts.

Speed and agreement are measured with them, not the quality of ratings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    "qwen2.5-1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
    },
    "qwen2.5-7b": {
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
    },
}
VOCABULARY = 151936
WORDS = 30000


def save_causal(folder: Path, shape: str, texts: Sequence[str], device: str) -> None:
    """Save a Qwen2 of a shape, and a tokenizer trained on the texts, into a folder."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = transformers.PreTrainedTokenizerFast
    fast(tokenizer_object=bpe, eos_token="<|end|>", pad_token="<|end|>").save_pretrained(folder)
    torch.manual_seed(3)
    config: Any = transformers.Qwen2Config
    causal: Any = transformers.Qwen2ForCausalLM
    with torch.device(device):
        model = causal(
            config(
                vocab_size=VOCABULARY,
                max_position_embeddings=32768,
                bos_token_id=None,
                eos_token_id=0,
                pad_token_id=0,
                **SHAPES[shape],
            )
        )
    model.save_pretrained(folder)
