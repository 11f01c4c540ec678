"""A plan is a pure function of the suite and the repeats."""

import pytest

from ci_gate.errors import UsageError
from ci_gate.gate.planning import check_depth, plan_of, planned_trials, restrict, with_trials
from ci_gate.model.suite import Suite, Task
from ci_gate.prng import derive_seed


def _suite(*tasks: Task, trials: int = 2) -> Suite:
    return Suite(name="s", root_seed=1, trials=trials, tasks=tasks, digest="sha256:0")


def _task(name: str, *, trials: int | None = None) -> Task:
    return Task(
        id=name, instruction="do", base_seed=7, digest="sha256:1", trials=trials, source="t.toml:1"
    )


def test_round_r_is_trial_r_of_every_task():
    """No task is a round ahead of another."""
    plan = planned_trials(_suite(_task("a"), _task("b", trials=3)), repeats=1)

    assert [t.key for t in plan] == [
        ("a", 0, 0),
        ("b", 0, 0),
        ("a", 1, 0),
        ("b", 1, 0),
        ("b", 2, 0),
    ]


def test_repeats_run_the_same_seeds_again():
    """Repeat 1 of trial 1 has the seed of repeat 0 of trial 1."""
    plan = list(planned_trials(_suite(_task("a")), repeats=2))

    assert [(t.repeat, t.seed) for t in plan] == [
        (repeat, derive_seed(7, trial)) for repeat in range(2) for trial in range(2)
    ]


def test_header_names_only_tasks_with_their_own_number():
    """``task_trials`` holds the exceptions."""
    plan = plan_of(_suite(_task("a"), _task("b", trials=5)), repeats=1, max_repeats=4)

    assert (plan.trials, plan.task_trials, plan.max_repeats) == (2, {"b": 5}, 4)


def test_a_glob_keeps_the_matching_tasks():
    """``--task`` restricts by id."""
    suite = restrict(_suite(_task("refund-1"), _task("cancel-1")), "refund-*")

    assert [task.id for task in suite.tasks] == ["refund-1"]


def test_a_glob_without_a_match_is_a_usage_error():
    """Nothing to run is said before anything runs, with an id that exists."""
    with pytest.raises(UsageError, match=r"matches none of the 1 tasks.*refund-1"):
        restrict(_suite(_task("refund-1")), "x*")


def test_too_few_trials_for_k_name_the_task():
    """pass^k is undefined below k trials, so the plan is refused."""
    with pytest.raises(UsageError, match=r"t\.toml:1: task 'a' has 2 trials .* pass\^8 needs 8"):
        check_depth(_suite(_task("a")), (1, 8), deterministic=False)


@pytest.mark.parametrize(("trials", "deterministic"), [(8, False), (9, False), (1, True)])
def test_enough_trials_or_a_deterministic_suite_pass(trials, deterministic):
    """Trials are seeds; for flips one is enough."""
    suite = with_trials(_suite(_task("a")), trials)

    check_depth(suite, (1, 8), deterministic=deterministic)
