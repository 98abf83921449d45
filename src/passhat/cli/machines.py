"""One run on many machines: `passhat worker`, `deploy` and `merge`."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import field
from pathlib import Path
from typing import Any

import click

from passhat.arguments import STORE_VARIABLE
from passhat.cli.options import SectionedCommand, StoreType, WholeNumber, store_option
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.records import Resources


@click.command(cls=SectionedCommand)
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


CPUS_OF_A_WORKER = 0.5
MEBIBYTES_OF_A_WORKER = 256
"""What a worker needs if the suite does not say what a trial needs: enough for about a hundred
trials at a time that wait for a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Workers to start: how many, each with how many trials at a time, from which image."""

    suite: str
    workers: int
    concurrency: int
    image: str
    hours: int
    resources: Resources = field(default_factory=Resources)

    @property
    def cpus(self) -> float:
        """CPUs of a worker: those of its trials; half of one if the suite does not say."""
        total = self.resources.times(self.concurrency)
        return CPUS_OF_A_WORKER if total.cpus is None else total.cpus

    @property
    def mebibytes(self) -> int:
        """Memory of a worker: its own, and that of its trials."""
        trials = self.resources.times(self.concurrency).memory or 0
        return MEBIBYTES_OF_A_WORKER + math.ceil(trials / 2**20)

    @property
    def gpus(self) -> int:
        """GPUs of a worker: whole ones, which Kubernetes does not share."""
        return math.ceil(self.resources.times(self.concurrency).gpus or 0)

    @property
    def command(self) -> list[str]:
        """What a worker runs; a shell puts the store's address in."""
        store = f'--store "${STORE_VARIABLE}"'
        work = f"exec passhat worker {store} --concurrency {self.concurrency} --until-idle"
        return ["sh", "-c", work]


def render_kubernetes(deployment: Deployment) -> str:
    """An indexed Job: pods that die are started again, and the secret `passhat-store` is read."""
    container = {
        "name": "worker",
        "image": deployment.image,
        "command": deployment.command,
        "env": [
            {
                "name": STORE_VARIABLE,
                "valueFrom": {"secretKeyRef": {"name": "passhat-store", "key": "url"}},
            }
        ],
        "resources": {
            "requests": {
                "cpu": f"{math.ceil(deployment.cpus * 1000)}m",
                "memory": f"{deployment.mebibytes}Mi",
            },
            "limits": {
                "memory": f"{4 * deployment.mebibytes}Mi",
                **({"nvidia.com/gpu": deployment.gpus} if deployment.gpus else {}),
            },
        },
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "passhat-workers"},
        "spec": {
            "completionMode": "Indexed",
            "completions": deployment.workers,
            "parallelism": deployment.workers,
            "backoffLimit": 6 * deployment.workers,
            "activeDeadlineSeconds": deployment.hours * 3600,
            "template": {"spec": {"restartPolicy": "OnFailure", "containers": [container]}},
        },
    }
    create = "kubectl create secret generic passhat-store --from-literal=url=$PASSHAT_STORE"
    return _with_heading(deployment, [create, "kubectl apply -f FILE"], _yaml(job))


def render_slurm(deployment: Deployment) -> str:
    """An array script: one task of the array is one worker."""
    gpus = f"#SBATCH --gpus-per-task={deployment.gpus}\n" if deployment.gpus else ""
    worker = (
        f'srun passhat worker --store "${STORE_VARIABLE}" '
        f"--concurrency {deployment.concurrency} --until-idle"
    )
    return (
        "#!/bin/bash\n"
        f"#SBATCH --job-name=passhat-workers\n#SBATCH --array=0-{deployment.workers - 1}\n"
        f"#SBATCH --cpus-per-task={math.ceil(deployment.cpus)}\n"
        f"#SBATCH --mem={4 * deployment.mebibytes}M\n#SBATCH --time={deployment.hours}:00:00\n"
        f"{gpus}#SBATCH --requeue\n"
        f"# export {STORE_VARIABLE}=postgresql://... ; sbatch FILE ; then, on any machine:\n"
        f"# {_driver(deployment)}\n"
        f': "${{{STORE_VARIABLE}:?set it to the address of the store}}"\n'
        f"{worker}\n"
    )


def render_compose(deployment: Deployment) -> str:
    """A Compose file with the store and its workers, for one machine."""
    services = {
        "store": {
            "image": "postgres:17",
            "environment": {
                "POSTGRES_USER": "passhat",
                "POSTGRES_DB": "passhat",
                "POSTGRES_PASSWORD": "${PASSHAT_PASSWORD:?set a password}",
            },
            "volumes": ["store:/var/lib/postgresql/data"],
            "ports": ["127.0.0.1:5432:5432"],
        },
        "worker": {
            "image": deployment.image,
            "command": [
                "passhat",
                "worker",
                "--store",
                "postgresql://passhat:${PASSHAT_PASSWORD}@store/passhat",
                "--concurrency",
                str(deployment.concurrency),
            ],
            "working_dir": "/suite",
            "volumes": [".:/suite:ro"],
            "depends_on": ["store"],
            "restart": "unless-stopped",
            "deploy": {"replicas": deployment.workers},
        },
    }
    body = _yaml({"services": services, "volumes": {"store": {}}})
    start = "PASSHAT_PASSWORD=... docker compose -f FILE up -d"
    return _with_heading(deployment, [start], body)


def _with_heading(deployment: Deployment, commands: list[str], body: str) -> str:
    return "".join(f"# {line}\n" for line in [*commands, _driver(deployment)]) + body


def _driver(deployment: Deployment) -> str:
    suite = shlex.quote(deployment.suite)
    return f'passhat run {suite} --store "${STORE_VARIABLE}" --executor workers'


def _yaml(value: Any, indent: int = 0) -> str:
    """Mappings and lists as YAML; texts as JSON, which is YAML too and needs no rules."""
    pad = "  " * indent
    if isinstance(value, dict):
        return "".join(
            f"{pad}{key}: {json.dumps(item)}\n"
            if _is_flat(item)
            else f"{pad}{key}:\n{_yaml(item, indent + 1)}"
            for key, item in value.items()
        )
    return "".join(
        f"{pad}- {json.dumps(item)}\n"
        if _is_flat(item)
        else f"{pad}- {_yaml(item, indent + 1).lstrip()}"
        for item in value
    )


def _is_flat(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


RENDERERS = {"kubernetes": render_kubernetes, "slurm": render_slurm, "compose": render_compose}


stores_argument = click.argument(
    "stores", metavar="STORES...", nargs=-1, required=True, type=StoreType()
)


@click.command(cls=SectionedCommand)
@stores_argument
@store_option("Where to store the merged run.")
def merge(stores: tuple[Path | str, ...], store: Path | str) -> None:
    """Put the shards in STORES together as one run."""
    merge_stores(stores, store)


def merge_stores(stores: tuple[Path | str, ...], store: Path | str) -> None:
    """Put shards together, and say what came of it."""
    from passhat.journeys import merge_shards

    merged = merge_shards(stores, store)
    click.echo(f"run {merged.run.key}: {plural(merged.run.trials, 'trial')}", err=True)
    if merged.missing:
        parts = ", ".join(map(str, merged.missing))
        which = f"shard {parts} is" if len(merged.missing) == 1 else f"shards {parts} are"
        click.echo(f"not complete: {which} missing or interrupted", err=True)


@click.command(
    cls=SectionedCommand,
    brief=[
        "--store URL          the PostgreSQL store of the run [PASSHAT_STORE]",
        "--concurrency N      trials at a time",
    ],
)
@store_option("The PostgreSQL store of the run.", default=None, required=True)
@click.option("--run", metavar="KEY", help="Only this run.  [default: any run that needs workers]")
@click.option("--concurrency", type=WholeNumber(min=1), help="Trials at a time.")
@click.option("--until-idle", is_flag=True, help="Stop when no run has work for 10 seconds.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def worker(
    store: Path | str, run: str | None, concurrency: int | None, until_idle: bool, quiet: bool
) -> None:
    """Run trials for other machines: of runs started with `passhat run --executor workers`.

    Start as many as you like, on any machine that reaches the store and has the suite's folder. If
    a worker dies, the others run its trials again, and no stored answer is paid for twice.

    \b
      passhat worker --store postgresql://passhat@db.example/evals --concurrency 50
    """
    from passhat.cli.run_output import own_if_typed
    from passhat.history.database import is_postgres
    from passhat.journeys.workers import work
    from passhat.reporters.formatting import safe_text

    if store is None:
        raise click.UsageError(
            "name the store that machines share: --store postgresql://HOST/NAME, or PASSHAT_STORE"
        )
    if not is_postgres(store):
        raise ArgumentError("--store", "must be a postgresql:// address", str(store))
    own_if_typed()
    work(
        store,
        run=run,
        concurrency=concurrency,
        until_idle=until_idle,
        say=(lambda text: None) if quiet else (lambda text: click.echo(safe_text(text), err=True)),
    )
