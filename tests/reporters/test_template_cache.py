"""Templates compiled once: the same page, wherever its bytecode comes from."""

import sys

import pytest
from jinja2 import DictLoader, Environment

from passhat.reporters.page_parts import template_cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def page(text, **filters):
    environment = Environment(
        loader=DictLoader({"a.html": text}), autoescape=True, bytecode_cache=template_cache()
    )
    environment.filters |= filters
    return environment.get_template("a.html").render(name="<b>")


def kept(folder):
    return sorted(folder.rglob("template-*.bin"))


def test_a_template_is_compiled_once_and_gives_the_same_page(folder):
    first = page("Hello {{ name }}")
    (place,) = kept(folder)
    written = place.read_bytes()
    assert page("Hello {{ name }}") == first == "Hello &lt;b&gt;"
    assert kept(folder) == [place]
    assert place.read_bytes() == written


def test_a_template_that_changed_is_compiled_again(folder):
    page("Hello {{ name }}")
    assert page("Bye {{ name }}") == "Bye &lt;b&gt;"
    assert page("Hello {{ name }}") == "Hello &lt;b&gt;"


def test_environments_with_other_filters_keep_their_own(folder):
    assert page("{{ 'x' | twice }}", twice=lambda text: text * 2) == "xx"
    more = {"twice": lambda text: text * 2 + "!", "thrice": lambda text: text * 3}
    assert page("{{ 'x' | twice }}", **more) == "xx!"


def test_nothing_is_written_where_python_writes_no_bytecode(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert page("Hello {{ name }}") == "Hello &lt;b&gt;"
    assert kept(folder) == []


def test_a_broken_file_is_compiled_over(folder):
    page("Hello {{ name }}")
    (place,) = kept(folder)
    place.write_bytes(b"no bytecode")
    assert page("Hello {{ name }}") == "Hello &lt;b&gt;"


def test_a_place_that_cannot_be_written_to_is_left_alone(folder):
    (folder / "file").write_text("")
    sys.pycache_prefix = str(folder / "file")  # a file where a folder would have to be
    assert page("Hello {{ name }}") == "Hello &lt;b&gt;"
