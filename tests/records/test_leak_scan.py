"""A scan for secrets reads what it can, and says what it cannot read."""

import gzip
import io
import random
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest

from passhat.errors import InputError
from passhat.records.redaction import Redactor, scan_paths

KEY = "sk-" + "proj" * 12


def scanned(path):
    return [str(found) for found in scan_paths([path], Redactor({"OPENAI_API_KEY": KEY}))]


def test_secrets_are_found_inside_packed_files(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(f"x\n{KEY}".encode()))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("inner.txt", KEY)
    first, second = scanned(tmp_path)
    assert "a.gz:2:" in first
    assert "b.zip!inner.txt:" in second


def _encrypted(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner.txt", "text")
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag of encryption, at the member and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


@pytest.mark.parametrize("kind", ["cut", "broken", "encrypted"])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path, kind):
    path = tmp_path / "odd"
    packed = gzip.compress(bytes(range(256)) * 20)
    path.write_bytes(packed[:-20] if kind == "cut" else packed[:12] + b"\xff" * 40)
    if kind == "encrypted":
        _encrypted(path)
    with pytest.raises(InputError, match="odd cannot be scanned: "):
        scanned(path)


SAMPLES = {
    "known": "grün-hunter-22",
    "shaped": "ghp_0123456789abcdefghij0123456789abcdef",
    "named": 'DB_PASSWORD="x7f9Qa02mZ41kk8d"',
    "bearer": "Authorization: Bearer abc123def456ghi789",
}
"""Secrets of each way to know one; the last three by their shape alone."""

FILES = {
    "a text": ("utf-8", b"", b"\n"),
    "a text with one odd byte": ("utf-8", b"caf\xe9 \xff\n", b"\n"),
    "Latin-1": ("latin-1", "déjà vu: ".encode("latin-1"), b"\n"),
    "UTF-16 with a mark": ("utf-16", b"", b""),
    "UTF-16": ("utf-16-le", "a log\n".encode("utf-16-le"), b""),
    "UTF-16, big end first": ("utf-16-be", "é\n".encode("utf-16-be"), b""),
    "UTF-32": ("utf-32-le", b"", b""),
    "a binary file": ("utf-8", b"\x7fELF\0\1\2", b"\0\xfe"),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_kept_file_holds_no_secret_however_it_is_written(kind, file):
    code, before, after = FILES[file]
    secret = SAMPLES[kind]
    content = before + secret.encode(code) + after
    cleaned = Redactor({SAMPLES["known"]: "PIN"}).clean_file(content)
    if b"\0" in content:
        assert cleaned is None
    else:
        value = secret.split()[-1].split("=")[-1].strip('"').encode(code)
        assert value not in cleaned
        assert cleaned.startswith(before)
        assert b"[redacted" in cleaned


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_scan_finds_a_secret_however_it_is_written_and_packed(tmp_path, kind, file):
    code, before, after = FILES[file]
    content = before + f"nothing\n{SAMPLES[kind]}".encode(code) + after
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("inner", content)
    with sqlite3.connect(tmp_path / "store") as store:
        store.execute("CREATE TABLE kept (body BLOB)")
        store.execute("INSERT INTO kept VALUES (?)", (content,))
    store.close()
    found = list(scan_paths([tmp_path], Redactor({SAMPLES["known"]: "PIN"})))
    assert {one.path.name for one in found} == {"plain", "packed", "zip", "store"}
    unmarked = code.startswith(("utf-16-", "utf-32-"))
    place = " (binary)" if unmarked else f":{2 + before.count(10)}"
    assert {one.place for one in found if one.path.name == "plain"} == {place}


def _packed(write) -> bytes:
    into = io.BytesIO()
    write(into)
    return into.getvalue()


def test_pictures_archives_and_noise_are_kept_as_they_are():
    root = Path(__file__).parents[2]
    texts = sorted((root / "docs").rglob("*.md"))
    assert texts

    def tar(into):
        with tarfile.open(fileobj=into, mode="w:gz") as archive:
            archive.add(root / "docs" / "how-to")

    def zipped(into):
        with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
            for text in texts:
                archive.write(text)

    pictures = [file.read_bytes() for file in sorted((root / "docs").rglob("*.png"))]
    assert pictures
    noise = random.Random(1).randbytes(2_000_000)
    for content in (*pictures, _packed(tar), _packed(zipped), noise, bytes(100_000), b"", b"\xff"):
        assert Redactor({"hunter2hunter2": "KEY"}).clean_file(content) == content


def test_a_known_value_that_is_no_text_is_found_too():
    value = b"p\xe9ss-w\xf6rt-77".decode("utf-8", "surrogateescape")  # as the environment has it
    redactor = Redactor({value: "PIN"})
    for around in (b"", b"\0"):
        cleaned = redactor.clean_file(around + b"p\xe9ss-w\xf6rt-77")
        assert cleaned in (b"[redacted:PIN]", None)
