"""Identify a local model: its settings in a grader, and its name."""

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

TASKS = {
    "seq2seq": "AutoModelForSeq2SeqLM",
    "causal": "AutoModelForCausalLM",
    "extractive": "AutoModelForQuestionAnswering",
}
"""The kinds of models, each with the class of transformers that loads it."""

AUTO = "auto"
DTYPES = ("float32", "bfloat16", "float16")
BFLOAT16_UNITS: Mapping[str, str] = {"amx_bf16": "", "avx512_bf16": "AMD"}
"""Parts of a CPU that multiply bfloat16 2.3 to 2.7 times as fast as float32, as torch names them.

With each, how the names of such CPUs begin: AVX512-BF16 is half as fast as float32 on Intel's.
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
    return f"Install what local models need: {install_command('hf')}"


def require() -> tuple[ModuleType, ModuleType]:
    """Torch and transformers; InputError if one is missing or transformers is not version 5."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise InputError(
            f"local models need the package {error.name}", hint=how_to_install()
        ) from None
    if not transformers.__version__.startswith("5."):
        raise InputError(
            f"transformers {transformers.__version__} is installed, version 5 is needed",
            hint=how_to_install(),
        )
    if not sys.stderr.isatty():
        # a progress bar that redraws itself fills a log
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

    `task` (a key of `TASKS`) follows from the model's config if it is not given; `device` is the
    first of `cuda`, `mps` and `cpu` that there is; `dtype` is bfloat16 on CUDA cards and CPUs that
    have units for it, else float32, where it is not given or `auto`. A model with missing weights
    (a base model without a head for its task) is an error: transformers would fill them with noise.

    Raises:
        InputError: torch or transformers is missing, the model is not there, incomplete or of no
            known kind, needs custom code, the device is not there, or the dtype does not suit the
            model.

    """
    torch, transformers = require()
    place = find_device(torch, device)
    folder = find_folder(model)
    source = str(folder) if folder else model
    # explicit, because transformers asks on standard input otherwise
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
    with _unsaid(transformers):
        loaded, info = map_model_errors(
            model,
            lambda: loader.from_pretrained(source, dtype=getattr(torch, precision), **options),
        )
    if other_shape := sorted(name for name, *_ in info["mismatched_keys"]):
        raise InputError(
            f"the model '{model}' has weights of other shapes than its config says: "
            f"{', '.join(other_shape[:3])}",
            hint="Take the config.json that was saved with these weights",
        )
    missing = sorted(info["missing_keys"])
    if missing:
        raise InputError(
            f"the model '{model}' has no weights for {', '.join(missing[:3])}",
            hint=f"It was not made for the task '{kind}': fine-tune it, or give another task",
        )
    on_device = map_model_errors(model, lambda: loaded.to(place).eval())
    version = transformers.__version__
    return LoadedModel(kind, on_device, tokenizer, precision, place, version)


@contextmanager
def _unsaid(transformers: Any) -> Iterator[None]:
    """Silence the report of how weights fit the model: this module reports what matters."""
    logging: Any = transformers.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def find_folder(model: str) -> Path | None:
    """Return the folder of a model; None if the name is one of the hub (`owner/name`).

    Raises InputError for what can only be a folder and is none, or one without a model.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InputError(
                "no model is in this folder: it has no config.json",
                file=folder,
                hint="Give a folder that transformers has saved a model to",
            )
        _check_files(folder)
        return folder
    if folder.exists() or model.startswith((".", "/", "~")) or model.count("/") > 1 or not model:
        raise InputError(
            f"'{model}' is not a folder",
            hint="Give the folder of a model, or its name on the Hugging Face hub (owner/name)",
        )
    return None


def _check_files(folder: Path) -> None:
    """Refuse a folder with a broken JSON file: transformers passes over some of them."""
    for file in sorted(folder.glob("*.json")):
        try:
            json.loads(file.read_bytes())
        except (ValueError, RecursionError, OSError):
            raise InputError(
                "the model could not be loaded: this file of it is no JSON",
                file=file,
                hint="Copy or download the model again",
            ) from None


def map_model_errors(model: str, action: Callable[[], T]) -> T:
    """Run `action`, and turn every error of a model into an InputError.

    A model is files of others: a damaged or a malicious one fails anywhere in the library.
    """
    try:
        return action()
    except InputError:
        raise
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise InputError(
                f"the model '{model}' needs custom code, which exampp never runs",
                hint="Take a model whose architecture transformers knows by itself",
            ) from None
        reason = str(error).strip() or type(error).__name__
        hint = "Give the folder of a model, or its name on the Hugging Face hub (owner/name)"
        if is_out_of_memory(error):
            hint = (
                "Free memory of the device, or take less: --dtype bfloat16, another --device, or "
                "a smaller model"
            )
        raise InputError(
            f"the model '{model}' could not be loaded: {reason.splitlines()[0]}", hint=hint
        ) from error


def task_of(config: Any) -> str:
    """Return the kind of a model by its config; InputError if it is not supported."""
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
        f"a model of the architecture {', '.join(names) or 'unknown'} is no grader by itself",
        hint=f"Give its task: one of {', '.join(TASKS)}",
    )


def find_device(torch: Any, device: str | None) -> str:
    """Return the device asked for, or the best there is; InputError if it is not here."""
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
            f"there is no device '{device}' here"
            + (": the installed torch is built without CUDA" if without else ""),
            hint=f"What can be used here: {known}",
        )
    cards = torch.cuda.device_count() if kind == "cuda" else 0
    if kind == "cuda" and index and int(index) >= cards:
        raise InputError(
            f"there is no device '{device}' here",
            hint=f"Cards are counted from 0: {', '.join(f'cuda:{n}' for n in range(cards))}",
        )
    return device


def default_dtype(torch: Any, device: str) -> str:
    """Return float32 for exactness; bfloat16 on cards and CPUs that compute it in hardware."""
    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # emulated, it is slower than float32
        capabilities = getattr(torch.cpu, "get_capabilities", None)
        units: Mapping[str, Any] = capabilities() if capabilities and device == "cpu" else {}
        name = str(units.get("cpu_name", ""))
        fast = any(
            units.get(unit) and name.startswith(maker) for unit, maker in BFLOAT16_UNITS.items()
        )
    return "bfloat16" if fast else "float32"


def check_dtype(dtype: str, model_type: str) -> None:
    """Refuse a dtype that is not known or that breaks the model."""
    if dtype not in DTYPES:
        raise InputError(f"there is no dtype '{dtype}'", hint=f"Give one of {', '.join(DTYPES)}")
    if dtype == "float16" and model_type in T5_LIKE:
        raise InputError(
            "T5 models overflow in float16: feed-forward layers exceed 65504, and replies break",
            field="dtype",
            hint="Use bfloat16 or float32",
        )


_CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors", ".bin")
_NOT_CONTENT = ("training.json", "trainer_state.json", "README.md")


def folder_hash(folder: Path) -> str:
    """Return the SHA-256 (hexadecimal) of the names and contents of a model folder's files.

    All of the weights, the tokenizer and the configuration count: two fine-tuned models of one
    family differ in nothing else, not even in the sizes of their files.
    """
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.suffix in _CONTENT and file.name not in _NOT_CONTENT:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            whole.update(f"{file.name}\0{digest}\n".encode())
    return whole.hexdigest()


def display_name(model: str) -> str:
    """Return the name of a model: its folder's own name, or its name on the hub.

    A folder in the cache of the hub has the name of a commit; it is called as the model is. What
    its config says (`_name_or_path`) is not asked: of a fine-tuned model that is its base.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return model
    folder = folder.resolve()
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):
        return folder.parents[1].name.removeprefix("models--").replace("--", "/")
    return folder.name or str(folder)


def model_identity(model: str, revision: str | None, config: Any) -> Mapping[str, Any]:
    """Return what pins a model: the content of its folder, whatever its path and name.

    A model of the Hugging Face hub is known by its name and its commit, or by the revision asked
    for where the commit is not known.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return {CONTENT_SETTING: folder_hash(folder)}
    commit = getattr(config, "_commit_hash", None)
    return {"model": model, "revision": commit or revision or "main"}
