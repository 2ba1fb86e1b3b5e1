"""`exampp api` and `clients`: the exam as a service for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing, redirect_stdout
from typing import Annotated, Any

import exampp
from exampp.cli.backend_options import backend_options
from exampp.cli.command import OptionRule, option_rules
from exampp.cli.options import AccessLog, GraderToRun, MinRating
from exampp.cli.output import print_message, show
from exampp.records.clients import RATE, Limits
from exampp.records.options import keyword
from exampp.records.selection import BankName, CollectionFile, Display


@option_rules(
    OptionRule(
        ("--host", "--port", "--allowed-host", "--prefix", "--proxy", "--access-log"),
        "over HTTP, not with --stdio",
        lambda given: not given["stdio"],
    ),
)
@backend_options(writes=False)
def api(
    collection: CollectionFile,
    grader: GraderToRun,
    *,
    options: Mapping[str, Any],
    bank: BankName = None,
    min_rating: MinRating = None,
    stdio: Annotated[
        bool,
        keyword(
            "--stdio",
            help="Answer MCP on standard input and output, without a token, as a local agent "
            "starts it.",
        ),
    ] = False,
    host: Annotated[str, keyword(help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[
        int, keyword(min=0, max=65535, help="Listen on this port; 0: a free one.")
    ] = 8766,
    allowed_host: Annotated[
        list[str] | None,
        keyword(
            help="Answer to this host name too, NAME or NAME:PORT: the one that clients use if a "
            "reverse proxy is in front. Repeat for several.",
            rare=True,
        ),
    ] = None,
    prefix: Annotated[
        str, keyword(help="Path of the API on the reverse proxy, such as /exam.", rare=True)
    ] = "",
    proxy: Annotated[
        list[str] | None,
        keyword(
            help="Believe X-Forwarded-For from this address or network. Repeat for several.",
            rare=True,
        ),
    ] = None,
    access_log: AccessLog = None,
) -> None:
    """Offer an exam to programs, by HTTP and by MCP: grade answers, compare systems, gate.

    Clients need a token of exampp clients. They see public items only; a submission to the sealed
    part is answered by the ladder. Serves until Ctrl-C.

    Example: exampp api my.exam --grader draft
    """
    from exampp.web.serving import check_installed

    check_installed()
    from exampp.service import ExamService
    from exampp.web.api import serve_api
    from exampp.web.mcp import serve_streams

    # standard output is for messages of MCP alone
    messages = sys.stdout.buffer
    with redirect_stdout(sys.stderr if stdio else sys.stdout):
        service = ExamService(
            collection,
            lambda exam: exam.scorer(grader, bank=bank, min_rating=min_rating, **options),
        )
    with closing(service):
        if stdio:
            with redirect_stdout(sys.stderr):
                serve_streams(service, sys.stdin.buffer, messages)
            return
        serve_api(
            service,
            host,
            port,
            allowed_hosts=allowed_host or [],
            prefix=prefix,
            proxies=proxy or [],
            access_log=access_log,
        )


@option_rules(
    OptionRule(
        ("--rate", "--requests", "--cells"), "beside --add", lambda given: given["add"] is not None
    )
)
def clients(
    collection: CollectionFile,
    add: Annotated[
        str | None,
        keyword(
            metavar="NAME",
            help="Print a new token for this client; an earlier one of that name ends.",
        ),
    ] = None,
    rate: Annotated[
        int, keyword(min=1, help="Let it send at most this many requests in a minute.")
    ] = RATE,
    requests: Annotated[
        int | None,
        keyword(min=0, help="Let it send at most this many requests in all. [default: no limit]"),
    ] = None,
    cells: Annotated[
        int | None,
        keyword(
            min=0,
            help="Let it have at most this many passage-question pairs graded in all. "
            "[default: no limit]",
        ),
    ] = None,
    revoke: Annotated[
        str | None,
        keyword(metavar="NAME", help="End the token of this client, also where it is in use."),
    ] = None,
    *,
    display: Display,
) -> None:
    """List, add and revoke the programs that may use the exam through exampp api.

    The list has what every client used, and the submissions to the sealed part. A running server
    applies changes at once.

    Example: exampp clients my.exam --add nightly-build --requests 1000
    """
    from exampp import service

    with exampp.Collection(collection) as opened:
        if revoke is not None:
            service.revoke_client(opened, revoke)
            print_message(f"{revoke} no longer has access")
        if add is not None:
            token = service.add_client(opened, add, Limits(rate, requests, cells))
            print_message(f"Give this token to {add}. It is not shown again:")
            print(token)
        elif revoke is None:
            show(service.client_tables(opened), display)
