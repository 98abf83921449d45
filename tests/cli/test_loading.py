"""What each door loads: the module list, because a time would depend on the machine."""

import importlib
import json
import os
import subprocess
import sys
from operator import attrgetter

import pytest

import passhat
from passhat.cli import COMMANDS, main

HEAVY = ("numpy", "scipy", "rich", "jinja2", "msgspec", "pydantic", "polars", "ruamel", "mcp")
SLOW = ("scipy.stats", "pandas", "polars", "pyarrow", "pydantic", "mcp", "httpx2", "sqlalchemy")


def _loaded(code: str) -> set[str]:
    """The modules in a fresh Python after running `code`."""
    script = f"{code}\nimport sys, json; sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))  # commands write there too


def _command(*arguments: str) -> str:
    return f"from passhat.cli import main\nmain({list(arguments)!r}, standalone_mode=False)"


def _heavy(modules: set[str], names: tuple[str, ...]) -> set[str]:
    return {name for name in names if name in modules}


def test_importing_passhat_loads_nothing_but_its_version():
    modules = _loaded("import passhat")
    assert {name for name in modules if name.startswith("passhat")} == {
        "passhat",
        "passhat._version",
        "passhat.lazy",
    }
    assert not _heavy(modules, HEAVY)


def test_every_part_is_reached_through_the_package_without_an_import_of_its_own():
    parts = sorted(passhat._PARTS)
    modules = _loaded("import passhat\n" + "\n".join(f"passhat.{name}" for name in parts))
    assert {f"passhat.{name}" for name in parts} <= modules
    code = "import passhat\nassert passhat.stats.suite_estimate([5, 5], [5, 4], k=3).value == 0.7"
    assert "passhat.stats.suite_mean" in _loaded(code)


def test_a_name_that_is_not_there_is_no_part():
    with pytest.raises(AttributeError, match="has no attribute 'utils'"):
        passhat.utils  # noqa: B018  (the look-up is what is tested)


@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_the_version_and_the_help_load_click_and_no_command(arguments):
    modules = _loaded(_command(*arguments))
    assert "click" in modules
    assert not _heavy(modules, HEAVY)
    assert {name for name in modules if name.startswith("passhat")} == {
        "passhat",
        "passhat._version",
        "passhat.cli",
        "passhat.errors",
        "passhat.lazy",
        "passhat.messages",
    }


@pytest.mark.parametrize(
    "name", ["report", "compare", "rank", "plan", "profile", "simulate", "convert", "demo"]
)
def test_the_help_of_a_command_loads_no_numbers(name):
    assert not _heavy(_loaded(_command(name, "--help")), HEAVY)


def test_a_report_loads_no_slow_library(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("task,passed\na,1\na,0\nb,1\nb,1\n")
    modules = _loaded(_command("report", str(path)))
    assert not _heavy(modules, (*SLOW, "rich", "jinja2"))
    assert "passhat.drawing" not in modules


def test_what_is_said_of_files_loads_no_history(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("task,passed\na,1\na,0\nb,1\nb,1\n")
    more = {"report": [], "compare": [str(path)], "gate": ["--require", "pass@1 >= 0.1"]}
    codes = [_command(command, str(path), *words) for command, words in more.items()]
    tried = [f"try:\n    exec({code!r})\nexcept SystemExit: pass" for code in codes]
    modules = _loaded("\n".join(["import sys", *tried]))
    unused = ("passhat.history", "tempfile", "statistics")
    assert "passhat.analysis" in modules
    assert not _heavy(modules, unused)


def test_a_run_loads_no_numbers_before_its_first_trial(tmp_path, monkeypatch):
    (tmp_path / "agent.py").write_text(
        "import json, sys\nfrom pathlib import Path\n\n"
        "def run(prompt):\n"
        "    Path(__file__).with_name('loaded.json').write_text(json.dumps(sorted(sys.modules)))\n"
        "    return True\n"
    )
    (tmp_path / "suite.yml").write_text(
        "systems: [{name: s, python: 'agent:run'}]\ntasks: [{name: t, prompt: hello}]\n"
    )
    monkeypatch.chdir(tmp_path)
    modules = _loaded(_command("run", "-q"))
    before = set(json.loads((tmp_path / "loaded.json").read_text()))
    assert not _heavy(before, ("numpy", "scipy", "rich", "jinja2", "httpx2", "mcp", "genai_prices"))
    assert not _heavy(modules, ("scipy.stats", "rich", "jinja2", "httpx2", "mcp", "genai_prices"))
    assert "passhat.drawing" not in modules


def test_a_plan_of_a_run_loads_no_numbers_and_no_statistics(tmp_path, monkeypatch):
    (tmp_path / "suite.yml").write_text(
        "systems: [{name: s, model: scripted, script: [{answer: hi}]}]\n"
        "tasks: [{name: t, prompt: hello}]\n"
    )
    monkeypatch.chdir(tmp_path)
    modules = _loaded(_command("run", "--dry-run"))
    assert not _heavy(modules, (*SLOW, "numpy", "scipy", "sqlite3"))
    assert "passhat.analysis.reports" not in modules


def test_a_gate_is_parsed_without_numbers_and_without_a_report():
    modules = _loaded("import passhat\npasshat.parse_gate('pass^3 >= 0.8')")
    assert not _heavy(modules, HEAVY)
    assert "passhat.analysis.gates.gate" in modules
    assert "passhat.analysis.reports.report" not in modules
    assert len([name for name in modules if name.startswith("passhat")]) <= 18


@pytest.mark.parametrize("command", ["list", "validate"])
def test_a_suite_with_a_gate_is_looked_at_without_numbers(command, tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text(
        "systems: [{name: s, command: echo hi}]\n"
        "tasks: [{name: t, prompt: hello}]\n"
        "gates: ['pass^3 >= 0.8']\n"
    )
    modules = _loaded(_command(command, str(suite)))
    assert "passhat.analysis.gates.gate" in modules
    assert not _heavy(modules, ("numpy", "scipy", "rich", "jinja2", "httpx2", "mcp"))
    assert "passhat.reporters.formatting" not in modules


def test_every_command_of_the_table_is_there_and_has_a_sentence():
    import click

    for name, sentence in COMMANDS.items():
        command = main.get_command(click.Context(main), name)
        assert isinstance(command, click.Command)
        assert sentence.endswith((".", "?"))
        assert command.help, name


def test_the_public_names_are_sorted_and_all_there():
    assert passhat.__all__ == sorted(passhat.__all__)
    for name in passhat.__all__:
        assert getattr(passhat, name) is not None
    assert set(passhat.__all__) <= set(dir(passhat))


def test_fifteen_names_are_to_begin_with_and_all_others_stay():
    assert len(set(dir(passhat)) - {"__version__"}) == 15
    for name in ("rank", "render_html", "Report", "Estimate"):
        assert getattr(passhat, name) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [("report_results", "report"), ("gate_results", "gate"), ("compare_results", "compare"),
     ("explain_results", "why"), ("plan_results", "plan"), ("trend_of_runs", "trend"),
     ("run_suite", "run"), ("repeat_command", "repeat")],
)  # fmt: skip
@pytest.mark.parametrize("package", [passhat, passhat.journeys], ids=["passhat", "journeys"])
def test_an_old_name_works_and_says_the_new_one(package, old, new):
    with pytest.warns(DeprecationWarning, match=rf"{package.__name__}\.{new} now"):
        assert getattr(package, old) is getattr(package, new)


@pytest.mark.parametrize(
    ("old", "new"), [("measure", "report"), ("judge", "gate"), ("explain", "why")]
)
def test_a_part_of_the_analysis_works_from_here_and_says_what_is_asked_instead(old, new):
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=rf"^passhat\.{old} is passhat\.{new} now$"):
            assert getattr(passhat, old).__module__.startswith("passhat.analysis.")


@pytest.mark.parametrize("name", passhat._CALLED_HERE)
def test_a_name_of_another_tool_leads_to_ours(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; here it is") as caught:
        getattr(passhat, name)
    ours = str(caught.value).rpartition(" ")[2]
    importlib.import_module("passhat.analysis.gates.run_answer")
    assert callable(attrgetter(ours.removeprefix("passhat."))(passhat))


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'passhat' has no attribute 'nothing'"):
        passhat.nothing  # noqa: B018  # the access itself is the test


def test_idle_threads_of_numpy_sleep_and_the_environment_of_agents_stays_as_it_was(monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    says = (
        "\nimport ctypes, os; name = 'OPENBLAS_THREAD_TIMEOUT'"
        "\nlibrary = ctypes.CDLL(None); library.getenv.restype = ctypes.c_char_p"
        "\nprint(library.getenv(name.encode()), os.environ.get(name))"
    )
    run = [sys.executable, "-c", _command("schema", "report") + says]
    # Commands that earlier tests ran in this process have set the variable for its children.
    here = dict(os.environ)
    said = [
        subprocess.check_output(run, text=True, env=environment).splitlines()[-1]
        for environment in (here, here | {"OPENBLAS_THREAD_TIMEOUT": "20"})
    ]
    assert said == ["b'4' None", "b'20' 20"]
