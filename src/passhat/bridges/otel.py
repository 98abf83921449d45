"""OpenTelemetry: trials out as spans with `gen_ai.evaluation.result` events, spans in as trials.

export_trials(passhat.read_trials("log.eval"))          # to the exporters that you configured
passhat.run("passhat.yml", on_event=SpanEvents())  # the same while a run lasts

spans = TrialSpans()                                     # in a program that is traced
tracer_provider.add_span_processor(spans)
passhat.report(spans.trials(task="app.case"))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import Status, StatusCode

from passhat._version import __version__
from passhat.ingest import ColumnMap, read_trials
from passhat.records import Outcome, Trial, Trials
from passhat.runner.schedule import TrialFinished

if TYPE_CHECKING:
    from passhat.journeys.run_request import RunEvent

EVENT = "gen_ai.evaluation.result"
TASK, TRIAL, NAME = "passhat.task", "passhat.trial", "passhat.pass"
"""The conventions name neither a task nor a trial, so these attributes are passhat's own."""


def export_trials(trials: Iterable[Trial], tracer_provider: Any = None) -> int:
    """Emit a span for each trial, with its verdict as an event; how many there were."""
    tracer = _tracer(tracer_provider)
    count = 0
    for trial in trials:
        _emit(tracer, trial)
        count += 1
    return count


class SpanEvents:
    """Emits a span for each trial of a run as soon as it ends: hand it to a run as `on_event`."""

    def __init__(self, tracer_provider: Any = None) -> None:
        self._tracer = _tracer(tracer_provider)

    def __call__(self, event: RunEvent) -> None:
        """Take one event of a run; those that end no trial are passed over."""
        if isinstance(event, TrialFinished):
            _emit(self._tracer, event.trial)


class TrialSpans(SpanProcessor):  # type: ignore[misc,unused-ignore]
    """Collects the spans of a program as they end, and reads them as trials when asked."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._lines.append(span.to_json(indent=None))

    def trials(self, **columns: str) -> Trials:
        """The trials so far. `task` names the attribute of the task; others as in a ColumnMap."""
        mapping = ColumnMap(**{"task": TASK, **columns})
        return read_trials("\n".join(self._lines).encode(), format="otel", mapping=mapping)


def _tracer(provider: Any) -> Any:
    return (provider or trace.get_tracer_provider()).get_tracer("passhat", __version__)


def _emit(tracer: Any, trial: Trial) -> None:
    span = tracer.start_span(f"evaluate {trial.task}", attributes=_attributes(trial))
    result: dict[str, Any] = {"gen_ai.evaluation.name": NAME}
    if trial.outcome is Outcome.ERRORED:
        span.set_status(Status(StatusCode.ERROR, trial.error or "errored"))
        result["error.type"] = "errored"
    else:
        result["gen_ai.evaluation.score.label"] = "pass" if trial.outcome else "fail"
        result["gen_ai.evaluation.score.value"] = float(trial.score or 0.0)
    span.add_event(EVENT, result)
    span.end()


def _attributes(trial: Trial) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": trial.system,
        TASK: trial.task,
        TRIAL: trial.trial,
        "gen_ai.usage.input_tokens": None if trial.tokens_in is None else int(trial.tokens_in),
        "gen_ai.usage.output_tokens": None if trial.tokens_out is None else int(trial.tokens_out),
    }
    return {name: value for name, value in attributes.items() if value is not None}
