"""How values, counts and names are written in messages: short, on one line, a few of many."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, TypeVar
from zlib import crc32

Named = TypeVar("Named")

LONGEST = 200
LONGEST_TEXT = 40
LONGEST_VALUE = 160
CUT = "…"
LONGEST_NAME = 80
LONGEST_PATH = 200

JOINERS = "\u200c\u200d"
"""These belong to real names (emoji, Indic scripts), but only between two such characters."""

# Latin letters and the marks that passhat draws with are one column wide: no table is needed.
_FIRST_COMBINING = 0x300
_OWN_MARKS = frozenset("●○━─█▒░…")
# Digits of a mark on names that are cut alike: four nearly always suffice.
_MARKS = (4, 6, 8)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def short_repr(head: str, *parts: str, see: str = "") -> str:
    """What a result is, its main numbers, and where to look next, on one line of bounded length.

    >>> short_repr("Tally 'o3'", "20 tasks", "200 trials", see=".tasks, .passed")
    "<Tally 'o3': 20 tasks, 200 trials; see .tasks, .passed>"
    """
    end = f"; see {see}>" if see else ">"
    body = f"<{head}: {', '.join(parts)}" if parts else f"<{head}"
    room = LONGEST - len(end)
    return (body if len(body) <= room else body[: room - 1] + CUT) + end


def repr_fields(value: Any) -> str:
    """A dataclass by the fields that differ from their defaults: numbers short, tables counted.

    Classes get it from `passhat.dataclass.result_dataclass`.
    """
    name = type(value).__name__
    parts = list(_filled(value))
    text = f"{name}({', '.join(parts)})"
    while len(text) > LONGEST:
        parts.pop()
        text = f"{name}({', '.join(parts)}, ...)"
    return text


def first_few(texts: Iterable[str], most: int = 3) -> list[str]:
    """The first of some texts, and how many more there are.

    >>> first_few("abcde")
    ['a', 'b', 'c', '2 more']
    """
    every = list(texts)
    more = len(every) - most
    return [*every[:most], f"{more:,} more"] if more > 0 else every


def quoted(text: str) -> str:
    """A name from data between quotes, of bounded length and with its control characters escaped.

    >>> quoted("o3"), quoted("a" * 50)[-4:]
    ("'o3'", "aa…'")
    """
    shown = repr(text)
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 2] + CUT + shown[0]


# Shares as people read them: rounded alike everywhere, never 100% for less than all, never 0% for
# more than none.

_KEPT_DECIMALS = 9  # further ones depend on the order of a sum


def halves_away(number: float) -> float:
    """A number such that formatting it rounds halves away from zero, as people and leaderboards do.

    >>> f"{6.25:.1f}", f"{halves_away(6.25):.1f}", f"{halves_away(-52.5):.0f}"
    ('6.2', '6.3', '-53')
    """
    kept = round(number, _KEPT_DECIMALS)
    return kept + math.copysign(10.0 ** -(_KEPT_DECIMALS + 1), kept)


def percent(share: float | None, *, digits: int = 0) -> str:
    """A share as a percentage that does not round to an end it has not reached.

    >>> percent(0.62), percent(0.9991), percent(1.0), percent(0.0004), percent(0.0), percent(None)
    ('62%', '>99%', '100%', '<1%', '0%', '-')
    """
    return "-" if share is None else f"{points(share, digits=digits)}%"


def points(share: float | None, *, digits: int = 0) -> str:
    """`percent` without its sign, for columns that carry it in their heading.

    >>> points(0.99996, digits=1), points(-0.034, digits=1), points(None)
    ('>99.9', '-3.4', '-')
    >>> points(0.5874999999999998, digits=1), points(0.5875, digits=1), points(0.525)
    ('58.8', '58.8', '53')
    """
    if share is None:
        return "-"
    text = f"{halves_away(100 * share):.{digits}f}"
    rounded, step = float(text), 10.0**-digits
    if abs(rounded) == 100 and abs(share) < 1:
        return f">{100 - step:.{digits}f}" if share > 0 else f"<-{100 - step:.{digits}f}"
    if rounded == 0:
        return "0" if share == 0 else f"{'<' if share > 0 else '>-'}{step:.{digits}f}"
    return "100" if rounded == 100 else text


def signed_points(share: float | None, *, digits: int = 0) -> str:
    """A difference of shares in points.

    >>> signed_points(-0.126), signed_points(0.0625, digits=1), signed_points(-0.0002, digits=1)
    ('-13', '+6.3', '>-0.1')
    >>> signed_points(0.0, digits=1)  # neither ahead nor behind
    '0'
    """
    if not share:
        return "-" if share is None else "0"
    text = f"{halves_away(100 * share):+.{digits}f}"
    if float(text):
        return text
    return f"{'<+' if share > 0 else '>-'}{10.0**-digits:.{digits}f}"


def rounded(estimate: Any) -> str:
    """A number with its interval, three decimals each for shares; or "unavailable".

    >>> rounded(0.123456)
    '0.123'
    """
    if not hasattr(estimate, "value"):
        return "unavailable" if hasattr(estimate, "reason") else f"{estimate:.3g}"
    if estimate.value is None:
        return "unavailable"
    bounds = getattr(estimate, "interval", None)
    if bounds is None:
        return f"{estimate.value:.3g}"
    numbers = (estimate.value, bounds.low, bounds.high)
    if all(-1 <= number <= 1 for number in numbers):
        value, low, high = (f"{halves_away(number):.3f}" for number in numbers)
    else:
        value, low, high = (f"{number:.3g}" for number in numbers)
    return f"{value} [{low}, {high}]"


def short_value(value: object) -> str:
    """A value for a message: short, on one line, and a list of names as names.

    >>> short_value(0.5), short_value(("a", "b")), short_value([])
    ('0.5', "'a', 'b'", 'none')
    """
    try:
        shown = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of too many digits"
    if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
        shown = listed(map(repr, value)) or "none"
    if "\n" in shown or " at 0x" in shown:  # a table over many lines, or only an address
        kind = type(value).__name__
        return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 1]}…"


def short_commit(commit: str | None) -> str:
    """The first seven characters of a commit, as git shows it; "" if none is known.

    >>> short_commit("8ce60275d1f0c3a2"), short_commit(None)
    ('8ce6027', '')
    """
    return (commit or "")[:7]


def short_day(started: str | None) -> str:
    """The day of a time as people write it; as it stands if it is none.

    >>> short_day("2026-11-06T09:00:00.000+00:00")
    '6 Nov'
    """
    try:
        day = date.fromisoformat((started or "")[:10])
    except ValueError:
        return safe_text((started or "")[:10])
    return f"{day.day} {_MONTHS[day.month - 1]}"


def short_time(moment: str | None, *, year: bool = False) -> str:
    """A moment as people write it; as it stands if it is none.

    >>> short_time("2026-11-06T09:05:00.000+00:00")
    '6 Nov 09:05'
    >>> short_time("2026-11-06T09:05:00.000+00:00", year=True)
    '6 Nov 2026 09:05'
    """
    try:
        when = datetime.fromisoformat(moment or "")
    except ValueError:
        return safe_text((moment or "")[:16])
    clock = f" {when:%H:%M}" if len(moment or "") > len("2026-11-06") else ""
    return f"{short_day(moment)}{f' {when.year}' * year}{clock}"


def metric_label(name: str) -> str:
    """What people read for the name of a number: pass^1 is pass@1 by definition, and is called so.

    >>> [metric_label(name) for name in ("pass^1", "pass^4/pass^1", "mean_score")]
    ['pass@1', 'pass^4/pass@1', 'mean score']
    """
    return "/".join("pass@1" if part == "pass^1" else part for part in name.split("/")).replace(
        "_", " "
    )


def plural(count: int, noun: str, several: str | None = None) -> str:
    """A count with its noun, for messages of every layer.

    >>> plural(1, "task"), plural(2400, "run"), plural(2, "entry", "entries")
    ('1 task', '2,400 runs', '2 entries')
    >>> plural(1, "task has", "tasks have")
    '1 task has'
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def capitalised(text: str) -> str:
    """Text that begins with a capital letter, as a sentence does.

    >>> capitalised("no run errored")
    'No run errored'
    """
    return text[:1].upper() + text[1:]


def numbers_in_words(numbers: Iterable[int]) -> str:
    """Numbers as a sentence has them.

    >>> numbers_in_words([5]), numbers_in_words([5, 6]), numbers_in_words([2, 5, 6])
    ('5', '5 and 6', '2, 5 and 6')
    """
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def listed(names: Iterable[Named], most: int = 12, *, show: Callable[[Named], str] = str) -> str:
    """The first few of many names, for sentences of every layer; only those are made to show.

    >>> listed(["a", "b", "c"], most=2), listed([1, 2, 3], most=1, show="#{}".format)
    ('a, b and 1 more', '#1 and 2 more')
    """
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(show, every[:most])) + more


def safe_text(text: str) -> str:
    r"""`text` on one line, with every character that could steer a terminal written out.

    >>> safe_text("agent\x1b]0;owned\x07")
    'agent\\x1b]0;owned\\x07'
    >>> safe_text("invoice\u202efdp.exe")
    'invoice\\u202efdp.exe'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character in JOINERS and _joins(text, i) else _safe_character(character)
        for i, character in enumerate(text)
    )


def display_width(text: str) -> int:
    """The columns a terminal gives to safe text.

    >>> display_width("naïve"), display_width("東京")
    (5, 4)
    """
    if text.isascii() or all(ord(c) < _FIRST_COMBINING or c in _OWN_MARKS for c in text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int) -> str:
    """Safe text of at most `width` columns, with an ellipsis if it was cut.

    >>> shorten("book-a-flight-with-two-stops", 12)
    'book-a-flig…'
    """
    shown = safe_text(text)
    if display_width(shown) <= width:
        return shown
    return _fitting(shown, width - 1).rstrip(JOINERS) + CUT


def shorten_apart(names: Sequence[str], width: int) -> list[str]:
    """Names of at most `width` columns, cut near the middle where that leaves them distinct.

    Names that no one cut tells apart are marked, each alike wherever it has to be.

    >>> shorten_apart(["claude-sonnet-4", "claude-sonnet-4-5", "o3"], 13)
    ['claude…nnet-4', 'claude…et-4-5', 'o3']
    >>> shorten_apart(["a" * 20, "a" * 21], 12)
    ['aaaaaa…#266f', 'aaaaaa…#944d']
    """
    shown = [safe_text(name) for name in names]
    if all(display_width(name) <= width for name in shown):
        return shown
    heads = sorted(range(width), key=lambda head: abs(2 * head + 1 - width))
    cut = ([_cut_inside(name, head, width) for name in shown] for head in heads)
    best, most, wanted = [], 0, len(set(shown))
    for shortened in cut:
        if (distinct := len(set(shortened))) > most:
            best, most = shortened, distinct
        if most == wanted:
            return best
    return _marked(shown, best, width)


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant, or None if nothing is close.

    >>> closest("trails", ["runs", "trials"]), closest("x", ["runs"])
    ('trials', None)
    """
    near = close_words(word, known, most=1, cutoff=cutoff)
    return near[0] if near else None


def one_of_rule(word: str, known: Sequence[str], most: int = 12) -> str:
    """What a name must be, and which one was probably meant.

    >>> one_of_rule("trails", ["runs", "trials"])
    'must be one of runs, trials (did you mean trials?)'
    """
    return f"must be one of {listed(known, most) or 'none'}{typo_hint(word, known)}"


def likely_method(names: Sequence[str]) -> str | None:
    """The method of an agent that probably takes the prompt; None if none is public.

    >>> likely_method(["__init__", "lookup_order", "run"]), likely_method(["_go"])
    ('run', None)
    """
    public = [name for name in names if not name.startswith("_")]
    usual = ("run", "answer", "ask", "chat", "respond", "reply", "invoke", "complete", "generate")
    return next((name for name in usual if name in public), public[0] if public else None)


def no_task(name: str, tasks: Sequence[str], *, kind: str = "task") -> str:
    """That results have no such task (or tag, or level), which they have, and which one was meant.

    >>> no_task("mail to An", ["mail to Ann", "time"])
    "no task is called 'mail to An': there are mail to Ann, time (did you mean mail to Ann?)"
    """
    there = f"there {'is' if len(tasks) == 1 else 'are'} {listed(tasks, 5) or 'none'}"
    return f"no {kind} is called {name!r}: {there}{typo_hint(name, tasks)}"


def typo_hint(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known word that was probably meant, as the end of a message; empty if none is close.

    >>> typo_hint("trails", ["runs", "trials"]), typo_hint("x", ["runs"])
    (' (did you mean trials?)', '')
    """
    near = closest(word, known, cutoff=cutoff)
    return f" (did you mean {near}?)" if near else ""


def close_words(word: str, known: Iterable[str], *, most: int, cutoff: float = 0.6) -> list[str]:
    """The known words that look like this one, the closest first."""
    from difflib import get_close_matches  # loaded only after a mistake

    return get_close_matches(word, list(known), n=most, cutoff=cutoff)


def short(name: object, longest: int = LONGEST_NAME) -> str:
    r"""A name, shortened and on one line.

    >>> short("refund"), short("a\nb"), len(short("x" * 10_000))
    ('refund', 'a\\nb', 80)
    """
    text = str(name)
    if not text.isprintable():
        text = repr(text[: longest + 1])[1:-1]
    return text if len(text) <= longest else text[: longest - 1] + CUT


def short_path(path: object) -> str:
    """A path; it may be longer than other names, because its end says most."""
    return short(path, LONGEST_PATH)


def cut_middle(text: str, most: int) -> str:
    """A text of at most so many characters and a note: what is left out is from its middle.

    >>> print(cut_middle("0123456789", 4))
    01
    [... 6 characters left out here, as the text is too long ...]
    89
    """
    if len(text) <= most:
        return text
    start, end = (most + 1) // 2, most // 2
    out = f"[... {len(text) - most:,} characters left out here, as the text is too long ...]"
    return f"{text[:start]}\n{out}\n{text[len(text) - end :]}"


def few(names: Iterable[object], most: int = 12) -> str:
    """The first of many names, each of them short.

    >>> few(["a", "b" * 200, "c"], most=2)[-20:]
    'bbbbbbbb… and 1 more'
    """
    return listed(names, most, show=short)


def few_paths(paths: Iterable[object], most: int = 12) -> str:
    """The first of many paths."""
    return listed(paths, most, show=short_path)


def _joins(text: str, place: int) -> bool:
    import unicodedata  # few texts have a character that needs it

    around = text[max(place - 1, 0) : place] + text[place + 1 : place + 2]
    shown = [c for c in around if not c.isascii() and unicodedata.category(c)[0] in "LMS"]
    return len(shown) == 2


def _safe_character(character: str) -> str:
    if character.isprintable():
        return character
    import unicodedata  # as above

    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def _filled(value: Any) -> Iterator[str]:
    from dataclasses import MISSING, fields  # commands that show no value do without

    for field in fields(value):
        if not field.repr:
            continue
        content = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if content is None or (not _is_array(content) and content == usual):
            continue
        yield f"{field.name}={_shown(content)}"


def _shown(content: Any) -> str:
    if isinstance(content, str):
        return quoted(content)
    if isinstance(content, enum.Enum):
        return content.name
    if isinstance(content, bool | int):
        return str(content)
    if isinstance(content, float) or hasattr(content, "value") or hasattr(content, "reason"):
        return rounded(content)
    if hasattr(content, "low") and hasattr(content, "high"):
        return f"[{content.low:.3g}, {content.high:.3g}]"
    few = isinstance(content, tuple) and 0 < len(content) <= 4
    if few and all(isinstance(item, int | float | str) for item in content):
        return f"({', '.join(map(_shown, content))})"
    if isinstance(content, Collection) or _is_array(content):
        return f"<{len(content):,}>"
    return (
        f"{type(content).__name__}(...)"
        if hasattr(content, "__dataclass_fields__")
        else quoted(str(content))
    )


def _is_array(content: Any) -> bool:
    return hasattr(content, "dtype")


def _marked(shown: Sequence[str], cut: Sequence[str], width: int) -> list[str]:
    """What was cut alike, each with a mark that its whole name alone decides, where that fits."""
    alike = Counter(short for _, short in set(zip(shown, cut, strict=True)))
    texts = list(cut)
    for mark in _MARKS:
        if mark + 2 > width:
            break
        marks = (f"#{crc32(name.encode()):08x}"[: mark + 1] for name in shown)
        texts = [
            shorten(name, width - len(own)) + own if alike[short] > 1 else short
            for name, short, own in zip(shown, cut, marks, strict=True)
        ]
        if len(set(texts)) == len(set(shown)):
            break
    return texts


def _cut_inside(shown: str, head: int, width: int) -> str:
    """Safe text without its middle: `head` columns, an ellipsis, and as much of the end as fits."""
    if display_width(shown) <= width:
        return shown
    start = _fitting(shown, head)
    end = _fitting(shown[::-1], width - 1 - display_width(start))[::-1]
    return start.rstrip(JOINERS) + CUT + end.lstrip(JOINERS)


def _fitting(shown: str, width: int) -> str:
    used = 0
    for i, character in enumerate(shown):
        used += display_width(character)
        if used > width:
            return shown[:i]
    return shown


# What CI systems take for commands in a log: GitHub Actions lines that begin with :: or ##[, Azure
# Pipelines ##vso[, TeamCity ##teamcity[.
_COMMAND = r"(?m)^(\s*)::(?=\w)"
_HASH_COMMAND = r"(?i)##(?=\[|vso\[|teamcity\[)"


def safe_lines(text: str) -> str:
    r"""`safe_text` for a message of several lines.

    >>> safe_lines("two\nlines\x00")
    'two\nlines\\x00'
    """
    return without_commands("\n".join(safe_text(line) for line in text.split("\n")))


def without_commands(text: str) -> str:
    r"""Lines of which none is a command to the CI system that reads them from a log.

    >>> print(without_commands("  ::stop-commands::x\ntests/a.py::b ##vso[task.complete]"))
      \::stop-commands::x
    tests/a.py::b #\#vso[task.complete]
    """
    if "::" not in text and "##" not in text:
        return text
    return re.sub(_HASH_COMMAND, r"#\\#", re.sub(_COMMAND, r"\1\\::", text))
