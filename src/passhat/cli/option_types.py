"""What the values of options must be, and the errors for values that are something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from passhat.messages import closest


class WholeNumber(click.IntRange):
    """A whole number within a range; anything else gets a sentence about numbers, not ranges."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except (TypeError, ValueError):
            example = max(20, int(self.min or 0))
            self.fail(f"{value!r} is not a whole number such as {example}", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be {_range_words(self)}, got {value}", param, ctx)


class NumberList(click.ParamType[tuple[int, ...]]):
    """`1,2,4`: whole numbers from 1 on."""

    def __init__(self, letter: str, example: str, too_small: str) -> None:
        self.name = f"{letter},{letter},..."
        self._example = example
        self._too_small = too_small

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            numbers = tuple(sorted({int(part) for part in value.split(",")}))
        except ValueError:
            self.fail(f"{value!r} is not a list of {self._example}", param, ctx)
        if numbers[0] < 1:
            self.fail(f"{self._too_small}, got {numbers[0]}", param, ctx)
        return numbers


K_LIST = NumberList("K", "whole numbers such as 1,2,4", "k must be at least 1")
ROUND_NUMBERS = NumberList("N", "rounds such as 4 or 2,4", "rounds are counted from 1")


class Number(click.FloatRange):
    """A number within a range."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be {_range_words(self)}, got {value}", param, ctx)


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic in some versions only
    """One of many words; the error for another names the one that was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = closest(str(value), map(str, self.choices))
            hint = f" Did you mean {near!r}?" if near else ""
            self.fail(f"{error.message}{hint}", param, ctx)


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
            percent = f"; for {text} percent write {text}%" if 1 < number < 100 else ""
            self.fail(f"must lie strictly between 0 and 1, got {value}{percent}", param, ctx)
        return number


class StoreType(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """A path, or a postgresql:// address as a string."""

    name = "store"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "FILE|URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        from passhat.history.database import is_postgres

        if is_postgres(value):
            return str(value)
        if Path(value).is_dir():
            self.fail(
                f"{str(value)!r} is a folder; a store is a file such as .passhat/history.db",
                param,
                ctx,
            )
        return Path(value)


def _range_words(range_: click.IntRange | click.FloatRange) -> str:
    """The range of a number in words.

    >>> _range_words(click.IntRange(0, 65535)), _range_words(click.FloatRange(0, min_open=True))
    ('from 0 to 65535', 'above 0')
    """
    if range_.max is not None:
        return f"from {range_.min} to {range_.max}"
    return f"above {range_.min}" if range_.min_open else f"at least {range_.min}"
