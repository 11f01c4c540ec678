"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

from tests.speeds import PROFILE, PROFILES

# No deadline: a loaded machine is no mistake. The same examples each time, so that a commit that
# passed passes again; only who looks thoroughly meets new ones.
for name, number in PROFILES.items():
    same = name != "thorough"
    settings.register_profile(name, max_examples=number, deadline=None, derandomize=same)
settings.load_profile(PROFILE)
