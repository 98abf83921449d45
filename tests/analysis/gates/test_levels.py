"""Gates on a level of a factor: the verdict is that of the trials at that level alone."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passhat
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError, PasshatError
from passhat.records import Trials
from passhat.records.trial import Outcome

DEMANDS = (
    "pass^3 >= 0.6",
    "every task: pass@1 >= 0.5",
    "tasks[t1].pass^1 >= 0.3",
    {"require": "pass^2 >= 0.5", "scope": "tasks like these"},
    {"require": "pass@1 >= 0.6", "evidence": "sequential"},
    "no_worse_than old by 0.05",
    "no task worse than old",
)


def rows_of(seed, wordings=("",)):
    rng = np.random.default_rng(seed)
    rates = rng.beta(2, 1, (12, 3, len(wordings)))
    return [
        {"task": f"t{t}", "user": user, "wording": wording, "ok": rng.random() < rates[t, u, w]}
        for t in range(12)
        for u, user in enumerate(("kind", "curt", "odd"))
        for w, wording in enumerate(wordings)
        for _ in range(5)
    ]


def read(rows, factor="user", **more):
    frame = pandas.DataFrame(rows).drop(columns=["wording"] * ("wording" not in factor))
    return Trials.from_frame(frame, passed="ok", factor=factor, **more)


def found(verdicts):
    return [(v.status, v.estimate, v.runs, v.tasks, v.steps, v.more_runs) for v in verdicts]


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
def test_a_gate_at_a_level_is_the_same_gate_on_the_trials_at_that_level(demand):
    rows, old = rows_of(1), rows_of(2)
    for user in ("kind", "curt"):
        of_user, of_old = ([row for row in table if row["user"] == user] for table in (rows, old))
        alone = judge(read(of_user), demand, baseline={"old": read(of_old)})
        gate = {"require": demand} if isinstance(demand, str) else demand
        sentence = {**gate, "require": f"{gate['require']} at user={user}"}
        every, before = read(rows), read(old)
        referred = every.with_reference(f"user={user}"), before.with_reference(f"user={user}")
        other = every.with_reference("user=odd"), before.with_reference("user=odd")
        for trials, baseline, said in (
            (every, before, sentence),
            (every, before, {**gate, "at": {"user": user}}),
            (*referred, gate),
            (*referred, sentence),
            (*other, sentence),
        ):
            assert found(judge(trials, said, baseline={"old": baseline})) == found(alone)


@settings(max_examples=10)
@given(st.integers(0, 99), st.sampled_from(["kind", "curt", "odd"]))
def test_a_table_with_a_reference_reports_the_trials_at_it(seed, user):
    rows = rows_of(seed)
    alone = measure(read([row for row in rows if row["user"] == user])).system()
    system = measure(read(rows, reference_level=f"user={user}")).system()
    assert system.metrics == alone.metrics
    (factor,) = system.factors
    assert (factor.judged, factor.levels[0].name) == ((user,), user)


def test_other_factors_stay_at_their_reference_and_all_is_every_level():
    rows = rows_of(3, wordings=("plain", "typos"))
    trials = read(rows, "user,wording", reference_level="user=kind,wording=plain")
    assert len(trials.at_reference()) == 12 * 5
    for words, kept in {
        "user=curt": {("curt", "plain")},
        "wording=typos": {("kind", "typos")},
        "user=all": {(user, "plain") for user in ("kind", "curt", "odd")},
        "user=odd, wording=all": {("odd", "plain"), ("odd", "typos")},
    }.items():
        of_both = [row for row in rows if (row["user"], row["wording"]) in kept]
        assert trials.at_levels(words).to_columns() == read(of_both, "user,wording").to_columns()
    faults = Trials.from_columns(
        task=["a", "a [fault=all]"], base=["a", "a"], at=[["fault=none"], ["fault=all"]],
        passed=[1, 0],
    )  # fmt: skip
    assert faults.at_levels("fault=all").outcome.tolist() == [Outcome.FAILED]


def test_levels_that_are_judged_together_are_named_and_one_is_not():
    trials = read(rows_of(4))
    (verdict,) = judge(trials, "pass^3 >= 0.6")
    (note,) = [note for note in verdict.notes if note.startswith("over all 3 levels of user")]
    assert "(kind, curt, odd): add `at user=kind`" in note
    for gate in ("pass^3 >= 0.6 at user=odd", "pass^3 >= 0.6 at user=all"):
        assert not any("over all" in note for note in judge(trials, gate)[0].notes)
    assert measure(trials).system().factors[0].judged == ("kind", "curt", "odd")


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("user=kid", r"must name a user of these trials \(kind, curt, odd\) \(did you mean kind"),
        ("usr=kind", r"must name a factor of these trials \(user\)"),
        ("user", "must name levels of factors"),
        ("user=", "must name levels of factors"),
        ({"user": ""}, "must name levels of factors"),
    ],
)
def test_levels_that_are_not_there_are_refused_with_those_that_are(at, said):
    with pytest.raises(ArgumentError, match=said):
        judge(read(rows_of(5)), {"require": "pass^3 >= 0.6", "at": at})


def test_a_reference_is_a_level_of_every_factor_that_is_no_sample():
    rows = [{**row, "day": place % 2} for place, row in enumerate(rows_of(6, ("a", "b")))]
    for level, said in {
        "user=kind": "must name one of wording too",
        "user=kind,wording=a,day=1": "each day stands for others like it",
        "user=all,wording=a": "must name a user",
    }.items():
        with pytest.raises(ArgumentError, match=said):
            read(rows, "user,wording,day", reference_level=level)
    trials = read(rows, "user,wording,day", reference_level="user=kind,wording=a")
    assert trials.at_reference().tasks == tuple(f"t{t}" for t in range(12))


def test_a_demand_says_its_levels_in_one_way_and_names_with_at_stay_whole():
    gate = parse_gate({"require": "agent: pass^3 >= 0.8", "at": {"user": "a, b", "fault": "all"}})
    assert (gate.system, gate.at) == ("agent", ("user=a, b", "fault=all"))
    assert parse_gate(gate.require) == gate
    assert parse_gate("tasks[look at x=1].pass^1 >= 0.8").at == ()
    with pytest.raises(ArgumentError, match="must agree with the demand, which says user=b"):
        parse_gate({"require": "pass^3 >= 0.8 at user=b", "at": "user=a"})


def test_files_name_their_reference_whatever_reader_knows_the_factor(tmp_path):
    pandas.DataFrame(rows_of(7)).to_csv(path := tmp_path / "t.csv", index=False)
    terms = {"passed": "ok", "factor": "user"}
    for user in ("kind", "odd"):
        referred = passhat.read_trials(path, **terms, reference_level=f"user={user}")
        level = passhat.gate(passhat.read_trials(path, **terms), "pass^3 >= 0.5", at={"user": user})
        assert found(passhat.gate(referred, "pass^3 >= 0.5")) == found(level)
    pandas.DataFrame(rows_of(8)).replace("kind", "calm").to_csv(tmp_path / "u.csv", index=False)
    lacks = r"must name a user of .*u\.csv \(calm, curt, odd\)"
    with pytest.raises(PasshatError, match=lacks):
        passhat.read_trials(tmp_path / "u.csv", **terms, reference_level="user=kind")
    with pytest.raises(PasshatError, match=r"must name a factor of .*t\.csv"):
        passhat.read_trials(path, passed="ok", reference_level="user=kind")
