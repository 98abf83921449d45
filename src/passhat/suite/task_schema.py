"""The parts that a suite file is made of, the values that their keys take, and tasks.

A part is a class whose annotated names are the keys, with their defaults and a docstring each.
`load` reads a file by these declarations, and `reference` makes the schema and the page from them.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable, KeysView, Mapping, Sequence
from datetime import date
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from passhat.errors import MissingExtra
from passhat.records import Level
from passhat.records.suite import DEFAULT_USER_TURNS, TARGETS, TARGETS_WITH_PARTS, target_root
from passhat.suite.yaml_tree import did_you_mean


class Part:
    """A part of the suite file. A key that the file leaves out has the default of its class."""

    def __init__(self, **written: Any) -> None:
        vars(self).update(written)

    @property
    def written(self) -> KeysView[str]:
        """The fields that the file gives, whatever their values."""
        return vars(self).keys()

    def values(self) -> dict[str, Any]:
        """Every field with its value, the default where the file leaves it out."""
        return {name: getattr(self, name) for name in self.spellings()}

    def broken_rule(self) -> str | None:
        """What is wrong with the keys together, though each is right by itself."""
        return None

    @classmethod
    @cache
    def spellings(cls) -> Mapping[str, Sequence[str]]:
        """The fields, and the keys under which each may be written."""
        owned = (get_annotations(owner).items() for owner in reversed(cls.__mro__))
        return {
            name: cls._keys_of(name) if "Spelled(" in kind else (name,)
            for fields in owned
            for name, kind in fields
        }

    @classmethod
    def _keys_of(cls, name: str) -> Sequence[str]:
        (keys,) = (n.names for n in get_args(cls.field_type(name)) if isinstance(n, Spelled))
        return keys

    @classmethod
    @cache
    def field_type(cls, name: str) -> Any:
        """The type of a field.

        A file writes a few of the 500 fields: to evaluate them all takes 6 % of `passhat list`.
        """
        owner = next(part for part in cls.__mro__ if name in get_annotations(part))
        return eval(get_annotations(owner)[name], vars(sys.modules[owner.__module__]))  # noqa: S307


class Reads:
    """A function that reads texts (or lists and so on) before the type is checked.

    It raises ValueError where it can say what is wrong. `schema` is what it lets a file write
    besides what the type says.
    """

    def __init__(self, function: Callable[[Any], Any], schema: Any = None, of: Any = str) -> None:
        self.function, self.schema, self.of = function, schema, of


class Spelled:
    """The keys under which a field may be written; the documentation shows the first."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Short:
    """A part that may be written as the value of one of its keys alone: `number: 42`."""

    def __init__(self, key: str) -> None:
        self.key = key


# The kinds of value that keys take.

Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]

Weight = Annotated[float, Meta(gt=0, le=1e100)]
"""As large as a table takes them: their squares have an end."""

Share = Annotated[float, Meta(ge=0, le=1)]
"""From 0 to 1, both included."""

Chance = Annotated[float, Meta(gt=0, lt=1)]
"""Between 0 and 1, both excluded."""

PassScore = Annotated[float, Meta(gt=0, le=1)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]

Texts = Annotated[Sequence[str], Reads(lambda value: [value], {"type": "string"})]
"""One text or several."""

FunctionName = Annotated[str, Meta(pattern=r"^[\w.]+:[\w.]+$", description="module:function")]
Url = Annotated[
    str, Meta(pattern=r"^https?://", description="an address that begins with http:// or https://")
]


def _target(value: str) -> str:
    root = target_root(value)
    if root not in TARGETS:
        hint = did_you_mean(root, TARGETS)
        own = "" if hint.endswith("?") else f"; a key that your agent returns is reported.{root}"
        raise ValueError(f"is not a target. {hint}{own}")
    part = value.removeprefix("conversation.").removeprefix(root)
    if part and TARGETS[root] not in TARGETS_WITH_PARTS:
        raise ValueError(
            f"can never be there: {root} is a text or a number, without parts. A key that your "
            f"agent returns is reported{part if part.startswith('.') else '.key'}"
        )
    return value


Target = Annotated[str, Reads(_target)]


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return value


Pattern = Annotated[str, Reads(_pattern)]


def _json_schema(value: Any) -> Any:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
    except ModuleNotFoundError:
        raise MissingExtra("a JSON Schema in a suite", "run") from None
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
    return value


JsonSchema = Annotated[Mapping[str, Any] | bool, Reads(_json_schema, of=dict | bool)]


def _text(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


DURATION = r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*"
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: str) -> float:
    match = re.fullmatch(DURATION, value)
    if match is None:
        raise ValueError("must be seconds, or a text such as 500ms, 30s, 2m")
    return float(match[1]) * SECONDS[match[2]]


Seconds = Annotated[float, Meta(gt=0), Reads(_seconds, _text(f"^{DURATION}$"))]
"""Seconds, or a text such as 500ms, 30s, 2m."""


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from None


Argv = Annotated[Sequence[str], Meta(min_length=1), Reads(_words, _text(r"\S"))]
"""A command and its arguments, as a list or as one text."""

SIZE = r"\s*(\d+(?:\.\d+)?)\s*(?:([kKmMgGtT])(i?))?[bB]?\s*"

UNITS = ("", "k", "m", "g", "t")
"""Each is 1000 of the one before it, or 1024 with an i behind it."""


def bytes_of(value: str) -> int:
    """The bytes that a text such as 200MB says, also as docker and Kubernetes write them.

    >>> bytes_of("2GiB") == bytes_of("2Gi"), bytes_of("512m") == bytes_of("512 MB")
    (True, True)
    """
    match = re.fullmatch(SIZE, value)
    if match is None:
        raise ValueError("must be bytes, or a text such as 200MB, 1.5GB, 2GiB")
    unit = 1024.0 if match[3] else 1000.0
    # An endless number has no whole one; the reader refuses whole numbers from 2**63.
    return round(min(float(match[1]) * unit ** UNITS.index((match[2] or "").lower()), 2.0**63))


Bytes = Annotated[int, Meta(ge=1), Reads(bytes_of, _text(f"^{SIZE}$"))]
"""Bytes, or a text such as 200MB, 1.5GB, 2GiB."""


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("must be a date such as 2027-01-31") from None


Day = Annotated[date, Reads(_day)]
"""A date such as 2027-01-31."""


# Expectations: a target and a matcher, in a short or a long form.


class NumberPart(Part):
    """A number, within a tolerance."""

    value: float | str
    """What is expected; a text is read as a number (a dataset's column)."""
    tolerance: NotNegative = 1e-9
    """How far off it may be."""
    relative: bool = False
    """Whether the tolerance is a share of the expected value."""

    def broken_rule(self) -> str | None:
        # Every number is within an endless distance, and none is near an endless value.
        endless = math.inf in (self.tolerance, self.value) or self.value == -math.inf
        return "must be finite" if endless else None


class BoundsPart(Part):
    """A least and a most; either may be left out."""

    min: float | None = None
    """The least, included."""
    max: float | None = None
    """The most, included."""

    def broken_rule(self) -> str | None:
        if self.min is None and self.max is None:
            return "needs min, max or both"
        return _min_above_max(self.min, self.max)


class LengthPart(Part):
    """A length: exact, or between a least and a most."""

    exact: CountOrZero | None = None
    """The exact length."""
    min: CountOrZero | None = None
    """The least, included."""
    max: CountOrZero | None = None
    """The most, included."""

    def broken_rule(self) -> str | None:
        if self.exact is None and self.min is None and self.max is None:
            return "needs exact, min or max"
        return _min_above_max(self.min, self.max)


class CalledPart(Part):
    """A tool that was called, and how often."""

    tool: str
    """The tool's name."""
    times: CountOrZero | None = None
    """Exactly this many times."""
    min: CountOrZero | None = None
    """At least this many times (1 unless `times` or `max` is given)."""
    max: CountOrZero | None = None
    """At most this many times."""

    def broken_rule(self) -> str | None:
        return _min_above_max(self.min, self.max)


class CalledWithPart(Part):
    """A tool that was called with these arguments; others may be there too."""

    tool: str
    """The tool's name."""
    arguments: Annotated[Mapping[str, Any], Spelled("arguments", "args")] = {}
    """Arguments and their values."""
    exact: bool = False
    """Whether no other argument may be there."""


class CommandCheckPart(Part):
    """A program that looks at the attempt: exit code 0 is a pass, 1 a failure."""

    argv: Argv
    """The program and its arguments; it reads the observation as JSON on its standard input."""
    timeout: Seconds = 60.0
    """How long it may take."""
    env: Texts = ()
    """The variables that it sees beside PATH, HOME and the like, by name."""
    protect: Texts = ()
    """Files and folders beside the suite that it finds where the agent worked, as they were."""
    trust: Texts = ()
    """Files such as a Makefile that the agent is asked to write, and that may direct it."""


class TestsPart(Part):
    """Hidden tests: they run on a fresh copy of the workspace with the agent's changes in it."""

    run: Annotated[str, Meta(min_length=1)]
    """The command; `{report}` is the file for its report (JUnit XML, or JSON of jest or go)."""
    files: Texts = ()
    """Files and folders beside the suite that are laid on top; the agent never sees them."""
    at_least: Count = 1
    """How many tests must run."""
    names: Texts = ()
    """The tests that must pass, if not all of them."""
    protect: Texts = ()
    """Further paths that are as the workspace has them, besides tests and their settings."""
    timeout: Seconds = 300.0
    """How long they may take."""
    grade_on_timeout: bool = False
    """Whether they decide about an agent that ran out of time too, which fails otherwise."""


class JudgeCheckPart(Part):
    """A rubric, read by a model that answers with a score from 0 to 1."""

    rubric: str
    """What the judge looks for."""
    model: str | None = None
    """The judging model; by default that of the suite's `judge:`."""
    threshold: Annotated[Share, Spelled("threshold", "min_score")] = 0.7
    """The least mean score that earns the credit."""
    repeats: Count | None = None
    """How often the judge reads each answer; by default the suite's `judge.repeats`."""
    transcript: bool = False
    """Whether the judge also reads the whole transcript, tool calls included."""
    panel: Texts | None = None
    """Further judging models; more than half of all must pass the answer."""
    against: str | None = None
    """An answer to compare with, in both orders: 1 if the agent's is better, 0.5 for a tie."""


class MatcherPart(Part):
    """What must be true of the target: exactly one of these."""

    exact: Any = None
    """Equal to this value."""
    iexact: str | None = None
    """Equal to this text, whatever the case and the space around it."""
    contains: Any = None
    """The text contains this one; a list has this member."""
    icontains: str | None = None
    """The text contains this one, whatever the case."""
    contains_all: Annotated[Texts | None, Spelled("contains-all", "contains_all")] = None
    """Contains every one of these."""
    contains_any: Annotated[Texts | None, Spelled("contains-any", "contains_any")] = None
    """Contains at least one of these."""
    regex: Pattern | None = None
    """A Python regular expression is found in the text."""
    one_of: Annotated[Sequence[Any] | None, Spelled("one_of", "one-of")] = None
    """Equal to one of these values."""
    number: Annotated[NumberPart, Short("value")] | None = None
    """A number (the last one in a text), within a tolerance."""
    range: BoundsPart | None = None
    """A number between a least and a most."""
    json_schema: Annotated[JsonSchema | None, Spelled("json-schema", "json_schema", "schema")] = (
        None
    )
    """The value (or the JSON in the text) is valid under this JSON Schema."""
    length: Annotated[LengthPart, Short("exact")] | None = None
    """The length of the text or list."""
    exists: bool | None = None
    """Whether the target exists at all."""
    called: Annotated[CalledPart, Short("tool")] | None = None
    """A tool was called."""
    not_called: Annotated[Texts | None, Spelled("not_called", "not-called")] = None
    """None of these tools was called."""
    called_in_order: Annotated[Texts | None, Spelled("called_in_order", "called-in-order")] = None
    """These tools were called in this order; others may come between."""
    called_with: Annotated[CalledWithPart | None, Spelled("called_with", "called-with")] = None
    """A tool was called with these arguments."""
    snapshot: str | None = None
    """Equal to the text stored under this name; stored the first time."""
    python: FunctionName | None = None
    """A function `module:name` that gets the value and the observation."""
    command: Annotated[CommandCheckPart, Short("argv")] | None = None
    """A program, by its exit code."""
    tests: Annotated[TestsPart, Short("run")] | None = None
    """Hidden tests, on what the agent changed in its workspace."""
    judge: Annotated[
        Annotated[JudgeCheckPart, Short("rubric")] | None,
        Spelled("judge", "llm-judge", "llm_judge", "rubric"),
    ] = None
    """A rubric, read by a model."""
    negated: Annotated[MatcherPart | None, Spelled("not")] = None
    """The matcher inside must not hold."""

    def broken_rule(self) -> str | None:
        return _not_one(self.matchers())

    def matchers(self) -> dict[str, Any]:
        """The matchers that were written, `exact: null` among them."""
        return {name: value for name, value in vars(self).items() if name in MATCHERS}


class ExpectPart(MatcherPart):
    """One expectation: `target` and a matcher, beside it or under `matcher:`."""

    target: Target = "answer"
    """A dotted path: answer, tool_calls[0].arguments.city, tokens.total, files, reported.key."""
    matcher: MatcherPart | None = None
    """The matcher, in the long form."""
    weight: Weight = 1.0
    """Its share of the credit."""
    message: str | None = None
    """What to say when it does not hold."""
    constraint: Literal["low", "medium", "high"] | None = None
    """A limit set on the agent, and how grave it is to break it: gives `safety_compliance`."""

    def broken_rule(self) -> str | None:
        return _not_one(self.matchers() | (self.matcher.matchers() if self.matcher else {}))


NULLABLE = ("exact", "contains")
"""Matchers whose value may be null."""

MATCHERS = tuple(MatcherPart.spellings())


def _min_above_max(low: float | None, high: float | None) -> str | None:
    crossed = low is not None and high is not None and low > high
    return "has min above max" if crossed else None


def _not_one(written: Mapping[str, Any]) -> str | None:
    if len(written) != 1:
        return f"needs exactly one matcher, got {', '.join(written) or 'none'}"
    ((name, value),) = written.items()
    written_as = MatcherPart.spellings()[name][0]
    return f"{written_as} needs a value" if value is None and name not in NULLABLE else None


# Tasks.


class ToolSelectionPart(Part):
    """How often the right tool must be picked, at least."""

    expected_tool: str
    """The tool that must appear among the calls."""
    min_selection_rate: Share = 1.0
    """The least share of runs that call it."""
    max_total_tokens: Count | None = None
    """No run may take more tokens."""
    bound: bool = False
    """Whether the lower end of the interval must reach the rate, not the point."""


class BudgetPart(Part):
    """The most that may be spent."""

    max_cost: Positive | None = None
    """Dollars."""
    max_tokens: Count | None = None
    """Tokens, in and out."""
    max_minutes: Positive | None = None
    """Minutes of wall clock."""


class StepPart(Part):
    """One step of a conversation, graded on its own."""

    name: Name
    """Its name in reports, and in gates: `steps[NAME].pass_rate`."""
    prompt: str
    """The prompt of this step."""
    expect: Sequence[ExpectPart] = ()
    """What must hold after it."""


class PromptPart(Part):
    """The prompt: a text, or a prompt of one of the agent's MCP servers."""

    text: str | None = None
    """The text itself."""
    name: Name | None = None
    """The name of a server's prompt."""
    arguments: Mapping[str, str] = {}
    """What the server's prompt is filled with."""
    server: str | None = None
    """The server that has the prompt; by default the first that has it."""

    def broken_rule(self) -> str | None:
        either = (self.text is None) != (self.name is None)
        return None if either else "needs either text or the name of a prompt"


class ResourcePart(Part):
    """A resource of one of the agent's MCP servers, read before the task begins."""

    uri: Name
    """Its address, such as `file:///report.md`."""
    server: str | None = None
    """The server that has it; by default the first that has it."""


class WorkspacePart(Part):
    """What the agent works in: a folder, an archive, a git repository at a commit, or an image."""

    folder: str | None = None
    """A folder or an archive beside the suite."""
    repo: str | None = None
    """A git repository beside the suite."""
    commit: str | None = None
    """The commit of the repository: neither what came before nor what came after is there."""
    image: str | None = None
    """An image of podman or docker: its programs, and its working folder as the workspace."""

    def broken_rule(self) -> str | None:
        if sum(source is not None for source in (self.folder, self.repo, self.image)) != 1:
            return "needs either folder or repo or image"
        if (self.repo is None) != (self.commit is None):
            return "needs both repo and commit, or a folder or an image alone"
        return None


class SolutionPart(Part):
    """A reference solution, with which the task must pass; no agent sees it."""

    files: str | None = None
    """A folder or file beside the suite that is laid over the workspace."""
    patch: str | None = None
    """A diff beside the suite that is applied to the workspace."""
    run: str | None = None
    """A shell script that works in the workspace; it finds `files` in the folder $SOLUTION."""

    def broken_rule(self) -> str | None:
        if self.files is None and self.patch is None and self.run is None:
            return "needs files, patch or run"
        if self.patch is not None and (self.files is not None or self.run is not None):
            return "is either a patch, or files and run"
        return None


class ScenarioPart(Part):
    """What a simulated user wants of the agent, and what it knows."""

    goal: Annotated[str, Meta(min_length=1)]
    """What the user wants, in words to the user."""
    opens: Annotated[str, Meta(min_length=1)] | None = None
    """Its first message, word for word; by default the user writes it."""
    facts: Mapping[Name, str | int | float] = {}
    """All that it may state; asked for anything else, it does not know."""
    if_asked: Texts = ()
    """The facts that it states only when it is asked for them."""
    never: Texts = ()
    """What it does not accept."""
    done: ExpectPart | None = None
    """What ends the conversation as soon as it holds, looked at after each answer."""
    max_turns: Count = DEFAULT_USER_TURNS
    """The most messages of the user."""

    def broken_rule(self) -> str | None:
        unknown = [name for name in self.if_asked if name not in self.facts]
        if unknown:
            return f"has no fact {unknown[0]}, which if_asked names"
        opening = (self.opens or "").lower()
        stated = [name for name in self.if_asked if str(self.facts[name]).lower() in opening]
        return f"has {stated[0]} in opens, which if_asked holds back" if stated else None


class TaskFields(Part):
    """What is asked and what is expected."""

    name: Name
    """Its name in every report."""
    prompt: Annotated[PromptPart, Short("text")] | None = None
    """What the agent is asked: a text, or a prompt of an MCP server by its name."""
    resources: Sequence[Annotated[ResourcePart, Short("uri")]] = ()
    """Resources of the agent's MCP servers: their text goes before the prompt."""
    images: Texts = ()
    """Pictures or sounds that go with the prompt: files beside the suite."""
    steps: Sequence[StepPart] = ()
    """Several prompts in one conversation, in place of `prompt`."""
    user: Annotated[ScenarioPart, Short("goal")] | None = None
    """A conversation with the simulated users of the suite, in place of `prompt`."""
    expect: Sequence[ExpectPart] = ()
    """What must hold in the end."""
    dataset: str | None = None
    """A CSV, TSV or JSONL file: one task a row, with its `{column}` values filled in."""
    limit: Count | None = None
    """Only the first rows of the dataset, or the first tasks of `from`."""
    runs: CountOrZero | None = None
    """How many trials (for each seed, where there are `seeds:`); 0 means 1."""
    pass_score: PassScore | None = None
    """The score at which a trial passes; by default 1.0."""
    bar: Share | None = None
    """The pass^k this task must clear."""
    level: Level | None = None
    """function, task or system."""
    family: str | None = None
    """The source that the task shares with others; rows of a dataset have its task's name."""
    weight: Weight | None = None
    """How much the task counts; by default 1."""
    tags: Texts = ()
    """Words to slice reports by."""
    timeout: Seconds | None = None
    """The most seconds for one trial; without it 120, and 1800 in a workspace."""
    max_turns: Count | None = None
    """The most turns of the conversation."""
    expected_tool: Name | None = None
    """The tool that a good run calls, for the matrix of `passhat why`; by default that of
    `tool_selection`, or of the one `called` expectation."""
    tool_selection: ToolSelectionPart | None = None
    """How often the right tool must be picked, at least."""
    budget: BudgetPart = BudgetPart()
    """The most that one trial of it may spend."""
    workspace: Annotated[WorkspacePart, Short("folder")] | None = None
    """What a command works in: a fresh copy for each trial, in a sandbox."""
    setup: str | None = None
    """A shell script that prepares the workspace, once for all trials."""
    keep: Texts = ()
    """Patterns of files that the agent wrote in its workspace and that are kept with the trial:
    texts, the last 200 kB of each, at most 1 MB of a trial."""
    solution: Annotated[SolutionPart, Short("files")] | None = None
    """What `passhat check --try` passes the task with: a folder, a .patch file or a command."""

    def broken_rule(self) -> str | None:
        given = bool(self.steps) + (self.prompt is not None) + (self.user is not None)
        return None if given == 1 else "needs either prompt, steps or user"


class TaskPart(TaskFields):
    """One thing every agent is asked to do."""

    system_prompt: str | None = None
    """A system prompt for this task, in place of the agent's own."""
    systems: Texts | None = None
    """Only these agents; by default all of them."""
    source: Annotated[str | None, Spelled("from")] = None
    """Tasks as other tools keep them: the evals.json of a skill (a judge reads each eval by its
    expectations), a folder of Harbor or Terminal-Bench tasks, SWE-bench rows as JSON Lines, or the
    folder of a domain of tau2-bench (its own tools, policy and checks)."""

    def broken_rule(self) -> str | None:
        if self.source is None:
            return super().broken_rule()
        own = [key for key in ("prompt", "steps", "user", "dataset") if key in self.written]
        return f"has both {own[0]} and from: keep one" if own else None
