"""Load and identify local models."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from exampp.errors import InputError
from exampp.graders.local.batching import is_out_of_memory
from exampp.installed import install_command
from exampp.records.graders import CONTENT_SETTING
from exampp.records.ids import file_hash

TASKS = {
    "seq2seq": "AutoModelForSeq2SeqLM",
    "causal": "AutoModelForCausalLM",
    "extractive": "AutoModelForQuestionAnswering",
}
"""Kinds of models, with the transformers class that loads each."""

AUTO = "auto"
DTYPES = ("float32", "bfloat16", "float16")
BFLOAT16_UNITS: Mapping[str, str] = {"amx_bf16": "", "avx512_bf16": "AMD"}
"""CPU features, as named by torch, with bfloat16 2.3 to 2.7 times as fast as float32.

Each has the prefixes of CPU names: AVX512-BF16 on Intel is half as fast as float32.
"""
T5_LIKE = ("t5", "mt5", "umt5", "longt5", "switch_transformers")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in evaluation mode, on its device, with its tokenizer."""

    task: str
    model: Any
    tokenizer: Any
    dtype: str
    device: str
    transformers: str


def how_to_install() -> str:
    """Return how to install a package that local models need."""
    return f"Install the packages for local models: {install_command('hf')}"


def require() -> tuple[ModuleType, ModuleType]:
    """Return torch and transformers; raise InputError if missing or not transformers 5."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise InputError(
            f"local models need the package {error.name}", hint=how_to_install()
        ) from None
    if not transformers.__version__.startswith("5."):
        raise InputError(
            f"transformers {transformers.__version__} is installed, but version 5 is required",
            hint=how_to_install(),
        )
    if not sys.stderr.isatty():
        # progress bars would fill a log
        bars: Any = transformers.utils.logging
        bars.disable_progress_bar()
    return torch, transformers


def load_model(
    model: str,
    *,
    task: str | None = None,
    revision: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> LoadedModel:
    """Load a model from a folder or from the Hugging Face hub.

    A model with missing weights (a base model without a head for its task) is an error, because
    transformers would fill them with noise.

    Args:
        model: Folder or hub name.
        task: A key of `TASKS`; by default inferred from the model's config.
        revision: Commit, tag or branch on the hub.
        device: By default the first available of `cuda`, `mps` and `cpu`.
        dtype: By default (or `auto`) bfloat16 on CUDA cards and CPUs with hardware support, else
            float32.

    Raises:
        InputError: torch or transformers is missing; the model is missing, incomplete, of an
            unknown kind or needs custom code; the device is not available; or the dtype does not
            suit the model.
    """
    torch, transformers = require()
    place = find_device(torch, device)
    folder = find_folder(model)
    source = str(folder) if folder else model
    # explicit, because transformers would ask on standard input
    options: dict[str, Any] = {"trust_remote_code": False}
    if not folder:
        options["revision"] = revision or "main"
    config = map_model_errors(
        model, lambda: transformers.AutoConfig.from_pretrained(source, **options)
    )
    kind = task or task_of(config)
    precision = default_dtype(torch, place) if dtype in (None, AUTO) else str(dtype)
    check_dtype(precision, config.model_type)
    tokenizer = map_model_errors(
        model, lambda: transformers.AutoTokenizer.from_pretrained(source, **options)
    )
    loader = getattr(transformers, TASKS[kind])
    options |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
    with _silenced(transformers):
        loaded, info = map_model_errors(
            model,
            lambda: loader.from_pretrained(source, dtype=getattr(torch, precision), **options),
        )
    if other_shape := sorted(name for name, *_ in info["mismatched_keys"]):
        raise InputError(
            f"the weights and the config of model '{model}' have different shapes: "
            f"{', '.join(other_shape[:3])}",
            hint="Use the config.json that was saved with these weights",
        )
    missing = sorted(info["missing_keys"])
    if missing:
        raise InputError(
            f"the model '{model}' has no weights for {', '.join(missing[:3])}",
            hint=f"It was not trained for the task '{kind}': fine-tune it, or use another task",
        )
    _fuse_activations(torch, transformers, loaded)
    on_device = map_model_errors(model, lambda: loaded.to(place).eval())
    if place.startswith("cuda"):
        # cuDNN plans attention for each new shape of a batch, which takes longer than it saves
        torch.backends.cuda.enable_cudnn_sdp(False)
    return LoadedModel(kind, on_device, tokenizer, precision, place, transformers.__version__)


def _fuse_activations(torch: Any, transformers: Any, model: Any) -> None:
    """Compute the activation of T5 (`gelu_new`) in one pass over memory in place of eight."""
    for layer in model.modules():
        if isinstance(getattr(layer, "act", None), transformers.activations.NewGELUActivation):
            layer.act = torch.nn.GELU(approximate="tanh")


@contextmanager
def _silenced(transformers: Any) -> Iterator[None]:
    """Silence the report of transformers on weights; this module reports what matters."""
    logging: Any = transformers.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def find_folder(model: str) -> Path | None:
    """Return the folder of a model; None if the name is one of the hub (`owner/name`).

    Raises:
        InputError: The name can only be a folder, and it is missing or has no model.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InputError(
                "the folder has no config.json",
                file=folder,
                hint="Use a folder written by save_pretrained of transformers",
            )
        _check_files(folder)
        return folder
    if folder.exists() or model.startswith((".", "/", "~")) or model.count("/") > 1 or not model:
        raise InputError(
            f"'{model}' is not a folder",
            hint="Use the folder of a model, or its name on the Hugging Face hub (owner/name)",
        )
    return None


def _check_files(folder: Path) -> None:
    """Reject a folder with a broken JSON file; transformers ignores some of them."""
    for file in sorted(folder.glob("*.json")):
        try:
            json.loads(file.read_bytes())
        except (ValueError, RecursionError, OSError):
            raise InputError(
                "this file of the model is not valid JSON",
                file=file,
                hint="Copy or download the model again",
            ) from None


def map_model_errors(model: str, action: Callable[[], T]) -> T:
    """Run `action`, and map every error of a model to InputError.

    Model files are untrusted: damaged or malicious ones can fail anywhere in the library.
    """
    try:
        return action()
    except InputError:
        raise
    except Exception as error:
        # transformers raises errors of any class for damaged files
        if "trust_remote_code" in str(error):
            raise InputError(
                f"the model '{model}' needs custom code, which exampp never runs",
                hint="Use a model with an architecture that transformers supports",
            ) from None
        reason = str(error).strip() or type(error).__name__
        hint = "Use the folder of a model, or its name on the Hugging Face hub (owner/name)"
        if is_out_of_memory(error):
            hint = (
                "Free memory on the device, or use --dtype bfloat16, another --device or a "
                "smaller model"
            )
        raise InputError(
            f"the model '{model}' could not be loaded: {reason.splitlines()[0]}", hint=hint
        ) from error


def task_of(config: Any) -> str:
    """Return the kind of a model by its config; raise InputError if it is not supported."""
    declared = config.architectures
    names = [str(name) for name in declared] if isinstance(declared, list | tuple) else []
    for name in names:
        if name.endswith("ForQuestionAnswering"):
            return "extractive"
        if name.endswith(("ForCausalLM", "LMHeadModel")) and not config.is_encoder_decoder:
            return "causal"
        if name.endswith(("ForConditionalGeneration", "LMHeadModel")) and config.is_encoder_decoder:
            return "seq2seq"
    raise InputError(
        f"cannot infer the task of the architecture {', '.join(names) or 'unknown'}",
        hint=f"Set its task: one of {', '.join(TASKS)}",
    )


def find_device(torch: Any, device: str | None) -> str:
    """Return the requested device, or the best available; raise InputError if unavailable."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device is None:
        return next(name for name, is_there in there.items() if is_there)
    kind, _, index = device.partition(":")
    if not there.get(kind) or (index and not index.isdigit()):
        known = ", ".join(name for name, is_there in there.items() if is_there)
        without = kind == "cuda" and torch.version.cuda is None
        raise InputError(
            f"the device '{device}' is not available"
            + (": the installed torch has no CUDA support" if without else ""),
            hint=f"Available devices: {known}",
        )
    cards = torch.cuda.device_count() if kind == "cuda" else 0
    if kind == "cuda" and index and int(index) >= cards:
        raise InputError(
            f"the device '{device}' is not available",
            hint=f"Available cards: {', '.join(f'cuda:{n}' for n in range(cards))}",
        )
    return device


def default_dtype(torch: Any, device: str) -> str:
    """Return bfloat16 on devices that compute it in hardware, else float32, which is exact."""
    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # emulated bfloat16 is slower than float32
        capabilities = getattr(torch.cpu, "get_capabilities", None)
        units: Mapping[str, Any] = capabilities() if capabilities and device == "cpu" else {}
        name = str(units.get("cpu_name", ""))
        fast = any(
            units.get(unit) and name.startswith(maker) for unit, maker in BFLOAT16_UNITS.items()
        )
    return "bfloat16" if fast else "float32"


def check_dtype(dtype: str, model_type: str) -> None:
    """Reject a dtype that is unknown or breaks the model."""
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype '{dtype}'", hint=f"Use one of {', '.join(DTYPES)}")
    if dtype == "float16" and model_type in T5_LIKE:
        raise InputError(
            "T5 models overflow in float16: feed-forward layers exceed 65504 and replies break",
            field="dtype",
            hint="Use bfloat16 or float32",
        )


_CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors", ".bin")
_NOT_CONTENT = ("training.json", "trainer_state.json", "README.md")


def folder_hash(folder: Path) -> str:
    """Return the SHA-256 (hex) of the names and contents of a model folder's files.

    Weights, tokenizer and configuration all count: fine-tuned models of one family may differ in
    nothing else, not even in file sizes.
    """
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in _CONTENT and file.name not in _NOT_CONTENT:
            whole.update(f"{file.name}\0{file_hash(file)}\n".encode())
    return whole.hexdigest()


def display_name(model: str) -> str:
    """Return the name of a model: its folder name, or its name on the hub.

    A folder in the hub's cache is named after a commit, so the model's name is used. The config's
    `_name_or_path` is ignored, because for a fine-tuned model it names the base model.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return model
    folder = folder.resolve()
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):
        return folder.parents[1].name.removeprefix("models--").replace("--", "/")
    return folder.name or str(folder)


def model_identity(model: str, revision: str | None, config: Any) -> Mapping[str, Any]:
    """Return what identifies a model: the content of its folder, regardless of path and name.

    A hub model is identified by its name and commit, or by the requested revision if the commit is
    unknown.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return {CONTENT_SETTING: folder_hash(folder)}
    commit = getattr(config, "_commit_hash", None)
    return {"model": model, "revision": commit or revision or "main"}
