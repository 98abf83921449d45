"""Files that start workers: well-formed, and without the secret."""

import subprocess

import pytest
from ruamel.yaml import YAML

from passhat.reporters.deployments import (
    Deployment,
    render_compose,
    render_kubernetes,
    render_slurm,
)

CHOSEN = Deployment(
    suite="my suite.yml", workers=7, concurrency=30, image="registry.example/agent:1", hours=12
)


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
