"""Compiled templates, kept beside the compiled modules of Python: a page takes half the time.

Compiling the templates of a report takes a hundred milliseconds. What they compile to is kept where
Python keeps its own bytecode (`__pycache__`, or PYTHONPYCACHEPREFIX), under the same rules: nothing
is written with PYTHONDONTWRITEBYTECODE, and a folder that cannot be written to is left alone.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket


def page_templates() -> Environment:
    """The templates of pages, without any filter."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("passhat.reporters.formats", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=template_cache(),
    )


@cache
def template_cache() -> BytecodeCache:
    """The cache that environments of templates are given."""
    from jinja2 import BytecodeCache

    class TemplateCache(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            # jinja2 checks that the template and the versions of jinja2 and Python are the same.
            with suppress(OSError), _place(bucket).open("rb") as file:
                bucket.load_bytecode(file)

        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):
                    _write(_place(bucket), bucket)

    return TemplateCache()


def _write(place: Path, bucket: Bucket) -> None:
    """All of it or nothing: another process may be reading."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=place.parent, delete=False) as file:
        bucket.write_bytecode(file)
    Path(file.name).replace(place)


def _place(bucket: Bucket) -> Path:
    """One file for each template and everything else that it is compiled with."""
    given = bucket.environment
    settings = given.trim_blocks, given.lstrip_blocks, given.autoescape, sorted(given.filters)
    key = hashlib.blake2b(repr((bucket.key, settings, _newest_change())).encode(), digest_size=12)
    return Path(cache_from_source(__file__)).with_name(f"template-{key.hexdigest()}.bin")


@cache
def _newest_change() -> int:
    """When a reporter was last changed: filters of constants are worked out while compiling."""
    top = Path(__file__).parent
    return max(file.stat().st_mtime_ns for file in top.rglob("*.py"))
