"""How far a run is: a live bar on a terminal, a few plain lines in a log.

Decides when a line is due. Time is an argument; trials are counted, never judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ci_gate.model.trial import Status, TrialRecord
from ci_gate.render.figures import percent
from ci_gate.render.screen import print_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

__all__ = ["Progress"]

_SHORTEST_S = 10.0
_STEPS = 10


class Progress:
    """Shows the progress of a run; a ``ci_gate.ports.RoundWatcher`` and a context manager.

    Parameters
    ----------
    console : rich.console.Console
        On standard error. A terminal gets a live bar; elsewhere a line is printed at each tenth of
        the plan and, between those, after ten seconds or a tenth of the time so far, whichever is
        longer; and one after each round that is decided.
    monotonic : callable
        Seconds from an arbitrary start.
    title : str
        What is run, in inert text.
    """

    def __init__(
        self, console: Console, monotonic: Callable[[], float], *, title: str = "trials"
    ) -> None:
        self._console = console
        # Asked once: rich looks at the environment each time, and there are thousands of trials.
        self._is_live = console.is_terminal
        self._monotonic = monotonic
        self._title = title
        self._total = 0
        self._done = 0
        self._counts: Counter[Status] = Counter()
        self._errored: set[tuple[str, int, int]] = set()
        self._started_s = self._printed_s = monotonic()
        self._printed_step = 0
        self._unsaid = False
        self._bar: Bar | None = None

    def planned(self, total: int, done: int) -> None:
        """Take note of the number of trials and of those already finished.

        Parameters
        ----------
        total : int
            Trials of the whole plan.
        done : int
            Of these, finished before (a resumed run).
        """
        self._total, self._done = total, done
        self._printed_step = self._step()
        if self._is_live:
            self._show_bar()
        else:
            resumed = f", {done:,} of them finished before" if done else ""
            print_line(self._console, f"{self._title}: {total:,} trials{resumed}")

    def finished(self, record: TrialRecord) -> None:
        """Take note of a finished trial; a later attempt of an errored one replaces it."""
        if record.key in self._errored:
            self._errored.discard(record.key)
            self._counts[Status.ERRORED] -= 1
        else:
            self._done += 1
        self._counts[record.status] += 1
        self._unsaid = True
        if record.status is Status.ERRORED:
            self._errored.add(record.key)
        self._show()

    def decided(self, done: int, rounds: int, predictive: float | None) -> None:
        """Say how likely the whole plan is to be red after so many of its rounds.

        Parameters
        ----------
        done, rounds : int
        predictive : float or None
            None: nothing can be foretold.
        """
        chance = "nothing can be foretold"
        if predictive is not None:
            chance = f"{percent(predictive)} chance that the whole plan would be red"
        if self._bar is not None:
            shown = "" if predictive is None else f"{percent(predictive)} chance of red"
            self._bar.update(self._bar.task_ids[0], chance=shown)
        elif not self._is_live:
            line = f"{self._title}: round {done:,} of {rounds:,}: {chance}"
            print_line(self._console, line)

    def extended(self, total: int) -> None:
        """Say that the plan grew to so many trials."""
        self._total = total
        self._printed_step = self._step()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], total=total)
        elif not self._is_live:
            line = f"{self._title}: the evidence is on the border, extended to {total:,} trials"
            print_line(self._console, line)

    def close(self) -> None:
        """Take the bar away, or print the last line of a log; safe to call twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._unsaid and not self._is_live:
            self._print()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _show_bar(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.close()
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            TextColumn("{task.fields[chance]}", markup=False),
            TimeElapsedColumn(),
        )
        self._bar = Bar(*columns, console=self._console, transient=True)
        self._bar.add_task(
            self._title, total=self._total, completed=self._done, counts="", chance=""
        )
        self._bar.start()

    def _show(self) -> None:
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=self._done, counts=self._account())
        elif not self._is_live and self._is_due():
            self._print()

    def _step(self) -> int:
        return _STEPS * self._done // self._total if self._total else 0

    def _is_due(self) -> bool:
        now = self._monotonic()
        pause_s = max(_SHORTEST_S, (now - self._started_s) / _STEPS)
        return self._step() > self._printed_step or now - self._printed_s >= pause_s

    def _print(self) -> None:
        self._printed_step, self._printed_s = self._step(), self._monotonic()
        self._unsaid = False
        share = 100 * self._done // self._total if self._total else 100
        line = f"{self._title}: {self._done:,}/{self._total:,} ({share} %), {self._account()}"
        print_line(self._console, line)

    def _account(self) -> str:
        """Return the outcomes so far in the order of ``Status``."""
        return ", ".join(f"{self._counts[status]:,} {status}" for status in Status)
