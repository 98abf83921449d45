"""The numbers that a gate may speak about: how people write them, and their path in a report."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from passhat.errors import ArgumentError
from passhat.records.trial import FEATURES

_FEATURE = "|".join(FEATURES)
_METRIC = r"(?:mean_score|pass\^[1-9]\d*|pass@[1-9]\d*)"

# How a number may be written, and the path it stands for.
_SPELLINGS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"reliability@([1-9]\d*)", lambda m: f"pass^{m[1]}"),
    (r"mean[ _]score", lambda m: "mean_score"),
    (r"pass[ _]rate", lambda m: "pass^1"),
    (r"error[ _]rate", lambda m: "error_rate"),
    (rf"({_FEATURE})[ _]per[ _]success", lambda m: f"{m[1]}.per_success"),
    (rf"p([1-9]\d?)\(\s*({_FEATURE})\s*\)", lambda m: f"{m[2]}.p{m[1]}"),
    (rf"(mean|median)\(\s*({_FEATURE})\s*\)", lambda m: f"{m[2]}.{m[1]}"),
    (r"selection[ _]rate\(\s*(.+?)\s*\)", lambda m: f"selection_rate({m[1]})"),
)

# Paths whose number is a share between 0 and 1, and the others.
_SHARES = (
    _METRIC,
    r"selection_rate\(.+\)",
    r"error_rate|icc|luck|flaky_share|reliability_of_mean",
    rf"(?:levels|tags)\[.+\]\.{_METRIC}",
    r"tasks\[.+\]\.(?:rate|mean_score|pass\^[1-9]\d*)",
    r"model\.pass\^[1-9]\d*",
    r"bars\[[1-9]\d*\]\.model_share",
)
_OTHERS = (
    r"variance\.(?:between|within)_tasks|seed_variance",
    r"variance_amplification|graceful_degradation|flips|decay\[[1-9]\d*\]",
    r"tasks\.(?:solid|flaky|broken|undecided)",
    r"bars\[[1-9]\d*\]\.(?:below|undetermined)",
    rf"(?:{_FEATURE})\.(?:mean|median|p[1-9]\d?|passed|failed|association|per_success)",
    rf"(?:{_FEATURE})\.per_streak\[[1-9]\d*\]",
)

_EXAMPLES = (
    "pass^3", "pass@1", "reliability@5", "mean_score", "pass_rate", "error_rate", "icc", "luck",
    "flaky_share", "reliability_of_mean", "variance_amplification", "graceful_degradation", "flips",
    "decay[5]", "seed_variance", "variance.between_tasks", "tasks.flaky", "tasks.broken",
    "selection_rate(get_weather)", "cost per success", "p95(seconds)", "seconds.median",
    *(f"{feature}.mean" for feature in FEATURES),
)  # fmt: skip


def target_path(text: str) -> str:
    """The path in a report of a number as people write it.

    >>> target_path("cost per success"), target_path("p95(seconds)"), target_path("reliability@5")
    ('cost.per_success', 'seconds.p95', 'pass^5')
    """
    wanted = text.strip()
    for pattern, path in _SPELLINGS:
        if match := re.fullmatch(pattern, wanted, flags=re.IGNORECASE):
            return path(match)
    if any(re.fullmatch(pattern, wanted) for pattern in (*_SHARES, *_OTHERS)):
        return wanted
    raise ArgumentError("gate", f"must name a number of the report; {_hint(wanted)}", wanted)


def is_share(path: str) -> bool:
    """Whether a number lies between 0 and 1."""
    return any(re.fullmatch(pattern, path) for pattern in _SHARES)


def attempts(path: str) -> tuple[str, int] | None:
    """The metric and its k, of pass^k and pass@k; None of any other number.

    >>> attempts("pass^3"), attempts("icc")
    (('pass^k', 3), None)
    """
    match = re.fullmatch(r"pass([\^@])(\d+)", path)
    return None if match is None else (f"pass{match[1]}k", int(match[2]))


def quantile_of(path: str) -> tuple[str, float] | None:
    """The feature and the share, of a quantile such as seconds.p95; None of any other number."""
    match = re.fullmatch(rf"({_FEATURE})\.(?:p(\d+)|median)", path)
    return None if match is None else (match[1], int(match[2] or 50) / 100)


def tool_of(path: str) -> str | None:
    """The tool of a selection rate."""
    match = re.fullmatch(r"selection_rate\((.+)\)", path)
    return match[1] if match else None


def _hint(wanted: str) -> str:
    near = get_close_matches(wanted.lower(), _examples(wanted), n=1, cutoff=0.5)
    listing = "`passhat report --targets` lists them"
    return f'did you mean "{near[0]}"? ({listing})' if near else listing


def _examples(wanted: str) -> list[str]:
    """Numbers that may be meant; the k that was written is the k that is meant."""
    if (k := re.search(r"[1-9]\d*", wanted)) is None:
        return list(_EXAMPLES)
    return [re.sub(r"([\^@\[])\d+", rf"\g<1>{k[0]}", name) for name in _EXAMPLES]
