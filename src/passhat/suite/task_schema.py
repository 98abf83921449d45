"""Tasks as a suite file writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from passhat.records import Level
from passhat.suite.expect_schema import ExpectPart
from passhat.suite.fields import (
    Count,
    CountOrZero,
    Name,
    Part,
    PassScore,
    Positive,
    Seconds,
    Share,
    Short,
    Texts,
    Weight,
)


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
    """Its name in the cascade."""
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
        one = (self.text is None) != (self.name is None)
        return None if one else "needs either text or the name of a prompt"


class ResourcePart(Part):
    """A resource of one of the agent's MCP servers, read before the task begins."""

    uri: Name
    """Its address, such as `file:///report.md`."""
    server: str | None = None
    """The server that has it; by default the first that has it."""


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
    expect: Sequence[ExpectPart] = ()
    """What must hold in the end."""
    dataset: str | None = None
    """A CSV, TSV or JSONL file: one task a row, with its `{column}` values filled in."""
    limit: Count | None = None
    """Only the first rows of the dataset."""
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
    """The most seconds for one trial."""
    max_turns: Count | None = None
    """The most turns of the conversation."""
    expected_tool: Name | None = None
    """The tool that a good run calls, for the matrix of `passhat why`; by default that of
    `tool_selection`, or of the one `called` expectation."""
    tool_selection: ToolSelectionPart | None = None
    """How often the right tool must be picked, at least."""
    budget: BudgetPart = BudgetPart()
    """The most that one trial of it may spend."""

    def broken_rule(self) -> str | None:
        one = bool(self.steps) != (self.prompt is not None)
        return None if one else "needs either prompt or steps"


class TaskPart(TaskFields):
    """One thing every system is asked to do."""

    system_prompt: str | None = None
    """A system prompt for this task, in place of the system's own."""
    systems: Texts | None = None
    """Only these systems; by default all of them."""
