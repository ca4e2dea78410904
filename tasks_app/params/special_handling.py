"""The words among a job's special handling, as PanDA writes them: which of them a task gives to its jobs. Pure."""

from __future__ import annotations

from typing import Final

from tasks_app.params.splitrule import SplitRule

SCOUT: Final = "sj"
DEBUG: Final = "debug"
"""Its pilot reports each minute, with the end of what the payload printed."""
SECRETS: Final = "us"
"""It gets the secrets of its user."""
UNWATCHED: Final = "lc"
"""Its pilot does not end it for writing nothing for a long time."""
AS_WRITTEN: Final = "nc"
"""Its pilot adds no set-up of its own to the command line."""

OPTIONAL: Final = "an"
"""It may end well without some of its outputs: those of items with `allowNoOutput`."""


def has(words: str | None, word: str) -> bool:
    return word in (words or "").split(",")


def of_task(rule: SplitRule, *, scouting: bool, optional: bool = False) -> str:
    """What a new job of a task is marked with."""
    wanted = (
        (scouting, SCOUT),
        (rule.flag("DM"), DEBUG),
        (rule.flag("ST"), SECRETS),
        (rule.flag("NC"), AS_WRITTEN),
        (rule.flag("LC"), UNWATCHED),
        (optional, OPTIONAL),
    )
    return ",".join(word for wished, word in wanted if wished)
