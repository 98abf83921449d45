"""Reading is bounded and executes nothing: bombs, depth, damage and foreign bytes are refused."""

import gzip
import struct
import subprocess
import sys
import zipfile
import zlib
from random import Random

import pytest

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import Limits, parse_limits, read_trials
from passhat.ingest.document import Archive, decompress, zstd

MEGABYTE = b" " * 2**20
EXPANDED = 4 * 2**30


def gzip_bomb():
    return gzip.compress(MEGABYTE) * 440


def zstd_bomb():
    return zstd.compress(MEGABYTE) * 4096 + skippable(200_000)


def skippable(size):
    """A Zstandard frame that holds nothing, to make up the weight."""
    return struct.pack("<II", 0x184D2A50, size) + b"\0" * size


def zip_bomb(declared):
    """An Inspect log whose summary holds gigabytes, and declares as much as it likes."""
    header = b'{"eval": {"task": "t", "model": "m"}}'
    members = [
        ("header.json", 0, header, len(header), zlib.crc32(header)),
        ("summaries.json", 93, zstd_bomb(), declared, 0),
    ]
    body = directory = b""
    for name, method, raw, size, checksum in members:
        fields = struct.pack(
            "<HHHHHIIIHH", 20, 0, method, 0, 0, checksum, len(raw), size, len(name), 0
        )
        at = struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + at + name.encode()
        body += b"PK\3\4" + fields + name.encode() + raw
    end = struct.pack("<HHHHIIH", 0, 0, 2, 2, len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + end


# getrusage would answer with the peak of the process that started this one, if that was higher.
REFUSED = """
import re, sys
from pathlib import Path
from passhat.errors import ReadError
from passhat.ingest import Limits, read_trials
try:
    read_trials(sys.argv[1], limits=Limits(max_ratio=int(sys.argv[2])))
except ReadError as error:
    print(error)
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""

BOMBS = {
    "gzip": gzip_bomb,
    "zstandard": zstd_bomb,
    "zip": lambda: zip_bomb(EXPANDED - 1),
    "zip that declares little": lambda: zip_bomb(1000),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    "ratio",
    [
        Limits().max_ratio,
        pytest.param(900, marks=pytest.mark.slow("the same bombs, expanded further")),
    ],
)
@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_that_expands_to_gigabytes_is_refused_in_little_memory(tmp_path, kind, ratio):
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[kind]())
    assert 400_000 < path.stat().st_size < 500_000
    command = [sys.executable, "-c", REFUSED, str(path), str(ratio)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    message, peak = run.stdout.strip().splitlines()
    assert f"above max_ratio = {ratio}: it may be a decompression bomb" in message
    assert int(peak) < 150 * 1024


def test_limits_can_be_widened_for_a_file_that_is_trusted():
    rows = b"task,passed\n" + b"a,1\n" * 18_000_000
    packed = zstd.compress(rows)
    assert len(rows) / len(packed) > 200
    with pytest.raises(ReadError, match=r"allow more with `limits=Limits\(max_ratio=\.\.\.\)`"):
        decompress("rows", packed, Limits())
    assert decompress("rows", packed, Limits(max_ratio=20_000)) == rows
    bound = Limits(max_ratio=20_000, max_bytes=1000)
    with pytest.raises(ReadError, match=r"rows: holds [\d,]+ bytes or more, above max_bytes"):
        decompress("rows", packed, bound)


def test_a_log_may_be_compressed_more_than_a_hundredfold():
    random = Random(7)
    said = '"refund the order, then tell the customer" ' * 24
    rows = "".join(
        f'{{"trial": {random.getrandbits(28)}, "said": {said}}}\n' for _ in range(80_000)
    )
    packed = zstd.compress(rows.encode(), level=9)
    assert len(rows) > 64 * 2**20
    assert 100 < len(rows) / len(packed) < 200
    assert decompress("rows", packed, Limits()) == rows.encode()


@pytest.mark.parametrize(
    "given", ["max_ratio", "max_ratio=0", "max_ratio=1e3", "max_width=3", "=3"]
)
def test_limits_of_the_command_line_are_names_and_numbers(given):
    assert parse_limits(["max_ratio=1000", "max_depth=3"]) == Limits(max_ratio=1000, max_depth=3)
    assert parse_limits([]) == Limits()
    with pytest.raises(ArgumentError, match=r"limits must be NAME=NUMBER, .* for max_bytes, max_r"):
        parse_limits([given])


def test_limits_are_whole_numbers_of_at_least_one():
    with pytest.raises(
        ArgumentError, match="max_bytes must be a whole number of at least 1, got 0"
    ):
        Limits(max_bytes=0)


def test_a_file_above_max_bytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"task,passed\na,1\n")
    with pytest.raises(ReadError, match=r"t.csv: holds 16 bytes or more, above max_bytes = 10"):
        read_trials(path, limits=Limits(max_bytes=10))


def test_folders_are_bounded_in_files_and_depth(tmp_path):
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for number in range(3):
        (deep / f"{number}.csv").write_bytes(b"task,passed\na,%d\n" % (number % 2))
    with pytest.raises(
        ReadError, match=r"deeper than max_depth = 2 folders; .* `limits=Limits\(max_depth="
    ):
        read_trials(tmp_path, limits=Limits(max_depth=2))
    with pytest.raises(ReadError, match=r"holds more than max_members = 2 files"):
        read_trials(tmp_path, limits=Limits(max_members=2))


def test_archives_are_bounded_in_members(tmp_path):
    path = tmp_path / "many.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(5):
            archive.writestr(f"samples/{number}", "")
    with pytest.raises(ReadError, match=r"holds more than max_members = 4 files"):
        read_trials(path, limits=Limits(max_members=4))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_json_nested_without_end_is_refused(opening):
    with pytest.raises(
        ReadError, match=r"nested too deeply|not valid JSON|not a file that passhat"
    ):
        read_trials(opening * 200_000)


def test_xml_with_a_document_type_is_refused_so_that_entities_cannot_expand():
    bomb = b"""<?xml version="1.0"?><!DOCTYPE testsuite [<!ENTITY a "aaaaaaaaaa">
    <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>"""
    with pytest.raises(ReadError, match="has a DOCTYPE, which JUnit XML has no use for"):
        read_trials(bomb)


def test_damaged_archives_say_so(tmp_path, samples):
    whole = (samples / "inspect" / "flaky_5x5_two_scorers_1error.eval").read_bytes()
    torn = tmp_path / "torn.eval"
    torn.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match=r"torn.eval: a damaged or unfinished zip archive"):
        read_trials(torn)
    flipped = bytearray(whole)
    summary = whole.index(b"summaries.json", whole.index(b"_journal/summaries/1.json") + 30) + 400
    flipped[summary] ^= 0xFF
    torn.write_bytes(flipped)
    with pytest.raises(ReadError, match=r"torn.eval, summaries.json: .*damaged"):
        read_trials(torn)
    with pytest.raises(ReadError, match=r"input: the compressed data is damaged"):
        read_trials(gzip.compress(b"task,passed\n" * 100)[:-20])


def test_members_by_an_unknown_method_or_with_a_password_are_refused(tmp_path):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("header.json", "{}")
    with path.open("rb") as stream, pytest.raises(ReadError, match=r"compressed by method 12"):
        Archive("odd.zip", stream, Limits()).read("header.json")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with path.open("rb") as stream, pytest.raises(ReadError, match=r"header.json: encrypted"):
        Archive("odd.zip", stream, Limits()).read("header.json")


def test_a_pickle_is_bytes_like_any_other(tmp_path):
    import pickle

    marker = tmp_path / "executed"
    evil = type("Evil", (), {"__reduce__": lambda self: (open, (str(marker), "w"))})()
    with pytest.raises(ReadError, match="is a binary file that passhat cannot read"):
        read_trials(pickle.dumps(evil))
    assert not marker.exists()


@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_are_read_as_the_standard_library_reads_them(tmp_path, before, method):
    path = tmp_path / "a.zip"
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a", method) as archive:
        archive.comment = b"a comment"
        archive.writestr("small", "text " * 50)
        archive.writestr("größe/ü", b"\0\1\2")
        with archive.open("wide", "w", force_zip64=True) as member:
            member.write(b"zip64 " * 1000)
    with zipfile.ZipFile(path) as theirs, path.open("rb") as stream:
        ours = Archive("a.zip", stream, Limits())
        assert ours.names("") == sorted(theirs.namelist())
        assert all(ours.read(name) == theirs.read(name) for name in theirs.namelist())
