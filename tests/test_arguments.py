"""A wrong argument of a public function is one sentence: its name, the rule, and what came."""

import re

import pytest

import passhat
from passhat.analysis.gates.judge import judge
from passhat.errors import ArgumentError
from passhat.records import Behaviour, Model, ModelSystem, Pairing, Suite, Task

pytestmark = pytest.mark.usefixtures("few_suites_drawn")

TRIALS = passhat.simulate(tasks=6, runs=5, rate={"old": 0.6, "new": 0.8}, seed=3)
NEW = TRIALS.where(system="new")
REPORT = passhat.report(NEW)
_AGENT = ModelSystem(name="agent", model=Model(name="scripted", script=(Behaviour(answer="4"),)))
SUITE = Suite(
    name="sums",
    pairings=(Pairing(system=_AGENT, task=Task(name="sum", prompt="2 + 2?"), runs=3, label="sum"),),
)

OF_ONE_AGENT = [
    passhat.report,
    lambda trials, only: passhat.gate(trials, "pass@1 >= 0.1", only=only),
    passhat.profile_results,
    passhat.plan,
    lambda trials, only: passhat.plan_gates("pass@1 >= 0.1", trials, only=only),
]
OF_SEVERAL = [passhat.rank_results, passhat.compare]
WRONG = [
    (lambda: passhat.pass_hat_k(NEW, 5), "passhat.report(trials).pass_hat(5)"),
    (lambda: passhat.pass_hat_k(NEW, k=5), "passhat.report(trials).pass_hat(5)"),
    (lambda: passhat.pass_at_k(NEW, 5), "passhat.report(trials).pass_at(5)"),
    (lambda: passhat.stats.icc(NEW), "passhat.report(trials).system().variance.icc"),
    (lambda: passhat.stats.variance_components(NEW), "passhat.report(trials).system().variance"),
    (lambda: passhat.pass_hat_k(5, 5), "k must be given: pass_hat_k(runs, passes, k)"),
    (lambda: passhat.stats.icc([5, 5]), "total must be given after n"),
    (lambda: passhat.read_trials(b"x", pas_if="score>1"), "(did you mean pass_if?), got 'pas_if'"),
    (lambda: passhat.report(None), "results must be trials, a data frame, paths or names of runs"),
    (lambda: passhat.report([3]), "results must be trials, a data frame, paths or names of runs"),
    (lambda: passhat.profile_results(TRIALS, only="new", against=3), "against must be trials"),
    (lambda: passhat.rank_results(TRIALS, by=3), "by must be mean_score, pass^k"),
    (lambda: passhat.plan(spending=5), "spending must be Spending(...)"),
    (lambda: passhat.plan_gates([]), "require must hold at least one demand"),
    (lambda: passhat.plan_gates("pass@1 >= 0.1", icc=2), "icc must lie in [0, 1]"),
    (lambda: passhat.gate(NEW, 3), "gate must be a sentence such as"),
    (lambda: passhat.gate(NEW, against=3), "against must be trials, a path"),
    (lambda: passhat.gate(NEW, against=NEW, margin=3), "margin must lie in [0, 1]"),
    (lambda: passhat.gate(NEW, suite=3), "suite must be a Suite or the path"),
    (lambda: passhat.why("x.csv", {}), "transcripts must be left out with files"),
    (lambda: passhat.diff_trials(NEW, "task-1"), "results must be paths or names of runs"),
    (lambda: passhat.trend(NEW), "suite must be the name of a suite whose runs are stored"),
    (lambda: passhat.store_results(NEW), "suite must name the suite of trials"),
    (lambda: passhat.store_results("x", started="soon"), "started must be a time such as 2026-"),
    (lambda: passhat.trend("s", store=3), "store must be the path of a store"),
    (lambda: passhat.run(3), "suite must be a Suite or the path of a suite file"),
    (lambda: passhat.run(SUITE, runs=0), "runs must be a whole number >= 1, got 0"),
    (lambda: passhat.run(SUITE, runs="5"), "runs must be a whole number >= 1, got '5'"),
    (lambda: passhat.run(SUITE, seed=-1), "seed must be a whole number >= 0, got -1"),
    (lambda: passhat.run(SUITE, max_cost=-1), "max_cost must be a number above 0, got -1"),
    (lambda: passhat.run(SUITE, max_minutes="x"), "max_minutes must be a number above 0"),
    (
        lambda: passhat.run(SUITE, coverage_threshold=3),
        "coverage_threshold must lie in [0, 1]",
    ),
    (lambda: passhat.run(SUITE, until_settled="no"), "until_settled must be True or False"),
    (lambda: passhat.run(SUITE, cassette="recrd"), "cassette must be one of record"),
    (lambda: passhat.run(SUITE, only=3), "only must be a name or a list of names"),
    (lambda: passhat.run(SUITE, require=3), "require must be a demand such as"),
    (lambda: passhat.run(SUITE, executor="cloud"), "executor must be one of local, workers"),
    (lambda: passhat.run(SUITE, workers=0), "workers must be a whole number >= 1"),
    (lambda: passhat.run(SUITE, on_event=3), "on_event must be a function"),
    (lambda: passhat.plan_run(SUITE, runs=0), "runs must be a whole number >= 1, got 0"),
    (lambda: passhat.resume_run(runs=0), "runs must be a whole number >= 1, got 0"),
    (lambda: passhat.repeat([]), "command must name a program"),
    (lambda: passhat.repeat("echo 'a"), "command must be words that a shell understands"),
    (lambda: passhat.repeat(["true", 3]), "command must be a command such as"),
    (lambda: passhat.repeat("true", outcome="x"), "outcome must be one of auto, exit"),
    (lambda: passhat.repeat("true", timeout=0), "timeout must be a number above 0"),
    (lambda: passhat.repeat("true", least=3), "least must lie in [0, 1]"),
    (lambda: passhat.assert_reliable(3), "function must be a function"),
    (lambda: passhat.assert_reliable(lambda: True, runs=0), "runs must be a whole number >= 1"),
    (lambda: judge(NEW, None), "gate must be a sentence such as"),
    (lambda: judge(NEW, "pass@1 >= 0.1", baseline="x"), "baseline must be Trials"),
    (lambda: passhat.profile(NEW, "x"), "reference must be Trials or a list of Tally"),
    (lambda: passhat.simulate(world=3), "world must be SimulationModel(...)"),
    (lambda: passhat.simulate(tasks="5"), "tasks must be a whole number >= 1, got '5'"),
    (lambda: passhat.targets("x"), "report must be a report"),
    (lambda: passhat.parse_gate(3), "gate must be a sentence such as"),
    (lambda: passhat.report(NEW, bars={"task-01": 0.5}), "(did you mean task-1?), got 'task-01'"),
    (lambda: passhat.write_trials(NEW, 3), "path must be a path"),
    (lambda: passhat.weight_by_traffic(NEW, 3), "shares must be shares by group"),
    (lambda: passhat.load_suite(3), "path must be the path of a suite file"),
    (lambda: passhat.run_trials(3), "suite must be a Suite"),
    (lambda: passhat.determinism_check(3), "make must be a function"),
    (lambda: passhat.seed_agreement(3), "trials must be Trials"),
    (lambda: passhat.Trials.from_records(3), "records must be Trial objects or dicts"),
    (lambda: passhat.Trials.concat(3), "tables must be a list of Trials"),
    (lambda: NEW.take([999]), "rows must be a mask of 30 rows, or their indices"),
    (lambda: passhat.render(REPORT, "markdwn"), "(did you mean markdown?), got 'markdwn'"),
]


@pytest.mark.parametrize("function", OF_ONE_AGENT)
def test_one_agent_is_a_text_or_a_list_of_one(function):
    assert repr(function(TRIALS, only="new")) == repr(function(TRIALS, only=["new"]))


@pytest.mark.parametrize("function", OF_ONE_AGENT + OF_SEVERAL)
def test_an_agent_that_is_not_there_is_refused_by_its_whole_name(function):
    with pytest.raises(ArgumentError, match=r"only must be one of old, new \(did you mean new\?\)"):
        function(TRIALS, only="nw")
    with pytest.raises(ArgumentError, match="only must be a name or a list of names, got 3"):
        function(TRIALS, only=3)


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_argument_is_named_with_its_rule_and_what_came(
    call, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: passhat.run(SUITE, run=3), r"run\(\).*'run' \(did you mean runs\?\)"),
        (lambda: passhat.plan_run(SUITE, runz=3), r"plan_run\(\).*'runz' \(did you mean runs\?\)"),
        (lambda: passhat.resume_run(max_csot=3), r"resume_run\(\).*\(did you mean max_cost\?\)"),
        (lambda: passhat.plan(taks=3), r"plan\(\).*\(did you mean tasks\?\)"),
        (lambda: passhat.render(REPORT, verbos=True), r"render\(\).*\(did you mean verbose\?\)"),
    ],
)
def test_a_misspelt_keyword_is_refused_by_the_function_that_was_called(call, meant):
    with pytest.raises(TypeError, match=meant):
        call()


def test_a_misspelt_public_name_tells_python_which_was_meant():
    with pytest.raises(AttributeError, match="has no attribute 'reprot_results'") as caught:
        passhat.reprot_results  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("reprot_results", passhat)


def test_the_calls_that_refusals_of_trials_name_are_there():
    calls = {
        word for _, said in WRONG for word in re.findall(r"passhat\.report\(trials\)\S+", said)
    }
    assert len(calls) == 4
    for call in calls:
        assert eval(call, {"passhat": passhat, "trials": NEW}) is not None  # our own words


@pytest.mark.parametrize(
    "call",
    [
        lambda **trials: passhat.simulate(tasks=2, **trials),
        lambda **trials: passhat.plan(tasks=5, **trials),
        lambda **trials: passhat.assert_reliable(lambda: True, "pass@1 >= 0.5", **trials),
    ],
    ids=["simulate", "plan", "assert_reliable"],
)
def test_trials_are_counted_by_the_word_of_screens_and_by_the_old_one(call):
    assert repr(call(trials=9)) == repr(call(runs=9))
    with pytest.raises(TypeError, match="takes trials or runs, not both"):
        call(trials=9, runs=9)


def test_a_run_takes_the_words_of_its_options(tmp_path):
    (tmp_path / "suite.yml").write_text(
        "name: s\ndefaults: {model: scripted, runs: 2}\n"
        "agents: [{name: a, prompt: hi, expect: [{contains: x}], script: [{answer: x}]}]\n"
    )
    done = passhat.run(
        tmp_path / "suite.yml", trials=80, until_decided=True, require="pass@1 >= 0.5", store=None
    )
    assert done.outcome == "passed"
    assert len(done.trials) < 80
