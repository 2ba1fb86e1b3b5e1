"""Graders on OpenAI-compatible servers: hosted ones, vLLM, SGLang, llama.cpp, Ollama and others.

The package `openai` is imported when a grader is made, not before.
"""

from exampp.llm.openai.budget import BudgetSpent, Limits, Price
from exampp.llm.openai.chat import Sampling
from exampp.llm.openai.grader import Decode, OpenAICompatibleGrader
from exampp.llm.openai.probe import Capabilities
from exampp.llm.openai.sender import Patience

__all__ = [
    "BudgetSpent",
    "Capabilities",
    "Decode",
    "Limits",
    "OpenAICompatibleGrader",
    "Patience",
    "Price",
    "Sampling",
]
