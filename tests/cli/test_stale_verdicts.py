"""What lies beside a run, or in a file that was asked for, is of that run or not there."""

from __future__ import annotations

import pytest

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}
TARGETS = ("--json", "v.json", "--markdown", "r.md", "--junit", "j.xml")


def test_no_earlier_verdict_lies_beside_a_newer_run(gated):
    """An agent that cannot start costs nothing; the first trial of a new run takes the old word."""
    results = gated.path / ".ci-gate"
    assert gated.gate("check", "--quiet", **BAR).status == 0
    kept = ["example.report.md", "example.run.jsonl", "example.verdict.json"]

    gated.replace("ci-gate.toml", "toy_agent:run", "toy_agent:missing")
    unstarted = gated.gate("check", "--fresh", "--quiet", **BAR)
    after_nothing = sorted(p.name for p in results.glob("example.*"))
    gated.replace("ci-gate.toml", "toy_agent:missing", "toy_agent:run")
    measured = gated.gate("run", "--fresh", "--quiet", **BAR)

    assert (unstarted.status, after_nothing) == (2, kept)
    assert measured.status == 0
    assert [p.name for p in results.glob("example.*")] == ["example.run.jsonl"]


@pytest.mark.slow
def test_a_command_that_fails_leaves_no_earlier_verdict_in_a_named_file(gated):
    """So a workflow step that shows the report whatever happened shows none of an earlier run."""
    places = [gated.path / name for name in ("v.json", "r.md", "j.xml")]
    run, bar = ".ci-gate/example.run.jsonl", "baselines/example.json"
    assert gated.gate("check", "--quiet", *TARGETS, **BAR).status == 0
    assert all(place.is_file() for place in places)

    missing = gated.gate("compare", bar, "missing.jsonl", *TARGETS)
    after_compare = [place.exists() for place in places]
    assert gated.gate("compare", "--quiet", bar, run, *TARGETS).status == 0
    (gated.path / "ci-gate.toml").write_text("[gate]\nalpha = 2\n")
    broken = gated.gate("check", *TARGETS, **BAR)

    assert (missing.status, after_compare) == (2, [False] * 3)
    assert (broken.status, [place.exists() for place in places]) == (2, [False] * 3)


def test_what_is_read_is_not_removed_before(gated):
    """A file that is input and output at once is whole when it is read, whatever comes then."""
    bar = gated.path / "baselines/example.json"
    before = bar.read_bytes()

    found = gated.gate("compare", str(bar), "missing.jsonl", "--json", str(bar))

    assert (found.status, bar.read_bytes()) == (2, before)


def test_a_target_that_cannot_be_written_is_refused_before_the_first_trial(gated):
    """A link may lead anywhere, and all trials would have been for nothing."""
    (gated.path / "v.json").symlink_to("/nowhere")

    found = gated.gate("check", "--json", "v.json", **BAR)

    assert (found.status, "v.json" in found.err) == (2, True)
    assert not (gated.path / ".ci-gate").exists()
