"""The statistics of the gate: counts in, results out.

The only package of the project that imports numpy. It knows no task ids, files or
policies; a task is its position in the sequence that was given, and no result depends on the order
of that sequence.
"""
