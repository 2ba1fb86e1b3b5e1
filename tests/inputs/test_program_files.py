"""The forms in which programs write questions, contexts, answers and references, made by hand."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import exampp
from exampp.errors import InputError

ASKED, CATS, LIGHT, SAID, KEY = (
    "What do plants need?",
    "Cats sleep.",
    "Plants need light.",
    "Light, of course.",
    "light",
)
DOORS = Path(__file__).parents[3] / "shared" / "data" / "doors"


class Contents(NamedTuple):
    """The contents of a collection, by texts."""

    queries: Sequence[str] = (ASKED,)
    contexts: Mapping[str, Sequence[str]] = {}
    answers: Mapping[str, Sequence[str]] = {}
    references: Sequence[str] = ()
    judgments: Sequence[tuple[str, int]] = ()
    nuggets: Sequence[tuple[str, float]] = ()


class Form(NamedTuple):
    """A file of a program: name, content, kind, what is in it, and the fields that are not read.

    `holds` names the parts: a(nswer), c(ontexts), r(eference); a `Contents` says other ones.
    """

    name: str
    content: str
    kind: str
    holds: str | Contents
    unread: Sequence[str] = ()
    system: str = "log"

    @property
    def expected(self) -> Contents:
        """The contents of a collection of this file alone."""
        if isinstance(self.holds, Contents):
            return self.holds
        of_contexts = f"{self.system}:contexts" if "a" in self.holds else self.system
        return Contents(
            contexts={of_contexts: (CATS, LIGHT)} if "c" in self.holds else {},
            answers={self.system: (SAID,)} if "a" in self.holds else {},
            references=(KEY,) if "r" in self.holds else (),
        )


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(*rows: Mapping[str, Any]) -> str:
    """A CSV file; lists and objects are JSON in cells."""
    out = io.StringIO()
    writer = csv.DictWriter(out, dict.fromkeys(name for row in rows for name in row))
    writer.writeheader()
    for row in rows:
        cells = {
            name: json.dumps(value) if isinstance(value, list | dict) else value
            for name, value in row.items()
        }
        writer.writerow(cells)
    return out.getvalue()


def whole(value: Any) -> str:
    return json.dumps(value, indent=1)


def otlp(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": one}} for name, one in attributes.items()]


DOCUMENTS = [{"page_content": CATS}, {"page_content": LIGHT}]
CASE = {
    "name": "test_case_0",
    "input": ASKED,
    "actualOutput": SAID,
    "expectedOutput": KEY,
    "retrievalContext": [CATS, LIGHT],
    "success": True,
    "metricsData": [{"name": "Faithfulness", "score": 0.9}],
}
TEST_RUN = {
    "testRunData": {"testCases": [CASE], "conversationalTestCases": [], "testPassed": 1},
    "testRunLink": "",
}
GOLDEN = {"input": ASKED, "actual_output": None, "expected_output": KEY, "retrieval_context": None}
OPEN = {
    "openinference.span.kind": "CHAIN",
    "input.value": json.dumps({"question": ASKED}),
    "input.mime_type": "application/json",
    "output.value": SAID,
}
FOUND = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": ASKED,
    "retrieval.documents.0.document.content": CATS,
    "retrieval.documents.1.document.content": LIGHT,
}
OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": otlp({"service.name": "rag"})},
            "scopeSpans": [
                {
                    "scope": {"name": "oi"},
                    "spans": [
                        {"traceId": "a", "spanId": "1", "name": "x", "attributes": otlp(OPEN)},
                        {
                            "traceId": "a",
                            "spanId": "2",
                            "parentSpanId": "1",
                            "name": "y",
                            "attributes": otlp(FOUND),
                        },
                    ],
                }
            ],
        }
    ]
}
GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": ASKED,
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": SAID,
}
ONE_SPAN = {"traceId": "a", "spanId": "1", "name": "chat", "attributes": otlp(GENAI)}
PHOENIX: list[dict[str, Any]] = [
    {
        "context.span_id": "1",
        "name": "query",
        "span_kind": "CHAIN",
        "parent_id": "",
        "context.trace_id": "t",
        "attributes.input.value": ASKED,
        "attributes.output.value": SAID,
        "attributes.retrieval.documents": "",
    },
    {
        "context.span_id": "2",
        "name": "retrieve",
        "span_kind": "RETRIEVER",
        "parent_id": "1",
        "context.trace_id": "t",
        "attributes.input.value": ASKED,
        "attributes.output.value": "",
        "attributes.retrieval.documents": [
            {"document.content": CATS},
            {"document.content": LIGHT},
        ],
    },
]
TRACE_ROW = {
    "id": "t1",
    "timestamp": "2026-01-01T00:00:00Z",
    "name": "rag",
    "userId": "",
    "sessionId": "",
    "input": ASKED,
    "output": SAID,
    "latency": 1.2,
    "totalCost": 0.1,
    "scores": {"quality": [1]},
}
RUNS: list[dict[str, Any]] = [
    {
        "id": "r1",
        "trace_id": "t1",
        "parent_run_id": None,
        "run_type": "chain",
        "name": "rag",
        "inputs": {"question": ASKED},
        "outputs": {"answer": SAID},
    },
    {
        "id": "r2",
        "trace_id": "t1",
        "parent_run_id": "r1",
        "run_type": "retriever",
        "name": "store",
        "inputs": {"query": "plants"},
        "outputs": {"documents": DOCUMENTS},
    },
]
MLFLOW = {
    "trace_id": "tr-1",
    "request": {"question": ASKED},
    "response": SAID,
    "state": "OK",
    "spans": [
        {
            "name": "rag",
            "span_id": "1",
            "parent_id": None,
            "attributes": {"mlflow.spanType": "CHAIN"},
        },
        {
            "name": "store",
            "span_id": "2",
            "parent_id": "1",
            "attributes": {"mlflow.spanType": "RETRIEVER", "mlflow.spanOutputs": DOCUMENTS},
        },
    ],
}
MLFLOW_2 = {
    "info": {"request_id": "tr-1", "status": "OK"},
    "data": {
        "request": json.dumps({"question": ASKED}),
        "response": json.dumps(SAID),
        "spans": [
            {
                "name": "store",
                "context": {"span_id": "2", "trace_id": "x"},
                "parent_id": "1",
                "attributes": {
                    "mlflow.spanType": json.dumps("RETRIEVER"),
                    "mlflow.spanOutputs": json.dumps(DOCUMENTS),
                },
            },
        ],
    },
}
MLFLOW_3 = {
    "info": {"trace_id": "tr-1", "request_preview": '{"question": "What d', "state": "OK"},
    "data": {
        "spans": [
            {
                "trace_id": "x",
                "span_id": "1",
                "parent_span_id": None,
                "name": "rag",
                "attributes": {
                    "mlflow.spanType": json.dumps("CHAIN"),
                    "mlflow.spanInputs": json.dumps({"question": ASKED}),
                    "mlflow.spanOutputs": json.dumps(SAID),
                },
            },
            {
                "trace_id": "x",
                "span_id": "2",
                "parent_span_id": "1",
                "name": "store",
                "attributes": {
                    "mlflow.spanType": json.dumps("RETRIEVER"),
                    "mlflow.spanInputs": json.dumps({"query": "plants"}),
                    "mlflow.spanOutputs": json.dumps(DOCUMENTS),
                },
            },
        ]
    },
}
MLFLOW_TABLE = {
    "columns": ["inputs", "outputs", "context", "ground_truth", "faithfulness/v1/score"],
    "data": [[ASKED, SAID, [CATS, LIGHT], KEY, 5]],
}
INSPECT = {
    "id": 1,
    "epoch": 1,
    "input": ASKED,
    "target": KEY,
    "messages": [{"role": "user", "content": ASKED}],
    "output": {"model": "gpt", "completion": SAID},
    "scores": {},
}
INSPECT_LOG: dict[str, Any] = {
    "version": 2,
    "eval": {"task": "rag", "model": "openai/gpt"},
    "samples": [INSPECT],
}
BRAINTRUST = {
    "id": "1",
    "span_id": "a",
    "root_span_id": "a",
    "input": {"question": ASKED},
    "output": SAID,
    "expected": KEY,
    "metadata": {"model": "m"},
    "scores": {"Factuality": 1},
}
FLASHRAG = {
    "id": "test_0",
    "question": ASKED,
    "golden_answers": [KEY],
    "output": {
        "retrieval_result": [{"id": "d1", "contents": CATS}, {"id": "d2", "contents": LIGHT}],
        "prompt": "Answer",
        "pred": SAID,
        "metric_score": {"em": 0.0},
    },
}
HEALTHBENCH = {
    "prompt_id": "p1",
    "prompt": [{"role": "user", "content": ASKED}],
    "rubrics": [
        {"criterion": "Names light", "points": 7, "tags": []},
        {"criterion": "Names cats", "points": -5, "tags": []},
    ],
    "ideal_completions_data": None,
}
RUBRIC = Contents(nuggets=(("Names light", 7.0), ("Names cats", -5.0)))
ROW = {"user_input": ASKED, "retrieved_contexts": [CATS, LIGHT], "response": SAID, "reference": KEY}

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
TRANSCRIPT = f"user: Hi\nassistant: Hello\nuser: {ASKED}"
JUDGED = Contents(judgments=(("a", 3), ("b", 0)))

FORMS: dict[str, Form] = {
    "DeepEval, its latest test run": Form(
        "log.json", json.dumps(TEST_RUN), "deepeval", "acr", ["metricsData"]
    ),
    "DeepEval, on many lines": Form(
        "log.json", whole(TEST_RUN), "deepeval", "acr", ["metricsData"]
    ),
    "DeepEval, a test run alone": Form(
        "log.json", whole({"testCases": [CASE]}), "deepeval", "acr", ["metricsData"]
    ),
    "DeepEval, goldens": Form("log.json", whole([GOLDEN]), "deepeval", "r"),
    "DeepEval, goldens as a table": Form("log.csv", table(GOLDEN), "deepeval", "r"),
    "Phoenix, spans as a table": Form("log.csv", table(*PHOENIX), "openinference", "ac"),
    "OTLP": Form("log.json", json.dumps(OTLP), "openinference", "ac"),
    "OTLP, on many lines": Form("log.json", whole(OTLP), "openinference", "ac"),
    "OTLP, a line per export": Form("log.jsonl", lines(OTLP), "openinference", "ac"),
    "OTLP, GenAI attributes": Form(
        "log.json",
        whole({"resourceSpans": [{"scopeSpans": [{"spans": [ONE_SPAN]}]}]}),
        "openinference",
        "a",
        ["attributes.gen_ai.operation"],
    ),
    "Langfuse, the table of traces": Form(
        "log.json", whole([TRACE_ROW]), "langfuse-traces", "a", ["scores"]
    ),
    "Langfuse, the table of traces as CSV": Form(
        "log.csv",
        table({**TRACE_ROW, "input": {"query": ASKED}, "output": {"answer": SAID}}),
        "langfuse-traces",
        "a",
        ["scores"],
    ),
    "LangSmith, runs and their children": Form("log.jsonl", lines(*RUNS), "langsmith-runs", "ac"),
    "LangSmith, runs in runs": Form(
        "log.json",
        whole([{**RUNS[0], "child_runs": [{**RUNS[1], "child_runs": []}]}]),
        "langsmith-runs",
        "ac",
    ),
    "LangSmith, the table of an experiment": Form(
        "log.csv",
        table(
            {
                "id": "r1",
                "inputs": {"question": ASKED},
                "reference_outputs": {"answer": KEY},
                "outputs": {"answer": SAID, "contexts": [CATS, LIGHT]},
                "status": "success",
            }
        ),
        "langsmith",
        "acr",
        ["status"],
    ),
    "LangSmith, messages": Form(
        "log.jsonl",
        lines(
            {
                "inputs": {"messages": [{"role": "user", "content": ASKED}]},
                "outputs": {"messages": [{"role": "assistant", "content": SAID}]},
            }
        ),
        "langsmith",
        "a",
    ),
    "MLflow, traces": Form("log.json", json.dumps([MLFLOW]), "mlflow-traces", "ac"),
    "MLflow, traces of version 2": Form("log.jsonl", lines(MLFLOW_2), "mlflow-traces", "ac"),
    "MLflow, traces of version 3": Form(
        "log.json", whole({"traces": [MLFLOW_3]}), "mlflow-traces", "ac"
    ),
    "MLflow, a table of results": Form(
        "log.json", json.dumps(MLFLOW_TABLE), "mlflow-results", "acr", ["faithfulness/v1/score"]
    ),
    "Inspect, a log": Form(
        "log.json", whole(INSPECT_LOG), "inspect", "ar", system="openai/gpt"
    ),
    "Inspect, its samples": Form("log.jsonl", lines(INSPECT), "inspect", "ar", system="gpt"),
    "Braintrust": Form(
        "log.jsonl", lines(BRAINTRUST), "braintrust", "ar", ["metadata", "scores"]
    ),
    "FlashRAG": Form(
        "log.json", json.dumps([FLASHRAG]), "flashrag", "acr", ["output.metric_score"]
    ),
    "HealthBench": Form("log.jsonl", lines(HEALTHBENCH), "healthbench", RUBRIC),
    "ResearchRubrics": Form(
        "log.json",
        whole(
            [
                {
                    "prompt": ASKED,
                    "sample_id": "s1",
                    "rubrics": [{"criterion": "Names light", "weight": 7.0, "axis": "explicit"},
                                {"criterion": "Names cats", "weight": -5.0}],
                }
            ]
        ),
        "healthbench",
        RUBRIC,
    ),
    "LangSmith, a question with its history": Form(
        "log.jsonl",
        lines({"inputs": {"question": ASKED, "chat_history": TALK}, "outputs": {"answer": SAID}}),
        "langsmith",
        Contents((TRANSCRIPT,), answers={"log": (SAID,)}),
    ),
    "ragas, a conversation with its answer": Form(
        "log.jsonl",
        lines(
            {
                "user_input": [
                    *TALK,
                    {"type": "human", "content": ASKED},
                    {"type": "ai", "content": SAID},
                ],
                "retrieved_contexts": [CATS, LIGHT],
            }
        ),
        "ragas",
        Contents((TRANSCRIPT,), {"log:contexts": (CATS, LIGHT)}, {"log": (SAID,)}),
    ),
    "LangChain, passages of one source": Form(
        "log.jsonl",
        lines(
            {
                "query": ASKED,
                "result": SAID,
                "source_documents": [
                    {"page_content": text, "metadata": {"source": "a.pdf"}}
                    for text in (CATS, LIGHT)
                ],
            }
        ),
        "",
        "ac",
    ),
    "LlamaIndex, nodes": Form(
        "log.jsonl",
        lines(
            {
                "query": ASKED,
                "response": SAID,
                "source_nodes": [
                    {"node": {"id_": str(at), "text": text}, "score": 0.5}
                    for at, text in enumerate((CATS, LIGHT))
                ],
            }
        ),
        "",
        "ac",
    ),
    "ragas, a conversation": Form(
        "log.jsonl",
        lines({**ROW, "user_input": [*TALK, {"role": "user", "content": ASKED}]}),
        "ragas",
        Contents(
            (TRANSCRIPT,),
            {"log:contexts": (CATS, LIGHT)},
            {"log": (SAID,)},
            (KEY,),
        ),
    ),
    "MTRAG, a conversation": Form(
        "log.jsonl",
        lines(
            {
                "conversation_id": "c",
                "task_id": "c<::>2",
                "turn": "2",
                "input": [
                    {"speaker": "user", "text": "Hi"},
                    {"speaker": "agent", "text": "Hello"},
                    {"speaker": "user", "text": ASKED},
                ],
                "contexts": [{"document_id": "d1", "text": CATS}],
                "predictions": [{"text": SAID}],
            }
        ),
        "mtrag",
        Contents((TRANSCRIPT,), {"log:contexts": (CATS,)}, {"log": (SAID,)}),
        ["conversation_id", "turn"],
    ),
    "Phoenix, messages of a model": Form(
        "log.jsonl",
        lines(
            {
                "name": "ChatCompletion",
                "context": {"trace_id": "1", "span_id": "2"},
                "span_kind": "LLM",
                "parent_id": None,
                "attributes": {
                    "llm.input_messages": [
                        {"message.role": "system", "message.content": "Be brief."},
                        {"message.role": "user", "message.content": ASKED},
                    ],
                    "llm.output_messages": [
                        {"message.role": "assistant", "message.content": SAID}
                    ],
                },
            }
        ),
        "openinference",
        "a",
    ),
    "Phoenix, an experiment": Form(
        "log.csv",
        table({"example_id": 1, "input_question": ASKED, "output_answer": SAID,
               "reference_answer": KEY}),
        "phoenix-experiment",
        "ar",
    ),
    "promptfoo, a variable of another name": Form(
        "log.json",
        whole(
            {
                "results": {
                    "version": 3,
                    "results": [
                        {
                            "vars": {"message": ASKED},
                            "promptIdx": 0,
                            "provider": {"id": "p"},
                            "response": {"output": SAID},
                        }
                    ],
                }
            }
        ),
        "promptfoo",
        "a",
        ["$.version"],
    ),
    "Azure, rows of an evaluation": Form(
        "log.json",
        whole(
            {
                "rows": [
                    {
                        "inputs.query": ASKED,
                        "inputs.response": SAID,
                        "inputs.ground_truth": KEY,
                        "outputs.groundedness.score": 5,
                    }
                ],
                "metrics": {"x": 1},
                "studio_url": None,
            }
        ),
        "azure",
        "ar",
        ["outputs.groundedness.score"],
    ),
    "promptflow": Form(
        "log.jsonl",
        lines({"inputs.question": ASKED, "outputs.answer": SAID, "line_number": 0}),
        "azure",
        "a",
    ),
    "Bedrock": Form(
        "log.jsonl",
        lines(
            {
                "conversationTurns": [
                    {
                        "prompt": {"content": [{"text": ASKED}]},
                        "referenceResponses": [{"content": [{"text": KEY}]}],
                        "output": {
                            "text": SAID,
                            "modelIdentifier": "m",
                            "retrievedPassages": {
                                "retrievalResults": [
                                    {"content": {"text": CATS}},
                                    {"content": {"text": LIGHT}},
                                ]
                            },
                        },
                    }
                ]
            }
        ),
        "bedrock",
        "acr",
    ),
    "OpenAI evals": Form(
        "log.jsonl",
        lines({"item": {"question": ASKED, "reference": KEY}, "sample": {"output_text": SAID}}),
        "openai-evals",
        "ar",
    ),
    "lm-eval, samples": Form(
        "log.jsonl",
        lines(
            {
                "doc_id": 0,
                "doc": {"question": ASKED},
                "target": KEY,
                "arguments": [["p", ""]],
                "resps": [[SAID]],
                "filtered_resps": [SAID],
                "exact_match": 0.5,
            }
        ),
        "lm-eval",
        "ar",
        ["exact_match"],
    ),
    "open-rag-eval": Form(
        "log.csv",
        table(
            {"query_id": 1, "query": ASKED, "query_run": 1, "passage_id": "[1]",
             "passage": CATS, "generated_answer": SAID},
            {"query_id": 1, "query": ASKED, "query_run": 1, "passage_id": "[2]",
             "passage": LIGHT, "generated_answer": ""},
        ),
        "open-rag-eval",
        "ac",
    ),
    "OpenSearch, judgments": Form(
        "log.json",
        whole(
            {
                "judgmentRatings": [
                    {
                        "query": ASKED,
                        "ratings": [{"docId": "a", "rating": "3.0"}, {"docId": "b", "rating": "0"}],
                    }
                ]
            }
        ),
        "judgment-lists",
        JUDGED,
    ),
    "Elasticsearch, rated documents": Form(
        "log.json",
        whole(
            {
                "requests": [
                    {
                        "id": "q1",
                        "template_id": "t",
                        "params": {"query_string": ASKED},
                        "ratings": [
                            {"_index": "i", "_id": "a", "rating": 3},
                            {"_index": "i", "_id": "b", "rating": 0},
                        ],
                    }
                ]
            }
        ),
        "judgment-lists",
        JUDGED,
        ["id"],
    ),
    "ratings by query": Form(
        "log.jsonl", lines({"query": ASKED, "ratings": {"a": 3, "b": 0}}), "judgment-lists", JUDGED
    ),
    "relevant ids by query": Form(
        "log.jsonl",
        lines({"query": ASKED, "relevant_ids": ["a"]}),
        "judgment-lists",
        Contents(judgments=(("a", 1),)),
    ),
    "a table of judgments": Form(
        "log.csv", f"qid,docid,grade,query\n7,a,3,{ASKED}\n7,b,0,{ASKED}\n", "", JUDGED
    ),
    "benchmark-qed": Form(
        "log.json",
        whole([{"question_id": "1", "question_text": ASKED,
                "assertions": [{"statement": "Names light", "score": 9}]}]),
        "healthbench",
        Contents(nuggets=(("Names light", 1.0),)),
    ),
    "a test set of ragas": Form(
        "log.jsonl",
        lines({"user_input": ASKED, "reference": KEY, "synthesizer_name": "x"}),
        "",
        "r",
        ["synthesizer_name"],
    ),
    "query and expected": Form("log.csv", f"query,expected\n{ASKED},{KEY}\n", "", "r"),
    "prompt and reference": Form("log.csv", f"prompt,reference\n{ASKED},{KEY}\n", "", "r"),
    "golden answers": Form(
        "log.jsonl", lines({"question": ASKED, "golden_answers": [KEY]}), "", "r"
    ),
    "question and answer": Form("log.csv", f"question,answer\n{ASKED},{KEY}\n", "", "r"),
    "question and answers": Form(
        "log.jsonl", lines({"question": ASKED, "answers": [KEY]}), "", "r"
    ),
    "DeepEval, results in Python": Form(
        "log.json",
        whole({"test_results": [{"name": "x", "success": True, "input": ASKED,
                                 "actual_output": SAID, "retrieval_context": [CATS, LIGHT]}]}),
        "deepeval",
        "ac",
    ),
    "Langfuse, a page of traces": Form(
        "log.json", whole({"data": [TRACE_ROW], "meta": {"page": 1}}), "langfuse-traces", "a",
        ["scores", "$.meta"],
    ),
    "OpenTelemetry, printed spans": Form(
        "log.json",
        "".join(
            json.dumps(
                {
                    "name": "x",
                    "context": {"trace_id": "t", "span_id": number},
                    "kind": "INTERNAL",
                    "parent_id": parent,
                    "attributes": attributes,
                },
                indent=4,
            )
            + "\n"
            for number, parent, attributes in (("2", "1", FOUND), ("1", None, OPEN))
        ),
        "openinference",
        "ac",
    ),
    "Inspect, two epochs": Form(
        "log.json",
        whole({**INSPECT_LOG, "samples": [INSPECT, {**INSPECT, "epoch": 2}]}),
        "inspect",
        Contents(
            answers={"openai/gpt/1": (SAID,), "openai/gpt/2": (SAID,)}, references=(KEY,)
        ),
    ),
    "Braintrust, a trace": Form(
        "log.jsonl",
        lines(
            {**BRAINTRUST, "span_parents": None, "metadata": None, "scores": None},
            {
                "span_id": "b",
                "root_span_id": "a",
                "span_parents": ["a"],
                "input": "plants",
                "output": [{"content": CATS}, {"content": LIGHT}],
                "span_attributes": {"name": "search", "type": "retriever"},
            },
        ),
        "braintrust",
        "acr",
    ),
    "ragas, a result with its data": Form(
        "log.json", whole({"scores": [{"faithfulness": 1}], "dataset": [ROW]}), "ragas", "acr",
        ["$.scores"],
    ),
    "question and answer, as lines": Form(
        "log.jsonl", lines({"question": ASKED, "answer": KEY}), "", "r"
    ),
    "a field per system": Form(
        "log.json",
        whole([{"question": ASKED, "naive": {"answer": SAID, "contexts": [CATS, LIGHT]},
                "graphrag": {"answer": SAID}}]),
        "",
        Contents(
            contexts={"naive:contexts": (CATS, LIGHT)},
            answers={"naive": (SAID,), "graphrag": (SAID,)},
        ),
    ),
    "answers of two systems": Form(
        "log.jsonl",
        lines({"query": ASKED, "v_answers": SAID, "g_answers": SAID}),
        "",
        Contents(answers={"v_answers": (SAID,), "g_answers": (SAID,)}),
    ),
    "numbered models": Form(
        "log.csv",
        f'question,model1,model2\n{ASKED},"{SAID}","{SAID}"\n',
        "",
        Contents(answers={"model1": (SAID,), "model2": (SAID,)}),
    ),
    "RAGChecker": Form(
        "log.json",
        whole(
            {
                "results": [
                    {
                        "query_id": "1",
                        "query": ASKED,
                        "gt_answer": KEY,
                        "response": SAID,
                        "retrieved_context": [
                            {"doc_id": "d1", "text": CATS},
                            {"doc_id": "d2", "text": LIGHT},
                        ],
                    }
                ]
            }
        ),
        "answers",
        "acr",
    ),
    "records by their ids": Form(
        "log.json",
        whole({"q1": {"question": ASKED, "answer": SAID, "contexts": [CATS, LIGHT]},
               "q2": {"question": "Why?", "answer": SAID, "contexts": [CATS]}}),
        "ragas",
        Contents((ASKED, "Why?"), {"log:contexts": (CATS, LIGHT, CATS)}, {"log": (SAID, SAID)}),
        ["$.key"],
    ),
    "ragas, column by column": Form(
        "log.json",
        json.dumps({name: {"0": value} for name, value in ROW.items()}),
        "ragas",
        "acr",
    ),
    "ragas, lists of columns": Form(
        "log.json", whole({name: [value] for name, value in ROW.items()}), "ragas", "acr"
    ),
    "ragas, contexts as numpy writes them": Form(
        "log.csv",
        table({"user_input": ASKED, "retrieved_contexts": f"['{CATS}'\n '{LIGHT}']",
               "response": SAID, "reference": KEY}),
        "ragas",
        "acr",
    ),
    "Braintrust, documents in the output": Form(
        "log.jsonl",
        lines({**BRAINTRUST, "output": {"answer": SAID, "documents": [CATS, LIGHT]},
               "metadata": None, "scores": None}),
        "braintrust",
        "acr",
    ),
    "Langfuse, results that are no passages": Form(
        "log.jsonl",
        lines({"traceId": "t", "type": "SPAN", "startTime": "x", "input": ASKED,
               "output": {"answer": SAID, "results": [0.5, {"score": 1}]}}),
        "langfuse",
        "a",
        ["startTime"],
    ),
    "TruLens, the table of records": Form(
        "log.csv",
        table({"app_id": "rag", "record_id": "r", "input": json.dumps(ASKED),
               "output": json.dumps(SAID)}),
        "trulens",
        "a",
        ["record_id"],
        system="rag",
    ),
    "Giskard, a report": Form(
        "log.csv",
        table({"question": ASKED, "reference_answer": KEY, "agent_answer": SAID,
               "correctness": "True"}),
        "answers",
        "ar",
        ["correctness"],
    ),
    "LangChain in JavaScript": Form(
        "log.jsonl",
        lines({"query": ASKED, "result": SAID,
               "source_documents": [{"pageContent": CATS}, {"pageContent": LIGHT}]}),
        "answers",
        "ac",
    ),
    "LangSmith, a call of a tool between": Form(
        "log.jsonl",
        lines({"inputs": {"messages": [{"role": "system", "content": "Be kind."},
                                       {"role": "user", "content": ASKED}]},
               "outputs": {"messages": [
                   {"role": "user", "content": ASKED},
                   {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                   {"role": "tool", "content": CATS},
                   {"role": "assistant", "content": SAID}]}}),
        "langsmith",
        "a",
    ),
    "ragas, under an unknown key": Form(
        "log.json", whole({"run": "x", "detailed_results": [ROW]}), "ragas", "acr", ["$.run"]
    ),
    "ragas, lists in lists": Form(
        "log.json", whole({"runs": [{"name": "x", "samples": [ROW]}]}), "ragas", "acr", ["$.name"]
    ),
}  # fmt: skip


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def contents(exam: exampp.Collection, folder: Path) -> Contents:
    """Return what a collection holds; answers are the rankings of a system of one passage."""
    counts = {str(thing): count for thing, count in exam.contents().rows}
    texts: dict[str, str] = {}
    rankings: dict[str, list[str]] = {}
    if counts["passages"]:
        exam.export(folder / "texts.jsonl", "passages")
        rows = map(json.loads, (folder / "texts.jsonl").read_text().splitlines())
        texts = {row["passage_id"]: row["text"] for row in rows}
    if counts["systems"]:
        exam.export(folder / "out.run", "runs")
        for line in (folder / "out.run").read_text().splitlines():
            _, _, passage, _, _, system = line.split()
            rankings.setdefault(system, []).append(texts[passage])
    items = [item for entry in exam.bank().texts().entries for item in entry.items]
    judged: list[tuple[str, int]] = []
    if counts["judgments"]:
        exam.export(folder / "out.qrels", "judgments")
        rows_of_qrels = map(str.split, (folder / "out.qrels").read_text().splitlines())
        judged = [(passage, int(label)) for _, _, passage, label in rows_of_qrels]
    said = {system: tuple(some) for system, some in rankings.items() if set(some) <= {SAID}}
    return Contents(
        tuple(exam.query_texts().values()),
        {system: tuple(some) for system, some in rankings.items() if system not in said},
        said,
        tuple(answer for item in items for answer in item.answers),
        tuple(judged),
        tuple((item.text, item.weight) for item in items if item.kind == "nugget"),
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_rightly(tmp_path: Path, empty_exam: exampp.Collection, name: str) -> None:
    form = FORMS[name]
    (tmp_path / form.name).write_text(form.content)
    report = empty_exam.import_files(tmp_path / form.name)
    assert contents(empty_exam, tmp_path) == form.expected
    unread = [field for fields in report.unread.values() for field in fields]
    assert unread == [*form.unread]
    # the preset that was detected is the one that can be named
    assert (
        not form.kind or empty_exam.import_files(tmp_path / form.name, kind=form.kind).changes == 0
    )


@pytest.mark.parametrize("key", ["source", "doc_id"])
def test_an_id_of_several_texts_is_the_source_of_passages(
    tmp_path: Path, empty_exam: exampp.Collection, key: str
) -> None:
    """Passages of one file, in one record or over several, and one text of two files."""

    def record(question: str, *passages: tuple[str, str]) -> dict[str, Any]:
        contexts = [{"content": text, key: name} for name, text in passages]
        return {"question": question, "answer": SAID, "contexts": contexts}

    (tmp_path / "log.jsonl").write_text(
        lines(record(ASKED, ("a.pdf", CATS)), record("Why?", ("a.pdf", LIGHT), ("b.pdf", CATS)))
    )
    report = empty_exam.import_files(tmp_path / "log.jsonl")
    assert [one.split(": ")[1] for one in report.remarks] == [f"{key} 'a.pdf' has several texts"]
    assert contents(empty_exam, tmp_path).contexts == {"log:contexts": (CATS, LIGHT, CATS)}
    rows = map(json.loads, (tmp_path / "texts.jsonl").read_text().splitlines())
    found = {row["passage_id"]: row.get("source") for row in rows}
    assert found == {digest(CATS): "a.pdf", digest(LIGHT): "a.pdf", digest(SAID): None}


def test_passages_have_the_first_id_that_is_theirs(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    contexts = [
        {"document_id": 7, "chunk_id": f"7-{at}", "text": text, "source": "a.pdf"}
        for at, text in enumerate((CATS, LIGHT))
    ]
    (tmp_path / "log.jsonl").write_text(lines({"question": ASKED, "retrieved_contexts": contexts}))
    empty_exam.import_files(tmp_path / "log.jsonl")
    empty_exam.export(tmp_path / "out.jsonl", "passages")
    rows = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [(row["passage_id"], row["source"]) for row in rows] == [("7-0", "7"), ("7-1", "7")]


REEFS = "What builds reefs?"
CORAL, BUILT = "Coral animals build reefs.", "Reefs are built by animals."


def _of_reefs(
    file: str, contexts: Sequence[str] = (), answer: str = CORAL, key: str = "", system: str = ""
) -> Contents:
    name = system or file.partition(".")[0]
    return Contents(
        (REEFS,),
        {**({f"{name}:contexts": tuple(contexts)} if contexts else {}), name: (answer,)},
        references=(key,) if key else (),
    )


IN_DOORS: dict[str, Contents] = {
    "braintrust.jsonl": _of_reefs("braintrust", key="corals"),
    "deepeval-latest_test_run.json": Contents(
        ("What was the amount of the unrecognized charge?", "What did the merchant say?"),
        {
            "deepeval-latest_test_run:contexts": (
                "The charge was $300.",
                "It posted on the third.",
                "An order was placed and delivered.",
            ),
            "deepeval-latest_test_run": ("Three hundred dollars even.", "No purchase."),
        },
        references=("$300, posted on the third.", "An order was placed."),
    ),
    "flashrag-intermediate_data.json": _of_reefs(
        "flashrag-intermediate_data", ['"Reef"\nReefs are built by animals.'], key="corals"
    ),
    "healthbench.jsonl": Contents(
        (REEFS,),
        nuggets=(
            ("States that animals build reefs", 7.0),
            ("Claims that plants build reefs", -5.0),
        ),
    ),
    "inspect-log.json": _of_reefs("", key="corals", system="openai/gpt"),
    "langfuse-traces-table.json": _of_reefs("langfuse-traces-table"),
    "langsmith-runs.jsonl": _of_reefs("langsmith-runs", [BUILT]),
    "langsmith-ui.csv": _of_reefs("langsmith-ui", [BUILT], key="Corals"),
    "mlflow-eval_results_table.json": _of_reefs("mlflow-eval_results_table", [BUILT], key="Corals"),
    "mlflow-traces.json": _of_reefs("mlflow-traces", [BUILT]),
    "nuggetizer-retrieval-assignments.jsonl": Contents(
        ("What is Python?",),
        nuggets=(
            ("Python is a programming language", 1.0),
            ("Python supports multithreading", 0.5),
        ),
    ),
    "otlp.json": _of_reefs("otlp", [BUILT, "Fish live on reefs."]),
    "phoenix-mime0.json": _of_reefs("phoenix-mime0", [BUILT], "Corals build reefs."),
    "phoenix-msg.json": _of_reefs("phoenix-msg", [BUILT], "Corals build."),
    "phoenix-spans.csv": _of_reefs("phoenix-spans"),
    "quepid.csv": Contents(("what builds reefs",), judgments=(("a", 3), ("b", 0))),
}


@pytest.mark.skipif(not DOORS.is_dir(), reason="no shared data")
@pytest.mark.parametrize("name", IN_DOORS)
def test_files_of_other_people_are_read_rightly(
    tmp_path: Path, empty_exam: exampp.Collection, name: str
) -> None:
    empty_exam.import_files(DOORS / name)
    assert contents(empty_exam, tmp_path) == IN_DOORS[name]
    assert IN_DOORS.keys() | {"README.md"} == {one.name for one in DOORS.iterdir()}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**HEALTHBENCH, "rubrics": [{"criterion": "x", "points": "7"}]}, "points: must be a num"),
        ({**HEALTHBENCH, "rubrics": [{"points": 7}]}, r"rubrics\[0\]: is an object without text"),
        ({**MLFLOW, "request": {"a": "x", "b": "y"}}, "is an object with the fields a, b"),
    ],
)
def test_a_fault_in_a_record_is_named_by_line_and_field(
    tmp_path: Path, empty_exam: exampp.Collection, row: Any, said: str
) -> None:
    first = {**HEALTHBENCH, "prompt_id": "p0"} if "rubrics" in row else {**MLFLOW, "trace_id": "0"}
    if "rubrics" not in row:
        first["request"] = "Why?"
    (tmp_path / "log.jsonl").write_text(lines(first, row))
    with pytest.raises(InputError, match=rf"log\.jsonl:2.*{said}"):
        empty_exam.import_files(tmp_path / "log.jsonl")
    report = empty_exam.import_files(tmp_path / "log.jsonl", on_error="skip")
    assert (report.skipped, len(empty_exam.query_texts())) == (1, 1)


def test_the_id_of_a_request_is_not_its_query(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    rated = {"id": "q1", "ratings": [{"_id": "a", "rating": 3}]}
    requests = [{**rated, "request": {"query": {"match": {"text": ASKED}}}}]
    (tmp_path / "log.json").write_text(whole({"requests": requests}))
    with pytest.raises(InputError, match=r"log\.json:.*missing question \(any of query, params"):
        empty_exam.import_files(tmp_path / "log.json")
    columns = {"question": "request.query.match.text"}
    empty_exam.import_files(tmp_path / "log.json", columns=columns)
    assert contents(empty_exam, tmp_path) == Contents(judgments=(("a", 3),))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("queries.jsonl", lines({"query_id": "1", "text": " "}, {"query_id": "2", "text": "Why?"})),
        ("queries.csv", "query_id,text\n1,\n2,Why?\n"),
        ("queries.json", '{"1": "", "2": "Why?"}'),
    ],
)
def test_queries_without_text_are_counted(
    tmp_path: Path, empty_exam: exampp.Collection, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    report = empty_exam.import_files(tmp_path / name)
    assert [one.partition(": ")[2] for one in report.remarks] == [
        "1 query without text, the first is '1'"
    ]


def test_a_line_break_in_a_header_is_a_sentence(
    tmp_path: Path, empty_exam: exampp.Collection
) -> None:
    (tmp_path / "log.csv").write_bytes(b'input,actual_output,"expected_output\rWhat?,,light,')
    with pytest.raises(InputError, match=r"log\.csv"):
        empty_exam.import_files(tmp_path / "log.csv")
