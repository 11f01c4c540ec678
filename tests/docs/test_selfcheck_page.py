"""The page on self checks describes what a self check says."""

import msgspec

from ci_gate.model import selfcheck
from ci_gate.stats.selfcheck import tries_to_show
from tests.docs.pages import page

PAGE = page("selfcheck.md")


def test_every_field_is_described():
    """The page names each key of the JSON."""
    kinds = [getattr(selfcheck, name) for name in selfcheck.__all__ if name != "TaskKind"]
    keys = {key for kind in kinds for key in kind.__struct_encode_fields__}

    assert all(issubclass(kind, msgspec.Struct) for kind in kinds)
    assert [key for key in sorted(keys) if f"`{key}`" not in PAGE] == []


def test_how_many_comparisons_would_show_alpha():
    """The number in the text is the one that is computed."""
    assert f"it takes {tries_to_show(0.05)} without a single" in " ".join(PAGE.split())
