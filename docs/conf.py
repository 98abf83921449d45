"""How the documentation is built: `make docs`."""

from importlib.metadata import version as installed_version

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
