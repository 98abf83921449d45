"""Every first screen has the answer first, in 15 lines of 80 columns; all that people read has one
name for one thing."""

import html
import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import (
    compare,
    flaky_tasks,
    parse_gate,
    plan,
    rank,
    render_html,
    render_markdown,
    render_terminal,
    simulate,
    trend,
)
from passhat.analysis.comparing.trends import AgentVerdict, RunDifference, RunVerdict
from passhat.analysis.explaining.explain import explain
from passhat.analysis.gates.gate_plan import plan_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.run_answer import (
    Failure,
    Lift,
    RunAnswer,
    SelectionFloor,
    WorseTask,
)
from passhat.analysis.planning.simulate import SimulationModel, demonstrate
from passhat.analysis.reports.measure import measure
from passhat.history import History
from passhat.journeys.checks import CostRange, RunPlan
from passhat.records import Trials
from passhat.records.labels import Label
from passhat.records.ledger import Artefact, ArtefactList, Row, RunChange, RunList, RunLog
from passhat.records.suite import ToolSelection
from passhat.records.transcript import Call, Check, Transcript, Turn
from passhat.records.trial import Source
from passhat.reporters.answer import SCREEN_LINES as MOST_LINES
from passhat.reporters.answer import SCREEN_WIDTH as WIDTH
from passhat.reporters.answer import Headline, Remark, Table, fitted
from passhat.reporters.formats.text import blocks_text, line_count
from passhat.reporters.formatting import TerminalStyle, display_width
from passhat.stats.estimate import Estimate, Interval, Unavailable

OUTCOMES = {"P": "passed", "F": "failed", "E": "errored"}

RETIRED = {
    "reliability@": "pass^k",
    "pass^1": "pass@1",
    "one try": "pass@1",
    "draws": "trials",
    "settle": "decide",
    "tasks like these": "similar tasks",
    "this suite": "these tasks",
    "cannot be told apart": "tied, no clear difference",
    "depend on": "reliable",
    "further runs": "more trials",
    "systems": "agents",
}
DEMANDS = re.compile(r"every task: pass\^1|Tukey over \d+ systems")
"""What a user wrote, and the names of methods."""

ALSO = re.compile(r"\(pass\^k, also called reliability@k\)|pass\^k \(reliability@k\)|`[^`]*`")
"""The other name of pass^k, told beside it; and what is written in files."""
SPACED_PERCENT = re.compile(r"\d %")


def retired_in(text):
    """The words in a text that were retired: pass^1, but not pass^10."""
    text = DEMANDS.sub("", text)
    return [word for word in RETIRED if re.search(rf"{re.escape(word)}(?!\d)", text)]


def rows(**systems):
    """Trials of systems, each with the outcomes of its tasks as letters."""
    found = [
        (system, task, OUTCOMES[one], "TimeoutError: read timed out" if one == "E" else None)
        for system, by_task in systems.items()
        for task, outcomes in by_task.items()
        for one in outcomes
    ]
    system, task, outcome, error = (list(column) for column in zip(*found, strict=True))
    return Trials.from_columns(system=system, task=task, outcome=outcome, error=error)


GOOD = {f"task-{i:02}": "P" * 60 for i in range(12)}
EARLY = {f"task-{i:02}": "P" * 8 for i in range(5)} | {"task-05": "PPPFPPPP"}
BAD = simulate(tasks=20, runs=10, rate={"agent": 0.8}, seed=3)
OLD = simulate(tasks=20, runs=10, rate={"agent": 0.7}, seed=3)
SOME_ERRORS = simulate(
    tasks=6, runs=10, rate={"agent": 0.7}, world=SimulationModel(error_rate=0.2), seed=2
)
ALL_ERRORED = rows(v2={f"task-{i}": "E" * 10 for i in range(6)})


def agents(count, names=None, **options):
    names = names or [f"agent-{i}" for i in range(count)]
    rates = {name: 0.95 - 0.8 * i / count for i, name in enumerate(names)}
    return simulate(tasks=20, runs=10, rate=rates, seed=1, **options)


def finished(trials, *gates, **options):
    """A run that is over and kept, with its commonest failures."""
    report = measure(trials)
    failed = [
        (system.name, row.name)
        for system in report.systems
        for row in system.tasks
        if row.passed < row.runs
    ]
    reasons = ("expected 'get_time', got 'get_weather' after a long chain of other calls", "no")
    return RunAnswer(
        report=report,
        trials=trials,
        verdicts=judged(trials, *gates) if gates else None,
        failures=tuple(
            Failure(system=system, task=task, reason=reasons[i % 2], trials=2)
            for i, (system, task) in enumerate(failed)
        ),
        nothing_ran=all(trial.outcome.name == "ERRORED" for trial in trials),
        results="73897a73",
        run="73897a73",
    )


def judged(trials, *gates):
    return judge(trials, [parse_gate(gate) for gate in gates])


def nights(count, *names):
    """The runs of so many nights, in the history of a folder; the agents fell at the sixth."""

    def made(folder):
        store = folder / f"{count}-{len(names)}.db"
        with History.open(store) as history:
            for night in range(count):
                run = history.start_run("nightly", started=f"2026-11-{night + 1:02}T03:00:00")
                rates = dict.fromkeys(names, 0.85 if night < 5 else 0.3)
                history.add_trials(run, simulate(tasks=20, runs=10, rate=rates, seed=night))
        return store

    return made


def told(*calls):
    """Trials of two tasks with what was said in each; failing ones call other tools or none."""
    trials = Trials.from_columns(task=["mail"] * 20 + ["time"] * 20, passed=[1, 0] * 20)
    said = {}
    for trial in trials:
        right = trial.outcome.name == "PASSED"
        call = Call(name="send_email" if right else "get_time", arguments='{"city": "Rome"}')
        answer = "Sent." if right else "I have refunded your order."
        whole = Transcript(
            messages=(
                Turn(role="assistant", calls=(call,) if calls else ()),
                Turn(role="assistant", text=answer),
            ),
            checks=(Check(target="answer", score=float(right), message="expected 'Sent.'"),),
        )
        said["system", trial.task, trial.trial] = whole.to_json()
    return trials, said


LONG = [f"openai/gpt-5.{i}-turbo-preview-2026-08-0{i}" for i in (1, 2)]
"""Names of agents as they are."""
ROUNDS = SimulationModel(seeds=10, seed_effect=2.0, error_rate=0.05)


def labelled(*names):
    """Trials of agents, two in five of them read by people who do not say how they chose."""
    trials = simulate(tasks=20, runs=10, rate=dict.fromkeys(names, 0.8), seed=3)
    read = [[Label(passed=i % 3 > 0)] if i % 5 < 2 else [] for i in range(len(trials))]
    columns = {name: [getattr(one, name) for one in trials] for name in ("system", "task", "trial")}
    passed = [one.outcome.name == "PASSED" for one in trials]
    return Trials.from_columns(**columns, passed=passed, human_labels=read)


def floor(selected=20):
    """A floor of a task whose trials chose the tool so often, of 20."""
    demand = ToolSelection(expected_tool="get_weather", min_selection_rate=0.9)
    return SelectionFloor(
        label="weather selection", demand=demand, selected=selected, runs=20, errored=0,
        max_tokens=169, interval=Interval(0.8, 1.0), bound=0.86, confidence=0.95,
    )  # fmt: skip


def lift(number=1, files=2, **fields):
    """An agent against the one without files: it costs half more, and uses them in each trial."""
    difference = Estimate(value=0.25, interval=Interval(0.1, 0.4), confidence=0.95, method="-")
    return Lift(
        system=f"with-{number}", baseline="without",
        **{
            "difference": difference, "passed": ((50, 60), (35, 60)), "tasks": 20,
            "means": {"cost": (0.03, 0.02), "tokens": (3000.0, 2000.0)},
            "used": {f"file-{i}.md": 60 for i in range(files)},
            "worse": (WorseTask(task="t", passed=(1, 3), before=(3, 3), significant=False),),
        } | fields,
    )  # fmt: skip


def stopped(trials, *gates, begun=0, floors=0):
    """A run that its gates stopped, while some more trials had begun."""
    answer = finished(trials, *gates)
    seen = replace(answer.verdicts, each=tuple(
        replace(one, evidence="sequential", runs=one.runs - begun) for one in answer.verdicts
    ))  # fmt: skip
    return replace(answer, verdicts=seen, floors=(floor(),) * floors, late=begun)


def kept_runs(*names):
    """Thirty runs of a history, some unfinished, with tags, commits and branches."""
    rates = {name: 0.5 + i / 10 for i, name in enumerate(names)}
    return RunList(
        tuple(
            Row(
                run=f"{i:08x}", suite="customer-support-refunds", owner=None,
                stopped_early=False, decided=None, dirty=bool(i % 2),
                status="finished" if i % 3 else "stopped", started="2026-11-17T14:06:48",
                commit="1f2e3d4c5b6a", branch="main", tags=["baseline"] * (i == 4),
                systems=len(names), tasks=20, trials=200, passed=120, errored=0, pass_rate=0.6,
                pass_rates=rates,
            )
            for i in range(30)
        ),
        resume="passhat run --resume 00000000",
    )  # fmt: skip


EARLIER = {
    "steady": AgentVerdict(system="agent", k=3, movement="steady", runs_before=9, value=0.5),
    "fell": AgentVerdict(
        system="agent", k=3, movement="fell", runs_before=9, value=0.2,
        before=0.8, after=0.2, since="2367fdfa", since_day="9 Nov", interval=Interval(-0.7, -0.5),
    ),
}  # fmt: skip

SIX = agents(3)


def kept_files(trials, each, task="add"):
    """A list of the files of so many trials."""
    keys = [("fixer", task, n) for n in range(1, trials + 1)]
    files = [
        Artefact(key=key, name=f"files/plot {i}.png", digest="0" * 64, size=33_333)
        for key in keys
        for i in range(each)
    ]
    return ArtefactList(run="73897a73", files=tuple(files))


BOOK = {
    "report, not reliable": lambda: measure(BAD),
    "report, reliable": lambda: measure(rows(agent=GOOD)),
    "report, too early": lambda: measure(rows(agent=EARLY)),
    "report, one trial": lambda: measure(rows(agent={f"t{i}": "PPF"[i % 3] for i in range(9)})),
    "report, some errored": lambda: measure(SOME_ERRORS, bars=0.8),
    "report, all errored": lambda: measure(ALL_ERRORED),
    "report, 2 agents": lambda: measure(agents(2)),
    "report, 3 agents": lambda: measure(agents(3)),
    "report, 8 agents": lambda: measure(agents(8)),
    "report, 16 agents with errors": lambda: measure(
        agents(16, world=SimulationModel(error_rate=0.05))
    ),
    "report, 6 agents with long names and errors": lambda: measure(
        agents(6, world=ROUNDS, names=[f"{LONG[0]}-{i}" for i in range(6)])
    ),
    "report, labels": lambda: measure(labelled("agent")),
    "report, labels, 2 agents": lambda: measure(labelled(*LONG)),
    "gate, PASS": lambda: judged(BAD, "pass^3 >= 0.1"),
    "gate, FAIL": lambda: judged(OLD, "pass^3 >= 0.9"),
    "gate, UNDECIDED": lambda: judged(BAD, "pass^3 >= 0.55"),
    "gate, some errored": lambda: judged(SOME_ERRORS, "pass^3 >= 0.9"),
    "gate, every task": lambda: judged(BAD, "every task: pass^1 >= 0.5"),
    "gate, 6": lambda: judged(SIX, "pass^3 >= 0.5", "pass@1 >= 0.4"),
    "gate, 12 against a baseline": lambda: judge(
        agents(6),
        [parse_gate("no_worse_than before by 0.05"), parse_gate("no task worse than before")],
        baseline={"before": agents(6).where(system="agent-1")},
    ),
    "gate, against another agent": lambda: judged(
        agents(2), "no_worse_than agent-0 by 0.02", "no task worse than agent-0"
    ),
    "run, one gate": lambda: finished(BAD, "pass^3 >= 0.9"),
    "run, gates": lambda: finished(BAD, "pass@1 >= 0.5", "pass^3 >= 0.9"),
    "run, gates, 2 agents": lambda: finished(agents(2), "pass@1 >= 0.5", "pass^3 >= 0.7"),
    "run, without gates": lambda: finished(BAD),
    "run, without gates, 3 agents": lambda: finished(agents(3)),
    "run, without gates, some errored": lambda: finished(SOME_ERRORS),
    "run, gate, some errored": lambda: finished(SOME_ERRORS, "pass^3 >= 0.5"),
    "run, until decided": lambda: stopped(BAD, "pass^3 >= 0.9", begun=7),
    "run, until decided, with a floor": lambda: stopped(
        BAD, "pass@1 >= 0.5", "pass^3 >= 0.9", begun=7, floors=1
    ),
    "run, until decided, 2 agents": lambda: stopped(
        agents(2), "pass@1 >= 0.5", "pass^3 >= 0.7", begun=7, floors=2
    ),
    "run, all errored": lambda: finished(ALL_ERRORED),
    "compare, decided": lambda: compare(
        *(simulate(tasks=20, runs=20, rate={n: r}, seed=3) for n, r in (("new", 0.9), ("old", 0.5)))
    ),
    "compare, undecided": lambda: compare(agents(2).where(system="agent-0"), BAD),
    "compare, errors in some rounds": lambda: compare(agents(2, world=ROUNDS)),
    "compare, labels": lambda: compare(labelled("new", "old")),
    "compare, long names": lambda: compare(agents(2, world=ROUNDS, names=LONG)),
    "rank, 3": lambda: rank(agents(3)),
    "rank, 8": lambda: rank(agents(8), by="pass^5"),
    "rank, 16": lambda: rank(agents(16)),
    "plan": lambda: plan(tasks=50, half_width=0.05),
    "plan, gate": lambda: plan_gate(parse_gate("pass^3 >= 0.8"), tasks=20),
    "dry run": lambda: RunPlan(
        suite="weather",
        size="30 tasks, 2 agents, 600 trials",
        mode="live",
        tasks=30,
        systems=("a", "b"),
        trials=600,
        trials_by_task={f"task {i}": 10 for i in range(30)},
        sequential=False,
        concurrency=8,
        models=("claude-opus-5",),
        servers={"w": "./server"},
        gates=("pass^3 >= 0.8",),
        budget={"max_cost": 5.0},
        cost=CostRange(low=0.0, high=None, how="passhat cannot see what this agent spends"),
    ),
    "history, 30 runs": lambda: kept_runs("agent"),
    "history, 30 runs of 3 agents": lambda: kept_runs("agent", *LONG),
    "history log": lambda: RunLog(
        changes=tuple(
            RunChange(
                run=f"{i:08x}", at="2026-11-17T14:06:48", person="ann", action="tag", text="x"
            )
            for i in range(20)
        )
    ),
    "history log, long notes": lambda: RunLog(
        changes=tuple(
            RunChange(
                run=f"{i:08x}",
                at="2026-11-17T14:06:48",
                person="ann",
                action="note",
                text="x " * 90,
            )
            for i in range(20)
        )
    ),
    "artefacts, 5": lambda: kept_files(1, 5),
    "artefacts, 36": lambda: kept_files(12, 3),
    "artefacts, long names": lambda: kept_files(40, 30, task="a task of many words " * 5),
    "demo": demonstrate,
    "why, calls recorded": lambda: explain(*told("calls"), shuffles=199),
    "why, answers only": lambda: explain(*told(), shuffles=199),
    "why, no transcripts": lambda: explain(BAD, {}),
}
HISTORY = {
    "trend, 9 runs with a fall": (trend, nights(9, "agent")),
    "trend, 9 runs of 3 agents": (trend, nights(9, "agent", "other", "third")),
    "trend, no change": (trend, nights(4, "agent")),
    "trend, one run": (trend, nights(1, "agent")),
    "flaky": (flaky_tasks, nights(9, "agent")),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answer of each screen of the book."""
    folder = tmp_path_factory.mktemp("nights")
    found = {name: made() for name, made in BOOK.items()}
    for name, (asked, kept) in HISTORY.items():
        (folder / name).mkdir()
        found[name] = asked(store=kept(folder / name))
    return found


@pytest.fixture(scope="module")
def screens(answers):
    """Each screen of the book as a terminal of 80 columns shows it."""
    ink = TerminalStyle(width=WIDTH)
    return {name: render_terminal(one, ink, results="old.jsonl") for name, one in answers.items()}


pytestmark = pytest.mark.usefixtures("few_suites_drawn")


@pytest.mark.parametrize("name", [*BOOK, *HISTORY])
def test_a_screen_of_the_book_is_short_narrow_and_in_its_words(screens, name):
    check_screen(screens[name])


def check_screen(text):
    """15 lines of 80 columns, but for those that others parse, in our words."""
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES, text
    for line in lines:
        assert line.startswith("tool-selection floor") or display_width(line) <= WIDTH, text
    said = " ".join(text.split())
    assert retired_in(said) == []
    assert not SPACED_PERCENT.search(said)


CONDITIONS = ("plain", "errors", "rounds", "factors", "missing")


def situation(agents, condition, *, long):
    """Trials of so many agents under a condition; with `long`, names of agents and tasks are."""
    names = [f"anthropic/claude-sonnet-4.5-{i:02}" if long else f"agent-{i}" for i in range(agents)]
    worlds = {"errors": SimulationModel(error_rate=0.1), "rounds": ROUNDS}
    rates = {name: 0.95 - 0.6 * i / max(agents, 2) for i, name in enumerate(names)}
    trials = simulate(tasks=12, runs=8, rate=rates, seed=1, world=worlds.get(condition))
    before = "a customer asks for a refund of an order that was lost on its way: " if long else ""
    kept = [
        one
        for i, one in enumerate(trials)
        if condition != "missing"
        or (i * i % 7 > 1 and (one.system, one.task) != (names[-1], "task-03"))
    ]
    at = ["user=kind", "user=an impatient customer"]
    columns = {
        "system": [one.system for one in kept],
        "task": [before + one.task for one in kept],
        "outcome": [one.outcome.name.lower() for one in kept],
        "error": [one.error for one in kept],
    }
    if condition == "factors":
        columns["at"] = [[at[i % 2]] for i in range(len(kept))]
        fails = [i % 4 == 1 for i in range(len(kept))]
        columns["outcome"] = [
            "failed" if fail else outcome
            for fail, outcome in zip(fails, columns["outcome"], strict=True)
        ]
    if condition == "rounds":
        columns |= {name: [getattr(one, name) for one in kept] for name in ("trial", "seed")}
    return Trials.from_columns(**columns)


def screens_of(trials):
    """Every answer about some trials, without gates, with one and with several."""
    yield measure(trials)
    yield finished(trials)
    for demands in (
        ["pass^3 >= 0.8"],
        ["pass@1 >= 0.7", "pass^3 >= 0.8", "every task: pass@1 >= 0.5"],
    ):
        yield judged(trials, *demands)
        yield finished(trials, *demands)
        yield stopped(trials, *demands[:2], begun=3)
    if len(trials.systems) == 2:
        yield compare(trials)
        yield compare(trials, by="pass^5")
    elif len(trials.systems) > 2:
        yield rank(trials)
        yield rank(trials, by="pass^3")
    else:
        yield plan(trials)
        yield plan(trials, k=3, difference=0.1)
        yield explain(trials, {})


FULLEST = [(6, "missing", True)]
"""Of all situations that with most to say; the others are slow only because they are many."""


@pytest.mark.parametrize(
    ("agents", "condition", "long"),
    [
        pytest.param(*one, marks=() if one in FULLEST else pytest.mark.slow("39 more situations"))
        for one in product((1, 2, 3, 6), CONDITIONS, (False, True))
    ],
)
def test_every_situation_fits_a_screen(agents, condition, long):
    for answer in screens_of(situation(agents, condition, long=long)):
        for results in ("results.csv", "evals/2026-11/leaderboard-of-the-airline-suite.csv"):
            check_screen(render_terminal(answer, TerminalStyle(width=WIDTH), results=results))


@pytest.mark.parametrize(
    "names", [pytest.param(("agent",), marks=pytest.mark.slow("the same with one agent")), LONG]
)
@pytest.mark.parametrize("gates", [0, 1, 12])
def test_a_run_of_any_shape_fits_a_screen(names, gates):
    trials = simulate(tasks=8, runs=6, rate=dict.fromkeys(names, 0.8), seed=3)
    demands = [f"pass@1 >= 0.{i % 9 + 1}" for i in range(gates)]
    ended = finished(trials, *demands)
    until = stopped(trials, *demands, begun=3) if gates else ended
    floors = [(), (floor(),), (floor(), floor(3)) * 2, (floor(), floor(3)) * 10]
    lifted = [(), (lift(),), (lift(files=20),), (lift(1), lift(2)) * 4][: 4 if gates else 1]
    for answer, many, lifts, moved in product((ended, until), floors, lifted, EARLIER):
        verdict = RunVerdict(run="73897a73", agents=(EARLIER[moved],))
        shaped = replace(answer, floors=many, lifts=lifts)
        text = render_terminal(shaped, TerminalStyle(width=WIDTH), verdict=verdict)
        assert len(text.splitlines()) <= MOST_LINES, text
        # What fails is never hidden behind what passes.
        failed = [one for one in many if not one.passed]
        assert not failed or "FAIL] weather" in text or f"{len(failed)} of them FAIL: -v" in text
        assert text.count("[PASS] weather") == 0 or text.count("FAIL] weather") == len(failed)


@pytest.mark.parametrize("gates", [1, 2])
@pytest.mark.parametrize("moved", EARLIER)
def test_tasks_that_failed_stay_listed_whatever_is_said_of_earlier_runs(gates, moved):
    trials = simulate(tasks=8, runs=6, rate={"v1": 0.5, "v2": 0.6}, seed=3)
    demands = ["pass^3 >= 0.4", "pass@1 >= 0.6"][:gates]
    alone = RunDifference(
        run="0e92c6a6", started="2026-11-07T09:00:00.000+00:00", baseline=False,
        interval=Interval(-0.3, 0.2), k=3,
    )  # fmt: skip
    two = tuple(replace(EARLIER[moved], system=name, alone=alone) for name in ("v1", "v2"))
    verdict = RunVerdict(run="73897a73", agents=two)
    text = render_terminal(finished(trials, *demands), TerminalStyle(width=WIDTH), verdict=verdict)
    assert len(re.findall(r"^ +\d/6  v[12] +task", text, re.MULTILINE)) >= 3, text
    assert len(text.splitlines()) <= MOST_LINES, text
    assert text.count("Against the 9 runs before: ") == 1, text


def shared(tasks):
    """Two agents, each on ten tasks, of which so many are the same."""
    ran = [("a", range(10)), ("b", range(10 - tasks, 20 - tasks))]
    rows = [
        (name, f"t{task}", run % 3 > 0) for name, own in ran for task in own for run in range(6)
    ]
    names, named, passed = (list(column) for column in zip(*rows, strict=True))
    return Trials.from_columns(system=names, task=named, passed=passed)


@pytest.mark.parametrize("tasks", [0, 1, 2, 10])
def test_a_report_of_several_agents_ends_with_a_command_whatever_they_share(tasks):
    text = render_terminal(measure(shared(tasks)), TerminalStyle(width=WIDTH), results="old.jsonl")
    last = text.rstrip().splitlines()[-1]
    assert re.match(r"(Two at a time: passhat compare|Why it fails: passhat why) old.jsonl", last)


def test_a_gain_that_is_not_known_is_not_a_dash_with_a_unit():
    unknown = lift(difference=Unavailable("no shared task"), means={"tokens": (3.0, 0.0)})
    for lifts in ((unknown,), (unknown, unknown)):
        text = render_terminal(replace(finished(BAD, "pass@1 >= 0.5"), lifts=lifts))
        assert "not known" in text
        assert not re.search(r"- points|nan|inf%", text)


@given(
    notes=st.lists(st.text("ab -", min_size=1, max_size=200), max_size=12),
    cells=st.lists(st.text("ab ", max_size=200), min_size=1, max_size=3),
    wide=st.integers(1, 9),
)
def test_notes_are_left_out_until_what_is_printed_fits(notes, cells, wide):
    header = ("", *(f"column {i} " * 3 for i in range(wide)))
    rows = tuple((cell, *["x"] * wide) for cell in cells)
    blocks = [
        Headline("The answer."),
        Table(header=header, rows=rows, left=(0,), wrapped=(0,) if wide == 1 else ()),
        *(Remark(f"x{note}", apart=True, note=True) for note in notes),
    ]
    alone = len(blocks_text(blocks[:2]).splitlines()) + bool(notes)
    assert len(blocks_text(fitted(blocks, line_count)).splitlines()) <= max(MOST_LINES, alone)


@pytest.mark.parametrize("moved", EARLIER)
@pytest.mark.parametrize("name", [name for name in BOOK if name.startswith(("run", "report"))])
def test_what_is_said_of_earlier_runs_and_of_columns_finds_room_on_a_screen(answers, name, moved):
    answer = answers[name]
    if name.startswith("report"):
        column = ("task", 'column "question"')
        source = Source(name="a.csv", format="CSV table", sha256="", read_as=(column,))
        answer = replace(answer, provenance=replace(answer.provenance, sources=(source,)))
    verdict = RunVerdict(run="73897a73", agents=(EARLIER[moved],))
    text = render_terminal(answer, TerminalStyle(width=WIDTH), results="old.jsonl", verdict=verdict)
    assert len(text.splitlines()) <= MOST_LINES, text
    told = "Run 73897a73. " in text
    assert ('task = column "question".' in text) == name.startswith("report")
    assert told or (moved == "steady" and re.search(r"\d notes? more: -v\n", text)), text


@pytest.mark.parametrize("name", [name for name in HISTORY if name.startswith("trend")])
def test_a_trend_has_room_for_what_is_said_of_its_newest_run(answers, name):
    agents = tuple(
        replace(EARLIER["fell"], system=f"agent-{i}", runs_before=9 + i) for i in range(4)
    )
    verdict = RunVerdict(run="73897a73", agents=agents)
    text = render_terminal(answers[name], TerminalStyle(width=WIDTH), verdict=verdict)
    said = re.search(r"Run 73897a73. agent-[01]: Against", text)
    assert said, text
    assert ("agent-0: Against" in text) != text.startswith(EARLIER["fell"].answer), text
    assert len(text.splitlines()) <= MOST_LINES, text


ANSWERS = {
    "run": r"(PASS|FAIL|UNDECIDED|ERROR) ",
    "gate": r"(PASS|FAIL|UNDECIDED|ERROR) ",
    "report": r".*(reliable|errored)",
    "compare": r".* is (better|worse) than|No clear difference: ",
    "rank": r".*(tied for first|leads alone|has the highest)",
    "why": r"Cannot say why|.* \d+ (of \d+ )?failing trials ",
    "plan": r"Run each of the \d+ tasks \d+ times|.* takes [\d,]+ trials",
    "trend": r".*(fell|rose) on|No change in|One run so far",
    "flaky": r"\d+ of \d+ tasks are flaky over \d+ runs\.",
    "dry run": r"Would run \d+ trials",
}
"""How line 1 of each command answers the question in its name."""


def test_rule_1_line_1_answers_the_question_in_the_commands_name(screens):
    for name, text in screens.items():
        if answer := ANSWERS.get(name.partition(",")[0]):
            first = " ".join(text.partition("\n\n")[0].split())
            assert re.match(answer, first), (name, text)
    for word in ("PASS", "FAIL", "UNDECIDED"):
        assert screens[f"gate, {word}"].startswith(word)


def test_rule_2_a_screen_has_at_most_15_lines_and_ends_with_at_most_two_commands(screens):
    for name, text in screens.items():
        assert len(text.splitlines()) <= MOST_LINES, (name, text)
        last = text.rstrip().splitlines()[-1]
        assert last.count(": passhat ") <= 2, (name, last)


def test_rule_3_a_number_has_one_name_and_one_interval_on_a_screen(screens):
    for name, text in screens.items():
        assert not re.search(r"pass\^1(?!\d)|reliability@", DEMANDS.sub("", text)), (name, text)
        for row in re.findall(r"^  (?:.* )?(?:PASS|FAIL|UNDECIDED)  .*$", text, re.MULTILINE):
            assert "[" not in row, (name, row)
        if name.startswith("gate"):
            assert " CI of" not in text, (name, text)


def test_rule_4_facts_stand_where_labels_would(screens):
    for name, text in screens.items():
        assert not re.search(r"\b(solid|broken)\b", text) or name == "demo", (name, text)
        for row in re.findall(r"^ +\d+/\d+  .*$", text, re.MULTILINE):
            assert not re.search(r"\bundecided\b", row), (name, row)


def test_rule_5_a_caveat_is_said_once_on_a_screen(screens):
    for name, text in screens.items():
        flat = " ".join(text.split())
        for caveat in (
            "95% confidence", "95% CI", "similar tasks: others", "One-sided bounds", "Errors: ",
            "Wrong at most", "counted as failed", "count as failed", "more trials would decide",
        ):  # fmt: skip
            assert flat.count(caveat) <= 1 + (caveat == "95% CI" and name == "demo"), (name, caveat)


def test_rule_7_percentages_are_closed_up_and_thousands_have_commas(screens):
    for name, text in screens.items():
        assert not re.search(r"\d %", text), (name, text)
        counts = re.findall(r"(?<![\w.,-])(\d{4,})(?= (?:more )?(?:trials|tasks|files)\b)", text)
        assert counts == [], (name, counts)
        for cell in re.findall(r"(?<![\w.])(\d+\.\d+)%", text):
            assert len(cell.partition(".")[2]) == 1 or float(cell) < 0.1, (name, cell)


def test_fault_1_the_levels_of_a_trend_are_the_means_of_its_rows(screens):
    text = screens["trend, 9 runs with a fall"]
    rows = [float(cell) for cell in re.findall(r" (\d+\.\d)%", text)]
    before, since = map(int, re.search(r"(\d+)% before, (\d+)% since", text).groups())
    assert (before, since) == (round(sum(rows[:5]) / 5), round(sum(rows[5:]) / 4))


def test_fault_2_where_no_change_is_shown_the_runs_that_one_takes_are_said(screens):
    told = " ".join(screens["trend, no change"].split())
    assert re.search(r"A move of \d+ points .* show (after|in) \d+ more runs", told)


def test_fault_4_flaky_has_one_meaning_on_a_screen(screens):
    text = screens["flaky"]
    flaky, total = map(int, re.match(r"(\d+) of (\d+) tasks are flaky", text).groups())
    rows = [tuple(map(int, row)) for row in re.findall(r"^ +(\d+)/(\d+)  ", text, re.MULTILINE)]
    more = re.search(r"^(\d+) more tasks: -v$", text, re.MULTILINE)
    assert len(rows) + int(more[1]) == total
    assert sum(0 < passed < runs for passed, runs in rows) + int(more[1]) == flaky
    assert "undecided" not in text


def test_fault_5_where_every_trial_errored_nothing_is_judged(screens):
    text = screens["run, all errored"]
    assert text.startswith("ERROR  All 60 trials of v2 errored: there is nothing to judge.")
    assert not re.search(r"FAIL|at most|pass[@^]", text)


def test_fault_6_a_run_without_gates_says_in_line_1_why_it_fails(screens):
    for name, text in screens.items():
        if name.startswith("run, without gates"):
            line = r"FAIL  \d+ of \d+ trials failed; without a gate every trial must pass\.\n"
            assert re.match(line, text), (name, text)


def test_fault_7_the_arrow_of_a_plan_is_on_the_row_of_its_headline(screens):
    each = re.match(r"Run each of the 50 tasks (\d+) times", screens["plan"])[1]
    (arrow,) = re.findall(r"^ +(\d+) .*<-", screens["plan"], re.MULTILINE)
    assert arrow == each


@pytest.mark.parametrize("name", [*BOOK, *HISTORY])
def test_a_screen_is_the_same_in_colour(answers, screens, name):
    ink = TerminalStyle(width=WIDTH, color=True)
    coloured = render_terminal(answers[name], ink, results="old.jsonl")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert "\n".join(line.rstrip() for line in plain.split("\n")) == screens[name]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if place % 3 == 0 else pytest.mark.slow("more pages alike"))
        for place, name in enumerate([*BOOK, *HISTORY])
    ],
)
def test_every_number_in_full_and_every_page_has_the_words_of_the_screens(answers, name):
    page = render_html(answers[name], results="old.jsonl")
    page = re.sub(
        r"<(style|script|details class=\"words\").*?</(style|script|details)>", "", page, flags=re.S
    )
    titles = " ".join(re.findall(r'(?:title|aria-label)="([^"]*)"', page))
    texts = {
        "-v": render_terminal(answers[name], TerminalStyle(width=WIDTH), verbose=True),
        "markdown": render_markdown(answers[name], verbose=True).replace("\\", ""),
        "page": f"{titles} {html.unescape(re.sub(r'<[^>]*>', ' ', page))}",
    }
    for where, text in texts.items():
        assert retired_in(ALSO.sub("", " ".join(text.split()))) == [], f"{name}, {where}"


def test_gates_say_that_their_bounds_are_one_sided_where_a_comparison_has_two_sides():
    new, old = BAD, OLD
    (verdict, _) = found = judge(
        old,
        [parse_gate("no_worse_than before by 0.02"), parse_gate("pass@1 >= 0.5")],
        baseline={"before": new},
    )
    assert "One-sided bounds at 95% confidence; a CI has two sides." in render_terminal(found)
    both = compare(old, new).differences["mean_score"].this_suite.interval
    assert both.low < verdict.estimate.interval.low
    assert verdict.estimate.interval.high < both.high


def test_a_run_that_its_gates_stopped_says_how_many_trials_they_judged():
    two = render_terminal(stopped(BAD, "pass@1 >= 0.5", "pass^3 >= 0.9", begun=7))
    assert "(agent, 193 trials judged; 7 more had begun)\n" in two
    one = render_terminal(stopped(BAD, "pass^3 >= 0.9", begun=7))
    assert re.match(r"FAIL  pass\^3 >= 0.9 after 193 trials.*\n +7 more had begun\.\n", one)
    for text in (one, two):
        table = text.partition("passed  task")[0]
        assert "%" not in re.sub(r"Wrong at most 5%|>= [\d.]+", "", table)
        assert text.count("judged") + text.count("after 193") >= 1


def test_one_number_has_one_name_on_the_page_of_a_ranking_and_in_the_sentence_of_a_gate():
    page = html.unescape(re.sub(r"<[^>]+>", " ", render_html(rank(agents(3)))))
    assert "the highest pass@1, agent-0" in page
    assert "mean score" not in page
    (verdict,) = judge(BAD, [parse_gate("no_worse_than main by 0.05")], baseline={"main": OLD})
    assert " pass@1 changed by " in verdict.sentence


def test_what_the_words_of_a_report_mean_is_said_once_for_all_its_agents():
    text = " ".join(render_terminal(measure(agents(2)), verbose=True).split())
    assert text.count("A task gets the label whose chance") == 1
    assert text.count("Luck is the share") == 1


def test_a_run_that_passed_without_gates_opens_as_a_report_does():
    trials = rows(agent=GOOD)
    assert render_terminal(finished(trials)).startswith("agent is reliable: all 720 trials passed;")
    cut = replace(finished(trials), undone="3 of 723 trials were left undone")
    assert "\n3 of 723 trials were left undone.\n" in render_terminal(cut)
