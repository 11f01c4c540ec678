"""Answers that were given before: what an agent says of them, what becomes of the verdict."""

from __future__ import annotations

import json

import pytest

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}


def say_which_answers(place, expression: str) -> None:
    """Let the agent hand over names of answers beside its answer."""
    path = place.path / "evals/toy_agent.py"
    text = path.read_text().replace("def run(", "def answer(")
    path.write_text(
        f'{text}\n\ndef run(task, env):\n    """Answer, and say from where."""\n'
        f'    return {{"answer": answer(task, env), {expression}}}\n'
    )


@pytest.mark.slow
def test_names_of_answers_stay_in_the_run_as_digests(gated):
    """Equal names are one trial; what providers call an answer is in no file."""
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.0")
    say_which_answers(gated, '"response_ids": [f"chatcmpl-{task.id}"]')

    ended = gated.gate("check", "--quiet")

    run = (gated.path / ".ci-gate/example.run.jsonl").read_text()
    verdict = json.loads((gated.path / ".ci-gate/example.verdict.json").read_text())
    assert "chatcmpl" not in run
    assert '"responses":"' in run
    assert verdict["trials"]["copies"] > 0
    assert ended.status in (1, 3)
    assert any("Copies are no trials" in text for text in verdict["warnings"])


def test_a_check_from_a_cache_is_no_pass(gated):
    """A run that a cache answered measures nothing, and says so."""
    say_which_answers(gated, '"cached": True')

    ended = gated.gate("check")

    assert ended.status in (1, 3)
    assert "a replay is no measurement" in ended.err


@pytest.mark.slow
def test_reused_tokens_of_a_prompt_are_no_copies(gated):
    """What providers save on prompts says nothing of the answer."""
    say_which_answers(gated, '"cached_tokens": 1200')

    gated.gate("check", "--quiet")

    verdict = json.loads((gated.path / ".ci-gate/example.verdict.json").read_text())
    assert verdict["trials"]["copies"] == 0


@pytest.mark.slow
def test_a_deep_run_from_a_cache_sets_no_bar(repository):
    """``baseline update`` refuses it, unless it is forced."""
    say_which_answers(repository, '"cached": True')

    refused = repository.gate("baseline", "update", "--quiet")
    forced = repository.gate("baseline", "update", "--quiet", "--resume", "--force")

    assert refused.status == 2
    assert "measured nothing: every trial is a copy" in refused.err
    assert forced.status == 0, forced.err


@pytest.mark.slow
def test_a_pull_request_brings_no_finished_run_along(gated):
    """A journal that git tracks is not gone on with where a change is judged."""
    assert gated.gate("check", "--quiet").status == 0
    gated.git("add", "--force", ".ci-gate/example.run.jsonl")
    gated.git("commit", "--quiet", "-m", "a run of my own")

    judged = gated.gate("check", "--quiet", "--resume", **BAR)
    at_home = gated.gate("check", "--quiet", "--resume")
    afresh = gated.gate("check", "--quiet", **BAR)

    assert judged.status == 2
    assert ".ci-gate/example.run.jsonl: is tracked by git" in judged.err
    assert "leave --resume out" in judged.err
    assert (at_home.status, afresh.status) == (0, 0)


@pytest.mark.slow
def test_a_trial_beyond_the_plan_is_replayed_with_a_note(repository):
    """It runs, and no run of the suite has it."""
    beyond = repository.gate("replay", "sum", "--trial", "8")
    within = repository.gate("replay", "sum", "--trial", "7")

    assert "note: no run of the suite has trial 8: the task's are numbered 0 to 7" in beyond.out
    assert "no run of the suite" not in within.out
