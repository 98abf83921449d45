"""What is never shown: values that a suite refers to, and the keys in addresses."""

from __future__ import annotations

from dataclasses import field

from passhat.dataclass import dataclass
from passhat.errors import SuiteError


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
