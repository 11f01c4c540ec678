"""A CI gate with a baseline store for LLM agents."""

__version__ = "0.1.0"
