"""What the test against the anchor found: whether many small steps add up to a slide.

Each change may pass beside a baseline that moves along with it. The anchor stays where it was. This
module turns the test's answer into the figures that are shown; what they mean for the verdict is
the business of the rules.
"""

from __future__ import annotations

from ci_gate.decision.evidence import Evidence
from ci_gate.decision.matching import Matching
from ci_gate.decision.metrics import tested_metrics
from ci_gate.model.policy import Policy
from ci_gate.model.verdict import SlideResult

__all__ = ["slide_of"]


def slide_of(evidence: Evidence, matching: Matching, policy: Policy) -> SlideResult:
    """Return what the test of the candidate against the anchor says.

    Parameters
    ----------
    evidence : Evidence
        Of the tasks whose content is still the anchor's.
    matching : Matching
        Of the anchor's tasks with the candidate's.
    policy : Policy
        For its metrics; the test has the whole of its alpha.
    """
    joint = evidence.joint
    return SlideResult(
        regressed=joint.p_value <= joint.level,
        p_value=joint.p_value,
        level=joint.level,
        compared=len(evidence.tasks),
        changed=len(matching.changed),
        metrics=tested_metrics(evidence, policy),
        tasks=tuple(task for task in evidence.tasks if evidence.by_task[task].regressed),
        strata=evidence.choice.strata,
        exact=joint.exact,
        draws=joint.draws,
    )
