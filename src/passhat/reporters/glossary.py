"""The words of passhat, each with half a sentence of meaning: reports and the docs share them."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.messages import capitalised
from passhat.reporters.headline import DEPENDABLE
from passhat.reporters.numbers import percent
from passhat.stats.task_labels import BROKEN_BELOW, CERTAINTY, SOLID_ABOVE

GLOSSARY: Mapping[str, str] = {
    "task": "one thing the agent is asked to do, with a way to tell whether it did it",
    "system": "the agent under test: a name, a model, a configuration",
    "trial": "one attempt by one system at one task: passed, failed or errored",
    "run": "one attempt at one task: another word for a trial, as in `runs`",
    "stored run": "all trials of one `passhat run`, kept in the history under a key",
    "round": "one trial of every task of the suite: the first of each, the second of each, ...",
    "re-run": "the trials of a suite that share a seed: one round, or several with `seeds:`",
    "suite": "the tasks, how often to run each, and what to demand of the results",
    "pass@k": "the chance that at least one of k attempts at a task succeeds",
    "pass^k": 'the chance that all k attempts at a task succeed (say "pass hat k")',
    "reliability@k": (
        "pass^k averaged over the tasks of the suite. The first screen of a report uses this "
        "name; gates, trends and tables of every k call the same number pass^k"
    ),
    "dependable": (
        f"k successes in a row at least {percent(DEPENDABLE)} of the time. A report says that you "
        "can depend on an agent if the whole interval for this suite lies above that, that you "
        "cannot if all of it lies below, and otherwise that it is too early to say. k is at least "
        "2 here: one run of a task cannot show what the next one does"
    ),
    "this suite": "an interval for exactly these tasks, run again and again",
    "tasks like these": "a wider interval, for other tasks of the same kind",
    "confidence": "how often such intervals contain the true value, 95 % unless you say otherwise",
    "solid": "a task that almost certainly passes at least 95 % of the time",
    "flaky": "a task that almost certainly sometimes passes and sometimes fails",
    "broken": "a task that almost certainly passes at most 10 % of the time",
    "undecided": "a task whose runs do not yet show whether it is solid, flaky or broken",
    "errored": "the attempt broke (an outage, a crash of a tool) before it could pass or fail",
    "luck": "the share of the variation between runs that is chance, not the task",
    "ICC": "intraclass correlation: the share of the variation that comes from the task",
    "seed": "the number that a re-run of the suite passes to every agent that takes one",
    "extrapolated": "what a fitted model expects beyond the runs there are; not a measurement",
    "bar": "the pass^k that a task should reach",
    "correlation with passing": (
        "from -1 to 1: above 0 if, within a task, longer or more expensive runs pass more often"
    ),
    "gate": "a demand such as pass^3 >= 0.9, decided with known error rates",
    "verdict": "PASS, FAIL or UNDECIDED: what the evidence says about a gate",
    "baseline": "the run that a new one is compared with",
    "flipped": "a task that went from mostly failing to mostly passing, or back",
    "tied": "systems whose order the results do not settle",
    "cassette": "recorded model exchanges, to run a suite again without a key",
    "history": "the store of all trials ever run, with the commit they ran at",
}


LABEL_RULE = (
    f"A task gets the label whose chance is at least {CERTAINTY:.0%}: solid for a pass rate above "
    f"{SOLID_ABOVE:.0%}, broken below {BROKEN_BELOW:.0%}, flaky between; without one it is "
    "undecided. The chances come from the task's own runs and from how the tasks of the suite "
    "differ, with a margin for how well that is known. A task that ran once is undecided; flaky "
    "also takes runs that by themselves exclude the other two, so never runs that all ended alike."
).replace("%", " %")
"""How labels are given: `label_tasks` in words."""


def meaning(term: str) -> str:
    """The meaning of a term as a short sentence.

    >>> meaning("luck")
    'Luck is the share of the variation between runs that is chance, not the task.'
    """
    return f"{capitalised(term)} is {GLOSSARY[term]}."
