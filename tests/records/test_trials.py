"""Laws of the table of trials: what goes in comes out, whole, in part and joined."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.records import FEATURES, Categorical, Outcome, Source, Trial, Trials

WORDS = st.lists(st.sampled_from(["x", "y", "a b"]), max_size=2, unique=True).map(tuple)
AMOUNT = st.none() | st.floats(0, 1e9)


@st.composite
def any_trial(draw):
    outcome = draw(st.sampled_from(Outcome))
    score = None if outcome is Outcome.ERRORED else draw(st.floats(0, 1))
    return Trial(
        system=draw(st.sampled_from(["a", "b"])),
        task=draw(st.sampled_from(["t1", "t2", "t3"])),
        trial=draw(st.integers(0, 3) | st.integers(2**62, 2**62 + 3)),
        outcome=outcome,
        score=score,
        seed=draw(st.none() | st.integers(1 - 2**63, 2**63 - 1)),
        level=draw(st.sampled_from([None, "task", "system"])),
        tags=draw(WORDS),
        tools=draw(WORDS),
        error=draw(st.sampled_from([None, "boom"])),
        started=draw(st.sampled_from([None, "2026-01-01"])),
        **draw(st.dictionaries(st.sampled_from(FEATURES), AMOUNT, max_size=2)),
    )


TRIALS = st.lists(any_trial(), max_size=8)

few = settings(max_examples=40)


@few
@given(TRIALS)
def test_trials_come_out_of_a_table_as_they_went_in(trials):
    assert list(Trials.from_records(trials, duplicates=None)) == trials


@few
@given(TRIALS)
def test_columns_make_the_same_table_again(trials):
    table = Trials.from_records(trials, duplicates=None)
    assert list(Trials.from_columns(table.to_columns(), duplicates=None)) == trials


@few
@given(st.lists(st.integers(1 - 2**63, 2**63 - 1), max_size=5))
def test_whole_numbers_are_kept_to_the_last_bit_whatever_holds_them(numbers):
    given = [numbers, tuple(numbers), np.array(numbers, dtype=np.int64), [str(n) for n in numbers]]
    given += [np.array(numbers, dtype=object), [np.int64(n) for n in numbers]]
    for column in given:
        rows = {"task": ["a"] * len(numbers), "passed": [1] * len(numbers)}
        table = Trials.from_columns(rows, trial=column, seed=column, duplicates=None)
        assert table.trial.tolist() == table.seed.tolist() == numbers
    beside_a_float = Trials.from_columns(
        task=["a"] * 3, passed=[1] * 3, trial=[2**60 + 1, 2.0, "3"]
    )
    assert beside_a_float.trial.tolist() == [2**60 + 1, 2, 3]


@few
@given(st.lists(st.none() | st.integers(1 - 2**63, 2**63 - 1), min_size=1, max_size=5))
def test_a_seed_is_missing_only_where_none_is_given(seeds):
    size = {"task": ["a"] * len(seeds), "passed": [1] * len(seeds)}
    plain, other = Trials.from_columns(size), Trials.from_columns(size, seed=seeds)
    assert other.seeded.tolist() == [seed is not None for seed in seeds]
    joined = Trials.concat([plain, other], duplicates="keep")
    assert joined.to_columns()["seed"] == [None] * len(seeds) + seeds
    assert joined.seeded.sum() == other.seeded.sum()
    assert not plain.seeded.any()


@few
@given(st.lists(TRIALS, max_size=4))
def test_joined_tables_hold_the_rows_of_all_in_order(parts):
    tables = [
        Trials.from_records(
            part, duplicates=None, sources=(Source(name=str(i), format="f", sha256=""),)
        )
        for i, part in enumerate(parts)
    ]
    joined = Trials.concat(tables, duplicates=None)
    assert list(joined) == [trial for part in parts for trial in part]
    assert [source.name for source in joined.sources] == [str(i) for i in range(len(parts))]


@few
@given(TRIALS, st.data())
def test_taking_rows_is_indexing_the_list(trials, data):
    rows = data.draw(st.lists(st.integers(0, max(len(trials) - 1, 0)), max_size=8))
    rows = rows if trials else []
    table = Trials.from_records(trials, duplicates=None).take(np.array(rows, dtype=np.intp))
    assert list(table) == [trials[row] for row in rows]
    assert set(table.tasks) == {trials[row].task for row in rows}


@few
@given(TRIALS)
def test_slices_are_filters(trials):
    table = Trials.from_records(trials, duplicates=None)
    for system in table.systems:
        assert list(table.where(system=system)) == [t for t in trials if t.system == system]
    for task, tag in itertools.product(table.tasks, table.words("tags")):
        both = table.where(task=task, tag=tag)
        assert list(both) == [t for t in trials if t.task == task and tag in t.tags]
    for level in () if table.level is None else table.level.names:
        assert list(table.where(level=level)) == [t for t in trials if t.level == level]
    assert table.words("tools") == tuple(sorted({word for t in trials for word in t.tools}))


@pytest.mark.parametrize(
    "asked", [{"system": "systme"}, {"task": "b"}, {"tag": "x"}, {"level": "l"}]
)
def test_a_slice_by_a_name_that_no_trial_has_is_an_error(asked):
    table = Trials.from_columns(system=["system"], task=["a"], passed=[True])
    said = r"(system|tag|level) must be one of .* got '|^no task is called 'b': there is a$"
    with pytest.raises(ArgumentError, match=said):
        table.where(**asked)


@few
@given(TRIALS)
def test_duplicates_are_keys_counted_more_than_once(trials):
    keys = [(t.system, t.task, t.trial) for t in trials]
    table = Trials.from_records(trials, duplicates=None)
    assert table.duplicates() == sorted({key for key in keys if keys.count(key) > 1})
    last = dict(zip(keys, trials, strict=True))
    kept = list(table.take(table.last_of_each()))
    assert sorted(kept, key=repr) == sorted(last.values(), key=repr)


@few
@given(TRIALS)
def test_renumbering_counts_the_rows_of_a_system_and_task(trials):
    table = Trials.from_records(trials, duplicates=None).renumbered()
    seen = {}
    for trial, old in zip(table, trials, strict=True):
        assert trial.trial == seen.setdefault((old.system, old.task), 0)
        seen[old.system, old.task] += 1
    assert not table.duplicates()


@few
@given(TRIALS)
def test_a_tally_counts_what_a_loop_would(trials):
    table = Trials.from_records(trials, duplicates=None)
    for system in table.systems:
        tally = table.tally(system)
        own = [trial for trial in trials if trial.system == system]
        assert tally.trials == len(own)
        for index, task in enumerate(tally.tasks):
            rows = [trial for trial in own if trial.task == task]
            done = [trial.score for trial in rows if trial.score is not None]
            assert tally.passed[index] == sum(t.outcome is Outcome.PASSED for t in rows)
            assert tally.errored[index] == sum(t.outcome is Outcome.ERRORED for t in rows)
            assert tally.runs()[index] == len(rows)
            assert tally.runs("exclude")[index] == len(done)
            assert tally.score_total[index] == pytest.approx(sum(done))
            assert tally.score_squares[index] == pytest.approx(sum(s * s for s in done))
            for name, sums in tally.features.items():
                for outcome in Outcome:
                    values = [getattr(t, name) for t in rows if t.outcome is outcome]
                    known = [value for value in values if value is not None]
                    assert sums.count[outcome, index] == len(known)
                    assert sums.total[outcome, index] == pytest.approx(sum(known))
                    assert sums.squares[outcome, index] == pytest.approx(sum(v * v for v in known))


def test_trials_are_numbered_as_they_come_where_no_number_is_given():
    table = Trials.from_columns(task=["a", "b", "a"], system=["x", "x", "x"], passed=[1, 1, 0])
    assert table.trial.tolist() == [0, 0, 1]


def test_a_score_of_one_passes_where_nothing_else_says_so():
    assert Trials.from_columns(task=["a"] * 2, score=[1, 0.99]).outcome.tolist() == [1, 0]


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize(
    ("told", "passed"), [("passed", True), ("outcome", "passed"), ("score", 1.0)]
)
def test_a_missing_outcome_is_an_error_of_its_trial_only_where_the_error_is_named(
    told, passed, missing
):
    columns = {"task": ["a"] * 2, told: [passed, missing]}
    named = Trials.from_columns(columns, error=[None, "timeout"])
    assert named.outcome.tolist() == [Outcome.PASSED, Outcome.ERRORED]
    rule = f"^{told} must say how each trial ended, or error what broke it, and row 1 does not"
    for errors in ({}, {"error": ["timeout", None]}, {"error": [None, ""]}):
        with pytest.raises(ArgumentError, match=rule):
            Trials.from_columns(columns, **errors)


@few
@given(TRIALS)
def test_a_trial_occurs_once_unless_the_caller_says_what_a_second_one_is(trials):
    keys = [(trial.system, trial.task, trial.trial) for trial in trials]
    last = [trial for at, trial in enumerate(trials) if keys[at] not in keys[at + 1 :]]
    assert list(Trials.from_records(trials, duplicates="last")) == last
    kept = Trials.from_records(trials, duplicates="keep")
    assert [trial.outcome for trial in kept] == [trial.outcome for trial in trials]
    assert kept.duplicates() == []
    by_seed = {(*key, trial.seed) for key, trial in zip(keys, trials, strict=True)}
    if len(last) == len(trials):
        assert list(Trials.from_records(trials)) == list(kept) == trials
    elif len(by_seed) == len(trials) and None not in {trial.seed for trial in trials}:
        assert list(Trials.from_records(trials)) == list(kept)  # numbered anew at each seed
    else:
        with pytest.raises(ArgumentError, match=r"^trial must number .* occur more often, got "):
            Trials.from_records(trials)


def test_trials_that_occur_twice_are_listed():
    columns = {"task": ["a", "a", "b", "b"], "trial": [1, 1, 2, 2], "passed": [1, 0, 1, 1]}
    listed = "2 occur more often, got 'system / a / trial 1', 'system / b / trial 2'$"
    with pytest.raises(ArgumentError, match=listed):
        Trials.from_columns(columns)
    with pytest.raises(ArgumentError, match="duplicates must be error, keep or last, got 'first'"):
        Trials.from_columns(columns, duplicates="first")


def test_a_table_that_is_joined_to_itself_is_refused():
    once = Trials.from_columns(task=["a", "a"], passed=[True, False])
    with pytest.raises(ArgumentError, match="2 occur more often, got 'system / a / trial 0', "):
        Trials.concat([once, once])
    assert list(Trials.concat([once, once], duplicates="last")) == list(once)
    assert Trials.concat([once, once], duplicates="keep").trial.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"passed": [1]}, "columns must name the task of each trial"),
        ({"task": ["a"]}, "columns must have outcome, passed or score"),
        ({"task": ["a"], "passed": [1], "colour": [2]}, "columns must be among .* got 'colour'"),
        ({"task": ["a"], "passed": ["yes"]}, "passed must be true, false, 1, 0, or missing"),
        ({"task": ["a"], "outcome": ["won"]}, "outcome must be passed, failed or errored"),
        ({"task": ["a"], "score": [1.5]}, r"score must lie in \[0, 1\], got 1.5"),
        (
            {"task": ["a"], "passed": [1], "trial": [0.5]},
            r"trial must be whole numbers below 2\*\*63, got 0.5",
        ),
        ({"task": ["a"] * 2, "passed": [1] * 2, "trial": [1, None]}, "trial must .*, got None$"),
        ({"task": ["a"] * 2, "passed": [1] * 2, "trial": [1, 2**63]}, f"trial must .* {2**63}$"),
        ({"task": ["a"] * 2, "passed": [1] * 2, "trial": [[1], [2]]}, r"trial must .*, got \[1\]$"),
        ({"task": ["a"] * 2, "passed": [1] * 2, "seed": [1, 1.5]}, "seed must .*, got 1.5$"),
        (
            {"task": ["a"], "passed": [1], "seed": [-(2**63)]},
            "seed must .*, got -9223372036854775808",
        ),
        ({"task": ["a"] * 2, "passed": [1] * 2, "score": [[1], [0]]}, r"score must .*, got \[1\]$"),
        ({"task": ["a"] * 2, "passed": [1] * 2, "cost": [[1, 2], [3, 4]]}, r"cost .* \[1, 2\]$"),
        ({"task": ["a"], "passed": [1], "cost": [10**400]}, "cost must be numbers or missing"),
        (
            {"task": ["a"], "passed": np.ones((1, 1))},
            "passed must have one dimension, a value for each trial, got 2",
        ),
        ({"task": "refund", "passed": [1] * 6}, "task must be a list with a value for each trial"),
        ({"task": ["a"], "passed": True}, "passed must be a list with a value for each trial"),
        (
            {"task": ["a"], "pased": [1]},
            r"columns must be .* \(did you mean passed\?\), got 'pased'",
        ),
        (
            {"task": ["a", None], "passed": [1, 1]},
            "task must name the task of each trial, got None",
        ),
        ({"task": ["a"], "passed": [1], "system": [""]}, "system must name the system of each"),
        ({"task": ["a"] * 3, "passed": [1] * 3, "cost": [1, "x", 2]}, "cost must .*, got 'x'$"),
        ({"task": ["a"] * 2, "passed": [1] * 2, "seed": [1, 2**70]}, "got 1180591620717411303424$"),
        ({"task": ["a"], "passed": [1], "tags": [(1,)]}, "tags must be lists of words"),
        ({"task": ["a"], "passed": [1], "cost": ["x"]}, "cost must be numbers or missing"),
        ({"task": ["a"], "passed": [1], "seed": [2**70]}, r"seed must be whole numbers below"),
        ({"task": ["a"], "passed": [1], "tags": [("",)]}, "tags must be lists of words"),
        ({"task": ["a"], "passed": [1], "tags": ["x"]}, "tags must be lists of words"),
        ({"task": ["a"], "passed": [1, 0]}, "task must have 2 rows like outcome, got 1"),
        ({"task": ["a"], "passed": [1], "score": [1, 1]}, "score must have 1 rows like outcome"),
    ],
)
def test_columns_that_cannot_be_used_say_why(columns, message):
    with pytest.raises(ArgumentError, match=message):
        Trials.from_columns(columns)


def test_records_have_only_the_keys_of_a_trial():
    with pytest.raises(ArgumentError, match=r"records have only keys that .* got 'colour'"):
        Trials.from_records([{"task": "a", "passed": True, "colour": 1}])


def test_a_tally_needs_a_name_where_there_are_two_systems():
    table = Trials.from_columns(system=["a", "b"], task=["t", "t"], passed=[1, 1])
    with pytest.raises(ArgumentError, match="system must be one of a, b, got None"):
        table.tally()


@few
@given(st.lists(st.lists(st.none() | st.sampled_from("abcd"), max_size=6), max_size=4))
def test_joined_labels_hold_the_texts_of_all(columns):
    joined = Categorical.concat([Categorical.of(column) for column in columns])
    assert joined.texts() == [text for column in columns for text in column]
    assert len(set(joined.names)) == len(joined.names)


def test_a_table_is_told_in_one_line_however_many_trials_it_holds():
    columns = {"task": [*"aab"] * 400, "outcome": ["passed", "failed", "errored"] * 400}
    assert repr(Trials.from_columns(**columns)) == (
        "<Trials: 1 agent, 2 tasks, 1,200 trials (400 passed, 400 failed, 400 errored)>"
    )
    assert repr(Trials.from_records([])) == "<Trials: 0 agents, 0 tasks, 0 trials>"


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), 1e101])
@pytest.mark.parametrize("shape", [list, np.array])
def test_a_number_whose_square_is_none_is_refused(value, shape):
    with pytest.raises(ArgumentError, match=r"cost must be finite numbers up to 1e\+100, or miss"):
        Trials.from_columns(task=["a", "b"], passed=[1, 0], cost=shape([1.0, value]))
