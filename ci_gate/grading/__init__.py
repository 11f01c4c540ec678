"""Judges of a finished trial: each grader is one condition, and a trial passes if all hold."""
