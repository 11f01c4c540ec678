"""The desk's answer as a letter to the customer: the same work, in words that can be sent.

Like a model it is now and then short of a kind word, seeded by the trial. ``regressed`` is a change
that saved tokens on politeness.
"""

from __future__ import annotations

import os
from typing import Any

from refund_desk import agent

FORGETS = 0.05


def run(task: Any, env: Any) -> dict[str, Any]:
    """Serve the customer as deployed and answer in the tone that the environment names."""
    result = agent.good(task, env)
    if os.environ.get("REFUND_DESK_VARIANT") == "regressed":
        return result
    return {**result, "answer": letter(result["answer"], is_sorry=env.rng.random() >= FORGETS)}


def letter(news: str, *, is_sorry: bool) -> str:
    """Return what is sent: a greeting, a kind word, the news, and who writes."""
    kind = "I am sorry for the trouble that you had. " if is_sorry else ""
    return f"Good day,\n\n{kind}{news}\n\nYour refund desk"
