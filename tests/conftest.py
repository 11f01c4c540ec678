"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: a loaded machine is no mistake. HYPOTHESIS_PROFILE=thorough looks longer.
settings.register_profile("fast", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
