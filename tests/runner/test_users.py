"""Simulated users: every agent hears them, the task ends the conversation, rules find faults."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.errors import CassetteError
from passhat.records import (
    Behaviour,
    Budget,
    CassetteSettings,
    CommandSystem,
    Expectation,
    HttpSystem,
    Model,
    ModelParameters,
    ModelSystem,
    Outcome,
    Prices,
    PythonSystem,
    Scenario,
    Task,
    TokenUsage,
    Trials,
    User,
)
from passhat.records.trial import USER_FLAGS
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.cassettes import open_cassettes
from passhat.runner.models.exchange import Reply
from passhat.runner.users import FINISHED, asks, gave_in, instructions, leaked, made_up
from passhat.testing import WireServer

WANTS = Scenario(
    goal="Get your money back for order 7, which came two weeks late.",
    facts={"order": "7", "email": "ana@example.org"},
    if_asked=("email",),
    never=("store credit",),
)
DONE = Expectation(matcher="contains", value="refunded")
PLAIN = User(name="plain", say=("My order came late.", "Order 7.", "ana@example.org"))

ECHO = """
import json, os, sys
asked = json.load(open(os.environ["PASSHAT_TASK_FILE"]))
said = [m["content"] for m in asked["history"]] + [asked["prompt"]]
print(json.dumps({"answer": " | ".join(said)}))
"""


def conversation(user=PLAIN, wants=WANTS, **fields):
    expect = () if wants.done is None else (wants.done,)
    return Task(name="refund", scenario=wants, user=user, **{"expect": expect, **fields})


def ran(suite, **options):
    journal = MemoryJournal()
    result = run_trials(suite, journal=journal, **options)
    return result.trials, [json.loads(entry.transcript) for entry in journal.finished()]


def spoken(transcript):
    return [(m["role"], m["text"]) for m in transcript["messages"] if "text" in m]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "those_who_talk.py").write_text(
        "def answer(prompt, history):\n"
        "    return ' | '.join([m['content'] for m in history] + [prompt])\n"
        "def closing(prompt, history):\n"
        "    return {'answer': 'Goodbye.', 'closes': len(history) == 2}\n"
        "def ana(messages, task, seed):\n"
        "    assert all(set(m) == {'role', 'content'} for m in messages)\n"
        "    return [task['goal'], 'Order ' + task['facts']['order'], None][len(messages) // 2]\n"
    )
    return tmp_path


# Every kind of agent hears every kind of user.


def test_every_kind_of_agent_hears_the_user_and_what_was_said_before(suite_of, folder, serving):
    def post(path, body, headers):
        said = [m["content"] for m in body["history"]] + [body["prompt"]]
        return 200, {"answer": " | ".join(said)}

    first, second, third = PLAIN.say
    one = first
    two = f"{first} | {one} | {second}"
    three = f"{first} | {one} | {second} | {two} | {third}"
    with serving(post) as url:
        agents = [
            PythonSystem(name="python", function="those_who_talk:answer", search=folder),
            PythonSystem(name="worker", function="those_who_talk:answer", search=folder, workers=1),
            CommandSystem(name="command", argv=(sys.executable, "-c", ECHO)),
            HttpSystem(name="http", url=url),
        ]
        for agent in agents:
            task = conversation(expect=(Expectation(matcher="exact", value=three),))
            (trial,), (transcript,) = ran(suite_of(agent, task=task, directory=folder))
            assert trial.outcome is Outcome.PASSED, (agent.name, trial, transcript)
            turns = zip(PLAIN.say, (one, two, three), strict=True)
            expected = [pair for u, a in turns for pair in (("user", u), ("assistant", a))]
            assert spoken(transcript) == expected, agent.name
            assert (transcript["user"]["name"], transcript["user"]["ended"]) == ("plain", "user")


def test_a_model_hears_the_user_in_one_conversation(suite_of):
    heard = []

    def answer(asked):
        heard.append([m["content"] for m in asked.body["messages"]])
        return Reply(text=f"answer {len(heard)}", usage=TokenUsage(tokens_in=1, tokens_out=1))

    with WireServer(answer) as server:
        system = ModelSystem(name="agent", model=Model(name="m", base_url=server.url))
        (trial,), _ = ran(suite_of(system, task=conversation()))
    assert trial.turns == 3
    assert heard[2] == ["My order came late.", "answer 1", "Order 7.", "answer 2",
                        "ana@example.org"]  # fmt: skip


def test_a_function_plays_a_user_until_it_returns_none(suite_of, folder):
    user = User(name="ana", function="those_who_talk:ana")
    agent = PythonSystem(name="python", function="those_who_talk:answer", search=folder)
    _, (transcript,) = ran(
        suite_of(agent, task=conversation(user, expect=(DONE,)), directory=folder)
    )
    assert [text for role, text in spoken(transcript) if role == "user"] == [WANTS.goal, "Order 7"]


def test_a_model_that_plays_a_user_sees_its_side_and_costs_apart(suite_of, scripted):
    asked_of_user = []

    def answer(asked):
        asked_of_user.append(asked.body)
        text = ["Hi.", f"Order 7. {FINISHED}"][len(asked_of_user) - 1]
        return Reply(text=text, usage=TokenUsage(tokens_in=10, tokens_out=2))

    with WireServer(answer) as server:
        model = Model(name="m", base_url=server.url, prices=Prices(input=1e5, output=0))
        user = User(name="ana", model=model, persona="At most five words.")
        (trial,), (transcript,) = ran(suite_of(scripted(), task=conversation(user)))
    system, begin, own, heard = [m["content"] for m in asked_of_user[1]["messages"]]
    assert system == instructions(user, WANTS)
    for words in ("At most five words.", WANTS.goal, "- order: 7", "store credit", FINISHED):
        assert words in system
    assert (own, heard) == ("Hi.", "4")
    assert begin.startswith("(The conversation begins")
    assert trial.cost == 0
    assert {k: transcript["user"][k] for k in ("calls", "cost", "tokens")} == {
        "calls": 2, "cost": 2.0, "tokens": 24,
    }  # fmt: skip


# The task ends the conversation.


def test_the_conversation_ends_as_soon_as_done_holds(suite_of, scripted):
    wants = replace(WANTS, done=replace(DONE, value="4"))
    (trial,), (transcript,) = ran(suite_of(scripted(), task=conversation(wants=wants)))
    assert trial.outcome is Outcome.PASSED
    assert transcript["user"]["ended"] == "done"
    assert len(spoken(transcript)) == 2


def test_done_that_never_holds_is_a_failure_of_the_agent(suite_of, scripted):
    task = conversation(wants=replace(WANTS, done=DONE))
    (trial,), (transcript,) = ran(suite_of(scripted(), task=task))
    assert trial.outcome is Outcome.FAILED
    assert transcript["user"]["ended"] == "user"


def test_the_agent_has_one_more_turn_after_the_user_says_it_is_finished(suite_of, scripted):
    user = User(name="hasty", say=("Yes, go ahead.",))
    _, (transcript,) = ran(suite_of(scripted(), task=conversation(user)))
    assert spoken(transcript) == [("user", "Yes, go ahead."), ("assistant", "4")]


def test_an_agent_may_close_the_conversation(suite_of, folder):
    agent = PythonSystem(name="python", function="those_who_talk:closing", search=folder)
    task = conversation(expect=(Expectation(matcher="contains", value="bye"),))
    _, (transcript,) = ran(suite_of(agent, task=task, directory=folder))
    assert transcript["user"]["ended"] == "closed"
    assert len(spoken(transcript)) == 4


def test_a_conversation_without_an_end_stops_at_max_turns_and_says_so(suite_of, scripted):
    user = User(name="endless", say=tuple(f"And then {word}?" for word in "abcdefgh"))
    wants = replace(WANTS, max_turns=3, done=DONE)
    (trial,), (transcript,) = ran(suite_of(scripted(), task=conversation(user, wants)))
    assert (trial.outcome, trial.tags) == (Outcome.FAILED, ("user:max-turns",))
    assert transcript["user"]["ended"] == "max turns"


def test_a_user_opens_with_the_words_of_the_task(suite_of, scripted):
    wants = replace(WANTS, opens="Hello there.")
    _, (transcript,) = ran(suite_of(scripted(), task=conversation(wants=wants)))
    assert [t for role, t in spoken(transcript) if role == "user"] == ["Hello there.", *PLAIN.say]


# What a user does wrong.


def test_a_user_that_says_nothing_is_an_error_and_no_failure(suite_of, scripted):
    model = Model(name="scripted", script=(Behaviour(answer=" "),))
    (trial,), _ = ran(suite_of(scripted(), task=conversation(User(name="mute", model=model))))
    assert trial.outcome is Outcome.ERRORED
    assert "the user mute said nothing 2 times" in trial.error
    assert trial.tags == ("user:silent",)


@pytest.mark.parametrize(
    ("says", "agent", "flag"),
    [
        (["My order 8 came late."], "4", "made-up"),
        (["I am ana@example.org."], "4", "leaked"),
        (["Hi.", "Fine, that works."], "I can offer store credit.", "gave-in"),
        (["Order 7."], "Shall I refund it?", "left"),
        (["How can I help you?"], "4", "agent"),
        (["Hello?", "Hello?", "Hello?"], "4", "agent"),
    ],
)
def test_each_rule_flags_what_breaks_it_beside_the_verdict(suite_of, scripted, says, agent, flag):
    system = scripted(Behaviour(answer=agent))
    task = conversation(User(name="u", say=tuple(says)))
    (trial,), (transcript,) = ran(suite_of(system, task=task))
    assert trial.outcome is Outcome.PASSED
    assert trial.tags == (f"user:{flag}",)
    assert f"user:{flag}" in USER_FLAGS
    (record,) = transcript["user"]["flags"]
    assert (record["rule"], record["turn"]) == (flag, len(says))


def test_a_user_that_answers_what_it_is_asked_breaks_no_rule(suite_of, scripted):
    system = scripted(Behaviour(answer="Your email and order, please. Store credit?"))
    user = User(name="u", say=("Hi, it came 2 weeks late.", "Order 7, ana@example.org.",
                               "No, not store credit.", "Thanks."))  # fmt: skip
    (trial,), _ = ran(suite_of(system, task=conversation(user, replace(WANTS, max_turns=3))))
    assert trial.tags == ("user:max-turns",)


@given(st.lists(st.from_regex(r"[A-Z]{1,3}-?[0-9]{2,6}|[0-9]{1,4}", fullmatch=True), max_size=5))
def test_what_is_known_is_never_made_up_and_what_is_not_always_is(words):
    text = " and ".join(f"it is {word}." for word in words)
    assert made_up(text, [f"({word})" for word in words]) == []
    unknown = made_up(text, ["I know nothing."])
    assert unknown == list(dict.fromkeys(word.lower() for word in words))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("1. The bill.\n2. The order.", ""),  # the numbers of a list
        ("It cost 1234.", "The price is $1,234."),
        ("It came 2 weeks late.", "two weeks late"),
        ("Call 555-1234!", "phone: 5551234"),
    ],
)
def test_another_way_to_write_what_is_known_is_not_made_up(text, known):
    assert made_up(text, [known]) == []


def test_the_rules_read_words_and_not_parts_of_them():
    assert leaked("Order 77 is late.", replace(WANTS, if_asked=("order",)), []) == []
    assert gave_in("I don't accept that.", "Store credit?", ["store credit"]) is None
    assert gave_in("Yes please.", "I refund the money.", ["store credit"]) is None
    assert not asks("Done. Is there anything else?")
    assert asks("Is it order 7? ")


# What flagged trials do to a report and to gates.


def flagged_trials(outcomes, flags):
    tags = [["user:leaked"] if flag else [] for flag in flags]
    size = len(outcomes)
    return Trials.from_columns(
        task=[f"t{i % 4}" for i in range(size)], passed=outcomes, tags=tags,
        trial=[i // 4 for i in range(size)],
    )  # fmt: skip


def test_a_report_says_pass_at_1_as_run_without_flagged_trials_and_within_which_limits():
    rng = np.random.default_rng(5)
    outcomes, flags = rng.random(40) < 0.6, rng.random(40) < 0.3
    (note,) = [
        note
        for note in measure(flagged_trials(outcomes, flags)).system().notes
        if "broke a rule" in note
    ]

    def mean(passed, kept):
        return 100 * np.mean([passed[i::4][kept[i::4]].mean() for i in range(4)])

    every = np.ones(40, dtype=bool)
    said = [
        mean(outcomes, every), mean(outcomes, ~flags),
        mean(outcomes & ~flags, every), mean(outcomes | flags, every),
    ]  # fmt: skip
    for value in said:
        assert f"{value:.1f}%" in note
    assert f"in {flags.sum()} of 40 trials" in note
    assert f"{(flags & ~outcomes).sum()} of {(~outcomes).sum()} failures" in note


def test_rules_that_a_user_away_from_the_reference_broke_are_counted_by_user():
    tags = [("user:made-up",) if i in (5, 6) else () for i in range(8)]
    trials = Trials.from_columns(
        task=["t"] * 4 + ["t [user=terse]"] * 4,
        base=["t"] * 8,
        at=[["user=kind"]] * 4 + [["user=terse"]] * 4,
        passed=[True] * 8,
        tags=tags,
    )
    (note,) = [note for note in measure(trials).system().notes if "broke a rule" in note]
    assert note == (
        "under other conditions, user terse: in 2 of 4 trials the user broke a rule (made-up 2)"
    )


def test_a_gate_that_rests_on_flagged_trials_is_undecided():
    outcomes = [True] * 80 + [False] * 80
    as_run = judge(flagged_trials(outcomes, [False] * 160), ["pass@1 >= 0.8"])
    assert as_run.status == "FAIL"
    (verdict,) = judge(flagged_trials(outcomes, [False] * 80 + [True] * 80), ["pass@1 >= 0.8"])
    assert verdict.status == "UNDECIDED"
    assert "Without the 80 trials in which the user broke a rule it is PASS" in verdict.sentence
    (same,) = judge(flagged_trials(outcomes, [True] * 8 + [False] * 152), ["pass@1 >= 0.8"])
    assert same.status == "FAIL"


# Cassettes, budgets, resumption.

TALKS = User(
    name="ana",
    model=Model(
        name="scripted",
        script=(Behaviour(answer="Order 7."), Behaviour(answer=f"Bye. {FINISHED}", weight=0.4)),
    ),
)


@pytest.mark.parametrize("user", [TALKS, User(name="ana", function="those_who_talk:ana"), PLAIN])
def test_a_recorded_conversation_is_replayed_word_for_word(suite_of, scripted, folder, user):
    system = scripted(Behaviour(answer="4"), Behaviour(answer="5"))
    suite = suite_of(
        system, task=conversation(user, expect=(Expectation(matcher="contains", value="4"),)),
        runs=5, directory=folder, cassette=CassetteSettings(directory=folder / "cassettes"),
    )  # fmt: skip

    def run(mode):
        with open_cassettes(suite, mode, environment={}) as cassettes:
            trials, transcripts = ran(suite, cassettes=cassettes, environment={})
        return [replace(t, started=None) for t in trials], transcripts

    assert run("record") == run("replay")
    other = replace(suite, pairings=tuple(
        replace(p, task=replace(p.task, user=replace(user, persona="Annoyed.")))
        for p in suite.pairings
    ))  # fmt: skip
    with pytest.raises(CassetteError, match=r"user was .*Annoyed"), open_cassettes(other, "replay"):
        pass


def test_a_budget_counts_the_calls_of_the_user_too(suite_of, scripted):
    suite = suite_of(scripted(), task=conversation(TALKS), runs=30, budget=Budget(max_calls=20))
    journal = MemoryJournal()
    result = run_trials(suite, journal=journal, concurrency=1)
    assert result.calls == 20
    assert len(result.trials) < 10


def test_what_a_user_said_before_a_crash_is_not_paid_again(suite_of):
    def answer(asked):
        return Reply(text="Order 7.", usage=TokenUsage(tokens_in=1, tokens_out=1))

    class Dying(MemoryJournal):
        left = 14

        def write(self, entries):
            for entry in entries:
                if self.left == 0:
                    raise OSError("disk full")
                self.left -= 1
                super().write([entry])

    with WireServer(answer) as server:
        model = Model(name="m", base_url=server.url)
        task = conversation(User(name="ana", model=model), replace(WANTS, max_turns=4))
        suite = suite_of(ModelSystem(name="agent", model=model), task=task, runs=3)
        first = Dying()
        with pytest.raises(OSError, match="disk full"):
            run_trials(suite, journal=first, concurrency=1)
        kept = len(first._answers)
        before = len(server.asked)
        second = MemoryJournal()
        second.write([*first.launched(), *first._answers.values(), *first.finished()])
        result = run_trials(suite, journal=second, concurrency=1)
    assert kept > 4
    assert len(server.asked) - before == 3 * 8 - kept
    assert len(result.trials) == 3


@pytest.mark.slow("a real model plays the user on this machine")
def test_a_real_model_plays_a_user(suite_of, scripted):
    pytest.importorskip("xllamacpp", reason="xllamacpp has no wheel for this platform")
    from passhat.errors import ModelError
    from passhat.runner.models.local import pull_weights

    try:
        pull_weights()
    except ModelError as error:
        pytest.skip(f"the weights cannot be downloaded here: {error}")
    parameters = ModelParameters(temperature=0.7, max_tokens=40)
    user = User(name="ana", model=Model(name="local/smollm2", parameters=parameters))
    system = scripted(Behaviour(answer="Which order is it?"), timeout=240)
    task = conversation(user, replace(WANTS, max_turns=3))
    (trial,), (transcript,) = ran(suite_of(system, task=task))
    assert trial.outcome is not Outcome.ERRORED, trial.error
    said = [text for role, text in spoken(transcript) if role == "user"]
    assert 1 <= len(said) <= 3
    assert all(said)
    assert transcript["user"]["tokens"] > 50


def test_gates_of_a_run_are_about_the_first_user_and_miss_no_trials_of_others(tmp_path):
    from passhat import run

    (tmp_path / "suite.yml").write_text(
        "users: {kind: {say: hi}, terse: {say: bye}}\n"
        "agents:\n"
        "  - name: greeting\n"
        "    model: scripted\n"
        "    script: [{answer: hello}]\n"
        "    runs: 40\n"
        "    user: {goal: Be greeted., done: {contains: hello}}\n"
        "gates: [pass@1 >= 0.8]\n"
    )
    answer = run(tmp_path / "suite.yml", store=None)
    (verdict,) = answer.verdicts
    assert (verdict.status, verdict.runs) == ("PASS", 40)
    assert answer.trials.tasks == ("greeting", "greeting [user=terse]")
    assert set(answer.trials.base.names) == {"greeting"}


def test_what_a_user_did_wrong_is_read_with_the_trial(suite_of, scripted):
    from passhat.reporters.page_parts import readable

    task = conversation(User(name="terse", say=("It is order 9.",)))
    _, (transcript,) = ran(suite_of(scripted(), task=task))
    assert "note: the user terse, message 1: made-up: 9" in readable(json.dumps(transcript))


def test_a_task_with_another_user_can_be_named_to_a_command(tmp_path):
    from click.testing import CliRunner

    from passhat.cli import main

    (tmp_path / "suite.yml").write_text(
        "users: {kind: {say: Please.}, terse: {say: Refund.}}\n"
        "agents:\n"
        "  - name: refund\n"
        "    model: scripted\n"
        "    script: [{answer: refunded}, {answer: sorry}]\n"
        "    runs: 8\n"
        "    user: {goal: Get a refund., done: {contains: refunded}}\n"
    )
    store = ["--store", str(tmp_path / "h.db")]
    made = CliRunner().invoke(main, ["run", str(tmp_path / "suite.yml"), *store])
    assert made.exit_code == 1, made.output
    told = CliRunner().invoke(main, ["why", "latest", "refund [user=terse]", *store])
    assert told.exit_code == 0, told.output
    assert told.output.startswith("refund [user=terse]: trial")
