"""Functions that stand for agents."""

import asyncio
import concurrent.futures
import functools
import os
import time


def passes(prompt):
    return True


def half(anything):
    return 0.5


def answers(prompt, seed, trial, workdir, values):
    (workdir / "note.txt").write_text(prompt)
    return {
        "answer": f"{prompt} {values.get('city')} {trial}",
        "tool_calls": ["look", {"name": "get", "arguments": {"n": seed}}],
        "tokens_in": 10,
        "tokens_out": 2,
        "cost": 0.25,
        "turns": 3,
    }


async def waits(prompt):
    await asyncio.sleep(0.001)
    return {"passed": True}


def refuses(prompt):
    assert prompt == "something else", "not what was asked"


def breaks(prompt):
    raise ValueError("no key")


def leaves(prompt):
    raise SystemExit("enough")


def is_cancelled(prompt):
    raise concurrent.futures.CancelledError("gone")


async def cancels_itself(prompt):
    raise asyncio.CancelledError("gone")


def returns_nothing(prompt):
    return None


def boasts(prompt):
    return 7


def hangs(prompt):
    time.sleep(60)


async def hangs_politely(prompt):
    await asyncio.sleep(60)


def dies(prompt):
    os._exit(3)


def talks(prompt):
    os.write(1, b"chatter on stdout\n")
    return {"passed": True, "answer": str(os.getpid())}


def wants_too_much(prompt, database):
    return True


def by_place(prompt, /):
    return {"answer": prompt}


def by_place_and_name(question, seed, /, tone="calm", *, trial):
    return {"answer": f"{question} {tone} {trial} {type(seed).__name__}"}


def behind_a_gap(prompt, depth=3, trial=None, /):
    return {"answer": f"{prompt} {depth} {trial}"}


def anything(*args):
    return {"answer": f"{args[0]} of {len(args)}"}


def anything_named(**kwargs):
    return {"answer": f"{kwargs['prompt']} {kwargs['trial']} of {len(kwargs)}"}


def wrapped(*args, **kwargs):
    return by_place(*args, **kwargs)


def with_options(prompt, **options):
    return {"answer": f"{prompt} {len(options)}"}


def greets(greeting, prompt, seed):
    return {"answer": f"{greeting} {prompt} {seed}"}


class Agent:
    """An agent that is an object."""

    def __init__(self, manner):
        self.manner = manner

    def __call__(self, prompt):
        return {"answer": f"{prompt} {self.manner}"}

    def asked(self, prompt, /):
        return {"answer": f"{prompt} {self.manner}, asked"}


class AsyncAgent(Agent):
    """An agent that is an object, and waits."""

    async def __call__(self, prompt):
        await asyncio.sleep(0)
        return {"answer": f"{prompt} {self.manner}"}


async def slowly(manner, prompt):
    await asyncio.sleep(0)
    return {"answer": f"{prompt} {manner}"}


bound = functools.partial(greets, "hi", seed=7)
bound_async = functools.partial(slowly, "slowly")
polite = Agent("politely")
patient = AsyncAgent("patiently")
