"""Trials that keep coming: an alarm when an agent gets worse, with a known number of false ones.

Each agent has one detector for all its trials and one for each family of tasks. A trial counts for
two of them, whatever the number of families, so each may err half as often as is promised.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, GraderError, InputError, ReadError
from passhat.messages import few, percent, plural, short
from passhat.records.trial import Outcome, families_by_prefix
from passhat.runner.run import run_coroutine
from passhat.stats.sequential.detection import (
    ALWAYS,
    HOURS_OF_DAY,
    CyclicDetector,
    EDetector,
    hour_of,
)

if TYPE_CHECKING:
    from passhat.records import Observation, Trials
    from passhat.records.columns import ColumnMap
    from passhat.records.transcript import Transcript, Transcripts

REFERENCE_TRIALS = 1_000
REFERENCE_DAYS = 7.0
"""What is learnt before anything is judged: so many trials, and where they have times so many days,
so that the hours of the day and the weekend are known."""

FALSE_ALARMS = 0.1
"""False alarms per 1,000 trials: one in 10,000."""

SCREENED = 0.05
"""The share of the tasks that an alarm names which may be there by chance."""

UNIT_SECONDS = 60
DAY = 86_400.0
MOST_RECENT = 4_000
MOST_KEYS = 100_000
MOST_BYTES = 2**26
TRACE_PATIENCE = 600.0
"""Seconds that the spans of a trace wait for its first one, which is exported last."""

Kind = Literal["watching", "alarm", "recovered", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """Something to be told: an alarm, with its trial, its time, its size and its tasks."""

    kind: Kind
    sentence: str
    system: str = ""
    family: str | None = None
    trial: int | None = None
    time: str | None = None
    since: str | None = None
    rate: float | None = None
    reference: float | None = None
    trials: int | None = None
    tasks: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Observed:
    """One trial that a detector counted: in which of its observations, and what is told of it."""

    unit: int
    task: str
    passed: bool
    number: int
    time: float | None


@dataclass(slots=True, kw_only=True)
class Stream(CyclicDetector):
    """The trials of one agent, or of one family of its tasks, as observations of its detector.

    An observation is a minute's mean: trials of the same minute often share a cause, and so a
    burst counts once. Trials without a time are observations of their own.
    """

    tasks: dict[str, list[int]] = field(default_factory=dict)
    minute: int | None = None
    open: list[Observed] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)
    recent: list[Observed] = field(default_factory=list)

    def add(self, task: str, passed: bool, number: int, at: float | None) -> bool:
        """Count a trial; True if it closes an observation that raises or ends an alarm."""
        minute = None if at is None else int(at // UNIT_SECONDS)
        fired = False
        # A trial that comes late belongs to the open observation: no minute is opened twice.
        if self.open and (minute is None or self.minute is None or minute > self.minute):
            fired = self.close()
        if not self.open:
            self.minute = minute
        if self.floors is not None:
            floor = self.floors.get(hour_of(at, self.by))
            if floor is None:
                return fired  # an hour of the week that the reference has not seen
            self.edges.append(floor)
        self.open.append(
            Observed(unit=self.detector.seen, task=task, passed=passed, number=number, time=at)
        )
        return fired

    def close(self) -> bool:
        """End the open observation; True if it raises or ends an alarm."""
        if not self.open:
            return False
        value = sum(trial.passed for trial in self.open) / len(self.open)
        if self.floors is None:
            self.note(value, self.open[0].time)
            for trial in self.open:
                counts = self.tasks.setdefault(trial.task, [0, 0])
                counts[0] += trial.passed
                counts[1] += 1
            self.open = []
            return False
        self.recent += self.open
        fired = self.judge(value, math.fsum(self.edges) / len(self.edges))
        self.open, self.edges = [], []
        if len(self.recent) > MOST_RECENT:
            self.recent = self.recent[-MOST_RECENT // 2 :]
        return fired

    def worst_tasks(self, seen: Sequence[Observed]) -> tuple[str, ...]:
        """The tasks that fail more often than they did, by more than noise, the clearest first."""
        from passhat.stats.multiple_testing import task_tests

        now = Counter(trial.task for trial in seen if trial.task in self.tasks)
        if not now:
            return ()
        passed = Counter(trial.task for trial in seen if trial.passed)
        c_old, n_old = zip(*(self.tasks[task] for task in now), strict=True)
        tests = task_tests(
            list(now.values()), [passed[task] for task in now], n_old, c_old, alternative="less"
        )
        shown = {task: p for task, p in zip(now, tests.screening, strict=True) if p <= SCREENED}
        return tuple(sorted(shown, key=lambda task: shown[task]))


@dataclass(slots=True, kw_only=True)
class AgentWatch:
    """One agent: its trials together, and its families."""

    whole: Stream
    families: dict[str, Stream] = field(default_factory=dict)
    trials: int = 0
    errored: int = 0
    first: float | None = None
    last: float | None = None
    learning: bool = True

    @property
    def streams(self) -> list[tuple[str | None, Stream]]:
        """All its trials, and those of each family by its name."""
        return [(None, self.whole), *self.families.items()]

    @property
    def days(self) -> float:
        """From its first trial to its last; 0 if they have no times."""
        if self.first is None or self.last is None:
            return 0.0
        return (self.last - self.first) / DAY


@dataclass(slots=True, kw_only=True)
class Watch:
    """What is usual for each agent, and whether it still holds.

    In the mean there are at most `false_alarms` in 1,000 trials while every agent is as good as in
    its reference, hour by hour of the week. Errored trials are counted and judge nobody.
    """

    reference_trials: int = REFERENCE_TRIALS
    reference_days: float = REFERENCE_DAYS
    false_alarms: float = FALSE_ALARMS
    margin: float = 0.0
    agents: dict[str, AgentWatch] = field(default_factory=dict)

    @property
    def alarmed(self) -> bool:
        """Whether an agent, or a family of its tasks, is worse than usual now."""
        return any(own.alarmed for agent in self.agents.values() for _, own in agent.streams)

    def observe(self, trials: Trials) -> list[WatchEvent]:
        """Count new trials, in their order; what is to be told of them."""
        events: list[WatchEvent] = []
        times: list[float | None] = [None] * len(trials)
        if trials.started is not None:
            known = [*map(_seconds, trials.started.names), None]
            times = [known[code] for code in trials.started.codes.tolist()]
        if trials.family is not None:
            families = trials.family.texts()
        else:
            by_name = [*families_by_prefix(trials.task.names), None]
            families = [by_name[code] for code in trials.task.codes.tolist()]
        names = zip(trials.system.texts(), trials.task.texts(), families, strict=True)
        rows = zip(names, trials.outcome.tolist(), times, strict=True)
        for (system, task, family), outcome, at in rows:
            assert system is not None
            assert task is not None
            if (agent := self.agents.get(system)) is None:
                agent = self.agents[system] = AgentWatch(whole=self._stream())
            agent.trials += 1
            if outcome == Outcome.ERRORED:
                agent.errored += 1
                continue
            if at is not None:
                agent.first = at if agent.first is None else min(agent.first, at)
                agent.last = at if agent.last is None else max(agent.last, at)
            if agent.learning and family is not None and family not in agent.families:
                agent.families[family] = self._stream()
            for name in (None, family) if family in agent.families else (None,):
                stream = agent.whole if name is None else agent.families[name]
                if stream.add(task, outcome == Outcome.PASSED, agent.trials, at):
                    events.append(self._tell(system, name, stream))
            if self._has_learnt(agent):
                events.append(self._learn(system, agent))
        return events

    def flush(self) -> list[WatchEvent]:
        """Close what is open: nothing more of this minute will come."""
        events: list[WatchEvent] = []
        for system, agent in self.agents.items():
            for name, stream in agent.streams:
                if stream.close():
                    events.append(self._tell(system, name, stream))
            if self._has_learnt(agent):
                events.append(self._learn(system, agent))
        return events

    def _stream(self) -> Stream:
        return Stream(detector=EDetector(every=2.0 * 1000.0 / self.false_alarms))

    def _has_learnt(self, agent: AgentWatch) -> bool:
        """Whether the reference is long enough just now; trials without times have no days."""
        if not agent.learning or agent.trials - agent.errored < self.reference_trials:
            return False
        return agent.first is None or agent.days >= self.reference_days

    def _learn(self, system: str, agent: AgentWatch) -> WatchEvent:
        """Take what was seen as usual, in families in the cycle of the whole."""
        agent.learning, spoken = False, short(system)
        for _, stream in agent.streams:
            stream.close()
        enough = agent.whole.settle(agent.days, self.margin)
        agent.families = {
            name: stream
            for name, stream in agent.families.items()
            if stream.settle(agent.days, self.margin, agent.whole.rates)
        }
        if len(agent.families) == 1:
            agent.families = {}  # it would say the same as the whole
        if not enough:
            sentence = f"{spoken} cannot be watched: it passes too seldom, or in too few minutes"
            return WatchEvent(kind="note", sentence=sentence, system=system)
        cycles = {ALWAYS: "no cycle is known", HOURS_OF_DAY: "hour by hour of the day"}
        by = cycles.get(agent.whole.by, "hour by hour, weekends apart")
        families = plural(len(agent.families), "family of tasks", "families of tasks")
        return WatchEvent(
            kind="watching",
            sentence=(
                f"watching {spoken}: {percent(agent.whole.usual, digits=1)} pass in "
                f"{plural(agent.trials, 'trial')} ({by})"
                f"{f', with {families}' if agent.families else ''}; at most "
                f"{self.false_alarms:g} false alarms in 1,000 trials"
            ),
            system=system,
            reference=agent.whole.usual,
            trials=agent.trials,
        )

    def _tell(self, system: str, family: str | None, stream: Stream) -> WatchEvent:
        """The sentence of an alarm, or of its end; the detector begins anew."""
        changed = [trial for trial in stream.recent if trial.unit >= stream.detector.start]
        seen = changed or stream.recent[-1:]
        kind: Kind = "recovered" if stream.alarmed else "alarm"
        tasks = () if stream.alarmed else stream.worst_tasks(seen)
        rate = sum(trial.passed for trial in seen) / len(seen)
        name = short(system) if family is None else f"{short(system)}, {short(family)}"
        since = _clock(seen[0].time) or f"trial {seen[0].number:,}"
        where = ""
        if kind == "alarm":
            every = plural(len({trial.task for trial in seen}), "task")
            where = f"; in {few(tasks)}" if tasks else f"; spread over {every}"
        size = f"{percent(rate)} of {plural(len(seen), 'trial')} passed since {since}"
        verb = "got worse" if kind == "alarm" else "has recovered"
        event = WatchEvent(
            kind=kind,
            sentence=(
                f"{name} {verb}: {size}, {percent(stream.usual)} before{where} "
                f"(trial {seen[-1].number:,})"
            ),
            system=system,
            family=family,
            trial=seen[-1].number,
            time=_clock(seen[-1].time) or None,
            since=since,
            rate=rate,
            reference=stream.usual,
            trials=len(seen),
            tasks=tasks,
        )
        stream.alarmed = not stream.alarmed
        stream.detector.restart()
        stream.recent = []
        return event


def _clock(at: float | None) -> str:
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _seconds(text: str) -> float | None:
    """The time that a text means, as seconds since 1970; None if it means none."""
    try:
        number = float(text)
    except ValueError:
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            return None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    while number > 1e11:  # milliseconds, microseconds or nanoseconds
        number /= 1000.0
    return number if 0.0 <= number < 1e11 else None


# Where the trials come from: files that grow, folders that fill, a store.


@dataclass(slots=True, kw_only=True)
class FileMark:
    """How far a file was read. `head` tells a file from another that took its name."""

    offset: int = 0
    head: str = ""
    header: str = ""
    changed: float = 0.0
    holds_trials: bool = False


MOST_BAD_ROWS = 20
"""After so many rows that are no trials, and none that is, what is watched is no table of them."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """Spans of a trace whose first span has not come yet."""

    began: float
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Follower:
    """Reads what is new in a file, a folder or a store, each trial once.

    Files of lines (JSONL, CSV, TSV) are read from where they ended before; others again when they
    have changed. A trial is known by its own number, its run or its trace: rows that say none of
    these are all different. A file that was replaced is read from its beginning.
    """

    source: str
    format: str | None = None
    grader: str | None = None
    files: dict[str, FileMark] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    unreadable: int = 0
    unread: list[str] = field(default_factory=list)
    ungraded: list[str] = field(default_factory=list)

    def poll(self, mapping: ColumnMap) -> Iterator[Trials]:
        """What is new, in the order in which it was written."""
        from passhat.journeys.results import is_store

        if is_store(self.source):
            if self.grader is not None:
                raise InputError("the trials of a store were graded when they ran: leave `grader`")
            yield from self._poll_store()
            return
        for path in self._paths():
            try:
                for trials in self._poll_file(path, mapping):
                    fresh = self._without_repeats(trials, str(path))
                    if len(fresh):
                        yield fresh
            except ReadError:
                if self.format is not None or not Path(self.source).is_dir():
                    raise  # a folder may hold other files

    def notes(self) -> Iterator[str]:
        """What is to be told of what was read since the last time."""
        if lost := self.unreadable:
            yield f"{plural(lost, 'line is', 'lines are')} no JSON object and left out"
        if rows := self.unread:
            yield f"{plural(len(rows), 'row is', 'rows are')} left out: {short(rows[0], 300)}"
        if broken := self.ungraded:
            traces = plural(len(broken), "trace")
            yield f"the grader broke on {traces}, which judge nobody: {short(broken[0])}"
        self.unreadable, self.unread, self.ungraded = 0, [], []

    def _paths(self) -> list[Path]:
        source = Path(self.source)
        if not source.exists():
            raise InputError(f"there is nothing at {self.source} to watch")
        if not source.is_dir():
            return [source]
        files = [path for path in source.rglob("*") if path.is_file() and path.name[0] != "."]
        return sorted(files, key=lambda path: (path.stat().st_mtime, path.name))

    def _poll_file(self, path: Path, mapping: ColumnMap) -> Iterator[Trials]:
        mark = self.files.setdefault(str(path), FileMark())
        stat = path.stat()
        if path.suffix.lower() not in LINE_FILES:
            # Of other files the end is known only when they have been written.
            if stat.st_mtime == mark.changed or stat.st_size == 0:
                return
            mark.changed = stat.st_mtime
            yield self._read(path, mapping)
            return
        while text := _new_lines(path, mark):
            if path.suffix.lower() in (".csv", ".tsv"):
                if not mark.header:
                    mark.header, _, text = text.partition("\n")
                lines = text.rstrip("\r\n").split("\n")
            else:
                lines = list(self._sound_lines(text))
            if any(lines):
                yield from self._read_lines(path, mark, lines, mapping)

    def _read_lines(
        self, path: Path, mark: FileMark, lines: list[str], mapping: ColumnMap
    ) -> list[Trials]:
        """The trials of some lines; a row that is none must not stop the watch, if others are."""
        read: list[Trials] = []
        faults, left = list[str](), [lines]
        while left:
            some = left.pop()
            # Under its own name: it may be the agent's.
            with tempfile.TemporaryDirectory(prefix="passhat-watch-") as folder:
                copy = Path(folder) / path.name
                rows = [mark.header, *some] if mark.header else some
                copy.write_text("\n".join((*rows, "")), encoding="utf-8")
                try:
                    read.append(self._read(copy, mapping))
                    continue
                except ReadError as error:
                    fault = str(error).replace(str(copy), str(path))
            if len(some) > 1:
                left += [some[len(some) // 2 :], some[: len(some) // 2]]
                continue
            faults.append(re.sub(r", line \d+", "", fault, count=1))
            if not (read or mark.holds_trials) and len(faults) == MOST_BAD_ROWS:
                break
        mark.holds_trials = mark.holds_trials or bool(read)
        if faults and not mark.holds_trials:  # a wrong call, or no results
            raise ReadError(faults[0])
        self.unread += faults
        return read

    def _read(self, path: Path, mapping: ColumnMap) -> Trials:
        from passhat.ingest import read_trials, read_with_transcripts
        from passhat.records.tally import Categorical

        # Repeats must not be renumbered: the numbers tell what is known.
        how: dict[str, Any] = {"format": self.format, "mapping": mapping, "duplicates": "last"}
        if self.grader is None:
            trials = read_trials(path, **how)
        else:
            read = read_with_transcripts(path, **how)
            trials, broken = run_coroutine(graded(*read, self.grader))
            self.ungraded += broken
        facts = dict(trials.sources[0].read_as) if trials.sources else {}
        if facts.get("system") == "file name":
            name = Path(self.source).stem or self.source
            trials = replace(trials, system=Categorical.of([name] * len(trials)))
        return trials

    def _sound_lines(self, text: str) -> Iterator[str]:
        """The lines that are objects: a writer that died in a line must not stop the watch.

        Spans wait for the first one of their trace, which has no parent.
        """
        now, whole = time.time(), list[str]()
        for line in filter(str.strip, text.split("\n")):
            try:
                value = msgspec.json.decode(line, type=dict)
            except (msgspec.DecodeError, RecursionError):
                self.unreadable += 1
                continue
            try:
                spans = list(_spans(value, line))
            except (AttributeError, KeyError, TypeError):
                spans = [("", True, line)]  # the reader says what is wrong with it
            for trace, first, alone in spans:
                if not trace:
                    yield alone
                    continue
                self.traces.setdefault(trace, Trace(began=now)).lines.append(alone)
                whole += [trace] if first else []
        whole += [t for t, trace in self.traces.items() if now - trace.began > TRACE_PATIENCE]
        yield from (line for t in dict.fromkeys(whole) for line in self.traces.pop(t).lines)

    def _poll_store(self) -> Iterator[Trials]:
        from passhat.history import History

        with History.open(self.source, read_only=True) as history:
            for run in reversed(history.runs()):
                if run.key in self.finished:
                    continue
                if run.status != "running":
                    self.finished.add(run.key)
                fresh = self._without_repeats(history.trials(run), run.key, named=True)
                if len(fresh):
                    yield fresh

    def _without_repeats(self, trials: Trials, where: str, *, named: bool = False) -> Trials:
        facts = dict(trials.sources[0].read_as) if trials.sources else {}
        numbered = facts.get("run", "").startswith(("column", "the attribute"))
        line_file = Path(where).suffix.lower() in LINE_FILES
        if not (named or numbered or not line_file):
            return trials
        scope = "" if numbered and not named else where
        kept = []
        rows = zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)
        for system, task, number in rows:
            parts = f"{scope}\0{system}\0{task}\0{number}"
            key = hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()
            kept.append(key not in self.keys)
            self.keys[key] = None
        while len(self.keys) > MOST_KEYS:
            del self.keys[next(iter(self.keys))]
        import numpy as np

        return trials if all(kept) else trials.take(np.array(kept, dtype=bool))


LINE_FILES = (".jsonl", ".ndjson", ".csv", ".tsv")


async def graded(trials: Trials, transcripts: Transcripts, grader: str) -> tuple[Trials, list[str]]:
    """The trials by the verdicts of a grader, `module:name` as in a suite, and where it broke.

    A trial that errored stays so, and one is an error that has no transcript, or on which the
    grader breaks: a trace that nobody thought of must not stop the watch.
    """
    import numpy as np

    from passhat.records import Expectation
    from passhat.records.transcript import Transcript
    from passhat.runner.grading import Grading, grade

    expected, means = [Expectation(matcher="python", value=grader)], Grading(directory=Path.cwd())
    outcomes, scores = trials.outcome.copy(), trials.score.copy()
    broken: list[str] = []
    names = zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)
    for row, key in enumerate(names):
        if outcomes[row] == Outcome.ERRORED:
            continue
        outcomes[row], scores[row] = Outcome.ERRORED, np.nan
        if (kept := transcripts.get(key)) is None:  # type: ignore[arg-type] # every trial has both names
            continue
        try:
            verdict = await grade(expected, _observation(Transcript.from_json(kept)), grading=means)
        except GraderError as error:
            broken.append(str(error))
        else:
            outcomes[row], scores[row] = Outcome(verdict.passed), verdict.score
    return replace(trials, outcome=outcomes, score=scores), broken


def _observation(transcript: Transcript) -> Observation:
    """What a grader may look at of a conversation that took place elsewhere."""
    from passhat.records import Observation, ToolCall
    from passhat.records.transcript import answered_calls

    turns, calls = transcript.messages, []
    for call in answered_calls(transcript):
        try:
            arguments: Any = msgspec.json.decode(call.arguments or "{}")
        except msgspec.DecodeError:
            arguments = call.arguments
        result = None if call.answer is None else call.answer.text
        error = result if call.answer is not None and call.answer.is_error else None
        calls.append(ToolCall(name=call.name, arguments=arguments, result=result, error=error))
    spoken = [turn.text for turn in turns if turn.role == "assistant" and turn.text]
    return Observation(
        answer=transcript.answer or (spoken[-1] if spoken else ""),
        tool_calls=tuple(calls),
        turns=len(spoken),
        messages=tuple({"role": turn.role, "content": turn.text} for turn in turns),
        error=transcript.error or None,
    )


def _new_lines(path: Path, mark: FileMark) -> str:
    """The whole lines after the mark, which moves behind them; a line without an end waits."""
    with path.open("rb") as file:
        head = hashlib.blake2b(file.read(256).split(b"\n")[0], digest_size=8).hexdigest()
        if mark.offset and (head != mark.head or file.seek(0, os.SEEK_END) < mark.offset):
            mark.offset, mark.header = 0, ""  # it is another file than that which was read
        mark.head = head
        file.seek(mark.offset)
        data = file.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    mark.offset += end
    return data[:end].decode("utf-8-sig", "replace")


def _spans(value: Mapping[str, Any], line: str) -> Iterator[tuple[str, bool, str]]:
    """Each span of a line: its trace, whether it is the first one, and a line with it alone.

    A line that is no span is of no trace.
    """
    if "resourceSpans" not in value:
        is_span = {"context", "parent_id"} <= value.keys()
        trace = str(value["context"]["trace_id"]) if is_span else ""
        yield trace, not value.get("parent_id"), line
        return
    for resource in value["resourceSpans"]:
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                alone = {**resource, "scopeSpans": [{**scope, "spans": [span]}]}
                encoded = msgspec.json.encode({"resourceSpans": [alone]}).decode()
                yield str(span["traceId"]), not span.get("parentSpanId"), encoded


# From one start to the next: what is known is kept in a file, whole or not at all.


@dataclass(slots=True, kw_only=True)
class WatchState:
    """All that a watch knows, as it is kept in a file."""

    version: int = 1
    watch: Watch = field(default_factory=Watch)
    follower: Follower


def load_state(path: Path, source: str) -> WatchState | None:
    """What an earlier start knew; None if there is none, an error if it is of another source."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=WatchState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is no state of a watch ({error}); remove it to begin anew"
        ) from None
    if state.follower.source != source:
        raise InputError(
            f"{path} belongs to a watch of {state.follower.source}; give this one another `state`"
        )
    return state


def save_state(state: WatchState, path: Path) -> None:
    """Write what is known; a crash leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(msgspec.json.encode(state))
    temporary.replace(path)


def state_path(source: str) -> Path:
    """Where the state of a watch is kept unless somebody says otherwise."""
    name = hashlib.blake2b(os.path.abspath(source).encode(), digest_size=4).hexdigest()  # noqa: PTH100 - of a store's address too
    return Path(".passhat") / f"watch-{name}.json"


def watch(
    source: str | Path,
    *,
    mapping: ColumnMap | None = None,
    format: str | None = None,  # noqa: A002 # the word users know
    grader: str | None = None,
    reference: int | None = None,
    days: float | None = None,
    false_alarms: float = FALSE_ALARMS,
    margin: float = 0.0,
    state: str | Path | None = None,
    seconds: float = 5.0,
    once: bool = False,
    on_status: Callable[[Watch], None] | None = None,
) -> Iterator[WatchEvent]:
    """Follow the trials of a source, and tell when an agent gets worse.

    The first `reference` trials, over at least so many `days` where they have times, are what is
    usual. `margin` is how much worse an agent may get. A `grader`, a function `module:name` as in a
    suite, says of each trace whether it passed; else the trials say so themselves. What is known is
    kept in the file `state` between starts. With `once` it ends with what is there; else it looks
    again after `seconds`.
    """
    from passhat.records.columns import ColumnMap
    from passhat.runner.grading import load_function

    if not 0.0 < false_alarms < 1000.0:
        rule = "must be between 0 and 1,000: how many in 1,000 trials"
        raise ArgumentError("false_alarms", rule, false_alarms)
    if not 0.0 <= margin < 1.0:
        raise ArgumentError("margin", "must be between 0 and 1", margin)
    source, place = str(source), Path(state) if state is not None else state_path(str(source))
    known = load_state(place, source)
    if known is None:
        # A number of trials alone says that days do not matter.
        usual = REFERENCE_DAYS if reference is None else 0.0
        fresh = Watch(
            reference_trials=REFERENCE_TRIALS if reference is None else reference,
            reference_days=usual if days is None else days,
            false_alarms=false_alarms,
            margin=margin,
        )
        known = WatchState(watch=fresh, follower=Follower(source=source, format=format))
    known.follower.grader = grader
    if grader is not None:
        try:
            load_function(grader, Path.cwd())
        except GraderError as error:
            raise InputError(f"{error}; a grader is module:function") from None
    while True:
        for trials in known.follower.poll(mapping or ColumnMap()):
            yield from known.watch.observe(trials)
        for sentence in known.follower.notes():
            yield WatchEvent(kind="note", sentence=sentence)
        if once:
            yield from known.watch.flush()
        save_state(known, place)
        if on_status is not None:
            on_status(known.watch)
        if once:
            return
        time.sleep(seconds)


GAUGES = {
    "passhat_watch_trials": "Trials of an agent that were seen.",
    "passhat_watch_errored": "Trials of an agent that errored.",
    "passhat_watch_reference": "The usual pass rate of an agent, or of a family of its tasks.",
    "passhat_watch_evidence": "How near an alarm is: 1 raises it.",
    "passhat_watch_alarm": "1 while an agent, or a family of its tasks, is worse than usual.",
}
"""What a watch tells a monitoring system, by name."""


def watch_summary(watched: Watch) -> list[str]:
    """How things stand, an agent a sentence: what it passes usually, or how much more it takes."""
    sentences = []
    for system, agent in watched.agents.items():
        name, seen = short(system), plural(agent.trials, "trial")
        if agent.learning:
            wanted = f"{watched.reference_trials:,} trials"
            if agent.first is not None and watched.reference_days:
                wanted += f" over {watched.reference_days:g} days"
            sentences.append(f"{name}: {seen} seen; what is usual takes {wanted}")
        else:
            worse = any(stream.alarmed for _, stream in agent.streams)
            now = "not shown to be as usual again" if worse else "no change shown"
            usual = f"usually {percent(agent.whole.usual)} pass"
            sentences.append(f"{name}: {now} in {seen}; {usual}")
    return sentences


def watch_samples(watched: Watch) -> list[tuple[str, Mapping[str, str], float]]:
    """The numbers of a watch, for a monitoring system."""
    samples: list[tuple[str, Mapping[str, str], float]] = []
    for system, agent in watched.agents.items():
        own = {"system": system}
        samples.append(("passhat_watch_trials", own, float(agent.trials)))
        samples.append(("passhat_watch_errored", own, float(agent.errored)))
        for name, stream in agent.streams if not agent.learning else ():
            labels = {"system": system, "family": name or ""}
            near = stream.detector.evidence / stream.detector.every
            samples.append(("passhat_watch_reference", labels, stream.usual))
            samples.append(("passhat_watch_evidence", labels, 0.0 if stream.alarmed else near))
            samples.append(("passhat_watch_alarm", labels, float(stream.alarmed)))
    return samples
