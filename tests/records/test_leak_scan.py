"""A scan for secrets reads what it can, and says what it cannot read."""

import gzip
import zipfile

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
