"""Batches: many requests given to a provider together, at half the price, answered within a day.

A service knows one provider's protocol and nothing of grades. What is out, and what came, is kept
by whoever calls it (`grade.batches`).
"""

from exampp.graders.batches.anthropic import AnthropicBatches
from exampp.graders.batches.google import GoogleBatches
from exampp.graders.batches.openai import OpenAIBatches
from exampp.graders.batches.service import (
    BatchLine,
    BatchService,
    BatchStatus,
    CallFailed,
    TruncatedResults,
)

SERVICES = {one.name: one for one in (OpenAIBatches, AnthropicBatches, GoogleBatches)}
"""The services by the provider's name."""

__all__ = [
    "SERVICES",
    "AnthropicBatches",
    "BatchLine",
    "BatchService",
    "BatchStatus",
    "CallFailed",
    "GoogleBatches",
    "OpenAIBatches",
    "TruncatedResults",
]
