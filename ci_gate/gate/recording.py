"""Where the traces of a run go, and what is taken out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_gate.config import Config
from ci_gate.errors import printable
from ci_gate.gate.tool import tool_name
from ci_gate.model.run import RunHeader
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trace import TraceHeader
from ci_gate.prng import format_seed
from ci_gate.redaction import Redactor, secrets_of_environment
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.recording import Recorder
from ci_gate.sandbox.world_factory import DEFAULT_NOW
from ci_gate.store.contents import Contents
from ci_gate.store.traces import open_trace

__all__ = ["Recording", "redactor_maker", "traces_folder"]

TRACES = "traces"


def traces_folder(results: Path, suite: str, config: Config) -> Path:
    """Return the folder of a suite's traces; several suites may have tasks of the same id."""
    folder = results / TRACES
    return folder if len(config.suites) == 1 else folder / suite


def redactor_maker(config: Config, environment: Mapping[str, str]) -> Callable[[], Redactor]:
    """Return what makes a redactor for each trial: what one learns, no other needs to know.

    The judge's key is secret whatever its variable is called.
    """
    key = environment.get(config.judge.api_key_env or "")
    secrets = secrets_of_environment(environment)
    return Redactor((*secrets, key) if key else secrets, config.trace.redact).fresh


@dataclass(frozen=True, kw_only=True)
class Recording:
    """How the trials of a run are recorded.

    Attributes
    ----------
    traces : Path
        Folder of the suite's traces.
    header : RunHeader
        Of the run.
    config : Config
    environment : mapping of str to str
        Whose secrets are taken out.
    results : Path or None
        Folder of the run file, which names its traces from there; None: that above ``traces``.
    troubles : list of str
        Why trials could not be recorded, filled while they run.
    """

    traces: Path
    header: RunHeader
    config: Config
    environment: Mapping[str, str]
    results: Path | None = None
    troubles: list[str] = field(default_factory=list)

    def remarks(self) -> list[str]:
        """Say how many trials have no trace, and why the first has none."""
        if not self.troubles:
            return []
        return [f"{len(self.troubles)} trials have no trace: {printable(self.troubles[0])}."]

    def recorders(self) -> Callable[[PlannedTrial], Recorder]:
        """Return what makes the recorder of each trial."""
        redactor_of = redactor_maker(self.config, self.environment)
        ignored, contents = Ignored(self.config.trace.ignore), Contents(self.traces)

        def recorder_of(trial: PlannedTrial) -> Recorder:
            return Recorder(
                lambda: open_trace(self.traces, self._header_of(trial), results=self.results),
                redactor=redactor_of(),
                ignored=ignored,
                contents=contents,
                complain=self.troubles.append,
            )

        return recorder_of

    def _header_of(self, trial: PlannedTrial) -> TraceHeader:
        agent = self.header.agent
        return TraceHeader(
            suite=self.header.suite,
            task=trial.task.id,
            task_digest=trial.task.digest,
            trial=trial.trial,
            repeat=trial.repeat,
            seed=format_seed(trial.seed),
            agent_digest=None if agent is None else agent.digest,
            faults_digest=self.header.faults_digest,
            now=trial.task.now or DEFAULT_NOW,
            tool=tool_name(),
        )
