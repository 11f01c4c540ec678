"""Models are answered from a recording while everything else is made."""

from ci_gate.model.trace import TraceRecord
from ci_gate.redaction import Redactor
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.model_answers import ModelAnswers
from ci_gate.sandbox.recording import input_digest


def _answers(*calls):
    records = [
        TraceRecord(
            order=order,
            kind=kind,
            name=name,
            input=given,
            input_digest=input_digest(given, Ignored(())),
            output=output,
        )
        for order, (kind, name, given, output) in enumerate(calls)
    ]
    return ModelAnswers(records, ignored=Ignored(()), redactor=Redactor())


def test_calls_of_other_kinds_are_made():
    """Though the recording has them."""
    answers = _answers(("tool", "a", {}, 1), ("llm", "m", {}, "yes"))

    assert answers.answer("main", "tool", "a", {}) is None
    assert answers.answer("main", "kv", "get", {}) is None


def test_models_are_answered_in_their_order():
    """The same question may have several answers."""
    answers = _answers(("llm", "m", {}, "yes"), ("tool", "a", {}, 1), ("llm", "m", {}, "no"))

    assert [answers.answer("main", "llm", "m", {}).output for _ in range(2)] == ["yes", "no"]


def test_another_question_is_an_error_that_names_both():
    """So that the comparison of the traces shows it, and the agent gets no made-up answer."""
    seen = _answers(("llm", "m", {"q": 1}, "yes")).answer("main", "llm", "m", {"q": 2})

    assert seen.is_error
    assert seen.output == "drift at call 0: llm m has another input"
