"""A tiny notation for sides: ``side_of("refund ++-+ cancel ----/+-+- lookup +!+.")``.

A word that names a task, a word of outcomes; ``/`` begins the next run over the same seeds.
"""

from __future__ import annotations

from typing import Any

from ci_gate.model.run import Side, SideTask

ROOT_SEED = "0x0000000020261030"


def side_of(notation: str, **fields: Any) -> Side:
    """Return a side with the outcomes; tasks have the digest ``sha256:<id>`` unless told.

    ``digests``, ``reasons`` and ``causes`` are by task id, as are the fields of a task; every other
    keyword is a field of the side.
    """
    words = notation.split()
    outcomes = dict(zip(words[::2], words[1::2], strict=True))
    digests = fields.pop("digests", {})
    reasons = fields.pop("reasons", {})
    causes = fields.pop("causes", {})
    tasks = {
        task: SideTask(
            digest=digests.get(task, f"sha256:{task}"),
            outcomes=tuple(runs.split("/")),
            reasons=reasons.get(task, {}),
            **({"causes": causes.get(task, {})} | fields.pop(task, {})),
        )
        for task, runs in outcomes.items()
    }
    planned = {task: sum(map(len, runs.split("/"))) for task, runs in outcomes.items()}
    settings = {"kind": "run", "suite": "desk", "root_seed": ROOT_SEED, "planned": planned}
    return Side(**(settings | fields), tasks=tasks)  # type: ignore[arg-type]
