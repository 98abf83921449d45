"""Keeping secrets out of all that is stored, recorded, logged or shown; finding them in files."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from passhat.dataclass import dataclass
from passhat.errors import InputError
from passhat.records.secrets import Secret, clean_strings, clean_text, shapes_near
from passhat.records.suite import ModelSystem, Suite, model_of

NAMED = "[redacted:"
"""The beginning of the mark for a value that is known by the name of its variable."""

DISARMED = "[redacted :"

SHORTEST = 6
"""Shorter values are too likely to be ordinary words."""

SECRET_NAME = re.compile(
    r"(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIE|_PAT|_PASS|_PIN|_PWD|_AUTH)S?$"
)
"""Names of variables whose values are secret wherever they are used."""

ADDRESS_NAME = re.compile(r"(?i)(URL|URI|DSN|CONNECTION_?STRING)$")
LOGIN = r"://[^/\s]*:[^/\s]+@|(?i:password|accountkey)="
"""An address is secret where it holds a password."""

VARIABLE = r"\$\{(\w+)"
ESCAPED_SPACE = re.compile(r"\\[nrt]")
LETTER_THEN_DIGIT = r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A secret that was found in a text: what it is, and where it begins."""

    what: str
    start: int


class Redactor:
    """Replaces known secret values, and everything that has the shape of a key.

    `names` has for each known value the name it goes by. The usual encodings of a value (JSON,
    percent, base64, hex) are replaced too. The values in `restorable` are put back by `restore`:
    those that are in the agent's prompt, and needed again when an interrupted conversation
    is continued.

    >>> redactor = Redactor({"hunter22": "PIN_KEY"}, restorable=["hunter22"])
    >>> redactor.clean('{"password": "hunter22"}')
    '{"password": "[redacted:PIN_KEY]"}'
    >>> redactor.restore("say [redacted:PIN_KEY]")
    'say hunter22'
    >>> redactor.clean("key sk-ant-api03-0123456789abcdef")
    'key [redacted]'
    """

    def __init__(self, names: Mapping[str, str], *, restorable: Iterable[str] = ()) -> None:
        known = {value: name for value, name in names.items() if len(value) >= SHORTEST}
        self._known = known
        forms = {form: name for value, name in known.items() for form in _forms(value)}
        # Longest first: one secret may be a part of another.
        self._forms = sorted(forms.items(), key=lambda form: -len(form[0]))
        self._backwards = [value[::-1] for value in known if len(value) >= 2 * SHORTEST]
        self._restorable = {
            _mark(known[value]): _in_json(value) for value in restorable if value in known
        }

    def clean_reply(self, text: str) -> str:
        """JSON text from a model or tool, without secrets.

        A model that writes a mark itself must not get the value for it from `restore`.
        """
        return self.clean_json(text.replace(NAMED, DISARMED) if self._restorable else text)

    def clean_json(self, text: str) -> str:
        r"""JSON text without secrets; what was cleaned before stays as it is.

        Each string in it is cleaned on its own: in `"\nsk-..."` the escape hides where the key
        begins.
        """
        near = shapes_near(text) or "..." in text or "…" in text
        if not near and not (self._forms and any(form in text for form, _ in self._forms)):
            return text
        return clean_strings(text, self.clean)

    def clean(self, text: str) -> str:
        """The text without secrets."""
        for form, name in self._forms:
            if form in text:
                text = text.replace(form, _mark(name))
        text = clean_text(text)
        return self._without_cut_values(text) if "..." in text or "…" in text else text

    def clean_file(self, content: bytes) -> bytes | None:
        r"""What is in a file without secrets; None for one that is no text and holds one.

        >>> redactor = Redactor({"hunter22": "PIN_KEY"})
        >>> redactor.clean_file(b"caf\xe9: pin=hunter22"), redactor.clean_file(b"\0hunter22")
        (b'caf\xe9: pin=[redacted:PIN_KEY]', None)
        """
        if b"\0" not in content:  # a byte that is no UTF-8 hides nothing that stands beside it
            text = content.decode("utf-8", "surrogateescape")
            return self.clean(text).encode("utf-8", "surrogateescape")
        is_secret = self.known_in(content) or next(self.leaks(_legible(content)), None) is not None
        return None if is_secret else content

    def known_in(self, content: bytes) -> list[str]:
        """The names of the known values in a file, in whatever encoding it is."""
        names = {name for known, name in self._forms for f in _encodings(known) if f in content}
        return sorted(names)

    def restore(self, text: str) -> str:
        """JSON text that was cleaned, with the values back that the agent may know."""
        if NAMED in text:
            for mark, value in self._restorable.items():
                text = text.replace(mark, value)
        return text

    def leaks(self, text: str) -> Iterator[Leak]:
        """Every secret in a text that was not cleaned, or was not cleaned well enough."""
        for form, name in self._forms:
            if (start := text.find(form)) >= 0:
                yield Leak(what=_value_of(name), start=start)
        for backwards in self._backwards:
            if (start := text.find(backwards)) >= 0:
                yield Leak(what="a known secret written backwards", start=start)
        # Line breaks are escaped in JSON; spaces in their place keep the positions.
        text = ESCAPED_SPACE.sub("  ", text)
        for shape in shapes_near(text):
            for match in shape.matches(text):
                yield Leak(what=shape.name, start=match.start())

    def _without_cut_values(self, text: str) -> str:
        """The text without the beginnings of values that were cut off, as in `hunter2h...`."""
        for value, name in self._known.items():
            for end in ("...", "…"):
                for length in range(len(value) - 1, SHORTEST - 1, -1):
                    if (part := value[:length] + end) in text:
                        text = text.replace(part, _mark(name) + end)
                        break
        return text


def text_of(content: bytes) -> str | None:
    """A content as text; None if it is none."""
    try:
        return None if b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def suite_redactor(suite: Suite | None, environment: Mapping[str, str]) -> Redactor:
    """The redactor of one suite: what it refers to, and keys in the environment."""
    if suite is None:
        return environment_redactor(environment)
    names = known_secrets(suite, environment)
    prompts = list(_prompts(suite)) if names else []
    return Redactor(names, restorable=[v for v in names if any(v in text for text in prompts)])


def environment_redactor(environment: Mapping[str, str]) -> Redactor:
    """A redactor for texts of no suite: it knows the keys in the environment."""
    return Redactor(_keys_in(environment))


def known_secrets(suite: Suite, environment: Mapping[str, str]) -> dict[str, str]:
    """All secret values that a run may touch, each with the name of its variable.

    Headers and keys are secret. A variable that is passed on to a process is secret where its
    name says so or its value looks random: LANG is not.
    """
    secrets = _keys_in(environment)
    for name, value, certain in _referred(suite):
        if certain or SECRET_NAME.search(name) or looks_random(value):
            # "Bearer abc" hides "abc".
            secrets |= {word: name for word in (*value.split(), value) if word != "Bearer"}
    return secrets


def _keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The values of variables whose names say that they are secret, each with its name."""
    named = {
        name: value
        for name, value in environment.items()
        if SECRET_NAME.search(name) or (ADDRESS_NAME.search(name) and re.search(LOGIN, value))
    }
    # A key that comes from a file often ends with the end of a line, and is sent without it.
    return {word: name for name, value in named.items() for word in (value, value.strip())}


def looks_random(text: str) -> bool:
    """Whether a text is like a generated key: letters and digits mixed as no word or path is.

    >>> looks_random("x7f9Qa02mZ41kk8d"), looks_random("en_US.UTF-8"), looks_random("/opt/app/bin")
    (True, False, False)
    """
    return len(text) >= 12 and "/" not in text and len(re.findall(LETTER_THEN_DIGIT, text)) >= 4


def _referred(suite: Suite) -> Iterator[tuple[str, str, bool]]:
    """Name and value of each secret of the suite, and whether it surely is one."""
    systems = {id(p.system): p.system for p in suite.pairings}.values()
    judges = [suite.judge] if suite.judge else []
    talking = [user.model for user in suite.users if user.model is not None]
    models = [*filter(None, map(model_of, systems)), *(judge.model for judge in judges), *talking]
    for holder in (*suite.servers.values(), *systems, *models):
        yield from _values(getattr(holder, "env", {}), certain=False)
        yield from _values(getattr(holder, "headers", {}), certain=True)
        key = getattr(holder, "api_key", None)
        yield from _values({} if key is None else {"api_key": key}, certain=True)


def _values(secrets: Mapping[str, Secret], *, certain: bool) -> Iterator[tuple[str, str, bool]]:
    for key, secret in secrets.items():
        # A text without a reference is plain: the suite file itself shows it.
        if secret.value is None or secret.value == secret.reference:
            continue
        variable = re.search(VARIABLE, secret.reference)
        yield variable[1] if variable else key, secret.value, certain


def _prompts(suite: Suite) -> Iterator[str]:
    """Every text that an agent of the suite gets in a prompt."""
    for pairing in suite.pairings:
        task = pairing.task
        yield task.prompt
        yield task.system_prompt or ""
        yield from (step.prompt for step in task.steps)
        yield from (value for value in task.values.values() if isinstance(value, str))
        if task.scenario is not None:
            yield from (
                task.scenario.goal,
                task.scenario.opens or "",
                *task.scenario.facts.values(),
            )
        yield from task.server_prompt.arguments.values() if task.server_prompt else ()
        if isinstance(pairing.system, ModelSystem):
            yield pairing.system.system_prompt or ""


def _forms(value: str) -> list[str]:
    """A value as it may be written: as it is, in JSON, a URL, base64, hex, or Latin-1."""
    import base64
    import json

    data = value.encode(errors="surrogateescape")
    # Base64 of a longer text holds one of three shifts of the value; the middle of each is stable.
    shifted = [base64.b64encode(b"\0" * shift + data).decode()[4:-4] for shift in range(3)]
    whole = [base64.b64encode(data).decode(), *shifted]
    encoded = [*whole, data.hex(), quote(data, safe="")]
    escaped = [_in_json(value), json.dumps(value)[1:-1]]
    with suppress(UnicodeEncodeError):  # as the bytes of a file in Latin-1 are read
        escaped.append(value.encode("latin-1").decode("utf-8", "surrogateescape"))
    return [value, *escaped, *(form for form in encoded if len(form) >= 2 * SHORTEST)]


def _encodings(form: str) -> Iterator[bytes]:
    for code in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        with suppress(UnicodeEncodeError):
            yield form.encode(code, "surrogateescape")


LEGIBLE = rb"[\t\n\r\x20-\x7e]{10,}|(?:[\t\n\r\x20-\x7e]\0{1,3}){9,}[\t\n\r\x20-\x7e]?"
"""Ten letters in a row, of one byte each or, as in UTF-16 and UTF-32, with zeros between them."""


def _legible(content: bytes) -> str:
    """What can be read in a file that is no text, as the program strings shows it."""
    return b"\n".join(re.findall(LEGIBLE, content)).replace(b"\0", b"").decode("ascii")


def _in_json(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)[1:-1]


def _mark(name: str) -> str:
    return f"{NAMED}{name}]"


def _value_of(name: str) -> str:
    return f"the value of {name}"


# Searching files for secrets: texts, compressed files, archives and SQLite stores.

SQLITE = b"SQLite format 3\0"
ZSTD = b"\x28\xb5\x2f\xfd"
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"

MOST_BYTES = 2**30
"""No file, and nothing that a file unpacks to, is read beyond this."""

SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache"})
"""Folders that are not walked unless they are named themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecret:
    """A secret in a file; `place` is a line, a table of a store, or a member of an archive.

    The secret itself is not kept: this is printed.
    """

    path: Path
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}{self.place}: {self.what}"


def scan_paths(paths: Sequence[Path], redactor: Redactor) -> Iterator[FoundSecret]:
    """Every secret in these files, and in all files of these folders."""
    import sqlite3
    import zipfile
    import zlib

    unreadable = (
        *(OSError, EOFError, sqlite3.DatabaseError, _zstd().ZstdError, zlib.error),
        *(zipfile.BadZipFile, RuntimeError),  # damaged; encrypted, or packed in an unknown way
    )
    for path in _files(paths):
        try:
            yield from _scan_file(path, redactor)
        except unreadable as error:
            raise InputError(f"{path} cannot be scanned: {error}") from error


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                inner = file.relative_to(path).parts[:-1]
                if file.is_file() and not SKIPPED.intersection(inner):
                    yield file
        else:
            yield path


def _scan_file(path: Path, redactor: Redactor) -> Iterator[FoundSecret]:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than {MOST_BYTES} bytes: scan its parts")
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    for place, content in _contents(path, start):
        text = content if isinstance(content, str) else _text(content)
        seen = set()
        for leak in redactor.leaks(text):
            seen.add(leak.what)
            line = text.count("\n", 0, leak.start) + 1
            yield FoundSecret(path=path, place=place or f":{line}", what=leak.what)
        if isinstance(content, bytes) and b"\0" in content:
            wide = [leak.what for leak in redactor.leaks(_legible(content))]
            known = map(_value_of, redactor.known_in(content))
            for what in sorted({*wide, *known} - seen):
                yield FoundSecret(path=path, place=place or " (binary)", what=what)


def _contents(path: Path, start: bytes) -> Iterator[tuple[str, str | bytes]]:
    """What is in a file, each with its place there; "" if lines can be counted."""
    import zipfile

    if start == SQLITE:
        yield from _store_texts(path)
    elif start.startswith(ZIP):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    yield f"!{member.filename}", file.read(MOST_BYTES)
    else:
        yield "", _unpacked(path.read_bytes())


def _store_texts(path: Path) -> Iterator[tuple[str, str | bytes]]:
    """Every text and every blob of a SQLite file, unpacked."""
    import sqlite3
    from contextlib import closing

    # Read from the disk and never changed: a store may be in use.
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as store:
        # A virtual table keeps what it has in others, which are read, and may not show it itself.
        tables = store.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (table,) in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            for row in store.execute(f"SELECT * FROM {quoted}"):  # noqa: S608 - quoted above
                for value in row:
                    if isinstance(value, str):
                        yield f" (table {table})", value
                    elif isinstance(value, bytes):
                        yield f" (table {table})", _unpacked(value)


def _unpacked(data: bytes) -> bytes:
    if data.startswith(ZSTD):
        unpacked: bytes = _zstd().ZstdDecompressor().decompress(data, max_length=MOST_BYTES)
        return unpacked
    if data.startswith(GZIP):
        import gzip
        import io

        with gzip.open(io.BytesIO(data)) as file:
            return file.read(MOST_BYTES)
    return data


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def _text(data: bytes) -> str:
    code = next((code for mark, code in _MARKS.items() if data.startswith(mark)), None)
    return data.decode(code, "replace") if code else data.decode("utf-8", "surrogateescape")
