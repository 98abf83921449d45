"""`factors:` of a suite: cells that are tasks of their own, one level at a time."""

import pytest

from passhat.errors import SuiteError
from passhat.records.suite import plain_pairings, vary
from passhat.suite import load_suite

SUITE = """\
users:
  patient: {{say: ["Hi"]}}
  terse: {{say: ["7."]}}
factors:
{factors}
agents:
  - name: refund
    model: scripted
    runs: 2
    user: {{goal: a refund}}
    script: [{{answer: ok}}]
    faults: [{{kind: truncated_answer, nth: 1}}]
  - name: greet
    model: scripted
    runs: 2
    prompt: Say hello.
    script: [{{answer: hello}}]
"""


def loaded(tmp_path, *factors):
    path = tmp_path / "suite.yml"
    path.write_text(SUITE.format(factors="\n".join(f"  {line}" for line in factors)))
    return load_suite(path)


def cells(suite):
    return {pairing.task.name: pairing.task.at for pairing in suite.pairings}


def test_each_level_is_run_with_all_else_at_its_reference(tmp_path):
    suite = loaded(
        tmp_path,
        "user: [terse, patient]",
        'wording: {polite: "Please. {prompt}"}',
        "fault: [none, all]",
    )
    assert cells(vary(suite, None)) == {
        "refund": ("user=terse", "fault=none"),
        "refund [fault=all]": ("user=terse", "fault=all"),
        "refund [user=patient]": ("user=patient", "fault=none"),
        "greet": ("wording=as written", "fault=none"),
        "greet [fault=all]": ("wording=as written", "fault=all"),
        "greet [wording=polite]": ("wording=polite", "fault=none"),
    }
    (polite,) = [p.task for p in suite.pairings if "polite" in p.task.name]
    assert (polite.prompt, polite.base) == ("Please. Say hello.", "greet")


def test_every_level_is_run_with_every_other_where_that_is_asked_for(tmp_path):
    suite = loaded(tmp_path, "fault: [none, all]", "cross: all")
    names = set(cells(vary(suite, None)))
    assert "refund [user=terse, fault=all]" in names
    assert len(names) == 2 * 2 + 2


def test_gates_are_about_the_reference_of_every_factor(tmp_path):
    suite = vary(loaded(tmp_path, "fault: [none, all]"), None)
    assert [p.task.name for p in plain_pairings(suite)] == ["refund", "greet"]
    assert suite.trials == 2 * 5


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        ("user: [tense]", 'Did you mean "terse"'),
        ("fault: [all]", r"must be \[none, all\]"),
        ("wording: {rude: Now}", "must have {prompt}"),
        ("cross: some", "one at a time"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(tmp_path, factor, said):
    with pytest.raises(SuiteError, match=said):
        loaded(tmp_path, factor)
