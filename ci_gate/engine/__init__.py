"""Runs planned trials: order, concurrency, pace, retries, limits, budget and interruption.

The engine knows agents, sandboxes, graders and the journal only through ``ci_gate.ports``.
"""
