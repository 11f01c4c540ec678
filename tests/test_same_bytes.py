"""What ``.ci/same-bytes`` compares between environments, within one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import same_bytes
from tests.speeds import slow


@pytest.mark.parametrize("name", ["one-task", *slow("shallow")])
def test_the_order_of_lines_and_tasks_changes_no_byte(tmp_path: Path, name: str) -> None:
    """Verdict, rounds and baseline are the same whatever order the files have."""
    case = next(case for case in same_bytes.CASES if case.name == name)
    straight = same_bytes.Writer(tmp_path / "straight", shuffled=False)
    shuffled = same_bytes.Writer(tmp_path / "shuffled", shuffled=True)

    found = dict(same_bytes.documents(case, straight))

    assert {"verdict.json", "rounds.json", "baseline.json"} <= found.keys()
    assert dict(same_bytes.documents(case, shuffled)) == found


def test_the_corpus_goes_through_every_kind_of_computation(tmp_path: Path) -> None:
    """Strata of both kinds are there, exact and sampled tests, and both kinds of rule for seeds."""
    writer = same_bytes.Writer(tmp_path, shuffled=False)
    wanted = ("small", "seeds-matter", "margin")
    cases = [case for case in same_bytes.CASES if case.name in wanted]

    first = [next(same_bytes.documents(case, writer)) for case in cases]

    assert {name for name, _ in first} == {"verdict.json"}
    whole = b"".join(content for _, content in first)
    for part in (b'"strata":"task"', b'"strata":"task,seed"', b'"exact":true', b'"exact":false'):
        assert part in whole.replace(b'": ', b'":'), part
