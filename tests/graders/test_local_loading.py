"""Loading models: what is chosen, recorded and refused, and folders that others made."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import exams
from support.tiny_models import LABELS

from exampp.errors import InputError, Unfinished
from exampp.graders.base import Request
from exampp.graders.local import checkpoint, load_local_grader
from exampp.graders.local.checkpoint import default_dtype, display_name, find_device, load_model
from exampp.installed import install_command

pytest_plugins = ("support.tiny_models",)


def test_settings_of_a_scoring_grader(transformers: Any, t5: Path) -> None:
    grader = load_local_grader(str(t5), labels=LABELS, device="cpu", batch_tokens=99, look_ahead=9)
    settings = dict(grader.settings)
    assert len(settings.pop("content")) == 64
    assert settings == {
        "name": "hf",
        "task": "seq2seq",
        "dtype": "float32",
        "format": "text",
        "limit": 512,
        "beams": 5,
        "decode": "score",
        "labels": list(LABELS),
    }
    assert grader.settings == load_local_grader(str(t5), labels=LABELS, device="cpu").settings
    assert grader.provenance == {
        "device": "cpu",
        "batch_tokens": 99,
        "transformers": transformers.__version__,
    }


def test_settings_of_other_graders(t5: Path, llama: Path, bert: Path) -> None:
    generating = load_local_grader(
        str(t5), decode="generate", device="cpu", max_new_tokens=7, beams=3
    ).settings
    assert generating["decode"] == "generate"
    assert (generating["max_new_tokens"], generating["beams"]) == (7, 3)
    assert "labels" not in generating
    chat = load_local_grader(
        str(llama), device="cpu", dtype="bfloat16", chat_template_kwargs={"tone": "calm"}
    )
    assert chat.settings["task"] == "causal"
    assert chat.settings["dtype"] == "bfloat16"
    assert chat.settings["template"] == {"tone": "calm"}
    assert chat.settings["limit"] == 1024 - 64
    span = load_local_grader(str(bert), device="cpu").settings
    assert (span["task"], span["decode"], span["window"]) == ("extractive", "span", 64)
    json.dumps([dict(generating), dict(chat.settings), dict(span)], allow_nan=False)


def test_text_without_a_number_is_an_answer_of_the_papers_models(
    t5: Path, llama: Path, bert: Path
) -> None:
    labels = ("0", "1")
    assert load_local_grader(str(t5), decode="generate").unnumbered == "answer"
    assert load_local_grader(str(bert)).unnumbered == "answer"
    assert load_local_grader(str(llama), decode="generate").unnumbered == "unparsed"
    assert load_local_grader(str(llama), labels=labels, decode="score").unnumbered is None
    assert load_local_grader(str(t5), labels=labels, decode="score").unnumbered is None


def test_a_folder_is_known_by_its_content(t5: Path, t5_taught: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / t5.name
    shutil.copytree(t5, copy)
    first = load_local_grader(str(t5), device="cpu").settings
    assert load_local_grader(str(copy), device="cpu").settings == first
    assert load_local_grader(str(t5_taught), device="cpu").settings["content"] != first["content"]
    (copy / "training.json").write_text("{}")
    assert load_local_grader(str(copy), device="cpu").settings == first


def test_auto_scores_labels_that_are_single_tokens_and_generates_the_others(t5: Path) -> None:
    verdict = load_local_grader(str(t5), labels=("Yes", "No"), device="cpu")
    assert verdict.settings["decode"] == "score"
    words = load_local_grader(str(t5), labels=("good", "bad"), device="cpu")
    assert words.settings["decode"] == "generate"
    assert words.note == (
        "Replies are generated, not scored: the label 'bad' is not a single token of this model"
    )
    assert load_local_grader(str(t5), device="cpu").settings["decode"] == "generate"
    with pytest.raises(InputError, match="the label 'bad' is not a single token") as error:
        load_local_grader(str(t5), labels=("good", "bad"), decode="score", device="cpu")
    assert "decode='generate'" in error.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "T5 models overflow in float16"),
        ({"dtype": "int3"}, "unknown dtype 'int3'"),
        ({"device": "tpu"}, "the device 'tpu' is not available"),
        ({"device": "cpu:x"}, "the device 'cpu:x' is not available"),
        ({"decode": "guess"}, "decode is 'guess'"),
        ({"task": "sorting"}, "unknown task 'sorting'"),
        ({"beams": 0}, "beams is 0"),
        ({"batch_tokens": -1}, "batch-tokens is -1"),
        ({"decode": "score"}, "0 different labels"),
        ({"task": "extractive"}, "has no weights for qa_outputs"),
    ],
)
def test_options_that_cannot_be(t5: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_local_grader(str(t5), **{"device": "cpu", **options})


def test_a_card_that_torch_cannot_use(
    torch: Any, t5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for built, said in ((None, ": the installed torch has no CUDA support"), ("13.0", "")):
        monkeypatch.setattr(torch.version, "cuda", built)
        with pytest.raises(InputError, match=f"device 'cuda:0' is not available{said}. Available"):
            load_local_grader(str(t5), device="cuda:0")


def test_a_model_that_does_not_fit_on_its_device(
    torch: Any, transformers: Any, t5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nGPU 0 has")

    monkeypatch.setattr(transformers.T5ForConditionalGeneration, "to", full)
    with pytest.raises(InputError, match="Tried to allocate 2 GiB") as caught:
        load_local_grader(str(t5), device="cpu")
    assert caught.value.what.endswith("2 GiB.")
    assert "--dtype bfloat16" in caught.value.hint


def test_bars_are_drawn_on_a_terminal_alone(
    transformers: Any,
    t5: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bars = transformers.utils.logging
    for terminal in (True, False):
        bars.enable_progress_bar()
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        load_local_grader(str(t5), device="cpu")
        assert ("Loading weights" in capsys.readouterr().err) == terminal


def test_precision_is_part_of_a_grader_and_the_device_is_not(t5: Path, llama: Path) -> None:
    plain = load_local_grader(str(t5), device="cpu").settings
    assert load_local_grader(str(t5), device="cpu", dtype="auto").settings == plain
    assert load_local_grader(str(t5), device="cpu", dtype="float32").settings == plain
    assert load_local_grader(str(t5), device="cpu:0", dtype="float32").settings == plain
    rounded = load_local_grader(str(t5), device="cpu", dtype="bfloat16").settings
    assert {**plain, "dtype": "bfloat16"} == rounded
    assert (
        load_local_grader(str(llama), device="cpu", dtype="float16").settings["dtype"] == "float16"
    )


def test_extractive_models_decode_in_their_own_way(bert: Path) -> None:
    with pytest.raises(InputError, match="cannot score labels or generate"):
        load_local_grader(str(bert), decode="score", labels=LABELS, device="cpu")


def test_causal_model_needs_room_for_the_reply(llama: Path) -> None:
    with pytest.raises(InputError, match="leave no room"):
        load_local_grader(str(llama), max_new_tokens=2000, device="cpu")


def test_weights_of_other_shapes_are_told(t5: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(t5, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"d_ff": config["d_ff"] * 2}))
    with pytest.raises(InputError, match="have different shapes: ") as found:
        load_local_grader(str(other), device="cpu")
    assert "DenseReluDense" in str(found.value)


def test_wrong_folders(t5: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        load_local_grader(str(tmp_path / "none"), device="cpu")
    with pytest.raises(InputError, match=r"has no config\.json"):
        load_local_grader(str(tmp_path), device="cpu")
    broken = tmp_path / "broken"
    shutil.copytree(t5, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:999])
    with pytest.raises(InputError, match="could not be loaded"):
        load_local_grader(str(broken), device="cpu")
    (broken / "config.json").write_text('{"model_type": "t5", "architectures": ["T5EncoderModel"]}')
    with pytest.raises(InputError, match="task of the architecture T5EncoderModel"):
        load_local_grader(str(broken), device="cpu")
    (broken / "config.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_local_grader(str(broken), device="cpu")


def test_unknown_model_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="'nobody/no-model' could not be loaded") as error:
        load_local_grader("nobody/no-model", device="cpu")
    assert "Hugging Face hub" in error.value.hint


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_missing_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"need the package {package}") as error:
        load_local_grader("some/model")
    assert install_command("hf") in error.value.hint


def test_old_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.__version__", "4.57.6")
    with pytest.raises(InputError, match="version 5 is required"):
        load_local_grader("some/model")


def machine(*, cuda: bool, mps: bool, bf16: bool = True) -> Any:
    """Replace torch's answers on devices by those of a machine with the given devices."""
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_available=lambda: cuda,
            device_count=lambda: 2,
            is_bf16_supported=lambda **_: bf16,
        ),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
        cpu=object(),
    )


def test_default_device_and_dtype() -> None:
    both = machine(cuda=True, mps=True)
    assert find_device(both, None) == "cuda"
    assert find_device(both, "cuda:1") == "cuda:1"
    with pytest.raises(InputError, match="the device 'cuda:2' is not available") as caught:
        find_device(both, "cuda:2")
    assert "cuda:0, cuda:1" in caught.value.hint
    assert find_device(machine(cuda=False, mps=True), None) == "mps"
    assert find_device(machine(cuda=False, mps=False), None) == "cpu"
    assert default_dtype(both, "cuda:1") == "bfloat16"
    assert default_dtype(machine(cuda=True, mps=False, bf16=False), "cuda") == "float32"
    assert default_dtype(both, "cpu") == "float32"


def test_the_least_mass_is_part_of_the_grader_where_it_is_another(t5: Path) -> None:
    usual, same, other = (
        load_local_grader(str(t5), labels=LABELS, least_mass=least).settings
        for least in (None, 0.5, 0.1)
    )
    assert usual == same
    assert other == {**usual, "least_mass": 0.1}
    with pytest.raises(InputError, match="least-mass has no effect"):
        load_local_grader(str(t5), labels=LABELS, decode="generate", least_mass=0.1)


AS_SHIPPED = checkpoint.BFLOAT16_UNITS


@pytest.mark.parametrize(
    ("units", "dtype"),
    [
        ({"amx_bf16": True, "avx512_bf16": False}, "bfloat16"),
        ({"avx512_bf16": True, "cpu_name": "AMD EPYC 9R14"}, "bfloat16"),
        ({"avx512_bf16": True, "amx_bf16": True, "cpu_name": "Intel Xeon"}, "bfloat16"),
        # slower than float32
        ({"avx512_bf16": True, "amx_bf16": False, "cpu_name": "Intel Xeon"}, "float32"),
        ({"amx_int8": True, "avx512_vnni": True, "avx512_bf16": False}, "float32"),
        (None, "float32"),
    ],
)
def test_a_cpu_with_units_for_bfloat16_uses_them_and_says_so(
    units: dict[str, object] | None,
    dtype: str,
    torch: Any,
    t5: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint, "BFLOAT16_UNITS", AS_SHIPPED)
    if units is None:  # as in versions of torch that do not tell
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units, raising=False)
    assert default_dtype(torch, "mps") == "float32"
    grader = load_local_grader(str(t5), labels=LABELS, device="cpu")
    assert grader.settings["dtype"] == dtype
    assert ("with --dtype float32" in grader.note) == (dtype == "bfloat16")
    named = load_local_grader(str(t5), labels=LABELS, device="cpu", dtype=dtype)
    assert named.note == ""
    assert named.settings == grader.settings


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


OPTIONS: Mapping[str, Any] = {"prompt": "question-self-rating", "device": "cpu"}


@pytest.mark.usefixtures("loaded_once")
def test_every_name_of_a_folder_is_one_grader(
    t5_taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(t5_taught, tmp_path / "t5")
    shutil.copytree(t5_taught, tmp_path / "a copy")
    (tmp_path / "linked").symlink_to(tmp_path / "t5")
    monkeypatch.chdir(tmp_path)
    with exams.make(tmp_path) as collection:
        assert collection.grade("hf", model="t5", **OPTIONS).asked == 8
        for name in (
            "./t5",
            str(tmp_path / "t5"),
            "a copy",
            "linked",
            "../" + tmp_path.name + "/t5",
        ):
            run = collection.grading("hf", model=name, **OPTIONS)
            assert list(run.pending()) == [], name
            assert run.grading.identity == collection.graders[0]
        own = load_local_grader("t5", labels=("0", "1", "2", "3", "4", "5"), device="cpu")
        assert list(collection.grading(own).pending()) == []
        assert [one.name for one in collection.graders] == ["t5:question-self-rating"]
        for typed in ("t5", "./t5", str(tmp_path / "t5") + "/", "./t5:question-self-rating"):
            assert collection.grades(typed).gradebook.grader == collection.graders[0]
        collection.export(tmp_path / "out.jsonl", "workbench")
    assert str(tmp_path) not in (tmp_path / "out.jsonl").read_text()


def test_what_a_model_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = tmp_path / "models--google--flan-t5-large" / "snapshots" / "0613663d0d48"
    commit.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert display_name(str(commit)) == "google/flan-t5-large"
    assert display_name(str(tmp_path / "mine") + "/") == "mine"
    assert display_name(".") == "mine"
    assert display_name("google/flan-t5-large") == "google/flan-t5-large"
