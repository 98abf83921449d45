"""Small logs of every format, and ways to break them.

Each format has a small log, cut from the samples where there is one. One of its files is broken in
some way, by its bytes or by a value within.
"""

import io
import json
import random
import re
import zipfile
from dataclasses import dataclass, field

import numpy as np

from passhat.errors import PasshatError
from passhat.ingest import ColumnMap, Limits, read_with_transcripts
from passhat.ingest.document import Archive
from passhat.records import Outcome

MOST_CHARACTERS = 4000
MARK = "@here@"
SPANS = ColumnMap(task="task.id", trial="trial.index", passed="status")

KINDS_OF_SPANS = {
    "otel_genai": SPANS,
    "otel_conventions": ColumnMap(task="task.id", passed="verdict"),
}

ODD_VALUES = {
    **{word: word.encode() for word in ("null", "true", "0", "-1", "1.5", "1e308", "NaN", "{}")},
    **{word: word.encode() for word in ("[]", "[1]", '{"a": 1}', "[[1], [2]]", '[{"role": 3}]')},
    "too big for a float": b"1" * 400,
    "too big for Python": b"1" * 5000,
    "too big an exponent": b"1e999",
    "64 bits": b"9223372036854775808",
    "no text": b'""',
    "a word": b'"x"',
    "a NUL": rb'"a\u0000b"',
    "half a character": rb'"\ud800"',
    "Latin-1": b'"caf\xe9"',
    "digits": b'"' + b"7" * 5000 + b'"',
    "a long text": b'"' + b"long " * 4000 + b'"',
    "a path": b'"../../' + b"x" * 300 + b'/\\u0000"',
    "deep lists": b"[" * 400 + b"]" * 400,
    "deeper lists": b"[" * 20_000 + b"]" * 20_000,
    "deep objects": b'{"a":' * 400 + b"1" + b"}" * 400,
}
ODD_BYTES = (b"", b"\0", b"\xff", b"\xe9", b"\xed\xa0\x80", b'"', b"{", b"\n", b",", b"PK\3\4")
ODD_BYTES += (b"<!DOCTYPE a>", b"&x;", b"[" * 5000, b"\x1f\x8b", b"1" * 400, b"NaN")

MAPPINGS = (
    *(ColumnMap(), ColumnMap(pass_if="score>=0.5"), ColumnMap(pass_if="task>=3")),
    *(ColumnMap(scorer="x"), ColumnMap(name="one")),
)


told = []
"""What was done to the last file, for whoever wants to see it done again."""


def tell(step):
    told.append(step)


@dataclass(frozen=True, kw_only=True)
class Log:
    """The files of one log, the one to read first, and the column map that it needs."""

    files: dict[str, bytes] = field(repr=False)
    mapping: ColumnMap = field(default_factory=ColumnMap, repr=False)

    @property
    def main(self):
        return next(iter(self.files))


def small(value, most=5):
    """The same JSON with lists and objects of a few entries, that each mutation may hit."""
    if isinstance(value, dict):
        return {key: small(one, most) for key, one in value.items()}
    return [small(one, most) for one in value[:most]] if isinstance(value, list) else value


def of_json(value):
    return json.dumps(small(value)).encode()


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def sampled_logs(folder):
    """Logs out of the sample files, by the reader that knows them and their name."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if (
            path.name.startswith("results_") or path.name == "results.json"
        ):  # means, not trials: they lie beside the samples
            continue
        # no trials, or only with a folder, or not in the first entries of each list
        if {"refused", "bfcl", "harbor", "helm"} & set(path.parts):
            continue
        if path.suffix == ".json":
            files = {path.name: of_json(json.loads(path.read_bytes()))}
        elif path.suffix == ".jsonl":
            files = {path.name: b"\n".join(path.read_bytes().splitlines()[:8]) + b"\n"}
            beside = path.parent.glob("results_*.json")
            files |= {one.name: of_json(json.loads(one.read_bytes())) for one in beside}
        elif path.suffix in (".csv", ".xml", ".xlsx"):
            files = {path.name: path.read_bytes()}
        else:
            continue
        chosen = KINDS_OF_SPANS.get(path.parent.name, ColumnMap())
        yield str(path.relative_to(folder)), Log(files=files, mapping=chosen)


def inspect_archive(folder):
    path = folder / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    with path.open("rb") as stream:
        archive = Archive(path.name, stream, Limits())
        kept = ("header.json", "summaries.json", "samples/t0_epoch_1.json")
        return {name: of_json(json.loads(archive.read(name))) for name in kept}


def written_logs():
    """Logs of tools whose samples are not ours to copy, as their formats are documented."""
    spoken = [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [
        {"name": "f", "function": {"name": "f", "arguments": "{}"}}], "usage": {}}]  # fmt: skip
    run = {"task_id": 1, "reward": 1.0, "trial": 0, "info": {"error": None}, "traj": spoken}
    yield "tau.json", {"tau.json": [run, run | {"trial": 1}]}
    simulation = {"id": "s", "task_id": "1", "trial": 0, "seed": 3, "messages": spoken,
        "reward_info": {"reward": 1.0}, "termination_reason": "agent_stop", "duration": 1.5,
        "agent_cost": 0.1, "start_time": "2026-01-01T00:00:00"}  # fmt: skip
    info = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "retail"}}
    whole = {"info": info, "tasks": [], "simulations": [simulation]}
    yield "tau2.json", {"tau2.json": whole}
    folder = {"info": info, "tasks": [], "simulation_index": None}
    yield "tau2 folder", {"results.json": folder, "simulations/s.json": simulation}
    result = {"task_id": "t", "trial_name": "t.1-of-2.x", "is_resolved": True, "instruction": "Do",
        "failure_mode": "unset", "parser_results": {"a": "passed"}, "total_input_tokens": 3,
        "agent_started_at": "2026-01-01T00:00:00", "agent_ended_at": None}  # fmt: skip
    bench = {"results": [result], "pass_at_k": {}, "n_resolved": 1}
    metadata = {"agent_name": "a", "model_name": "m"}
    yield "terminal", {"results.json": bench, "run_metadata.json": metadata}
    trial = {"task_name": "t", "agent_info": {"name": "a", "model_info": {"name": "m"}},
        "verifier_result": {"rewards": {"reward": 1.0, "other": 0}}, "exception_info": None,
        "agent_result": {"n_input_tokens": 1, "metadata": {"tool_calls": 2}},
        "agent_execution": {"started_at": "2026-01-01T00:00:00", "finished_at": None}}  # fmt: skip
    steps = {"steps": [{"source": "agent", "message": "x", "tool_calls": [{"function_name": "f"}],
        "observation": {"results": [{"content": "y"}]}}]}  # fmt: skip
    yield "harbor", {"result.json": trial, "agent/trajectory.json": steps}
    meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}, "mcp": "fs",
        "token_usage": {"input_tokens": 1}, "time": {"start": "2026"}, "turn_count": 2}  # fmt: skip
    yield "mcpmark", {"meta.json": meta, "messages.json": spoken}
    ran = {"success": True, "error_message": None, "execution_time": 1.5, "turn_count": 1}
    task = {"model": "m", "service": "fs", "task": "t", "runs": {"run-1": ran, "run-2": ran}}
    yield "mcpmark task", {"task.json": task}
    report = {"resolved_ids": ["a"], "submitted_ids": ["a", "b"], "unresolved_ids": ["b"],
        "empty_patch_ids": [], "error_ids": ["c"], "incomplete_ids": ["d"]}  # fmt: skip
    yield "swe-bench", {"m.run.json": report}
    attributes = [{"key": "case", "value": {"stringValue": "a"}},
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
        {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.5}},
        {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": []}}}]  # fmt: skip
    span = {"traceId": "1", "spanId": "2", "name": "n", "attributes": attributes, "events": [],
        "startTimeUnixNano": "1", "endTimeUnixNano": "2", "status": {"code": 0}}  # fmt: skip
    yield "otlp", {"otlp.json": {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}}
    row = {"task": "a", "trial": 1, "passed": True, "score": 0.5, "cost": 1, "seed": 3,
        "tags": ["x"], "tools": ["f"], "duration_ms": 7, "error": None, "messages": spoken,
        "started": "2026"}  # fmt: skip
    yield "table", {"table.json": [row, row | {"trial": 2}]}
    stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1.0, "mean": 1.0}
    instance = {"instance_id": "id1", "train_trial_index": 0, "stats": [stat]}
    yield "helm", {"per_instance_stats.json": [instance, instance | {"train_trial_index": 1}]}
    yield "runs inside", {"runs.json": {"agent": "m", "runs": [row, row | {"trial": 2}]}}


def bfcl_log(folder):
    """The score file of BFCL and the answers that it was made from."""
    home = folder / "bfcl"
    files = sorted(home.rglob("*.json"), key=lambda path: "score" not in path.parts)
    return Log(files={str(path.relative_to(home)): path.read_bytes() for path in files})


def all_logs(folder):
    logs = dict(sampled_logs(folder))
    logs["bfcl"] = bfcl_log(folder)
    logs["archive"] = Log(files={"log.eval": zipped(inspect_archive(folder))})
    for name, files in written_logs():
        chosen = ColumnMap(task="case") if name == "otlp" else ColumnMap()
        written = {key: json.dumps(one).encode() for key, one in files.items()}
        logs[name] = Log(files=written, mapping=chosen)
    sample = b'{"task_id": "a", "completion": "x", "result": "passed", "passed": true}\n'
    logs["humaneval"] = Log(files={"human.jsonl": sample * 2})
    rows = 'task;trial;passed;score;kosten\na;1;yes;0,5;"x\ny"\nb;1;no;0,25;\n'
    logs["table.csv"] = Log(files={"table.csv": rows.encode()})
    return logs


def places(value, path=()):
    """The way to every value within JSON."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else items:
        yield from places(one, (*path, key))


def replaced(value, path, by):
    """The same JSON with one value replaced, or without it where there is nothing to put there."""
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = replaced(value[key], rest, by)
    elif by is None:
        del copy[key]
    else:
        copy[key] = by
    return copy


def broken_json(draw, content):
    """JSON, or JSON Lines, in which values are gone or are odd."""
    lines = content.rstrip(b"\n").split(b"\n") if content.count(b"\n") > 1 else [content]
    place = draw.randrange(len(lines))
    value = json.loads(lines[place])
    odd = []
    for _ in range(draw.choice((1, 1, 2))):
        if known := list(places(value)):
            path = draw.choice(known)
            gone = draw.random() < 0.25
            odd += [] if gone else [draw.choice(list(ODD_VALUES))]
            tell(f"{path}: {'gone' if gone else odd[-1]}")
            value = replaced(value, path, None if gone else f"{MARK}{len(odd)}")
    text = json.dumps(value).encode()
    for number, name in enumerate(odd, start=1):
        text = text.replace(f'"{MARK}{number}"'.encode(), ODD_VALUES[name])
    return b"\n".join([*lines[:place], text, *lines[place + 1 :]])


def broken_text(draw, content):
    """CSV or XML with an odd value in place of a word, a number or what stands in quotes."""
    at = draw.choice(list(re.finditer(rb'(?<==")[^"]*|[\w.]+|"[^"]*"', content)))
    name = draw.choice(list(ODD_VALUES))
    tell(f"{at[0]!r}: {name}")
    return content[: at.start()] + ODD_VALUES[name].strip(b'"') + content[at.end() :]


def broken_bytes(draw, content):
    """Bytes cut off, flipped, taken out or put in."""
    at = draw.randrange(len(content) or 1)
    how = draw.choice(("cut", "flip", "take out", "put in"))
    tell(f"{how} at {at}")
    if how == "cut":
        return content[:at]
    if how == "flip":
        return content[:at] + draw.randbytes(1) + content[at + 1 :]
    if how == "take out":
        return content[:at] + content[at + draw.randrange(1, 200) :]
    return content[:at] + draw.choice(ODD_BYTES) + content[at:]


def broken_archive(draw, content):
    """An archive with a member that is broken, or gone."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    victim = draw.choice(sorted(members))
    tell(victim)
    if draw.random() < 0.1:
        del members[victim]
    else:
        members[victim] = broken(draw, victim, members[victim])
    return zipped(members)


def broken(draw, name, content):
    """A file of this name and content, broken in some way."""
    within = broken_archive if name.endswith(".eval") else broken_text
    if name.endswith((".json", ".jsonl")):
        within = broken_json
    return draw.choice((broken_bytes, within, within))(draw, content)


def refusal(source, mapping):
    """Why a log is refused; None where it is read, and then its trials are sound."""
    try:
        trials, _ = read_with_transcripts(source, mapping=mapping)
    except PasshatError as error:
        return str(error)
    done = trials.outcome != Outcome.ERRORED
    assert all(column.ndim == 1 for column in (trials.score, *trials.features.values()))
    assert ((trials.score[done] >= 0) & (trials.score[done] <= 1)).all()
    assert all(not np.isinf(column).any() for column in trials.features.values())
    return None


def room_of(folder, logs):
    """Write all logs into a folder, each into one of its own."""
    for number, log in enumerate(logs.values()):
        for name, content in log.files.items():
            path = folder / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return folder


def read_one_broken(logs, room, seed):
    """Break a file as the seed says, read its log and mend it; why it was refused, or None."""
    draw = random.Random(seed)
    told.clear()
    number = draw.randrange(len(logs))
    name, log = list(logs.items())[number]
    victim = draw.choice(sorted(log.files))
    tell(f"{name}, {victim}")
    path, folder = room / str(number) / victim, room / str(number)
    content = broken(draw, victim, log.files[victim])
    mapping = draw.choice((*[log.mapping] * 3, *MAPPINGS))
    path.write_bytes(content)
    try:
        return refusal(draw.choice((folder / log.main, folder, content)), mapping)
    finally:
        path.write_bytes(log.files[victim])
