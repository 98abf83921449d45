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
