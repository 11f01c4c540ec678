"""What a report says of traces: where trials part, which kept traces the agent left."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings

from ci_gate.model.trace_findings import Parting
from ci_gate.model.verdict import Verdict
from ci_gate.model.verdict_traces import (
    CallExcerpt,
    DifferenceExcerpt,
    KeptTraceDrift,
    KeptTraces,
    PartingExcerpt,
    TrialParting,
    UnplayedTrace,
    VerdictTraces,
)
from ci_gate.render.document import Fold, Section
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from tests.render import samples
from tests.render.github_like import rendered
from tests.render.nasty import NASTY, outside_code, skeleton
from tests.render.regenerate import printed
from tests.speeds import examples

UNLIMITED = 10**9


def parting(text: str = "refund", **fields: object) -> TrialParting:
    """Return a parting in which every text from outside is the given one."""
    call = CallExcerpt(order=4, call=text, answer=text)
    at = PartingExcerpt(
        kind=Parting.ARGUMENTS,
        lane=text,
        place=3,
        baseline=call,
        candidate=msgspec.structs.replace(call, fault=text),
        differences=(
            DifferenceExcerpt(path=text, baseline=text, candidate=text),
            DifferenceExcerpt(path="$.new", baseline=None, candidate=text),
            DifferenceExcerpt(path="$.old", baseline=text, candidate=None),
        ),
        hidden=2,
    )
    made = TrialParting(
        task=text,
        same_seed=True,
        baseline_trial=3,
        baseline_trace="baselines/desk.traces/refund/3.jsonl",
        candidate_trial=3,
        candidate_repeat=0,
        candidate_trace=".ci-gate/traces/refund/3.jsonl",
        parting=at,
        command="ci-gate trace diff A B",
    )
    return msgspec.structs.replace(made, **fields)


def kept(text: str = "refund", **fields: object) -> KeptTraces:
    """Return kept traces of which one drifted, with a text from outside."""
    made = KeptTraces(
        origin=text,
        kept=24,
        played=23,
        drifted=(KeptTraceDrift(task=text, trial=1, trace=text, drift=text),),
        unplayed=(UnplayedTrace(task=text, why=text),),
    )
    return msgspec.structs.replace(made, **fields)


def red(*partings: TrialParting, kept: KeptTraces | None = None) -> Verdict:
    """Return a red verdict with these traces."""
    traces = VerdictTraces(kept=kept, partings=partings)
    return msgspec.structs.replace(samples.red_by_task(), traces=traces)


def section(verdict: Verdict, key: str) -> Section:
    """Return one section of the report on a suite."""
    [suite] = view([verdict]).suites
    return next(found for found in suite.sections if found.key == key)


def test_without_traces_there_is_no_section() -> None:
    """Most gates keep none."""
    [suite] = view([samples.red_by_task()]).suites

    assert {"partings", "kept-traces"}.isdisjoint(found.key for found in suite.sections)


def test_a_parting_is_a_short_block_for_each_task() -> None:
    """What kind it is, both calls, the differences, the command."""
    found = section(red(parting(), parting()), "partings")

    assert len(found.comparisons) == 2
    assert found.comparisons[0].lead == (
        "trial 3 beside trial 3 of the baseline, the same seed: in lane refund after 3 calls the "
        "same call has other arguments."
    )
    assert found.comparisons[0].lines == (
        *("- call 4: refund -> refund", "+ call 4: refund -> refund [fault refund]"),
        *("  at refund", "-   refund", "+   refund"),
        *("  at $.new", "+   refund", "  at $.old", "-   refund"),
        "  and 2 more differences",
    )
    assert found.comparisons[0].command == "ci-gate trace diff A B"


def test_another_seed_and_another_repeat_are_said() -> None:
    """More than the change may tell such trials apart."""
    other = parting(same_seed=False, candidate_trial=5, candidate_repeat=2)

    [found] = section(red(other), "partings").comparisons

    assert found.lead.startswith(
        "trial 5 of repeat 2 beside trial 3 of the baseline, another seed: "
    )


def test_traces_that_agree_are_said_to() -> None:
    """Then the answer itself, or its grading, made the difference."""
    report = markdown(view([red(parting(parting=None))]))

    assert "every call and every answer agrees" in report
    assert "```diff" not in report


def test_a_side_that_stopped_makes_no_more_calls() -> None:
    """A call that is missing is no empty line."""
    at = PartingExcerpt(
        kind=Parting.STOPPED,
        lane="main",
        place=1,
        baseline=CallExcerpt(order=1, call="tool refund()", answer="done"),
        candidate=None,
    )

    [found] = section(red(parting(parting=at)), "partings").comparisons

    assert found.lines == ("- call 1: tool refund() -> done", "+ (no more calls)")


def test_the_terminal_has_the_same_block() -> None:
    """For whoever reads the log."""
    lines = printed([red(parting())]).splitlines()

    at = lines.index("  Where a failing trial leaves a passing one")
    assert lines[at + 2 : at + 4] == [
        "    - call 4: refund -> refund",
        "    + call 4: refund -> refund [fault refund]",
    ]


@pytest.mark.parametrize(
    ("found", "fold", "sentences"),
    [
        (
            kept(),
            Fold.OPEN,
            (
                "1 of 24 kept traces: the agent makes other calls. First drift: refund, refund.",
                "Not played, because refund: refund.",
            ),
        ),
        (
            kept(drifted=(), unplayed=(), played=24),
            Fold.CLOSED,
            ("The agent makes the calls of 24 of 24 kept traces, each as it was.",),
        ),
        (
            kept(
                drifted=(),
                played=0,
                unplayed=tuple(UnplayedTrace(task=f"t{n}", why="no time") for n in range(7)),
            ),
            Fold.CLOSED,
            ("Not played, because no time: t0, t1, t2, t3, t4 and 2 more.",),
        ),
    ],
    ids=["drifted", "consistent", "unplayed"],
)
def test_kept_traces_stand_open_where_one_was_left(found, fold, sentences) -> None:
    """They decide nothing, so they are folded where there is nothing to see."""
    shown = section(red(kept=found), "kept-traces")

    assert shown.fold is fold
    assert shown.lead == sentences


@settings(max_examples=examples(30))
@given(NASTY.filter(lambda text: text.strip() != ""))
def test_texts_of_traces_do_not_change_the_shape_of_a_report(text: str) -> None:
    """What agents, models and tools wrote is shown and never obeyed."""
    hostile = red(parting(text), kept=kept(text))
    tame = red(parting("tame"), kept=kept("tame"))

    report = markdown(view([hostile]), limit=UNLIMITED)

    page = rendered(report)
    assert skeleton(page) == skeleton(rendered(markdown(view([tame]), limit=UNLIMITED)))
    assert not re.search(r"@\w|#\d|(?i:\bgh-\d)|://|(?i:www\.)", outside_code(page))
    for line in (*report.splitlines(), *printed([hostile]).splitlines()):
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
        assert line.replace("\N{NO-BREAK SPACE}", "").isprintable()


def test_long_values_are_cut() -> None:
    """A payload of a megabyte takes some lines at most."""
    whole = len(markdown(view([red()])))

    assert len(markdown(view([red(parting("x" * 10**6), kept=kept("x" * 10**6))]))) < whole + 4000


def test_a_report_that_is_too_large_does_without() -> None:
    """By the same rules as for every other section, and says so."""
    made = red(*(parting("\U0001f600" * 200) for _ in range(3)), kept=kept("y" * 300))
    plain = len(markdown(view([samples.red_by_task()]), limit=UNLIMITED).encode())

    report = markdown(view([made]), limit=plain)

    assert len(report.encode()) <= plain
    assert "kept traces" in report.splitlines()[-1]


def test_a_heading_after_replays_is_one() -> None:
    """HTML before it ends at an empty line."""
    page = rendered(markdown(view([red(parting())])))

    assert "<h3>Where a failing trial leaves a passing one</h3>" in page
