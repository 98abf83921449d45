"""What a run is asked for, and what is kept of it so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, fields, replace
from typing import Any

from passhat.fast_dataclass import dataclass

FREE = frozenset({"concurrency", "max_cost", "max_tokens", "max_minutes", "max_calls"})
"""Options that a resumed run may be given anew: how fast and how far it goes, not what is run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One request to run a suite; None and empty leave it to the suite.

    `interface` is what the caller wants to find again on resuming, such as the files it writes.
    """

    suite: str = ""
    only: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    runs: int | None = None
    seed: int | None = None
    require: tuple[str, ...] = ()
    until_settled: bool = False
    coverage_threshold: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    cassette: str | None = None
    servers: str | None = None
    allow_drift: bool = False
    compress: bool = False
    faults: str | None = None
    shard: str | None = None
    interface: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, Any]:
        """What two starts of the same run have in common, as JSON has it."""
        left_out = FREE | set(self.interface)
        return {name: value for name, value in self.to_json().items() if name not in left_out}

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads again."""
        own = asdict(self)
        kept = {**own, **own.pop("interface")}
        return {name: _plain(value) for name, value in kept.items() if name != "interface"}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RunRequest:
        """The request of a stored run."""
        known = {field.name for field in fields(cls)} - {"interface"}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()
        }
        own = {name: value for name, value in values.items() if name in known}
        return cls(**own, interface={n: v for n, v in values.items() if n not in known})

    def changed(self, **given: Any) -> RunRequest:
        """The same request with what is given in the place of its own."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
