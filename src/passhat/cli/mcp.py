"""`passhat mcp`: the results as tools for a coding agent."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.defaults import STORE


@click.command()
@click.option(
    "--store", default=STORE, show_default=True, metavar="STORE", help="The history to read."
)
@click.option("--allow-runs", is_flag=True, help="Let the coding agent start runs.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="DOLLARS",
    help="What one run may cost that the coding agent starts.",
)
def mcp(store: str, allow_runs: bool, max_cost: float) -> None:
    """Serve results to a coding agent, as an MCP server over standard input and output.

    It reads the history of this folder and result files below it: reports, causes of failure, two
    trials side by side, comparisons, plans, verdicts. It runs nothing unless --allow-runs says so.

    \b
      passhat mcp
      claude mcp add passhat -- passhat mcp
    """
    from passhat.mcp_server import PasshatTools, build_server

    tools = PasshatTools(store=store, folder=Path.cwd(), may_run=allow_runs, max_cost=max_cost)
    build_server(tools).run()
