"""`passhat mcp`: the results as tools for a coding agent."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.option_types import Number
from passhat.cli.options import store_option


@click.command()
@store_option("The history to read.")
@click.option("--allow-runs", is_flag=True, help="Let the coding agent start runs.")
@click.option(
    "--max-cost",
    type=Number(min=0),
    default=1.0,
    metavar="DOLLARS",
    help="What a run that the coding agent starts may cost.",
)
def mcp(store: Path | str, allow_runs: bool, max_cost: float) -> None:
    """Serve results to a coding agent, as an MCP server over standard input and output.

    It reads the history and result files of this folder: reports, causes of failure, two trials
    side by side, comparisons, plans, verdicts. It runs nothing without --allow-runs.

    \b
      passhat mcp
      claude mcp add passhat -- passhat mcp
    """
    from passhat.mcp_server import PasshatTools, build_server

    tools = PasshatTools(store=store, folder=Path.cwd(), may_run=allow_runs, max_cost=max_cost)
    build_server(tools).run()
