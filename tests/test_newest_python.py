"""passhat on a newer Python than this one: that of Pyodide, which has the standard library alone.

numpy and the other compiled packages are not there, so this shows what depends on the language:
that every module compiles without a warning, that those which need nothing else can be imported,
and that our dataclasses behave as those of the standard library.
"""

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
MODULES = len(list((SOURCE / "passhat").rglob("*.py")))
COMPILED = """
import json, pathlib, sys, warnings

warnings.simplefilter("error")
files = sorted(pathlib.Path("/src/passhat").rglob("*.py"))
faults = []
for file in files:
    try:
        compile(file.read_text(), str(file), "exec")
    except (SyntaxError, Warning) as error:
        faults.append(f"{file}: {error!r}")
print(json.dumps([sys.version_info[:2], len(files), faults]))
"""
IMPORTED = """
import importlib, json, pathlib, sys

sys.path.insert(0, "/src")
done, faults = 0, []
for file in sorted(pathlib.Path("/src/passhat").rglob("*.py")):
    name = ".".join(file.relative_to("/src").with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
        done += 1
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] == "passhat":
            faults.append(f"{name}: {error}")
    except Exception as error:
        faults.append(f"{name}: {error!r}")
print(json.dumps([done, faults]))
"""
TESTED = """
import sys

sys.path[:0] = ["/src", "/packages"]
import pytest

words = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-c", "/dev/null"]
code = pytest.main([*words, "--noconftest", "/tests/test_fast_dataclass.py"])
print(int(code))
"""
PURE = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")

pytestmark = [
    pytest.mark.slow("starts the newest Python, compiled to WebAssembly"),
    pytest.mark.skipif(
        not (TESTS / "node_modules" / "pyodide").exists() or shutil.which("node") is None,
        reason="no Pyodide here: npm ci in tests/",
    ),
]


def newest_python(folder, script, **mounted):
    """The last line that a script prints there, read as JSON."""
    (folder / "script.py").write_text(script)
    places = [f"{name}={path}" for name, path in {"src": SOURCE, **mounted}.items()]
    done = subprocess.run(
        ["node", TESTS / "newest_python.mjs", folder / "script.py", *places],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stdout


def test_every_module_compiles_without_a_warning(tmp_path):
    (version, files, faults), _ = newest_python(tmp_path, COMPILED)
    assert tuple(version) >= (3, 14)
    assert files == MODULES
    assert faults == []


def test_modules_that_need_the_standard_library_alone_can_be_imported(tmp_path):
    (imported, faults), _ = newest_python(tmp_path, IMPORTED)
    assert faults == []
    assert imported >= 57  # as many as there are now: none may come to need more


def test_our_dataclasses_behave_as_those_of_the_newest_standard_library(tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in PURE:
        origin = Path(find_spec(name).origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, packages / name)
        else:
            shutil.copy(origin, packages / origin.name)
    code, said = newest_python(tmp_path, TESTED, packages=packages, tests=TESTS)
    assert code == 0, said
