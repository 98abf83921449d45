import subprocess
import sys

import pytest
import scipy.special

from passhat.stats import special

LEAN = "import passhat.stats.special, sys\n"


def run(script):
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert not found.stderr
    return found.stdout.strip()


def test_the_functions_are_those_of_scipy():
    public = [name for name in scipy.special.__all__ if not name.startswith("_")]
    assert [
        name for name in public if getattr(special, name) is not getattr(scipy.special, name)
    ] == []


def test_what_no_special_function_uses_is_not_loaded():
    unused = {"scipy.special", "numpy.f2py", "numpy.testing", "numpy.random", "unittest"}
    lean = "from passhat.stats.special import betainc\nimport sys\n"
    assert run(f"{lean}print({unused!r} & sys.modules.keys())") == "set()"


@pytest.mark.slow("starts Python and loads all of scipy")
def test_an_import_of_scipy_finds_the_same_functions_afterwards():
    same = "print(scipy.special.betainc is passhat.stats.special.betainc)"
    assert run(f"{LEAN}import scipy.special\n{same}") == "True"
    assert run(f"import scipy.special\n{LEAN}{same}") == "True"


def test_a_name_that_is_not_compiled_is_found_in_the_package():
    assert run(LEAN + "print(passhat.stats.special.comb(5, 2))") == "10.0"


@pytest.mark.slow("starts Python and loads all of scipy")
@pytest.mark.parametrize("part", ["_ufuncs", "_special_ufuncs"])
def test_a_scipy_without_such_parts_is_imported_plainly(part):
    hidden = f"""
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: None if name.endswith({part!r}) else find(name, *more)
import passhat.stats.special
PathFinder.find_spec = find
print(passhat.stats.special.betainc(1.0, 1.0, 0.25))
"""
    assert run(hidden) == "0.25"


@pytest.mark.slow("starts Python and loads all of scipy")
def test_what_builds_on_the_whole_of_scipy_works_after_it():
    script = LEAN + "from scipy import stats\nprint(stats.boschloo_exact([[3, 5], [8, 2]]).pvalue)"
    assert float(run(script)) == pytest.approx(0.0838692)


@pytest.mark.parametrize(
    "other",
    [
        "scipy.special",
        pytest.param("scipy.stats", marks=pytest.mark.slow("scipy.special by way of more modules")),
        "passhat.stats.special",
    ],
)
def test_threads_may_import_it_and_scipy_at_the_same_time(other):
    script = f"""
import importlib, threading
both = threading.Barrier(2)
faults = []
def load(name):
    both.wait()
    try:
        importlib.import_module(name)
    except Exception as error:
        faults.append(repr(error))
threads = [threading.Thread(target=load, args=(n,)) for n in ("passhat.stats.special", {other!r})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(faults)
"""
    assert run(script) == "[]"
