"""A Python function in worker processes, where it may crash or hang; which arguments it gets."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import importlib
import inspect
import os
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import PasshatError, RunError, SuiteError
from passhat.messages import likely_method
from passhat.records import Observation, PythonSystem
from passhat.runner.agents.agent_output import agent_function, encodable, observe_value, report_of
from passhat.runner.agents.conversation import AttemptRequest
from passhat.runner.processes import Tail, end_group, is_cancelled, start_group

LONGEST_LINE = 16 * 2**20
SERVE = "from passhat.runner.agents.python import serve; serve()"


class WorkerAgent:
    """Gives requests to at most `workers` processes; each works on one at a time.

    A process that keeps an instance for the conversation of a trial gets all that is said in it.
    """

    def __init__(self, system: PythonSystem) -> None:
        self._system = system
        self._started = 0
        self._idle: list[_Worker] = []
        self._talking: OrderedDict[str, _Worker] = OrderedDict()
        self._freed = asyncio.Event()

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        offered = {**offer(request), "workdir": str(request.make_workdir())}
        keeper = self._talking.pop(offered["workdir"], None) if request.history else None
        worker = await self._take(keeper)
        try:
            async with asyncio.timeout(request.timeout):
                answer = await worker.ask(offered, talks=request.message is not None)
        except BaseException:
            try:
                await worker.end()  # it hangs, or it died
            finally:
                self._give_back(worker)
            raise
        if answer.get("keeps"):
            self._talking[offered["workdir"]] = worker
            while len(self._talking) > _MOST_TALKING:
                self._talking.popitem(last=False)
        self._give_back(worker)
        if "error" in answer:
            raise RunError(answer["error"])
        return observe_value(answer["value"], about=self._system.function)

    async def _take(self, keeper: _Worker | None) -> _Worker:
        """The worker that has the conversation, or else any, once it has nothing to do."""
        while True:
            if keeper is not None and keeper.has_ended:
                raise RunError(
                    f"the worker that had this conversation with {self._system.function} ended "
                    "with another trial"
                )
            if self._idle and (keeper is None or keeper in self._idle):
                worker = keeper or self._idle[-1]
                self._idle.remove(worker)
                return worker
            if keeper is None and self._started < self._system.workers:
                break
            self._freed.clear()
            await self._freed.wait()
        self._started += 1
        try:
            return await _Worker.start(self._system)
        except BaseException:
            self._started -= 1
            self._freed.set()
            raise

    def _give_back(self, worker: _Worker) -> None:
        if worker.has_ended:
            self._started -= 1
        else:
            self._idle.append(worker)
        self._freed.set()

    async def close(self) -> None:
        """End the workers."""
        await asyncio.gather(*(worker.end() for worker in self._idle))
        self._idle.clear()


def serve() -> None:
    """What a worker does: read requests from stdin, call the function, write what it returned.

    What the function prints goes to stderr, because stdout is ours. There is one event loop for all
    calls: clients that the module makes once belong to the loop that first used them.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function, search = sys.argv[1], sys.argv[2]
    folder = Path(search) if search else None
    loaded = load_agent(function, search=folder)
    wanted = wanted_by(loaded, about=function)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in sys.stdin.buffer:
        offered, talks = msgspec.json.decode(line)
        offered["workdir"] = Path(offered["workdir"])
        try:
            asking = asked(loaded, wanted, offered, about=function, search=folder, talks=talks)
            value = loop.run_until_complete(asking)
            report = report_of(value)
            keeps = talks and isinstance(loaded, TrialInstances)
            reply = {"value": value if report is None else report, "keeps": keeps}
            answer = msgspec.json.encode(reply, enc_hook=encodable)
        except PasshatError as error:
            answer = msgspec.json.encode({"error": str(error)})
        answers.write(answer + b"\n")
        answers.flush()


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process, about: str) -> None:
        self._process = process
        self._about = about
        self._stderr = Tail()
        self.has_ended = False
        assert process.stderr is not None
        self._following = asyncio.create_task(self._stderr.follow(process.stderr))

    @classmethod
    async def start(cls, system: PythonSystem) -> _Worker:
        search = "" if system.search is None else str(system.search.absolute())
        argv = [sys.executable, "-c", SERVE, system.function, search]
        process = await start_group(argv, env=os.environ, cwd=None, limit=LONGEST_LINE)
        return cls(process, system.function)

    async def ask(self, offered: Mapping[str, Any], *, talks: bool) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            line = msgspec.json.encode([offered, talks], enc_hook=str)
            self._process.stdin.write(line + b"\n")
            await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        except (ConnectionError, ValueError) as error:
            raise RunError(f"the worker of {self._about} broke: {error}") from error
        if not line.endswith(b"\n"):
            await asyncio.sleep(0.05)  # until its last output is read
            stderr = self._stderr.text[-1000:] or "it printed nothing on stderr"
            raise RunError(f"the worker of {self._about} died: {stderr}")
        return msgspec.json.decode(line, type=dict[str, Any])

    async def end(self) -> None:
        self.has_ended = True
        await end_group(self._process, grace=0.0)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)


JOIN_PATIENCE = 0.5
"""Seconds that the loop of users' functions has to end with the run."""


class PythonAgent:
    """Calls the function or the framework's agent of a system, in this process."""

    def __init__(self, system: PythonSystem) -> None:
        self._system = system
        self._function = load_agent(system.function, search=system.search)
        self._wanted = wanted_by(self._function, about=system.function)

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        about = self._system.function
        offered = offer(request)
        if "workdir" in self._wanted.keys:
            request.make_workdir()
        asking = asked(
            self._function, self._wanted, offered, about=about, search=self._system.search,
            talks=request.message is not None,
        )  # fmt: skip
        async with asyncio.timeout(request.timeout):
            value = await user_loop().run(asking)
        return observe_value(value, about=about)


async def asked(
    function: Callable[..., Any],
    wanted: Wanted,
    offered: Mapping[str, Any],
    *,
    about: str,
    search: Path | None = None,
    talks: bool = False,
) -> Any:
    """What a function returns; of one that takes nothing and makes an agent, what that returns.

    `talks` says that more may be said in the trial, so that an instance is kept for it.
    """
    if isinstance(function, TrialInstances):
        making = partial(function.of, offered, talks=talks)
        function = await made(making, about=about, search=search)
    value = await made(wanted.call(function, offered), about=about, search=search)
    if wanted.keys:
        return value
    agent = agent_function(value) or (value if callable(value) else getattr(value, "run", None))
    if not callable(agent):
        return value
    inner = wanted_by(agent, about=f"what {about} returned")
    if "workdir" in inner.keys:
        offered["workdir"].mkdir(parents=True, exist_ok=True)
    return await made(inner.call(agent, offered), about=about, search=search)


def load_agent(reference: str, *, search: Path | None = None) -> Callable[..., Any]:
    """What `module:name` refers to, as a function of the prompt: one, or a framework's agent.

    Of a class an instance is made for each trial: `module:Class` calls it, `module:Class.method`
    its method. A function that takes nothing and returns an agent makes one for each call.
    """
    agent = load_object(reference, search=search)
    owner, _, name = reference.rpartition(".")
    if inspect.isfunction(agent) and ":" in owner:
        kind = load_object(owner, search=search)
        if inspect.isclass(kind) and not isinstance(
            inspect.getattr_static(kind, name), staticmethod
        ):
            return TrialInstances(kind, name, reference)
    if inspect.isclass(agent) and not issubclass(agent, str | int | float | Mapping):
        if not any("__call__" in vars(each) for each in agent.__mro__):
            methods = [name for name, _ in inspect.getmembers(agent, inspect.isfunction)]
            likely = likely_method(methods)
            example = f", such as {reference}.{likely}" if likely else ""
            raise SuiteError(
                f'"{reference}" is a class, whose instances cannot be called: name its method that '
                f"takes the prompt{example}"
            )
        return TrialInstances(agent, "", reference)
    return agent_function(agent) or _callable(agent, reference)


class TrialInstances:
    """A class whose instances are called, or a method of theirs: a new one for each trial.

    What an agent keeps in itself thus never leaks from one trial into another, and lasts as long
    as the conversation of a trial. The first instance is made at once: what cannot be made is
    refused before a run.
    """

    def __init__(self, kind: type, method: str, reference: str) -> None:
        self._kind, self._method, self._reference = kind, method, reference
        first = self._called(_instance(kind, reference))
        self._unused = [first]
        self._talking: OrderedDict[str, Callable[..., Any]] = OrderedDict()
        self._lock = threading.Lock()
        self.__signature__ = inspect.signature(first)

    def of(self, offered: Mapping[str, Any], *, talks: bool) -> Callable[..., Any]:
        """The instance of a trial: the one that began its conversation, or a new one."""
        trial = str(offered["workdir"])
        with self._lock:
            instance = self._talking.pop(trial, None) if offered["history"] else None
            if instance is None and self._unused:
                instance = self._unused.pop()
        if instance is None:  # not its truth, which is the user's to say
            instance = self._called(self._kind())
        if talks:
            with self._lock:
                self._talking[trial] = instance
                while len(self._talking) > _MOST_TALKING:
                    self._talking.popitem(last=False)
        return instance

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What a new instance says."""
        return self._called(self._kind())(*arguments, **named)

    def _called(self, instance: Any) -> Callable[..., Any]:
        if self._method:
            return getattr(instance, self._method)  # type: ignore[no-any-return]  # the user's
        return agent_function(instance) or _callable(instance, self._reference)


_MOST_TALKING = 256
"""More conversations than a run has under way at once: instances are kept for the next turn."""


def _instance(kind: type, reference: str) -> Any:
    """One instance of a user's class, made without arguments."""
    try:
        with prints_to_stderr():
            return kind()
    except Exception as error:
        raise SuiteError(
            f'"{reference}": {kind.__name__}() raised {type(error).__name__}: {error}; name a '
            "function that makes its agent and asks it, or an instance: "
            f"agent = {kind.__name__}(...)"
        ) from error


def load_function(reference: str, *, search: Path | None = None) -> Callable[..., Any]:
    """The function that `module:name` refers to; the module may be in `search`.

    >>> load_function("json:loads").__name__
    'loads'
    """
    return _callable(load_object(reference, search=search), reference)


def load_object(reference: str, *, search: Path | None = None) -> Any:
    """Whatever `module:name` refers to; the module may be in `search`."""
    module_name, colon, name = reference.partition(":")
    if not colon or not name:
        raise SuiteError(f'"{reference}" must be of the form module:function')
    if search is not None and str(search.absolute()) not in sys.path:
        sys.path.insert(0, str(search.absolute()))
    try:
        with prints_to_stderr():
            value: Any = importlib.import_module(module_name)
        for part in name.split("."):
            value = getattr(value, part)
    except ImportError as error:
        raise SuiteError(f'"{reference}" cannot be imported: {error}') from error
    except AttributeError:
        raise SuiteError(f'"{reference}": {module_name} has no {name}') from None
    return value


def _callable(value: Any, reference: str) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        raise SuiteError(f'"{reference}" yields its answer in parts: return it whole')
    if callable(value):
        return value  # type: ignore[no-any-return]  # just checked to be callable
    methods = [name for name, _ in inspect.getmembers(type(value), inspect.isfunction)]
    likely = likely_method(methods)
    example = f"{reference}.{likely}, or " if likely else ""
    raise SuiteError(
        f'"{reference}" is not a function but a {type(value).__name__}, and no agent of a '
        f"framework that passhat knows; name {example}a function that takes the prompt, calls it "
        "and returns its answer"
    )


def offer(request: AttemptRequest) -> dict[str, Any]:
    """Everything that a function may have as a parameter."""
    return {
        "prompt": request.prompt,
        "task": request.task.name,
        "trial": request.place.trial,
        "seed": request.seed,
        "workdir": request.workdir,
        "values": request.task.values,
        "history": [dict(message) for message in request.history],
    }


async def made(call: Callable[[], Any], *, about: str, search: Path | None = None) -> Any:
    """Make a call, in a thread unless it is async; its exceptions become ours.

    A failed assertion is a failed attempt; anything else that it raises is an error, which names
    the line of the code in `search` that raised it.
    """
    try:
        if inspect.iscoroutinefunction(call):
            return await call()
        value = await in_thread(call)
        return await value if inspect.isawaitable(value) else value
    except AssertionError as error:
        return {"passed": False, "answer": str(error)}
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        where = _line_in(search, error)
        raise RunError(f"{about} raised {type(error).__name__}: {error}{where}") from error


def _line_in(search: Path | None, error: BaseException) -> str:
    """The innermost line of the code in a folder that an exception went through.

    Installed packages in the folder are not the user's code. Empty if no line is.
    """
    folder = "" if search is None else str(search.absolute())
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__)) if folder else []):
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(folder) and "site-packages" not in file.parts:
            return f" ({file.relative_to(folder).as_posix()}, line {line})"
    return ""


async def in_thread(call: Callable[[], Any]) -> Any:
    """Make a call in a new thread.

    Not in a pool, whose threads are waited for at exit: a function that hangs would hold up the
    whole run.
    """
    loop = asyncio.get_running_loop()
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()  # an attempt that is cancelled leaves the thread alone

    def work() -> None:
        asyncio.set_event_loop(borrowed(loop))
        try:
            done.set_result(call())
        except (StopIteration, SystemExit, KeyboardInterrupt) as caught:
            # A future cannot hold the first; the others would end the run, not the attempt.
            stand_in = RuntimeError(f"{type(caught).__name__}: {caught}")
            done.set_exception(stand_in.with_traceback(caught.__traceback__))
        except BaseException as caught:
            done.set_exception(caught)
        asyncio.set_event_loop(None)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(done)


class UserLoop:
    """An event loop in another thread, so that code that blocks it does not block a run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="passhat-user-loop", daemon=True)
        self._thread.start()

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine there and wait for it here."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop; code that blocks it is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_PATIENCE)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()


@functools.cache
def user_loop() -> UserLoop:
    """The loop of this process, made when it is first needed: a notebook may run several suites."""
    loop = UserLoop()
    atexit.register(loop.close)
    return loop


class BorrowedLoop(asyncio.AbstractEventLoop):
    """What synchronous code finds as its event loop: work for it is done on the shared one.

    `agent.run_sync(...)` of many frameworks asks for the loop of its thread and runs a coroutine
    on it until it is complete. Set with `asyncio.set_event_loop` in a thread, this runs it on the
    shared loop and lets only the thread wait.
    """

    def __init__(self, shared: asyncio.AbstractEventLoop) -> None:
        self._shared = shared

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return super().__getattribute__(name)
        return getattr(super().__getattribute__("_shared"), name)

    def run_until_complete(self, future: Any) -> Any:
        if asyncio.iscoroutine(future):
            future = self.create_task(future)
        return asyncio.run_coroutine_threadsafe(_awaited(future), self._shared).result()

    def create_task(self, coro: Any, **options: Any) -> Any:
        made: Future[Any] = Future()

        def make() -> None:
            made.set_result(self._shared.create_task(coro, **options))

        # In the context of this thread, so that the task sees its context variables.
        self._shared.call_soon_threadsafe(make, context=contextvars.copy_context())
        return made.result()

    def is_running(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def close(self) -> None:
        """Does nothing: the shared loop outlives this one."""


_OWN = frozenset(
    {
        "_shared",
        "run_until_complete",
        "create_task",
        "is_running",
        "is_closed",
        "close",
        "__class__",
        "__dict__",
    }
)


def borrowed(shared: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """A loop for a thread that does its work on a shared one."""
    # typeshed calls all methods abstract; those that are not ours are the shared loop's.
    return BorrowedLoop(shared)  # type: ignore[abstract]


async def _awaited(future: Any) -> Any:
    return await future


STDOUT, STDERR = 1, 2

LONGEST_HELD = 2**16
"""Characters that are printed without a line end before they are passed on."""


@contextmanager
def prints_to_stderr(clean: Callable[[str], str] | None = None) -> Iterator[None]:
    """Send to standard error what code of users prints in this process, and in its children.

    The report of a run may go to standard output as JSON: a stray line would break it. `clean`
    takes secrets out of what the code prints; what its children print goes past it.
    """
    stream: Any = sys.stderr if clean is None else CleanStream(sys.stderr, clean)
    with _descriptor_to_stderr(), redirect_stdout(stream), redirect_stderr(stream):
        try:
            yield
        finally:
            stream.flush()


class CleanStream:
    """A stream that takes secrets out of each line, and of what was written before a flush."""

    def __init__(self, stream: Any, clean: Callable[[str], str]) -> None:
        self._stream = stream
        self._clean = clean
        self._held = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            self._held += text
            end = self._held.rfind("\n") + 1
            self._emit(end if end or len(self._held) < LONGEST_HELD else len(self._held))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        with self._lock:
            self._emit(len(self._held))
        self._stream.flush()

    def _emit(self, end: int) -> None:
        if end:
            self._stream.write(self._clean(self._held[:end]))
            self._held = self._held[end:]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    """Redirect the descriptor too where Python's stdout is the real one (not a notebook's)."""
    if not _is_real_stdout():
        yield
        return
    sys.stdout.flush()
    kept = os.dup(STDOUT)
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _is_real_stdout() -> bool:
    try:
        return sys.stdout.fileno() == STDOUT and sys.stderr.fileno() == STDERR
    except (AttributeError, OSError, ValueError):
        return False


# Which arguments a user's function gets, by the names of its parameters.

OFFERED = ("prompt", "task", "trial", "seed", "workdir", "values", "history")
"""What a function may ask for, by the names of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The arguments of a call: some by position, some by name."""

    by_place: tuple[str, ...] = ()
    by_name: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """Everything that the function takes."""
        return {*self.by_place, *self.by_name.values()}

    def call(self, function: Callable[..., Any], offered: Mapping[str, Any]) -> Callable[[], Any]:
        """The function with its arguments, ready to be called."""
        named = {name: offered[key] for name, key in self.by_name.items()}
        return functools.partial(function, *(offered[key] for key in self.by_place), **named)


def wanted_by(function: Callable[..., Any], *, about: str) -> Wanted:
    """The parameters of a function, and the argument for each.

    Parameters named in OFFERED get the value of that name. A single parameter of another name, or
    `*args` alone, gets the prompt; `**kwargs` alone gets everything by name. What a partial has
    bound stays as it is.

    >>> wanted_by(lambda question, /: True, about="mine").by_place
    ('prompt',)
    >>> sorted(wanted_by(lambda seed, *, prompt: True, about="mine").by_name)
    ['prompt', 'seed']
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Wanted(by_place=("prompt",))  # written in C, without a signature
    bound = function.keywords if isinstance(function, functools.partial) else {}
    parameters = [parameter for parameter in parameters if parameter.name not in bound]
    asked = _asked(parameters, about)
    kinds = {parameter.kind for parameter in parameters}
    if not asked and inspect.Parameter.VAR_POSITIONAL in kinds:
        return Wanted(by_place=("prompt",))
    if not asked and inspect.Parameter.VAR_KEYWORD in kinds:
        return Wanted(by_name={name: name for name in OFFERED})
    return Wanted(
        by_place=tuple(key for p, key in asked if p.kind is p.POSITIONAL_ONLY),
        by_name={p.name: key for p, key in asked if p.kind is not p.POSITIONAL_ONLY},
    )


def _asked(parameters: list[inspect.Parameter], about: str) -> list[tuple[inspect.Parameter, str]]:
    """The parameters that get a value, and which."""
    asked: list[tuple[inspect.Parameter, str]] = []
    skipped = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if skipped and parameter.kind is parameter.POSITIONAL_ONLY:
            continue  # nothing can be passed by position after a gap
        if parameter.name in OFFERED:
            asked.append((parameter, parameter.name))
        elif parameter.default is not parameter.empty:
            skipped = True
        elif asked:
            raise SuiteError(
                f'"{about}" has a parameter "{parameter.name}", for which there is no value; there '
                f"are values for {', '.join(OFFERED)}"
            )
        else:
            asked.append((parameter, "prompt"))
    return asked
