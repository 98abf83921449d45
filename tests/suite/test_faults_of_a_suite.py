"""What is wrong with a suite is said all at once, each fault where it stands."""

import pytest

from passhat.errors import SuiteError
from passhat.suite import find_suite, load_suite

BROKEN = """\
servers:
  weather: {command: "./w.sh", urll: 3}
  both: {command: a, url: "http://x"}
agents:
  - name: a
    model: o3
    trails: 3
    servers: [wether]
    prompt: hi
    expect:
      - {target: answer, matcher: {exat: 1}}
      - {contains: x, regex: "("}
      - {target: anwser, contains: x}
      - {contains: x, exact: y}
  - name: a
    model: o3
    prompt: 5
    runs: many
    temperature: ${TEMP}
    max_turns: 0
colour: red
"""


def test_all_faults_are_told_at_once_with_line_column_path_value_and_hint(problems) -> None:
    assert problems(BROKEN) == [
        ':2:32: servers.weather.urll: "urll" is not a key of servers.weather. Did you mean "url"?',
        ":3:3: servers.both: needs exactly one of command, url; got command, url",
        ':7:5: agents[0].trails: "trails" is not a key of agents[0]. Did you mean "runs"?',
        (
            ':8:15: agents[0].servers[0]: "wether" is not the name of a server. '
            'Did you mean "weather"?'
        ),
        (
            ':11:36: agents[0].expect[0].matcher.exat: "exat" is not a key of '
            'agents[0].expect[0].matcher. Did you mean "exact"?'
        ),
        (
            ":12:23: agents[0].expect[1].regex: is not a regular expression: missing ), "
            "unterminated subpattern at position 0, got '('"
        ),
        (
            ':13:10: agents[0].expect[2].target: is not a target. Did you mean "answer"?, '
            "got 'anwser'"
        ),
        ":14:9: agents[0].expect[3]: needs exactly one matcher, got exact, contains",
        ':15:5: agents[1].name: "a on o3" is also the name on line 5',
        ":17:5: agents[1].prompt: should be a text, got 5: put it in quotes",
        ":18:5: agents[1].runs: should be a whole number, got 'many'",
        (
            ":19:18: agents[1].temperature: TEMP is not set: export it, write ${TEMP:-default}, "
            "or $${TEMP} for the text itself"
        ),
        ":20:5: agents[1].max_turns: should be at least 1, got 0",
        (
            ':21:1: colour: "colour" is not a key of a suite. Known: agents, budget, cassette, '
            "concurrency, confidence, defaults, description, factors, gates, judge, k, name, "
            "network, quarantine, rate_limits, resources, retries, seed, seeds, servers, shares, "
            "systems, tasks, users"
        ),
    ]


EXPECT = "agents: [{name: a, model: o3, prompt: hi, expect: [{%s}]}]"
AGENT = "agents: [{name: a, model: o3, prompt: hi}]\n"
TALK = "agents: [{name: a, model: o3, user: x}]\nusers: {ana: {%s}}"
SCENARIO = "users: {ana: {say: hi}}\nagents: [{name: a, model: o3, user: {goal: x, %s}}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a suite is a mapping of keys to values, got nothing"),
        ("- a", "a suite is a mapping of keys to values, got ['a']"),
        ("name: x", "has nothing to run: add agents:, or systems: and tasks:"),
        ("systems: [{name: s, model: o3}]", "needs both systems: and tasks:, or agents: alone"),
        ("agents: [{name: a, prompt: hi}]", "needs a model: write model, models or defaults.model"),
        ("agents: [{name: a, model: o3}]", "needs either prompt, steps or user"),
        (TALK.replace("user:", "prompt: hi, user:") % "say: hi", "needs either prompt, steps or"),
        ("agents: [{name: a, model: o3, user: x}]", "nobody plays it: add users: to the suite"),
        (AGENT + "users: {ana: {say: hi}}", "talks to nobody: no task has user:"),
        (TALK % "say: hi, model: o3", "needs exactly one of model, say, python; got model, say"),
        (TALK % "say: hi, persona: polite", "persona has no meaning with say"),
        (TALK % "model: scripted", "the model scripted needs a script"),
        (TALK % "model: nonsense", 'no model is called "nonsense"'),
        (SCENARIO % "if_asked: email", "has no fact email, which if_asked names"),
        (SCENARIO % "facts: {order: 7}, if_asked: order, opens: It is 7", "has order in opens"),
        (SCENARIO % "done: {judge: Is it kind?}", "judge needs a model: add judge: to the suite"),
        (
            SCENARIO % "done: {called: x}" + "\nquarantine: [{task: a, until: 2030-01-31}, "
            "{task: 'a [user=ben]', until: 2030-01-31}]",
            '"a [user=ben]" is not the name of a task',
        ),
        ("agents: [{model: o3, prompt: hi}]", '"name" is missing'),
        ("agents: [{name: a, model: o3, models: [o1], prompt: hi}]", "has both model and models"),
        ("agents: [{name: a, model: scripted, prompt: hi}]", "the model scripted needs a script"),
        (
            "agents: [{name: a, model: o3, prompt: hi, script: [{answer: x}]}]",
            "only the model scripted plays a script",
        ),
        (AGENT + "quarantine: [{task: b, until: 2027-01-01}]", '"b" is not the name of a task'),
        (AGENT + "quarantine: [{task: a, until: soon}]", "must be a date such as 2027-01-31"),
        (AGENT + "servers: {s: {command: x, faults: [{kind: timeout}]}}", "needs either probabil"),
        (
            AGENT + "servers: {s: {url: 'ftp://x'}}",
            "must be an address that begins with http:// or https://",
        ),
        (AGENT + "servers: {s: {url: 'http://x', cwd: y}}", "cwd has no meaning with url"),
        (
            AGENT + "resources: {memory: 2 apples}",
            "must be bytes, or a text such as 200MB, 1.5GB, 2GiB",
        ),
        (AGENT + "shares: {easy: 1}", "a has no tag, level or family"),
        (AGENT + "shares: {easy: 0}", "should be greater than 0, got 0"),
        (AGENT + "confidence: 1.5", "should be less than 1, got 1.5"),
        (
            "systems: [{name: s, python: 'x:y', model: o3}]\ntasks: [{name: t, prompt: hi}]",
            "needs exactly one of model, command, agent, python, http; got model, python",
        ),
        (
            "systems: [{name: s, agent: codex}]\ntasks: [{name: t, prompt: hi}]",
            "needs the model that the agent asks: add model",
        ),
        (
            "systems: [{name: s, agent: codex, model: o3, cwd: x}]\ntasks: [{name: t, prompt: hi}]",
            "cwd has no meaning with agent",
        ),
        (
            "systems: [{name: s, command: x, temperature: 1}]\ntasks: [{name: t, prompt: hi}]",
            "temperature has no meaning with command",
        ),
        (
            "systems: [{name: s, model: o3}]\ntasks: [{name: t, prompt: hi, systems: [r]}]",
            '"r" is not the name of a system',
        ),
        (
            "agents: [{name: a, command: ./agent.sh, prompt: hi}]",
            "write `command:` under systems: (with a name), and what it is asked under tasks:",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, timeout: soon}]",
            "must be seconds, or a text such as 500ms, 30s, 2m, got 'soon'",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{judge: nice?}]}]",
            "judge needs a model: add judge: to the suite",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{not: {not: {judge: nice?}}}]}]",
            "judge needs a model: add judge: to the suite",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{regex: null}]}]",
            "regex needs a value",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{json-schema: {type: 7}}]}]",
            "is not a JSON Schema",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{range: {min: 2, max: 1}}]}]",
            "has min above max",
        ),
        (
            "agents: [{name: a, model: o3, prompt: hi, expect: [{range: {}}]}]",
            "needs min, max or both",
        ),
        (EXPECT % "length: {}", "length: needs exact, min or max"),
        (EXPECT % "length: {min: 3, max: 1}", "length: has min above max"),
        (EXPECT % "called: {tool: a, min: 3, max: 1}", "called: has min above max"),
        (EXPECT % "number: .inf", "number: must be finite"),
        (EXPECT % "number: {value: 1, tolerance: .inf}", "number: must be finite"),
        (EXPECT % "number: -.inf", "number: must be finite"),
        (EXPECT % "range: {min: .nan}", "min: should be a number, got nan"),
        (EXPECT % "contains: a, weight: 1e101", "weight: should be at most 1e+100"),
        (
            EXPECT % "contains-all: a, contains_all: b",
            'means the same as "contains-all" beside it',
        ),
        (EXPECT % "not: null", "not needs a value"),
        (AGENT + "servers: {s: {command: 'x \"y'}}", "cannot be split into words: No closing quot"),
        (AGENT + "servers: {s: {command: 5}}", "should be a list, got 5"),
        (AGENT + "seeds: [1, two]", "seeds[1]: should be a whole number, got 'two'"),
        (AGENT + "? [a]\n: 1", "a key must be a text, not a collection"),
        (AGENT + "gates: [{confidence: 0.9}]", "needs a demand: write require, or every task"),
        (AGENT + "gates: [{require: 'pass^3 >= 1', every task: 'pass^3 >= 1'}]", "keep one"),
        (
            AGENT + "gates: [{require: 'pass^3 >= 1', design: SPRT}]",
            "should be 'planned', 'sprt' or 'trun",
        ),
        (AGENT + "resources: {memory: %sGB}" % ("9" * 400), "should be below 2**63, got '999"),
        (AGENT + "k: [9223372036854775808]", "k[0]: should be below 2**63, got 92233"),
        (AGENT + "seeds: [-9223372036854775808]", "seeds[0]: should be above -2**63, got -92"),
        (AGENT + 'name: "a\\ud83d"', "has half of a character, which is not text: 'a\\ud83d'"),
        (AGENT + '"\\ude00": 1', "a key has half of a character"),
        ("a: [", "not valid YAML"),
    ],
)
def test_each_rule_of_a_suite_has_its_sentence(problems, text: str, said: str) -> None:
    (line,) = problems(text)
    assert said in line


def test_a_file_that_is_not_there_or_not_text_is_said(tmp_path) -> None:
    with pytest.raises(
        SuiteError, match=r"gone\.yml: there is no such file; `passhat init` writes a suite"
    ):
        load_suite(tmp_path / "gone.yml")
    (tmp_path / "latin.yml").write_bytes(b"name: caf\xe9")
    with pytest.raises(SuiteError, match=r"latin\.yml: the suite is not UTF-8 at byte 9"):
        load_suite(tmp_path / "latin.yml")


def test_the_suite_of_a_directory_is_found_by_name(tmp_path) -> None:
    with pytest.raises(SuiteError, match=r"no suite here .*passhat init"):
        find_suite(tmp_path)
    (tmp_path / "suite.yml").write_text(AGENT)
    assert find_suite(tmp_path).name == "suite.yml"
    (tmp_path / "passhat.yml").write_text(AGENT)
    assert find_suite(tmp_path).name == "passhat.yml"


@pytest.mark.parametrize("word", ["modle", "mode", "modells"])
def test_a_mistyped_model_is_not_also_missing(problems, word: str) -> None:
    (line,) = problems(f"agents: [{{name: a, prompt: hi, {word}: gpt-5}}]")
    assert f'"{word}" is not a key' in line


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("budget: 5", "should be a mapping of keys to values, got 5"),
        ("k: many", "should be a list, got 'many'"),
        ("retries: true", "should be a whole number, got true"),
        ("retries: 1.0", "should be a whole number, got 1.0"),
        ("confidence: true", "should be a number, got true"),
        ("confidence: .nan", "should be a number, got nan"),
        (f"shares: {{a: 1{'0' * 400}}}", "should be a number, got 1000"),
        ("name: [a]", "should be a text, got a list"),
        ("cassette: {mode: tape}", "should be 'none', 'record', 'append', 'replay' or 'replay-or"),
        ("servers: {'': {command: x}}", "should have at least 1 character, got ''"),
        ("servers: {s: {command: []}}", "should have at least 1 item"),
        ("servers: {s: {command: x, start_timeout: 0s}}", "should be greater than 0, got '0s'"),
        ("servers: {s: {command: x, shared: 1}}", "should be true or false, got 1"),
        ("servers: {s: {command: x, env: [[a]]}}", "should be a list of names, or names and val"),
        ("quarantine: [{task: a, until: 5}]", "should be a date such as 2027-01-31, got 5"),
        ("judge: {model: o3, reasoning: {}}", "should be 'low', 'medium' or 'high'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_reported_with_what_it_should_be(problems, key, said) -> None:
    assert said in problems(AGENT + key)[0]


def test_a_function_name_ends_where_it_ends(problems) -> None:
    (line,) = problems('systems: [{name: s, python: "m:f\\n"}]\ntasks: [{name: t, prompt: hi}]')
    assert line.endswith("must be module:function, got 'm:f\\n'")


def test_a_target_that_can_never_be_there_is_refused_and_the_keys_of_an_agent_are_named(problems):
    suite = """
systems: [{name: a, command: [echo, hi]}]
tasks:
  - name: a
    prompt: x
    expect:
      - {target: TARGET, exact: refund}
"""

    def of(target):
        return "\n".join(problems(suite.replace("TARGET", target)))

    for target in ("answer.action", "conversation.final_answer.action", "cost.action"):
        assert "can never be there" in of(target)
        assert "A key that your agent returns is reported.action" in of(target)
    assert "can never be there" in of('"output[0]"')
    assert "; a key that your agent returns is reported.action, got 'action'" in of("action")
    for target in ("answer", "reported.action", "tokens.total", "files.a.txt", '"tool_calls[0]"'):
        (only,) = problems(suite.replace("TARGET", target).replace("prompt: x", "prompt: 5"))
        assert "prompt" in only
