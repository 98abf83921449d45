"""tau2-bench results: one JSON file, or a folder with `results.json` and `simulations/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, Value, decode
from passhat.ingest.readers import Named, Reading, TrialTable, sum_of
from passhat.ingest.transcripts import (
    as_text,
    mappings,
    sibling_bytes,
    sibling_decoded,
    sibling_file,
    sibling_names,
    turns_of,
)
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript
from passhat.records.trial import path_of

READING = Reading(
    format="tau2-bench results",
    versions="files and folders, v0.1 to v1.0",
    system="agent's model (and implementation)",
    task="domain/task_id",
    run="trial",
    outcome="a reward of 1 passes",
    score="reward",
    family="domain",
    factor="user's model",
    started="start_time",
    covers_subfolders=True,
)

FOLDER = "simulations"
"""Where tau2-bench keeps the simulations of a run, each in a file that is called by its id."""

SUCCESS = 1 - 1e-6
"""The reward from which tau2-bench counts a success."""

NOT_EVALUABLE = ("infrastructure_error", "context_window_exceeded")
"""How a simulation ends that tau2-bench leaves out of its figures."""


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Message(msgspec.Struct):
    role: str = ""
    tool_calls: list[Named] | None = None
    usage: _Usage | None = None


class _RewardInfo(msgspec.Struct):
    reward: float | None = None


class _Simulation(msgspec.Struct):
    task_id: str | int
    trial: int | None = None
    seed: int | None = None
    reward: float | None = None
    reward_info: _RewardInfo | None = None
    termination_reason: str | None = None
    agent_cost: float | None = None
    duration: float | None = None
    start_time: str | None = None
    messages: list[_Message] | None = None


class _AgentInfo(msgspec.Struct):
    implementation: str = ""
    llm: str | None = None


class _UserInfo(msgspec.Struct):
    llm: str | None = None


class _EnvironmentInfo(msgspec.Struct):
    domain_name: str = ""


class _Info(msgspec.Struct):
    agent_info: _AgentInfo = msgspec.field(default_factory=_AgentInfo)
    environment_info: _EnvironmentInfo = msgspec.field(default_factory=_EnvironmentInfo)
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _Results(msgspec.Struct):
    info: _Info
    simulations: list[_Simulation] | None = None
    simulation_index: list[_Simulation] | None = None


class _Spoken(msgspec.Struct):
    id: str | int | None = None
    messages: list[Any] | None = None
    termination_reason: str | None = None
    reward_info: dict[str, Any] | None = None


def recognises(document: Document) -> bool:
    """Whether it describes the agent and the environment, and holds or lists simulations."""
    if not document.has("info", "tasks"):
        return False
    if document.has("simulations") or document.has("simulation_index"):
        return True
    return document.path is not None and (document.path.parent / FOLDER).is_dir()


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a simulation; the folder's index suffices, so that its files stay unread."""
    results = document.decode(_Results)
    simulations = (
        results.simulations or results.simulation_index or list(_from_folder(document, _Simulation))
    )
    judged = (_reward(s) is not None or s.termination_reason in NOT_EVALUABLE for s in simulations)
    if simulations and not any(judged):
        raise ReadError(
            f"{document.name}: has no rewards, so nothing says what passed; evaluate it with "
            "`tau2 evaluate-trajs` and give what this writes"
        )
    agent = results.info.agent_info
    system = agent.llm or agent.implementation or document.stem
    if agent.llm and agent.implementation not in ("", "llm_agent", agent.llm):
        system = f"{agent.llm} ({agent.implementation})"
    domain = results.info.environment_info.domain_name
    notes = [f'tasks of the domain "{domain}"'] if domain else []
    user = results.info.user_info.llm
    at = {"at": (f"user={user}",)} if user else {}
    rows = [_row(domain, simulation) | at for simulation in simulations]
    return TrialTable.of_rows(rows, system=system, notes=notes, entry="simulation")


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The messages of each simulation; those of a folder are opened one by one."""
    counted = 0
    for simulation in document.entries(_Spoken, "simulations"):
        counted += 1
        yield _transcript(simulation)
    for entry in () if counted else document.entries(_Spoken, "simulation_index"):
        counted += 1
        if not entry.id:
            yield None
            continue
        spoken, broken = sibling_decoded(document, _Spoken, FOLDER, f"{entry.id}.json")
        yield _transcript(spoken) if spoken else Transcript(error=broken)
    if not counted:
        yield from map(_transcript, _from_folder(document, _Spoken))


def _from_folder(document: Document, shape: type[Value]) -> Iterator[Value]:
    """Every simulation of a run without an index, one by one, once all are known to be bounded."""
    if document.path is None:
        raise ReadError(f"{document.name}: holds no simulation, and has no folder beside it")
    # A file that begins with a dot is one that tau2-bench is still writing.
    files = sibling_names(
        document, FOLDER, keep=lambda name: name.endswith(".json") and not name.startswith(".")
    )
    folder, total = document.path.parent / FOLDER, 0
    for name in files:
        path = sibling_file(document, FOLDER, name)
        if path is None:  # without it the others would be another run's results
            raise ReadError(
                f"{folder / name}: cannot be opened, or is a link that leads out of the folder; "
                "put the file itself there, or move it away"
            )
        total += path.stat().st_size
        document.limits.check_size(str(folder), total)
    for name in sorted(files):
        content = sibling_bytes(document, FOLDER, name)
        yield decode(str(folder / name), content or b"", shape)


def _transcript(spoken: _Spoken) -> Transcript:
    return Transcript(
        messages=turns_of(spoken.messages),
        stop_reason=spoken.termination_reason or "",
        checks=tuple(_checks(spoken.reward_info or {})),
    )


def _checks(graded: Mapping[str, Any]) -> Iterator[Check]:
    """What the reward rests on: the database in the end, assertions, actions, what was said."""
    basis = graded.get("reward_basis")
    counted = basis if isinstance(basis, list) else ["DB", "ENV_ASSERTION", "ACTION"]
    missed = [
        _call(checked.get("action"))
        for checked in mappings(graded.get("action_checks"))
        if not checked.get("action_match")
    ]
    database = graded.get("db_check")
    if "DB" in counted and isinstance(database, dict):
        held = bool(database.get("db_match"))
        yield _check("database", held, "is not what it should be in the end", "\n".join(missed))
    if "ENV_ASSERTION" in counted:
        for checked in mappings(graded.get("env_assertions")):
            wanted = checked.get("env_assertion")
            name = as_text(wanted.get("func_name")) if isinstance(wanted, dict) else ""
            words = name.replace("_", " ") or "assertion"
            yield _check(words, bool(checked.get("met")), expected=_call(wanted))
    if "ACTION" in counted:
        for checked in mappings(graded.get("action_checks")):
            held = bool(checked.get("action_match"))
            yield _check("action", held, "was not taken", _call(checked.get("action")))
    for part, name, words in (
        ("NL_ASSERTION", "nl_assertions", "nl_assertion"),
        ("COMMUNICATE", "communicate_checks", "info"),
    ):
        for checked in mappings(graded.get(name)) if part in counted else ():
            why, held = as_text(checked.get("justification")), bool(checked.get("met"))
            yield _check(part.lower().replace("_", " "), held, why, as_text(checked.get(words)))


def _check(name: str, held: bool, message: str = "", expected: str = "") -> Check:
    """One part of the reward; what it wanted is told where it did not hold."""
    return Check(
        target=name,
        score=float(held),
        message="" if held else message,
        expected="" if held else expected,
    )


def _call(wanted: object) -> str:
    """An action or an assertion as a call."""
    if not isinstance(wanted, dict):
        return ""
    name = as_text(wanted.get("name") or wanted.get("func_name"))
    given = wanted.get("arguments")
    arguments = given.items() if isinstance(given, dict) else ()
    return f"{name}({', '.join(f'{key}={as_text(value)}' for key, value in arguments)})"


def _reward(simulation: _Simulation) -> float | None:
    info = simulation.reward_info
    return simulation.reward if info is None or info.reward is None else info.reward


def _row(domain: str, simulation: _Simulation) -> dict[str, Any]:
    reward = _reward(simulation)
    ended = simulation.termination_reason
    broke = ended in NOT_EVALUABLE or reward is None
    row = {
        "task": f"{domain}/{simulation.task_id}" if domain else simulation.task_id,
        "trial": simulation.trial or 0,
        "family": domain or None,
        "seed": simulation.seed,
        "outcome": Outcome.ERRORED if broke else Outcome((reward or 0) >= SUCCESS),
        "score": reward,
        "cost": simulation.agent_cost,
        "seconds": simulation.duration,
        "started": simulation.start_time,
        "error": (ended if ended in NOT_EVALUABLE else "no reward") if broke else None,
    }
    return row | _resources(simulation.messages)


def _resources(messages: list[_Message] | None) -> dict[str, Any]:
    if messages is None:
        return {}
    own = [message for message in messages if message.role == "assistant"]
    used = [message.usage for message in own if message.usage is not None]
    calls = [call.name for message in own for call in message.tool_calls or ()]
    return {
        "tokens_in": sum_of(usage.prompt_tokens for usage in used),
        "tokens_out": sum_of(usage.completion_tokens for usage in used),
        "turns": len(own),
        "tool_calls": len(calls),
        "tools": path_of(calls),
    }
