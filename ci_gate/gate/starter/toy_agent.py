"""A toy agent that answers from rules and sometimes slips, as models do.

Set ``SLIP`` to 0.6 and run ``ci-gate check`` again to see a red gate.
"""

SLIP = 0.05


def run(task, env):
    """Answer one task; ``env.rng`` is seeded by the trial, so a slip can be replayed."""
    if env.rng.random() < SLIP:
        return "I am not sure."
    if task.id == "greeting":
        return "Hello {}!".format(task.input["customer"])
    if task.id == "sum":
        return str(sum(task.input["amounts"]))
    return "I cannot help with that."
