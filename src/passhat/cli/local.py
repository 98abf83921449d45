"""`passhat local`: a real model with no key, on this machine."""

from __future__ import annotations

import importlib.util


def why_not_here(name: str) -> str | None:
    """Why a local model cannot run here; None where it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return f"{name} needs an extra: pip install 'passhat[local]'"
    return None
