"""What is kept of an output: the beginning, the end, and never more than the bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_gate.agents.capture import Capture


@given(st.lists(st.binary(max_size=40)), st.integers(0, 20), st.integers(1, 20))
def test_head_and_tail_are_those_of_the_stream(
    chunks: list[bytes], head_bytes: int, tail_bytes: int
) -> None:
    """However the stream is cut into chunks, its first and last bytes are what is kept."""
    capture = Capture(head_bytes=head_bytes, tail_bytes=tail_bytes)
    for chunk in chunks:
        capture.add(chunk)
    stream = b"".join(chunks)
    assert capture.total_bytes == len(stream)
    assert capture.tail() == stream[head_bytes:][-tail_bytes:]
    if len(stream) <= head_bytes + tail_bytes:
        assert capture.text() == stream.decode("utf-8", "replace")


def test_a_gap_says_how_much_is_missing() -> None:
    """The text names the bytes that were left out, between head and tail."""
    capture = Capture(head_bytes=2, tail_bytes=3)
    capture.add(b"abcdefghij")
    assert capture.text() == "ab\n[... 5 bytes left out ...]\nhij"
    capture.clear()
    assert capture.text() == ""
