"""The change of a system against a baseline, in the few words that a page has room for."""

from __future__ import annotations

from passhat.analysis.comparing.comparison import Comparison
from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.reporters.blocks import Chip
from passhat.reporters.numbers import interval_of, percent, signed_points
from passhat.stats.estimate import THIS_SUITE, Unavailable

ANSWER_CHIPS = {"better": Chip("Better", "good"), "worse": Chip("Worse", "bad")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTile:
    """What changed: against what, by how much, whether that is more than noise; how to see more."""

    title: str
    size: str = ""
    chip: Chip | None = None
    text: str = ""
    command: str = ""
    link: str = ""


def change_tile(comparison: Comparison, *, tagged: bool, day: str, link: str = "") -> ChangeTile:
    """The difference of the headline, first minus second, with its interval for this suite.

    The second is the run that is `tagged` as the baseline, else the one before; it began on `day`.
    """
    title = f"{'Against baseline' if tagged else 'Against the run before'}, {day}"
    lead = comparison.headline
    if lead.value is None or lead.first is None or lead.second is None:
        return ChangeTile(title=title, text="The two share too few runs to compare.", link=link)
    name = "mean score" if lead.name == "mean_score" else lead.name
    moved = f"{name} went from {percent(lead.second)} to {percent(lead.first)}"
    between = ""
    if (bounds := interval_of(lead.this_suite)) is not None:
        low, high = signed_points(bounds.low), signed_points(bounds.high)
        between = f", between {low} and {high} points on this suite"
    return ChangeTile(
        title=title,
        size=f"{signed_points(lead.value, digits=1)} points",
        chip=ANSWER_CHIPS.get(lead.answer(THIS_SUITE) or "", Chip("Within noise", "none")),
        text=f"{moved}{_over(comparison)}{between}.",
        link=link,
    )


def _over(comparison: Comparison) -> str:
    """The tasks that the change was measured over, where a run has others as well."""
    lead = comparison.headline
    number = lead.this_suite or lead.tasks_like_these
    used = None if isinstance(number, Unavailable) else number.tasks
    alone = len(comparison.only_first) + len(comparison.only_second)
    if used is None or used == len(comparison.tasks) + alone:
        return ""
    k = int(lead.name.partition("^")[2] or 1)
    return f" over the {plural(used, 'task')} that both ran{f' {k} times' if k > 1 else ''}"
