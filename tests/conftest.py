"""Fixtures that several test folders share."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import functools
import gc
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from support import exams
from support.commands import Commands

import exampp
from exampp.cli.collection import demo
from exampp.cli.main import GARBAGE
from exampp.store import connection

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from support.live import Client

IN_MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes; the folders of all tests that run take a tenth of it."""

# a slow machine is no fault, and what CI says must not depend on the draw; campaigns draw more
settings.register_profile("here", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# four workers on two cores, as some wait: one thread each; read when the libraries are loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")
# graded files are cached for one test run: the readers may change before the next
if "EXAMPP_CACHE" not in os.environ:
    os.environ["EXAMPP_CACHE"] = tempfile.mkdtemp(prefix="exampp-cache-")
    atexit.register(shutil.rmtree, os.environ["EXAMPP_CACHE"], ignore_errors=True)
# autojudge-base is not imported without a list of stopwords, which it would download
os.environ.setdefault("NLTK_DATA", str(Path(__file__).parent / "nltk_data"))
# each process would compile the whole source each time, and each worker the tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# every opening of a collection makes two files beside it, which is slow on a disk
if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK | os.X_OK):
    found = os.statvfs(IN_MEMORY)
    if found.f_bavail * found.f_frsize > ROOM and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
# a shell has its jobs in the background ignore Ctrl-C, and Python then leaves it so
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
HANGS = 300
"""Seconds after which a test has hung: all stacks are printed, and its process ends.

Everything takes its time on a busy machine: these are seconds of a core that no more than one
process wants.
"""
AS_SHIPPED = connection.SYNCHRONOUS
connection.SYNCHRONOUS = "OFF"  # no test cuts the power, and waiting for the disk is slow
STDERR = os.dup(sys.__stderr__.fileno()) if sys.__stderr__ else 2


def pytest_collection() -> None:
    """Freeze imported objects: looking through them at every garbage collection is slow.

    Collections are as rare as in a process of a command.
    """
    gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-docs", action="store_true", help="write the real outputs into the documentation"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of local models come first: of all workers, one alone imports torch for them.

    Whoever has nothing left to do takes over the last tests of another.
    """

    def elsewhere(item: pytest.Item) -> bool:
        module: Any = item.getparent(pytest.Module)
        return "tiny_models" not in getattr(module.obj, "pytest_plugins", ())

    items.sort(key=elsewhere)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    gc.set_threshold(GARBAGE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """A test that hangs, in a fixture too, fails instead."""
    wanted = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    faulthandler.dump_traceback_later(HANGS * wanted, exit=True, file=STDERR)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """A worker sends each report as one string: what goes through value by value is slow."""
    report = yield
    return {"pickled": pickle.dumps(report)}


@pytest.hookimpl(wrapper=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, object, object]:
    data.update(pickle.loads(data.pop("pickled")))
    return (yield)


@pytest.fixture(scope="session")
def of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "built"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _encoded_once(of_all_workers: Path) -> Iterator[None]:
    """The draft grader's model encodes a text once for all workers; its own tests undo this."""
    from exampp.graders import draft

    load = draft.load_encoder

    @functools.cache
    def load_once(folder: Path = draft.MODEL_FOLDER) -> Callable[[str], draft.Encoded]:
        encode = load(folder)

        @functools.lru_cache(1000)
        def encoded(text: str) -> draft.Encoded:
            name = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
            kept = of_all_workers / f"{name}.encoded"
            if not kept.exists():
                own = kept.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
                own.write_bytes(pickle.dumps(encode(text)))
                own.replace(kept)
            found: draft.Encoded = pickle.loads(kept.read_bytes())
            return found

        return encoded

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft, "load_encoder", load_once)
        yield


@pytest.fixture
def encoded_by_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The draft grader compares words instead of what its model makes of them.

    For tests that ask whether commands run, not what grades they give.
    """
    from exampp.graders import draft
    from exampp.items import duplicates

    @functools.cache
    def vector(word: str) -> draft.Vectors:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4])
        drawn = np.random.default_rng(seed).standard_normal(32).astype(np.float32)
        return drawn / np.linalg.norm(drawn)

    def encode(text: str) -> draft.Encoded:
        words = re.findall(r"\w+", text.lower())
        kept = words[: draft.MAX_TOKENS - 2]
        return draft.Encoded(np.array([vector(word) for word in kept]), len(kept) < len(words))

    monkeypatch.setattr(draft, "load_encoder", lambda: encode)
    duplicates.vector_of.cache_clear()
    yield
    duplicates.vector_of.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def _drawn_once() -> Iterator[None]:
    """The library of plots draws a figure once in a process: half of the time of a report."""
    from exampp.results.plots import figure

    converter = figure._converter

    @functools.cache
    def draw(spec: str, **options: str) -> str:
        return str(converter().vegalite_to_svg(spec, **options))

    def draws_once() -> Any:
        found = converter()
        return SimpleNamespace(
            vegalite_to_svg=lambda spec, **options: draw(json.dumps(spec), **options),
            vegalite_to_png=found.vegalite_to_png,
            svg_to_pdf=found.svg_to_pdf,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "_converter", draws_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nobody_waits_for_the_disk() -> Iterator[None]:
    """No test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _exact_on_any_cpu() -> Iterator[None]:
    """Without a dtype, models compute in float32 on CPUs with units for bfloat16, too."""
    from exampp.graders.local import checkpoint

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "BFLOAT16_UNITS", {})
        yield


@pytest.fixture
def waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collections are written as they are for people."""
    monkeypatch.setattr(connection, "SYNCHRONOUS", AS_SHIPPED)


Build = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def built(of_all_workers: Path) -> Build:
    """Makes the folder NAME once for all workers, and says where it is; only for looking at."""
    base = of_all_workers

    def build(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return build


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project; the test is skipped where there is none."""
    folders = (folder.parent / "shared" / "data" for folder in Path(__file__).resolve().parents)
    here = next((folder for folder in folders if (folder / "dl19").is_dir()), None)
    if here is None:
        pytest.skip("no real data beside the project (../shared/data)")
    return here


@pytest.fixture(scope="session")
def dl19_exam(shared_data: Path, built: Build) -> Path:
    """The TREC DL 2019 exam as a collection; only for looking at."""

    def make(folder: Path) -> None:
        with exampp.Collection.create(folder / "dl19.exam") as collection:
            names = ("queries.json", "questions.jsonl.gz", "graded.jsonl.gz")
            collection.import_files(*(shared_data / "dl19" / name for name in names))

    return built("dl19", make) / "dl19.exam"


@pytest.fixture(scope="session")
def tour(built: Build) -> Path:
    """The folder that `exampp demo --files tour` writes; only for looking at and copying."""

    def make(folder: Path) -> None:
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            demo(files=Path("tour"))

    return built("demo", make) / "tour"


@pytest.fixture(scope="session")
def demo_exam(tour: Path) -> Path:
    """The bundled example as the draft grader grades it; only for looking at and copying."""
    return tour / "demo.exam"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium; the test is skipped where there is none.

    Its event loop would be in the way of other modules. Without a window to draw it takes two
    thirds of the time, and a sixth less where no page lives long enough for the compilers that
    optimise its scripts.
    """
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        pytest.skip("there is no chromium on this machine")
    api.expect.set_options(timeout=60_000)
    with api.sync_playwright() as started:
        flags = ("--no-sandbox", "--js-flags=--no-opt --no-maglev")
        opened = started.chromium.launch(executable_path=executable, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[exampp.Collection]:
    """The small exam of `support.exams`, open."""
    with exams.make(tmp_path) as made:
        yield made


@pytest.fixture
def exampp_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The command line, run in this process."""
    return Commands(capsys, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the small exam, graded."""
    from support import live

    return live.graded(tmp_path)


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    """A signed-in client of a server of the exam in `path`."""
    from support import live

    with live.visiting(path) as entered:
        yield entered


@pytest.fixture
def empty_exam(tmp_path: Path) -> Iterator[exampp.Collection]:
    """Return a collection that holds nothing."""
    with exampp.create(tmp_path / "my.exam") as made:
        yield made


@pytest.fixture
def small_exam(tmp_path: Path) -> Iterator[exampp.Collection]:
    """Return a collection of two queries, their bank, passages, runs and judgments."""
    with exams.make(tmp_path) as made:
        yield made
