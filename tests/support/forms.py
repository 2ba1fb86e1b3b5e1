"""The forms in which programs write questions, contexts, answers and references, made by hand."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import exampp


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


ASKED, CATS, LIGHT, SAID, KEY = (
    "What do plants need?",
    "Cats sleep.",
    "Plants need light.",
    "Light, of course.",
    "light",
)


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

    `holds` names the parts: a(nswer), c(ontexts), r(eference); a `Contents` says other ones. `ids`
    are those of the contexts, and `query_id` that of the query, if they are not made of the texts.
    """

    name: str
    content: str
    kind: str
    holds: str | Contents
    unread: Sequence[str] = ()
    system: str = "log"
    ids: Sequence[str] = ()
    query_id: str = ""

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
MLFLOW_2: dict[str, Any] = {
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

WEAVE = (
    {
        "id": "1",
        "op_name": "predict",
        "trace_id": "t",
        "parent_id": None,
        "started_at": "x",
        "inputs": {"question": ASKED},
        "output": {"answer": SAID, "context": [CATS, LIGHT]},
    },
    {
        "id": "2",
        "op_name": "rewrite",
        "trace_id": "t",
        "parent_id": "1",
        "started_at": "x",
        "inputs": {"question": "light?"},
        "output": "lights",
    },
)

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
    "MTRAG, questions": Form(
        "log.jsonl",
        lines(
            {
                "task_id": "c<::>2",
                "task_type": "rag",
                "input": [
                    {"speaker": "user", "text": "Hi"},
                    {"speaker": "agent", "text": "Hello"},
                    {"speaker": "user", "text": ASKED},
                ],
            }
        ),
        "mtrag-questions",
        Contents((TRANSCRIPT,)),
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
        "answers",
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
    "Langfuse, results without passages": Form(
        "log.jsonl",
        lines({"traceId": "t", "type": "SPAN", "startTime": "x", "input": ASKED,
               "output": {"answer": SAID, "results": [0.5, {"score": 1}]}}),
        "langfuse",
        "a",
        ["startTime", "output.results"],
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


def csv_table(*rows: Sequence[str]) -> str:
    """A CSV file whose first row is the header, which may repeat a name."""
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


PROMPTFOO = {
    "vars": {"question": ASKED},
    "promptIdx": 0,
    "prompt": {"raw": "x", "label": "x"},
    "provider": {"id": "p"},
    "response": {"output": SAID},
}
RATINGS = [{"docId": "a", "rating": "3.0"}, {"docId": "b", "rating": "0.0"}]
OUTPUTS = ("Status", "Score", "Named Scores", "Grader Reason", "Comment")
RUN_RESULT = {
    "run_name": "rag",
    "inputs": {
        "question": [ASKED],
        "contexts": [[CATS, LIGHT]],
        "answer": [SAID],
        "ground_truth_answer": [KEY],
    },
    "results": {"faithfulness": {"score": 0.5, "individual_scores": [0.5]}},
}
SAMPLE = {
    "doc_id": 0,
    "doc": {"question": ASKED, "answer": KEY},
    "target": KEY,
    "arguments": {"gen_args_0": {"arg_0": "p", "arg_1": {"until": []}}},
    "resps": [[SAID]],
    "filtered_resps": [SAID],
    "metrics": ["exact_match"],
    "exact_match": 1.0,
}
RETRIEVED = {"retrievalResults": [{"content": {"text": CATS}}, {"content": {"text": LIGHT}}]}
CALL = {"name": "rag", "start_time": "x", "end_time": "y", "tags": []}
AB = Contents(answers={"A": (SAID,), "B": (SAID,)})
TWO_KEYS = Contents(references=(KEY, "the light"))
FACTS = Contents(nuggets=(("Names light", 1.0), ("Names water", 1.0)))
GOLD = Contents(judgments=(("a", 1),))

FORMS |= {
    "promptfoo, the table of an evaluation": Form(
        "log.csv",
        csv_table(
            ["question", "[openai:gpt-4o] Answer {{question}}", *OUTPUTS],
            [ASKED, SAID, "PASS", "1.00", "", "ok", ""],
        ),
        "promptfoo-table",
        "a",
        ["Status", "Score", "Grader Reason"],
    ),
    "promptfoo, a table of two providers": Form(
        "log.csv",
        csv_table(
            ["Description", "message", "context", "[openai:gpt-4o] p", *OUTPUTS,
             "[a:b] p", *OUTPUTS],
            ["d", ASKED, json.dumps([CATS, LIGHT]), SAID, "PASS", "1", "", "", "", SAID,
             "FAIL", "0", "", "", ""],
        ),
        "promptfoo-table",
        Contents(
            contexts={"openai:gpt-4o:contexts": (CATS, LIGHT), "a:b:contexts": (CATS, LIGHT)},
            answers={"openai:gpt-4o": (SAID,), "a:b": (SAID,)},
        ),
        ["Status", "Score", "Status (2)", "Score (2)"],
    ),
    "promptfoo, a table with verdicts in its cells": Form(
        "log.csv",
        csv_table(
            ["question", "[p] x"],
            [ASKED, f"[PASS] {SAID}"],
            ["Why?", f"[FAIL] Not so\n---\n{SAID}"],
        ),
        "promptfoo-table",
        Contents((ASKED, "Why?"), answers={"log": (SAID, SAID)}),
    ),
    "promptfoo, a variable with fields": Form(
        "log.json",
        whole({"results": {"results": [{**PROMPTFOO, "vars": {"input": {"question": ASKED}}}]}}),
        "promptfoo",
        "a",
        ["promptIdx", "prompt.raw"],
    ),
    "promptfoo, version 2": Form(
        "log.json",
        whole({"version": 2, "results": {"results": [{**PROMPTFOO, "provider": "p"}]}}),
        "promptfoo",
        "a",
        ["promptIdx", "prompt.raw", "$.version"],
    ),
    "promptfoo, an output with contexts": Form(
        "log.jsonl",
        lines({**PROMPTFOO, "response": {"output": {"answer": SAID, "context": [CATS, LIGHT]}}}),
        "promptfoo",
        "ac",
        ["promptIdx", "prompt.raw"],
    ),
    "RankLib": Form(
        "log.txt", f"3 qid:1 1:0.5 2:1.0 # a {ASKED}\n0 qid:1 1:0.1 2:0 # b {ASKED}\n", "", JUDGED
    ),
    "Quepid, ratings for learning to rank": Form(
        "log.txt", f'3    qid:40 #    a; "{ASKED}"\n\n0    qid:40 #    b; "{ASKED}"\n', "", JUDGED
    ),
    "Elasticsearch, judgments for learning to rank": Form(
        "log.txt",
        f"# qid:1: {ASKED}\n#\n#\n3\tqid:1 #\ta\tRambo\n0\tqid:1 #\tb\tRocky\n",
        "",
        JUDGED,
    ),
    "Quepid, a case": Form(
        "log.json",
        whole(
            {
                "case_name": "x",
                "queries": [{"query_text": ASKED, "notes": None, "ratings": {"a": 3, "b": 0}}],
                "tries": [],
            }
        ),
        "judgment-lists",
        JUDGED,
    ),
    "Quepid, a book": Form(
        "log.json",
        whole(
            {
                "name": "b",
                "query_doc_pairs": [
                    {"query_text": ASKED, "doc_id": one, "position": 1,
                     "judgements": [{"rating": rating}]}
                    for one, rating in (("a", 3.0), ("b", 0.0))
                ],
            }
        ),
        "judgment-lists",
        JUDGED,
    ),
    "Quepid, a snapshot": Form(
        "log.csv", f"query,docid,rating\n{ASKED},a,3.0\n{ASKED},b,0.0\n", "", JUDGED
    ),
    "Quepid, information needs": Form(
        "log.csv",
        f"query_id,query,information_need\n1,{ASKED},\n",
        "",
        Contents(),
    ),
    "RRE, as Quepid writes it": Form(
        "log.json",
        whole({"index": "x", "queries": [{"placeholders": {"$query": ASKED},
                                          "relevant_documents": {"3": ["a"], "0": ["b"]}}]}),
        "judgment-lists",
        JUDGED,
    ),
    "RRE, gains": Form(
        "log.json",
        whole(
            {
                "index": "x",
                "topics": [
                    {
                        "query_groups": [
                            {
                                "queries": [{"placeholders": {"$query": ASKED}}],
                                "relevant_documents": {"a": {"gain": 3}, "b": {"gain": 0}},
                            }
                        ]
                    }
                ],
            }
        ),
        "judgment-lists",
        JUDGED,
    ),
    "OpenSearch, hits of judgments": Form(
        "log.json",
        whole({"hits": {"hits": [
            {"_source": {"judgmentRatings": [{"query": ASKED, "ratings": RATINGS}]}}]}}),
        "judgment-lists",
        JUDGED,
    ),
    "relevant ids in an object": Form(
        "log.json", whole({"queries": [{"query": ASKED, "relevant_ids": ["a"]}]}), "", GOLD
    ),
    "expected ids": Form(
        "log.jsonl", lines({"question": ASKED, "expected_ids": ["a"]}), "answers", GOLD
    ),
    "Haystack, an evaluation": Form(
        "log.json", whole(RUN_RESULT), "ragas", "acr", ["$.run_name", "$.results"]
    ),
    "Haystack, a detailed report": Form(
        "log.csv",
        table({"questions": ASKED, "contexts": str([CATS, LIGHT]), "predicted_answers": SAID,
               "ground_truth_answers": KEY, "faithfulness": 0.5}),
        "haystack",
        "acr",
        ["faithfulness"],
    ),
    "Haystack, a detailed report as JSON": Form(
        "log.json",
        whole({"question": [ASKED], "contexts": [[CATS, LIGHT]], "predicted_answer": [SAID]}),
        "answers",
        "ac",
    ),
    "Haystack, generated answers": Form(
        "log.jsonl",
        lines({"query": ASKED, "answers": [
            {"data": SAID, "query": ASKED, "documents": [
                {"id": "1", "content": CATS}, {"id": "2", "content": LIGHT}]}]}),
        "haystack",
        "ac",
        ["answers.query"],
    ),
    "Haystack, version 1": Form(
        "log.jsonl",
        lines({"query": ASKED, "answers": [{"answer": SAID, "type": "generative"}],
               "documents": [{"content": CATS, "id": "1"}, {"content": LIGHT, "id": "2"}]}),
        "haystack",
        "ac",
        ["answers.type"],
    ),
    "Haystack, the output of a pipeline": Form(
        "log.jsonl",
        lines({"question": ASKED, "llm": {"replies": [SAID]}, "retriever": {
            "documents": [{"id": "1", "content": CATS}, {"id": "2", "content": LIGHT}]}}),
        "haystack",
        "ac",
    ),
    "candidates as texts": Form(
        "log.jsonl",
        lines({"query": {"qid": "1", "text": ASKED}, "candidates": [CATS, LIGHT]}),
        "",
        "c",
    ),
    "candidates as texts, of a query without an id": Form(
        "log.jsonl", lines({"query": ASKED, "candidates": [CATS, LIGHT]}), "", "c"
    ),
    "two correct answers, in rows": Form(
        "log.csv", f"question,reference\n{ASKED},{KEY}\n{ASKED},the light\n", "", TWO_KEYS
    ),
    "two correct answers, in a list": Form(
        "log.jsonl", lines({"question": ASKED, "ground_truths": [KEY, "the light"]}), "", TWO_KEYS
    ),
    "two correct answers beside that of a system": Form(
        "log.csv",
        csv_table(["question", "response", "reference"], [ASKED, SAID, KEY],
                  [ASKED, SAID, "the light"]),
        "answers",
        TWO_KEYS._replace(answers={"log": (SAID,)}),
    ),
    "systems around their records": Form(
        "log.json",
        whole({name: [{"question": ASKED, "answer": SAID}] for name in "AB"}),
        "answers",
        AB,
    ),
    "systems around their results": Form(
        "log.json",
        whole({name: {"results": [{"question": ASKED, "answer": SAID, "contexts": [CATS]}],
                      "mean": 0.5} for name in "AB"}),
        "ragas",
        AB._replace(contexts={"A:contexts": (CATS,), "B:contexts": (CATS,)}),
        ["$.mean"],
    ),
    "answers by system": Form(
        "log.jsonl", lines({"question": ASKED, "answers": {"A": SAID, "B": SAID}}), "", AB
    ),
    "responses by system": Form(
        "log.jsonl", lines({"question": ASKED, "responses": {"A": SAID, "B": SAID}}), "", AB
    ),
    "a list of responses": Form(
        "log.jsonl",
        lines({"question": ASKED,
               "responses": [{"model": name, "response": SAID} for name in "AB"]}),
        "",
        AB,
    ),
    "a list of results": Form(
        "log.json",
        whole([{"query": ASKED, "results": [{"system": name, "text": SAID} for name in "AB"]}]),
        "",
        AB,
    ),
    "a row per system": Form(
        "log.csv",
        csv_table(["question", "system", "answer"], *([ASKED, name, SAID] for name in "AB")),
        "answers",
        AB,
    ),
    "answers of systems with one letter": Form(
        "log.csv",
        csv_table(["question", "answer_A", "answer_B"], [ASKED, SAID, SAID]),
        "",
        Contents(answers={"answer_A": (SAID,), "answer_B": (SAID,)}),
    ),
    "two answers, one of a usual name": Form(
        "log.csv",
        csv_table(["question", "baseline_response", "rag_response"], [ASKED, SAID, SAID]),
        "",
        Contents(answers={"baseline_response": (SAID,), "rag_response": (SAID,)}),
    ),
    "contexts and answers by system": Form(
        "log.jsonl",
        lines({"question": ASKED, "naive_answer": SAID, "naive_contexts": [CATS, LIGHT],
               "graph_answer": SAID, "graph_contexts": [CATS]}),
        "",
        Contents(
            contexts={"naive_answer:contexts": (CATS, LIGHT), "graph_answer:contexts": (CATS,)},
            answers={"naive_answer": (SAID,), "graph_answer": (SAID,)},
        ),
    ),
    "lm-eval, two filters": Form(
        "log.jsonl",
        lines(*({**SAMPLE, "filter": one} for one in ("strict-match", "flexible-extract"))),
        "lm-eval",
        Contents(
            answers={"strict-match": (SAID,), "flexible-extract": (SAID,)}, references=(KEY,)
        ),
        ["doc.answer", "metrics", "exact_match"],
    ),
    "Azure, a target with contexts": Form(
        "log.json",
        whole({"rows": [{"inputs.question": ASKED, "inputs.ground_truth_answer": KEY,
                         "outputs.response": SAID, "outputs.context": [CATS, LIGHT]}]}),
        "azure",
        "acr",
    ),
    "Azure, a data set": Form(
        "log.jsonl",
        lines({"query": ASKED, "context": [CATS, LIGHT], "response": SAID, "ground_truth": KEY}),
        "answers",
        "acr",
    ),
    "Bedrock, results of an evaluation": Form(
        "log.jsonl",
        lines({"conversationTurns": [
            {"inputRecord": {"prompt": {"content": [{"text": ASKED}]},
                             "referenceResponses": [{"content": [{"text": KEY}]}]},
             "output": {"text": SAID, "retrievedPassages": RETRIEVED},
             "results": [{"metricName": "Builtin.Correctness", "result": 1.0}]}]}),
        "bedrock",
        "acr",
        ["results"],
    ),
    "Bedrock, a data set": Form(
        "log.jsonl",
        lines({"conversationTurns": [
            {"prompt": {"content": [{"text": ASKED}]},
             "referenceResponses": [{"content": [{"text": KEY}]}]}]}),
        "bedrock",
        "r",
    ),
    "Bedrock, an evaluation of models": Form(
        "log.jsonl",
        lines({"automatedEvaluationResult": {"scores": [1]},
               "inputRecord": {"prompt": ASKED, "referenceResponse": KEY},
               "modelResponses": [{"modelIdentifier": "m", "response": SAID}]}),
        "bedrock",
        "ar",
        ["automatedEvaluationResult"],
    ),
    "Bedrock, prompts for models": Form(
        "log.jsonl", lines({"prompt": ASKED, "referenceResponse": KEY}), "", "r"
    ),
    "Bedrock, responses of models": Form(
        "log.jsonl",
        lines({"prompt": ASKED, "referenceResponse": KEY,
               "modelResponses": [{"modelIdentifier": "m", "response": SAID}]}),
        "bedrock",
        "ar",
    ),
    "Braintrust, a table": Form(
        "log.csv",
        table({"id": "1", "input": ASKED, "output": SAID, "expected": KEY, "scores": {"F": 1}}),
        "",
        "ar",
        ["scores"],
    ),
    "Braintrust, a data set": Form(
        "log.jsonl", lines({"input": ASKED, "expected": KEY}), "", "r"
    ),
    "OpenAI evals, output items": Form(
        "log.json",
        whole({"object": "list", "data": [
            {"object": "eval.run.output_item", "id": "o", "status": "pass",
             "datasource_item": {"question": ASKED, "correct_label": KEY},
             "sample": {"input": [{"role": "user", "content": ASKED}], "model": "gpt",
                        "output": [{"role": "assistant", "content": SAID}]}}]}),
        "openai-evals",
        "ar",
        ["status"],
        system="gpt",
    ),
    "OpenAI evals, a data set": Form(
        "log.jsonl",
        lines({"item": {"question": ASKED, "correct_label": KEY}}),
        "openai-evals",
        "r",
    ),
    "OpenAI evals, samples": Form(
        "log.jsonl",
        lines({"input": [{"role": "system", "content": "x"}, {"role": "user", "content": ASKED}],
               "ideal": KEY}),
        "",
        "r",
    ),
    "LlamaIndex, a labelled data set": Form(
        "log.json",
        whole({"examples": [{"query": ASKED, "query_by": {"type": "ai"},
                             "reference_contexts": [LIGHT], "reference_answer": KEY}]}),
        "answers",
        Contents(references=(KEY,), judgments=((digest(LIGHT), 1),)),
        ["query_by"],
    ),
    "LlamaIndex, pairs of questions and contexts": Form(
        "log.json",
        whole({"queries": {"q1": ASKED}, "corpus": {"a": LIGHT, "b": CATS},
               "relevant_docs": {"q1": ["a"]}, "mode": "text"}),
        "answers",
        GOLD,
        ["$.corpus", "$.mode"],
    ),
    "LlamaIndex, results of an evaluator": Form(
        "log.jsonl",
        lines({"query": ASKED, "contexts": [CATS, LIGHT], "response": SAID, "passing": True}),
        "answers",
        "ac",
        ["passing"],
    ),
    "RAGBench": Form(
        "log.jsonl",
        lines({"id": "1", "question": ASKED, "documents": [CATS, LIGHT], "response": SAID}),
        "answers",
        "ac",
    ),
    "continuous-eval": Form(
        "log.jsonl",
        lines({"question": ASKED, "retrieved_context": [CATS, LIGHT], "answer": SAID,
               "ground_truth_context": [LIGHT], "ground_truths": [KEY]}),
        "answers",
        "acr",
        ["ground_truth_context"],
    ),
    "Databricks, requests of agents": Form(
        "log.jsonl",
        lines({"request_id": "1", "request": ASKED, "response": SAID, "expected_response": KEY,
               "retrieved_context": [{"content": CATS, "doc_uri": "u1"},
                                     {"content": LIGHT, "doc_uri": "u2"}]}),
        "mlflow-results",
        "acr",
    ),
    "Databricks, requests as messages": Form(
        "log.jsonl",
        lines({"request": {"messages": [{"role": "user", "content": ASKED}]},
               "response": {"choices": [{"message": {"role": "assistant", "content": SAID}}]},
               "expected_response": KEY}),
        "mlflow-results",
        "ar",
    ),
    "MLflow, a data set with expectations": Form(
        "log.jsonl",
        lines({"inputs": {"question": ASKED}, "expectations": {"expected_response": KEY}}),
        "langsmith",
        "r",
    ),
    "MLflow, outputs with expectations": Form(
        "log.jsonl",
        lines({"inputs": {"question": ASKED}, "outputs": {"response": SAID},
               "expectations": {"expected_response": KEY}}),
        "langsmith",
        "ar",
    ),
    "Opik, items of a data set": Form(
        "log.json",
        whole([{"id": "1", "input": {"question": ASKED}, "expected_output": {"answer": KEY}}]),
        "",
        "r",
        ["id"],
    ),
    "Opik, traces": Form(
        "log.jsonl",
        lines({"id": "t", "project_name": "p", **CALL, "input": {"question": ASKED},
               "output": {"answer": SAID}}),
        "traces",
        "a",
        ["name", "project_name"],
    ),
    "Weave, calls": Form(
        "log.jsonl",
        lines(*WEAVE),
        "traces",
        "ac",
        ["spans: rewrite"],
    ),
    "Giskard, a test set": Form(
        "log.jsonl",
        lines({"id": "1", "question": ASKED, "reference_answer": KEY, "reference_context": LIGHT,
               "conversation_history": []}),
        "",
        "r",
        ["reference_context"],
    ),
    "Athina": Form(
        "log.jsonl",
        lines({"query": ASKED, "context": [CATS, LIGHT], "response": SAID,
               "expected_response": KEY}),
        "answers",
        "acr",
    ),
    "Tonic Validate": Form(
        "log.jsonl",
        lines({"question": ASKED, "reference_answer": KEY, "llm_answer": SAID,
               "llm_context_list": [CATS, LIGHT]}),
        "answers",
        "acr",
    ),
    "Patronus": Form(
        "log.csv",
        table({"evaluated_model_input": ASKED, "evaluated_model_output": SAID,
               "evaluated_model_retrieved_context": [CATS, LIGHT],
               "evaluated_model_gold_answer": KEY}),
        "answers",
        "acr",
    ),
    "Vertex AI": Form(
        "log.csv",
        table({"prompt": ASKED, "response": SAID, "reference": KEY, "context": [CATS, LIGHT]}),
        "answers",
        "acr",
    ),
    "SQuAD": Form(
        "log.json",
        whole({"version": "1.1", "data": [{"title": "T", "paragraphs": [
            {"context": LIGHT, "qas": [{"id": "1", "question": ASKED,
                                        "answers": [{"text": KEY, "answer_start": 7}]}]}]}]}),
        "",
        "r",
        ["$.version", "$.title", "$.context"],
    ),
    "a rubric of texts": Form(
        "log.jsonl",
        lines({"question": ASKED, "rubric": ["Names light", "Names water"]}),
        "healthbench",
        FACTS,
    ),
    "key facts": Form(
        "log.jsonl",
        lines({"question": ASKED, "key_facts": ["Names light", "Names water"]}),
        "healthbench",
        FACTS,
    ),
    "expected facts": Form(
        "log.jsonl",
        lines({"request": ASKED, "expected_facts": ["Names light", "Names water"]}),
        "healthbench",
        FACTS,
    ),
    "criteria in rows": Form(
        "log.csv",
        csv_table(["prompt", "criterion", "points"], [ASKED, "Names light", "7"],
                  [ASKED, "Names cats", "-5"]),
        "healthbench",
        RUBRIC,
    ),
    "a rubric beside a response": Form(
        "log.jsonl",
        lines({"prompt": ASKED, "response": SAID, "rubrics": [{"criterion": "Names light"}]}),
        "healthbench",
        Contents(answers={"log": (SAID,)}, nuggets=(("Names light", 1.0),)),
    ),
    "LangSmith, examples of a data set": Form(
        "log.jsonl",
        lines({"id": "1", "dataset_id": "d", "created_at": "t", "inputs": {"question": ASKED},
               "outputs": {"answer": KEY}}),
        "langsmith-examples",
        "r",
    ),
    "LangWatch": Form(
        "log.jsonl",
        lines({"input": ASKED, "output": SAID, "expected_output": KEY,
               "contexts": [{"document_id": "1", "content": CATS},
                            {"document_id": "2", "content": LIGHT}]}),
        "answers",
        "acr",
    ),
    "DPR, retrieved contexts": Form(
        "log.json",
        whole([{"question": ASKED, "answers": [KEY], "ctxs": [
            {"id": "d1", "title": "T", "text": CATS, "score": "80"},
            {"id": "d2", "title": "T", "text": LIGHT, "score": "79"}]}]),
        "answers",
        "cr",
    ),
    "Elasticsearch, hits of a search": Form(
        "log.jsonl",
        lines({"query": ASKED, "hits": {"hits": [
            {"_id": "d1", "_score": 2.0, "_source": {"text": CATS}},
            {"_id": "d2", "_score": 1.0, "_source": {"text": LIGHT}}]}}),
        "answers",
        "c",
    ),
    "results of a search": Form(
        "log.jsonl",
        lines({"query": ASKED, "results": [{"id": "d1", "text": CATS, "score": 0.9},
                                           {"id": "d2", "text": LIGHT, "score": 0.8}]}),
        "answers",
        "c",
    ),
    "systems named beside their results": Form(
        "log.json",
        whole([{"system": name, "results": [{"question": ASKED, "response": SAID}]}
               for name in "AB"]),
        "",
        AB,
    ),
    "experiments with their cases": Form(
        "log.json",
        whole({"experiments": [{"name": name, "cases": [{"question": ASKED, "response": SAID,
                                                         "contexts": [CATS, LIGHT]}]}
                               for name in "AB"]}),
        "answers",
        AB._replace(contexts={"A:contexts": (CATS, LIGHT), "B:contexts": (CATS, LIGHT)}),
    ),
    "a checklist": Form(
        "log.jsonl",
        lines({"prompt": ASKED, "checklist": ["Names light", "Names water"]}),
        "healthbench",
        FACTS,
    ),
    "a field per system, below a key": Form(
        "log.json",
        whole({"run": "x", "results": [{"question": ASKED, "A": {"answer": SAID},
                                        "B": {"answer": SAID}}]}),
        "answers",
        AB,
        ["$.run"],
    ),
    "pandas, rows by number": Form(
        "log.json",
        json.dumps({"0": {"question": ASKED, "answer": SAID, "contexts": [CATS, LIGHT]}}),
        "ragas",
        "ac",
        ["$.key"],
    ),
    "pandas, split": Form(
        "log.json",
        json.dumps({"columns": ["question", "answer", "contexts"], "index": [0],
                    "data": [[ASKED, SAID, [CATS, LIGHT]]]}),
        "ragas",
        "ac",
    ),
    "pandas, a table with an index": Form(
        "log.csv",
        csv_table(["", "question", "answer", "contexts"], ["0", ASKED, SAID, str([CATS, LIGHT])]),
        "ragas",
        "ac",
    ),
    "an answer with its sources": Form(
        "log.jsonl",
        lines({"question": ASKED, "response": {
            "answer": SAID, "sources": [{"text": CATS}, {"text": LIGHT}], "cost": 1}}),
        "answers",
        "ac",
        ["response.cost"],
    ),
}  # fmt: skip


CACHED = {
    "input": ASKED, "actual_output": SAID, "expected_output": KEY, "context": None,
    "retrieval_context": [CATS, LIGHT], "hyperparameters": None,
}  # fmt: skip
SPOKEN = [*TALK, {"role": "user", "content": ASKED}]
CONVERSATION = {
    "name": "conversational_test_case_0",
    "success": True,
    "metricsData": [{"name": "Role Adherence", "score": 1}],
    "runDuration": 0.5,
    "turns": [
        *({**one, "order": at} for at, one in enumerate(SPOKEN)),
        {"role": "assistant", "content": SAID, "order": 3, "retrievalContext": [CATS, LIGHT]},
    ],
    "order": 0,
    "scenario": "A gardener asks",
    "expectedOutcome": "The gardener knows enough",
}
CASES = {"testFile": "test.py", "testCases": [], "testPassed": 1}
EVENT = {"run_id": "r", "sample_id": "rag.dev.0", "created_by": "", "created_at": "t"}
PROMPTED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED}]
EVENTS = (
    {"spec": {"completion_fns": ["gpt"], "eval_name": "rag.dev.v0", "run_id": "r"}},
    {"final_report": {"accuracy": 1.0}},
    {**EVENT, "event_id": 0, "type": "sampling", "data": {"prompt": PROMPTED, "sampled": [SAID]}},
    {**EVENT, "event_id": 1, "type": "match", "data": {
        "correct": True, "expected": KEY, "picked": KEY, "sampled": SAID, "options": [KEY]}},
    {**EVENT, "event_id": 2, "type": "metrics", "data": {"accuracy": 1}},
)  # fmt: skip
TOLD = Contents((TRANSCRIPT,), answers={"log": (SAID,)})

FORMS |= {
    "DeepEval, the cache of its metrics": Form(
        "log.json",
        json.dumps({"test_cases_lookup_map": {json.dumps(CACHED): {
            "cached_metrics_data": [{"metric_metadata": {"metric": "Faithfulness", "score": 1}}],
            "hyperparameters": None}}}),
        "deepeval-cache",
        "acr",
    ),
    "DeepEval, a test run of conversations": Form(
        "log.json",
        json.dumps({"testRunData": {**CASES, "conversationalTestCases": [CONVERSATION]}}),
        "messages",
        TOLD._replace(contexts={"log:contexts": (CATS, LIGHT)}),
        ["metricsData", "scenario", "expectedOutcome"],
    ),
    "DeepEval, a test run of both kinds": Form(
        "log.json",
        whole({"testRunData": {"testCases": [CASE], "conversationalTestCases": [CONVERSATION]}}),
        "deepeval",
        "acr",
        ["metricsData", "$.conversationalTestCases"],
    ),
    "OpenAI evals, the log of a run": Form(
        "log.jsonl",
        lines(*EVENTS),
        "openai-evals-log",
        "ar",
        ["spec", "final_report", "data.accuracy"],
    ),
    "ShareGPT": Form(
        "log.json",
        whole([{"id": "identity_0", "conversations": [
            {"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"},
            {"from": "human", "value": ASKED}, {"from": "gpt", "value": SAID}]}]),
        "messages",
        TOLD,
    ),
    "OpenAI, a chat file": Form(
        "log.jsonl",
        lines({"messages": [*PROMPTED, {"role": "assistant", "content": SAID}]}),
        "messages",
        "a",
    ),
}  # fmt: skip


DRAGUN: dict[str, Any] = {
    "topic_id": "t1",
    "rubrics": [
        {"question_id": "t1-1", "question_text": ASKED, "importance": "A: Have to Know",
         "short_answers": [{"answer_id": "t1-1-1", "answer_text": KEY, "references": ["x"]},
                           {"answer_id": "t1-1-2", "answer_text": "water"}]},
        {"question_id": "t1-2", "question_text": "Why?", "importance": "C: Nice to Know",
         "short_answers": [{"answer_id": "t1-2-1", "answer_text": KEY}]},
    ],
}  # fmt: skip
RAGTIME = {
    "metadata": {"team_id": "t", "topic_id": "1", "run_id": "r", "run_desc": "d"},
    "nugget_bank": [
        {"question": ASKED, "aggregator_type": "OR",
         "answers": [{"answer": KEY, "references": ["d1"]}]},
        {"question": "Why?", "aggregator_type": "OR", "answers": []},
    ],
}  # fmt: skip
IN_TURN = (
    {"conversation_id": "c", "turn": 2, "question": ASKED, "answer": SAID,
     "contexts": [CATS, LIGHT]},
    {"conversation_id": "c", "turn": 1, "question": "Hi", "answer": SAID},
)  # fmt: skip
IN_TURNS = Contents(
    ("Hi", f"user: Hi\nassistant: {SAID}\nuser: {ASKED}"), answers={"bot-1": (SAID, SAID)}
)
MESSAGES = [
    {"session_id": "c", "turn": place, "role": role, "content": content, "model": model,
     "rating": rating}
    for place, (role, content, model, rating) in enumerate((
        ("system", "Be brief.", "", ""), ("user", "Hi", "", ""), ("assistant", SAID, "bot-1", 1),
        ("user", ASKED, "", ""), ("assistant", SAID, "bot-1", 5),
    ))
]  # fmt: skip

FORMS |= {
    "TREC DRAGUN, a rubric": Form(
        "log.json", whole(DRAGUN), "dragun", Contents((), references=(KEY, "water", KEY))
    ),
    "TREC RAGTIME, a bank": Form("log.jsonl", lines(RAGTIME), "", Contents((), references=(KEY,))),
    "TREC RAGTIME, a bank on many lines": Form(
        "log.json", whole(RAGTIME), "", Contents((), references=(KEY,))
    ),
    "MT-bench, questions": Form(
        "question.jsonl",
        lines({"question_id": 81, "category": "writing", "turns": [ASKED, "Why?"]},
              {"question_id": 111, "category": "math", "turns": ["How?"], "reference": [KEY]}),
        "mt-bench",
        Contents((f"user: {ASKED}\nuser: Why?", "How?")),
        ["reference"],
    ),
    "Vicuna, questions": Form(
        "question.jsonl",
        lines({"question_id": 1, "text": ASKED, "category": "generic"}),
        "mt-bench",
        Contents(),
    ),
    "RAGElo, queries": Form("queries.csv", f"qid,query\n0,{ASKED}\n", "", Contents()),
    "a dictionary of one query": Form("log.json", json.dumps({"q-text": ASKED}), "", Contents()),
    "a row per message": Form(
        "log.csv", table(*MESSAGES), "message-rows", IN_TURNS, ["rating"], "bot-1"
    ),
    "a record per message": Form(
        "log.json", whole([*reversed(MESSAGES)]), "message-rows", IN_TURNS, ["rating"], "bot-1"
    ),
    "MLflow, a table of search_traces": Form(
        "log.csv",
        table({**{name: str(MLFLOW[name]) for name in ("request", "response", "spans")},
               "trace_id": "tr-1", "trace": "Trace(trace_id=tr-1)", "state": "OK"}),
        "mlflow-traces",
        "ac",
    ),
    "MLflow, a table of search_traces without spans": Form(
        "log.csv",
        table({"request": str(MLFLOW["request"]), "response": SAID, "spans": "",
               "trace_id": "tr-1", "state": "OK"}),
        "mlflow-traces",
        "a",
        ["state"],
    ),
    "a record per turn": Form(
        "log.jsonl",
        lines(*IN_TURN),
        "ragas",
        Contents(
            (f"user: Hi\nassistant: {SAID}\nuser: {ASKED}", "Hi"),
            {"log:contexts": (CATS, LIGHT)},
            {"log": (SAID, SAID)},
        ),
    ),
}  # fmt: skip


RAGAS = {**ROW, "reference_contexts": [LIGHT]}
OLDER = {
    "question": ASKED,
    "contexts": [CATS, LIGHT],
    "answer": SAID,
    "ground_truth": KEY,
}
DEEPEVAL = {
    "input": ASKED,
    "actual_output": SAID,
    "expected_output": KEY,
    "retrieval_context": [CATS, {"context": LIGHT, "source": "d1"}],
    "context": [CATS],
}
MTRAG = {
    "conversation_id": "c",
    "task_id": "c<::>2",
    "contexts": [
        {"document_id": "d0", "text": CATS, "score": float("nan")},
        {"document_id": "d1", "text": LIGHT},
    ],
    "input": [{"speaker": "user", "text": ASKED}],
    "targets": [{"text": KEY}],
    "predictions": [{"text": SAID}],
}
LANGSMITH = {
    "inputs": {"question": ASKED},
    "outputs": {
        "answer": SAID,
        "documents": [
            {"page_content": CATS},
            {"page_content": LIGHT, "metadata": {"source": "d1"}},
        ],
    },
    "reference_outputs": {"answer": KEY},
}
ROOT = {
    "name": "chain",
    "context": {"trace_id": "t", "span_id": "a"},
    "span_kind": "CHAIN",
    "parent_id": None,
    "attributes": {"input": {"value": ASKED}, "output.value": SAID},
}
RETRIEVER = {
    "name": "search",
    "context": {"trace_id": "t", "span_id": "b"},
    "span_kind": "RETRIEVER",
    "parent_id": "a",
    "attributes": {
        "input.value": "plants need",
        "retrieval.documents.1.document.content": LIGHT,
        "retrieval.documents.1.document.id": "d1",
        "retrieval.documents.0.document.content": CATS,
    },
}
NESTED = {
    **RETRIEVER,
    "attributes": {
        "retrieval": {
            "documents": [
                {"document": {"content": CATS}},
                {"document": {"id": "d1", "content": LIGHT}},
            ]
        }
    },
}

PROMPTFOO_RAG: dict[str, Any] = {
    "vars": {"query": ASKED, "context": [CATS, LIGHT]},
    "prompt": {"raw": "Answer {{query}}", "label": "Answer {{query}}"},
    "promptIdx": 0,
    "testIdx": 0,
    "provider": {"id": "openai:gpt-4o", "label": ""},
    "response": {"output": SAID, "tokenUsage": {"total": 12}},
    "success": True,
    "error": None,
}
PROMPTFOO_FILE = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "prompts": [{"raw": "Answer {{query}}", "label": "Answer {{query}}"}],
        "results": [PROMPTFOO_RAG],
        "stats": {"successes": 1},
    },
    "config": {"tests": []},
}
OBSERVATIONS: list[dict[str, Any]] = [
    {
        "id": "o1",
        "traceId": "t",
        "type": "SPAN",
        "name": "rag",
        "startTime": "2026-05-01T10:00:00.000Z",
        "parentObservationId": None,
        "input": {"question": ASKED},
        "output": {"answer": SAID},
    },
    {
        "id": "o2",
        "traceId": "t",
        "type": "RETRIEVER",
        "name": "search",
        "startTime": "2026-05-01T10:00:00.100Z",
        "parentObservationId": "o1",
        "input": "plants need",
        "output": [
            {"page_content": CATS, "metadata": {}},
            {"page_content": LIGHT, "metadata": {"source": "d1"}},
        ],
    },
]
BASE = "ai.observability"


def event(kind: str, attributes: dict[str, Any], parent: str, version: str = "v1") -> Any:
    return {
        "event_id": kind,
        "record": {"name": kind},
        "record_attributes": {
            f"{BASE}.span_type": kind,
            f"{BASE}.record_id": f"r-{version}",
            **{f"{BASE}.{name}": value for name, value in attributes.items()},
        },
        "resource_attributes": {f"{BASE}.app_name": "rag", f"{BASE}.app_version": version},
        "trace": {"trace_id": f"t-{version}", "parent_id": parent, "span_id": kind},
    }


def events(version: str = "v1", said: str = SAID) -> list[Any]:
    root = {"record_root.input": ASKED, "record_root.output": said}
    retrieved = {"retrieval.query_text": "need", "retrieval.retrieved_contexts": [CATS, LIGHT]}
    return [
        event("record_root", root, "", version),
        event("retrieval", retrieved, "record_root", version),
    ]


AUTORAG = {
    "qid": "7",
    "query": ASKED,
    "retrieval_gt": [["d1"]],
    "generation_gt": [KEY],
    "retrieved_contents": [CATS, LIGHT],
    "retrieved_ids": ["d0", "d1"],
    "generated_texts": SAID,
}
TRULENS = {
    "app_name": "rag",
    "app_version": "v1",
    "record_id": "r1",
    "input": ASKED,
    "output": SAID,
    "tags": "",
}
PROMPTFOO_UNREAD = (
    *("prompt.raw", "promptIdx", "testIdx", "response.tokenUsage", "success"),
    *("$.evalId", "$.config", "$.version", "$.prompts", "$.stats"),
)
FOUND_IDS = (digest(CATS), "d1")
JUDGED_LIGHT = Contents(
    contexts={"log:contexts": (CATS, LIGHT)},
    answers={"log": (SAID,)},
    references=(KEY,),
    judgments=((digest(LIGHT), 1),),
)

FORMS |= {
    "ragas": Form("log.jsonl", lines(RAGAS), "ragas", JUDGED_LIGHT),
    "ragas, as an array": Form("log.json", json.dumps([RAGAS], indent=1), "ragas", JUDGED_LIGHT),
    "ragas, its older names": Form("log.jsonl", lines(OLDER), "ragas", "acr"),
    "ragas, as a table": Form(
        "log.csv", table({**ROW, "retrieved_contexts": str([CATS, LIGHT])}), "ragas", "acr"
    ),
    "DeepEval, test cases": Form(
        "log.json",
        json.dumps([DEEPEVAL]),
        "deepeval",
        JUDGED_LIGHT._replace(judgments=((digest(CATS), 1),)),
        ids=FOUND_IDS,
    ),
    "DeepEval, test cases as a table": Form(
        "log.csv",
        table({"input": ASKED, "actual_output": SAID, "expected_output": KEY,
               "retrieval_context": f"{CATS}|{LIGHT}"}),
        "deepeval",
        "acr",
    ),
    "MTRAG, a task": Form(
        "log.jsonl", lines(MTRAG), "mtrag", "acr", ["conversation_id"],
        ids=("d0", "d1"), query_id="c<::>2",
    ),
    "LangSmith": Form("log.jsonl", lines(LANGSMITH), "langsmith", "acr", ids=FOUND_IDS),
    "Phoenix, spans": Form(
        "log.jsonl", lines(ROOT, RETRIEVER), "openinference", "ac", ids=FOUND_IDS
    ),
    "Phoenix, spans with nested fields": Form(
        "log.jsonl", lines(NESTED, ROOT), "openinference", "ac", ids=FOUND_IDS
    ),
    "promptfoo": Form("log.json", whole(PROMPTFOO_FILE), "promptfoo", "ac", PROMPTFOO_UNREAD),
    "promptfoo, on one line": Form(
        "log.json", json.dumps(PROMPTFOO_FILE), "promptfoo", "ac", PROMPTFOO_UNREAD
    ),
    "promptfoo, as lines": Form(
        "log.jsonl", lines(PROMPTFOO_RAG), "promptfoo", "ac", PROMPTFOO_UNREAD[:5]
    ),
    "Langfuse, observations": Form(
        "log.jsonl",
        lines(*OBSERVATIONS),
        "langfuse",
        "ac",
        ["id", "name", "startTime"],
        ids=FOUND_IDS,
    ),
    "Langfuse, a trace": Form(
        "log.json",
        json.dumps({"id": "t", "name": "rag", "observations": OBSERVATIONS}, indent=2),
        "langfuse",
        "ac",
        ["id", "name", "startTime", "$.id", "$.name"],
        ids=FOUND_IDS,
    ),
    "Langfuse, a page of observations": Form(
        "log.json",
        json.dumps({"data": OBSERVATIONS, "meta": {"limit": 50}}),
        "langfuse",
        "ac",
        ["id", "name", "startTime", "$.meta"],
        ids=FOUND_IDS,
    ),
    "Langfuse, observations as stored": Form(
        "log.jsonl",
        lines(
            *(
                {
                    "trace_id": one["traceId"],
                    "parent_observation_id": one["parentObservationId"] or "",
                    "start_time": one["startTime"],
                    "type": one["type"],
                    "input": json.dumps(one["input"]),
                    "output": json.dumps(one["output"]),
                }
                for one in OBSERVATIONS
            )
        ),
        "langfuse",
        "ac",
        ["start_time"],
        ids=FOUND_IDS,
    ),
    "AutoRAG": Form(
        "log.jsonl",
        lines(AUTORAG),
        "autorag",
        JUDGED_LIGHT._replace(judgments=(("d1", 1),)),
        ids=("d0", "d1"),
        query_id="7",
    ),
    "TruLens, events": Form(
        "log.jsonl",
        lines(*events()),
        "trulens-events",
        "ac",
        ["event_id", "record", "trace.span_id"],
        system="rag/v1",
    ),
    "numbered contexts": Form(
        "log.csv",
        "Question;Model answer;Context 1;Context 2;Ground Truth\n"
        f"{ASKED};{SAID};{CATS};{LIGHT};{KEY}\n",
        "answers",
        "acr",
    ),
    "usual names": Form(
        "log.jsonl",
        lines({"query_id": 7, "Query": ASKED, "retrievedDocuments": [CATS, LIGHT], "Answer": SAID}),
        "answers",
        "ac",
        query_id="7",
    ),
}  # fmt: skip


def contents(exam: exampp.Collection, folder: Path) -> Contents:
    """Return what a collection holds; answers are the rankings of a system of one passage."""
    counts = {str(thing): count for thing, count in exam.contents().rows}
    texts: dict[str, str] = {}
    rankings: dict[str, list[str]] = {}
    if counts["passages"]:
        exam.export(folder / "texts.jsonl", "passages")
        rows = map(json.loads, (folder / "texts.jsonl").read_text().rstrip("\n").split("\n"))
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


SOURCES = {
    "ragas": "docs.ragas.io",
    "DeepEval": "confident-ai/deepeval",
    "AutoRAG": "Marker-Inc-Korea/AutoRAG",
    "Phoenix": "Arize-ai/phoenix",
    "OTLP": "open-telemetry/opentelemetry-proto, Arize-ai/openinference",
    "OpenTelemetry": "open-telemetry/opentelemetry-python, ConsoleSpanExporter",
    "Langfuse": "langfuse.com/docs",
    "LangSmith": "docs.langchain.com/langsmith",
    "LangChain": "langchain-ai/langchain",
    "LangChain in JavaScript": "langchain-ai/langchainjs",
    "LlamaIndex": "run-llama/llama_index",
    "MLflow": "mlflow/mlflow",
    "Databricks": "docs.databricks.com, agent evaluation",
    "Inspect": "UKGovernmentBEIS/inspect_ai",
    "Braintrust": "braintrust.dev/docs",
    "FlashRAG": "RUC-NLPIR/FlashRAG",
    "HealthBench": "openai/simple-evals",
    "ResearchRubrics": "scaleapi/researchrubrics",
    "benchmark-qed": "microsoft/benchmark-qed",
    "MTRAG": "IBM/mt-rag-benchmark",
    "promptfoo": "promptfoo/promptfoo",
    "Azure": "Azure/azure-sdk-for-python, azure-ai-evaluation",
    "promptflow": "microsoft/promptflow",
    "Bedrock": "docs.aws.amazon.com/bedrock",
    "OpenAI": "platform.openai.com/docs/guides/supervised-fine-tuning",
    "MT-bench": "lm-sys/FastChat, llm_judge",
    "Vicuna": "lm-sys/vicuna-blog-eval",
    "TREC DRAGUN": "trec-dragun/resources",
    "TREC RAGTIME": "trec-ragtime.github.io; autojudge-base",
    "RAGElo": "zetaalphavector/RAGElo",
    "ShareGPT": "lm-sys/FastChat",
    "OpenAI evals": "platform.openai.com/docs/guides/evals, openai/evals",
    "lm-eval": "EleutherAI/lm-evaluation-harness",
    "open-rag-eval": "vectara/open-rag-eval",
    "OpenSearch": "opensearch-project/search-relevance",
    "Elasticsearch": "elastic.co/docs, rank_eval; o19s/elasticsearch-learning-to-rank",
    "RankLib": "sourceforge.net/p/lemur, RankLib",
    "Quepid": "o19s/quepid",
    "RRE": "SeaseLtd/rated-ranking-evaluator",
    "Haystack": "deepset-ai/haystack",
    "RAGChecker": "amazon-science/RAGChecker",
    "TruLens": "truera/trulens",
    "Giskard": "Giskard-AI/giskard",
    "Opik": "comet-ml/opik",
    "Weave": "wandb/weave",
    "RAGBench": "huggingface.co, rungalileo/ragbench",
    "continuous-eval": "relari-ai/continuous-eval",
    "Athina": "docs.athina.ai",
    "Tonic Validate": "TonicAI/tonic_validate",
    "Patronus": "docs.patronus.ai",
    "Vertex AI": "cloud.google.com/vertex-ai, evaluation",
    "LangWatch": "langwatch/langwatch",
    "DPR": "facebookresearch/DPR",
    "pandas": "pandas-dev/pandas, to_json and to_csv",
    "SQuAD": "rajpurkar.github.io/SQuAD-explorer",
}
"""Address of the files that a program shows, by form; forms without one are of people."""


def markdown() -> str:
    """The table of the documentation; print it to bring the page up to date."""
    parts = ["queries", "passages", "answers", "references", "judged", "items"]
    lines = [f"| program | file | source | preset | {' | '.join(parts)} | not read |"]
    lines.append("|---|---|---|---|" + "--:|" * len(parts) + "---|")
    named = [(*name.partition(", "), form) for name, form in FORMS.items()]
    rows = [
        (program, what, form) if program in SOURCES else ("", f"{program}{comma}{what}", form)
        for program, comma, what, form in named
    ]
    for program, what, form in sorted(rows, key=lambda row: (not row[0], row[0].lower())):
        held = form.expected
        counts = (
            *(len(held.queries), len({one for some in held.contexts.values() for one in some})),
            *(sum(map(len, held.answers.values())), len(held.references)),
            *(len(held.judgments), len(held.nuggets)),
        )
        cells = (
            *(program or "your own", what or "its file", SOURCES.get(program, "")),
            f"`{form.kind}`" if form.kind else "",
            *(str(count) if count else "" for count in counts),
            ", ".join(f"`{one}`" for one in form.unread),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
