"""Keeping secrets out of what is written down."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from passhat.records import HttpServer, HttpSystem, ModelSystem, Secret, StdioServer, Suite
from passhat.records.system import CommandSystem

MARK = "[redacted]"
SHORTEST = 6
"""Shorter values are too likely to be ordinary words."""

KEY_SHAPES = {
    "an OpenAI or Anthropic key": r"\bsk-[A-Za-z0-9_-]{16,}",
    "a Google key": r"\bAIza[0-9A-Za-z_-]{30,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    "an AWS key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a Slack token": r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "a Groq key": r"\bgsk_[A-Za-z0-9]{30,}",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a bearer token": r"(?i)\bbearer [A-Za-z0-9._~+/-]{16,}=*",
}
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_SHAPES = {what: re.compile(pattern) for what, pattern in KEY_SHAPES.items()}

KEY_VARIABLE = re.compile(r"(?i)(_API_KEY|_TOKEN|_SECRET|PASSWORD|_ACCESS_KEY)$")


class Redactor:
    """Blots out known values and everything that has the shape of a key.

    >>> Redactor(["hunter22"]).clean('{"password": "hunter22"}')
    '{"password": "[redacted]"}'
    """

    def __init__(self, values: Iterable[str]) -> None:
        known = sorted({v for v in values if len(v) >= SHORTEST}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, known))) if known else None
        self._disguised = [form for value in known for form in _disguises(value)]

    def clean(self, text: str) -> str:
        """The text without secrets."""
        if self._values is not None:
            text = self._values.sub(MARK, text)
        for shape in _SHAPES.values():
            text = shape.sub(MARK, text)
        return text

    def hit(self, text: str) -> str | None:
        """What secret thing is still in a text that was cleaned, in words; None if nothing is."""
        if PRIVATE_KEY.search(text):
            return "a private key"
        if self._values is not None and self._values.search(text):
            return "a secret of the suite"
        if any(form in text for form in self._disguised):
            return "a secret of the suite in disguise (base64, hex or percent-encoded)"
        return next((what for what, shape in _SHAPES.items() if shape.search(text)), None)


def known_secrets(suite: Suite, environment: Mapping[str, str]) -> set[str]:
    """All secret values a run may touch: those the suite refers to, and keys in variables."""
    found = {value for name, value in environment.items() if KEY_VARIABLE.search(name)}
    for secret in _secrets(suite):
        # A secret without a reference is a plain text that the suite shows anyway.
        if secret.value is not None and secret.value != secret.reference:
            found.add(secret.value)
            found |= set(secret.value.split())  # "Bearer abc" hides "abc"
    return found


def _secrets(suite: Suite) -> Iterable[Secret]:
    for server in suite.servers.values():
        match server:
            case StdioServer():
                yield from server.env.values()
            case HttpServer():
                yield from server.headers.values()
    for pairing in suite.pairings:
        match pairing.system:
            case ModelSystem(model=model):
                yield from model.headers.values()
                if model.api_key is not None:
                    yield model.api_key
            case CommandSystem(env=env):
                yield from env.values()
            case HttpSystem(headers=headers):
                yield from headers.values()


def _disguises(value: str) -> list[str]:
    data = value.encode()
    # Base64 of a longer text holds one of three shifts of the value; the middle of each is stable.
    shifted = [base64.b64encode(b"\0" * shift + data).decode()[4:-4] for shift in range(3)]
    forms = [*shifted, data.hex(), quote(value, safe=""), value[::-1]]
    return [form for form in forms if len(form) >= 2 * SHORTEST and form != value]
