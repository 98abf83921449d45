"""Reports and gates of judged trials: corrected where people labelled, unchanged where not."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from passhat import check_judge, compare, gate, render
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.comparing.trends import CountedRun, KeptTrend, judge_agents, trends
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.metrics import SystemTrials
from passhat.errors import InputError
from passhat.records import Trials
from passhat.records.labels import Label
from passhat.records.trial import GRADED_BY_JUDGE, Source
from passhat.reporters import headline
from passhat.reporters.answer import DisplayOptions
from passhat.reporters.answers.trend import TrendAnswer, sentences
from passhat.reporters.answers.trend import headline as trend_headline


def judged(*, tasks=40, runs=6, chosen="verdict", each=30, seed=4, slips=0.4):
    """Trials by a judge that passes nearly all that is right and much that is wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.random((tasks, runs)) < rng.beta(4, 2, tasks)[:, None]
    verdict = np.where(truth, rng.random(truth.shape) < 0.95, rng.random(truth.shape) < slips)
    if chosen == "task":
        picked = np.zeros(truth.shape, bool)
        picked[rng.permutation(tasks)[:each]] = True
    else:
        picked = np.zeros(truth.size, bool)
        for side in (True, False):
            picked[rng.permutation(np.flatnonzero(verdict.ravel() == side))[:each]] = True
        picked = picked.reshape(truth.shape)
    labels = [
        [Label(passed=bool(said), by="ann", chosen=chosen)] if read else ()
        for said, read in zip(truth.ravel(), picked.ravel(), strict=True)
    ]
    names = [f"t{i:02}" for i in range(tasks) for _ in range(runs)]
    return truth, Trials.from_columns(task=names, passed=verdict.ravel(), human_labels=labels)


def test_labels_by_verdict_correct_pass_at_1_and_give_limits_of_pass_hat_k():
    truth, trials = judged()
    system = measure(trials, ks=[1, 3]).system()
    rate, streak = system.pass_hat(1), system.pass_hat(3)
    assert rate.corrected.labels == 60
    assert truth.mean() not in rate.interval
    assert truth.mean() in rate.corrected.this_suite.interval
    here, similar = rate.corrected.this_suite.interval, rate.corrected.tasks_like_these.interval
    assert similar.low <= here.low
    assert here.high <= similar.high
    assert not streak.corrected.this_suite
    assert streak.corrected.limits.low == here.low**3
    assert streak.corrected.limits.high == here.high


def test_labels_of_whole_tasks_correct_pass_hat_k():
    truth, trials = judged(chosen="task")
    streak = measure(trials, ks=[3]).system().pass_hat(3)
    every = (truth.sum(axis=1) / 6) ** 3
    assert every.mean() in streak.corrected.this_suite.interval


def test_the_screen_shows_the_corrected_number_first_and_the_judges_own_beside_it():
    _, trials = judged()
    report = measure(trials)
    text = " ".join(render(report).split())
    value = report.system().pass_hat(1).corrected.this_suite.value
    assert "Corrected with 60 labels of people." in text
    assert f"pass@1 {100 * value:.1f}%" in text
    assert f"by the judge pass@1 is {100 * report.system().pass_hat(1).value:.1f}%" in text
    assert "Tasks, by the judge: " in text
    assert report.plots.decay().title.startswith("By the judge: ")
    assert "pass^5 lies between" in text


def test_without_labels_no_number_and_no_word_changes():
    _, trials = judged()
    bare = Trials.from_columns(
        task=trials.task.texts(), trial=trials.trial, outcome=trials.outcome.tolist()
    )
    with_labels, without = measure(trials).system(), measure(bare).system()
    assert without.pass_hat(1).corrected is None
    assert with_labels.pass_hat(1).interval == without.pass_hat(1).interval
    assert "orrected" not in headline.verdict(without)


def test_labels_of_trials_that_somebody_picked_correct_nothing():
    _, trials = judged(chosen=None)
    corrected = measure(trials).system().pass_hat(1).corrected
    assert "60 labels do not say how the trial was chosen" in corrected.this_suite.reason
    with pytest.raises(InputError, match="60 labels do not say how the trial was chosen"):
        check_judge(trials)


def test_people_who_do_not_agree_correct_nothing():
    _, trials = judged()
    rng = np.random.default_rng(1)
    both = {
        key: [*own, Label(passed=bool(rng.integers(2)), by="ben", chosen="verdict")]
        for key, own in trials.labels().items()
    }
    corrected = measure(trials.with_labels(both)).system().pass_hat(1).corrected
    assert "people agree too little on the 60 trials" in corrected.this_suite.reason


def test_a_gate_is_decided_by_the_corrected_bound():
    """The verdicts are above the bar, and what people say is not."""
    truth, trials = judged(tasks=60, runs=10, each=100, slips=0.9)
    bar = (truth.mean() + (trials.outcome == 1).mean()) / 2
    by_verdicts = Trials.from_columns(
        task=trials.task.texts(), trial=trials.trial, outcome=trials.outcome.tolist()
    )
    assert gate(by_verdicts, f"pass@1 >= {bar:.3f}").status == "PASS"
    (verdict,) = gate(trials, f"pass@1 >= {bar:.3f}")
    assert verdict.status == "FAIL"
    assert any(f"corrected with {len(trials.labels())} labels" in note for note in verdict.notes)


def test_a_gate_on_pass_hat_k_uses_limits_where_labels_are_single():
    _, trials = judged()
    (verdict,) = gate(trials, "pass^3 >= 0.01")
    assert verdict.status == "PASS"
    assert verdict.method.startswith("labels of people: limits from pass@1")


@pytest.mark.parametrize(("bar", "word"), [(0.01, "PASS"), (0.3, "UNDECIDED"), (0.95, "FAIL")])
def test_limits_are_not_told_as_an_estimate_and_the_screen_says_what_to_label(bar, word):
    """The cube of pass@1 lies within them, and estimates nothing."""
    _, trials = judged()
    verdicts = gate(trials, f"pass^3 >= {bar}")
    (verdict,) = verdicts
    assert verdict.status == word
    screen = " ".join(render(verdicts).split())
    cube = f"{100 * verdict.estimate.value:.1f}%"
    assert cube not in screen
    assert cube not in verdict.sentence
    assert "orrected with 60 labels of people" in screen
    assert "For a number in place of limits label" in screen
    decided = {"PASS": "at least", "UNDECIDED": "between", "FAIL": "at most"}
    assert f"it is {decided[word]} " in screen


def test_the_judge_is_described_with_intervals_and_where_it_errs():
    truth, trials = judged(tasks=60, runs=10, each=150, slips=0.5)
    found = check_judge(trials)
    passed = trials.outcome.reshape(truth.shape) == 1
    assert (~truth[passed]).mean() in found.errors.false_passes.interval
    assert truth[~passed].mean() in found.errors.false_fails.interval
    assert (truth == passed).mean() in found.errors.agreement.interval
    assert len(render(found).splitlines()) <= 12


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_judge_is_told_in_twelve_lines_with_the_confidence_asked_for(confidence):
    _, trials = judged(tasks=60, runs=10, each=150, slips=0.5)
    lines = render(check_judge(trials, confidence=confidence)).splitlines()
    assert len(lines) <= 12
    assert f"{100 * confidence:.0f}% CI" in " ".join(lines)
    assert not any("\u2026" in line for line in lines)


def test_verdicts_that_say_no_more_than_chance_are_called_so():
    truth, verdict = np.arange(200) % 2 == 0, np.arange(200) // 2 % 2 == 0
    labels = [[Label(passed=bool(said), chosen="random")] for said in truth]
    tasks = [f"t{i // 10}" for i in range(200)]
    for said, chance in ((verdict, True), (truth, False)):
        table = Trials.from_columns(task=tasks, passed=said, human_labels=labels)
        assert ("no better than chance" in render(check_judge(table))) == chance


def test_labels_of_every_trial_show_whole_tasks_however_they_were_chosen():
    truth, trials = judged(tasks=14, runs=5, each=100)
    assert len(trials.human_labels.texts()) == truth.size
    assert all(trials.human_labels.texts())
    (system,) = measure(trials, ks=3).systems
    found = system.metrics["pass^3"].corrected
    cubes = [c * (c - 1) * (c - 2) / 60 for c in truth.sum(axis=1)]
    assert found.this_suite.value == pytest.approx(np.mean(cubes))
    few = check_judge(trials)
    assert few.errors.false_passes.runs == int((trials.outcome == 1).sum())


def test_a_judge_that_likes_long_answers_is_found_out():
    rng = np.random.default_rng(2)
    long = rng.random(400) < 0.5
    truth = rng.random(400) < 0.5
    trials = Trials.from_columns(
        task=[f"t{i // 5}" for i in range(400)],
        passed=truth | (long & (rng.random(400) < 0.6)),
        tokens_out=np.where(long, 900.0, 100.0),
        human_labels=[[Label(passed=bool(said), chosen="random")] for said in truth],
    )
    (sentence,) = check_judge(trials).where
    assert sentence.startswith("it passes long answers ")
    assert "points more often than shorter ones that people grade alike [+" in sentence


def two_agents(*, tasks=40, runs=8, each=60, specificity=(0.4, 0.9), chosen="verdict"):
    """Two agents that are alike, one of which the judge likes; the truth, and the trials."""
    rng = np.random.default_rng(4)
    base, whole = rng.beta(3, 2, tasks), rng.permutation(tasks)[:each]
    columns = {name: [] for name in ("system", "task", "trial", "passed", "human_labels")}
    truths = {}
    for name, own in zip(("new", "old"), specificity, strict=True):
        truth = truths[name] = rng.random((tasks, runs)) < base[:, None]
        slips = rng.random(truth.shape) < 1 - own
        verdict = np.where(truth, rng.random(truth.shape) < 0.95, slips)
        read = np.zeros(truth.shape, bool)
        if chosen == "task":
            read[whole] = True
        else:
            for side in (True, False):
                read.flat[rng.permutation(np.flatnonzero(verdict == side))[:each]] = True
        for (i, j), said in np.ndenumerate(truth):
            label = [Label(passed=bool(said), by="ann", chosen=chosen)] if read[i, j] else ()
            for column, value in zip(
                columns.values(), (name, f"t{i:02}", j, bool(verdict[i, j]), label), strict=True
            ):
                column.append(value)
    return truths, Trials.from_columns(**columns)


def test_a_difference_that_only_the_judge_sees_is_gone_from_the_corrected_comparison():
    truths, trials = two_agents()
    found = compare(trials)
    true = truths["new"].mean() - truths["old"].mean()
    rate = found.mean_score
    assert rate.answer("this suite") == "better"
    assert true not in rate.this_suite.interval
    assert true in rate.corrected.this_suite.interval
    assert rate.corrected.labels == (120, 120)
    here, similar = rate.corrected.this_suite.interval, rate.corrected.tasks_like_these.interval
    assert similar.low <= here.low
    assert here.high <= similar.high
    assert found.leniency.interval.low > 0
    text = " ".join(render(found).split())
    assert text.startswith("No clear difference")
    assert "Corrected with 240 labels of people." in text
    assert f"in pass@1 is {100 * rate.value:+.1f} points" in text
    assert "the judge does not treat them alike: it passes new" in text
    assert "pass^3" not in text


def test_agents_whose_judge_gives_scores_are_compared_by_the_rate_that_labels_correct():
    """The mean of a judge's scores has no label; whether a trial passed has."""
    truths, trials = two_agents()
    rng = np.random.default_rng(1)
    passed = trials.outcome == 1
    scores = np.where(passed, rng.uniform(0.7, 1, passed.size), rng.uniform(0, 0.7, passed.size))
    scored = Trials.from_columns(
        system=trials.system.texts(),
        task=trials.task.texts(),
        trial=trials.trial,
        passed=passed,
        score=scores.round(2),
        human_labels=trials.human_labels.texts(),
    )
    found = compare(scored)
    assert found.headline.name == "pass^1"
    assert (
        truths["new"].mean() - truths["old"].mean() in found.headline.corrected.this_suite.interval
    )
    text = " ".join(render(found).split())
    assert text.startswith("No clear difference")
    assert "Corrected with 240 labels of people." in text
    assert "cannot be compared" not in text


def test_a_judge_that_treats_both_alike_is_not_accused():
    _, trials = two_agents(specificity=(0.8, 0.8))
    found = compare(trials)
    assert 0 in found.leniency.interval
    assert "no sign that the judge favours one" in " ".join(render(found).split())


def test_labels_of_whole_tasks_of_both_correct_the_difference_of_pass_hat_k():
    truths, trials = two_agents(chosen="task", each=30)
    found = compare(trials, ks=3)
    true = ((truths["new"].mean(axis=1)) ** 3 - (truths["old"].mean(axis=1)) ** 3).mean()
    assert true in found.headline.corrected.this_suite.interval
    assert "pass^3" in render(found)


def test_labels_of_one_agent_alone_correct_no_difference():
    _, trials = two_agents()
    new = trials.where(system="new")
    old = trials.where(system="old")
    bare = Trials.from_columns(
        system=old.system.texts(), task=old.task.texts(), trial=old.trial, outcome=old.outcome
    )
    found = compare(new, bare)
    assert found.mean_score.corrected is None
    assert found.leniency is None
    assert "orrected" not in render(found)


def test_a_gate_on_a_change_is_decided_by_the_corrected_difference():
    """By the judge it is no worse; by people that is not shown."""
    _, trials = two_agents(each=40)
    new, old = trials.where(system="new"), trials.where(system="old")
    verdict, *_ = gate(new, against=old, margin=0.02)
    assert verdict.status == "UNDECIDED"
    assert verdict.method.startswith("labels of people")
    assert verdict.more_runs is None
    assert "more labels of both would decide it" in verdict.sentence
    assert any("corrected with 160 labels of people" in note for note in verdict.notes)


def test_a_ranking_goes_by_what_people_would_have_graded():
    """The judge puts the agent that it likes alone at the top; people see no difference."""
    _, trials = two_agents(each=80, specificity=(0.2, 0.95))
    found = rank(trials)
    assert [one.name for one in found.systems] == ["new", "old"]
    assert [one.ranks for one in found.systems] == [(1, 1), (2, 2)]
    assert {one.ranks for one in found.corrected.systems} == {(1, 2)}
    assert found.corrected.tie_bands[0] == tuple(one.name for one in found.corrected.systems)
    text = " ".join(render(found).split())
    assert text.startswith("All 2 are tied")
    assert f"Corrected with {found.corrected.labels} labels of people." in text
    assert "by the judge's verdicts new is first" in text


def test_no_page_or_picture_ranks_by_the_judge_what_people_grade_alike(tmp_path):
    """By the judge new is 20 points ahead."""
    _, trials = two_agents()
    for result in (measure(trials), rank(trials), compare(trials)):
        result.save(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert "Corrected with 240 labels of people." in page
        for words in ("new leads", "new has the highest", "new stands alone", "new is better"):
            assert words not in page
        for words in ("are tied", "none is called the leader", "No clear difference"):
            if words in page:
                break
        else:
            pytest.fail("the page does not say that nobody is ahead")
    curves = measure(trials).plots.curves()
    assert curves.title.startswith("By the judge: ")


def test_a_ranking_of_agents_with_too_few_labels_stays_and_says_so():
    _, trials = two_agents(each=4)
    found = rank(trials)
    assert found.corrected is None
    assert "labels of people do not correct the ranking yet: label 6 more trials" in " ".join(
        render(found).split()
    )


def test_a_point_of_a_trend_has_the_corrected_number_of_its_own_trials():
    truth, trials = judged()
    side = SystemTrials.of(trials)
    runs = [
        CountedRun(
            key=key, label=key, started=f"2026-11-{day}", tallies=[trials.tally()], labels=own
        )
        for key, day, own in (("a", 10, {}), ("b", 11, {trials.systems[0]: side.labels}))
    ]
    (trend,) = trends(runs, k=1)
    before, after = trend.points
    assert before.corrected == {}
    assert after.labels == 60
    assert truth.mean() in after.corrected["pass^1"].interval
    assert after.metrics["pass^1"] == before.metrics["pass^1"]
    text = " ".join(render(trend).split())
    assert f"{100 * after.corrected['pass^1'].value:.1f}%" in text
    assert f"{100 * before.metrics['pass^1'].value:.1f}%" in text
    assert "(60 labels). Changes are of the judge's verdicts: those that people" in text


def labelled_runs(judges, rates, *, tasks=20, runs=10, labels=60):
    """Runs of one agent, each with its judge's sensitivity and false passes, and its pass rate."""
    rng = np.random.default_rng(7)
    found = []
    for day, ((right, wrong), rate) in enumerate(zip(judges, rates, strict=True), start=1):
        truth = rng.random(tasks * runs) < rate
        verdict = rng.random(truth.size) < np.where(truth, right, wrong)
        sides = [rng.permutation(np.flatnonzero(verdict == side))[: labels // 2] for side in (1, 0)]
        said = [None] * truth.size
        for row in np.concatenate(sides):
            said[row] = [Label(passed=bool(truth[row]), chosen="verdict")]
        trials = Trials.from_columns(
            task=[f"t{i // runs}" for i in range(truth.size)], passed=verdict, human_labels=said
        )
        own = {trials.systems[0]: SystemTrials.of(trials).labels}
        found.append(CountedRun(key=f"r{day}", label=f"r{day}", started=f"2026-11-{day:02}",
                                tallies=[trials.tally()], labels=own))  # fmt: skip
    return found


STRICT, LENIENT = (0.7, 0.05), (0.95, 0.4)


def test_a_judge_that_changed_is_no_change_of_the_agent():
    history = labelled_runs([LENIENT] * 9 + [STRICT] * 3, [0.7] * 12)
    (trend,) = trends(history, k=1)
    assert trend.newest_change is not None
    assert trend.graded.newest is None
    first, *_ = render(trend).splitlines()
    assert first.startswith("No change in pass@1 as people grade it shown over 12 labelled runs")
    assert "By the judge's verdicts pass@1 fell" in " ".join(render(trend).split())
    (verdict,) = judge_agents(history)
    assert "As people grade it: no change shown." in verdict.sentence


def test_an_agent_that_rose_under_a_stricter_judge_is_said_to_have_risen():
    """The share that the judge passes falls from .65 to .40."""
    history = labelled_runs([LENIENT] * 6 + [(0.5, 0.0)] * 6, [0.45] * 6 + [0.8] * 6)
    (verdict,) = judge_agents(history)
    assert verdict.movement != "rose"
    assert "As people grade it: it rose." in verdict.sentence


def test_a_fall_that_a_lenient_judge_hides_is_seen_by_people():
    """The share that it passes is .785 before the fall and .78 after it."""
    history = labelled_runs([(0.95, 0.4)] * 4 + [(1.0, 0.6)] * 4, [0.7] * 4 + [0.45] * 4)
    (trend,) = trends(history, k=1)
    assert trend.newest_change is None
    assert (trend.graded.newest.direction, trend.graded.newest.position) == ("down", 4)
    assert "pass@1 as people grade it fell on 5 Nov (run r5)" in " ".join(render(trend).split())
    (verdict,) = judge_agents(history)
    assert verdict.fell
    assert "pass@1 as people grade it fell on 5 Nov from" in verdict.sentence
    newest = history[-1].tallies[0]
    assert (verdict.k, verdict.value) == (1, pytest.approx(sum(newest.passed) / newest.trials))
    (accepted,) = judge_agents(history, accepted=["r6"])
    assert not accepted.fell
    kept = msgspec.json.decode(msgspec.json.encode(KeptTrend.of(trend)), type=KeptTrend)
    assert kept.trend.graded == trend.graded


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    ("judges", "rates"),
    [
        ([LENIENT] * 6 + [STRICT] * 3, [0.7] * 9),
        ([LENIENT] * 4 + [(1.0, 0.6)] * 4, [0.7] * 4 + [0.45] * 4),
        ([LENIENT] * 5 + [(0.5, 0.0)] * 5, [0.45] * 5 + [0.8] * 5),
        ([LENIENT] * 6, [0.8] * 6),
    ],
    ids=["only the judge", "only people", "opposite", "neither"],
)
def test_screen_page_picture_and_data_say_the_same_of_a_change(judges, rates, k):
    (trend,) = trends(labelled_runs(judges, rates), k=k)
    answer = TrendAnswer((trend,))
    said = trend_headline((trend,))
    assert " ".join(render(trend).split()).startswith(said)
    assert answer.page(DisplayOptions())["headline"] == said
    assert sentences(trend) == [said]
    (view,) = answer.page(DisplayOptions())["systems"]
    (beside,) = view.sentences  # the number as people grade it, and what the judge's verdicts show
    assert beside.startswith("pass@1 corrected with labels of people")
    assert view.title == "" or view.title.startswith("By the judge's verdicts")
    change = trend.change
    assert (change is None) == said.startswith("No change")
    assert (change is None) == (view.figure.title.count("no change") == 1)
    if change is not None:
        before, after = (f"{100 * one:.0f}%" for one in trend.graded_levels(trend.graded, change))
        assert f"{before} before, {after} since" in said
        assert f"from {before} to {after}" in view.figure.title
    moved = [words for _, words in answer.facts() if words.startswith("tasks moved")]
    agree = change and trend.newest_change and change.direction == trend.newest_change.direction
    assert bool(moved) == bool(agree)


def test_each_run_shows_what_people_say_before_what_the_judge_says():
    """A run without labels has no number of people, and never the judge's in its place."""
    history = labelled_runs([LENIENT] * 5, [0.7] * 5)
    history[2] = replace(history[2], labels={})
    (trend,) = trends(history, k=3)
    rows = {line.split()[2]: line.split()[3:5] for line in render(trend).splitlines()
            if " Nov  r" in line}  # fmt: skip
    for point in trend.points:
        people, judge = rows[point.label]
        own = point.corrected.get("pass^1")
        assert people == ("-" if own is None else f"{100 * own.value:.1f}%")
        assert judge == f"{100 * point.metrics['pass^3'].value:.1f}%"
    assert rows["r3"][0] == "-"


# Without labels, what rests on a judge says so.


def graded_trials(system="bot", rate=0.7, *, seed=0, by_judge=True):
    rng = np.random.default_rng(seed)
    notes = (f"run x: {GRADED_BY_JUDGE}",) if by_judge else ()
    return Trials.from_columns(
        task=[f"t{i // 8}" for i in range(96)],
        passed=rng.random(96) < rate,
        system=[system] * 96,
        sources=[Source(name="log", format="csv", sha256="", notes=notes)],
    )


@pytest.mark.parametrize("by_judge", [True, False])
def test_every_answer_that_rests_on_a_judge_without_labels_says_so_once(by_judge):
    agents = (("a", 0.7), ("b", 0.6), ("c", 0.5))
    one, other, third = (
        graded_trials(name, rate, seed=i, by_judge=by_judge)
        for i, (name, rate) in enumerate(agents)
    )
    runs = [
        CountedRun(key=key, label=key, started=f"2026-11-0{day}", tallies=[one.tally()])
        for day, key in enumerate(("x", "y"), 1)
    ]
    gates = ["pass@1 >= 0.5", "pass^3 >= 0.1"]
    for answer in (
        measure(one),
        compare(one, other),
        rank(Trials.concat([one, other, third])),
        judge(one, gates[:1]),
        judge(one, gates),
        judge(one, "no_worse_than b by 0.3", baseline={"b": other}),
        trends(runs)[0],
    ):
        said = " ".join(render(answer).split())
        assert said.count("`passhat label`") == by_judge, said
        assert said.lower().count("judge graded") + said.lower().count("by a judge") == by_judge
