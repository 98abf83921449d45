from fractions import Fraction
from itertools import product
from math import floor
from statistics import pstdev

import pytest

from passhat.stats.decay import describe_sequences


def test_every_sequence_of_one_to_eight_runs_has_the_figures_of_the_sources():
    every = [runs for size in range(1, 9) for runs in product((False, True), repeat=size)]
    assert len(every) == 510
    for runs, found in zip(every, describe_sequences(every), strict=True):
        places = range(1, len(runs) + 1)
        spread = round(pstdev(map(float, runs)) / 0.5 * 100)
        weighed = sum(place for place, passed in zip(places, runs, strict=True) if passed)
        assert found.variance_amplification == spread
        assert found.graceful_degradation == halves_up(Fraction(100 * weighed, sum(places)))


def halves_up(value):
    return floor(value + Fraction(1, 2))


def test_halves_are_rounded_up_as_the_source_does():
    only_the_third = [place == 3 for place in range(1, 16)]
    assert describe_sequences([only_the_third])[0].graceful_degradation == 3  # 100 * 3 / 120 = 2.5


@pytest.mark.parametrize(
    ("runs", "amplified", "graceful"),
    [("PFPF", 100, 40), ("PPPP", 0, 100), ("PPPF", 87, 60), ("FPPP", 87, 90), ("PFP", 94, 67)],
)
def test_the_worked_examples_come_out(runs, amplified, graceful):
    found = describe_sequences([[run == "P" for run in runs]])[0]
    assert (found.variance_amplification, found.graceful_degradation) == (amplified, graceful)
