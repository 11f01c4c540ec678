"""The way a trial went, read from its calls: which there were, and what they are worth; pure."""
