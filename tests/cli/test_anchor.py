"""The anchor in git: who writes it, who reads it, and who may not touch it."""

from __future__ import annotations

import json
import shutil

import pytest

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}
ANCHOR, BASELINE = "baselines/example.anchor.json", "baselines/example.json"


def codes(ended) -> set[str]:
    """Return the codes of the reasons of a verdict on standard output, but how the run ended."""
    return {reason["code"] for reason in json.loads(ended.out)["reasons"]} - {"curtailed"}


def rewrite_outcomes(place, name, before, after):
    """Edit the outcomes of a baseline's tasks: every trial that passed, or the first half."""
    path = place.path / name
    content = json.loads(path.read_text())
    for task in content["tasks"].values():
        task["outcomes"] = [run.replace(before, after, 4) for run in task["outcomes"]]
    path.write_text(json.dumps(content))


@pytest.mark.slow
def test_the_first_update_writes_the_anchor_and_the_next_leave_it(gated):
    """Only --anchor moves it."""
    first = (gated.path / ANCHOR).read_bytes()
    assert first == (gated.path / BASELINE).read_bytes()
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.02")

    later = gated.gate("baseline", "update")

    assert later.status == 0, later.err
    assert (gated.path / BASELINE).read_bytes() != first
    assert (gated.path / ANCHOR).read_bytes() == first
    assert "anchor:" not in later.err

    moved = gated.gate("baseline", "update", "--anchor", "--fresh")

    assert moved.status == 0, moved.err
    assert (gated.path / ANCHOR).read_bytes() == (gated.path / BASELINE).read_bytes()
    assert "anchor:" in moved.err


@pytest.mark.slow
def test_an_update_without_an_anchor_writes_one_though_the_bar_does_not_move(gated):
    """A baseline that is older than anchors gets one with the next update."""
    (gated.path / ANCHOR).unlink()

    ended = gated.gate("baseline", "update")

    assert ended.status == 0, ended.err
    assert "nothing changed" in ended.err
    assert (gated.path / ANCHOR).read_bytes() == (gated.path / BASELINE).read_bytes()


@pytest.mark.slow
def test_a_refused_update_writes_no_anchor(gated):
    """What cannot serve as the bar cannot serve as the anchor."""
    (gated.path / ANCHOR).unlink()

    ended = gated.gate("baseline", "update", "--trials", "8", "--task", "sum")

    assert ended.status == 2
    assert not (gated.path / ANCHOR).exists()


def slid(gated):
    """Commit a baseline of an agent that fails half of the time, below the anchor, on main."""
    gated.git("switch", "--quiet", "main")
    rewrite_outcomes(gated, BASELINE, "+", "-")
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.5")
    gated.commit("slid")
    gated.git("switch", "--quiet", "--force-create", "change")


def test_a_slide_is_red_in_a_pull_request(gated):
    """The base's baseline has moved down with the agent, its anchor has not."""
    slid(gated)

    ended = gated.gate("check", "--json", "-", **BAR)

    assert ended.status == 1, ended.err
    assert codes(ended) == {"slide"}
    verdict = json.loads(ended.out)
    assert verdict["slide"]["regressed"] is True
    assert verdict["provenance"]["anchor"]["origin"].startswith(ANCHOR)


@pytest.mark.slow
def test_the_anchor_is_read_from_the_base_commit(gated):
    """A change that lowers its own anchor is judged by the base's, and told."""
    slid(gated)
    shutil.copy(gated.path / BASELINE, gated.path / ANCHOR)
    gated.commit("lower the anchor")

    ended = gated.gate("check", "--json", "-", **BAR)

    assert codes(ended) == {"slide", "baseline-edited"}


@pytest.mark.slow
def test_a_pull_request_may_not_remove_the_anchor(gated):
    """Without an anchor there is no slide: taking it away moves the bar."""
    (gated.path / ANCHOR).unlink()
    gated.commit("no anchor")

    assert codes(gated.gate("check", "--json", "-", **BAR)) == {"baseline-edited"}


@pytest.mark.slow
def test_a_pull_request_may_not_bring_an_anchor(gated):
    """The first anchor of a suite with a baseline is a bar too."""
    gated.git("switch", "--quiet", "main")
    content = (gated.path / ANCHOR).read_bytes()
    (gated.path / ANCHOR).unlink()
    gated.commit("before there were anchors")
    gated.git("switch", "--quiet", "--force-create", "change")
    (gated.path / ANCHOR).write_bytes(content)
    gated.commit("an anchor")

    red = gated.gate("check", "--json", "-", **BAR)
    labelled = gated.gate("check", "--json", "-", CI_GATE_LABELLED="true", **BAR)

    assert codes(red) == {"baseline-edited"}
    assert (labelled.status, codes(labelled)) == (0, {"bar-moved"})


@pytest.mark.slow
def test_an_anchor_that_the_base_moved_on_is_not_edited_by_a_branch_behind_it(gated):
    """A branch that forked before the anchor came did not remove it."""
    gated.git("switch", "--quiet", "main")
    content = (gated.path / ANCHOR).read_bytes()
    (gated.path / ANCHOR).unlink()
    gated.commit("before there were anchors")
    gated.git("switch", "--quiet", "--force-create", "change")
    gated.git("switch", "--quiet", "main")
    (gated.path / ANCHOR).write_bytes(content)
    gated.commit("an anchor")
    gated.git("switch", "--quiet", "change")

    assert codes(gated.gate("check", "--json", "-", **BAR)) == set()


def test_a_broken_anchor_does_not_pass_under_the_label(gated):
    """What is merged must be readable afterwards."""
    (gated.path / ANCHOR).write_text('{"schema":"ci-gate/baseline@1"}')
    gated.commit("a torn anchor")

    ended = gated.gate("check", CI_GATE_LABELLED="true", **BAR)

    assert ended.status == 2
    assert ANCHOR in ended.err


@pytest.mark.slow
def test_a_named_baseline_stands_alone(gated):
    """Who names a file is held against that file."""
    slid(gated)

    ended = gated.gate("check", "--baseline", BASELINE, "--json", "-")

    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["slide"] is None
