"""Graders on OpenAI-compatible servers: hosted ones, vLLM, SGLang, llama.cpp, Ollama and others.

The package `openai` is imported when a grader is made, not before.
"""

from exampp.graders.openai.budget import BudgetSpent, Limits, Price
from exampp.graders.openai.grader import Decode, OpenAICompatibleGrader
from exampp.graders.openai.modes import Sampling
from exampp.graders.openai.probe import Capabilities
from exampp.graders.openai.sender import RetryPolicy

__all__ = [
    "BudgetSpent",
    "Capabilities",
    "Decode",
    "Limits",
    "OpenAICompatibleGrader",
    "Price",
    "RetryPolicy",
    "Sampling",
]
