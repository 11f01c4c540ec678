"""JSON Schemas of the files that this package writes, for editors and for other tools.

This module decides how a format is described to those who do not read Python. It must not know how
the files are read; a schema promises less than the reader checks (no digests, no plan).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ci_gate.errors import UsageError, printable
from ci_gate.model.judges import Calibration
from ci_gate.model.run import Baseline, BaselineRun, BaselineTask, RunFooter, RunHeader
from ci_gate.model.trace import TraceFooter, TraceHeader, TraceRecord
from ci_gate.model.trace_meta import TraceMeta
from ci_gate.model.trial import TrialRecord
from ci_gate.model.verdict import Verdict
from ci_gate.store.formats import BASELINE, JUDGE, RUN, TRACE, TRACE_META, VERDICT

__all__ = ["NAMES", "schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"
_SEED: Final = {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]+$"}
_OUTCOMES: Final = {
    "type": "string",
    "pattern": "^[-+!.]*$",
    "description": "A character a trial: + passed, - failed, ! errored, . not run.",
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file format, one of ``NAMES``.

    Those of ``run`` and ``trace`` describe one line: header, trial or call, footer.

    Raises
    ------
    UsageError
        Another name.
    """
    if name not in _BUILDERS:
        known = ", ".join(NAMES)
        raise UsageError(f"there is no schema '{printable(name)}'", hint=f"Known are {known}.")
    return {"$schema": _DIALECT, **_BUILDERS[name]()}


def _run() -> dict[str, Any]:
    refs, defs = _components(RunHeader, TrialRecord, RunFooter)
    _state_format(defs["RunHeader"], RUN, "schema", "suite")
    _make_optional(defs["RunHeader"], root_seed=_SEED)
    _make_optional(defs["TrialRecord"], seed=_SEED)
    defs["RunFooter"]["properties"]["end"] = {"const": True}
    _require(defs["RunFooter"], "end", "trials", "stop", "digest")
    return {
        "title": RUN,
        "description": "One line of a run file: the header, a trial, or the footer.",
        "anyOf": refs,
        "$defs": defs,
    }


def _baseline() -> dict[str, Any]:
    refs, defs = _components(Baseline)
    for kind in (Baseline, BaselineRun, BaselineTask):
        del defs[kind.__name__]["properties"]["extra"]
    _state_format(defs["Baseline"], BASELINE, "schema", "suite", "trials", "runs", "tasks")
    _make_optional(defs["Baseline"], root_seed=_SEED)
    properties = defs["Baseline"]["properties"]
    properties["trials"]["minimum"] = 1
    properties["runs"]["minItems"] = 1
    properties["tasks"]["minProperties"] = 1
    defs["BaselineTask"]["properties"]["outcomes"]["items"] = _OUTCOMES
    return {"title": BASELINE, **refs[0], "$defs": defs}


def _verdict() -> dict[str, Any]:
    refs, defs = _components(Verdict)
    _state_format(defs["Verdict"], VERDICT, "schema", *defs["Verdict"].get("required", ()))
    return {"title": VERDICT, **refs[0], "$defs": defs}


def _trace() -> dict[str, Any]:
    refs, defs = _components(TraceHeader, TraceRecord, TraceFooter)
    _state_format(defs["TraceHeader"], TRACE, "schema")
    _require(defs["TraceRecord"], "order", "kind", "name", "input_digest", "prev", "digest")
    defs["TraceFooter"]["properties"]["end"] = {"const": True}
    _require(defs["TraceFooter"], "end", "calls", "head", "content")
    return {
        "title": TRACE,
        "description": "One line of a trace: the header, a call, or the footer.",
        "anyOf": refs,
        "$defs": defs,
    }


def _trace_meta() -> dict[str, Any]:
    refs, defs = _components(TraceMeta)
    _state_format(defs["TraceMeta"], TRACE_META, "schema", *defs["TraceMeta"].get("required", ()))
    return {"title": TRACE_META, **refs[0], "$defs": defs}


def _judge() -> dict[str, Any]:
    refs, defs = _components(Calibration)
    _state_format(defs["Calibration"], JUDGE, "schema", *defs["Calibration"].get("required", ()))
    return {"title": JUDGE, **refs[0], "$defs": defs}


def _components(*kinds: type[msgspec.Struct]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    refs, defs = msgspec.json.schema_components(kinds, ref_template=_REF)
    return list(refs), {name: dict(definition) for name, definition in defs.items()}


def _state_format(definition: dict[str, Any], name: str, *required: str) -> None:
    definition["properties"]["schema"] = {"const": name}
    _require(definition, *required)


def _require(definition: dict[str, Any], *names: str) -> None:
    definition["required"] = list(dict.fromkeys(names))


def _make_optional(definition: dict[str, Any], **kinds: Mapping[str, Any]) -> None:
    """Say what a field holds where it is not null."""
    for name, kind in kinds.items():
        definition["properties"][name] = {"anyOf": [kind, {"type": "null"}], "default": None}


_BUILDERS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "run": _run,
    "baseline": _baseline,
    "verdict": _verdict,
    "trace": _trace,
    "trace-meta": _trace_meta,
    "judge": _judge,
}
NAMES: Final = tuple(_BUILDERS)
