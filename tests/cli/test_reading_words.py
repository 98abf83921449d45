"""What readers say of their arguments is said to the shell in its options."""

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.cli.reading import parse_columns

SCORES = "task,score\na,1\na,0.5\nb,1\nb,0\n"


@pytest.mark.parametrize("output", ["text", "json"])
def test_notes_and_readings_name_the_options_of_the_command(tmp_path, output):
    path = tmp_path / "runs.csv"
    path.write_text(SCORES)
    arguments = ["report", str(path), "--name", "mine", "--json" if output == "json" else "-v"]
    said = CliRunner().invoke(main, arguments).output
    assert "Say what passes with --pass-if" in " ".join(said.split())
    assert "(--name)" in said
    assert "`pass_if`" not in said
    screen = " ".join(CliRunner().invoke(main, arguments[:-1]).output.split())
    assert "Say what passes with --pass-if" in screen
    assert "`pass_if`" not in screen


def test_the_column_of_the_agent_is_named_with_the_word_of_the_screens_or_of_files():
    assert parse_columns(["agent=model name"]) == parse_columns(["system=model name"])


LONG = "task,agent,trial,passed\na,x,1,1\na,x,1,0\na,x,2,\na,y,1,1\na,y,2,0\n"
OTHER = pytest.mark.slow("another value of the same option")
WIDE = "task,agent,run_1,run_2\na,x,1,\na,y,1,0\nb,x,1,1\nb,y,1,1\n"


@pytest.mark.parametrize(
    ("table", "options", "note"),
    [
        (LONG, ("--missing", "fail"), "1 row without a verdict counts as failed (--missing)"),
        pytest.param(
            LONG,
            ("--missing", "error"),
            "1 row without a verdict counts as errored (--missing)",
            marks=OTHER,
        ),
        pytest.param(
            LONG,
            ("--missing", "exclude"),
            "1 row without a verdict was left out (--missing)",
            marks=OTHER,
        ),
        (LONG, ("--missing", "fail"), "1 earlier copy of a trial is left out (--duplicates)"),
        (WIDE, (), "1 empty cell is no trial (--missing)"),
        pytest.param(
            WIDE,
            ("--missing", "fail"),
            "1 row without a verdict counts as failed (--missing)",
            marks=OTHER,
        ),
    ],
)
def test_every_answer_says_which_rows_count_by_an_option(call, here, table, options, note):
    (here / "t.csv").write_text(table)
    options = ("t.csv", *options, "--duplicates", "last")
    demands = [("--require", "pass@1 >= 0.1"), ("--require", "pass@1 >= 0.1", "--only", "x")]
    answers = [("report", *options), ("compare", *options)]
    answers += [("gate", *options, *demand) for demand in demands]
    for words in answers:
        for more in ((), ("-v",)):
            done = call(*words, *more)
            assert note in " ".join(done.stdout.split()), (words, more, done.stdout, done.stderr)
