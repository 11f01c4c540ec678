"""The command that fetches the results of a run is only given where somebody uploads them."""

import subprocess

import pytest

from ci_gate.gate.fetching import fetch_of

RUN = {"GITHUB_RUN_ID": "42", "CI_GATE_ARTIFACT": "agent's results"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"GITHUB_RUN_ID": "42"},
        {"CI_GATE_ARTIFACT": "x"},
        RUN | {"GITHUB_RUN_ID": "1; rm -rf /"},
        RUN | {"CI_GATE_ARTIFACT": "a\nb"},
        RUN | {"CI_GATE_ARTIFACT": "{task}"},
        RUN | {"CI_GATE_ARTIFACT": "a  b"},
    ],
)
def test_nothing_is_fetched_that_nobody_uploads(environment):
    """No artifact, no run, or what cannot be either."""
    assert fetch_of(environment) is None


def test_the_command_is_what_a_shell_understands(tmp_path):
    """It downloads once; what comes after it runs then."""
    (tmp_path / "gh").write_text('#!/bin/sh\necho "gh $*" >> log\nmkdir ci-gate-run-42\n')
    (tmp_path / "gh").chmod(0o755)
    fetch = fetch_of(RUN | {"GITHUB_REPOSITORY": "o/r"})
    assert fetch is not None

    for _ in range(2):
        subprocess.run(
            ["sh", "-c", fetch.before("echo replay >> log")],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            check=True,
        )

    download = "gh run download 42 -n agent's results -D ci-gate-run-42 -R o/r"
    assert (tmp_path / "log").read_text().splitlines() == [download, "replay", "replay"]
    assert fetch.folder == "ci-gate-run-42"
