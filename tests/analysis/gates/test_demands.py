"""Sentences become demands; what cannot be demanded is refused with the way out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.gates.gate import (
    TERMS,
    EveryTaskRequirement,
    Gate,
    GateTerms,
    NoTaskWorseRequirement,
    NoWorseRequirement,
    ThresholdRequirement,
    parse_gate,
    shown,
    why_not_sequential,
)
from passhat.analysis.reports.targets import parse_target
from passhat.errors import ArgumentError, InputError


@pytest.mark.parametrize(
    ("sentence", "target", "sign", "threshold"),
    [
        ("pass^3 >= 0.8", "pass^3", ">=", 0.8),
        ("pass^3>=80%", "pass^3", ">=", 0.8),
        ("reliability@5 >= 0.9", "pass^5", ">=", 0.9),
        ("pass@1 >= 0.7", "pass@1", ">=", 0.7),
        ("mean_score > .75", "mean_score", ">", 0.75),
        ("pass rate ≥ 0.9", "pass^1", ">=", 0.9),
        ("selection_rate(get_weather) >= 0.8", "selection_rate(get_weather)", ">=", 0.8),
        ("error_rate <= 0.02", "error_rate", "<=", 0.02),
        ("cost per success <= 0.10", "cost.per_success", "<=", 0.1),
        ("cost per success <= $0.10", "cost.per_success", "<=", 0.1),
        ("p95(seconds) <= 30", "seconds.p95", "<=", 30.0),
        ("p90(tokens) < 5000", "tokens.p90", "<", 5000.0),
        ("variance_amplification <= 40", "variance_amplification", "<=", 40.0),
        ("graceful_degradation >= 80", "graceful_degradation", ">=", 80.0),
        ("decay[5] >= 50", "decay[5]", ">=", 50.0),
        ("icc >= 0.5", "icc", ">=", 0.5),
        ("tags[hard].pass^3 >= 0.5", "tags[hard].pass^3", ">=", 0.5),
        ("tasks[refund 1].rate >= 0.9", "tasks[refund 1].rate", ">=", 0.9),
    ],
)
def test_a_sentence_demands_a_number_of_the_report(sentence, target, sign, threshold):
    demand = parse_gate(sentence).demand
    assert demand == ThresholdRequirement(
        target=parse_target(target), sign=sign, threshold=threshold
    )
    assert demand.target.name == target


@pytest.mark.parametrize(
    ("sentence", "demand"),
    [
        ("no_worse_than main by 0.02", NoWorseRequirement(baseline="main", margin=0.02)),
        ("no worse than v1.2 by 2%", NoWorseRequirement(baseline="v1.2", margin=0.02)),
        (
            "no_worse_than main by 0.05 in pass^3",
            NoWorseRequirement(baseline="main", margin=0.05, metric="pass^3"),
        ),
        ("no task worse than main", NoTaskWorseRequirement(baseline="main")),
        ("every task: pass^3 >= its bar", EveryTaskRequirement(k=3, bar=None)),
        ("Every task: pass^3 >= 0.8", EveryTaskRequirement(k=3, bar=0.8)),
    ],
)
def test_a_sentence_demands_of_a_baseline_or_of_every_task(sentence, demand):
    assert parse_gate(sentence).demand == demand


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pas^3 >= 0.8", 'did you mean "pass\\^3"'),
        ("variance_amplificaton <= 40", 'did you mean "variance_amplification"'),
        ("pass^3 >= 80", "80 can never hold: write 0.8 or 80%"),
        ("pass^3 = 0.8", "no >= or <= in it"),
        ("pass^3 >= high", "what follows the sign is not a number"),
        ("pass^0 >= 0.5", "no number is called pass"),
        ("every task: mean_score >= 0.5", "can ask pass@1 or a pass\\^k of every task"),
        ("no_worse_than main by 0.1 in icc", "can compare mean_score, pass@1 or a pass\\^k"),
        ({"require": "pass^3 >= 0.8", "evidense": "bound"}, 'did you mean "evidence"'),
        ({"require": "pass^3 >= 0.8", "evidence": "bund"}, "must be one of 'bound'"),
        ({"require": "pass^3 >= 0.8", "alpha": 0.6}, "alpha must lie strictly between"),
        ({"require": "pass^3 >= 0.8", "max_runs": 0}, "max_runs must be a whole number"),
        ({"require": "icc >= 0.8", "evidence": "sequential"}, "icc is no rate"),
        (
            {"require": "pass^3 >= 1", "evidence": "sequential"},
            "no number of trials shows certainty",
        ),
        (
            {"require": "pass^3 >= 0.8", "evidence": "sequential", "scope": "tasks like these"},
            "not more tasks",
        ),
        ({"evidence": "bound"}, "must be a sentence"),
    ],
)
def test_what_cannot_be_demanded_is_refused_with_the_way_out(text, message):
    with pytest.raises(ArgumentError, match=message):
        parse_gate(text)


def test_the_long_form_keeps_every_term():
    gate = parse_gate(
        {
            "require": "pass^3 >= 0.8",
            "name": "dependable",
            "confidence": 0.9,
            "beta": 0.2,
            "evidence": "sequential",
            "indifference": 0.05,
            "max_runs": 300,
            "on_undecided": "fail",
            "severity": "warning",
            "tags": ["core"],
            "system": None,
        }
    )
    assert (gate.alpha, gate.beta, gate.label) == (0.1, 0.2, "dependable")
    assert (gate.max_runs, gate.tags, gate.system) == (300, ("core",), None)
    assert parse_gate(gate) is gate


@given(st.text(max_size=60))
def test_any_text_is_a_gate_or_an_input_error(text):
    try:
        gate = parse_gate(text)
    except InputError:
        return
    assert isinstance(gate, Gate)


@pytest.mark.parametrize(
    ("sentence", "possible"),
    [
        ("pass^3 >= 0.8", True),
        ("error_rate <= 0.05", True),
        ("error_rate >= 0.05", False),
        ("p95(seconds) <= 3", True),
        ("selection_rate(drop_table) <= 0.01", True),
        ("cost per success <= 1", False),
        ("no task worse than main", False),
    ],
)
def test_rates_can_be_watched_and_other_numbers_cannot(sentence, possible):
    assert (why_not_sequential(parse_gate(sentence)) is None) is possible


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("pas^1 >= 0.8", "pass^1"),
        ("pass^^4 >= 0.8", "pass^4"),
        ("pss@12 >= 0.8", "pass@12"),
        ("relability@7 >= 0.8", "reliability@7"),
        ("mean_scor >= 0.8", "mean_score"),
    ],
)
def test_the_k_that_was_written_is_the_k_that_was_meant(text, meant):
    with pytest.raises(ArgumentError, match=re.escape(f'did you mean "{meant}"?')):
        parse_gate(text)


def test_a_share_written_as_points_is_asked_back_in_the_words_that_came():
    with pytest.raises(ArgumentError, match=r"^pass\^3 >= 80 can never hold: write 0.8 or 80%$"):
        parse_gate("pass^3 >= 80")


def test_a_type_checker_knows_every_term_that_several_demands_may_share():
    assert {*GateTerms.__annotations__, "require", "confidence"} == {*TERMS}


@given(st.floats(0, 1), st.none() | st.floats(0.001, 0.999))
def test_a_share_is_said_without_exponents_on_its_side_of_the_threshold(value, threshold):
    text = shown(value, threshold, share=True)
    number = float(text.removeprefix("<").removesuffix("%")) / 100
    assert re.fullmatch(r"<?[0-9]+(\.[0-9]+)?%", text)
    assert number >= value if text.startswith("<") else abs(number - value) <= 0.0005 + 1e-12
    if threshold is not None and abs(value - threshold) > 1e-6:
        assert (number < threshold) == (value < threshold)
