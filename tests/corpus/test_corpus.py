import gzip
import json
from math import isclose
from pathlib import Path

import pytest
from tests.corpus.analyses import KEPT, analyses, run_all


def moved(kept: object, now: object, path: str = "") -> list[str]:
    """Every place where two JSON values differ."""
    if isinstance(kept, dict) and isinstance(now, dict):
        keys = [*kept, *(key for key in now if key not in kept)]
        return [
            line for key in keys for line in moved(kept.get(key), now.get(key), f"{path}.{key}")
        ]
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        numbered = enumerate(zip(kept, now, strict=True))
        return [line for i, (a, b) in numbered for line in moved(a, b, f"{path}[{i}]")]
    return [] if same(kept, now) else [f"{path}: {kept!r} -> {now!r}"]


def same(kept: object, now: object) -> bool:
    """Floats may differ by what processors do, everything else by nothing.

    The corpus was made on x86-64. On another processor sums, exp and log round otherwise in their
    last digits, and what is computed from them differs by up to 1.2e-10 (aarch64). No screen shows
    that many digits, and no change of a method is as small.
    """
    if type(kept) is type(now) is float:
        return isclose(kept, now, rel_tol=1e-9)
    return type(kept) is type(now) and kept == now


@pytest.mark.parametrize(
    "third",
    [0, *(pytest.param(n, marks=pytest.mark.slow("analyses of the same kinds")) for n in (1, 2))],
)
def test_no_reported_number_moves_unless_the_corpus_is_made_again(tmp_path: Path, third: int):
    with gzip.open(KEPT, "rt", encoding="utf-8") as file:
        kept = json.load(file)
    assert kept.keys() == analyses().keys()
    now = json.loads(json.dumps(run_all(tmp_path, [*analyses()][third::3])))
    lines = [f"{name}{line}" for name in now for line in moved(kept[name], now[name])]
    how = "if that is meant, run `make corpus` and name the change in CHANGELOG.md"
    assert not lines, f"{len(lines)} values moved; {how}\n" + "\n".join(lines[:40])
