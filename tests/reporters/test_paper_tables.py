"""What a paper needs of a table: every number that was asked for, p values, methods, sums."""

import re

import pytest

import passhat
from passhat import Trials, compare, rank, report, simulate
from passhat.errors import ArgumentError
from passhat.reporters.formatting import points, signed_points, signed_span
from passhat.reporters.rendering import render
from passhat.stats.estimate import Interval


def tex(answer):
    """The text of a LaTeX file without its escapes."""
    text = render(answer, "tex").replace(r"\textasciicircum{}", "^").replace("\\%", "%")
    return re.sub(r"\{([^{}]*)\}(?= [&\\])", r"\1", text)


def labels(text):
    """The names of the rows of the first agent of a table."""
    first = text.partition("\\midrule")[2].partition("\\bottomrule")[0]
    return [line.split(" & ")[1] for line in first.strip().splitlines()]


def counted(*counts, runs=4, errors=0, family=None):
    """Trials of agents a, b, ... with so many passes of each task; the first failures errored."""
    rows = []
    for agent, passes in zip("abc", counts, strict=False):
        for task, passed in enumerate(passes):
            for trial in range(runs):
                failed = "error" if trial - passed < errors else "failed"
                row = {"system": agent, "task": f"t{task}", "trial": trial}
                row["outcome"] = "passed" if trial < passed else failed
                rows.append(row | ({"family": family(task)} if family else {}))
    return Trials.from_records(rows)


def test_a_table_of_several_agents_has_both_numbers_of_every_k_that_was_asked_for():
    text = tex(report(counted([4, 3, 1], [4, 2, 2]), ks=(1, 2, 4)))
    assert labels(text) == ["pass@1", "pass^2", "pass@2", "pass^4", "pass@4"] * 2
    assert "caption{pass@1, pass^k and pass@k of 2 agents" in text


def test_asking_for_k_keeps_what_errors_do():
    text = tex(report(counted([4, 3, 1], [4, 2, 2], errors=1), ks=(1, 2)))
    assert labels(text) == ["pass@1", "pass^2", "pass@2", "errors", "pass^2 excl. errors"] * 2
    assert "Errors are the share of trials that errored; excl. errors is pass^2 without" in text


def test_a_dash_for_a_k_beyond_the_trials_is_explained():
    text = tex(report(counted([4, 3, 1], [4, 2, 2]), ks=(1, 8)))
    assert "pass^8 & -" in text
    assert "A dash: some task has fewer than k trials." in text
    assert "A dash" not in tex(report(counted([4, 3, 1], [4, 2, 2]), ks=(1, 2)))


def test_methods_say_what_families_make_of_similar_tasks_and_no_name_that_only_we_know():
    trials = counted([4, 3, 1, 4] * 3, [4, 2, 2, 3] * 3, family=lambda task: f"f{task % 3}")
    text = tex(report(trials, ks=(1, 2)))
    assert re.search(
        r"tasks from these 3 families; for other families mean scores are \[.* for a,", text
    )
    assert "ordered distributions" not in text
    assert "families" not in tex(report(counted([4, 3, 1], [4, 2, 2]), ks=(1, 2)))


def test_the_table_of_two_agents_has_p_values_and_methods_and_its_rows_add_up():
    """47 and 42 of 80 passed are 58.75% and 52.5%, 6.25 points apart."""
    trials = counted([4] * 11 + [3] + [0] * 8, [4] * 10 + [2] + [0] * 9)
    text = tex(compare(trials))
    assert "these tasks & p & similar tasks & p" in text
    first, second, apart = re.search(r"pass@1 & (.*?) & (.*?) & \+(.*?) &", text).groups()
    assert (first, second, apart) == ("58.8", "52.5", "6.3")
    assert "Methods." in text
    assert re.search(r"paired t, t = [\d.]+, p = [\d.]+", text)


@pytest.mark.parametrize(("share", "shown"), [(0.4125, "41.3"), (0.4525, "45.3"), (0.325, "32.5")])
def test_halves_round_away_from_zero_as_on_leaderboards(share, shown):
    assert points(share, digits=1) == shown
    assert signed_points(-share, digits=1) == f"-{shown}"


def test_an_end_that_rounds_to_zero_says_on_which_side_it_is():
    assert signed_span(Interval(-0.0003, 0.186)) == "[>-0.1, +18.6]"
    assert signed_span(Interval(0.0003, 0.186)) == "[<+0.1, +18.6]"
    assert signed_points(0.0, digits=1) == "0"


def test_a_sentence_on_a_lead_sees_every_number_from_the_same_side():
    rate = {"first": 0.5, "second": 0.62}
    found = compare(simulate(tasks=12, runs=5, rate=rate, seed=4), ks=(1, 3))
    said = " ".join(str(found).split(".\n")[0].split())
    assert "second is" in said, said
    ahead, beside = re.search(
        r"second is ([\d.]+) points ahead .*pass@1 ([+-][\d.]+)", said
    ).groups()
    assert beside.startswith("+"), (ahead, beside)


def test_a_p_value_on_a_screen_says_for_which_tasks_it_is():
    found = compare(simulate(tasks=40, runs=8, rate={"a": 0.9, "b": 0.5}, seed=1))
    assert re.search(r"\(p [=<] [\d.]+ for these tasks\)", " ".join(str(found).split()))


def test_some_agents_of_many_are_ranked_by_name():
    trials = simulate(tasks=20, runs=5, rate={"a": 0.9, "b": 0.7, "c": 0.4}, seed=1)
    assert [system.name for system in rank(trials, only=["a", "c"]).systems] == ["a", "c"]
    with pytest.raises(ArgumentError, match="must be"):
        rank(trials, only=["a", "d"])
    tallies = [trials.tally(name) for name in trials.systems]
    assert passhat.rank(tallies, only=["a", "c"]).systems == rank(trials, only=["a", "c"]).systems
