"""Properties of runs in words: what runs did that have one, and what those did that lack it."""

from __future__ import annotations

from passhat.analysis.explaining.features import RunFeature

# kind: (what a run with it did, what a run without it did); {tool} and {0}, {1} are filled in.
_WORDS = {
    "stop reason": ("stopped with {0}", "did not stop with {0}"),
    "unmended error": (
        "got an error from {tool} and no success after it",
        "left no error of {tool} without a success after it",
    ),
    "repeated call": ("made the same call of {tool} twice", "never made a call of {tool} twice"),
    "without first": (
        "called {tool} without calling {0} first",
        "never called {tool} without calling {0} first",
    ),
    "called": ("called {tool}", "never called {tool}"),
    "left out": (
        "left out a tool that most runs of the task call",
        "called every tool that most runs of the task call",
    ),
    "rare tool": (
        "called a tool that few runs of the task call",
        "called no tool that few runs of the task call",
    ),
    "error": ("got an error from {tool}", "got no error from {tool}"),
    "error text": ('got "{0}" from {tool}', 'never got "{0}" from {tool}'),
    "times": ("called {tool} {0} times or more", "called {tool} fewer than {0} times"),
    "many calls": (
        "made more calls than the median run of the task",
        "made no more calls than the median run of the task",
    ),
    "argument": ("called {tool} with {0} = {1}", "never called {tool} with {0} = {1}"),
    "list length": (
        "called {tool} with {1} in {0}",
        "never called {tool} with {1} in {0}",
    ),
    "unmentioned": (
        "called {tool} with a value of {0} that nobody had mentioned",
        "called {tool} with no value of {0} that nobody had mentioned",
    ),
    "unusual argument": (
        "called {tool} with another {0} than most calls of the task",
        "called {tool} with no other {0} than most calls of the task",
    ),
    "pair": ("called {tool} right after {0}", "never called {tool} right after {0}"),
    "first call": ("called {tool} first", "did not call {tool} first"),
    "last call": ("called {tool} last", "did not call {tool} last"),
}


def feature_words(feature: RunFeature, *, lacking: bool = False) -> str:
    """What runs did that have a property, or that lack it.

    >>> feature_words(RunFeature("without first", "refund", ("find_order",)))
    'called refund without calling find_order first'
    >>> feature_words(RunFeature("error"), lacking=True)
    'got no error from a tool'
    """
    detail = feature.detail
    if feature.kind == "list length":
        detail = (_argument(detail[0]), "1 entry" if detail[1] == "1" else f"{detail[1]} entries")
    elif feature.kind in ("argument", "unmentioned", "unusual argument"):
        detail = (_argument(detail[0]), *detail[1:])
    return _WORDS[feature.kind][lacking].format(*detail, tool=feature.tool or "a tool")


def _argument(name: str) -> str:
    return name or "its argument"
