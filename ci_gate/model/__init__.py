"""The words of the field as frozen data: suites, trials, runs, baselines, policies, verdicts.

Nothing here reads a file, a clock or chance; every other package speaks in these types.
"""
