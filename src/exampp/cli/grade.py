"""`exampp grade` and `exampp status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import exampp
from exampp.cli import output
from exampp.cli.backend_options import backend_options
from exampp.cli.command import OptionRule, former_arguments, option_rules
from exampp.cli.options import LIMITS, AnswerMatching, Grace, GraderToRun, UnnumberedText
from exampp.cli.output import (
    interruptible,
    print_dry_run,
    print_line,
    print_message,
    progress_bar,
    show,
    this_command,
)
from exampp.errors import Unfinished
from exampp.records.cascade import AUDITED, UNSURE_WITHIN
from exampp.records.options import argument, keyword
from exampp.records.selection import (
    BankName,
    CollectionFile,
    Display,
    GraderName,
    NotesDisplay,
)
from exampp.results.result import Table
from exampp.stopping import GRACE_SECONDS

if TYPE_CHECKING:
    from exampp.grading.cascade import Cascaded
    from exampp.grading.costs import GradingCosts, Prices
    from exampp.grading.derived import Voted
    from exampp.grading.regrade import Reparsed
    from exampp.grading.run import GradingRun, Progress


def calibrate(
    collection: CollectionFile,
    calibration: Annotated[
        Path,
        argument(metavar="CALIBRATION", help="A file of exampp analyze calibration --save."),
    ],
    bank: BankName = None,
    *,
    display: Display,
) -> None:
    """Predict relevance labels from grades; the result is stored as a new grader.

    A passage of a training query gets its label from a model that was trained without this query.
    Run the command again after more grading to label new passages.

    Example: exampp calibrate my.exam my.calibration
    """
    with exampp.Collection(collection) as opened:
        found = opened.calibrate(calibration, bank)
    show(found.tables(), display)
    print_message(
        f"As qrels: exampp evaluate {collection} --grader {found.grader.name} --qrels labels.qrels"
    )


Unsure = Annotated[
    float,
    keyword(
        min=0,
        metavar="DISTANCE",
        help="The cheap grader is unsure within this distance of the limit between min rating and "
        "the rating below; 0.5 means these two ratings.",
        rare=True,
    ),
]
Audit = Annotated[
    float,
    keyword(
        min=0,
        max=1,
        metavar="SHARE",
        help="Let the strong grader rate a random share of the cells where the cheap one is sure.",
        rare=True,
    ),
]
AuditSeed = Annotated[int, keyword(help="Seed of the random choice.", rare=True)]


@option_rules(
    OptionRule(
        ("--min-rating", "--unsure", "--audit", "--audit-seed"),
        "beside --rule cascade",
        lambda given: given["rule"] == "cascade",
    ),
    OptionRule(
        ("--at-least", "--steps"),
        "beside the other rules",
        lambda given: given["rule"] != "cascade",
    ),
)
def vote(
    collection: CollectionFile,
    grader: Annotated[
        list[str],
        keyword(
            help="Add this voter: a model, prompt, model:prompt, kind, or key. Repeat for several."
        ),
    ],
    rule: Annotated[
        Literal["majority", "median", "mean", "weighted", "expected", "criteria-sum", "cascade"],
        keyword(
            help="Combine the votes by this rule. weighted: by agreement with people; expected: "
            "ratings weighted by the probabilities that the model gave them; cascade: the first "
            "grader where it is sure, else the second."
        ),
    ] = "majority",
    at_least: Annotated[
        int | None,
        keyword(min=1, help="Require this many votes for a grade. [default: all]"),
    ] = None,
    steps: Annotated[
        int,
        keyword(
            min=1, help="Store ratings in steps of 1 to this number, such as tenths.", rare=True
        ),
    ] = 1,
    min_rating: Annotated[
        int | None,
        keyword(
            help="Lowest rating that counts as an answer. [default: 4 on a scale of 0-5, two "
            "thirds up another scale]",
            rare=True,
        ),
    ] = None,
    unsure: Unsure = UNSURE_WITHIN,
    audit: Audit = AUDITED,
    audit_seed: AuditSeed = 0,
    *,
    display: Display,
) -> None:
    """Combine several graders by voting; the result is stored as a new grader.

    Run the command again after more grading to count new grades.

    Example: exampp vote my.exam --grader draft --grader words-v1 --rule median
    """
    with exampp.Collection(collection) as opened:
        panel = opened.panel(*grader)
        found: Voted | Cascaded = (
            panel.cascade(min_rating=min_rating, unsure=unsure, audit=audit, audit_seed=audit_seed)
            if rule == "cascade"
            else panel.vote(rule, at_least=at_least, steps=steps)
        )
    show(found.tables(), display)
    print_message(f"To evaluate: exampp evaluate {collection} --grader {found.grader.name}")


@option_rules(
    OptionRule(
        (*LIMITS, "--max-failures", "--price-cached", "--grace"),
        "where requests are sent, not with --dry-run",
        lambda given: not given["dry_run"],
    ),
    OptionRule(
        ("--price-cached",),
        "beside --price-read and --price-written",
        lambda given: None not in (given.get("price_read"), given.get("price_written")),
    ),
    OptionRule(
        ("--workers",),
        "beside --on",
        lambda given: given["on"] is not None,
    ),
    OptionRule(("--until",), "beside --for", lambda given: bool(given["measure"])),
    OptionRule(("--margin",), "beside --until order", lambda given: given["until"] == "order"),
    OptionRule(
        ("--baseline-system",), "beside --until gate", lambda given: given["until"] == "gate"
    ),
    OptionRule(
        ("--min-rating",),
        "beside --for or --after",
        lambda given: bool(given["measure"] or given["after"]),
    ),
    OptionRule(("--may-miss",), "beside --for", lambda given: bool(given["measure"])),
    OptionRule(("--unsure",), "beside --after", lambda given: given["after"] is not None),
    OptionRule(
        ("--audit", "--audit-seed"),
        "beside --after or --may-miss",
        lambda given: (given["after"], given["may_miss"]) != (None, None),
    ),
    OptionRule(
        ("--poll",),
        "beside --batch or --cancel-batches",
        lambda given: bool(given["batch"] or given["cancel_batches"]),
    ),
    OptionRule(("--price-hour",), "beside --dry-run", lambda given: bool(given["dry_run"])),
)
@backend_options(writes=False)
def grade(
    collection: CollectionFile,
    grader: GraderToRun,
    *,
    options: Mapping[str, Any],
    bank: BankName = None,
    measure: Annotated[
        list[str] | None,
        keyword(
            "--for",
            metavar="MEASURE",
            help="Grade only the cells that this measure or requirement of a gate needs, such as "
            "Cover@20; its values are the same. Repeat for several. [default: grade all cells]",
        ),
    ] = None,
    min_rating: Annotated[
        list[int] | None,
        keyword(
            help="Lowest rating that counts as an answer for --for or --after. Repeat for several. "
            "[default: 4 on a scale of 0-5, two thirds up another scale]",
            rare=True,
        ),
    ] = None,
    may_miss: Annotated[
        float | None,
        keyword(
            metavar="CHANCE",
            help="Skip cells with a smaller chance of covering their item. A random part of the "
            "items is graded in full, and corrects Cover. [default: skip none]",
            rare=True,
        ),
    ] = None,
    until: Annotated[
        Literal["order", "gate"] | None,
        keyword(
            help="With --for: grade queries in random order until all of them would give the same "
            "order or gate. [default: grade all]",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        keyword(
            min=0,
            help="Leave the order open for systems whose means differ by at most this. "
            "[default: 0]",
            rare=True,
        ),
    ] = None,
    baseline_system: Annotated[
        str | None,
        keyword(
            metavar="NAME",
            help="Compare with this system in requirements such as Cover@20>=baseline-0.02.",
            rare=True,
        ),
    ] = None,
    after: Annotated[
        str | None,
        keyword(
            metavar="GRADER",
            help="Grade only the cells where this cheaper grader is unsure, and a random audit of "
            "the others; store the cascade of both as a new grader.",
            rare=True,
        ),
    ] = None,
    unsure: Unsure = UNSURE_WITHIN,
    audit: Annotated[
        float | None,
        keyword(
            min=0,
            max=1,
            metavar="SHARE",
            help="Grade a random share, which shows the errors: of the cells where --after is sure "
            "[default: 0.05], or of the items where --may-miss would skip cells [default: 0.2].",
            rare=True,
        ),
    ] = None,
    audit_seed: AuditSeed = 0,
    depth: Annotated[int, keyword(min=1, help="Grade this many passages of each ranking.")] = 20,
    pool: Annotated[
        Literal["ranked", "judged", "all"],
        keyword(
            help="Grade the passages that runs rank, that people judged, or both. Without runs, "
            "ranked includes judged passages.",
            rare=True,
        ),
    ] = "ranked",
    answers_of: Annotated[
        str | None,
        keyword(
            help="Verify the answers that this grader extracted (answer-verification).", rare=True
        ),
    ] = None,
    max_failures: Annotated[
        int, keyword(min=1, help="Stop after this many failures in a row.", rare=True)
    ] = 20,
    max_queries: Annotated[
        int | None,
        keyword(min=1, help="Grade only this many queries, for a trial. [default: all]"),
    ] = None,
    shard: Annotated[
        str | None,
        keyword(
            metavar="N/OF",
            help="Grade one of several equal parts of the passages, such as 3/16. [default: all]",
            rare=True,
        ),
    ] = None,
    retry_failed: Annotated[
        bool, keyword("--retry-failed", help="Grade only cells that failed before.")
    ] = False,
    batch: Annotated[
        bool,
        keyword(
            "--batch",
            help="Use the batch service of the provider, at half the price. After Ctrl-C, "
            "batches continue; the same command resumes.",
            rare=True,
        ),
    ] = False,
    batch_file: Annotated[
        Path | None,
        keyword(
            metavar="FILE",
            help="Write the requests to this file, such as for vllm run-batch; send nothing.",
            rare=True,
        ),
    ] = None,
    replies: Annotated[
        Path | None,
        keyword(
            metavar="FILE", help="Read the replies to the requests of --batch-file.", rare=True
        ),
    ] = None,
    cancel_batches: Annotated[
        bool,
        keyword(
            "--cancel-batches",
            help="Cancel the running batches; store the replies that have arrived.",
            rare=True,
        ),
    ] = False,
    poll: Annotated[
        float | None,
        keyword(
            min=0,
            max=86400,
            metavar="SECONDS",
            help="Poll batches at this interval. [default: 15, growing]",
            rare=True,
        ),
    ] = None,
    grace: Grace = GRACE_SECONDS,
    dry_run: Annotated[
        bool,
        keyword("--dry-run", help="Print what is pending, its cost, and prompts; send nothing."),
    ] = False,
    price_hour: Annotated[
        float | None, keyword(min=0, help="Price of an hour of the machine.", rare=True)
    ] = None,
    on: Annotated[
        str | None,
        keyword(
            metavar="CLUSTER",
            help="Grade on a Ray cluster: its address, or ray for the local one.",
            rare=True,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        keyword(
            min=1,
            help="Use at most this many workers. [default: as many as the nodes have room for]",
            rare=True,
        ),
    ] = None,
) -> None:
    """Grade all pending passage-question pairs.

    After Ctrl-C or SIGTERM, the same command continues. Several processes can grade one collection
    and share the work.

    Example: exampp grade my.exam --grader draft
    """
    from exampp.grading.batches import Batches
    from exampp.grading.costs import Prices

    batches = batch or batch_file is not None or replies is not None or cancel_batches
    with exampp.Collection(collection) as opened:
        chosen: dict[str, Any] = dict(
            bank=bank,
            depth=depth,
            pool=pool,
            select="failed" if retry_failed else "pending",
            answers_of=answers_of,
            max_failures=max_failures,
            max_queries=max_queries,
            shard=shard,
            on=None if on is None else exampp.Cluster(on, workers),
            batches=Batches(batch_file, replies, cancel_batches, poll) if batches else False,
            measures=measure or (),
            min_rating=min_rating,
            may_miss=may_miss,
            until=until,
            margin=margin,
            baseline_system=baseline_system,
            after=after,
            unsure=unsure,
            audit=audit,
            audit_seed=audit_seed,
            **options,
        )
        run = opened.grading(grader, dry_run=dry_run, **chosen)
        print_message(_describe(run))
        if dry_run:
            _print_notes(run)
            costs = opened.grading_costs(grader, price_hour=price_hour, **chosen)
            _print_estimate(run, costs, Prices.of_options(options, price_hour))
            return
        progress = work(run, grace)
    if note := run.late_note:
        print_message(note)
    print_line(str(progress))
    if run.cascaded is not None:
        print_line(run.cascaded.tables()["cascade"].verdict)
        print_message(
            f"To evaluate: exampp evaluate {collection} --grader {run.cascaded.grader.name}"
        )
    if run.stopped and (left := progress.total - progress.done):
        why = f" ({run.why_stopped})" if run.why_stopped else ""
        pending, command = (
            f"stopped with {left + progress.ungraded} cells pending{why}",
            "continues",
        )
    elif run.progress.all_failed:
        pending, command = "all cells failed", "retries"
    else:
        return
    # these write, read or end something once
    if batch_file or replies or cancel_batches:
        raise Unfinished(pending)
    raise Unfinished(f"{pending}; this {command}:\n  {this_command()}")


def _describe(run: GradingRun) -> str:
    """Describe the choices of a run: grader, decode, kind of item and bank."""
    grader = run.grading.identity
    decode = grader.settings.get("decode")
    mode = f" (decode {decode})" if decode else ""
    graded = "queries" if grader.kind == "query" else f"{grader.kind}s of the bank {run.exam.bank}"
    cells = f" Only cells that {run.target} needs." if run.target else ""
    if run.target and run.target.until:
        cells += f" Queries in random order, until the {run.target.until} is decided."
    if run.exam.after:
        cells = " Only cells where the first grader of the cascade is unsure, and a random audit."
    return f"Grader: {grader.name}{mode}, on the {graded}.{cells}"


def _print_estimate(run: GradingRun, costs: GradingCosts, prices: Prices) -> None:
    from exampp.grading.costs import describe_estimate, estimate

    found = estimate(run, prices)
    table = costs.render().rstrip("\n") if len(costs.ways) > 1 else ""
    print_dry_run(describe_estimate(run, found), found.prompts, table)


def work(run: GradingRun, grace: float = GRACE_SECONDS) -> Progress:
    """Run to the end with a progress bar, unless it is stopped, within `grace` seconds."""
    _print_notes(run)
    progress, printed = None, set[str]()
    try:
        with interruptible(run.stop, grace), progress_bar("grading") as update:
            for progress in run.steps():
                for line in _describe_waiting(progress):
                    if line not in printed:
                        print_message(line)
                        printed.add(line)
                update(run.progress)
    except KeyboardInterrupt:
        if progress is not None:
            print_message(str(progress))
        raise
    if progress is None:
        raise KeyboardInterrupt
    return progress


def _describe_waiting(progress: Progress) -> Iterator[str]:
    """Yield the other runs with leases of queries, and the state of batches."""
    end = "Waiting for that" if progress.waits else "That is left to it"
    yield from (f"{holder}. {end}" for holder in progress.held_by)
    if progress.awaits:
        yield f"Batches: {progress.awaits}"


def _print_notes(run: GradingRun) -> None:
    for note in run.notes:
        print_message(note)


@option_rules(OptionRule(("--depth",), "beside --pool", lambda given: bool(given["pool"])))
def status(
    collection: CollectionFile,
    pool: Annotated[
        bool, keyword("--pool", help="Show the judgment pool and the cells to grade, too.")
    ] = False,
    depth: Annotated[int, keyword(min=1, help="Pool this many passages of each ranking.")] = 20,
    *,
    display: NotesDisplay,
) -> None:
    """Show the contents, and the graded, pending and failed cells of each grader.

    Example: exampp status my.exam
    """
    with exampp.Collection(collection) as opened:
        tables: dict[str, Table] = {"contents": opened.contents()}
        if pool:
            tables |= opened.pool(depth).tables()
        tables |= opened.status_tables()
    if not display.for_programs:
        tables = {name: table for name, table in tables.items() if table.rows or table.notes}
        if "graders" not in tables:
            print_message(f"Nothing is graded. Grade: exampp grade {collection} --grader draft")
    show(tables, display)


def reparse(
    collection: CollectionFile,
    grader: GraderName = None,
    rules: Annotated[
        str | None,
        keyword(
            help="Read by the rules of this prompt, by name or TOML file. [default: the rules of "
            "the grader's prompt]"
        ),
    ] = None,
    unnumbered: UnnumberedText = None,
    matching: AnswerMatching = None,
    compat: Annotated[
        Literal["exam", "rubric"],
        keyword(help="Read like another program: rubric of the papers.", rare=True),
    ] = "exam",
    dry_run: Annotated[
        bool, keyword("--dry-run", help="Print what would change; change nothing.")
    ] = False,
) -> None:
    """Parse the stored replies again, without a model.

    Use it after a change of rules or answer keys. Grades by other rules are stored as a new grader.

    Example: exampp reparse my.exam --grader gpt-5-mini --dry-run
    """
    with exampp.Collection(collection) as opened:
        found = opened.reparse(
            grader,
            rules=rules,
            unnumbered=unnumbered,
            matching=matching,
            compat=compat,
            dry_run=dry_run,
        )
    print_line(describe_reparsed(found))


def describe_reparsed(found: Reparsed) -> str:
    """Describe the result of reading again, in lines."""
    lines = [f"{found.replies} replies read again, {found.changes.total()} changed"]
    lines += [f"{n:>9}  {before} -> {after}" for (before, after), n in found.changes.most_common()]
    if found.kept:
        states = ", ".join(f"{n} {state.name.lower()}" for state, n in sorted(found.kept.items()))
        lines.append(f"Unchanged, as no text can alter them: {states}")
    if found.others:
        lines.append(f"{found.others} cells of {found.identity.name} have other replies, and stay")
    same = found.identity == found.source
    beside = "" if same else f", beside those of {found.source.name} ({found.source.key[:8]})"
    verb = "would be" if found.dry_run else "are"
    lines.append(
        f"They {verb} the grades of {found.identity.name} ({found.identity.key[:8]}){beside}"
    )
    return "\n".join(lines)


@option_rules(
    OptionRule(("--toml",), "with a NAME", lambda given: given["name"] is not None),
    OptionRule(("--format",), "without a NAME", lambda given: given["name"] is None),
)
@former_arguments({"list": "exampp prompts", "show": "exampp prompts NAME"})
def prompts(
    name: Annotated[
        str | None, argument(metavar="NAME", help="A bundled prompt, or a TOML file.")
    ] = None,
    toml: Annotated[
        bool, keyword("--toml", help="Print the prompt as TOML, as a start for a custom prompt.")
    ] = False,
    *,
    display: Display,
) -> None:
    """List the prompts, or print one.

    Slots of a prompt are in braces.

    Example: exampp prompts question-self-rating
    """
    if name is None:
        show(_prompt_table(), display)
    elif toml:
        from exampp.prompts import toml_of

        output.write(toml_of(name))
    else:
        print_line(_prompt_text(name))


def _prompt_table() -> Table:
    # the catalogue pulls in the rules of reading, which `exampp --help` can do without
    from exampp.prompts import Prompt, all_prompts
    from exampp.prompts.catalogue import plugin_prompts

    rows = [
        (one.name, "/".join(one.grades), f"{one.lowest}-{one.highest}", "", one.title)
        if isinstance(one, Prompt)
        else (one.name, "", "", one.makes, one.title)
        for one in all_prompts()
    ]
    notes = [one.fault for one in plugin_prompts() if one.fault]
    return Table.of(["prompt", "grades", "scale", "makes", "title"], rows, notes=notes)


def _prompt_text(name: str) -> str:
    from exampp.prompts import find_prompt

    prompt = find_prompt(name)
    heading = f"# {prompt.title}\n# {prompt.source}\n\n"
    if not prompt.user:
        return f"{heading}(this grader reads item and passage without a prompt)"
    keys = ("system", "user", "instruction", "keys_instruction")
    parts = {key: text for key in keys if (text := getattr(prompt, key, ""))}
    if list(parts) == ["user"]:
        return heading + parts["user"]
    return heading + "\n\n".join(f"[{part}]\n{text}" for part, text in parts.items())


def finetune(
    base_model: Annotated[
        str, argument(metavar="MODEL", help="The model to start from: a folder or hub name.")
    ],
    squad: Annotated[Path, argument(metavar="SQUAD", help="Training data as in SQuAD 2.0.")],
    out: Annotated[Path, argument(metavar="FOLDER", help="The folder for the trained model.")],
    prompt: Annotated[str, keyword(help="Train for this prompt.")] = "question-answering",
    revision: Annotated[str | None, keyword(help="Revision of the model.")] = None,
    epochs: Annotated[float, keyword(help="Pass over the data this many times.")] = 2.0,
    batch_size: Annotated[int, keyword(min=1, help="Examples per step.")] = 16,
    learning_rate: Annotated[float, keyword(help="Learning rate at the start.")] = 1e-4,
    max_steps: Annotated[int | None, keyword(help="Maximum number of steps.")] = None,
    seed: Annotated[int, keyword(help="Seed of the order of the examples.")] = 0,
    device: Annotated[str | None, keyword(help="cpu, cuda, cuda:1 or mps.")] = None,
) -> None:
    """Train a model to extract answers (SQuAD 2.0).

    Then grade with it: exampp grade --grader hf --model FOLDER --prompt question-answering.

    Example: exampp finetune google/flan-t5-large train-v2.0.json my-reader
    """
    # torch and transformers load here, and only here
    from exampp.graders import local
    from exampp.prompts import fill, load_grading_prompt

    loaded = load_grading_prompt(prompt)

    def asked(question: str, context: str) -> str:
        return fill(loaded, {"question": question, "context": context}).user

    steps = local.finetune(
        base_model,
        squad,
        out,
        prompt=asked,
        revision=revision,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        max_steps=max_steps,
        seed=seed,
        device=device,
        report=lambda step, steps, loss: print_message(f"step {step} of {steps}, loss {loss:.4f}"),
    )
    print_line(f"{out}: {steps} steps")
