"""Throughput of the grader on OpenAI-compatible servers against a bare loop over aiohttp.

    python benchmarks/openai_throughput.py [--requests 3000] [--concurrency 64] [--delay 0.05]

Both send the same requests to the same server, a process of its own on loopback that answers each
after `--delay` seconds with the same small body. The bare loop is what one would write by hand:
`--concurrency` coroutines over one session, without retries, and the reply's text. Rounds
alternate, because other work on the machine changes the speed of both. Printed are requests per
second, and CPU microseconds of the client for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.queues import Queue

import aiohttp

from exampp.graders.base import Request
from exampp.graders.openai import OpenAICompatibleGrader
from exampp.graders.options import OpenAIOptions

PATH = "/chat/completions"
PASSAGE = "A reef is a ridge of rock, coral or similar material beneath the surface. " * 6
REPLY = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "4"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 130, "completion_tokens": 1, "total_tokens": 131},
}


async def serve(ports: Queue[int], delay: float) -> None:
    data = json.dumps(REPLY).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    answer = head.encode() + b"\r\n\r\n" + data

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                sizes = [line for line in lines if line.startswith(b"content-length:")]
                await reader.readexactly(int(sizes[0].split(b":")[1]) if sizes else 0)
                await asyncio.sleep(delay)
                writer.write(answer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    ports.put(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_server(ports: Queue[int], delay: float) -> None:
    asyncio.run(serve(ports, delay))


@contextmanager
def started_server(delay: float) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    ports: Queue[int] = context.Queue()
    process = context.Process(target=run_server, args=(ports, delay), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=30)}/v1"
    finally:
        process.terminate()
        process.join()


def make_requests(number: int) -> Iterator[Request]:
    for key in range(number):
        item = f"What is a reef, part {key}?"
        yield Request(
            key, item, PASSAGE, f"Rate from 0 to 5.\nQuestion: {item}\nPassage: {PASSAGE}"
        )


async def bare(url: str, number: int, concurrency: int) -> int:
    requests = make_requests(number)
    done = 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal done
        for request in requests:
            body = {
                "model": "tiny",
                "messages": [{"role": "user", "content": request.user}],
                "temperature": 0,
                "seed": 0,
                "max_tokens": 8,
            }
            async with session.post(url + PATH, json=body) as response:
                reply = json.loads(await response.read())
            done += reply["choices"][0]["message"]["content"] == "4"

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*[work(session) for _ in range(concurrency)])
    return done


def ours(url: str, number: int, concurrency: int) -> int:
    grader = OpenAICompatibleGrader(
        OpenAIOptions(
            model="tiny", base_url=url, decode="text", max_new_tokens=8, concurrency=concurrency
        )
    )
    return sum(reply.text == "4" for _, reply in grader.answer(make_requests(number)))


def measured(action: Callable[[], int], number: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    if action() != number:
        raise SystemExit("some requests were not answered")
    cpu = time.process_time() - cpu
    return number / (time.perf_counter() - wall), cpu / number * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    size = (options.requests, options.concurrency)
    with started_server(options.delay) as url:
        asyncio.run(bare(url, 200, 8))  # imports and first connections
        ours(url, 200, 8)
        for _ in range(options.rounds):
            plain, plain_cpu = measured(lambda: asyncio.run(bare(url, *size)), size[0])
            mine, mine_cpu = measured(lambda: ours(url, *size), size[0])
            print(
                f"bare {plain:5.0f}/s {plain_cpu:5.0f} us   ours {mine:5.0f}/s {mine_cpu:5.0f} us"
            )


if __name__ == "__main__":
    main()
