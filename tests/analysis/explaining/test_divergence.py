"""The first difference from the nearest passing run."""

from passhat.analysis.explaining.run_diff import (
    counting_tools,
    divergences,
    first_difference,
    nearest_passing,
)
from passhat.analysis.explaining.runs import compared_runs

ALL = frozenset({"look", "book", "cancel", "get_user"})


def difference(run, passing, counting=ALL):
    found = first_difference(run, passing, counting)
    return found.kind, found.tool, found.arguments


def test_a_call_too_many_a_call_missing_another_argument_and_nothing(make_run):
    good = make_run("P", ("book", {"to": "Oslo"}))
    assert difference(make_run("F", ("book", {"to": "Oslo"}), "cancel"), good) == (
        *("extra call", "cancel"),
        (),
    )
    assert difference(make_run("F"), good) == ("call missing", "book", ())
    assert difference(make_run("F", ("book", {"to": "Rome"})), good) == (
        *("other argument", "book"),
        ("to",),
    )
    assert difference(make_run("F", ("book", {"to": "Oslo"})), good) == ("no difference", "", ())


def test_the_first_of_several_differences_is_told_with_its_place(make_run):
    good = make_run("P", "look", "book")
    found = first_difference(make_run("F", "look", "cancel", "book", "book"), good, ALL)
    assert (found.tool, found.call.place) == ("cancel", 1)


def test_calls_that_failed_and_tools_that_do_not_count_are_passed_over(make_run):
    good = make_run("P", "book")
    run = make_run("F", ("cancel", {}, "Error: no"), "look", "book")
    assert difference(run, good, frozenset({"book", "cancel"}))[0] == "no difference"


def test_the_nearest_passing_run_shares_most_calls(make_run):
    near = make_run("P", "book", "cancel", trial=1)
    far = make_run("P", "look", trial=2)
    run = make_run("F", "book", "cancel", "cancel", trial=3)
    assert nearest_passing(run, [far, near], ALL) is near


def test_a_tool_in_which_passing_runs_differ_as_much_does_not_count(make_run):
    runs = []
    for task in "ab":
        for trial in range(6):
            failed = trial > 3
            looks = ("look", {"page": trial})
            act = ("book", {"to": "Rome" if failed else "Oslo"})
            runs.append(make_run("F" if failed else "P", looks, act, task=task, trial=trial))
    assert counting_tools(compared_runs(runs)) == {"book"}


def test_where_little_is_known_of_a_tool_its_name_decides(make_run):
    runs = [make_run("P", "get_user", "book"), make_run("F", "get_user", trial=1)]
    assert counting_tools(compared_runs(runs)) == {"book"}


def test_every_failing_run_of_a_task_that_also_passed_has_its_difference(make_run):
    runs = [
        make_run("P", "book", task="a"),
        make_run("F", task="a", trial=1),
        make_run("F", task="b"),
        make_run("E", task="a", trial=2),
    ]
    (found,) = divergences(compared_runs(runs))
    assert (found.run.key, found.passing.key) == (("bot", "a", 1), ("bot", "a", 0))
