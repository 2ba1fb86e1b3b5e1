"""In which fields programs for RAG systems keep a question, what was retrieved and what was said.

Sources: ragas 0.4 (`user_input`; before `question`), DeepEval 4 (goldens and test cases), IBM's
MTRAG, LangSmith (examples, runs), AutoRAG (qa and result tables), promptfoo (`EvaluateSummaryV3`;
its RAG metrics need the variables `query` and `context`), TruLens 2 (its table of records). Traces
are in `rag_traces`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple


class Preset(NamedTuple):
    """Fields of a program by dotted paths; the first path that a record has counts.

    A file is of the program if it has a field of every set of `marks`. `relevant` are passages that
    a reference is made of, `relevant_ids` the ids of such passages. `joined` separates the elements
    of a list in a cell that is not a Python literal. `inside` are the places of the records in a
    file that is one object. `system` are parts of the name of the system; the parts that differ
    within a file name it. `opened` are the keys of a question and of an answer that are objects.
    """

    marks: tuple[frozenset[str], ...]
    query: tuple[str, ...]
    query_id: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    relevant: tuple[str, ...] = ()
    relevant_ids: tuple[str, ...] = ()
    joined: str = ""
    inside: tuple[str, ...] = ()
    system: tuple[tuple[str, ...], ...] = ()
    opened: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def objects(self) -> frozenset[str]:
        """Return the fields of a record that are objects with the fields of dotted paths."""
        places = (self.query, self.query_id, self.contexts, self.ids, self.response)
        every = (*places, self.reference, self.relevant, *self.system)
        return frozenset(path.partition(".")[0] for one in every for path in one if "." in path)

    def with_columns(self, columns: Mapping[str, str]) -> Preset:
        """Return the preset with the fields that `columns` names, which then hold nothing else."""
        fields: dict[str, Any] = {
            name: tuple(path for path in getattr(self, name) if path not in columns.values())
            for name in set(_HOLDS.values()) - {"system"}
        }
        fields |= {_HOLDS[name]: (column,) for name, column in columns.items() if name in _HOLDS}
        if "system" in fields:
            fields["system"] = (fields["system"],)
        return self._replace(**fields)


_HOLDS = {
    "question": "query",
    "query_text": "query",
    "query_id": "query_id",
    "contexts": "contexts",
    "response": "response",
    "answer": "response",
    "reference": "reference",
    "reference_contexts": "relevant",
    "system": "system",
}
"""The field of a preset by the name that `--columns` has for it."""


def marks(*sets: str) -> tuple[frozenset[str], ...]:
    """Sets of fields, each as words."""
    return tuple(frozenset(one.split()) for one in sets)


PRESETS: Mapping[str, Preset] = {
    "ragas": Preset(
        marks("user_input question", "retrieved_contexts contexts response", "user_input contexts"),
        query=("user_input", "question"),
        contexts=("retrieved_contexts", "contexts"),
        ids=("retrieved_context_ids",),
        response=("response", "answer"),
        reference=("reference", "ground_truth"),
        relevant=("reference_contexts",),
    ),
    "deepeval": Preset(
        marks("input", "actual_output retrieval_context expected_output"),
        query=("input",),
        contexts=("retrieval_context",),
        response=("actual_output",),
        reference=("expected_output",),
        relevant=("context",),
        joined="|",
    ),
    "mtrag": Preset(
        marks("task_id", "input", "contexts"),
        query=("input",),
        query_id=("task_id",),
        contexts=("contexts",),
        response=("predictions",),
        reference=("targets",),
    ),
    "langsmith": Preset(
        marks("inputs", "outputs"),
        query=("inputs.question", "inputs.query", "inputs.input"),
        contexts=("outputs.contexts", "outputs.documents", "outputs.context"),
        response=("outputs.answer", "outputs.output", "outputs.response"),
        reference=("reference_outputs.answer", "reference.answer"),
    ),
    "promptfoo": Preset(
        marks("vars", "promptIdx testIdx prompt", "provider response"),
        query=("vars.query", "vars.question"),
        contexts=("response.metadata.context", "vars.context"),
        response=("response.output",),
        inside=("results.results",),
        system=(("provider.label", "provider.id"), ("prompt.label", "promptIdx")),
    ),
    "autorag": Preset(
        marks("query", "retrieval_gt generation_gt retrieved_contents generated_texts"),
        query=("query",),
        query_id=("qid",),
        contexts=("retrieved_contents",),
        ids=("retrieved_ids",),
        response=("generated_texts",),
        reference=("generation_gt",),
        relevant_ids=("retrieval_gt",),
    ),
    "trulens": Preset(
        marks("record_id", "app_id app_name", "input", "output"),
        query=("input",),
        response=("output",),
        system=(("app_name", "app_id"), ("app_version",)),
    ),
}
"""Every program's fields, by the kind that `--as` calls its files."""

ANSWERS = "answers"
"""Tables and objects of people's own, whose fields go by the names that are usual for them."""
_QUESTIONS = "question query user_input user_question user_query prompt input"
_CONTEXTS = (
    "contexts context retrieved_contexts retrieved_context retrieval_context retrieved_documents "
    "documents docs retrieved_passages passages retrieved_chunks chunks source_documents"
)
_ONLY_ANSWERS = (
    "response actual_output generated_answer model_answer system_answer bot_answer rag_answer "
    "predicted_answer prediction model_output generation completion"
)
_REFERENCES = (
    "ground_truth ground_truths reference reference_answer expected_answer expected_output "
    "gold_answer golden_answer golden_answers gold_answers correct_answer ideal_answer expected"
)
OWN = Preset(
    (),
    query=tuple(_QUESTIONS.split()),
    query_id=("query_id", "question_id", "qid", "id"),
    contexts=tuple(_CONTEXTS.split()),
    response=(*_ONLY_ANSWERS.split(), "answer", "output"),
    reference=tuple(_REFERENCES.split()),
    relevant=("reference_contexts", "gold_contexts"),
    system=(("system", "model", "run_id", "pipeline"),),
)
NUMBERED = re.compile(r"(?:retrieved_)?(?:context|document|doc|passage|chunk)_?(\d{1,4})")
"""Columns of one context each."""
OWN_MARKS: tuple[tuple[frozenset[str], ...], ...] = (
    marks(_QUESTIONS, _CONTEXTS),
    marks(_QUESTIONS, _ONLY_ANSWERS),
    marks(_QUESTIONS, "answer output", _REFERENCES),
)
"""Fields are of `OWN` where they have one of each set of any of these."""
MAY_BE_GOLD = frozenset(["contexts", "context", "documents", "docs", "passages", "chunks"])
"""Contexts that a system retrieved, or that a data set gives with its questions."""
MAY_BE_REFERENCE = frozenset({"answer", "output"})
"""What a system said, or the right answer of a data set."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "ragas": ("user_input", "retrieved_contexts", "response"),
    "deepeval": ("input", "retrieval_context", "actual_output"),
    "mtrag": ("task_id", "input", "contexts"),
    "langsmith": ("inputs", "outputs"),
    "promptfoo": ("vars", "prompt", "provider", "response"),
    "autorag": ("query", "retrieved_contents", "generated_texts"),
    "trulens": ("record_id", "input", "output", "app_name"),
    "trulens-events": ("record_attributes", "resource_attributes", "trace"),
    "langfuse": ("traceId", "type", "input", "output"),
    "openinference": ("context", "span_kind", "attributes"),
    ANSWERS: ("question", "contexts", "answer"),
}
"""What a file of each kind has, to be said of one that is none."""
