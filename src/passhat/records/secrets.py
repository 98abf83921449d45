"""What is never shown: keys and tokens by the shapes that their issuers document, and addresses."""

from __future__ import annotations

import re
import sys
from dataclasses import field
from functools import cache, lru_cache
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import SuiteError

_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Where a key may begin: at a word, or after the \\n of an escaped text."""

MARK = "[redacted]"
"""What replaces a key."""

_KEY = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?"
_ARMOR = r"[A-Za-z0-9+/=:,. \t\r\n-]|\\[nrt]"
"""The text between the two lines of a private key; its line breaks are \\n inside JSON."""

_SPACE = r"(?:\s|\\[nrt]){1,9}"
"""Spaces, tabs and line ends between a word and its key, also as a text escapes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPattern:
    """One kind of key. A text without any of `needles` has none of them.

    The needles are looked for first: searching forty patterns in every transcript would cost more
    than running a trial. `certain` shapes are keys wherever they occur, also in a suite file.
    """

    name: str
    needles: tuple[str, ...]
    expression: str
    certain: bool = True

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when first needed, and kept by `re`: forty would take longer than a command."""
        flags = re.IGNORECASE if self.expression.startswith("(?i)") else 0
        return re.compile(_START + self.expression.removeprefix("(?i)"), flags)

    def may_be_in(self, text: str) -> bool:
        return any(needle in text for needle in self.needles)


def _shape(name: str, pattern: str, *needles: str, certain: bool = True) -> SecretPattern:
    return SecretPattern(name=name, needles=needles, expression=pattern, certain=certain)


# Patterns match no quote and no backslash (but for the \n in a private key), so that replacing a
# match inside JSON text leaves JSON text.
SHAPES: tuple[SecretPattern, ...] = (
    _shape(
        "a private key",
        rf"-----BEGIN {_KEY}-----(?:(?:{_ARMOR})*?-----END {_KEY}-----|(?:{_ARMOR})*)",
        "PRIVATE KEY",
    ),
    _shape("an Anthropic key", r"sk-ant-[A-Za-z0-9_-]{16,}", "sk-ant-"),
    _shape("an OpenRouter key", r"sk-or-[A-Za-z0-9_-]{16,}", "sk-or-"),
    _shape("an OpenAI key", r"sk-[A-Za-z0-9_-]{16,}", "sk-"),
    _shape("a Stripe key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", "k_live_", "k_test_"),
    _shape("a webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}", "whsec_"),
    _shape("a Google key", r"AIza[0-9A-Za-z_-]{30,}", "AIza"),
    _shape("a Google OAuth token", r"ya29\.[0-9A-Za-z_-]{20,}", "ya29."),
    _shape("a Google OAuth secret", r"GOCSPX-[0-9A-Za-z_-]{20,}", "GOCSPX-"),
    _shape(
        "a GitHub token",
        r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _shape("a GitLab token", r"gl(?:pat|ptt|dt|rt)-[\w-]{16,}", "glpat-", "glptt-", "gldt-"),
    _shape("an AWS key id", r"(?:AKIA|ASIA)[0-9A-Z]{12,}\b", "AKIA", "ASIA"),
    _shape(
        "an AWS secret key",
        r"(?i)aws_?secret_?(?:access_?)?key\W{1,5}[A-Za-z0-9/+]{40}\b",
        *("secret", "SECRET", "Secret"),
    ),
    _shape("a Bedrock key", r"ABSK[A-Za-z0-9+/]{40,}=*", "ABSK"),
    _shape("an Azure storage key", r"AccountKey=[A-Za-z0-9+/]{40,}=*", "AccountKey="),
    _shape("a Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}", "xox"),
    _shape("a Slack app token", r"xapp-\d-[A-Za-z0-9-]{10,}", "xapp-"),
    _shape(
        "a Slack webhook",
        r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
        "hooks.slack.com/",
    ),
    _shape("a Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}", "webhooks/"),
    _shape("a Telegram bot token", r"\d{8,10}:AA[A-Za-z0-9_-]{30,}", ":AA"),
    _shape("a Hugging Face token", r"hf_[A-Za-z0-9]{20,}", "hf_"),
    _shape("a Groq key", r"gsk_[A-Za-z0-9]{20,}", "gsk_"),
    _shape("an xAI key", r"xai-[A-Za-z0-9]{20,}", "xai-"),
    _shape("a Perplexity key", r"pplx-[A-Za-z0-9]{20,}", "pplx-"),
    _shape("a Replicate token", r"r8_[A-Za-z0-9]{20,}", "r8_"),
    _shape("a Fireworks key", r"fw_[A-Za-z0-9]{20,}", "fw_"),
    _shape("a Together key", r"tgp_v\d_[A-Za-z0-9_-]{20,}", "tgp_v"),
    _shape("an NVIDIA key", r"nvapi-[A-Za-z0-9_-]{20,}", "nvapi-"),
    _shape("a Tavily key", r"tvly-[A-Za-z0-9-]{16,}", "tvly-"),
    _shape("a LangSmith key", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}", "lsv2_"),
    _shape("a Langfuse key", r"[ps]k-lf-[A-Za-z0-9-]{16,}", "k-lf-"),
    _shape("a Weights & Biases key", r"wandb_v\d_[A-Za-z0-9_]{20,}", "wandb_v"),
    _shape("a Databricks token", r"dapi[a-f0-9]{32}\b", "dapi"),
    _shape("a DigitalOcean token", r"do[op]_v1_[a-f0-9]{40,}", "_v1_"),
    _shape("a SendGrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}", "SG."),
    _shape("a Twilio key", r"SK[a-f0-9]{32}\b", "SK"),
    _shape("an npm token", r"npm_[A-Za-z0-9]{30,}", "npm_"),
    _shape("a PyPI token", r"pypi-AgE[A-Za-z0-9_-]{30,}", "pypi-AgE"),
    _shape("a Docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", "dckr_"),
    _shape("a Notion token", r"ntn_[A-Za-z0-9]{30,}", "ntn_"),
    _shape("a Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}", "lin_"),
    _shape("a Supabase token", r"sbp_[a-f0-9]{30,}", "sbp_"),
    _shape("a Vault token", r"hv[bsr]\.[A-Za-z0-9_-]{20,}", "hvs.", "hvb.", "hvr."),
    _shape("an Airtable token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}", "pat"),
    _shape("a Shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}", "shp"),
    _shape("an age key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}", "AGE-SECRET-KEY"),
    _shape("a JSON web token", r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*", "eyJ"),
    _shape(
        "a bearer token",
        rf"(?i)bearer{_SPACE}[A-Za-z0-9._~+/-]{{16,}}=*",
        *("earer", "EARER"),
        certain=False,
    ),
    _shape(
        "a basic authorization",
        rf"(?i)authorization\W{{1,5}}basic{_SPACE}[A-Za-z0-9+/]{{8,}}=*",
        *("uthorization", "UTHORIZATION"),
        certain=False,
    ),
    _shape(
        "a password in an address",
        r"[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'\\]{1,64}:[^\s/@\"'\\]{3,200}@",
        "://",
        certain=False,
    ),
)
"""Looked for in this order: a specific shape comes before a wider one that matches it too."""

# Results for texts up to this length are cached: every run of a task has the same prompt.
_SHORT, _KEPT = 4_096, 1_024
# From this length on, one pass over all trigrams is quicker than a search for every needle; a pass
# goes over so many bytes at a time. It takes numpy, which is not loaded for this alone.
_LONG, _AT_ONCE = 500, 1 << 20


def shapes_near(text: str) -> tuple[SecretPattern, ...]:
    """The shapes that may be in a text: for most texts, none."""
    return _shapes_in(text) if len(text) <= _SHORT else _shapes_in.__wrapped__(text)


@lru_cache(maxsize=_KEPT)
def _shapes_in(text: str) -> tuple[SecretPattern, ...]:
    if len(text) >= _LONG and "numpy" in sys.modules:
        found = {needle for needle in _needles_near(text) if needle in text}
        return tuple(shape for shape in SHAPES if not found.isdisjoint(shape.needles))
    if any(needle in text for needle in _shortest_needles()):
        return tuple(shape for shape in SHAPES if shape.may_be_in(text))
    return ()


@cache
def _shortest_needles() -> tuple[str, ...]:
    """Needles without those that hold a shorter one: "sk-" is in "sk-ant-"."""
    needles = sorted({needle for shape in SHAPES for needle in shape.needles}, key=len)
    return tuple(
        needle
        for place, needle in enumerate(needles)
        if not any(shorter in needle for shorter in needles[:place])
    )


def _needles_near(text: str) -> list[str]:
    """The needles of which every trigram is in a text, or one that shares its number.

    One that is too short for a trigram may be anywhere.
    """
    import numpy as np

    data = text.encode(errors="surrogatepass")
    there = np.zeros(1 << 16, dtype=bool)
    for start in range(0, len(data) - 2, _AT_ONCE):
        there[_trigrams(data[start : start + _AT_ONCE + 2])] = True
    short, needles, numbers, starts = _needle_trigrams()
    near = np.logical_and.reduceat(there[numbers], starts)
    return [*short, *(needles[i] for i in np.flatnonzero(near).tolist())]


@cache
def _needle_trigrams() -> tuple[list[str], list[str], Any, Any]:
    """Short needles, the others, the trigrams of all of those, and where those of each begin."""
    import numpy as np

    every = sorted({needle for shape in SHAPES for needle in shape.needles})
    needles = [needle for needle in every if len(needle) >= 3]
    each = [_trigrams(needle.encode()) for needle in needles]
    short = [needle for needle in every if len(needle) < 3]
    return short, needles, np.concatenate(each), np.cumsum([0, *(len(one) for one in each[:-1])])


def _trigrams(data: bytes) -> Any:
    """A number below 2^16 for each three bytes in a row; some trigrams share one."""
    import numpy as np

    part = np.frombuffer(data, np.uint8).astype(np.uint16)
    return part[:-2] * np.uint16(2551) + part[1:-1] * np.uint16(313) + part[2:]


_NEAR_A_CUT = 300
"""Characters before and after a cut that are searched for a key that it would split. A key that
begins earlier is longer than any shape requires, and is found in what is kept."""


def beginning(text: str, limit: int) -> str:
    """The first `limit` characters; a key that would be split there is replaced as a whole.

    Half a key has no shape that could be found later.

    >>> beginning("log in with ghp_0123456789abcdefghij01 now", 20)
    'log in with [redacted]'
    """
    start = max(0, limit - _NEAR_A_CUT)
    near = text[start : limit + _NEAR_A_CUT]
    begins = [
        start + found.start()
        for shape in shapes_near(near)
        for found in shape.pattern.finditer(near)
        if start + found.start() < limit < start + found.end()
    ]
    return f"{text[: min(begins)]}{MARK}" if begins else text[:limit]


def has_certain_shape(text: str) -> bool:
    """Whether a text holds what is surely a key.

    >>> has_certain_shape("use ghp_0123456789abcdefghij01"), has_certain_shape("use my key")
    (True, False)
    """
    return any(shape.certain and shape.pattern.search(text) for shape in shapes_near(text))


@dataclass(frozen=True, slots=True)
class Secret:
    """A text of the suite, such as `Bearer ${TOKEN}`, and its value.

    Equality, hash and repr see only the reference: two machines with different keys have equal
    suites, and no log shows the value. A value that could not be found is an error only when it
    is needed, so that a replay runs without any key.

    >>> Secret("Bearer ${TOKEN}", "Bearer abc")
    Secret(reference='Bearer ${TOKEN}')
    >>> Secret("${TOKEN}", None, missing="TOKEN is not set").reveal()
    Traceback (most recent call last):
    passhat.errors.SuiteError: TOKEN is not set
    """

    reference: str
    value: str | None = field(repr=False, compare=False)
    missing: str = field(default="", repr=False, compare=False)

    @classmethod
    def plain(cls, text: str) -> Secret:
        """A text that hides nothing: it refers to no variable."""
        return cls(text, text)

    @property
    def is_set(self) -> bool:
        return self.value is not None

    def reveal(self) -> str:
        """The value, at the one place that sends it."""
        if self.value is None:
            raise SuiteError(self.missing or f"{self.reference} has no value")
        return self.value


def bare_address(address: str) -> str:
    """An address as it may be shown: without user, password, query and fragment, where keys are.

    A password may hold any character, so everything before the last @ counts as the login.

    >>> bare_address("https://ann:pa@ss@gateway.example/v1?key=abc")
    'https://gateway.example/v1'
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    return scheme + mark + rest.rpartition("@")[2].partition("?")[0].partition("#")[0]
