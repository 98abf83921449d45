"""The dashboard: from a store to a running site, and its pages, each asked of a journey."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from threading import Thread
from time import monotonic
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import h11
import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from passhat.analysis.comparing.comparison import Comparison, as_people_compare
from passhat.analysis.comparing.ranking import RankReport
from passhat.analysis.reports.parts import LABELS, TaskRow, TaskTable
from passhat.analysis.reports.report import Report
from passhat.dashboard.live import (
    MOST_MARKS_LINKED,
    RUNNING,
    ending,
    follow,
    progress_of,
    watching,
)
from passhat.dashboard.responses import (
    ENTRANCE,
    LONGEST_PERSON,
    PERSON,
    SHORTEST_CHOSEN_TOKEN,
    Access,
    Address,
    Guard,
    compile_templates,
    door,
    is_loopback,
    page,
    render,
    sent_form,
    streamed,
    url,
    with_tasks,
)
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, HistoryError, InputError, StoreError
from passhat.history import History, Run, queries
from passhat.history.artefacts import list_artefacts, read_artefact
from passhat.history.queries import RunColumn, RunOrder, SaidHits, search_said
from passhat.history.runs import RunAction, run_name, this_person
from passhat.history.store import LONGEST_NOTE
from passhat.ingest.write import render_csv, render_jsonl
from passhat.journeys.analyses import rank_results
from passhat.journeys.history import change_run
from passhat.journeys.labels import BUDGET, Assignment, LabelSession
from passhat.journeys.overview import (
    SPENDING_DAYS,
    SUITES_A_PAGE,
    ReportCache,
    look_at_suite,
    suites_on_page,
    tasks_of_fall,
)
from passhat.journeys.stored_runs import (
    BASELINE,
    MOST_READ,
    StoredSide,
    beside_passing,
    compare_stored,
    requests_of,
    runs_of_trend,
    stored_gates,
    task_history,
)
from passhat.messages import plural, short_commit, short_day
from passhat.records import Outcome, Tally, Trial, Trials
from passhat.records.ledger import Artefact
from passhat.records.transcript import Transcript
from passhat.records.trial import TrialKey, natural_key, run_number
from passhat.reporters.answer import DisplayOptions
from passhat.reporters.answers.comparison import by_movement, task_moves
from passhat.reporters.answers.diff import diff_values
from passhat.reporters.answers.explanation import example_links
from passhat.reporters.answers.report import ReportAnswer
from passhat.reporters.answers.report_page import (
    RunLink,
    TaskRuns,
    TaskWork,
    page_of,
    transcript_links,
    work_view,
)
from passhat.reporters.answers.trend import heat_cell
from passhat.reporters.formats.html import page_values, render_html
from passhat.reporters.formatting import LONGEST_NAME, shorten
from passhat.reporters.page_parts import (
    LONGEST_REQUEST,
    check_cards,
    ending_text,
    first_failed_check,
    fit_transcripts,
    page_rows,
    transcript_cards,
    work_in,
    write_out,
)
from passhat.reporters.rendering import answer_of
from passhat.stats.estimate import Unavailable

# An open live page keeps its connection; shutting down does not wait for it.
GRACE_SECONDS = 1

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,80}")


def serve(
    reports: ReportCache,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    exposed: bool = False,
    token: str | None = None,
    person_header: str | None = None,
    public_url: str | None = None,
    started: Callable[[str, Callable[[], str] | None], None],
) -> None:
    """Serve until interrupted; `started` gets the address to open, and what makes a new one.

    There is nothing to renew where the user chose the token: its address may be used again.
    """
    access = make_access(
        host, exposed=exposed, token=token, person_header=person_header, public_url=public_url
    )
    with closing(listen(host, port)) as listener:
        address = address_of(listener, host)
        server = make_server(reports, access=access, address=address)

        def renew() -> str:
            access.renew()
            return start_url(address, access)

        started(start_url(address, access), None if access.reusable else renew)
        # Half a second of work, done before anybody asks for a page.
        Thread(target=compile_templates, daemon=True).start()
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises again what it has already obeyed
            return


def make_access(
    host: str,
    *,
    exposed: bool,
    token: str | None,
    person_header: str | None = None,
    public_url: str | None = None,
) -> Access:
    """Loopback needs nothing; any other interface a flag and a token that the user chose.

    A header that names people is believed only beside that token: without one it is refused, and
    so is the address of a proxy.
    """
    if public_url is not None:
        place = urlsplit(public_url)
        if place.scheme not in ("http", "https") or not place.netloc or place.query:
            rule = "must be the address of the proxy, such as https://evals.example/passhat"
            raise ArgumentError("public_url", rule, public_url)
        if token is None:
            raise InputError(
                f"public_url {public_url}: a proxy shows that it is yours with a token; choose one "
                "in PASSHAT_TOKEN"
            )
    if person_header is not None and token is None:
        raise InputError(
            f"person_header {person_header}: is believed of a proxy that knows the token alone; "
            "choose one in PASSHAT_TOKEN"
        )
    if person_header is not None and not _HEADER_NAME.fullmatch(person_header):
        raise ArgumentError("person_header", "must be the name of a header", person_header)
    if not is_loopback(host) and not (exposed and token):
        raise InputError(
            f"host {host}: others could reach this; to let them, give `expose=True` and a token of "
            f"at least {SHORTEST_CHOSEN_TOKEN} characters in PASSHAT_TOKEN"
        )
    if token is None:
        return Access()
    if len(token) < SHORTEST_CHOSEN_TOKEN:
        rule = f"must have at least {SHORTEST_CHOSEN_TOKEN} characters"
        raise ArgumentError("token", rule, f"{len(token)} characters")
    return Access(
        token=token,
        reusable=True,
        person_header=person_header or "",
        public_url=public_url or "",
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    listener.listen()
    return listener


def address_of(listener: socket.socket, host: str) -> Address:
    """Where a socket listens, with the names of ours that lead there."""
    names = frozenset({host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()})
    return Address(host=host, port=listener.getsockname()[1], names=names)


def make_server(reports: ReportCache, *, access: Access, address: Address) -> ImpatientServer:
    """The server: no WebSockets, no trust in forwarding headers, no log of addresses."""
    return ImpatientServer(
        uvicorn.Config(
            _build_app(reports, access=access, address=address),
            http=H11Protocol,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


REQUEST_SECONDS = 5.0
"""How long a request may take to arrive: it is some kilobytes, and two lost packets in a row cost
a second and a half."""

MOST_UNFINISHED = 50
"""Above so many unfinished requests at once each is given up at the second look: anybody may open
connections, and those who finish their requests are to be served."""

_TICKS_A_LOOK = 5  # uvicorn's ticks are a tenth of a second

_SENTENCE = b"This request did not arrive in time: send it again, whole.\n"
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_SENTENCE), _SENTENCE)
)


class ImpatientServer(uvicorn.Server):
    """uvicorn's server, which would wait for the rest of a request for ever."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._awaited: dict[tuple[H11Protocol, object], float] = {}

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_LOOK == 0:
            self._refuse_slow_requests(monotonic())
        return await super().on_tick(counter)

    def _refuse_slow_requests(self, now: float) -> None:
        keys = [
            (connection, connection.cycle)
            for connection in cast("set[H11Protocol]", self.server_state.connections)
            if _is_awaited(connection)
        ]
        self._awaited = {key: self._awaited.get(key, now) for key in keys}
        patience = 0 if len(keys) > MOST_UNFINISHED else REQUEST_SECONDS
        for (connection, _), since in self._awaited.items():
            if now - since > patience:
                _give_up(connection)


def _is_awaited(connection: H11Protocol) -> bool:
    """Whether a request has not arrived whole, or none has come yet at all.

    A connection that was answered and is silent since is closed by uvicorn.
    """
    latest: object = connection.cycle  # which is None before the first
    return _has_begun(connection) or (latest is None and connection.conn.their_state is h11.IDLE)


def _has_begun(connection: H11Protocol) -> bool:
    """Whether a part of a request is there: of its head, or its head and not all of its body."""
    http = connection.conn
    half_a_head = http.their_state is h11.IDLE and bool(http.trailing_data[0])
    return half_a_head or http.their_state is h11.SEND_BODY


def _give_up(connection: H11Protocol) -> None:
    """Close a connection; a request that has begun and has no answer yet gets a sentence first."""
    if _has_begun(connection) and connection.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
        connection.transport.write(_TOO_SLOW)
    if connection.cycle is not None:
        connection.cycle.disconnected = True  # what a page still sends is for nobody
    connection.transport.close()


def start_url(address: Address, access: Access) -> str:
    """The address to open, with the token in it."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}{ENTRANCE}?token={access.token}"


def _build_app(reports: ReportCache, *, access: Access, address: Address) -> ASGIApp:
    """The guarded site over one store."""
    pages = Pages(reports, access)
    routes = [
        Route("/", pages.overview),
        Route("/runs", pages.runs),
        Route("/run/{run}", pages.run),
        Route("/run/{run}/task", pages.task),
        Route("/run/{run}/trial", pages.trial),
        Route("/run/{run}/drawer", pages.drawer),
        Route("/run/{run}/transcript", pages.transcript),
        Route("/run/{run}/artefact", pages.artefact),
        Route("/run/{run}/diff", pages.diff),
        Route("/run/{run}/why", pages.why),
        Route("/run/{run}/label", pages.label, methods=["GET", "POST"]),
        Route("/run/{run}/change", pages.change, methods=["POST"]),
        Route("/run/{run}/export", pages.export),
        Route("/run/{run}/page", pages.saved_page),
        Route("/run/{run}/live", pages.live),
        Route("/run/{run}/events", pages.events),
        Route("/compare", pages.compare),
        Route("/trend", pages.trend),
        Route("/search", pages.search),
    ]
    handlers = {
        HistoryError: _sorry(404, str(reports.path)),
        InputError: _sorry(400, str(reports.path)),
        HTTPException: _http_sorry,
        StoreError: _sorry(503, str(reports.path)),
        Exception: lambda request, error: _say(500, "Something broke; the terminal says what."),
    }
    site = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(site, access=access, address=address, door=door)


# No return type: starlette's handlers are loosely typed.
def _sorry(status: int, store: str):  # type: ignore[no-untyped-def]
    """What is wrong, without the path of the store: that of logs is a temporary one."""
    return lambda request, error: _say(status, str(error).removeprefix(f"{store}: "))


def _http_sorry(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _say(error.status_code, f"{error.detail}.")


def _say(status: int, message: str) -> Response:
    return page("sorry.html", status=status, store="", message=message, code=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChoice:
    """Who labels, for which number, and how many trials."""

    by: str
    wanted: str
    budget: int

    @classmethod
    def read(cls, query: Mapping[str, str]) -> LabelChoice:
        """As an address or a form says; a proxy's word on who asks comes before any other."""
        budget = query.get("budget") or str(BUDGET)
        number = budget.isascii() and budget.isdigit() and len(budget) <= LONGEST_NUMBER
        if not number or not 0 < int(budget) <= MOST_LABELS:
            raise InputError(f"budget must be a number from 1 to {MOST_LABELS:,}")
        by = PERSON.get() or (query.get("by") or "").strip()
        return cls(by=by[:LONGEST_PERSON], wanted=query.get("for") or "pass@1", budget=int(budget))

    @property
    def query(self) -> dict[str, Any]:
        return {"by": self.by, "for": self.wanted, "budget": self.budget}

    def session(self, history: History, run: Run) -> LabelSession:
        return LabelSession(history, run, by=self.by, wanted=self.wanted, budget=self.budget)


def _assignment(session: LabelSession, query: Mapping[str, str]) -> Assignment | None:
    """The trial that a form or an address names, if it is one that was chosen to be labelled."""
    key = query.get("system"), query.get("task"), query.get("trial")
    named = (assigned for assigned in session.assigned if tuple(map(str, assigned.key)) == key)
    return next(named, None)


def _label_url(run: Run, asked: LabelChoice, key: TrialKey | None) -> str:
    """Where one trial of the queue is asked for; without one, the first that is not labelled."""
    named = {} if key is None else dict(zip(("system", "task", "trial"), key, strict=True))
    return url(f"/run/{run.key}/label", **asked.query, **named)


# The pages: each reads the store, asks the analysis, and fills a template.

FILTERS = ("suite", "branch", "status")

RUNS_A_PAGE, TRIALS_A_PAGE = 50, 100
MOST_LABELS = 10_000
"""The largest budget of labels that an address may ask for."""
QUEUE_SHOWN = 100
"""Trials of the queue around the one that is asked for."""
MOST_ROWS_SENT = 500
"""Tasks that are sent whole and sorted in the browser; beyond, the server sorts and pages."""
LONGEST_TRANSCRIPT = 400_000
LARGEST_DRAWER = 4_000_000
"""Characters of all transcripts of a task together; each is cut to its share."""
LARGEST_NOTE_FORM = 10 * LONGEST_NOTE
"""Bytes of a form with a note: a letter takes up to nine."""
CHANGES_SHOWN = 20
NOTHING_CHANGES = (
    "nothing can be changed here: it was started with --read-only, or these are logs, which are "
    "only read (`passhat history add` stores them)"
)
EXPORTS: dict[str, tuple[Callable[[Trials], str | bytes], str]] = {
    "csv": (render_csv, "text/csv"),
    "jsonl": (render_jsonl, "application/jsonl"),
}
"""How the trials of a run are written, and what a browser calls it."""


class Pages:
    """The site over one store."""

    def __init__(self, reports: ReportCache, access: Access) -> None:
        self.reports, self.access = reports, access

    def overview(self, request: Request) -> Response:
        """Suites and systems with their newest numbers."""
        return streamed(self._overview_parts(page_number(request.query_params.get("page"))))

    def _overview_parts(self, number: int) -> Iterator[str]:
        with self.reports.open() as history:
            suites, count = suites_on_page(history, number)
            runs = queries.count_runs(history)
            yield render("overview_top.html", store=self.reports.title, count=count, runs=runs)
            blocks = []
            for suite in suites:
                blocks.append(look_at_suite(self.reports, history, suite))
                yield render("overview_suite.html", block=blocks[-1])
        pages = max(1, -(-count // SUITES_A_PAGE))
        yield render(
            "overview_end.html", store=self.reports.title, page=number, pages=pages,
            link=lambda n: url("/", page=n), blocks=blocks, spending_days=SPENDING_DAYS,
        )  # fmt: skip

    def runs(self, request: Request) -> Response:
        """All runs, or those of a suite, a branch, a status, or with a tag."""
        asked = {name: request.query_params.get(name) or None for name in FILTERS}
        wanted = queries.RunFilter(
            suite=asked["suite"],
            branch=asked["branch"],
            status=asked["status"],
            tagged=bool(request.query_params.get("tagged")),
        )
        number = page_number(request.query_params.get("page"))
        order = order_of_runs(request.query_params)
        with self.reports.open() as history:
            count = queries.count_runs(history, wanted)
            offset = (number - 1) * RUNS_A_PAGE
            runs = queries.page_of_runs(
                history, wanted, order=order, offset=offset, limit=RUNS_A_PAGE
            )
            choices = queries.run_choices(history)
            verdicts = self.reports.verdicts(history, runs)
            only_suite = wanted.suite and wanted == queries.RunFilter(suite=wanted.suite)
            suites = queries.list_suites(history) if only_suite and number == 1 else []
            named = next((suite for suite in suites if suite.name == wanted.suite), None)
            block = look_at_suite(self.reports, history, named) if named else None
        tagged = "1" if wanted.tagged else None
        sort = sort_link("/runs", order, **asked, tagged=tagged)
        return page(
            "runs.html", store=self.reports.title, wanted=wanted, choices=choices, runs=runs,
            verdicts=verdicts, block=block, count=count, page=number,
            pages=max(1, -(-count // RUNS_A_PAGE)), order=order,
            newest_first=queries.NEWEST_FIRST, sort=sort, link=lambda n: sort(page=n),
        )  # fmt: skip

    def run(self, request: Request) -> Response:
        """One run: what is known at once, then the whole report."""
        history = self.reports.open()
        try:
            run = history.find_run(request.path_params["run"])
        except HistoryError:
            history.close()
            raise
        return streamed(self._run_parts(request, history, run), asks=True)

    def _run_parts(self, request: Request, history: History, run: Run) -> Iterator[str]:
        with history:
            standings = self.reports.numbers(history, run) if run.trials else ()
            yield render("run_top.html", store=self.reports.title, run=run)
            about = {
                "standings": standings,
                "live": run.status == RUNNING,
                "labelling": self.reports.writable,
                "changes": history.changes(run, limit=CHANGES_SHOWN),
                "most_changes": CHANGES_SHOWN,
                "changing": self.reports.writable and self._person() is not None,
                "token": self.access.form_token,
            }
            if not standings:
                yield render("run_about.html", run=run, **about)
                raise HistoryError("No trial has ended yet.")
            report = self.reports.report(history, run)
            yield self._run_body(request, history, run, report, about)

    def _run_body(
        self,
        request: Request,
        history: History,
        run: Run,
        report: Report,
        about: Mapping[str, Any],
    ) -> str:
        """The report; of a long table of tasks only the page that was asked for."""
        verdict = self.reports.verdict(history, run)
        options = DisplayOptions(results=None, verdict=verdict)
        choice = Choice.read(request.query_params)
        windows = {
            system.name: look(system.tasks, choice)
            for system in report.systems
            if len(system.tasks) > MOST_ROWS_SENT
        }
        values = dict(page_of(ReportAnswer(report).shown, options))
        if (change := values["change"]) is not None:
            sentence = with_tasks(change.text, run.key, verdict.agents)
            values["change"] = replace(change, text=sentence)
        return render(
            "run_end.html",
            run=run,
            **about,
            no_verdict=_no_verdict(run),
            running=run.status == RUNNING,
            falls=[(agent, tasks_of_fall(history, run, agent)) for agent in verdict.agents],
            windows=windows,
            trial_links=_listed_trials(history, run, report, windows),
            **values,
            choice=choice,
            sorts=SORTS,
            labels=LABELS,
            task_link=lambda system: (
                lambda task: url(f"/run/{run.key}/task", system=system, task=task)
            ),
            table_link=lambda **changes: _table_link(run, choice, **changes),
        )

    def task(self, request: Request) -> Response:
        """One task: its trials in this run, and how it fared in others."""
        system, task = _named(request, "system"), _named(request, "task")
        number = page_number(request.query_params.get("page"))
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            trials = queries.page_of_trials(
                history, run, system, task,
                offset=(number - 1) * TRIALS_A_PAGE, limit=TRIALS_A_PAGE + 1,
            )  # fmt: skip
            past = task_history(history, run, system, task)
            first = queries.first_trial(history, run)
            reasons = self._reasons(history, run, trials[:TRIALS_A_PAGE])
            work = self._work(history, run, trials[:TRIALS_A_PAGE], first)
            asked = requests_of(history, run).get((system, task), "")
            verdict = self.reports.verdict(history, run).of(system)
            keys = [other.key for other in past.runs[::-1] if other.key != run.key][:RUNS_BESIDE]
            beside = [
                (other, queries.marks_of_tasks(history, other, system, [task])[task])
                for other in map(history.find_run, keys)
            ]
        if past.here is None and not trials:
            raise HistoryError(f"run {run.key}: {system} made no trial of {task}")
        return page(
            "task.html", store=self.reports.title, run=run, system=system, task=task,
            request=shorten(asked, LONGEST_REQUEST), fell=verdict.fall_of(task) if verdict else "",
            beside=beside, most_marks=MOST_SQUARES,
            trials=trials[:TRIALS_A_PAGE], first=first, here=past.here,
            page=number, interval=past.interval, reasons=reasons, work=work,
            before=(verdict and verdict.before_fall(task)) or past.before,
            days=past.runs[-MOST_DAYS:],
            cells=[heat_cell((run.trials, run.passed)) for run in past.runs[-MOST_DAYS:]],
            pages=number + (len(trials) > TRIALS_A_PAGE),
            link=lambda n: url(f"/run/{run.key}/task", system=system, task=task, page=n),
        )  # fmt: skip

    def _reasons(
        self, history: History, run: Run, trials: Sequence[queries.StoredTrial]
    ) -> dict[int, str]:
        """Which check failed in each of these trials, where what was said is kept."""
        reasons = {}
        for kept in trials:
            trial = kept.trial
            if trial.outcome is Outcome.PASSED or not kept.transcript:
                continue
            if reason := first_failed_check(history.transcript(run, *trial.key)):
                reasons[trial.trial] = reason
        return reasons

    def _work(
        self, history: History, run: Run, trials: Sequence[queries.StoredTrial], first: int
    ) -> list[TaskWork]:
        """What these trials of a task changed in their workspaces, where they had any."""
        work, outcomes, links = {}, {}, []
        for kept in trials:
            system, task, number = key = kept.trial.key
            text = history.transcript(run, *key) if kept.transcript else None
            if text is None:
                continue
            if '"workspace"' not in text:
                return []  # and none of the others need be read
            if (done := work_in(text)) is not None:
                work[key], outcomes[key] = done, kept.trial.outcome
                place = url(f"/run/{run.key}/trial", system=system, task=task, trial=number)
                word = kept.trial.outcome.name.lower()
                name = run_number(number, first)
                links.append(RunLink(number=name, outcome=word, address=place))
        runs = {key[:2]: TaskRuns(address="", request="", runs=tuple(links)) for key in work}
        return work_view(work, outcomes, runs, first_trial=first)

    def trial(self, request: Request) -> Response:
        """One trial with what was said in it."""
        with self.reports.open() as history:
            run, kept = self._trial(history, request)
            text = history.transcript(run, *kept.trial.key)
            first = queries.first_trial(history, run)
            beside = [self._numbered(history, run, kept, step) for step in (-1, 1)]
            system, task = kept.trial.key[:2]
            marks = queries.marks_of_tasks(history, run, system, [task])[task]
            files = _files_of(history, run, kept.trial)
        transcript = None if text is None else Transcript.from_json(text)
        shown = None if transcript is None else transcript.cut(LONGEST_TRANSCRIPT)
        return page(
            "trial.html", store=self.reports.title, run=run, trial=kept.trial, first=first,
            cards=None if shown is None else transcript_cards(shown),
            checks=() if shown is None else check_cards(shown.checks),
            ending="" if shown is None else ending_text(shown),
            cut=shown is not transcript, before=beside[0], after=beside[1], files=files,
            marks=marks if len(marks) <= MOST_SQUARES else (),
        )  # fmt: skip

    def drawer(self, request: Request) -> Response:
        """The trials of one task with what was said, a piece that the page of the run asks for.

        It is empty where no transcript was kept.
        """
        system, task = _named(request, "system"), _named(request, "task")
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            trials = queries.page_of_trials(history, run, system, task, limit=TRIALS_A_PAGE)
            if not trials:
                raise HistoryError(f"run {run.key}: {system} made no trial of {task}")
            content = {
                (system, task, trial.trial.trial): text
                for trial in trials
                if trial.transcript
                and (text := history.transcript(run, system, task, trial.trial.trial)) is not None
            }
            several = len(self.reports.numbers(history, run)) > 1
            first = queries.first_trial(history, run)
        links = transcript_links(
            write_out(content, LARGEST_DRAWER),
            {(system, task, trial.trial.trial): trial.trial.outcome for trial in trials},
            several=several,
            first_trial=first,
            own_page=lambda key: url(
                f"/run/{run.key}/trial", system=key[0], task=key[1], trial=key[2]
            ),
        )
        return page("drawer.html", links=links, several=several)

    def artefact(self, request: Request) -> Response:
        """A file that is kept of a trial: to be saved, and never shown as a page of ours."""
        with self.reports.open() as history:
            run, kept = self._trial(history, request)
            wanted = _named(request, "name")
            files = _files_of(history, run, kept.trial)
            artefact = next((file for file in files if file.name == wanted), None)
            if artefact is None:
                raise HistoryError(f"run {run.key}: no file {wanted} of this trial is kept")
            content = read_artefact(history.database, artefact)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted.rpartition("/")[2]).strip(".-") or "file"
        return _download(content, name, "application/octet-stream")

    async def label(self, request: Request) -> Response:
        """Read one trial after the other yourself; each answer is a form, kept at once."""
        if not self.reports.writable:
            raise InputError(NOTHING_CHANGES)
        if request.method == "GET":
            return await run_in_threadpool(self._label_page, request)
        form = await sent_form(request, self.access)
        return await run_in_threadpool(self._keep_label, request, form)

    def _label_page(self, request: Request) -> Response:
        """A trial without its verdict; or one that was answered, with it and its checks."""
        asked = LabelChoice.read(request.query_params)
        values: dict[str, Any] = {}
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            if asked.by:
                session = asked.session(history, run)
                queue = session.queue()
                places = {assigned.key: place for place, (assigned, _) in enumerate(queue)}
                still = [place for place, (_, label) in enumerate(queue) if label is None]
                named = _assignment(session, request.query_params)
                here = places.get(named.key) if named is not None else None
                if here is None:
                    here = next(iter(still), None)
                values |= {
                    "queue": list(enumerate(queue))[max(0, (here or 0) - QUEUE_SHOWN // 2) :][
                        :QUEUE_SHOWN
                    ],
                    "here": here,
                    "next": next((place for place in still if here is not None and place > here),
                                 next((place for place in still if place != here), None)),
                    "link": lambda place: _label_url(
                        run, asked, None if place is None else queue[place][0].key
                    ),
                    "agreement": session.agreement(queue),
                    "left": len(still),
                    "assigned": len(session.assigned),
                    "first": queries.first_trial(history, run),
                }  # fmt: skip
                if here is not None:
                    assigned, answer = queue[here]
                    transcript = session.transcript(assigned.key).cut(LONGEST_TRANSCRIPT)
                    values |= {
                        "one": assigned.key,
                        "cards": transcript_cards(transcript),
                        "rubrics": session.rubrics(assigned.key),
                    }
                    if answer is not None:
                        values |= {
                            "answer": answer,
                            "checks": check_cards(transcript.checks),
                            "judge_passed": session.verdict(assigned.key) is Outcome.PASSED,
                        }
        return page(
            "label.html", store=self.reports.title, run=run, asked=asked,
            token=self.access.form_token, **values,
        )  # fmt: skip

    def _keep_label(self, request: Request, form: Mapping[str, str]) -> Response:
        asked = LabelChoice.read(form)
        with History.open(self.reports.path) as history:
            run = history.find_run(request.path_params["run"])
            session = asked.session(history, run)
            if asked.by and form.get("undo"):
                key = session.undo()
            else:
                assigned = _assignment(session, form)
                if not asked.by or assigned is None or form.get("passed") not in ("yes", "no"):
                    raise InputError("this form names no trial to label, or no answer")
                note = form.get("note", "").strip()
                session.keep(assigned, passed=form["passed"] == "yes", note=note)
                key = assigned.key
        return RedirectResponse(_label_url(run, asked, key), 303)

    def _person(self) -> str | None:
        """Who asks: whom the proxy names, or who started a site that lets in nobody else."""
        return PERSON.get() or (None if self.access.reusable else this_person())

    async def change(self, request: Request) -> Response:
        """Tag, note, rename or delete a run: a form of its page, kept with who sent it."""
        form = await sent_form(request, self.access, largest=LARGEST_NOTE_FORM)
        return await run_in_threadpool(self._change, request.path_params["run"], form)

    def _change(self, key: str, form: Mapping[str, str]) -> Response:
        if not self.reports.writable:
            raise InputError(NOTHING_CHANGES)
        if (person := self._person()) is None:
            raise HTTPException(403, "Who asks is not known: a proxy has to name people")
        action, text = form.get("do"), form.get("text", "").strip()
        if action not in get_args(RunAction):
            raise InputError("this form does not say what to change")
        with self.reports.open() as history:
            run = history.find_run(key)
        if run.key != key:
            raise InputError(f"{key} may be another run by now: change {run.key}, on its page")
        if action == "delete" and text != run_name(run):
            raise InputError(f"nothing is deleted: to delete this run, type {run_name(run)}")
        was = form.get("was", "") if action == "rename" else None
        change_run(key, cast(RunAction, action), text, store=self.reports.path, by=person, was=was)
        gone = action == "delete"
        return RedirectResponse(url("/runs", suite=run.suite) if gone else _run_url(run), 303)

    def export(self, request: Request) -> Response:
        """The trials of a run as a table in a file."""
        ending = request.query_params.get("as") or "csv"
        if ending not in EXPORTS:
            raise InputError(f"a run is exported as one of {', '.join(EXPORTS)}")
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            trials = history.trials(run)
        write, kind = EXPORTS[ending]
        return _download(write(trials), f"run-{run.key}.{ending}", kind)

    def saved_page(self, request: Request) -> Response:
        """The report of a run as one file that needs no server, with its transcripts if asked."""
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            if not run.trials:
                raise HistoryError("No trial has ended yet.")
            report = self.reports.report(history, run)
            options: dict[str, Any] = {"verdict": self.reports.verdict(history, run)}
            if request.query_params.get("transcripts"):
                options |= self._transcripts(history, run, report)
        page = answer_of(report)
        return _download(
            render_html(page, DisplayOptions(results=run.key, **options)),
            f"run-{run.key}.html", "text/html",
        )  # fmt: skip

    def _transcripts(self, history: History, run: Run, report: Report) -> dict[str, Any]:
        """What a page shows of what was said; of a large run the first failures of each task."""
        first = queries.first_trial(history, run)
        if run.trials > MOST_READ:
            transcripts = queries.failures_of_run(history, run)
            return {"transcripts": fit_transcripts(report, transcripts), "first_trial": first}
        transcripts = queries.all_transcripts(history, run)
        fitted = fit_transcripts(report, transcripts, trials=history.trials(run))
        why = self.reports.explanation(history, run)
        return {"transcripts": fitted, "first_trial": first, "explanation": why}

    def diff(self, request: Request) -> Response:
        """A trial beside the passing one that is nearest to it, with every run of its task."""
        with self.reports.open() as history:
            run, kept = self._trial(history, request)
            beside = beside_passing(history, run, kept.trial)
        return page("two_runs.html", store=self.reports.title, run=run, trial=kept.trial,
                    **diff_values(beside))  # fmt: skip

    def why(self, request: Request) -> Response:
        """Why runs of a run fail."""
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            explanation = self.reports.explanation(history, run)
        values = page_values(answer_of(explanation), DisplayOptions(results=None))
        links = example_links(
            explanation,
            lambda key: url(f"/run/{run.key}/trial", system=key[0], task=key[1], trial=key[2]),
        )
        values = {**values, "example_links": links}
        return page("why_run.html", store=self.reports.title, run=run, **values)

    def transcript(self, request: Request) -> Response:
        """What was said in one trial, whole, as plain text."""
        with self.reports.open() as history:
            run, kept = self._trial(history, request)
            text = history.transcript(run, *kept.trial.key)
        if text is None:
            raise HistoryError(f"run {run.key}: no transcript of this trial was kept")
        return PlainTextResponse(text)

    def _numbered(
        self, history: History, run: Run, kept: queries.StoredTrial, step: int
    ) -> int | None:
        """The number of the trial before or after one, if it was made."""
        trial = kept.trial
        number = trial.trial + step
        if number < 0:
            return None
        there = queries.find_trial(history, run, trial.system, trial.task, number)
        return number if there else None

    def _trial(self, history: History, request: Request) -> tuple[Run, queries.StoredTrial]:
        system, task = _named(request, "system"), _named(request, "task")
        number = _named(request, "trial")
        run = history.find_run(request.path_params["run"])
        stored = queries.find_trial(history, run, system, task, int(number)) if (
            number.isascii() and number.isdigit() and len(number) < 10
        ) else None  # fmt: skip
        if stored is None:
            raise HistoryError(f"run {run.key}: {system} made no trial {number} of {task}")
        return run, stored

    def compare(self, request: Request) -> Response:
        """Any two or more systems of any runs."""
        query = request.query_params
        metric = query.get("by") or "mean_score"
        with self.reports.open() as history:
            sides = sides_of(self.reports, history, query.getlist("run"), query.getlist("side"))
            order = order_of_runs(query)
            recent = queries.page_of_runs(history, order=order, limit=20) if not sides else []
            answer = judge_sides(history, sides, metric=metric)
            compared = [self.reports.verdict(history, run) for run in _runs_of(sides)]
            verdicts = self.reports.verdicts(history, recent)
            values = _judged_values(history, sides, answer)
        return page(
            "compare.html", store=self.reports.title, sides=sides, runs=recent, answer=answer,
            metric=metric, compared=compared, verdicts=verdicts, order=order,
            sort=sort_link("/compare", order), **values,
        )  # fmt: skip

    def trend(self, request: Request) -> Response:
        """One suite over its runs."""
        return streamed(self._trend_parts(request.query_params))

    def _trend_parts(self, query: QueryParams) -> Iterator[str]:
        with self.reports.open() as history:
            suites = queries.list_suites(history)
            suite = query.get("suite") or queries.newest_suite(history)
            branch = query.get("branch") or None
            yield render(
                "trend_top.html", suites=suites, suite=suite, branch=branch,
                store=self.reports.title,
            )  # fmt: skip
            runs = runs_of_trend(history, suite, branch) if suite else []
            trends = self.reports.trends(history, runs, branch) if runs else ()
            ended = [run for run in runs if run.status == "finished"]
            verdict = self.reports.verdict(history, ended[-1]) if ended else None
        shown = DisplayOptions(verdict=verdict)
        values = page_values(answer_of(trends), shown) if trends else {"systems": []}
        yield render("trend_end.html", suite=suite, branch=branch, store="", **values)

    def live(self, request: Request) -> Response:
        """A run in progress."""
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
            news = watching(history, run).news(progress_of(history, run))
            ended = ending(self.reports, history, run) if news["status"] != RUNNING else ""
            # While it runs it is ours, and ours begin with trial 0, which need not end first.
            first = queries.first_trial(history, run) if ended else 0
        return page(
            "live.html",
            asks=True,
            ended=ended,
            first=first,
            store=self.reports.title,
            run=run,
            news=news,
            gates=stored_gates(run),
        )

    def events(self, request: Request) -> Response:
        """What changes in a run in progress."""
        with self.reports.open() as history:
            run = history.find_run(request.path_params["run"])
        return StreamingResponse(
            follow(self.reports, run),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},  # nginx would hold events back
        )

    def search(self, request: Request) -> Response:
        """Suites, runs, systems and tasks that hold a text, and trials in which it was said."""
        text = request.query_params.get("q", "").strip()
        order = order_of_runs(request.query_params)
        places: dict[str, Sequence[Any]] = dict.fromkeys(("suites", "runs", "systems", "tasks"), ())
        spoken, verdicts = SaidHits(hits=()), {}
        if text:
            with self.reports.open() as history:
                places = {
                    "suites": queries.search_suites(history, text),
                    "runs": queries.sort_runs(queries.search_runs(history, text), order),
                    "systems": queries.search_systems(history, text),
                    "tasks": queries.search_tasks(history, text),
                }
                spoken = search_said(history, text)
                verdicts = self.reports.verdicts(history, places["runs"])
        return page(
            "search.html", store=self.reports.title, q=text, found=places, said=spoken,
            order=order, sort=sort_link("/search", order, q=text), verdicts=verdicts,
        )  # fmt: skip


def order_of_runs(query: Mapping[str, str]) -> RunOrder:
    """How an address sorts a list of runs; what makes no sense there counts as not said."""
    by = query.get("sort")
    if by not in get_args(RunColumn):
        return queries.NEWEST_FIRST
    return RunOrder(by=cast(RunColumn, by), down=query.get("order") == "desc")


FROM_A_TO_Z = ("run", "suite", "commit", "branch", "status", "tags")
"""Columns of which the first is looked for first; of numbers and dates it is the last."""


def sort_link(path: str, order: RunOrder, **query: Any) -> Callable[..., str]:
    """Makes addresses of a list that stays sorted, or is sorted `by` another column.

    The column that it is sorted by already is turned round.
    """

    def link(by: RunColumn | None = None, page: int | None = None) -> str:
        down = by not in FROM_A_TO_Z if by != order.by else not order.down
        chosen = order if by is None else RunOrder(by=by, down=down)
        if chosen == queries.NEWEST_FIRST:
            return url(path, **query, page=page)
        ordered = "desc" if chosen.down else "asc"
        return url(path, **query, sort=chosen.by, order=ordered, page=page)

    return link


def _run_url(run: Run) -> str:
    return url(f"/run/{run.key}")


def _files_of(history: History, run: Run, trial: Trial) -> list[Artefact]:
    return list_artefacts(history.database, run, trial.key)


def _download(body: str | bytes, name: str, kind: str) -> Response:
    """A file to save; `name` is made of our own words."""
    return Response(
        body, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


def _runs_of(sides: Sequence[Side]) -> list[Run]:
    """The runs that are compared, the newest first."""
    runs = {side.run.key: side.run for side in sides if side.chosen}
    return sorted(runs.values(), key=lambda run: (run.started, run.id), reverse=True)


def _judged_values(
    history: History, sides: Sequence[Side], answer: Comparison | RankReport | Unavailable
) -> dict[str, Any]:
    """What the page of a comparison shows of its answer."""
    if isinstance(answer, Unavailable):
        return {"headline": "", "judged_parts": [], "moves": []}
    values = page_values(
        answer_of(answer), DisplayOptions(every_task_follows=True, wording=_to_type)
    )
    if isinstance(answer, Comparison):
        links = _trial_links(history, [side for side in sides if side.chosen], answer)
        moves = task_moves(as_people_compare(answer), links)
        return {**values, "moves": moves, "linked": True, "judged_parts": []}
    parts = values.pop("parts")
    for part in parts:
        part.right = part.words  # the steps are commands for a shell
    return {**values, "judged_parts": parts, "moves": []}


def _to_type(text: str) -> str:
    """A sentence that asks for an argument, which a page has none of, with the command for it."""
    return text.replace("`margin=0.05`", "`passhat compare --margin 0.05`")


MOST_DAYS, RUNS_BESIDE, MOST_SQUARES = 32, 10, 30
"""Runs in the strip of a task, other runs whose trials are listed, and squares in a line."""

MOST_TASKS_LINKED = 200
"""Tasks of a comparison whose every trial is a link; those that moved most, if there are more."""


def _trial_links(
    history: History, sides: Sequence[Side], answer: Comparison
) -> dict[tuple[str, str], TaskRuns]:
    """The trials of both sides, each with the address of its own page."""
    tasks = [task.name for task in by_movement(answer.tasks)[:MOST_TASKS_LINKED]]
    links: dict[tuple[str, str], TaskRuns] = {}
    for side, name in zip(sides, (answer.first, answer.second), strict=True):
        requests = requests_of(history, side.run)
        linked = _linked_trials(history, side.run, side.tally.system, tasks, requests)
        links |= {(name, task): runs for task, runs in linked.items()}
    return links


def _listed_trials(
    history: History, run: Run, report: Report, windows: Mapping[str, Window]
) -> dict[tuple[str, str], TaskRuns]:
    """The trials of the tasks on the page of a run; of very many, those of the lowest tasks."""
    links: dict[tuple[str, str], TaskRuns] = {}
    room, requests = MOST_MARKS_LINKED, requests_of(history, run)
    for system in report.systems:
        window = windows.get(system.name)
        tasks = []
        for row in page_rows(system.tasks) if window is None else window.rows:
            room -= row.runs
            if room < 0:
                break
            tasks.append(row.name)
        linked = _linked_trials(history, run, system.name, tasks, requests)
        links |= {(system.name, task): runs for task, runs in linked.items()}
    return links


def _linked_trials(
    history: History,
    run: Run,
    system: str,
    tasks: Sequence[str],
    requests: Mapping[tuple[str, str], str],
) -> dict[str, TaskRuns]:
    """The trials of tasks, each with the address of its own page, and what was first `said`."""
    place = f"/run/{run.key}"
    links = {}
    for task, marks in queries.marks_of_tasks(history, run, system, tasks).items():
        if not marks:
            continue
        # All but the number is the same for the trials of a task: quoted once, not a thousand times
        trial = url(f"{place}/trial", system=system, task=task)
        links[task] = TaskRuns(
            address=url(f"{place}/task", system=system, task=task),
            request=shorten(requests.get((system, task), ""), LONGEST_REQUEST),
            runs=tuple(
                RunLink(
                    number=f"#{mark.place}",
                    outcome=mark.outcome.name.lower(),
                    address=f"{trial}&trial={mark.trial}",
                )
                for mark in marks
            ),
        )
    return links


def _no_verdict(run: Run) -> str:
    """What a run in progress says instead of a verdict: its intervals hold when read once."""
    if run.status != RUNNING:
        return ""
    return f"Running: {plural(run.trials, 'trial')} so far, no verdict yet."


def _named(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise InputError(f"the address must say which {name}")
    return value


def _table_link(run: Run, choice: Choice, **changes: object) -> str:
    query: dict[str, object] = {
        "q": choice.text,
        "label": choice.label,
        "sort": choice.sort,
        "order": "desc" if choice.down else None,
        "page": choice.page,
    }
    return url(f"/run/{run.key}", **{**query, **changes}) + "#tasks"


# Two or more runs side by side: compared when there are two systems, ranked when more.

MOST_SIDES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One system in one run; `mark` names it in an address."""

    mark: str
    label: str
    run: Run
    tally: Tally
    chosen: bool


def sides_of(
    reports: ReportCache, history: History, runs: Sequence[str], chosen: Sequence[str]
) -> list[Side]:
    """Every system of the named runs; all are chosen if no mark is given."""
    keys = dict.fromkeys([*runs, *(mark.partition(".")[0] for mark in chosen)])
    named = [history.find_run(key) for key in keys]
    if len({run.suite for run in named}) == 1:  # the later one minus the earlier or the baseline
        named.sort(key=lambda run: (BASELINE not in run.tags, run.started), reverse=True)
    counted = [(run, tally) for run in named for tally in reports.tallies(history, run)]
    names = [tally.system for _, tally in counted]
    alone = len(set(names)) == 1
    places: dict[str, int] = {}
    sides: list[Side] = []
    for run, tally in counted:
        place = places[run.key] = places.get(run.key, -1) + 1
        mark = f"{run.key}.{place}"
        label = _label(run, tally.system, alone=alone, again=names.count(tally.system) > 1)
        if any(side.label == label for side in sides):
            label = f"{label} {run.key}"
        sides.append(
            Side(
                mark=mark, label=label, run=run, tally=tally,
                chosen=mark in chosen if chosen else True,
            )
        )  # fmt: skip
    return sides


def judge_sides(
    history: History, sides: Sequence[Side], *, metric: str
) -> Comparison | RankReport | Unavailable:
    """The answer about the chosen sides."""
    chosen = [side for side in sides if side.chosen]
    if len(chosen) < 2:
        return Unavailable("Choose at least two agents or runs to compare")
    if len(chosen) > MOST_SIDES:
        return Unavailable(f"{len(chosen)} are too many to read at once: choose {MOST_SIDES}")
    try:
        if len(chosen) == 2:
            first, second = (
                StoredSide(run=side.run, system=side.tally.system, label=side.label)
                for side in chosen
            )
            return compare_stored(history, first, second)
        return rank_results([replace(side.tally, system=side.label) for side in chosen], by=metric)
    except (ArgumentError, InputError) as error:
        return Unavailable(str(error))


def _label(run: Run, system: str, *, alone: bool, again: bool) -> str:
    """One system over several runs goes by day and commit; one that occurs once by its own name."""
    if not again:
        return system
    known = short_commit(run.checkout.commit) or run.key
    called = run.tags[0] if run.tags else f"{short_day(run.started)}, {known}"
    return called if alone else f"{shorten(system, LONGEST_NAME - len(called) - 3)} ({called})"


# A long table of tasks a page at a time: found, sorted and cut before it is sent.

ROWS_A_PAGE = 200

LONGEST_NUMBER = 9
SORTS = ("task", "label", "passed", "rate", "interval", "score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a reader asked to see of a table."""

    text: str = ""
    label: str = ""
    sort: str = "rate"
    down: bool = False
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Choice:
        """From an address; what makes no sense there counts as not said."""
        sort, label, page = query.get("sort", ""), query.get("label", ""), query.get("page", "")
        return cls(
            text=query.get("q", ""),
            label=label if label in LABELS else "",
            sort=sort if sort in SORTS else "rate",
            down=query.get("order") == "desc",
            page=page_number(page),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rows to show, and how many there are behind them."""

    rows: list[TaskRow]
    matching: int
    page: int
    pages: int


def page_number(text: str | None) -> int:
    """A page from an address: at least 1, and no larger than a table could have.

    >>> page_number("7"), page_number("-1"), page_number("x")
    (7, 1, 1)
    """
    sensible = text and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return max(1, int(text)) if text and sensible else 1


def look(table: TaskTable, choice: Choice) -> Window:
    """The part of a table that was asked for."""
    kept = np.ones(len(table), dtype=bool)
    if choice.text:
        wanted = choice.text.lower()
        kept &= np.fromiter((wanted in name.lower() for name in table.names), bool, len(table))
    if choice.label:
        kept &= table.labels == LABELS.index(choice.label)
    places = np.flatnonzero(kept)
    order = places[np.lexsort((_name_ranks(table)[places], _key(table, choice.sort)[places]))]
    if choice.down:
        order = order[::-1]
    pages = max(1, -(-len(order) // ROWS_A_PAGE))
    page = min(choice.page, pages)
    shown = order[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]
    return Window(rows=[table[int(i)] for i in shown], matching=len(order), page=page, pages=pages)


def _key(table: TaskTable, sort: str) -> NDArray[np.float64]:
    if sort == "task":
        return _name_ranks(table)
    columns = {
        "label": table.labels,
        "passed": table.passed,
        "rate": table.rate,
        "interval": table.high - table.low,
        "score": table.mean_score,
    }
    return np.asarray(columns[sort], dtype=np.float64)


def _name_ranks(table: TaskTable) -> NDArray[np.float64]:
    ranks = np.empty(len(table))
    order = sorted(range(len(table)), key=lambda i: natural_key(table.names[i]))
    ranks[order] = np.arange(len(table))
    return ranks
