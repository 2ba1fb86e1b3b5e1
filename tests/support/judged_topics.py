"""Two topics of TREC AutoJudge with a bank and reports of two runs.

For tests to import, not for their modules: autojudge-base imports nltk, scikit-learn and pandas,
which takes as long as to collect all tests.
"""

from __future__ import annotations

from pathlib import Path

from autojudge_base import NuggetBanks, Report
from autojudge_base.llm_config import LlmConfigBase
from autojudge_base.nugget_data import NuggetBank, NuggetQuestion
from autojudge_base.request import Request

TOPICS = [
    Request(request_id="sky", title="blue sky", problem_statement="Why is it blue?"),
    Request(request_id="sea", title="salty sea"),
]


def report(run: str, topic: str, *sentences: str, cites: str = "", text: str = "") -> Report:
    said = [{"text": one, "citations": [cites] if cites else []} for one in sentences]
    documents = {cites: {"id": cites, "text": text}} if text else None
    metadata = {"team_id": "us", "run_id": run, "topic_id": topic}
    return Report.model_validate({"metadata": metadata, "responses": said, "documents": documents})


REPORTS = [
    report("two", "sky", "It is far away.", cites="d2", text="Nothing here but dust."),
    report("one", "sky", "The air scatters light.", cites="d1", text="It is air and dust."),
    report("one", "sea", "Rivers carry salt.", cites="d3", text="A river."),
    report("two", "sea", ""),
]


def bank(topic: str, *questions: str) -> NuggetBank:
    made = NuggetBank(query_id=topic, title_query=topic)
    made.add_nuggets(
        [
            NuggetQuestion.from_lazy(query_id=topic, question=one, gold_answers=[])
            for one in questions
        ]
    )
    return made


QUESTIONS = {"sky": ["What of air?", "What of dust?"], "sea": ["What of salt?"]}
BANKS = NuggetBanks.from_banks_list([bank(*(topic, *some)) for topic, some in QUESTIONS.items()])


def config(url: str, folder: Path) -> LlmConfigBase:
    return LlmConfigBase(model="tiny", cache_dir=folder, base_url=url, api_key="k")
