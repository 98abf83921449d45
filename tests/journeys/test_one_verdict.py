"""What is said of a run is one sentence, and it is the same wherever the run is shown."""

import re
from html import unescape

import numpy as np
import pytest
from bench.calibrate.overview import FALLS, simulate
from click.testing import CliRunner

from passhat.analysis.comparing.trends import AgentVerdict, RunDifference, RunVerdict
from passhat.analysis.gates.run_answer import ChangeReview
from passhat.cli import main
from passhat.dataclass import replace
from passhat.history import History
from passhat.ingest.write import render_csv
from passhat.journeys import Results, report
from passhat.journeys.stored_runs import (
    keep_answers,
    numbers_basis,
    verdict_basis,
    verdict_of_results,
    verdict_on,
)
from passhat.records import Outcome, Trial
from passhat.records.labels import Label
from passhat.reporters import render
from passhat.stats.estimate import Interval

TRIALS = 6


@pytest.fixture(scope="module", params=["fell", "steady"])
def store(request, tmp_path_factory):
    """Eight days of an agent; on the last one a fifth of its tasks may have stopped passing."""
    path = tmp_path_factory.mktemp("verdicts") / "history.db"
    fall = FALLS[1] if request.param == "fell" else None
    days = simulate(np.random.default_rng(2), 20, TRIALS, 8, fall=fall, day=7)
    with History.open(path) as history:
        for day, passes in enumerate(days):
            run = history.start_run("suite", started=f"2026-11-0{day + 1}T09:00:00.000+00:00")
            history.add_trials(
                run,
                [
                    Trial(
                        system="agent",
                        task=f"task-{task:02}",
                        trial=trial,
                        outcome=Outcome.PASSED if trial < passed else Outcome.FAILED,
                    )
                    for task, passed in enumerate(passes.tolist())
                    for trial in range(TRIALS)
                ],
            )
            history.finish_run(run)
    return path


@pytest.fixture(scope="module")
def verdict(store):
    with History.open(store, read_only=True) as history:
        return verdict_on(history, history.runs()[0])


def words(text):
    """Text on one line, without markup; a link is no seam between words."""
    text = re.sub(r"</?a\b[^>]*>", "", text)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def said(store, *arguments):
    done = CliRunner().invoke(main, [*map(str, arguments), "--store", str(store)])
    assert done.exit_code in (0, 1, 4), done.output
    return words(done.output)


def says_once(trend, agent):
    """Whether a trend has every clause of a verdict, and none that its headline has said."""
    told = words(replace(agent, in_headline=True).sentence)
    moved = re.search(r"(fell|rose) on \d+ \w+", agent.answer)
    above = moved[0] if moved else "o change in pass^"
    whole = words(agent.sentence)
    if whole in trend and whole != told:  # its headline is about another agent or change
        return not moved or above not in trend.split(". ")[0]
    return told in trend and words(above) in trend


def test_its_sentence_has_the_questions_in_it(verdict):
    (agent,) = verdict.agents
    assert agent.sentence.startswith("Against the 7 runs before: ")
    assert re.search(r"Against the run of 7 Nov \(\w+\) alone: ", agent.sentence)


def test_every_screen_has_the_same_sentence(store, verdict, tmp_path):
    with History.open(store, read_only=True) as history:
        newest, before = (run.key for run in history.runs()[:2])
    assert verdict.sentence in said(store, "report", newest)
    assert verdict.sentence in said(store, "compare", newest, before)
    page, badge = tmp_path / "report.html", tmp_path / "x.badge.svg"
    said(store, "report", newest, "-o", page, "-o", badge)
    assert verdict.sentence in words(page.read_text())
    assert verdict.sentence in words(badge.read_text())


def test_what_holds_for_every_agent_of_a_run_is_said_once():
    steady = [
        AgentVerdict(
            system=name,
            k=3,
            movement="steady",
            runs_before=4,
            value=0.5,
            alone=RunDifference(
                run="0e92c6a6",
                started="2026-11-07T09:00:00.000+00:00",
                baseline=False,
                interval=Interval(-high, high),
                k=3,
            ),
        )
        for name, high in (("quick", 0.14), ("thorough", 0.29))
    ]
    said = RunVerdict(run="9601deba", agents=tuple(steady)).sentence
    assert said == (
        "Against the 4 runs before: no change shown. Against the run of 7 Nov (0e92c6a6) alone: "
        "too few trials to tell (pass^3: quick -14 to +14, thorough -29 to +29 points)."
    )
    one_run = RunVerdict(run="9601deba", agents=tuple(replace(a, runs_before=1) for a in steady))
    assert one_run.sentence == said[said.index("Against the run") :]
    differs = (steady[0], replace(steady[1], runs_before=5))
    own = [f"{agent.system}: {agent.sentence}" for agent in differs]
    assert RunVerdict(run="9601deba", agents=differs).sentence == " ".join(own)


WORLDS = {
    "plain": {},
    "a fall": {"fall": 0.5},
    "two agents, of which one fell": {"agents": ("calm", "falling"), "fall": 0.5},
    "people label": {"labels": True},
    "people label, and a fall": {"labels": True, "fall": 0.5},
    "a gate that holds": {"gates": ["pass^1 >= 0.2"]},
    "a gate that stays undecided": {"gates": ["pass^1 >= 0.8"]},
    "gates that fail, and a fall": {"gates": ["pass^3 >= 0.95", "pass^1 >= 0.2"], "fall": 0.5},
    "factors": {"conditions": ("user=terse", "user=rude")},
    "factors and a fall": {"conditions": ("user=terse", "user=rude"), "fall": 0.5},
    "errors": {"errors": 0.1},
    "a baseline": {"baseline": 1, "fall": 0.3},
    "the first run": {"days": 1},
    "the second run": {"days": 2},
    "names to be escaped": {"agents": ("<b>\u202egpt & co</b>",), "fall": 0.5},
}


def simulated(path, seed, *, agents=("agent",), days=6, fall=0.0, labels=False, gates=(),
              conditions=(), errors=0.0, baseline=None):  # fmt: skip
    """A history whose last day may be worse, for the last agent."""
    rng = np.random.default_rng(seed)
    rates = {f"task-{i}": rate for i, rate in enumerate(rng.beta(5, 1.5, 12))}
    with History.open(path) as history:
        for day in range(days):
            started = f"2026-11-{day + 1:02}T09:00:00.000+00:00"
            run = history.start_run("suite", started=started, options={"gates": list(gates)})
            trials = []
            for agent in agents:
                worse = fall if agent == agents[-1] and day == days - 1 else 0.0
                for task, rate in rates.items():
                    for at in conditions or (None,):
                        for trial in range(6):
                            passed = rng.random() < max(rate - worse, 0.0)
                            errored = rng.random() < errors
                            trials.append(
                                Trial(
                                    system=agent,
                                    task=task if at is None else f"{task} {at}",
                                    base=None if at is None else task,
                                    at=() if at is None else (at,),
                                    trial=trial,
                                    outcome=Outcome.ERRORED if errored else Outcome(int(passed)),
                                )
                            )
            history.add_trials(run, trials)
            run = history.finish_run(run)
            if labels:
                read = rng.choice(len(trials), size=50, replace=False)
                history.add_labels(
                    run,
                    {
                        trials[i].key: [
                            Label(
                                passed=(trials[i].outcome is Outcome.PASSED)
                                != (rng.random() < 0.1),
                                by="ann",
                                chosen="random",
                            )
                        ]
                        for i in read
                    },
                )
            if day == baseline:
                history.tag(run, "baseline")
    return path


@pytest.mark.slow("fifteen histories on each of twelve screens, pages and files")
@pytest.mark.parametrize("world", WORLDS)
def test_whatever_the_history_all_say_the_same(world, serve_site, tmp_path):
    store = simulated(tmp_path / "history.db", sorted(WORLDS).index(world), **WORLDS[world])
    with History.open(store) as history:
        runs = [run.key for run in history.runs()]
        said_of_it = keep_answers(history, history.runs()[0])
    newest, agents = runs[0], [one.system for one in said_of_it.agents]
    # Of a first run, which has nothing to be compared with, a screen says nothing.
    compared = [one for one in said_of_it.agents if one.movement != "first"]
    sentences = [words(one.sentence) for one in compared]
    assert bool(sentences) == (len(runs) > 1)
    page, badge = tmp_path / "report.html", tmp_path / "x.badge.svg"
    said(store, "report", newest, "-o", page, "-o", badge)
    results = Results(paths=(newest,), store=store)
    review = ChangeReview(report=report(results), run_verdict=verdict_of_results(results))
    site = serve_site(store)

    def shown(address):
        status, _, body = site.get(address)
        assert status == 200, address
        return words(body)

    places = {
        "terminal": said(store, "report", newest),
        "page": words(page.read_text()),
        "badge": words(badge.read_text()),
        "pull request": words(render(review, "markdown")),
        "overview": shown("/"),
        "run": shown(f"/run/{newest}"),
        "saved page": shown(f"/run/{newest}/page"),
        "live": shown(f"/run/{newest}/live"),
        "trend": shown("/trend?suite=suite"),
    }
    assert [one for one in compared if not says_once(said(store, "trend"), one)] == []
    if len(runs) > 1:
        places |= {
            "compare": " ".join(
                said(store, "compare", newest, runs[1], "--only", agent) for agent in agents
            ),
            "compare page": shown(f"/compare?run={newest}&run={runs[1]}"),
        }
    for place, text in places.items():
        assert [one for one in sentences if one not in text] == [], place
    assert ("▼" in places["overview"]) == said_of_it.fell
    worst = min(said_of_it.agents, key=lambda one: not one.fell)
    listed = shown("/runs")
    assert words(worst.words) in listed
    assert ("Gate failed" in listed) == ("FAIL" in dict(said_of_it.gates))
    assert ("Gate undecided" in listed) == ({word for word, _ in said_of_it.gates} == {"UNDECIDED"})
    for word, sentence in said_of_it.gates:
        for place in ("page", "run", "saved page", "live"):
            assert f"{word} {words(sentence)}" in places[place], place
        assert (words(sentence) in places["overview"]) == (word != "PASS")


def test_a_trend_opens_with_what_the_verdict_on_its_newest_run_says_fell(
    store, verdict, serve_site, tmp_path
):
    (agent,) = verdict.agents
    said(store, "trend", "suite", "-o", tmp_path / "trend.html")
    pages = [(tmp_path / "trend.html").read_text(), serve_site(store).get("/trend?suite=suite")[2]]
    heads = [words(re.search(r'class="h1">(.*?)</h[12]>', page)[1]) for page in pages]
    for answer in (said(store, "trend", "suite"), *heads):
        begins = agent.answer if agent.fell else "No change in pass^5 shown"
        assert answer.startswith(begins.partition(" (")[0] if answer in heads else begins)
    for page in pages:  # the sentence says in which tasks
        assert words(page).count(verdict.sentence) == 1


def test_a_trend_says_once_what_its_newest_run_shows(store, verdict):
    (agent,) = verdict.agents
    answer = said(store, "trend", "suite")
    assert says_once(answer, agent)
    assert answer.count(agent.alone.sentence) == 1
    everything = said(store, "trend", "suite", "-v")
    assert (agent.answer if agent.fell else "no change in pass^5") in everything
    assert everything.count(agent.alone.sentence) == 1


def test_a_trend_of_another_k_says_nothing_of_the_k_of_the_run(store, verdict):
    asked = said(store, "trend", "suite", "--k", "2")
    assert f"pass^{verdict.agents[0].k}" not in asked
    assert "pass^2" in asked
    assert "Against the" not in asked


def test_every_page_of_the_dashboard_has_the_same_sentence(store, verdict, serve_site):
    site = serve_site(store)
    with History.open(store, read_only=True) as history:
        newest, before = (run.key for run in history.runs()[:2])
    compared = f"/compare?run={newest}&run={before}"
    for address in ("/", f"/run/{newest}", compared, "/trend?suite=suite"):
        status, _, body = site.get(address)
        assert status == 200
        assert verdict.sentence in words(body), address


def test_two_agents_that_did_not_move_have_one_sentence_on_every_page(tmp_path, serve_site):
    store = simulated(tmp_path / "history.db", 5, agents=("calm", "quiet"), days=4)
    with History.open(store, read_only=True) as history:
        said_of_it = verdict_on(history, history.runs()[0])
    assert len({one.movement for one in said_of_it.agents}) == 1
    site = serve_site(store)
    for address in ("/", f"/run/{said_of_it.run}", "/trend?suite=suite"):
        assert words(site.get(address)[2]).count(said_of_it.sentence) == 1, address


def test_a_movement_has_the_same_sign_on_every_page(store, verdict, serve_site):
    (agent,), site = verdict.agents, serve_site(store)
    label = f"{'▼' if agent.fell else '='} {agent.words}"
    for address in ("/", f"/run/{verdict.run}", f"/run/{verdict.run}/page"):
        assert label in words(site.get(address)[2]), address


def test_the_comment_on_a_pull_request_has_the_same_sentence(store, verdict):
    results = Results(paths=("latest",), store=store)
    review = ChangeReview(report=report(results), run_verdict=verdict_of_results(results))
    comment = render(review, "markdown")
    assert verdict.sentence in words(comment)
    # The tasks that fail most often come first, whatever their label.
    rows = re.findall(r"^\| (task-\d+) \|.*?\| (\d)/6 \|", comment, re.MULTILINE)
    assert [int(passed) for _, passed in rows] == sorted(int(passed) for _, passed in rows)
    lowest = min(row.passed for row in review.report.systems[0].tasks)
    assert int(rows[0][1]) == lowest


def test_what_is_kept_is_derived_anew_when_its_basis_changes(store):
    with History.open(store) as history:
        newest, before = history.runs()[:2]
        keep_answers(history, newest)
        kept = verdict_on(history, newest)
        assert kept.agents[0].alone.run == before.key
        history.tag(history.runs()[3], "baseline")
        tagged = verdict_on(history, newest)
        assert tagged.agents[0].alone.run == history.find_run("baseline").key
        assert re.search(r"Against the baseline of 5 Nov \(\w+\) alone: ", tagged.sentence)
        with history.writing():
            history.database.execute("DELETE FROM tags")
        assert verdict_on(history, newest) == kept


def test_an_answer_that_was_altered_in_the_store_is_derived_anew(store):
    with History.open(store) as history:
        newest = history.runs()[0]
        kept = verdict_on(history, newest)
        with history.writing():
            history.database.execute("UPDATE kept SET body = ? WHERE kind = ?", (b"{}", "verdict"))
        assert verdict_on(history, newest) == kept


def test_results_that_are_stored_as_a_run_are_judged_at_once(store, verdict, tmp_path):
    log, copy = tmp_path / "night.csv", tmp_path / "history.db"
    copy.write_bytes(store.read_bytes())
    with History.open(copy) as history:
        newest = history.runs()[0]
        log.write_text(render_csv(history.trials(newest)))
        history.delete(newest)
    when = ["--suite", "suite", "--started", "2026-11-08T09:00:00+00:00", "--name", "agent"]
    printed = said(copy, "history", "add", log, *when)
    with History.open(copy, read_only=True) as history:
        again = history.runs()[0]
        assert history.kept(again, "verdict", repr(verdict_basis(history, again))) is not None
        assert verdict_on(history, again).sentence in printed
    assert verdict.of("agent").answer in printed


def test_a_run_keeps_what_the_front_page_shows_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passhat.yml").write_text(
        "name: small\nagents: [{name: a, model: scripted, prompt: hi, runs: 2, "
        "expect: [{contains: x}], script: [{answer: x}]}]\n"
    )
    assert CliRunner().invoke(main, ["run", "--store", "h.db"]).exit_code == 0
    with History.open("h.db", read_only=True) as history:
        (run,) = history.runs()
        assert history.kept(run, "numbers", repr(numbers_basis(run))) is not None
        assert history.kept(run, "verdict", repr(verdict_basis(history, run))) is not None
