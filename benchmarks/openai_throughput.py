"""CPU of a request to an OpenAI-compatible server: exampp beside other clients.

    python benchmarks/openai_throughput.py [--requests 5000] [--in-flight 64 256 1024]
        [--delay 0.05] [--others PYTHON] [--source FOLDER/src] [--only NAME ...]

All clients send the same requests to the same server, a process on loopback that answers each
after `--delay` seconds with the same small body. Each runs in its own process. `sockets` writes
bytes on connections and reads lengths, the floor for Python; `aiohttp` is the loop that one would
write by hand; `exampp engine` is the grader alone, and `exampp grade` the whole command, with its
start, its plan and its commits, on an exam with as many cells. `--others` names the interpreter of
an environment with openai, litellm and inspect_ai, which are measured if they are installed there.
`--source` adds the command of another checkout. Printed are CPU microseconds a request, requests
per second, and peak memory.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).resolve()
PASSAGES, ITEMS = 50, 10
PASSAGE = "A reef is a ridge of rock, coral or similar material beneath the surface. " * 6
MESSAGE = {"role": "assistant", "content": "4"}
REPLY = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 130, "completion_tokens": 1, "total_tokens": 131},
}


def user_texts(number: int) -> Iterator[str]:
    for key in range(number):
        yield f"Rate from 0 to 5.\nQuestion: What is a reef, part {key}?\nPassage: {PASSAGE}"


def messages(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


# ---- the server ----------------------------------------------------------------------------------


def http(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class _Connection(asyncio.Protocol):
    """Answers every POST late, and knows nothing else."""

    delay = 0.0
    answer, unknown = http("200 OK", json.dumps(REPLY).encode()), http("404 Not Found", b"{}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.received = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            size = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            whole = end + 4 + int(size or 0)
            if len(self.received) < whole:
                return
            self.received = self.received[whole:]
            if head.startswith(b"post"):
                asyncio.get_running_loop().call_later(self.delay, self.write, self.answer)
            else:
                self.write(self.unknown)

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)


async def serve(delay: float) -> None:
    _Connection.delay = delay
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def started_server(delay: float) -> Iterator[str]:
    command = [sys.executable, str(HERE), "--serve", str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{next(iter(process.stdout or ())).strip()}/v1"
        finally:
            process.kill()


# ---- the clients ---------------------------------------------------------------------------------


async def in_turn(send: Callable[[str], Awaitable[str]], number: int, in_flight: int) -> int:
    """Send all texts, so many at once; return how many replies are right."""
    texts = user_texts(number)

    async def work() -> int:
        return sum([await send(text) == "4" for text in texts])

    return sum(await asyncio.gather(*[work() for _ in range(in_flight)]))


async def sockets(url: str, number: int, in_flight: int) -> int:
    host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
    texts = user_texts(number)

    async def work() -> int:
        right = 0
        reader, writer = await asyncio.open_connection(host, int(port))
        for text in texts:
            body = json.dumps({"model": "tiny", "messages": messages(text)}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}"
            writer.write(head.encode() + b"\r\n\r\n" + body)
            lengths = await reader.readuntil(b"\r\n\r\n")
            size = lengths.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            reply = json.loads(await reader.readexactly(int(size)))
            right += reply["choices"][0]["message"]["content"] == "4"
        writer.close()
        return right

    return sum(await asyncio.gather(*[work() for _ in range(in_flight)]))


async def bare_aiohttp(url: str, number: int, in_flight: int) -> int:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send(text: str) -> str:
            body = {"model": "tiny", "messages": messages(text), "temperature": 0, "max_tokens": 8}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                return str((await response.json())["choices"][0]["message"]["content"])

        return await in_turn(send, number, in_flight)


async def openai_sdk(url: str, number: int, in_flight: int) -> int:
    client = import_module("openai").AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def send(text: str) -> str:
        reply = await client.chat.completions.create(
            model="tiny", messages=messages(text), temperature=0, max_tokens=8
        )
        return str(reply.choices[0].message.content)

    return await in_turn(send, number, in_flight)


async def litellm(url: str, number: int, in_flight: int) -> int:
    complete = import_module("litellm").acompletion

    async def send(text: str) -> str:
        reply = await complete(
            model="openai/tiny",
            messages=messages(text),
            temperature=0,
            max_tokens=8,
            api_base=url,
            api_key="none",
        )
        return str(reply.choices[0].message.content)

    return await in_turn(send, number, in_flight)


async def inspect_ai(url: str, number: int, in_flight: int) -> int:
    module = import_module("inspect_ai.model")
    config = module.GenerateConfig(temperature=0, max_tokens=8, max_connections=in_flight)
    model = module.get_model(
        "openai/tiny", base_url=url, api_key="none", config=config, responses_api=False
    )

    async def send(text: str) -> str:
        return str((await model.generate(text)).completion)

    return await in_turn(send, number, in_flight)


async def engine(url: str, number: int, in_flight: int) -> int:
    from exampp.cli.main import GARBAGE
    from exampp.graders.base import Request
    from exampp.graders.openai import OpenAICompatibleGrader
    from exampp.graders.options import OpenAIOptions

    # as in the command; with Python's default, collections cost 60 us a request at 64 in flight
    # and 150 at 1,024
    gc.set_threshold(GARBAGE)
    options = OpenAIOptions(
        model="tiny", base_url=url, decode="text", max_new_tokens=8, concurrency=in_flight
    )
    requests = (
        Request(key, "", PASSAGE, text) for key, text in enumerate(user_texts(number), start=1)
    )
    answers = OpenAICompatibleGrader(options).answer(requests)
    return sum(reply.text == "4" for _, reply in answers)


CLIENTS: dict[str, Callable[[str, int, int], Any]] = {
    "sockets": sockets,
    "aiohttp": bare_aiohttp,
    "openai": openai_sdk,
    "litellm": litellm,
    "inspect_ai": inspect_ai,
    "exampp engine": engine,
}
"""Clients that are measured without their start; the last is the grader without the command."""
OTHERS = ("openai", "litellm", "inspect_ai")


def measure_here(name: str, url: str, number: int, in_flight: int) -> None:
    """Print CPU and wall seconds of one client, without its imports."""
    client = CLIENTS[name]
    asyncio.run(client(url, 8, 4))  # imports
    wall, cpu = time.perf_counter(), time.process_time()
    if asyncio.run(client(url, number, in_flight)) != number:
        raise SystemExit("some replies are missing")
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))


# ---- the measurement -----------------------------------------------------------------------------


class Failed(Exception):
    """A command that failed; the text is the command."""


def run(command: list[str], source: str | None = None) -> tuple[float, float, float, str]:
    """Run a command; return CPU seconds, wall seconds, peak memory in MB, and its output."""
    # litellm would fetch prices
    environment = {**os.environ, "OPENAI_API_KEY": "none", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment |= {"PYTHONPATH": source} if source else {}
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        output = "".join(process.stdout or ())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"exit {process.returncode}: {' '.join(command)}")
    wall = time.perf_counter() - started
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, output


def write_exam(folder: Path, number: int, source: str) -> Path:
    """Write an exam with so many cells by the command of a checkout."""
    from million_cells import write_inputs

    files = write_inputs(folder, number // (PASSAGES * ITEMS), PASSAGES, ITEMS)
    exam = Path(tempfile.mkdtemp(dir=folder)) / "new.exam"
    run([sys.executable, "-m", "exampp", "import", *map(str, [exam, *files])], source)
    return exam


def measure_command(
    url: str, exam: Path, number: int, in_flight: int, source: str | None
) -> tuple[float, float, float]:
    """Grade a copy of an exam by the command; CPU and wall include its start."""
    copy = exam.with_name("copy.exam")
    shutil.copy(exam, copy)
    command = [sys.executable, "-m", "exampp", "grade", str(copy), "--grader", "openai"]
    command += ["--model", "tiny", "--decode", "text", "--max-new-tokens", "8", "--base-url", url]
    command += ["--depth", str(PASSAGES), "--concurrency", str(in_flight)]
    cpu, wall, memory, output = run(command, source)
    copy.unlink()
    if f"{number} of {number} cells done" not in output:
        raise SystemExit(output)
    return cpu, wall, memory


def interpreters(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the clients that can be measured, each with its interpreter."""
    for name in CLIENTS:
        if options.only and name not in options.only:
            continue
        if name not in OTHERS:
            yield name, sys.executable
        elif options.others:
            check = [options.others, "-c", f"import {name}"]
            if subprocess.run(check, capture_output=True, check=False).returncode:
                print(f"{name} is not installed there", file=sys.stderr)
            else:
                yield name, options.others


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--others", help="interpreter with openai, litellm and inspect_ai")
    parser.add_argument("--source", help="src folder of another checkout")
    parser.add_argument("--only", nargs="+", choices=[*CLIENTS, "exampp grade"])
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    number = -(-options.requests // (PASSAGES * ITEMS)) * PASSAGES * ITEMS
    if options.serve is not None:
        return asyncio.run(serve(options.serve))
    if options.client:
        name, url = options.client
        return measure_here(name, url, number, options.in_flight[0])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{'client':24}{'in flight':>9}{'us/request':>12}{'requests/s':>12}{'MB':>7}")

    def show(name: str, in_flight: int, cpu: float, wall: float, memory: float) -> None:
        shown = f"{cpu / number * 1e6:12.0f}{number / wall:12.0f}{memory:7.0f}"
        print(f"{name:24}{in_flight:>9}{shown}", flush=True)

    with tempfile.TemporaryDirectory() as folder, started_server(options.delay) as url:
        for name, python in interpreters(options):
            for in_flight in options.in_flight:
                command = [python, str(HERE), "--client", name, url, "--requests", str(number)]
                try:
                    *_, memory, output = run([*command, "--in-flight", str(in_flight)])
                except Failed as failed:
                    print(f"{name:24}{in_flight:>9}  failed: {failed}")
                    continue
                cpu, wall = json.loads(output.splitlines()[-1])
                show(name, in_flight, cpu, wall, memory)
        if options.only and "exampp grade" not in options.only:
            return None
        for source in filter(None, (str(HERE.parents[1] / "src"), options.source)):
            name = "exampp grade" if source != options.source else "exampp grade, other"
            exam = write_exam(Path(folder), number, source)
            for in_flight in options.in_flight:
                show(name, in_flight, *measure_command(url, exam, number, in_flight, source))
    return None


if __name__ == "__main__":
    main()
