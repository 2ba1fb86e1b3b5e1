"""Batches: many requests given to a provider together, at half the price, answered within a day.

A service knows one provider's protocol and nothing of grades. What is out, and what came, is kept
by whoever calls it (`grade.batches`).
"""

from exampp.llm.batches.anthropic import AnthropicBatches
from exampp.llm.batches.google import GoogleBatches
from exampp.llm.batches.openai import OpenAIBatches
from exampp.llm.batches.service import BatchLine, BatchService, BatchSight, CallFailed, TornResults

SERVICES = {one.name: one for one in (OpenAIBatches, AnthropicBatches, GoogleBatches)}
"""The services by the provider's name."""

__all__ = [
    "SERVICES",
    "AnthropicBatches",
    "BatchLine",
    "BatchService",
    "BatchSight",
    "CallFailed",
    "GoogleBatches",
    "OpenAIBatches",
    "TornResults",
]
