"""`passhat deploy`: write the file that starts workers on a cluster."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.option_types import WholeNumber


@click.command()
@click.argument("where", type=click.Choice(["kubernetes", "slurm", "compose"]))
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option("--workers", type=WholeNumber(min=1), default=4, help="How many workers.")
@click.option(
    "--concurrency",
    type=WholeNumber(min=1),
    default=20,
    help="Trials that each worker runs at a time.",
)
@click.option(
    "--image",
    default="passhat-worker:latest",
    metavar="NAME",
    help="The container image, with passhat, your agent and the suite's folder in it.",
)
@click.option("--hours", type=WholeNumber(min=1), default=24, help="Stop after this long.")
def deploy(
    where: str, suite: Path | None, workers: int, concurrency: int, image: str, hours: int
) -> None:
    """Print a Kubernetes Job, a Slurm array or a Compose file that starts workers for SUITE.

    The address of the store is not in it: workers read it from PASSHAT_STORE.

    \b
      passhat deploy kubernetes suite.yml --workers 50 > workers.yaml
      passhat deploy slurm suite.yml --workers 200 --concurrency 10 > workers.sh
    """
    from passhat.reporters.deployments import RENDERERS, Deployment
    from passhat.suite import find_suite, load_suite

    path = suite or find_suite(Path())
    loaded = load_suite(str(path), models_asked=False)  # one that cannot be run is refused here
    chosen = Deployment(
        suite=str(path),
        resources=loaded.resources,
        workers=workers,
        concurrency=concurrency,
        image=image,
        hours=hours,
    )
    click.echo(RENDERERS[where](chosen), nl=False)
