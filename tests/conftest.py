"""What every test shares: properties are checked for truth, never for speed."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("passhat", deadline=None)
settings.load_profile("passhat")
