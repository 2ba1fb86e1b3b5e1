"""The matrix of files: every kind that is read or written, and whether it survives both.

The table of the documentation is this one, and the tests walk it with a sample of every kind.
"""

from __future__ import annotations

from typing import NamedTuple


class Layout(NamedTuple):
    """One kind of file.

    `looks` tells what it looks like, `source` whose it is. `read` is `import` or the options that
    read it, `written` the `--format` of `exampp export` that writes it (empty: none), `lossless`
    `yes` where what is read comes out as it went in, or what does not. `also` are further values
    of `--format` that write it.
    """

    kind: str
    looks: str
    source: str
    read: str = "import"
    written: str = ""
    lossless: str = ""
    also: tuple[str, ...] = ()


MATRIX: tuple[Layout, ...] = (
    Layout(
        "queries",
        "JSON dictionary id → text; JSON-lines of `query_id` (`qid`, `topic_id`, `narrative_id`, "
        "`request_id`, `id`) and `text` (`query`, `title`, `narrative`), perhaps `subtopics`; two "
        "columns separated by a tab; topics of TREC in SGML or XML (their title, or else the "
        "query, question or description)",
        "exampp, TREC, BEIR, MS MARCO, TREC RAG, RAGTIME, AutoJudge",
        written="queries",
        lossless="yes; of a topic in SGML or XML the text; of a request (`title`, "
        "`problem_statement`, `background`) the whole text; "
        "as a dictionary (`--format queries` to a name that ends in .json) without subtopics",
    ),
    Layout(
        "passages",
        "JSON-lines of `id` (`_id`, `docid`, `docno`, `pid`, `paragraph_id`) and `text` "
        "(`contents`, `body`, `segment`), perhaps `title`; columns id, text, title with tabs",
        "exampp, BEIR, MS MARCO, Pyserini",
        written="passages",
        lossless="yes",
    ),
    Layout(
        "beir",
        "a folder of `queries.jsonl`, `qrels/test.tsv` and `corpus.jsonl`",
        "BEIR, the Hugging Face hub",
        written="beir",
        lossless="yes, with `bank.jsonl`, `systems.run` and a card beside them; without subtopics, "
        "and queries without judgments are not read",
    ),
    Layout(
        "plain-bank",
        "CSV or TSV with a header: `query_id` (or `query`, its text) and `question` or `nugget`, "
        "perhaps `subtopic_id`, `item_id`, `answer`, `weight`, `importance`, `model` (who made "
        "it); YAML: query id → list of questions",
        "people",
        written="bank",
        lossless="yes",
    ),
    Layout(
        "questions",
        "JSON-lines, an item each: `query_id`, `query_text`, `qid`, `question`",
        "Autograding Workbench",
        written="questions",
        lossless="yes",
    ),
    Layout(
        "bank",
        "JSON-lines, a query or subtopic each, with `items` (newer) or `questions` (older)",
        "Autograding Workbench",
        written="bank",
        lossless="yes",
    ),
    Layout("tqa", "lessons of Textbook Question Answering, JSON", "TQA"),
    Layout(
        "nuggetizer",
        "JSON-lines of `qid`, `query` and `nuggets` (`text`, `importance`)",
        "castorini's nuggetizer",
        written="nuggetizer",
        lossless="yes",
    ),
    Layout(
        "assignments",
        "the same with `run_id`, `answer_text` and an `assignment` of every nugget; a bank, "
        "passages, rankings and grades",
        "castorini's nuggetizer",
        written="assignments",
        lossless="yes",
    ),
    Layout(
        "argue",
        "NuggetBank v3: `query_id`, `nugget_bank`, `claim_bank`; the banks of RAGTIME 2026",
        "AutoARGUE, AutoJudge, RAGTIME",
        written="argue",
        lossless="yes; RAGTIME's layout comes out as v3",
    ),
    Layout(
        "trec-nuggets",
        "query, nugget id, vital or okay, text, separated by tabs",
        "TREC",
        written="trec-nuggets",
        lossless="yes",
    ),
    Layout(
        "workbench",
        "graded passages, JSON-lines of `[query_id, [passage, ...]]`",
        "Autograding Workbench",
        written="workbench",
        lossless="yes",
    ),
    Layout(
        "run",
        "`query Q0 passage rank score system`; `query passage rank` with `--runs`",
        "trec_eval, MS MARCO",
        written="runs",
        lossless="yes; MS MARCO's comes out as trec_eval's",
        also=("ir-metadata",),
    ),
    Layout(
        "ranx",
        "one JSON object, query → passage → score; the system is named like the file",
        "ranx",
        written="ranx",
        lossless="yes, one system a file",
    ),
    Layout(
        "candidates",
        'JSON-lines of `{"query": {"qid", "text"}, "candidates": [{"docid", "score", "doc"}]}`; '
        "brings the texts of passages and of new queries",
        "Anserini, Pyserini, RankLLM, umbrela",
        written="candidates",
        lossless="yes",
    ),
    Layout(
        "pool",
        "passages with their query, which puts them into its pool: JSON-lines, CSV or TSV of "
        "`query_id` or `query` (its text), `passage_id` and `text`, perhaps `title`",
        "people",
    ),
    Layout(
        "qrels",
        "`query 0 passage relevance`; `query-id`, `corpus-id`, `score`, separated by tabs",
        "trec_eval, BEIR, MS MARCO",
        written="judgments",
        lossless="yes, but the second column; BEIR's comes out as trec_eval's",
    ),
    Layout("ranx-qrels", "one JSON object, query → passage → whole number", "ranx"),
    Layout(
        "responses",
        "what systems generated, JSON-lines; see [inputs.md](inputs.md)",
        "TREC RAG, RAGTIME, AutoJudge, plain answers",
    ),
    Layout(
        "umbrela",
        "JSON-lines of `query`, `passage` and `judgment` (0 to 3), perhaps `model`, `prediction`, "
        "`result_status`; grades of the query and the passage that have these texts",
        "castorini's umbrela",
    ),
    Layout(
        "ragas",
        "`user_input` (`question`), `retrieved_contexts` (`contexts`), `response` (`answer`), "
        "`reference` (`ground_truth`)",
        "ragas",
    ),
    Layout(
        "deepeval", "`input`, `retrieval_context`, `actual_output`, `expected_output`", "DeepEval"
    ),
    Layout(
        "promptfoo",
        "what `promptfoo eval --output` writes as .json or .jsonl: `vars`, `provider`, `prompt`, "
        "`response`",
        "promptfoo",
    ),
    Layout(
        "mtrag",
        "`task_id`, `input` (one question), `contexts`, `predictions`, `targets`; conversations "
        "are refused",
        "MTRAG",
    ),
    Layout("langsmith", "`inputs`, `outputs`, `reference_outputs`", "LangSmith"),
    Layout(
        "langfuse",
        "observations: `traceId` (`trace_id`), `type`, `input`, `output`, in lines, in an array, "
        "or under `observations` or `data` of an object",
        "Langfuse",
    ),
    Layout("openinference", "spans with `attributes`, `context` and `span_kind`", "Phoenix, Arize"),
    Layout(
        "trulens-events",
        "`record_attributes`, `resource_attributes` and `trace` of every span",
        "TruLens",
    ),
    Layout(
        "autorag",
        "tables of `query`, `retrieval_gt`, `generation_gt`, and results with "
        "`retrieved_contents`, `generated_texts`",
        "AutoRAG",
    ),
    Layout("trulens", "`record_id`, `app_name`, `input`, `output`: answers alone", "TruLens"),
    Layout(
        "answers",
        "a question with contexts or an answer under usual names, as a table or as JSON; see below",
        "people",
    ),
    Layout("texts", "a folder of `SYSTEM/QUERY.txt`, .md or .html", "people"),
    Layout("car-topics", "outlines and pages, CBOR", "TREC CAR"),
    Layout("car-paragraphs", "paragraphs, CBOR", "TREC CAR"),
    Layout("dataset", "`irds:ID`, topics and judgments of a dataset", "ir_datasets"),
    Layout(
        "decisions",
        "what people decided about cells: a tab-separated table with a header",
        "exampp",
        written="decisions",
        lossless="yes",
    ),
    Layout(
        "leaderboard",
        "JSON dictionary system → rank; two columns; tables of scores, see "
        "[analysis.md](analysis.md)",
        "trec_eval, ir_measures, AutoJudge, Autograding Workbench",
        read="`--official`, `--scores`",
    ),
)


def markdown() -> str:
    """The matrix as a table in Markdown."""
    head = "| kind (`--as`) | what it looks like | source | read | `export --format` | lossless |"
    lines = [head, "|---|---|---|---|---|---|"]
    for one in MATRIX:
        written = ", ".join(f"`{value}`" for value in (one.written, *one.also) if value)
        cells = (f"`{one.kind}`", one.looks, one.source, one.read, written, one.lossless)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
