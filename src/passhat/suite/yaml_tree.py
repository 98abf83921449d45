"""Strict, bounded YAML 1.2: a plain tree, and the line and column of each part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeGuard

from passhat.dataclass import dataclass
from passhat.messages import closest
from passhat.records import Secret

MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_NODES = 200_000

# The core schema of YAML 1.2.2, section 10.3.2: `no`, `0777` and `12:30` stay texts.
WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SPECIAL_FLOAT = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")

SYNTAX_HINTS = {
    "found '<block": ". Is this line indented like the ones it belongs to?",
    "mapping values are not allowed": (
        ". Is this line indented like the ones it belongs to? A text with a colon needs quotes"
    ),
    "'\\t' that cannot start": ". Indent with spaces: YAML takes no tabs",
    "unexpected end of stream": ". Is a quote left open?",
    "'<stream end>'": ". Is a bracket or a brace left open?",
}
"""What the parser says, and the likely mistake."""

MAX_SHOWN = 60
YAML_WORDS = {"None": "null", "True": "true", "False": "false"}
REFERENCE = re.compile(
    r"\$(?P<escape>\$(?=\{))"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:-|:\?)(?P<operand>[^{}]*))?\}"
)
KeyPath = tuple[str | int, ...]
Mark = tuple[int, int]


def read_tree(
    text: str,
    *,
    env: Mapping[str, str],
    keeps_references: Callable[[KeyPath], bool] = lambda path: False,
) -> Tree:
    """Read a YAML text; references are replaced except where `keeps_references` says so.

    >>> read_tree("runs: ${RUNS:-10}", env={}).value
    {'runs': 10}
    """
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES} bytes: put tasks in a dataset"
        problem = Problem(line=1, column=1, path=(), message=message)
        return Tree(value=None, marks={}, problems=(problem,))
    builder = _Builder(env, keeps_references)
    fault = _feed(text, builder)
    if fault is not None:  # the part that was read would be reported for what is missing
        return Tree(value=None, marks={}, problems=(*builder.problems, fault))
    return Tree(value=builder.root, marks=builder.marks, problems=tuple(builder.problems))


def resolve(text: str) -> Any:
    """A plain scalar by the core schema.

    >>> [resolve(t) for t in ("10", "0.5", "no", "true", "~", "0x1F")]
    [10, 0.5, 'no', True, None, 31]
    """
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        # Python refuses to read integers of more than 4300 digits: such a thing is a text.
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base) if len(text) < 1000 else text
    if FLOAT.fullmatch(text):
        return float(text)
    if SPECIAL_FLOAT.fullmatch(text):
        return float(text.lower().replace(".", ""))
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The value of a file, the marks (line and column, from 1) of its parts, and its faults."""

    value: Any
    marks: Mapping[KeyPath, Mark]
    problems: tuple[Problem, ...]

    def mark(self, path: KeyPath) -> Mark:
        """Line and column of a part, or of the nearest part around it."""
        for length in range(len(path), -1, -1):
            if (mark := self.marks.get(path[:length])) is not None:
                return mark
        return 1, 1

    def problem(self, path: KeyPath, message: str) -> Problem:
        line, column = self.mark(path)
        return Problem(line=line, column=column, path=path, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault of a suite file.

    >>> problem = Problem(line=12, column=5, path=("agents", 0, "runz"), message="no such key")
    >>> problem.at("suite.yml")
    'suite.yml:12:5: agents[0].runz: no such key'
    """

    line: int
    column: int
    path: KeyPath
    message: str

    def at(self, file: str) -> str:
        """The problem as one line that editors can jump to."""
        where = f"{dotted(self.path)}: " if self.path else ""
        return f"{file}:{self.line}:{self.column}: {where}{self.message}"


def entries(tree: Tree, key: str) -> list[tuple[KeyPath, Mapping[str, Any]]]:
    """The mappings in a list of the suite, with their paths."""
    items = enumerate(as_list(tree.value.get(key)))
    return [((key, index), entry) for index, entry in items if is_map(entry)]


def section(tree: Tree, key: str) -> list[tuple[KeyPath, Mapping[str, Any]]]:
    """A mapping of the suite with its path, if there is one."""
    value = tree.value.get(key)
    return [((key,), value)] if is_map(value) else []


def users(tree: Tree) -> list[tuple[KeyPath, Mapping[str, Any]]]:
    """The simulated users of the suite, with their paths."""
    value = tree.value.get("users")
    listed = value.items() if is_map(value) else ()
    return [(("users", name), entry) for name, entry in listed if is_map(entry)]


def expectations(tree: Tree) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Every expectation of the suite with its path."""
    owners = [*entries(tree, "agents"), *entries(tree, "tasks"), *section(tree, "defaults")]
    for path, entry in owners:
        steps = [
            ((*path, "steps", index), step)
            for index, step in enumerate(as_list(entry.get("steps")))
            if is_map(step)
        ]
        for place, owner in [(path, entry), *steps]:
            for index, expectation in enumerate(as_list(owner.get("expect"))):
                if is_map(expectation):
                    yield (*place, "expect", index), expectation
        scenario = entry.get("user")
        if is_map(scenario) and is_map(done := scenario.get("done")):
            yield (*path, "user", "done"), done


def texts(value: Any) -> list[str]:
    """The texts of a list, or the one text.

    >>> texts("a"), texts(["a", 1]), texts(None)
    (['a'], ['a'], [])
    """
    return [text for text in (value if isinstance(value, list) else [value]) if is_text(text)]


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def is_map(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether it is a mapping."""
    return isinstance(value, dict)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is a text."""
    return isinstance(value, str)


def dotted(path: KeyPath) -> str:
    """A path as people write it.

    >>> dotted(("agents", 0, "expect", 1, "target"))
    'agents[0].expect[1].target'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """A value short enough for a message, on one line."""
    text = repr(value)
    text = YAML_WORDS.get(text, text)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of what exists.

    >>> did_you_mean("max_turn", ["max_turns", "runs"])
    'Did you mean "max_turns"?'
    >>> did_you_mean("colour", ["b", "a"])
    'Known: a, b'
    """
    names = sorted(set(known))
    near = closest(str(word), names)
    if near is not None:
        return f'Did you mean "{near}"?'
    return f"Known: {', '.join(names)}" if names else "There is none"


# References to the environment: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`.


class UnsetVariable(LookupError):
    """A variable that the suite refers to is not set; the message is for the user."""


def refers(text: str) -> bool:
    """Whether a text has a reference in it."""
    return any(match["name"] for match in REFERENCE.finditer(text))


def substitute(text: str, env: Mapping[str, str]) -> str:
    """The text with its references replaced. An empty variable counts as unset after `:`.

    >>> substitute("${HOST:-localhost}:${PORT}", {"PORT": "80"})
    'localhost:80'
    >>> substitute("$${PORT} stays", {})
    '${PORT} stays'
    """
    return REFERENCE.sub(lambda match: _value(match, env), text)


def secret(text: str, env: Mapping[str, str]) -> Secret:
    """The text as a secret: a variable that is not set is an error only when it is needed."""
    try:
        return Secret(text, substitute(text, env))
    except UnsetVariable as problem:
        return Secret(text, None, missing=str(problem))


def _value(match: re.Match[str], env: Mapping[str, str]) -> str:
    name, operator, operand = match["name"], match["operator"], match["operand"]
    if name is None:
        return "$"
    value = env.get(name)
    if value or (value is not None and operator is None):
        return value
    if operator == ":-":
        return str(operand)
    if operator == ":?" and operand:
        raise UnsetVariable(f"{name} is not set: {operand}")
    raise UnsetVariable(
        f"{name} is not set: export it, write ${{{name}:-default}}, "
        f"or $${{{name}}} for the text itself"
    )


# The tree, built from the parser's events.


def _feed(text: str, builder: _Builder) -> Problem | None:
    """Give the events to the builder; return the problem that stopped it, if there was one."""
    # The pure-Python parser keeps its own stack, so that deep nesting cannot overflow ours.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError, YAMLStreamError

    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except _Stop as stop:
        return stop.problem
    except (YAMLError, YAMLStreamError) as error:
        return _syntax_problem(error)
    return None


def _syntax_problem(error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or str(error)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    first = str(problem).splitlines()[0]
    hint = next((hint for words, hint in SYNTAX_HINTS.items() if words in first), "")
    return Problem(line=line, column=column, path=(), message=f"not valid YAML: {first}{hint}")


@dataclass(slots=True)
class _Open:
    """A mapping or list that is still being read."""

    value: Any
    path: KeyPath
    anchor: str | None
    nodes_before: int
    key: Any = None
    """The key of a mapping whose value comes next."""
    seen: dict[str, int] = field(default_factory=dict)


class _Stop(Exception):
    """Something after which the rest of the file cannot be read."""

    def __init__(self, mark: Mark, path: KeyPath, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(line=mark[0], column=mark[1], path=path, message=message)


class _Builder:
    """Builds the tree from events. An alias is the same object again, and counts again."""

    def __init__(self, env: Mapping[str, str], keeps: Callable[[KeyPath], bool]) -> None:
        self.root: Any = None
        self.marks: dict[KeyPath, Mark] = {}
        self.problems: list[Problem] = []
        self._env = env
        self._keeps = keeps
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        kind = type(event).__name__
        mark = (event.start_mark.line + 1, event.start_mark.column + 1)
        if kind == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise _Stop(mark, (), "a suite file has one document: remove the second '---'")
        elif kind == "ScalarEvent":
            self._add(self._whole(self._scalar(event, mark), mark), mark, anchor=event.anchor)
        elif kind == "AliasEvent":
            self._alias(event, mark)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open({} if kind == "MappingStartEvent" else [], event, mark)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            done = self._stack.pop()
            if done.anchor:
                self._anchors[done.anchor] = (done.value, self._nodes - done.nodes_before)

    def _open(self, value: Any, event: Any, mark: Mark) -> None:
        self._refuse_tag(event, mark)
        if len(self._stack) >= MAX_DEPTH:
            raise _Stop(mark, (), f"nested more than {MAX_DEPTH} deep")
        if self._at_key():
            raise _Stop(mark, self._stack[-1].path, "a key must be a text, not a collection")
        before = self._nodes
        path = self._add(value, mark)
        self._stack.append(_Open(value, path, event.anchor, before))

    def _alias(self, event: Any, mark: Mark) -> None:
        if event.anchor not in self._anchors:
            raise _Stop(mark, (), f"*{event.anchor} refers to nothing that was completed before it")
        value, nodes = self._anchors[event.anchor]
        self._add(value, mark, nodes=nodes)

    def _scalar(self, event: Any, mark: Mark) -> Any:
        self._refuse_tag(event, mark)
        text, plain = event.value, event.implicit[0]
        if self._at_key():
            return text
        path = self._next_path()
        if not refers(text) and "$${" not in text:
            return resolve(text) if plain else text
        if self._keeps(path):
            return text
        try:
            replaced = substitute(text, self._env)
        except UnsetVariable as problem:
            self._problem(mark, path, str(problem))
            return text
        return resolve(replaced) if plain else replaced

    def _whole(self, value: Any, mark: Mark) -> Any:
        """The value with its characters whole: JSON escapes one beyond 16 bits as two halves."""
        if not isinstance(value, str) or value.isascii():
            return value
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message = f"has half of a character, which is not text: {shown(value)}"
            if self._at_key():
                raise _Stop(mark, self._stack[-1].path, f"a key {message}") from None
            self._problem(mark, self._next_path(), message)
            return value

    def _add(self, value: Any, mark: Mark, *, anchor: str | None = None, nodes: int = 1) -> KeyPath:
        """Put a value where it belongs; a scalar in a mapping may be a key."""
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _Stop(mark, (), f"more than {MAX_NODES} values once aliases are expanded")
        if self._at_key():
            self._take_key(value, mark)
            return ()
        path = self._next_path()
        # A key's own mark serves its value: it is where a reader looks.
        self.marks.setdefault(path, mark)
        if anchor:
            self._anchors[anchor] = (value, nodes)
        top = self._stack[-1] if self._stack else None
        if top is None:
            self.root = value
        elif isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value.setdefault(top.key, value)
            top.key = None
        return path

    def _take_key(self, key: Any, mark: Mark) -> None:
        top = self._stack[-1]
        path = (*top.path, key)
        if not isinstance(key, str):
            raise _Stop(mark, top.path, f"a key must be a text, got {shown(key)}")
        if key == "<<":
            self._problem(mark, path, "merge keys are not YAML 1.2: use defaults: instead")
        if key in top.seen:
            self._problem(mark, path, f'"{key}" is given twice, first on line {top.seen[key]}')
        top.seen.setdefault(key, mark[0])
        self.marks.setdefault(path, mark)
        top.key = key

    def _at_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _next_path(self) -> KeyPath:
        if not self._stack:
            return ()
        top = self._stack[-1]
        return (*top.path, len(top.value) if isinstance(top.value, list) else top.key)

    def _refuse_tag(self, event: Any, mark: Mark) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None and str(tag) not in ("", "!"):
            self._problem(mark, (), f"tags are not used in a suite: remove {shown(str(tag))}")

    def _problem(self, mark: Mark, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(line=mark[0], column=mark[1], path=path, message=message))
