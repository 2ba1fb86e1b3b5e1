"""Recognise the columns of a custom table by their names: question, system, answer, passage, ...

A role has tiers of names. The first tier of which a table has a column decides; several columns of
one tier that hold different values are ambiguous, and `--columns` decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from exampp.errors import InputError
from exampp.formats.fields import brief, normalize_name
from exampp.formats.read_warnings import is_empty

Row = Mapping[str, Any]
Roles = Mapping[str, tuple[str, ...]]
"""The columns of each role of a table, most often one."""


def _tiers(*tiers: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names.split()) for names in tiers)


SYNONYMS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "question": _tiers(
        "question query user_input user_question user_query question_text query_text",
        "prompt user_prompt prompt_text user_message input instruction evaluated_model_input",
        "topic topic_text narrative",
    ),
    "query_id": _tiers(
        "query_id queryid qid q_id question_id prompt_id topic_id narrative_id request_id "
        "ticket_id query_number question_number topic_number",
        "id _id number num no nr ticket",
    ),
    "system": _tiers(
        "system",
        "variant model pipeline experiment config configuration run run_id run_tag run_name method "
        "approach setup tag agent system_name system_id model_name model_id variant_name "
        "pipeline_name experiment_name retriever",
    ),
    "answer": _tiers(
        "response actual_output generated_answer model_answer system_answer bot_answer rag_answer "
        "predicted_answer prediction model_output generation completion generated generated_text "
        "generated_response model_response system_response bot_response rag_response llm_answer "
        "llm_response llm_output agent_answer agent_response final_answer answer_text "
        "response_text bot_reply bot_message assistant evaluated_model_output reply answer",
        "output result",
    ),
    "contexts": _tiers(
        "contexts ctxs retrieved_contexts retrieved_context retrieval_context retrieved_documents "
        "retrieved_docs documents docs retrieved_passages passages retrieved_chunks chunks "
        "retrieved_texts retrieved_contents retrieved_nodes retrieval_list retrieval_results "
        "retrieved source_documents source_nodes context_chunks context_list llm_context_list "
        "search_results evaluated_model_retrieved_context",
        "context",
        "chunk passage document snippet",
        "results hits",
    ),
    "context_ids": _tiers(
        "context_ids retrieved_context_ids retrieved_ids chunk_ids document_ids doc_ids passage_ids"
    ),
    "reference": _tiers(
        "reference ground_truth ground_truths reference_answer expected_answer expected_output "
        "gold_answer golden_answer golden_answers gold_answers correct_answer ideal_answer "
        "gt_answer gt_answers expected expected_response reference_response ground_truth_answer "
        "reference_answers correct_answers expected_answers correct_label "
        "ideal evaluated_model_gold_answer answer_key",
        "answers",
    ),
    "reference_contexts": _tiers("reference_contexts gold_contexts relevant_contexts"),
    "relevant_ids": _tiers(
        "relevant_ids relevant_docs relevant_doc_ids relevant_document_ids relevant_passage_ids "
        "expected_ids expected_doc_ids expected_document_ids gold_ids gold_doc_ids "
        "gold_document_ids ground_truth_ids ground_truth_doc_ids reference_context_ids positive_ids"
    ),
    "passage_id": _tiers(
        "passage_id paragraph_id pid docno docid doc_id did document_id corpus_id chunk_id "
        "context_id segment_id product_id"
    ),
    "text": _tiers(
        "text passage segment contents content body chunk context document doc snippet "
        "passage_text chunk_text context_text document_text",
    ),
    "title": _tiers("title heading"),
    "rank": _tiers("rank position"),
    "score": _tiers("score similarity"),
    "relevance": _tiers("relevance rel label judgment judgement grade rating"),
}
"""The names of columns by role, normalized; the role is the name on the left of `--columns`."""
TABLE_ROLES = (
    *("question", "query_id", "system", "answer", "contexts", "reference"),
    *("passage_id", "text", "rank", "score", "relevance"),
)
"""The roles that make up a table, the most telling first."""
CERTAIN_ANSWERS = SYNONYMS["answer"][0][:-1]
"""Names of an answer that a system gave; `answer` alone may be the reference."""


def role_of(name: str, among: Collection[str]) -> str:
    """Return the role that a name of a column has among some; the name itself where it has none."""
    return next((role for role in among if name == role), "") or next(
        (role for role in among if name in names_of(role)), name
    )


def names_of(role: str) -> tuple[str, ...]:
    """Return all names of a role, the preferred one first."""
    return tuple(name for tier in SYNONYMS[role] for name in tier)


def value_of(row: Row, roles: Roles, role: str) -> Any:
    """Return the first value of a role that is not empty; None for none."""
    values = (row[name] for name in roles.get(role, ()) if name in row)
    return next((value for value in values if not is_empty(value)), None)


def roles_of(names: Iterable[str], named: Mapping[str, str], among: Collection[str]) -> Roles:
    """Return the columns of each role, those of the first tier that a table has.

    Args:
        names: The columns of the table.
        named: Columns by role, as the user names them.
        among: The roles that are looked for, those that take precedence first.
    """
    free = [name for name in dict.fromkeys(names) if name not in named.values()]
    by_role: dict[str, tuple[str, ...]] = {role: (column,) for role, column in named.items()}
    for role in among:
        if role in by_role:
            continue
        for tier in SYNONYMS[role]:
            fitting = [name for name in free if normalize_name(name) in tier]
            if fitting:
                by_role[role] = tuple(
                    sorted(fitting, key=lambda one: tier.index(normalize_name(one)))
                )
                free = [name for name in free if name not in fitting]
                break
    return by_role


def settle(path: object, rows: Sequence[Row], roles: Roles) -> Roles:
    """Return the roles, each with columns that do not contradict each other.

    Of several columns for the system those count whose values differ within the table.

    Raises:
        InputError: Two columns of one role hold different values.
    """
    settled_roles = dict(roles)
    for role, columns in roles.items():
        if len(columns) == 1:
            continue
        if role == "system":
            varying = tuple(one for one in columns if len({str(row.get(one)) for row in rows}) > 1)
            settled_roles[role] = columns = varying or columns
        other = next((one for one in columns[1:] if _differ(rows, columns[0], one)), None)
        if other is not None:
            two = f"{role}={columns[0]} or --columns {role}={other}"
            raise InputError(
                f"the columns {brief(columns[0])} and {brief(other)} may both be the {role}",
                file=str(path),
                field=other,
                hint=f"Choose one: --columns {two}"
                + (" (a correct answer is the reference)" if role == "answer" else ""),
            )
    return settled_roles


def _differ(rows: Iterable[Row], one: str, other: str) -> bool:
    return any(
        row[one] != row[other]
        for row in rows
        if one in row and other in row and not is_empty(row[one]) and not is_empty(row[other])
    )


def identifies_queries(rows: Sequence[Row], roles: Roles) -> bool:
    """Return whether the ids of a table are those of its questions, and not numbers of its rows.

    Ids that are all different number the rows if several systems answer the same questions.
    """
    wanted = ("query_id", "question", "system")
    with_id = (row for row in rows if value_of(row, roles, "query_id") is not None)
    found = [tuple(str(value_of(row, roles, role)) for role in wanted) for row in with_id]
    ids, texts = {one for one, *_ in found}, {text for _, text, _ in found}
    answered = {(text, system) for _, text, system in found}
    return len(ids) < len(found) or len(texts) == len(found) or len(answered) < len(found)
