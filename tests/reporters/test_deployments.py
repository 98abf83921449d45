"""Files that start workers: well-formed, and without the secret."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7
from ruamel.yaml import YAML

from passhat.cli.machines import Deployment, render_compose, render_kubernetes, render_slurm
from passhat.records import Resources

CHOSEN = Deployment(
    suite="my suite.yml", workers=7, concurrency=30, image="registry.example/agent:1", hours=12
)

HEAVY = replace(CHOSEN, resources=Resources(cpus=0.25, memory=2 * 10**8, gpus=0.1))
PACKAGES = Path(__file__).parents[2] / ".venv-ray/lib"


def published(pattern):
    """The schema that a package of `make ray` carries."""
    found = sorted(PACKAGES.glob(f"python*/site-packages/{pattern}"))
    if not found:
        pytest.skip("no published schemas here: make ray")
    return found[-1]


@pytest.mark.parametrize("chosen", [CHOSEN, HEAVY])
def test_the_kubernetes_job_is_valid_under_the_published_strict_schema(chosen):
    file = published("kubernetes_validate/kubernetes-json-schema/*-local-strict/job-batch-v1.json")
    registry = Registry(
        retrieve=lambda name: Resource.from_contents(
            json.loads((file.parent / name.rpartition("/")[2]).read_text()),
            default_specification=DRAFT7,
        )
    )
    checker = jsonschema.Draft7Validator(json.loads(file.read_text()), registry=registry)
    job = YAML(typ="safe").load(render_kubernetes(chosen))
    checker.validate(job)
    job["spec"]["template"]["spec"]["containers"][0]["imagge"] = "a typo"
    with pytest.raises(jsonschema.ValidationError, match="imagge"):
        checker.validate(job)


def test_the_compose_file_is_valid_under_the_published_schema():
    schema = json.loads(published("compose/config/compose_spec.json").read_text())
    file = YAML(typ="safe").load(render_compose(CHOSEN))
    checker = jsonschema.Draft7Validator(schema)
    checker.validate(file)
    file["services"]["worker"]["restrat"] = "always"
    with pytest.raises(jsonschema.ValidationError, match="restrat"):
        checker.validate(file)


def test_a_worker_asks_for_what_its_trials_take():
    job = YAML(typ="safe").load(render_kubernetes(HEAVY))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "7500m", "memory": "5979Mi"}
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 3
    script = render_slurm(HEAVY)
    assert "#SBATCH --cpus-per-task=8\n" in script
    assert "#SBATCH --gpus-per-task=3\n" in script


def test_the_kubernetes_job_is_indexed_and_reads_the_store_from_a_secret():
    job = YAML(typ="safe").load(render_kubernetes(CHOSEN))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 7, 7)
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] in ("OnFailure", "Never")  # the only ones that a Job allows
    (container,) = pod["containers"]
    assert container["image"] == CHOSEN.image
    assert container["env"][0]["valueFrom"]["secretKeyRef"] == {
        "name": "passhat-store",
        "key": "url",
    }
    assert "--concurrency 30 --until-idle" in container["command"][2]


def test_the_compose_file_has_a_store_on_loopback_and_workers_that_come_back():
    file = YAML(typ="safe").load(render_compose(CHOSEN))
    assert set(file["services"]) == {"store", "worker"}
    assert file["services"]["store"]["ports"] == ["127.0.0.1:5432:5432"]
    worker = file["services"]["worker"]
    assert worker["deploy"]["replicas"] == 7
    assert worker["restart"] == "unless-stopped"
    assert set(file["volumes"]) == {"store"}


def test_the_slurm_script_is_valid_shell_and_its_array_has_one_task_for_each_worker():
    script = render_slurm(CHOSEN)
    assert "#SBATCH --array=0-6\n" in script
    assert "#SBATCH --time=12:00:00\n" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
    assert checked.returncode == 0


@pytest.mark.parametrize("render", [render_kubernetes, render_compose, render_slurm])
def test_the_file_says_how_the_run_is_led_and_holds_no_address(render):
    text = render(CHOSEN)
    assert "passhat run 'my suite.yml' --store \"$PASSHAT_STORE\" --executor workers" in text
    assert "postgresql://passhat@" not in text
