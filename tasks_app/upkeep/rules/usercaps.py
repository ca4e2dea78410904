"""How many jobs, cores and bytes one user or working group may have at a time. Pure.

A user near a cap gets no new jobs: their tasks are throttled for two hours, and again while they stay near it. A user
at a cap also has the queued jobs held back, so that slots go to others (the JEDI document; numbers of lifecycle 6.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from brokerage_app.policy.userthrottle import QUEUED_TO_RUNNING, Caps
from jedisite.vocabulary.words import plural, thousands

NEAR: Final = 0.95
"""Part of the cap from which a user's tasks are throttled; other numbers must exceed the cap itself."""
KEPT: Final = 0.85
"""Part of the cap below which throttled tasks go on."""
LET_GO: Final = 0.9
"""Part of the cap below which held jobs are queued again."""

Kind = Literal["jobs", "prestaging", "transfer"]
KINDS: Final[tuple[Kind, ...]] = ("jobs", "prestaging", "transfer")


@dataclass(frozen=True, slots=True)
class UserLoad:
    """The jobs of one user, or of one working group with `group`."""

    running: int
    queued: int
    cores: int
    group: bool = False


def over(usage: UserLoad, caps: Caps) -> str | None:
    """Why tasks are to be throttled, as a sentence; None when they are not."""
    near = 1.0 if usage.group else NEAR
    return _beyond(usage, caps, near, near, 1.0)


def still_over(usage: UserLoad, caps: Caps) -> str | None:
    """Why throttled tasks stay so; None when they may go on."""
    return _beyond(usage, caps, KEPT, KEPT, KEPT)


def _beyond(usage: UserLoad, caps: Caps, running: float, queued: float, cores: float) -> str | None:
    if caps.jobs is not None and usage.running > running * caps.jobs:
        return f"{plural(usage.running, 'job is', 'jobs are')} running, the cap is {_cap(caps.jobs)}"
    if caps.jobs is not None and usage.queued > QUEUED_TO_RUNNING * queued * caps.jobs:
        return f"{plural(usage.queued, 'job is', 'jobs are')} queued, the cap is {_cap(QUEUED_TO_RUNNING * caps.jobs)}"
    if caps.cores is not None and usage.cores > cores * caps.cores:
        return f"{plural(usage.cores, 'core is', 'cores are')} in use, the cap is {_cap(caps.cores)}"
    return None


def _cap(number: float) -> str:
    return thousands(int(number)) if number == int(number) else f"{number:g}"


def queue_step(usage: UserLoad, caps: Caps) -> Literal["hold", "let_go"] | None:
    """What to do with the queued jobs: hold them back at a cap, queue them again well below it."""
    pairs = [(usage.running, caps.jobs), (usage.cores, caps.cores)]
    if any(cap is not None and used >= cap for used, cap in pairs):
        return "hold"
    if all(cap is None or used < LET_GO * cap for used, cap in pairs):
        return "let_go"
    return None


def dialog(kind: Kind, why: str, minutes: float) -> str:
    """What a task says that is throttled for its user; `kind_of` reads it back."""
    return f"no jobs are made for {minutes:g} minutes: {why} (type={kind})"


def kind_of(text: str | None) -> Kind | None:
    """The kind in a dialog; None when a task is throttled for another reason."""
    return next((kind for kind in KINDS if f"type={kind}" in (text or "")), None)
