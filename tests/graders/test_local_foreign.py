"""Folders of models that others made: nothing in them runs, and what is damaged is a sentence."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tiny_models import LABELS

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Request
from exampp.graders.local import load_local_grader
from exampp.graders.local.checkpoint import load_model

pytest_plugins = ("support.tiny_models",)

Copy = Callable[[Path], Path]


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    def copy(model: Path) -> Path:
        return Path(shutil.copytree(model, tmp_path / "model"))

    return copy


def change(file: Path, **values: Any) -> None:
    """Set values in a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize("auto", ["AutoConfig", "AutoTokenizer", "AutoModelForSeq2SeqLM"])
def test_code_of_a_model_never_runs(
    auto: str, t5: Path, copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ran = copied(t5), tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    place = "own.Own" if auto != "AutoTokenizer" else ["own.Own", None]
    name = "tokenizer_config.json" if auto == "AutoTokenizer" else "config.json"
    change(folder / name, auto_map={auto: place})
    if auto == "AutoConfig":
        change(folder / name, model_type="of-their-own")
    # transformers would ask, and take this for consent
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    if auto == "AutoConfig":
        with pytest.raises(InputError, match="needs custom code, which exampp never runs"):
            load_model(str(folder), device="cpu")
    else:
        load_model(str(folder), device="cpu")
    assert not ran.exists()


def test_pickled_weights_run_nothing(t5: Path, copied: Copy, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "ran"),)

    folder = copied(t5)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Evil()}))
    with pytest.raises(InputError, match="could not be loaded"):
        load_local_grader(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "[" * 3000),
        ("config.json", ""),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", "[" * 3000),
        ("tokenizer_config.json", "null"),
        ("generation_config.json", '{"eos_token_id": "x'),
        ("model.safetensors", ""),
    ],
)
def test_damaged_files_are_a_sentence(file: str, content: str, t5: Path, copied: Copy) -> None:
    folder = copied(t5)
    (folder / file).write_text(content)
    with pytest.raises(InputError) as caught:
        load_local_grader(str(folder), labels=LABELS, device="cpu")
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("template", ["{% for m in messages %}", "{{ 1 / 0 }}", "{{ nothing.at }}"])
def test_broken_chat_templates_are_a_sentence(template: str, llama: Path, copied: Copy) -> None:
    folder = copied(llama)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(InputError, match="could not be loaded"):
        load_local_grader(str(folder), labels=LABELS, device="cpu")


def test_a_tokenizer_that_does_not_fit_its_model_is_a_sentence(bert: Path, copied: Copy) -> None:
    folder = copied(bert)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["river"] = 10**6
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises((InputError, Unfinished), match=r"damaged|could not be loaded"):
        list(
            load_local_grader(str(folder), device="cpu").answer(
                [Request(1, "river", "the river is long")]
            )
        )
