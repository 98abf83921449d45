"""AWS Signature Version 4: how a request to Bedrock says who sends it.

The algorithm is that of "Create a signed AWS API request" in AWS's IAM User Guide.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from passhat.fast_dataclass import dataclass

ALGORITHM = "AWS4-HMAC-SHA256"
UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AwsCredentials:
    """An access key, its secret, and the session token of temporary ones."""

    access_key: str
    secret_key: str
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSigner:
    """Signs requests to one service in one region."""

    credentials: AwsCredentials
    region: str
    service: str = "bedrock"
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __call__(self, url: str, body: bytes) -> dict[str, str]:
        """The headers of a POST request with a JSON body."""
        sent = {"host": urlsplit(url).netloc, "content-type": "application/json"}
        signed = self.sign("POST", url, sent, body)
        return {name: value for name, value in signed.items() if name not in sent}

    def sign(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """The headers of a request, with the date, the token and the signature added."""
        moment = self.now().strftime("%Y%m%dT%H%M%SZ")
        whole = {**{k.lower(): v.strip() for k, v in headers.items()}, "x-amz-date": moment}
        if self.credentials.token:
            whole["x-amz-security-token"] = self.credentials.token
        names = ";".join(sorted(whole))
        scope = f"{moment[:8]}/{self.region}/{self.service}/aws4_request"
        canonical = _canonical_request(method, url, whole, body)
        to_sign = "\n".join([ALGORITHM, moment, scope, _digest(canonical.encode())])
        signature = hmac.new(self._key(moment[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
        who = f"Credential={self.credentials.access_key}/{scope}"
        whole["authorization"] = f"{ALGORITHM} {who}, SignedHeaders={names}, Signature={signature}"
        return whole

    def _key(self, day: str) -> bytes:
        """The secret key, derived for one day, region and service."""
        key = f"AWS4{self.credentials.secret_key}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def _canonical_request(method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    parts = urlsplit(url)
    given = [
        (quote(name, safe=UNRESERVED), quote(value, safe=UNRESERVED))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    query = "&".join(f"{name}={value}" for name, value in sorted(given))
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers)]
    # All services but S3 encode the path a second time.
    path = quote(parts.path or "/", safe=f"/{UNRESERVED}")
    return "\n".join([method, path, query, *lines, "", ";".join(sorted(headers)), _digest(body)])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
