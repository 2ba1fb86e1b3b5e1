"""Graders on OpenAI-compatible servers: hosted ones, vLLM, SGLang, llama.cpp, Ollama and others.

The package `aiohttp` is imported when a grader is created.
"""

from exampp.graders.openai.grader import OpenAICompatibleGrader

__all__ = ["OpenAICompatibleGrader"]
