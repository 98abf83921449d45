"""`compare` takes results side by side, or the names of agents beside their results."""

import json
from pathlib import Path

import pytest

import passhat
from passhat.journeys.analyses import compared_transcripts
from passhat.journeys.results import Results
from passhat.records.columns import ColumnMap

ALL = passhat.simulate(tasks=6, runs=5, rate={"a": 0.9, "b": 0.6, "c": 0.5}, seed=1)
A, B, C = (ALL.where(system=name) for name in "abc")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    passhat.write_trials(ALL, "all.csv")
    for name, trials in (("new.csv", A), ("old.csv", B)):
        passhat.write_trials(trials, name)


def lead(found):
    return found.first, found.second, found.mean_score.this_suite


def test_two_agents_are_the_same_comparison_however_they_are_given(files):
    expected = lead(passhat.compare(A, B))
    assert expected[:2] == ("a", "b")
    for given in (
        (ALL, "a", "b"),
        ("all.csv", "a", "b"),
        ("new.csv", "old.csv"),
        (["new.csv", "old.csv"],),
        ("new.csv", B),
        (A, "old.csv"),
        (A.to_frame("pandas"), B.to_frame("polars")),
    ):
        assert lead(passhat.compare(*given)) == expected
    assert lead(passhat.compare(A.tally(), B.tally()))[:2] == ("a", "b")
    assert lead(passhat.compare(ALL, "b", "a"))[:2] == ("b", "a")


def test_three_or_more_are_ranked(files):
    ranked = str(passhat.compare(ALL))
    for given in ((ALL, "a", "b", "c"), ("all.csv",), (A, B, C), ("new.csv", B, C)):
        assert str(passhat.compare(*given)).splitlines()[0] == ranked.splitlines()[0]
    assert isinstance(passhat.compare(A.tally(), B, C), passhat.RankReport)


def test_the_same_agent_before_and_after_is_told_apart_by_its_place():
    assert lead(passhat.compare(A, A))[:2] == ("a (1)", "a (2)")


def test_files_of_one_agent_are_told_apart_by_their_names_however_many_they_are(files):
    for seed, name in enumerate(("one.jsonl", "two.jsonl", "three.jsonl")):
        passhat.write_trials(passhat.simulate(tasks=6, runs=5, rate={"a": 0.8}, seed=seed), name)
    first, *others = ("one.jsonl", "two.jsonl", "three.jsonl")
    assert {passhat.compare(first, others[0]).first} == {"a (one.jsonl)"}
    ranked = passhat.compare(first, *others)
    assert sorted(system.name for system in ranked.systems) == sorted(
        f"a ({name})" for name in (first, *others)
    )
    with pytest.raises(passhat.PasshatError, match=r"one\.jsonl: is given twice"):
        passhat.compare(first, others[0], first)
    # With other agents beside them they may be the trials of one: that is for --name to say.
    with pytest.raises(passhat.PasshatError, match=r"^one\.jsonl, two\.jsonl: 30 trials occur"):
        passhat.compare(first, "old.csv", "two.jsonl")


def test_results_that_are_compared_with_themselves_are_noted(files):
    Path("copy.csv").write_bytes(Path("new.csv").read_bytes())
    assert passhat.compare("new.csv", "new.csv").notes[-1] == "new.csv is compared with itself"
    same = "new.csv and copy.csv are the same results"
    found = passhat.compare("new.csv", "copy.csv")
    assert found.notes[-1] == same
    assert f"Note: {same}." in str(found)
    for given in (("new.csv", "old.csv"), ("all.csv", "a", "b"), (ALL, "a", "b")):
        assert not any("same" in note or "itself" in note for note in passhat.compare(*given).notes)


def test_what_cannot_be_compared_is_told(files):
    with pytest.raises(passhat.PasshatError, match="one of a, b, c, got 'x'"):
        passhat.compare(ALL, "a", "x")
    with pytest.raises(passhat.PasshatError, match=r"odl\.csv"):
        passhat.compare("new.csv", "odl.csv")
    with pytest.raises(passhat.PasshatError, match="there is only 'a'"):
        passhat.compare(A)
    with pytest.raises(passhat.PasshatError, match="holds one agent; there are 3"):
        passhat.compare(ALL, B)


@pytest.mark.parametrize(
    ("table", "argument"),
    [
        ("task,passed\na,1\na,\n", "missing"),
        ("Riddle,passed\na,1\n", "task"),
        ("task,verdict\na,maybe\n", "pass_if"),
    ],
)
@pytest.mark.parametrize("ask", [passhat.report, passhat.compare, passhat.why])
def test_an_error_about_a_path_names_a_call_that_takes_its_arguments(
    tmp_path, ask, table, argument
):
    path = tmp_path / "results.csv"
    path.write_text(table)
    with pytest.raises(passhat.errors.ReadError, match=rf"`{argument}=") as refused:
        ask(str(path))
    call = f"To say so: passhat.read_trials({str(path)!r}, {argument}=...)"
    assert str(refused.value).endswith(call)


@pytest.mark.parametrize("agents", [("agent", "agent"), ("a", "b")])
def test_what_was_said_goes_by_the_names_of_the_comparison(agents, tmp_path):
    for name, agent in zip(("new", "old"), agents, strict=True):
        rows = [
            {
                "system": agent,
                "task": task,
                "trial": trial,
                "passed": trial < 2,
                "said": name if trial != 1 else None,
            }
            for task in ("x", "y")
            for trial in range(3)
        ]
        lines = "\n".join(map(json.dumps, rows))
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    paths = tuple(str(tmp_path / f"{name}.jsonl") for name in ("new", "old"))
    results = Results(paths=paths, mapping=ColumnMap(transcript="said"))
    found = passhat.journeys.compare(results)
    trials, texts = compared_transcripts(results, found)
    keys = [(side, task, n) for side in (found.first, found.second)
            for task in "xy" for n in (0, 2)]  # fmt: skip
    assert trials.systems == (found.first, found.second)
    page = passhat.render_html(found, transcripts=texts, trials=trials)
    # A trial of which nothing was kept has its mark between the links of the others.
    assert page.count("<b>●</b><a") == 4
    assert sorted(texts) == sorted(keys)
    assert all(name in texts[side, "x", 0]
               for side, name in ((found.first, "new"), (found.second, "old")))  # fmt: skip
