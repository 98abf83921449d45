"""How a result shows itself in a notebook, and how it becomes a data frame."""

from __future__ import annotations

from typing import Any, Literal

FrameLibrary = Literal["pandas", "polars", "pyarrow"]


class Displayed:
    """A result that a notebook draws and that has a data frame.

    The formats are in layers above the results, so a result reaches them through the public names
    of the package, as a user would.
    """

    __slots__ = ()

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """The rows of this result as a data frame: the same rows and columns as its CSV file.

        `library` is "pandas", "polars" or "pyarrow"; without it, the one that your program has
        imported, else the first of these that is installed.
        """
        import passhat

        return passhat.to_frame(self, library)

    def _repr_html_(self) -> str:
        import passhat

        return str(passhat.render(self, "fragment", results=None, verbose=False))

    def _repr_markdown_(self) -> str:
        import passhat

        return str(passhat.render(self, "markdown", results=None, verbose=False))
