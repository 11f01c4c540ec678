"""An agent that goes other ways than the recorded one gets what the world would have answered."""

from ci_gate.codec import digest_of
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.trace import Determinism, TraceRecord
from ci_gate.redaction import Redactor
from ci_gate.sandbox.cassette import Asked
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.library import ENV_NOT_FOUND, Library, Reader, SandboxedSource
from ci_gate.sandbox.world_factory import WorldFactory
from tests.trials import trial_of


def _records(*calls):
    """Return records of calls: name, input, output, and what else a record has."""
    return [_record(order, *call) for order, call in enumerate(calls)]


def _record(order, name, given, output, fields=None):
    known = {"lane": "main", "kind": "tool", **(fields or {})}
    return TraceRecord(
        order=order, name=name, input=given, input_digest=digest_of(given), output=output, **known
    )


def _asked(name, given=None, lane="main", kind="tool"):
    return Asked(lane, kind, name, digest_of(given), given)


def _answers(reader, *names):
    return [reader.answer(_asked(name)).output for name in names]


_ACCOUNT = _records(("balance", None, 100), ("pay", None, "paid"), ("balance", None, 70))


def test_a_call_that_changes_the_world_changes_later_answers():
    """The balance is another after the payment, however often it was asked before."""
    reader = Reader(Library([_ACCOUNT]))

    answers = _answers(reader, "balance", "balance", "balance", "pay", "balance", "balance")

    assert answers == [100, 100, 100, "paid", 70, 70]


def test_an_answer_is_that_of_the_state_and_not_of_the_count():
    """Who pays before ever asking gets the balance after the payment."""
    assert _answers(Reader(Library([_ACCOUNT])), "pay", "balance") == ["paid", 70]


def test_the_same_call_in_the_same_state_gets_its_successive_answers():
    """As of a job that is asked for until it is done; then the last for ever."""
    polls = _records(("job", None, "waits"), ("job", None, "runs"), ("job", None, "done"))

    answers = _answers(Reader(Library([polls])), *["job"] * 5)

    assert answers == ["waits", "runs", "done", "done", "done"]


def test_in_a_state_that_nobody_recorded_the_nth_answer_counts():
    """Paying twice was not recorded: the second balance is the second that there is."""
    reader = Reader(Library([_ACCOUNT]))

    assert _answers(reader, "balance", "pay", "pay", "balance") == [100, "paid", "paid", 70]


def test_models_change_no_state():
    """Whatever was thought between two balances, it was the payment that moved the money."""
    records = _records(
        ("balance", None, 100),
        ("model-1", None, "pay", {"kind": "llm"}),
        ("pay", None, "paid"),
        ("balance", None, 70),
    )

    assert _answers(Reader(Library([records])), "pay", "balance") == ["paid", 70]


def test_the_own_recording_comes_first_then_the_others_in_order():
    """So that a trial is answered as it was, and what only others have is known all the same."""
    first = _records(("search", None, "a"))
    second = _records(("search", None, "b"), ("details", None, "b's"))
    library = Library([first, second])

    assert _answers(Reader(library, 1), "search") == ["b"]
    assert _answers(Reader(library, 0), "search", "details") == ["a", "b's"]
    assert _answers(Reader(library), "search") == ["a"]


def test_the_state_of_another_recording_is_found_before_the_count_of_the_own():
    """The own trial never asked after paying, another did."""
    own = _records(("balance", None, 100), ("pay", None, "paid"))

    answers = _answers(Reader(Library([own, _ACCOUNT]), 0), "balance", "pay", "balance")

    assert answers == [100, "paid", 70]


def test_two_trials_share_a_library_and_no_counts():
    """What one asked, the other has not."""
    library = Library([_ACCOUNT])
    _answers(Reader(library), "balance", "pay")

    assert _answers(Reader(library), "balance") == [100]


def test_lanes_have_states_of_their_own():
    """So the answers of one lane do not hang on how far another has come."""
    library = Library([_ACCOUNT])
    alone, beside = Reader(library), Reader(library)
    beside.answer(_asked("pay", lane="other"))

    assert _answers(alone, "balance") == _answers(beside, "balance") == [100]


def test_what_was_not_recorded_is_an_error_for_the_agent():
    """It reads that there is no answer; nothing goes outside, and the state stays as it was."""
    reader = Reader(Library([_ACCOUNT]))
    seen = reader.answer(_asked("pay", {"cents": 1}))

    assert seen.output == f"{ENV_NOT_FOUND}: tool pay was not recorded with this input"
    assert seen.is_error
    assert _answers(reader, "balance") == [100]


def test_the_answer_is_what_a_recorded_fault_hid():
    """Faults of its own are injected on top."""
    hidden = _records(
        ("t", None, "TIMEOUT", {"fault": "timeout", "unfaulted": 1, "is_error": True})
    )

    seen = Reader(Library([hidden])).answer(_asked("t"))

    assert (seen.output, seen.is_error, seen.fault) == (1, False, None)


def test_the_recording_with_the_same_effects_is_found_in_any_order_of_calls():
    """Models and reads of the own world set aside; a payment more is another end."""
    library = Library([_records(("look", None, 1)), _ACCOUNT])
    reader = Reader(library)
    _answers(reader, "pay", "balance")
    assert reader.recording is None

    _answers(reader, "balance")
    assert reader.recording == 1

    _answers(reader, "pay")
    assert reader.recording is None


def test_a_tool_that_is_declared_pure_leaves_nothing_behind():
    """Whether it is called or not, the trial's world ends as it did."""
    pure = {"determinism": Determinism.DETERMINISTIC}
    reader = Reader(Library([_records(("add", None, 3, pure), ("pay", None, "paid"))]))
    _answers(reader, "pay")
    assert reader.recording == 0

    _answers(reader, "add", "add")
    assert reader.recording == 0


def test_a_call_that_was_delivered_twice_acted_twice():
    """Its one record is the end of two payments, not of one."""
    twice = {"fault": "duplicate", "unfaulted": "paid"}
    reader = Reader(Library([_records(("pay", None, "paid again", twice))]))
    _answers(reader, "pay")
    assert reader.recording is None

    _answers(reader, "pay")
    assert reader.recording == 0


def test_an_unknown_call_may_have_had_any_effect():
    """Then no recording tells how the trial's world ended; an unknown model has none."""
    reader = Reader(Library([_ACCOUNT]))
    _answers(reader, "balance", "pay", "balance")
    reader.answer(_asked("model-9", kind="llm"))
    assert reader.recording == 0

    reader.answer(_asked("refund"))
    assert reader.recording is None


def _source(records):
    return SandboxedSource(Reader(Library([records])), ignored=Ignored(()), redactor=Redactor())


def test_the_own_world_is_real_and_its_writes_are_part_of_the_state():
    """A file is written for real, and a tool that reads it answers as it did after the write."""
    written = {"path": "a", "content": "1"}
    records = _records(
        ("total", {}, 0),
        ("write", written, None, {"kind": "file"}),
        ("total", {}, 1),
    )
    source = _source(records)

    assert source.answer("main", "tool", "total", {}).output == 0
    assert source.answer("main", "file", "write", written) is None
    assert source.answer("main", "tool", "total", {}).output == 1
    assert source.reader.recording == 0


def test_what_a_tool_wrote_is_read_although_the_tool_is_not_run():
    """In the recorded state the recorded content counts; elsewhere the trial's own world."""
    records = _records(("export", {}, "done"), ("read", {"path": "a"}, "x", {"kind": "file"}))
    known, other = _source(records), _source(records)
    known.answer("main", "tool", "export", {})
    other.answer("main", "file", "write", {"path": "a", "content": "y"})

    assert known.answer("main", "file", "read", {"path": "a"}).output == "x"
    assert known.answer("main", "file", "read", {"path": "b"}) is None
    assert other.answer("main", "file", "read", {"path": "a"}) is None


def test_what_an_answered_call_did_itself_comes_with_it():
    """Its calls and draws are recorded again, and the generator moves on as it did."""
    inner = {"lane": "main/(outer)"}
    records = _records(
        ("draws", {"count": 1, "words": 2}, [0.5], {**inner, "kind": "rng"}),
        ("deep", None, 1, {"lane": "main/(outer)/(inner)"}),
        ("inner", None, 2, inner),
        ("outer", None, 3),
        ("outer", None, 4),
    )
    reader = Reader(Library([records]))

    first, second = reader.answer(_asked("outer")), reader.answer(_asked("outer"))

    assert [record.name for record in first.within] == ["draws", "deep", "inner"]
    assert first.skipped.words == 2
    assert second.within == ()
    assert reader.recording == 0


def test_what_the_trial_draws_itself_is_no_call():
    """Its generator is its own."""
    assert _source([]).answer("main", "rng", "draws", {"count": 1}) is None


def _world(tmp_path, records, **policy):
    return WorldFactory(
        tmp_path,
        FaultPolicy(rate_permille=1000, **policy),
        source_of=lambda trial: _source(records),
    ).open(trial_of())


def test_faults_hit_what_is_answered(tmp_path):
    """As they hit what is called, with the recorded answer kept behind the fault."""
    seen = _world(tmp_path, _ACCOUNT, kinds=("rate_limit",)).answer("main", "tool", "balance", None)

    assert seen.output.endswith("HTTP 429 Too Many Requests (Retry-After: 3s)")
    assert (seen.is_error, seen.fault, seen.unfaulted) == (True, "rate_limit", 100)


def test_a_call_that_is_delivered_twice_gets_its_second_answer(tmp_path):
    """And counts as two where the end of the world is looked for."""
    polls = _records(("job", None, "waits"), ("job", None, "done"), ("job", None, "gone"))
    world = _world(tmp_path, polls, kinds=("duplicate",))

    seen = [world.answer("main", "tool", "job", None) for _ in range(2)]

    assert [one.output for one in seen] == ["done", "gone"]
    assert [(one.fault, one.unfaulted) for one in seen] == [
        ("duplicate", "waits"),
        ("duplicate", "gone"),
    ]
