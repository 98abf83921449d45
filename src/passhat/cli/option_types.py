"""Values of options: lists of k, shares, rounds."""

from __future__ import annotations

from typing import Any

import click


class WholeNumber(click.IntRange):
    """A whole number within a range; anything else gets a sentence about numbers, not ranges."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a whole number such as {self._example}", param, ctx)
        return super().convert(value, param, ctx)

    @property
    def _example(self) -> str:
        return str(max(20, int(self.min or 0)))


class KList(click.ParamType[tuple[int, ...]]):
    """`1,2,4`: whole numbers of attempts."""

    name = "K,K,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            ks = tuple(sorted({int(part) for part in value.split(",")}))
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 1,2,4", param, ctx)
        if ks[0] < 1:
            self.fail(f"k must be at least 1, got {ks[0]}", param, ctx)
        return ks


class Share(click.ParamType[float]):
    """A number strictly between 0 and 1, such as 0.95, or a percentage such as 95%."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a number such as 0.95", param, ctx)
        if not 0 < number < 1:
            self.fail(f"must lie strictly between 0 and 1, got {value}", param, ctx)
        return number


class RoundNumbers(click.ParamType[tuple[int, ...]]):
    """`4` or `2,4`: rounds of a suite, counted from 1."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            rounds = tuple(sorted({int(part) for part in value.split(",")}))
        except ValueError:
            self.fail(f"{value!r} is not a list of rounds such as 4 or 2,4", param, ctx)
        if rounds[0] < 1:
            self.fail(f"rounds are counted from 1, got {rounds[0]}", param, ctx)
        return rounds
