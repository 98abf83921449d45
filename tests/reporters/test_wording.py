import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import render_html, render_markdown, render_terminal
from passhat.analysis.reports.dependence import SeedSpread
from passhat.analysis.reports.measure import measure
from passhat.arguments import DEPENDABLE
from passhat.records import Trials
from passhat.reporters import headline, wording
from passhat.reporters.answers.report_blocks import most_reliable_first, systems_table
from passhat.reporters.formatting import percent
from passhat.reporters.next_steps import next_steps
from passhat.reporters.wording import GLOSSARY, luck, p_value
from passhat.stats.dependent_runs import SeedVariance
from passhat.stats.estimate import Estimate, Interval, Unavailable

OUTCOMES = {"P": "passed", "F": "failed", "E": "errored"}

# Half the tasks pass when the others fail: rounds do not differ.
SHAKY = {f"t{i}": "PF" * 10 if i % 2 else "FP" * 10 for i in range(20)}


def _system(by_task, **options):
    trials = Trials.from_columns(
        system=["bot"] * sum(len(runs) for runs in by_task.values()),
        task=[task for task, runs in by_task.items() for _ in runs],
        outcome=[
            {"P": "passed", "F": "failed", "E": "errored"}[r] for t in by_task.values() for r in t
        ],
    )
    return measure(trials, **options).system()


@pytest.mark.parametrize(
    ("by_task", "start"),
    [
        ({f"t{i}": "P" * 60 for i in range(20)}, "bot is reliable: all 1,200 trials passed; 5 in"),
        (SHAKY, "bot is not reliable: it passes 50% of the time, but 5 times in a row only 2%."),
        ({"a": "PPPPP", "b": "PPPPP"}, "Too early to tell if bot is reliable: all 10 trials"),
        ({"a": "P"}, "One trial of a task cannot show if bot is reliable: its one trial passed"),
    ],
)
def test_the_verdict_follows_the_interval_of_the_streak(by_task, start):
    assert headline.verdict(_system(by_task)).startswith(start)


def test_the_verdict_without_a_number_gives_the_reason():
    said = headline.verdict(_system({"a": "PP", "b": "PF"}, ks=[3]))
    assert said == (
        "bot has no pass^3: pass^3 needs 3 trials of a task; "
        "the most any has is 2. A trial passes 75% of the time."
    )


def test_several_systems_without_the_number_are_told_why_and_what_is_known_of_them():
    few = {"t0": "PP", "t1": "PF"}
    said = headline.overview(_report(ks=[3], a=few, b={"t0": "FF", "t1": "PF"}))
    assert said == (
        "There is no pass^3 to compare: a and b have 2 trials of every task, so no pass^3. "
        "A trial passes 75% of the time for a and 25% of the time for b."
    )
    many = dict.fromkeys("abcd", few) | {"e": {"t0": "FF", "t1": "FF"}}
    said = headline.overview(_report(ks=[3], **many))
    assert said.endswith("A trial passes 0 to 75% of the time.")


def test_the_headline_is_the_largest_k_up_to_five():
    assert wording.headline_k(_system({"a": "P" * 20})) == 5
    assert wording.headline_k(_system({"a": "PPP"})) == 3
    assert wording.headline_k(_system({"a": "P" * 20}, ks=[10])) == 10


@pytest.mark.parametrize(
    ("by_task", "ks", "k"),
    [
        ({"a": "FFF", "b": "PPPPP", "c": "PPPPPPPP", "d": "PPPPPP"}, None, 3),
        ({"a": "P", "b": "PPPPP", "c": "PPPPP"}, None, 1),
        ({"a": "FF", "b": "PPPPP", "c": "PPPPP"}, [2, 4], 2),
        ({"a": "FF", "b": "PPPPP", "c": "PPPPP"}, [3, 4], 3),
    ],
)
def test_the_headline_leaves_no_task_out_where_a_k_is_known_for_all(by_task, ks, k):
    assert wording.headline_k(_system(by_task, ks=ks)) == k


def test_a_headline_that_must_leave_tasks_out_says_so():
    said = headline.verdict(_system({"a": "FF", "b": "PPPPP", "c": "PPPPP"}, ks=[3]))
    assert said.endswith(" (1 of its tasks left out).")


def test_numbers_that_leave_tasks_out_are_starred_and_the_star_is_explained():
    system = _system({"a": "FFF", "b": "PPPP", "c": "PPPPPPPP", "d": "PPPPPP"}, ks=[1, 3, 4, 5])
    starred = [wording.metric_name(m) for m in system.metrics.values() if wording.is_partial(m)]
    assert starred == ["pass^4 *", "pass^5 *", "pass@4 *", "pass@5 *"]
    assert wording.partial_note(system) == (
        "* k = 4 is over 3 of 4 tasks, k = 5 is over 2 of 4 tasks; the others have fewer trials."
    )
    assert wording.partial_note(_system({"a": "PPP", "b": "FFF"})) is None


def test_a_mean_over_tasks_of_unequal_runs_is_not_called_a_share_of_attempts():
    assert "a task passes 50% of the time on average" in headline.verdict(
        _system({"a": "P", "b": "FFF"})
    )
    assert "it passes 50% of the time" in headline.verdict(_system({"a": "PPP", "b": "FFF"}))


def test_one_run_of_each_task_can_refute_an_agent_and_never_vouch_for_it():
    clean = _system({f"t{i}": "P" for i in range(500)})
    assert headline.is_above(clean.pass_hat(1))
    assert headline.verdict(clean).startswith("One trial of a task cannot show if bot is reliable")
    assert "500 of 500 tasks passed their only trial" in headline.verdict(clean)
    assert headline.chip(clean).tone == "open"
    assert clean.tasks.count("undecided") == 500
    broken = headline.verdict(_system({f"t{i}": "PF"[i % 2] for i in range(100)}))
    assert broken.startswith("bot is not reliable: 50 of 100 tasks passed their only trial")
    two = _report(a={f"t{i}": "P" for i in range(500)}, b={f"t{i}": "P" for i in range(500)})
    assert headline.overview(two).startswith("One trial of a task cannot show if either of the")


def test_where_some_tasks_ran_once_and_others_often_the_verdict_says_how_many_ran_once():
    system = _system({"a": "P", "b": "PPPP", "c": "PPP"})
    assert headline.verdict(system).startswith(
        "Too early to tell if bot is reliable, as 1 of 3 tasks ran only once: all 8 trials passed"
    )
    assert headline.chip(system).words == "Too early to tell"


def test_a_report_at_k_1_of_many_runs_says_that_k_is_too_small():
    said = headline.verdict(_system({f"t{i}": "P" * 60 for i in range(20)}, ks=[1]))
    assert said.startswith("pass@1 alone cannot show if bot is reliable: all 1,200 trials passed")


def test_runs_with_partial_credit_that_never_passed_are_not_called_a_plain_failure():
    trials = Trials.from_columns(task=["a"] * 9 + ["b"] * 9, score=[0.9] * 18)
    assert headline.verdict(measure(trials).system()).endswith("it never passed (mean score 90%).")


def test_a_streak_that_never_came_is_not_called_only_0_percent():
    said = headline.verdict(_system({"a": "PF", "b": "FP", "c": "PF"}))
    assert said.endswith("it passes 50% of the time, but never 2 times in a row.")


def _mixed(passes, runs, tasks):
    """Tasks of which each passes so often, half of them and never the other way round."""
    return {
        f"t{i}": ("P" * passes + "F" * (runs - passes))
        if i % 2
        else ("F" * passes + "P" * (runs - passes))
        for i in range(tasks)
    }


@pytest.mark.parametrize(
    ("by_task", "meaning"),
    [
        ({f"t{i}": "PF" * 5 for i in range(9)}, "which trials pass is mostly chance, not the task"),
        (_mixed(9, 10, 40), "a single trial can mislead"),
        (_mixed(49, 50, 40), "a task mostly ends the same way every time"),
    ],
)
def test_the_split_of_variance_is_said_in_a_sentence(by_task, meaning):
    said = luck(_system(by_task).variance)
    assert meaning in said
    assert re.search(r" of the variation between trials is luck: .* \(.*%\)\.$", said)


def test_where_the_runs_leave_both_readings_open_luck_is_not_told_from_skill():
    said = luck(_system({"a": "PFFPF", "b": "FFFFP", "c": "FFFFF", "d": "FFPFF"}).variance)
    assert re.fullmatch(
        r"Too few tasks or trials to tell luck from skill: between \d+% and \d+% of the "
        r"variation is luck\.",
        said,
    )


@pytest.mark.parametrize(
    "by_task",
    [
        {"a": "PFFPF", "b": "FFFFP", "c": "FFFFF", "d": "FFPFF"},
        {"a": "PPP", "b": "FFF", "c": "PPP"},
        {"a": "PPP", "b": "FFF"},
    ],
)
def test_a_share_of_luck_that_is_open_is_not_drawn(by_task):
    drawn = _report(bot=by_task).plots.variance()
    assert drawn == Unavailable("too few tasks or trials to say how much of the spread is luck")


def test_the_picture_of_luck_says_how_far_it_is_known():
    flat = _report(bot={f"t{i}": "PF" * 5 for i in range(9)})
    luck = flat.system().variance.luck.interval
    stated = f"Somewhere from {percent(luck.low)} to {percent(luck.high)}. "
    assert flat.plots.variance().finding.startswith(stated)


def test_runs_that_all_ended_alike_are_no_proof_that_there_is_no_luck():
    system = _system({"a": "P" * 3, "b": "F" * 3, "c": "PPP"})
    said = luck(system.variance)
    assert said.startswith("No luck was seen: every task ended all its trials the same way.")
    assert said.endswith("How much there is stays open (0 to 100%).")
    report = _report(bot={"a": "P" * 3, "b": "F" * 3, "c": "PPP"})
    text = " ".join(render_terminal(report, verbose=True).split())
    assert "No number of trials on these 3 tasks gets below ±" in text
    assert "ICC 1.00." not in text


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ({"a": "FFF", "b": "FFF"}, "bot is not reliable: it never passed."),
        ({"a": "F", "b": "F"}, "bot is not reliable: 0 of 2 tasks passed their only trial ("),
        ({"a": "FF", "b": "FF"}, "bot is not reliable: it never passed."),
        ({"a": "PPP", "b": "FFF"}, "it passes 50% of the time, and just as often 3 times in a row"),
    ],
)
def test_an_agent_that_never_or_always_passes_a_task_is_told_of_in_plain_words(tasks, said):
    assert said in headline.verdict(_system(tasks))


def test_errors_are_stated_with_both_numbers():
    assert wording.errors(_system({"a": "PPPE", "b": "PPPP"}, ks=[1])) == (
        "1 trial errored (13%), counted as failures; "
        "left out, pass^1 would be 100% instead of 87.5%."
    )
    assert wording.errors(_system({"a": "PPPE", "b": "PPPP"}, ks=[1], errors="exclude")) == (
        "1 trial errored (13%), left out; "
        "counted as failures, pass^1 would be 87.5% instead of 100%."
    )
    assert wording.errors(_system({"a": "PF"})) is None


def test_unequal_runs_are_said():
    assert wording.design(_system({"a": "PPPP", "b": "PP"})) == "2 tasks x 2 to 4 trials"


def test_what_is_left_out_is_named():
    (one,) = _system({"a": "PPPP", "b": "PP"}, ks=[1, 4]).excluded
    assert wording.exclusion(one) == "1 task of pass^4 and pass@4 (fewer than 4 trials): b."
    system = _system({"a": "PPPPP", "b": "PP", "c": "PPPP"}, ks=[1, 2, 3, 4, 5])
    assert list(wording.exclusions(system.excluded)) == [
        "1 task of pass^3 and pass@3, and so on up to pass^4 and pass@4 (fewer than 3 trials): b.",
        "2 tasks of pass^5 and pass@5 (fewer than 5 trials): b, c.",
    ]


def _report(ks=None, errors="fail", **by_system):
    rows = [
        (system, task, OUTCOMES[run])
        for system, by_task in by_system.items()
        for task, runs in by_task.items()
        for run in runs
    ]
    system, task, outcome = (list(column) for column in zip(*rows, strict=True))
    trials = Trials.from_columns(system=system, task=task, outcome=outcome)
    return measure(trials, ks=ks, errors=errors)


STEADY = {f"t{i}": "P" * 60 for i in range(20)}
YOUNG = {"t0": "P" * 5, "t1": "P" * 5}
DOWN = {"t0": "E", "t1": "E"}


@pytest.mark.parametrize(
    ("systems", "start"),
    [
        ({"a": SHAKY, "b": SHAKY}, "Neither agent is reliable. a and b are tied: "),
        ({"a": YOUNG, "b": YOUNG}, "Too early to tell if either of the two agents is reliable. "),
        ({"a": YOUNG, "b": YOUNG, "c": YOUNG}, "Too early to tell if any of 3 agents is reliable."),
        ({"a": YOUNG, "b": SHAKY}, "b is not reliable (too early to tell of a). "),
        (
            {"a": YOUNG, "b": YOUNG, "c": SHAKY},
            "1 of 3 agents is not reliable (too early to tell of 2). ",
        ),
        ({"a": SHAKY, "b": SHAKY, "c": SHAKY}, "No agent is reliable. "),
        ({"a": DOWN, "b": DOWN}, "No trial of a and b finished: all 4 trials errored and "),
        ({"a": SHAKY, "b": DOWN}, "a is not reliable: it passes 50% of the time"),
        ({"a": STEADY, "b": SHAKY}, "1 of 2 agents is reliable. a leads: 5 in a row 100%."),
        ({"a": STEADY, "b": YOUNG}, "1 of 2 agents is reliable (too early to tell of 1). "),
    ],
)
def test_several_systems_are_judged_as_one_is(systems, start):
    assert headline.overview(_report(**systems)).startswith(start)


def test_several_systems_are_held_against_each_other_at_a_k_that_all_have():
    report = _report(a={"t": "PPPPPF"}, b={"t": "PP"})
    said = headline.overview(report)
    assert said.endswith(" b and a are tied: 2 in a row 100% and 67%.")
    assert "Ties are for these tasks." in render_terminal(report)


def test_one_system_with_fewer_runs_takes_no_number_from_the_others():
    once = dict.fromkeys(STEADY, "P")
    report = _report(a=STEADY, b=SHAKY, c=once)
    said = headline.overview(report)
    assert said.startswith("1 of 2 agents with a pass^5 is reliable. a leads: 5 in a row 100%. ")
    assert said.endswith("c has 1 trial of every task, so no pass^5.")
    table = systems_table({one.name: one for one in report.systems}, "in %")
    at = table.header.index("pass^5")
    assert [row[at] for row in table.rows] == ["100", "1.6", "-"]


def test_pass_1_is_shown_beside_the_k_that_was_asked_for():
    rows = [("a", "t", i < 3) for i in range(4)] + [("b", "t", True) for _ in range(4)]
    system, task, passed = zip(*rows, strict=True)
    report = measure(Trials.from_columns(system=system, task=task, passed=passed), ks=[4])
    table = systems_table({one.name: one for one in report.systems}, "in %")
    assert [row[table.header.index("pass@1")] for row in table.rows] == ["75.0", "100"]


def test_a_system_whose_trials_all_errored_is_named_and_not_judged():
    report = _report(a=SHAKY, b=SHAKY, c=DOWN)
    said = headline.overview(report)
    assert said.startswith("Neither agent with a pass^5 is reliable. ")
    assert said.endswith("No trial of c finished: all 2 trials errored and count as failures.")


ALL_ERRORED = {
    "fail": (
        "No trial of bot finished: all 3 trials errored (server w did not start) and count "
        "as failures."
    ),
    "exclude": "Nothing could be measured: all 3 trials of bot errored (server w did not start).",
}


@pytest.mark.parametrize("errors", ALL_ERRORED)
def test_what_only_errored_is_not_called_unreliable(errors):
    columns = {"outcome": ["errored"] * 3, "error": ["server w did not start"] * 3}
    trials = Trials.from_columns(system=["bot"] * 3, task=[*"abc"], **columns)
    system = measure(trials, errors=errors).system()
    assert headline.verdict(system) == ALL_ERRORED[errors]
    assert wording.beyond(system) is None
    assert system.unsettled == ()
    assert "every trial errored" in wording.labels(system)
    assert len(next_steps(system)) == 1


@pytest.mark.parametrize(("errors", "shown"), [("fail", "0"), ("exclude", "-")])
def test_one_system_and_several_tell_the_same_of_nothing_but_errors(errors, shown):
    alone, both = (_report(errors=errors, **dict.fromkeys(names, DOWN)) for names in ("a", "ab"))
    for report in (alone, both):
        table = systems_table({one.name: one for one in report.systems}, "in %")
        assert {row[table.header.index("pass@1")] for row in table.rows} == {shown}
    metric = alone.system().metrics["pass@1"]
    assert (metric.value is None) == (shown == "-")
    start, _, why = wording.labels(alone.system()).partition(": ")
    if errors == "fail":
        assert start == "0 solid, 0 flaky, 0 broken, 2 undecided"
        assert why == "every trial errored, and errors count as failures"
    else:
        assert start == "no label is given, as every trial errored"
    told = wording.errors(alone.system())
    assert ("leaving them out would leave nothing to measure" in told) == (errors == "fail")


def test_nobody_is_called_best_among_systems_that_share_no_task():
    said = headline.overview(_report(a=STEADY, b={"other": "F" * 60}))
    assert said.endswith(
        "No task has 5 trials of each of the 2 agents, so none is called the leader."
    )


def test_where_some_tasks_are_not_shared_it_is_said_who_leads_on_those_that_are():
    said = headline.overview(_report(a=STEADY, b=SHAKY | {"other": "P" * 20}))
    assert said.endswith("a leads: 5 in a row 100% on the 20 tasks with 5 trials of each.")
    once = {f"t{i}": "P" for i in range(9)}
    said = headline.overview(_report(a=once, b=once | {"other": "P"}))
    assert said.endswith("a and b are tied: pass@1 100% and 100% on the 9 tasks they share.")


@pytest.mark.parametrize(
    ("systems", "end"),
    [
        ({"a": SHAKY, "b": SHAKY}, "a and b are tied: 5 in a row 2% and 2%."),
        ({"a": SHAKY, "b": SHAKY, "c": SHAKY}, "All 3 are tied: 5 in a row 2%."),
        ({"a": SHAKY, "b": STEADY, "c": SHAKY}, "b leads: 5 in a row 100%."),
        ({"a": STEADY, "b": STEADY, "c": SHAKY}, "a and b lead and are tied: 5 in a row 100% and"),
    ],
)
def test_a_system_is_called_best_only_where_it_can_be_told_from_all_others(systems, end):
    report = _report(**systems)
    assert end in headline.overview(report)
    held = f"{'The lead holds' if 'leads' in end else 'Ties are'} for similar tasks"
    at_once = "" if len(systems) == 2 else f", all {len(systems)} compared at once"
    assert f"{held}{at_once}." in render_terminal(report)


def test_a_system_with_enough_runs_of_some_tasks_is_said_to_lack_them_of_the_others():
    mixed = STEADY | {"t0": "P", "t1": "PP"}
    said = headline.overview(_report(a=STEADY, b=SHAKY, c=mixed, d=mixed, e=SHAKY))
    assert said.endswith("c and d have fewer than 5 trials of 2 of 20 tasks, so no pass^5.")


def test_several_systems_are_listed_the_best_first_and_ties_by_name():
    report = _report(b10=SHAKY, b9=SHAKY, a=SHAKY, z=STEADY)
    order = [one.name for one in most_reliable_first(report.systems)]
    assert order == ["z", "a", "b9", "b10"]
    for verbose in (False, True):
        shown = render_terminal(report, verbose=verbose).split("\n")
        table = [line.split()[0] for line in shown if line.startswith("  ")]
        assert table[1:5] == order
    assert "passhat report RESULTS --only z" in render_terminal(report, verbose=True)
    assert re.findall(r"^## (\S+)", render_markdown(report, verbose=True), re.M) == order


@pytest.mark.parametrize("ks", [None, [2]])
def test_no_format_speaks_of_partial_credit_where_there_is_none(ks):
    whole = measure(Trials.from_columns(task=[*"aabb"], passed=[1, 0, 1, 1]), ks=ks)
    for render in (render_terminal, render_markdown, render_html):
        for verbose in (False, True):
            text = render(whole, verbose=verbose)
            text = re.sub(r'<details class="words">.*?</details>', "", text, flags=re.S)  # glossary
            assert "partial credit" not in text
            assert "mean score" not in text
    scores = Trials.from_columns(task=[*"aabb"], passed=[1, 0, 1, 1], score=[0.9, 0.4, 1, 1])
    graded = measure(scores, ks=ks)
    for render in (render_terminal, render_markdown, render_html):
        assert "mean score" in render(graded, verbose=True)


def test_a_single_error_is_spoken_of_as_one():
    report = _report(a={"t": "PE"}, b={"t": "PP"})
    assert wording.errors_note(report.systems) == ("1 trial errored and is counted as a failure.")


def _spread(low, value):
    between = Estimate(
        value=value, interval=Interval(low, 0.1), method="", confidence=0.95, scope="this suite"
    )
    variance = SeedVariance(
        between=between, within=0.1, tasks_component=0.1, mean=between, seeds=5, tasks=5, runs=25
    )
    return SeedSpread(means={1: 0.5, 2: 0.7}, variance=variance)


def test_seeds_go_beyond_chance_only_where_their_interval_leaves_0_out():
    assert ": within noise. " in wording.seeds(_spread(0.0, 0.01))
    assert "±10.0 points (1 sd) beyond chance. " in wording.seeds(_spread(0.001, 0.01))


def test_rounds_of_a_single_task_are_not_told():
    assert wording.rounds(_system({"a": "PFPF"}).rounds) is None
    assert wording.rounds(_system({"a": "PFPF", "b": "PFFF"}).rounds).startswith(
        "From one trial of every task to the next, "
    )


def test_what_costs_nothing_has_no_sentence_about_its_cost():
    def told(cost):
        trials = Trials.from_columns(task=[*"aabb"], passed=[1, 1, 1, 0], cost=[cost] * 4)
        return wording.cost(measure(trials).system())

    assert told(0.0) is None
    assert told(0.5).startswith("A success costs 0.667")


@pytest.mark.parametrize("passed", [0, 1, 2, 12, 36, 39, 40])
@pytest.mark.parametrize("runs", [2, 12, 40])
def test_no_verdict_says_more_than_its_interval(passed, runs):
    """One rule for 1 of 2 runs and for 36 of 40: where the interval lies to the line."""
    if passed > runs:
        pytest.skip("more passes than runs")
    system = _system({"a": "P" * passed + "F" * (runs - passed)})
    bounds = system.pass_hat(headline.headline_k(system)).this_suite.interval
    said = headline.verdict(system)
    assert said.startswith("bot is reliable") == (bounds.low >= DEPENDABLE)
    assert said.startswith("bot is not reliable") == (bounds.high < DEPENDABLE)
    if stated := re.search(r"at least (\d+)% of the time", said):
        assert int(stated[1]) / 100 <= bounds.low


def test_the_rule_of_the_verdict_is_in_the_glossary_and_in_the_full_report():
    meaning = GLOSSARY["reliable"]
    assert percent(DEPENDABLE) in meaning
    report = _report(bot={"a": "PPPPP", "b": "PPPPF"})
    full = " ".join(render_terminal(report, verbose=True).split())
    assert meaning in full


def test_the_first_screen_has_one_name_for_one_number():
    report = _report(bot={"a": "PPPPPE", "b": "PPPPPF"})
    screen = render_terminal(report, verbose=False)
    assert "without it pass^5 is 58.3%." in " ".join(screen.split())
    assert "pass@1" in screen
    for other in ("reliability@", "pass^1", "one try", "mean score"):
        assert other not in screen


@pytest.mark.parametrize("moved", [0.0, 0.3])
def test_the_two_standard_errors_are_those_of_a_two_way_analysis_of_variance(moved):
    """One run a cell: mean squares of seeds and of the rest, over all runs, by brute force."""
    rng = np.random.default_rng(5)
    seeds, tasks = 8, 12
    chance = np.clip(rng.uniform(0.2, 0.8, tasks) + moved * rng.normal(size=(seeds, 1)), 0, 1)
    passed = rng.random((seeds, tasks)) < chance
    spread = measure(
        Trials.from_columns(
            task=[f"t{j}" for _ in range(seeds) for j in range(tasks)],
            trial=np.repeat(np.arange(seeds), tasks),
            seed=np.repeat(np.arange(seeds), tasks),
            passed=passed.ravel(),
        )
    ).system()
    rows, columns, mean = passed.mean(1, keepdims=True), passed.mean(0), passed.mean()
    of_seeds = tasks * ((rows - mean) ** 2).sum() / (seeds - 1)
    rest = ((passed - rows - columns + mean) ** 2).sum() / ((seeds - 1) * (tasks - 1))
    expected = np.sqrt(np.array([of_seeds, rest]) / passed.size)
    assert spread.seeds.standard_errors == pytest.approx(tuple(expected))
    between, within = 100 * expected
    assert f"{between:.1f} points between seeds, {within:.1f} within trials" in wording.seeds(
        spread.seeds
    )


@given(
    p=st.floats(0.001, 1) | st.floats(0.0499, 0.0501) | st.floats(0.004, 0.006),
    level=st.sampled_from([0.05, 0.1, 0.005]),
)
def test_a_p_value_is_printed_on_its_own_side_of_the_level(p, level):
    printed = float(p_value(p, level).removeprefix("p = "))
    assert (printed < level) == (p < level)
    assert printed == pytest.approx(p, abs=0.0005)
