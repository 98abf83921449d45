"""Wheel and source archive: the same bytes twice, working in empty environments, and how large.

`python -m bench.packaging [FOLDER]` builds into FOLDER (dist), writes a bill of materials beside
the archives, and prints the table for the documentation.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

REPORT = "passhat simulate --tasks 5 --runs 4 -o trials.csv && passhat report trials.csv"
TRIALS = {
    "": f"passhat demo && {REPORT}",
    "run": "passhat init --scripted suite && cd suite && passhat run --no-store",
    "local": "python -c 'import xllamacpp'",
    "web": "python -c 'import passhat.dashboard.server'",
    "frames": "passhat simulate --tasks 5 -o trials.parquet && passhat report trials.parquet",
    "cloud": f"{REPORT} && passhat report local://$PWD/trials.csv",
    "figures": f"{REPORT} -o report.png",
    "postgres": "python -c 'import passhat.history.postgres, psycopg'",
    "pytest": "passhat init --help && python -m pytest --markers | grep reliable",
}  # fmt: skip
"""What shows that an extra brings what it promises; exit codes 0, 1 and 4 are answers."""


def main(folder: Path = ROOT / "dist") -> None:
    wheel, archive = build(folder)
    with tempfile.TemporaryDirectory() as second:
        again = build(Path(second))
        same = [
            _digest(one) == _digest(two) for one, two in zip((wheel, archive), again, strict=True)
        ]
    print("## What an install takes\n")
    print(
        f"The wheel has {wheel.stat().st_size / 1e6:.1f} MB, the source archive "
        f"{archive.stat().st_size / 1e6:.1f} MB; building them twice gave "
        f"{'the same' if all(same) else 'DIFFERENT'} bytes. Each row is an empty environment in "
        "which the wheel was installed and used.\n"
    )
    print("| install | packages | MB |\n|---|--:|--:|")
    for extra, command in TRIALS.items():
        packages, size = _tried(wheel, extra, command, folder)
        print(f"| `passhat{f'[{extra}]' if extra else ''}` | {packages} | {size / 1e6:.0f} |")
    packages, _ = _tried(archive, "", TRIALS[""], None)
    print(f"\nThe source archive installs and runs too ({packages} packages).")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of this checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def _tried(package: Path, extra: str, command: str, bill: Path | None) -> tuple[int, int]:
    """Install a package with an extra into an empty environment, use it, and weigh it."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "env"
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        empty = _weight(home)
        wanted = f"{package}[{extra}]" if extra else str(package)
        subprocess.run([python, "-m", "pip", "install", "-q", wanted], check=True)
        size = _weight(home) - empty
        search = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        used = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], cwd=place, capture_output=True, text=True,
            env={**os.environ, "PATH": search, "PYTHONPATH": ""},
        )  # fmt: skip
        if used.returncode not in (0, 1, 4) or "Traceback" in used.stderr:
            raise SystemExit(f"passhat[{extra}]: {command}\n{used.stdout}{used.stderr}")
        listed = _installed(python)
        if bill is not None and not extra:
            (bill / f"{package.stem}.cdx.json").write_text(json.dumps(_bill(listed), indent=2))
        return len(listed), size


def _installed(python: Path) -> list[dict[str, str]]:
    """The packages of an environment, without pip itself."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    return [row for row in json.loads(listed.stdout) if row["name"] not in ("pip", "setuptools")]


def _bill(packages: list[dict[str, str]]) -> dict[str, object]:
    """A CycloneDX bill of materials: passhat and what its core install brings."""

    def component(row: dict[str, str]) -> dict[str, str]:
        name, version = row["name"], row["version"]
        reference = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
        return {
            "type": "application" if name == "passhat" else "library",
            "name": name, "version": version, "purl": reference, "bom-ref": reference,
        }  # fmt: skip

    found = {row["name"]: component(row) for row in packages}
    own = found.pop("passhat")
    needs = [part["bom-ref"] for part in found.values()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": list(found.values()),
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": needs}],
    }


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder) if path.suffix != ".pyc")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
