"""Published outcomes are read as they lie, and left out with the reason where they are not."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from benchmarks.simulation import real_outcomes
from benchmarks.simulation.laboratory import Laboratory
from benchmarks.simulation.real_outcomes import Source, real_tables


def test_absent_outcomes_are_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not part of the project, so that a clone has none."""
    monkeypatch.setattr(real_outcomes, "PLACE", tmp_path / "nowhere")
    with ProcessPoolExecutor(1) as pool:
        (said,) = real_tables(Laboratory(pool, 1))

    assert said == f"Real outcomes: skipped, there is no {tmp_path / 'nowhere'} with them."


def test_a_source_takes_the_first_trials_of_tasks_with_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four of four; a task with three is left out; an unjudged trial is neither."""
    (tmp_path / "taubench_airline_gpt4o_n4.csv").write_text(
        "source,model,task,outcomes\ntau,m,1,++-+-\ntau,m,2,+-!+\ntau,m,3,+++\n"
    )
    monkeypatch.setattr(real_outcomes, "PLACE", tmp_path)

    source = Source.read("tau-bench")

    assert source.outcomes("m").tolist() == [[1, 1, 0, 1], [1, 0, -1, 1]]
    assert source.deal == 2


def test_histograms_become_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task without a pass, two with three of four."""
    (tmp_path / "tau2_histograms_n4.csv").write_text(
        "submission,domain,m0,m1,m2,m3,m4\ns,retail,1,0,0,2,0\n"
    )
    monkeypatch.setattr(real_outcomes, "PLACE", tmp_path)

    source = Source.read_histograms()

    assert source.outcomes("s retail").sum(axis=1).tolist() == [0, 3, 3]
