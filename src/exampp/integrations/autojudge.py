"""exampp as a judge of TREC AutoJudge, in all three protocols: nuggets, qrels, leaderboard.

In workflow.yml, write

    judge_class: "exampp.integrations.autojudge:ExamJudge"

All requests and replies are stored in collections under `$CACHE_DIR`, or beside the output if it is
not set: a second run over the same reports sends no requests and writes the same bytes. Unfinished
work is an error, never a score of 0; the same command continues. Protocols and files:
autojudge-base 1.0.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from autojudge_base import (
    LeaderboardBuilder,
    LeaderboardSpec,
    MeasureSpec,
    NuggetBanks,
    QrelsSpec,
    build_qrels,
    doc_id_md5,
)
from autojudge_base.llm_config import LlmConfigBase
from autojudge_base.nugget_data import load_nugget_banks_from_file, write_nugget_banks_generic

from exampp.collection import Collection, create
from exampp.errors import InputError, Unfinished
from exampp.graders.options import OpenAIOptions, declared_options
from exampp.measures.board import Leaderboard
from exampp.measures.leaderboard import evaluate_gradebook
from exampp.measures.names import parse_measure
from exampp.measures.qrels import Kind, Labelling, label_passages
from exampp.measures.qrels import exam_labels as qrels_of
from exampp.records.gradebook import MISSING, Gradebook, Ratings
from exampp.records.ids import content_hash
from exampp.records.inputs import PASSAGE_TOKENS
from exampp.records.wording import suggest
from exampp.store.bank import item_kinds

LIMIT = 6000
"""Tokens of a prompt: set here, because asking the server could not be cached."""
_LOG = logging.getLogger(__name__)
_INJECTED = ("filebase", "outdir")
"""Settings that the runner adds."""
_OF_ENVIRONMENT = ("model", "base_url", "api_key")
_OWN_MODEL = ("OPENAI_MODEL", "LLM_MODEL")


@dataclasses.dataclass(frozen=True)
class JudgeSettings:
    """Settings of a workflow.yml; all other keys are options of the model.

    Attributes:
        nugget_prompt: Prompt that generates nuggets.
        keys: Generate answers, too.
        grounded: Number of report passages from which nuggets are generated.
        prompt: Prompt that grades; by default selected by the kind of the nuggets.
        kind: question or nugget, if a bank has questions and claims.
        graded: report, or documents (those that it cites).
        passage_tokens: Maximum tokens of a report's passages (0: sentences).
        measures: Measures of exampp; without a cutoff they read all graded passages.
        min_rating: Lowest rating that counts.
        label: As in `exampp evaluate --qrels`.
        at_least: As in `exampp evaluate --qrels`.
    """

    nugget_prompt: str = "dl-questions"
    keys: bool = False
    grounded: int = 0
    prompt: str | None = None
    kind: str | None = None
    graded: str = "report"
    passage_tokens: int = PASSAGE_TOKENS
    measures: Sequence[str] = ("Cover",)
    min_rating: int | None = None
    label: Kind = "best"
    at_least: int = 1
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.graded not in ("report", "documents"):
            raise InputError(
                f"graded is {self.graded!r}", field="settings", hint="Use report or documents"
            )
        for name in self.measures:
            parse_measure(name)
        if self.options.get("decode", "text") == "auto":
            raise InputError(
                "auto would test the server with requests that cannot be cached",
                field="settings.decode",
                hint="Use text, labels or json",
            )

    @property
    def of_documents(self) -> bool:
        """Return whether the cited passages are graded instead of the reports."""
        return self.graded == "documents"

    @property
    def labelling(self) -> Labelling:
        """The rule that turns ratings into labels of qrels."""
        return Labelling(self.label, self.at_least)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> JudgeSettings:
        """Return the settings of a call; raise InputError for invalid ones."""
        given = {name: value for name, value in given.items() if name not in _INJECTED}
        own = {field.name for field in dataclasses.fields(cls)} - {"options"}
        for name in given:
            if name in _OF_ENVIRONMENT:
                raise InputError(
                    "model and server can only be set in the environment",
                    field=f"settings.{name}",
                    hint=(
                        "Set OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY, and remove this "
                        "setting"
                    ),
                )
            known = sorted({*own, *declared_options(OpenAIOptions)} - {*_OF_ENVIRONMENT})
            if name not in known:
                hint = suggest(name, known) or f"Available: {', '.join(known)}"
                raise InputError("unknown setting", field=f"settings.{name}", hint=hint)
        mine = {name: value for name, value in given.items() if name in own}
        return cls(**mine, options={name: v for name, v in given.items() if name not in own})


class ExamJudge:
    """A judge in the three protocols of TREC AutoJudge, created without arguments.

    The model is OPENAI_MODEL at OPENAI_BASE_URL with OPENAI_API_KEY; all three come in
    `llm_config`. Settings are those of `JudgeSettings`.

    Raises:
        InputError: A setting is invalid, or no model is named.
        Unfinished: Some requests failed.
    """

    nugget_banks_type = NuggetBanks

    def create_nuggets(
        self,
        rag_responses: Iterable[Any] | None,
        rag_topics: Sequence[Any],
        llm_config: LlmConfigBase,
        nugget_banks: Any = None,
        corpus: str | None = None,
        **settings: Any,
    ) -> Any:
        """Return a bank for every topic: those of `nugget_banks`, and generated ones for the
        others.
        """
        wanted = JudgeSettings.of(settings)
        known = {} if nugget_banks is None else nugget_banks.banks
        existing = [known[one.request_id] for one in rag_topics if one.request_id in known]
        topics_without = [one for one in rag_topics if one.request_id not in known]
        if not topics_without:
            return type(nugget_banks).from_banks_list(existing)
        reports = rag_responses if wanted.grounded else ()
        with _collection(
            _Case.of(topics_without, reports, wanted, corpus), llm_config, settings
        ) as exam:
            run = exam.bank().generation(
                "openai",
                prompt=wanted.nugget_prompt,
                keys=wanted.keys,
                grounded=wanted.grounded,
                **_model(llm_config, wanted),
            )
            why = {one.subject.query_id: one.reason for one in run.steps() if not one.items}
            generated = _banks_of(exam)
        if without := [one.request_id for one in topics_without if one.request_id not in generated]:
            reason = why.get(without[0]) or run.why_stopped or "the model generated none"
            raise Unfinished(
                f"no nuggets for {len(without)} of {len(topics_without)} topics, the first "
                f"{without[0]!r}: {reason}. The other nuggets are stored; the same command "
                "continues"
            )
        return NuggetBanks.from_banks_list([*existing, *generated.values()])

    def create_qrels(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: LlmConfigBase,
        nugget_banks: Any = None,
        corpus: str | None = None,
        **settings: Any,
    ) -> Any:
        """Return EXAM-Qrels: a label for every report, by the MD5 of its text, or for every
        document.
        """
        wanted = JudgeSettings.of(settings)
        case = _Case.of(rag_topics, rag_responses, wanted, corpus, nugget_banks)
        book = _gradebook(case, llm_config, settings)
        threshold = wanted.min_rating or book.grader.default_min_rating
        if wanted.of_documents:
            rows: list[tuple[str, str, int]] = list(qrels_of(book, wanted.labelling, threshold))
        else:
            rows = list(_report_labels(book, case.reports, wanted.labelling, threshold))
        labelled = {topic for topic, _, _ in rows}
        if bare := [one.request_id for one in rag_topics if one.request_id not in labelled]:
            raise Unfinished(f"topic {bare[0]!r} has no {wanted.graded} with a grade")
        spec = QrelsSpec(_TOPIC, _DOCUMENT, _LABEL, on_duplicate="keep_max")
        return build_qrels(records=rows, spec=spec)

    def judge(
        self,
        rag_responses: Iterable[Any],
        rag_topics: Sequence[Any],
        llm_config: LlmConfigBase,
        nugget_banks: Any = None,
        qrels: Any = None,  # noqa: ARG002
        corpus: str | None = None,
        **settings: Any,
    ) -> Any:
        """Return the leaderboard: every run on every topic for which it has a report.

        Reports with ungraded cells are logged as a warning. A report without text, or without
        citations, covers nothing.
        """
        wanted = JudgeSettings.of(settings)
        case = _Case.of(rag_topics, rag_responses, wanted, corpus, nugget_banks)
        book = _gradebook(case, llm_config, settings)
        depth = max(len(one.passages) for query in book.queries for one in query.rankings)
        measures = {name: parse_measure(name).cut(depth) for name in wanted.measures}
        board = evaluate_gradebook(
            book, list(measures.values()), wanted.min_rating, subtopics="query"
        )
        values = {
            (row.system, row.query_id, row.measure): row.value or 0.0 for row in board.per_query()
        }
        spec = LeaderboardSpec(
            measures=tuple(
                MeasureSpec(name, description=_measure_label(name, board)) for name in measures
            )
        )
        _warn_of_ungraded(book)
        builder = LeaderboardBuilder(spec)
        for report in case.reports:
            run, topic = report.metadata.run_id, report.metadata.topic_id
            scores = {name: values.get((run, topic, str(m)), 0.0) for name, m in measures.items()}
            builder.add(run_id=run, topic_id=topic, values=scores)
        topics = [one.request_id for one in rag_topics]
        return builder.build(expected_topic_ids=topics, on_missing="fix_aggregate")


_TOPIC, _DOCUMENT, _LABEL = itemgetter(0), itemgetter(1), itemgetter(2)
_ALL = 2**30
"""Longer than any report."""


class _Case(NamedTuple):
    """The reports in a fixed order, so that all requests are the same in every run."""

    queries: list[dict[str, str]]
    reports: list[Any]
    settings: JudgeSettings
    corpus: str | None
    banks: Any

    @classmethod
    def of(
        cls,
        topics: Sequence[Any],
        reports: Iterable[Any] | None,
        settings: JudgeSettings,
        corpus: str | None,
        banks: Any = None,
    ) -> _Case:
        """Return the reports and banks of these topics."""
        keys = ("request_id", "title", "problem_statement", "background")
        queries = [{key: getattr(one, key) or "" for key in keys} for one in topics]
        known = {one.request_id for one in topics}
        own_reports = [one for one in reports or () if one.metadata.topic_id in known]
        own_reports.sort(key=lambda one: (one.metadata.run_id, one.metadata.topic_id))
        if banks is not None:
            some = [bank for topic, bank in banks.banks.items() if topic in known]
            banks = type(banks).from_banks_list(some)
        return cls(queries, own_reports, settings, corpus, banks)

    @property
    def rows(self) -> dict[str, Any]:
        """Return the responses of the systems for `Collection.add`, without empty ones."""
        by_run: dict[str, list[Any]] = {}
        texts: dict[str, dict[str, str]] = {}
        for report in self.reports:
            for row in _cited(report) if self.settings.of_documents else _said_by(report):
                by_run.setdefault(report.metadata.run_id, []).append(row)
            for key, one in (report.documents or {}).items():
                # reports quote a document differently: the first text is used
                texts.setdefault(key, {"id": key, "text": one.text, "title": one.title or ""})
        if not self.settings.of_documents:
            return {"responses": by_run} if by_run else {}
        cited = {row["docno"] for rows in by_run.values() for row in rows}
        known = [texts[key] for key in sorted(cited) if key in texts]
        return {"runs": by_run, **({"passages": known} if known else {})} if by_run else {}


def _said_by(report: Any) -> Iterator[dict[str, Any]]:
    sentences = report.get_sentences_with_citations()
    parts = [{"text": one.text, "citations": one.citations or []} for one in sentences]
    if any(part["text"].strip() for part in parts):
        yield {"query_id": report.metadata.topic_id, "responses": parts}


def _cited(report: Any) -> Iterator[dict[str, Any]]:
    sentences = report.get_sentences_with_citations()
    cited = dict.fromkeys(key for one in sentences for key in one.citations or ())
    for rank, key in enumerate(cited, 1):
        yield {"query_id": report.metadata.topic_id, "docno": key, "rank": rank}


def _collection(
    case: _Case, llm_config: LlmConfigBase, given_settings: Mapping[str, Any]
) -> Collection:
    """Return the collection of a case, named by a hash of its content; create it if missing."""
    folder = llm_config.cache_dir or Path(given_settings.get("outdir") or ".") / "exampp-cache"
    folder.mkdir(parents=True, exist_ok=True)
    rows, tokens = case.rows, case.settings.passage_tokens
    with tempfile.TemporaryDirectory() as place:
        bank = Path(place) / "nuggets.jsonl"
        if case.banks is not None:
            write_nugget_banks_generic(case.banks, bank)
        nuggets = bank.read_text(encoding="utf-8") if case.banks is not None else ""
        content = json.dumps([case.queries, rows, case.corpus, tokens], sort_keys=True)
        name = f"exampp-{content_hash(content, nuggets)[:16]}.exam"
        exam = create(folder / name, exist_ok=True)
        exam.add(queries=case.queries)
        if rows:
            exam.add(**rows, corpus=case.corpus, depth=_ALL, passage_tokens=tokens)
        if nuggets:
            exam.import_files(banks=[bank])
    return exam


def _gradebook(case: _Case, llm_config: LlmConfigBase, given: Mapping[str, Any]) -> Gradebook:
    """Return all grades; request the missing ones.

    Cells with an unreadable reply have no grade and are not requested again, so that a repeated run
    gives the same result.

    Raises:
        Unfinished: Some requests failed.
    """
    if not case.rows:
        raise InputError(f"no run has a {case.settings.graded} with text for these topics")
    with _collection(case, llm_config, given) as exam:
        prompt, kind = case.settings.prompt, case.settings.kind
        if prompt is None and kind is None:
            kind = _only_kind(exam)
        options = {"prompt": prompt, "kind": kind, **_model(llm_config, case.settings)}
        for select in ("new", "failed"):
            run = exam.grading("openai", select=select, depth=_ALL, **options)
            for progress in run.steps():
                message = progress
            print(f"[exampp] {message}", file=sys.stderr)
            if run.why_stopped:
                raise Unfinished(f"{run.why_stopped}. The same command continues")
            book = exam.grades(run.grading.identity.key).gradebook
            failed = book.pending.get("failed", 0)
            if not failed:
                return book
        reasons = "; ".join(exam.status().notes)
    raise Unfinished(f"{failed} requests failed: {reasons}")


def _only_kind(exam: Collection) -> str:
    """Return the kind of the graded nuggets; raise InputError for none or several."""
    kinds = item_kinds(exam.connection)
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise InputError(
            "the banks have questions and claims; which are to be graded?",
            field="settings.kind",
            hint="Set kind to question or nugget",
        )
    raise InputError(
        "there are no nuggets",
        hint="Create them (create_nuggets: true), or name a file with --nugget-banks",
    )


def _model(llm_config: LlmConfigBase, settings: JudgeSettings) -> dict[str, Any]:
    """Return the options of the model; raise InputError if no model is named."""
    unnamed = llm_config.model == LlmConfigBase().model
    if unnamed and not any(os.environ.get(name) for name in _OWN_MODEL):
        raise InputError("missing model", hint="Set OPENAI_MODEL, and OPENAI_BASE_URL")
    server = {"base_url": llm_config.base_url, "api_key": llm_config.api_key}
    usual = {"decode": "text", "limit": LIMIT}
    return {**usual, **settings.options, "model": llm_config.model, **server}


def _banks_of(exam: Collection) -> dict[str, Any]:
    """Return the bank of a collection as NuggetBanks, by topic; empty if it has no items."""
    if not item_kinds(exam.connection):
        return {}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "nuggets.jsonl"
        exam.export(file, "argue")
        return dict(load_nugget_banks_from_file(file).banks)


def _best(book: Gradebook) -> Iterator[tuple[tuple[str, str], Ratings]]:
    """Return ((run, topic), passages x items) of every ranking."""
    for query in book.queries:
        for ranking in query.rankings:
            yield (ranking.system, query.query_id), query.ratings[ranking.passages]


def _warn_of_ungraded(book: Gradebook) -> None:
    """Log the number of ungraded cells of each report that has some."""
    for (run, topic), cells in _best(book):
        if missing := int((cells == MISSING).sum()):
            what = "run %r, topic %r: %d of %d cells have no grade (unreadable replies)"
            _LOG.warning(what, run, topic, missing, cells.size)


def _report_labels(
    book: Gradebook, reports: Iterable[Any], labelling: Labelling, threshold: int
) -> Iterator[tuple[str, str, int]]:
    """Yield the label of every report that has a grade: that of a passage with its best ratings.

    A report without text gets the lowest label.
    """
    wanted = {query.query_id: query.weights > 0 for query in book.queries}
    rows = ((place, cells[:, wanted[place[1]]]) for place, cells in _best(book))
    best = {place: cells.max(axis=0, keepdims=True) for place, cells in rows if cells.size}
    lowest = book.grader.lowest
    for report in reports:
        text, topic = report.get_report_text(), report.metadata.topic_id
        ratings = best.get((report.metadata.run_id, topic))
        if ratings is None and not text.strip():
            yield topic, doc_id_md5(text), lowest
        elif ratings is not None and (ratings != MISSING).any():
            (label,) = label_passages(ratings, labelling, threshold, lowest)
            yield topic, doc_id_md5(text), int(label)


def _measure_label(name: str, board: Leaderboard) -> str:
    counts = next(one.min_rating for one in board.columns)
    return f"{name} of exampp by {board.grader.name}" + (
        "" if counts is None else f", ratings from {counts} count"
    )
