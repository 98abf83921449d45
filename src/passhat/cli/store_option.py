"""The option --store: a SQLite file, or a PostgreSQL address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class StoreType(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """A path, or a postgresql:// address kept as it was written."""

    name = "store"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "FILE|URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        from passhat.history.database import is_postgres

        if is_postgres(value):
            return str(value)
        if Path(value).is_dir():
            self.fail(f"File {str(value)!r} is a directory.", param, ctx)
        return Path(value)
