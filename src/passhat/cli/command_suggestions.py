"""What was probably meant by a word that is not a command: another word, or a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from passhat.messages import closest

# What people do with a file of each kind, where they name no command.
_FOR_ENDING = {
    ".yml": "run",
    ".yaml": "run",
    ".db": "history --store",
}
_ENDINGS = (*_FOR_ENDING, ".csv", ".eval", ".json", ".jsonl", ".parquet", ".tsv", ".xml", ".gz")
_OTHER_WORDS = {
    "test": "run",
    "eval": "run",
    "start": "run",
    "check": "validate",
    "lint": "validate",
    "show": "report",
    "analyze": "report",
    "analyse": "report",
    "diff": "compare",
    "leaderboard": "rank",
    "power": "plan",
    "dashboard": "view",
    "ui": "view",
    "serve": "view",
    "new": "init",
    "ls": "list",
    "record": "run --record",
    "replay": "run --replay",
}


def what_was_meant(words: Sequence[str], commands: Iterable[str]) -> str:
    """The sentence for a first word that is no command.

    >>> what_was_meant(["reprot", "x.csv"], ["report", "run"])
    'there is no command "reprot". Did you mean "passhat report"?'
    >>> what_was_meant(["results.jsonl"], ["report", "run"])
    '"results.jsonl" is not a command but a file: passhat report results.jsonl'
    """
    word, known = words[0], list(commands)
    other = _OTHER_WORDS.get(word.lower())  # "test" is a word before it is a folder
    if other is None and names_a_file(word):
        command = _FOR_ENDING.get(Path(word).suffix.lower(), "report")
        return f'"{word}" is not a command but a file: passhat {command} {shlex.join(words)}'
    if meant := other or closest(word.lower(), known):
        return f'there is no command "{word}". Did you mean "passhat {meant}"?'
    return f'there is no command "{word}"; there are: {", ".join(known)}'


def names_a_file(word: str) -> bool:
    """Whether it is one, or would be if it were there."""
    return "/" in word or Path(word).suffix.lower() in _ENDINGS or is_there(word)


def is_there(word: str) -> bool:
    """Whether a file or folder has that name; no file has one of thousands of letters."""
    return bool(word) and os.path.exists(word)  # noqa: PTH110 # of a long word, Path raises
