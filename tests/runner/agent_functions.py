"""Functions that stand for agents."""

import asyncio
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
