"""How the documentation is built: `make docs`."""

import shutil
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

project = "passhat"
copyright = "the passhat authors"  # noqa: A001  Sphinx's own name for it
release = version = installed_version("passhat")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["build"]
html_theme = "furo"
smartquotes = False  # an option is `--json`, with two hyphens, wherever it is named
html_title = "passhat"
myst_heading_anchors = 3
autodoc_typehints = "none"
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, outside the docs
html_extra_path = ["llms.txt"]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", copy_markdown)


def copy_markdown(app: Any, _error: Exception | None) -> None:
    """Put the Markdown of every page beside its HTML: llms.txt links to it."""
    source, site = Path(app.srcdir), Path(app.outdir)
    for page in source.rglob("*.md"):
        target = site / page.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
