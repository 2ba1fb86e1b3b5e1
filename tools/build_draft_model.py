"""Build the data files of the draft grader from the published weights of all-MiniLM-L6-v2.

    pip install numpy onnx safetensors
    python tools/build_draft_model.py FOLDER

FOLDER holds `model.safetensors` and `tokenizer.json` of the upstream revision, or of anything that
carries the same bytes: both are checked. The same input gives the same output, byte for byte.

The graph is written node by node, with the fused operators of ONNX Runtime. Weights of matrix
products are int8 with a scale per output column, word vectors int8 with a scale per word; both are
turned back into float32 before they are used, the matrices once, when the model is loaded. That
moves scores by .0014 on average against the unquantised model.

Products of int8 would be twice as fast, but rounding the activations makes steps out of the last
bits in which releases of ONNX Runtime differ, and ties a text to the others in its batch: either
moved the score of a pair by up to .01. In float32 it moves by less than a millionth.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
LAYERS = 6
HEADS = 12
DIMENSIONS = 384
MAX_TOKENS = 256
EPSILON = 1e-12
FUSED = "com.microsoft"
TARGET = Path(__file__).parents[1] / "src/exampp/graders/draft_model"

NOTICE = f"""\
The draft grader's model: what it is and where it comes from

model.onnx and tokenizer.json derive from sentence-transformers/all-MiniLM-L6-v2, revision
1110a243fdf4706b3f48f1d95db1a4f5529b4d41, published by the sentence-transformers project
(https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) and declared Apache-2.0 on its model
card. It was fine-tuned there from nreimers/MiniLM-L6-H384-uncased. The licence text is in LICENSE.

  SHA-256 of the weights used (model.safetensors)  {WEIGHTS_SHA256}
  SHA-256 of the tokenizer used (tokenizer.json)   {TOKENIZER_SHA256}
  SHA-256 of model.onnx as shipped                 {{model}}
  SHA-256 of tokenizer.json as shipped             {{tokenizer}}

Changes made by the exampp authors (tools/build_draft_model.py): the weights were converted to an
ONNX graph and stored as int8; the pooler and the positions beyond {MAX_TOKENS} were left
out; the graph gives the L2-normalised vector of every token, not their mean. The settings for
truncation and padding were removed from the tokenizer.

Training data, as the model card names it: more than a billion sentence pairs, among them Reddit
comments, S2ORC, WikiAnswers, PAQ, Stack Exchange, GOOAQ, Yahoo Answers and 9.1 million triplets of
MS MARCO. Some of these sets were released on terms of their own (MS MARCO: "non-commercial research
purposes only"). Whether such terms reach the weights is unsettled; if that matters to you, have it
checked before you use this model. None of that data is contained here.
"""

Array = NDArray[np.float32]


class Graph:
    """An ONNX graph in the making; tensors are referred to by name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a tensor of fixed values and return its name."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(self, op: str, inputs: Iterable[str], output: str, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        self.add_many(op, inputs, [output], **attributes)
        return output

    def add_many(self, op: str, inputs: Iterable[str], outputs: list[str], **more: Any) -> None:
        """Add a node with several outputs."""
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=outputs[0], **more))


def quantised(weights: Array, axis: int) -> tuple[NDArray[np.int8], Array]:
    """Weights as integers in [-127, 127] and the scale, which is shared along `axis`."""
    scale = np.abs(weights).max(axis, keepdims=True) / np.float32(127)
    scale[scale == 0] = 1
    return np.rint(weights / scale).astype(np.int8), scale


def product(graph: Graph, x: str, weights: Array, name: str) -> str:
    """Multiply x [batch, tokens, in] by weights [in, out], which are stored as int8.

    Cast and Mul of constants are folded when a session starts. DequantizeLinear would not be: newer
    releases turn it into a product of int8.
    """
    values, scale = quantised(weights, axis=0)
    stored = graph.constant(f"{name}.values", values)
    floats = graph.add("Cast", [stored], f"{name}.float", to=TensorProto.FLOAT)
    scales = graph.constant(f"{name}.scale", scale)
    return graph.add("MatMul", [x, graph.add("Mul", [floats, scales], f"{name}.weights")], name)


def embed(graph: Graph, weights: dict[str, Array]) -> str:
    """Add the embedding layer; all tokens are of type 0, so that vector joins the positions."""
    values, scale = quantised(weights["embeddings.word_embeddings.weight"], axis=1)
    positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
    stored = graph.add(
        "Gather", [graph.constant("words.values", values), "input_ids"], "words.int8"
    )
    floats = graph.add("Cast", [stored], "words.float", to=TensorProto.FLOAT)
    scales = graph.add(
        "Gather", [graph.constant("words.scale", scale), "input_ids"], "words.scales"
    )
    words = graph.add("Mul", [floats, scales], "words")
    length = graph.add("Shape", ["input_ids"], "length", start=1, end=2)
    start = graph.constant("start", np.array([0], dtype=np.int64))
    table = graph.constant("positions.values", positions)
    places = graph.add("Slice", [table, start, length], "positions")
    total = graph.add("Add", [words, places], "embeddings.sum")
    norm = [
        graph.constant(f"embeddings.{part}", weights[f"embeddings.LayerNorm.{part}"])
        for part in ("weight", "bias")
    ]
    return graph.add("LayerNormalization", [total, *norm], "embeddings", axis=-1, epsilon=EPSILON)


def layer(graph: Graph, x: str, mask: str, weights: dict[str, Array], name: str) -> str:
    """Add one transformer layer on x [batch, tokens, 384]; `weights` are those of the layer."""

    def matrix(part: str) -> Array:
        return weights[f"{part}.weight"].T

    def vector(part: str, kind: str = "bias") -> str:
        return graph.constant(f"{name}.{part}.{kind}", weights[f"{part}.{kind}"])

    def add_and_norm(x: str, y: str, dense: str, norm: str) -> str:
        inputs = [x, y, vector(norm, "weight"), vector(norm), vector(dense)]
        output = f"{name}.{norm}"
        return graph.add("SkipLayerNormalization", inputs, output, domain=FUSED, epsilon=EPSILON)

    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    joined = product(graph, x, np.concatenate([matrix(p) for p in parts], axis=1), f"{name}.joined")
    split = [f"{name}.{part}" for part in parts]
    graph.add_many("Split", [joined], split, axis=-1, num_outputs=3)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    inputs = [*split, graph.constant(f"{name}.joined.bias", bias), mask]
    y = graph.add("MultiHeadAttention", inputs, f"{name}.attention", domain=FUSED, num_heads=HEADS)
    y = product(graph, y, matrix("attention.output.dense"), f"{name}.attention.output")
    x = add_and_norm(x, y, "attention.output.dense", "attention.output.LayerNorm")
    y = product(graph, x, matrix("intermediate.dense"), f"{name}.intermediate")
    y = graph.add("BiasGelu", [y, vector("intermediate.dense")], f"{name}.gelu", domain=FUSED)
    y = product(graph, y, matrix("output.dense"), f"{name}.output")
    return add_and_norm(x, y, "output.dense", "output.LayerNorm")


def build(weights: dict[str, Array]) -> onnx.ModelProto:
    """The encoder: input_ids and attention_mask [batch, tokens] to unit vectors of all tokens."""
    graph = Graph()
    x = embed(graph, weights)
    mask = graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    for index in range(LAYERS):
        prefix = f"encoder.layer.{index}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        x = layer(graph, x, mask, own, f"layer{index}")
    graph.add("LpNormalization", [x], "vectors", axis=-1, p=2)
    shape = ["batch", "tokens"]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, shape)
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [*shape, DIMENSIONS])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)],
        ir_version=9,
    )
    onnx.checker.check_model(model)
    return model


def checked(file: Path, sha256: str) -> Path:
    """Return `file` if its content is the expected one, else exit."""
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != sha256:
        raise SystemExit(f"{file}: SHA-256 is {found}, expected {sha256}")
    return file


def plain_tokenizer(file: Path) -> bytes:
    """Return the tokenizer without truncation and padding, which the grader does itself."""
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    tokenizer |= {"truncation": None, "padding": None}
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


def main() -> None:
    """Read the options, check the input, write the files, print their hashes."""
    parser = argparse.ArgumentParser(description="Build the data files of the draft grader.")
    parser.add_argument("source", type=Path, help="folder of model.safetensors and tokenizer.json")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write to")
    options = parser.parse_args()
    weights = load_file(checked(options.source / "model.safetensors", WEIGHTS_SHA256))
    model = build(weights)
    files = {
        "model.onnx": model.SerializeToString(deterministic=True),
        "tokenizer.json": plain_tokenizer(
            checked(options.source / "tokenizer.json", TOKENIZER_SHA256)
        ),
    }
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    notice = NOTICE.format(model=hashes["model.onnx"], tokenizer=hashes["tokenizer.json"])
    licence = (Path(__file__).parents[1] / "LICENSE").read_bytes()
    files |= {"NOTICE": notice.encode(), "LICENSE": licence}
    options.target.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (options.target / name).write_bytes(data)
        print(f"{len(data):>10} {hashes.get(name, '')} {name}")


if __name__ == "__main__":
    main()
