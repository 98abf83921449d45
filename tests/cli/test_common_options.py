"""The same options on every command that turns results into answers."""

import click
import pytest

from passhat.cli import main

COMMANDS = ("report", "compare", "rank", "plan", "profile", "simulate", "convert", "demo")
COMMON = (
    "--json", "--markdown", "-o", "--quiet", "--k", "--confidence", "--errors", "--seed",
)  # fmt: skip

# Where an option would change nothing, it is not offered.
WITHOUT = {
    ("simulate", "--k"): "trials are written, none is analysed",
    ("simulate", "--confidence"): "trials are written, none is analysed",
    ("simulate", "--errors"): "trials are written, none is analysed",
    ("convert", "--k"): "trials are written, none is analysed",
    ("convert", "--confidence"): "trials are written, none is analysed",
    ("convert", "--errors"): "trials are written, none is analysed",
    ("convert", "--seed"): "nothing is drawn at random",
    ("demo", "--k"): "its three surprises are told at the k that shows them",
    ("demo", "--errors"): "its agents make no errors",
}


def flags(name):
    with click.Context(main) as context:
        command = main.get_command(context, name)
    return {flag for option in command.params for flag in option.opts}


@pytest.mark.parametrize("option", COMMON)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_common_options_or_a_reason(name, option):
    assert (option in flags(name)) is ((name, option) not in WITHOUT)
