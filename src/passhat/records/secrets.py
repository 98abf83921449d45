"""What is never shown: keys and tokens by the shapes that their issuers document, and addresses."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
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

    The needles are looked for first: searching a hundred patterns in every transcript would cost
    more than running a trial. `certain` shapes are keys wherever they occur, also in a suite file.
    What a group named `kept` matches stays: the name before a value, and the quote between them.
    """

    name: str
    needles: tuple[str, ...]
    expression: str
    certain: bool = True

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when first needed, and kept: all of them would take longer than a command."""
        return _compiled(self.expression)

    def may_be_in(self, text: str) -> bool:
        return any(map(text.__contains__, self.needles))

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Every key of this kind in a text, one after the other."""
        pattern, end = self.pattern, 0
        if all(map(self.expression.startswith, self.needles)):
            places = ((place, len(text)) for place in _places(text, self.needles))
        elif self.needles == _NAMED:
            named = (at + len(stem) for stem in _STEMS for at in _places(text, (stem,)))
            # The value first: it tells at one place whether the name is worth a look.
            follows = _compiled(_MAY_FOLLOW).match
            ends = sorted({at for at in named if follows(text, at) is not None})
            places = ((max(0, at - _LONGEST_NAME), at + _LONGEST_VALUE) for at in ends)
        else:
            yield from pattern.finditer(text)
            return
        for start, stop in places:
            search = pattern.match if self.needles != _NAMED else pattern.search
            if stop > end and (match := search(text, max(start, end), stop)) is not None:
                if not _names_a_column(text, match):
                    yield match
                end = match.end()

    def masked(self, text: str) -> str:
        """The text with a mark in the place of each key of this kind."""
        parts, end = [], 0
        for match in self.matches(text):
            kept = match.end("kept") if "kept" in match.re.groupindex else match.start()
            parts += [text[end:kept], MARK]
            end = match.end()
        return "".join([*parts, text[end:]]) if parts else text


_COLUMNS = (
    r"--columns (?:(?:[a-z_-]{1,30}=(?:[^=\s'\"]{1,200}|'[^'\n]{1,200}'),){0,30}"
    r"|'(?:[a-z_-]{1,30}=[^='\n]{1,200},){0,30})$"
)
"""What stands before a column in the option that names columns; in a shell, perhaps in quotes."""


def _names_a_column(text: str, match: re.Match[str]) -> bool:
    """Whether what looks like a password is the column of verdicts in an option for a command."""
    if not match[0].startswith("pass="):
        return False
    before = text[max(0, match.start() - 1_000) : match.start()]
    return re.search(_COLUMNS, before) is not None


def _places(text: str, needles: Iterable[str]) -> Iterator[int]:
    """Where one of the needles is; in order if there is only one."""
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            yield at
            at = text.find(needle, at + 1)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    flags = re.IGNORECASE if expression.startswith("(?i)") else 0
    # A name before a value may be the end of a longer one: SMTP_PASSWORD.
    start = "" if "?P<kept>" in expression else _START
    return re.compile(start + expression.removeprefix("(?i)"), flags)


def _shape(name: str, pattern: str, *needles: str, certain: bool = True) -> SecretPattern:
    return SecretPattern(name=name, needles=needles, expression=pattern, certain=certain)


_GITLAB = tuple(
    f"gl{kind}-"
    for kind in "agent cbt dt ffct ft imt oas pat ptt rt soat".split()  # noqa: SIM905
)

_PLACEHOLDER = (
    r"(?i:pass(?:word|wd|phrase)?|pw|pwd|user(?:name)?|secrets?|tokens?|keys?|change_?me|hidden|"
    r"required|optional|string|none|null|true|false|undefined|example|your[\w-]*|my[_-]\w*|"
    r"x{3,}|\*{3,}|\.{3,}|<[^>]*>|\$\{?\w+\}?|%\w+%|\{[^}]*\}|\[redacted[^\]]*\])"
)
"""What stands for a password in manuals and messages."""

# Values that only their names give away. A name ends where a sign follows: "tokens" is no "token".
_PREFIXED = (
    ("A3-", 30, "1Password"), ("ops_eyJ", 100, "1Password"), ("p8e-", 32, "Adobe"),
    ("LTAI", 20, "Alibaba"), ("AKCp", 60, "Artifactory"), ("ATATT3", 30, "Atlassian"),
    ("CLOJARS_", 50, "Clojars"), ("dp.pt.", 40, "Doppler"), ("dt0c01.", 60, "Dynatrace"),
    ("EZAK", 50, "EasyPost"), ("EZTK", 50, "EasyPost"), ("EAAM", 90, "Facebook"),
    ("EAAC", 90, "Facebook"), ("figd_", 20, "Figma"), ("fo1_", 40, "Fly.io"),
    ("fm2_", 90, "Fly.io"), ("fio-u-", 60, "Frame.io"), ("GR1348941", 20, "GitLab"),
    ("glsa_", 30, "Grafana"), ("glc_", 30, "Grafana"), ("HRKU-", 30, "Heroku"),
    ("NRAK-", 20, "New Relic"), ("NRII-", 20, "New Relic"), ("sha256~", 43, "OpenShift"),
    ("pcsk_", 30, "Pinecone"), ("pscale_tkn_", 30, "PlanetScale"),
    ("pscale_oauth_", 30, "PlanetScale"), ("pscale_pw_", 30, "PlanetScale"),
    ("PMAK-", 40, "Postman"), ("pnu_", 36, "Prefect"), ("pul-", 40, "Pulumi"),
    ("rdme_", 60, "ReadMe"), ("rubygems_", 40, "RubyGems"), ("tk-us-", 40, "Scalingo"),
    ("xkeysib-", 60, "Brevo"), ("sntryu_", 50, "Sentry"), ("sntrys_", 50, "Sentry"),
    ("shippo_live_", 40, "Shippo"), ("shippo_test_", 40, "Shippo"), ("sgp_", 40, "Sourcegraph"),
    ("sq0atp-", 20, "Square"), ("sq0csp-", 30, "Square"), ("tfp_", 50, "Typeform"),
    ("AQVN", 35, "Yandex"), ("vercel_", 20, "Vercel"), ("jina_", 40, "Jina"),
    ("sk_car_", 20, "Cartesia"), ("co_api_", 30, "Cohere"), ("e2b_", 30, "E2B"),
)  # fmt: skip
"""Keys that begin with a prefix of their issuer: the prefix, the least that follows, the issuer."""

_DISCORD = ("discord", "Discord", "DISCORD", "Bot ")

_WORD = r"(?i:(?<![A-Za-z])pwd|passw(?:or)?d|passphrase)"
_NAME = (
    r"(?i:(?<!page)(?<!next)(?<!sync)(?<!ation)(?<!page[_-])(?<!next[_-])(?<!sync[_-])"
    r"(?<!ation[_-])token|secret|(?<![A-Za-z])pass|"
    r"(?:api|access|auth|account|signing|encryption|private|service|session|license|"
    r"app|application|shared|master|write|read|admin|user)[_-]?key|key[_-]data|"
    r"credentials?|_auth|sessionid|session[_-]id)"
)
_SIGN = r"[\"'`\\]{0,3}[ \t]{0,3}(?::=|=>|[=:])[ \t]{0,3}"
_QUOTE = r"\\?[\"'`]"
_VALUE = r"[^\s\"'`\\,;&<>(){}\[\]]"
_MIXED = rf"(?={_VALUE}{{0,99}}\d)(?={_VALUE}{{0,99}}[A-Za-z])"
"""Ahead there are letters and digits: of a value without quotes nothing else tells it from code."""

_MAY_FOLLOW = (
    rf"(?P<kept>{_SIGN}(?:{_QUOTE})?)"
    rf"(?:(?<=[=\"'`])|(?![A-Za-z_.]{{1,99}}[\s,(){{}}\[\]<>])){_VALUE}{{6}}"
)
"""What may follow a name: after a colon, no word of a sentence or of code."""

_ENDS = rf"(?(quote)(?={_QUOTE})|(?![\w.]{{0,50}}[(\[]))"
"""A value in quotes goes up to the second one; one without is no call and no lookup of code."""

_STEMS = (
    *("oken", "OKEN", "ecret", "ECRET", "pass", "Pass", "PASS", "assword", "ASSWORD", "asswd"),
    *("ASSWD", "assphrase", "ASSPHRASE", "pwd", "PWD", "Pwd", "_key", "_KEY", "-key", "-KEY"),
    *(
        "-Key",
        "ssKey",
        "piKey",
        "ntKey",
        "teKey",
        "ikey",
        "IKEY",
        "y-data",
        "y_data",
        "redentials",
        "REDENTIALS",
        "redential",
    ),
    *("_auth", "_AUTH", "essionid", "ession_id", "ESSION_ID", "ession-id"),
)
_LONGEST_NAME, _LONGEST_VALUE = 24, 600
"""Characters before the end of a name, and after it, in which a pattern is looked for."""

_SIGNS = ("=", ":", " =", '":', "':", '\\":')
_NAMED = tuple(stem + sign for stem in _STEMS for sign in _SIGNS)

# Patterns match no quote and no backslash (but for the \n in a private key, and in
# what is kept), so that replacing a match inside JSON text leaves JSON text. Many of those with a
# prefix follow the rules of gitleaks (MIT licence, copyright 2019 Zachary Rice).
SHAPES: tuple[SecretPattern, ...] = (
    _shape(
        "a private key",
        rf"-----BEGIN {_KEY}-----(?:(?:{_ARMOR})*?-----END {_KEY}-----|(?:{_ARMOR})*)",
        "PRIVATE KEY",
    ),
    _shape("an Anthropic key", r"sk-ant-[A-Za-z0-9_-]{16,}", "sk-ant-"),
    _shape("an OpenRouter key", r"sk-or-[A-Za-z0-9_-]{16,}", "sk-or-"),
    _shape(
        # Twelve characters in a row, with digits, or twenty: "sk-means-clustering" is a name.
        "an OpenAI key",
        r"sk-(?=[\w-]{0,99}[A-Za-z0-9]{20}|(?=[\w-]{0,99}\d[\w-]{0,99}\d)[\w-]{0,99}[A-Za-z0-9]{12})"
        r"[A-Za-z0-9_-]{16,}",
        "sk-",
    ),
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
    _shape(
        "a GitLab token",
        r"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-[\w.-]{16,}",
        *_GITLAB,
    ),
    _shape("an AWS key id", r"(?:AKIA|ASIA)[0-9A-Z]{12,}\b", "AKIA", "ASIA"),
    _shape(
        "an AWS secret key",
        r"(?i)aws_?secret_?(?:access_?)?key\W{1,5}[A-Za-z0-9/+]{40}\b",
        *("aws_s", "AWS_S", "awsS", "AwsS", "AWSS", "awss"),
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
    _shape("a DigitalOcean token", r"do[opr]_v1_[a-f0-9]{40,}", "_v1_"),
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
        rf"(?i)bearer{_SPACE}(?=[a-z._~+/-]{{0,99}}\d)[A-Za-z0-9._~+/-]{{16,}}=*",
        *("earer", "EARER"),
        certain=False,
    ),
    _shape(
        "a basic authorization",
        rf"(?i)authorization\W{{1,5}}basic{_SPACE}(?:[a-z0-9+/]{{12,}}=*|[a-z0-9+/]{{7,}}=+)",
        *("uthorization", "UTHORIZATION"),
        certain=False,
    ),
    _shape(
        "a password in an address",
        r"[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'\\]{0,64}:"
        rf"(?!{_PLACEHOLDER}@)[^\s/@\"'\\]{{3,200}}@",
        "://",
        certain=False,
    ),
    _shape("an Azure client secret", r"[\w.~]{3}\dQ~[\w.~-]{31,34}", "Q~"),
    _shape("an Azure signature", r"(?P<kept>[?&;]sig=)[\w%+/=-]{20,}", "sig="),
    _shape("a Google refresh token", r"1//0[\w-]{20,}", "1//0"),
    _shape("a Firebase key", r"AAAA[\w-]{7}:[\w-]{100,}", "AAAA"),
    _shape("a Discord bot token", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}", *_DISCORD),
    _shape("a Mailgun key", r"key-[a-f0-9]{32}\b", "key-"),
    _shape("a Mailchimp key", r"[a-f0-9]{32}-us\d{1,2}\b", "-us"),
    _shape("an ElevenLabs key", r"sk_[a-f0-9]{40,}", "sk_"),
    _shape("a Voyage key", r"pa-[A-Za-z0-9_-]{40,}", "pa-"),
    _shape("a Cerebras key", r"csk-[a-z0-9]{30,}", "csk-"),
    *(
        _shape(f"a key of {owner}", rf"{re.escape(prefix)}[\w.=+/-]{{{least},}}", prefix)
        for prefix, least, owner in _PREFIXED
    ),
    _shape(
        "a cookie",
        r"(?i)(?P<kept>(?:set-)?cookie2?[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}[\"'\\]{0,2})"
        r"[\w.-]{1,64}=[^\s\"'\\;,]{6,}(?:;[^\"'\\\r\n]*)?",
        *("ookie:", "OOKIE:", 'ookie"', "ookie=", "ookie'", "ookie\\"),
        certain=False,
    ),
    _shape(
        "a login of curl",
        r"(?P<kept>curl\b[^\r\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?)[^\s:\"'\\]{1,64}:"
        rf"(?!{_PLACEHOLDER}\b)[^\s\"'\\]{{3,}}",
        "curl ",
        certain=False,
    ),
    _shape(
        "a login of .netrc",
        r"(?P<kept>\blogin\s{1,9}[^\s\"'\\]{1,64}\s{1,9}password\s{1,9})(?!\[)[^\s\"'\\]{4,}",
        "login ",
        certain=False,
    ),
    _shape(
        "a login of Docker",
        r"(?P<kept>[\"']auth\\?[\"']\s{0,3}:\s{0,3}\\?[\"'])[A-Za-z0-9+/]{12,}=*",
        *('auth"', "auth'", "auth\\"),
        certain=False,
    ),
    _shape(
        "a password by its name",
        rf"(?P<kept>{_WORD}(?:{_SIGN}(?P<quote>{_QUOTE})|=))(?!{_PLACEHOLDER}(?!{_VALUE}))"
        rf"{_VALUE}{{6,200}}{_ENDS}",
        *_NAMED,
        certain=False,
    ),
    _shape(
        "a secret by its name",
        rf"(?P<kept>(?:{_WORD}|{_NAME}){_SIGN}(?P<quote>{_QUOTE})?)"
        rf"(?!{_PLACEHOLDER}(?!{_VALUE})){_MIXED}{_VALUE}{{6,500}}{_ENDS}",
        *_NAMED,
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
        needles = {needle for needle in _needles_near(text) if needle in text}
        return tuple(shape for shape in SHAPES if not needles.isdisjoint(shape.needles))
    near = [part for rare, parts in _by_rare_character().items() if rare in text
            for part in parts if part in text]  # fmt: skip
    if any(part not in _STEMS or any(part + sign in text for sign in _SIGNS) for part in near):
        return tuple(shape for shape in SHAPES if shape.may_be_in(text))
    return ()


# From rare to frequent in requests, answers and JSON; other characters are rarer still.
_FREQUENCY = "zqxjkvbywgpfmucdlhrsinoate"


@cache
def _by_rare_character() -> dict[str, list[str]]:
    """Stems and all other needles, by the character of each that is rarest.

    Every trial asks for them in a few texts that hold none: that takes a third of the time in which
    each is looked for.
    """
    grouped = defaultdict[str, list[str]](list)
    for needle in sorted({*_STEMS, *_needles()} - {*_NAMED}):
        grouped[min(needle, key=_FREQUENCY.find)].append(needle)
    return dict(grouped)


@cache
def _needles() -> list[str]:
    return sorted({needle for shape in SHAPES for needle in shape.needles})


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

    needles = [needle for needle in _needles() if len(needle) >= 3]
    each = [_trigrams(needle.encode()) for needle in needles]
    short = [needle for needle in _needles() if len(needle) < 3]
    return (
        short,
        needles,
        np.concatenate(each),
        np.cumsum([0, *(len(part) for part in each[:-1])]),
    )


def _trigrams(data: bytes) -> Any:
    """A number below 2^16 for each three bytes in a row; some trigrams share one."""
    import numpy as np

    part = np.frombuffer(data, np.uint8).astype(np.uint16)
    return part[:-2] * np.uint16(2551) + part[1:-1] * np.uint16(313) + part[2:]


# Compiled when first used, as the shapes are: most commands see no such key.
_SECRET_KEY = rf"(?:(?P<word>{_WORD})|(?P<cookie>(?i:cookie2?))|(?P<auth>^auth)|{_NAME})$"


def names_secret(key: str, value: str) -> bool:
    """Whether a key of a JSON object says that the text beside it is secret, and it may be.

    >>> names_secret("db_password", "hunter22"), names_secret("nextPageToken", "a1b2c3d4e5")
    (True, False)
    """
    if not 6 <= len(value) <= 4_000 or (named := re.search(_SECRET_KEY, key)) is None:
        return False
    if named["cookie"]:
        return "=" in value
    if named["auth"]:
        return re.fullmatch(r"[A-Za-z0-9+/]{12,}=*", value) is not None
    if re.fullmatch(_PLACEHOLDER, value) is not None or re.fullmatch(rf"{_VALUE}+", value) is None:
        return False
    return named["word"] is not None or re.match(_MIXED, value) is not None


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
        start + match.start()
        for shape in shapes_near(near)
        for match in shape.matches(near)
        if start + match.start() < limit < start + match.end()
    ]
    return f"{text[: min(begins)]}{MARK}" if begins else text[:limit]


def has_certain_shape(text: str) -> bool:
    """Whether a text holds what is surely a key.

    >>> has_certain_shape("use ghp_0123456789abcdefghij01"), has_certain_shape("use my key")
    (True, False)
    """
    return any(
        shape.certain and any(True for _ in shape.matches(text)) for shape in shapes_near(text)
    )


def clean_text(text: str, among: Sequence[SecretPattern] | None = None) -> str:
    """A text without what has the shape of a key; `among` are the only shapes it may have."""
    near = shapes_near(text) if among is None else [part for part in among if part.may_be_in(text)]
    for shape in near:
        text = shape.masked(text)
    return text


def clean_errors(errors: Iterable[str | None]) -> list[str | None]:
    """Texts of errors without keys; those of a log are few, and repeated.

    >>> clean_errors(["no such key: sk-ant-api03-0123456789abcdef", None])
    ['no such key: [redacted]', None]
    """
    errors = list(errors)
    cleaned = {error: clean_text(error) for error in errors if isinstance(error, str)}
    return [cleaned[error] if isinstance(error, str) else error for error in errors]


def clean_strings(text: str, clean: Callable[[str], str]) -> str:
    """JSON text in which each string was cleaned by itself: escapes hide where a key begins."""
    import msgspec

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, dict):
            return {
                clean(key): MARK
                if isinstance(inner, str) and names_secret(key, inner)
                else cleaned(inner)
                for key, inner in value.items()
            }
        return list(map(cleaned, value)) if isinstance(value, list) else value

    return msgspec.json.encode(cleaned(msgspec.json.decode(text))).decode()


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
