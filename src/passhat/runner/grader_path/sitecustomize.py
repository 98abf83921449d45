"""Where the Python of a grader looks for modules: in the agent's folder last.

The grader runs there with PYTHONSAFEPATH, so that no file of the agent takes the place of a module
that is installed. What the agent wrote can still be imported, and so can what is beside a script.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

TAKES_A_WORD = ("-W", "-X", "--check-hash-based-pycs")


def script() -> Path | None:
    """The file that this interpreter was started with; None for `-c` and `-m`."""
    words = iter(getattr(sys, "orig_argv", [])[1:])
    for word in words:
        if word in TAKES_A_WORD:
            next(words, "")
        elif word.startswith(("-c", "-m")):
            return None
        elif not word.startswith("-"):
            return Path(word).resolve()
    return None


here = Path.cwd()
started = script()
if started is not None and started.is_file() and not started.is_relative_to(here):
    sys.path.insert(0, str(started.parent))
sys.path.append(str(here))

# An environment may have a sitecustomize of its own, which this one has hidden.
sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]
ours = sys.modules.pop("sitecustomize", None)
try:
    importlib.import_module("sitecustomize")
except ImportError:
    pass
finally:
    if ours is not None:
        sys.modules["sitecustomize"] = ours
