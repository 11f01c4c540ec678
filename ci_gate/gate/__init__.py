"""The use cases: the only place where every package is wired together.

A module a use case; each takes values, gathers what it needs, and returns a value that ``cli``
prints.
"""
