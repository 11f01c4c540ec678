"""What a hostile pull request tries, and what becomes of it."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.speeds import slow

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}


def break_agent(place) -> None:
    """Make the agent fail everything."""
    place.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 1.0")


@pytest.fixture
def service(place, gated):
    """Return a repository whose gated project lies in services/a, on a branch of its own."""
    gated.git("switch", "--quiet", "main")
    folder = gated.path / "services/a"
    folder.mkdir(parents=True)
    for name in ("ci-gate.toml", "evals", "baselines"):
        shutil.move(gated.path / name, folder / name)
    gated.commit("a monorepo")
    gated.git("switch", "--quiet", "--force-create", "change")
    return type(gated)(folder)


@pytest.mark.slow
def test_in_its_place_the_project_of_a_subfolder_is_gated(service):
    """The fixture's project is red when its agent breaks."""
    break_agent(service)
    service.commit()

    assert service.gate("check", **BAR).status == 1


def test_moving_the_configuration_does_not_shake_the_bar_off(service):
    """The base finds its bar by a file that the change must leave where it is."""
    break_agent(service)
    above = type(service)(service.path.parent)
    service.git("mv", "ci-gate.toml", "../ci-gate.toml")
    above.replace("ci-gate.toml", 'root = "evals"', 'root = "a/evals"')
    above.replace("ci-gate.toml", "evals/*.toml", "a/evals/*.toml")
    service.commit()

    ended = service.gate("check", **BAR)

    assert ended.status == 2
    assert "services/a/ci-gate.toml" in ended.err


def test_a_link_in_place_of_the_folder_does_not_shake_the_bar_off(service):
    """A folder that moved and left a link is not the folder that the base has."""
    break_agent(service)
    other = service.path.parent / "b"
    service.path.rename(other)
    service.path.symlink_to("b")
    service.commit()

    ended = service.gate("check", **BAR)

    assert ended.status != 0


def test_a_configuration_put_in_front_does_not_shake_the_bar_off(gated):
    """A new file nearer to the job's folder does not replace the one the base would find."""
    break_agent(gated)
    sub = gated.path / "evals"
    shutil.copy(gated.path / "ci-gate.toml", sub / "ci-gate.toml")
    inner = type(gated)(sub)
    inner.replace("ci-gate.toml", 'root = "evals"', 'root = "."')
    inner.replace("ci-gate.toml", '"evals/*.toml"', '"*.toml"')
    gated.commit()

    ended = inner.gate("check", **BAR)

    assert ended.status == 2
    assert "ci-gate.toml" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('python = "toy_agent:run"', 'python = "other:run"\nfiles = ["toy_agent.py"]'),
        *slow(('# interpreter = "auto"', 'interpreter = "../bin/python" #')),
    ],
)
def test_an_agent_started_another_way_is_not_unchanged(gated, before, after):
    """``skip_unchanged`` looks at how the agent is started, not at its files alone."""
    gated.git("switch", "--quiet", "main")
    gated.replace("ci-gate.toml", "# [gate]", "[gate]\nskip_unchanged = true")
    gated.commit()
    gated.git("switch", "--quiet", "--force-create", "change")
    (gated.path / "evals/other.py").write_text("def run(task, env):\n    return 'bad'\n")
    (gated.path / "bin").mkdir()
    wrapper = gated.path / "bin/python"
    wrapper.write_text('#!/bin/sh\nexec python3 "$@"\n')
    wrapper.chmod(0o755)
    gated.replace("ci-gate.toml", before, after)
    gated.commit()

    ended = gated.gate("check", "--json", "-", **BAR)

    assert "unchanged-agent" not in {r["code"] for r in json.loads(ended.out)["reasons"]}


def test_results_are_not_written_through_a_link(gated, tmp_path):
    """A committed link in place of the folder of results leads nowhere."""
    target = tmp_path / "target"
    target.mkdir()
    shutil.rmtree(gated.path / ".ci-gate", ignore_errors=True)
    (gated.path / ".ci-gate").symlink_to(target)

    ended = gated.gate("check")

    assert ended.status == 2
    assert list(target.iterdir()) == []


def test_git_settings_in_the_environment_run_nothing(gated, tmp_path):
    """Variables by which git takes settings and objects do not reach our calls."""
    mark = tmp_path / "ran"

    ended = gated.gate(
        "check",
        GIT_CONFIG_PARAMETERS=f"'core.fsmonitor'='touch {mark}'",
        GIT_OBJECT_DIRECTORY=str(tmp_path),
        GIT_COMMON_DIR=str(tmp_path),
        GIT_ICASE_PATHSPECS="1",
    )

    assert ended.status == 0, ended.err
    assert not mark.exists()


@pytest.mark.slow
def test_retried_trials_are_said(repository):
    """An agent that calls its failures errors is seen through by the reader."""
    repository.replace("ci-gate.toml", "# [run]", "[run]")
    repository.replace("ci-gate.toml", "# retries = 3", "retries = 1")
    repository.replace("ci-gate.toml", "timeout_s = 120", "timeout_s = 20")
    (repository.path / "evals/toy_agent.py").write_text(
        "import pathlib\n"
        "def run(task, env):\n"
        "    seen = pathlib.Path('seen-' + task.id + str(env.seed))\n"
        "    if not seen.exists():\n"
        "        seen.touch()\n"
        "        return {'status': 'errored', 'reason': 'not me'}\n"
        "    return 'Ada 42 cannot'\n"
    )

    ended = repository.gate("check", "--task", "greeting", "--trials", "8")

    assert "8 of 8 trials were judged only after errored attempts" in ended.err


@pytest.mark.slow
def test_a_reader_that_goes_away_changes_no_verdict(gated):
    """A closed pipe or a full disk behind standard error ends no run and no status."""
    import subprocess
    import sys

    from tests.places import environment

    command = f"{sys.executable} -m ci_gate check --fresh 2>/dev/full"
    done = subprocess.run(
        ["sh", "-c", command], cwd=gated.path, env=environment({}), check=False, timeout=60
    )

    assert done.returncode == 0


@pytest.mark.parametrize("name", ["x" * 400, "a\u0000b"])
def test_a_name_that_no_file_can_have_is_a_mistake_of_the_task(repository, name):
    """An impossible fixture is named with its task."""
    repository.replace(
        "evals/example.toml", 'id = "sum"', f'id = "sum"\nfixture = {json.dumps(name)}'
    )

    ended = repository.gate("check")

    assert ended.status == 2
    assert "fixture" in ended.err


def test_a_pipe_as_configuration_does_not_hang(place):
    """A FIFO without a writer is refused at once."""
    import os

    os.mkfifo(place.path / "ci-gate.fifo")

    ended = place.gate("check", "--config", "ci-gate.fifo")

    assert ended.status == 2
    assert "not a regular file" in ended.err
