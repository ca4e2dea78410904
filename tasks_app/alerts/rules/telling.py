"""Which problems a rule tells, whether it may speak now, and what it says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final
from zoneinfo import ZoneInfo

from jedisite.vocabulary.words import plural, shortened

MOST_SAID: Final = 20
"""So many problems are told one by one in an alert; of the rest it tells the number."""
LONGEST_SUBJECT: Final = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """An item of attention. `path` is the page that says more, `first_seen` when it was found first."""

    key: str
    kind: str
    tone: str
    sentence: str
    path: str
    owner: str
    since: datetime
    first_seen: datetime


@dataclass(frozen=True, slots=True)
class Over:
    """A problem that was told, and is over."""

    sentence: str
    path: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What a rule wants. Empty `kinds` and `about` stand for all; `quiet` are the ends of the quiet hours in `zone`."""

    kinds: frozenset[str]
    about: tuple[str, ...]
    only_bad: bool
    after: timedelta
    every: timedelta
    quiet: tuple[time, time] | None
    zone: str

    def wants(self, problem: Problem) -> bool:
        """Whether problems of this kind are told, however long they have lasted."""
        if self.kinds and problem.kind not in self.kinds:
            return False
        if self.only_bad and problem.tone != "bad":
            return False
        return not self.about or any(fnmatchcase(problem.owner, one) for one in self.about)

    def tells(self, problem: Problem, now: datetime) -> bool:
        return self.wants(problem) and problem.first_seen + self.after <= now

    def may_speak(self, now: datetime, last: datetime | None) -> bool:
        """Whether it is long enough after its last alert, and not within its quiet hours."""
        return (last is None or last + self.every <= now) and not self.is_quiet(now)

    def is_quiet(self, now: datetime) -> bool:
        """Whether it is quiet at a moment; quiet hours may go over midnight, and do not contain their end."""
        if self.quiet is None:
            return False
        start, end = self.quiet
        clock = now.astimezone(ZoneInfo(self.zone)).time().replace(tzinfo=None)
        return start <= clock < end if start <= end else clock >= start or clock < end


def subject(problems: Sequence[Problem], over: Sequence[Over]) -> str:
    """The alert in one line: the problem itself where there is one only.

    >>> subject([], [Over("SITE_A fails.", "/")])
    'Over: SITE_A fails.'
    """
    if len(problems) + len(over) == 1:
        said = problems[0].sentence if problems else f"Over: {over[0].sentence}"
        return shortened(said, LONGEST_SUBJECT)
    parts = [plural(len(problems), "new problem")] if problems else []
    return ", ".join(parts + ([f"{len(over)} over"] if over else []))


def text(problems: Sequence[Problem], over: Sequence[Over], base: str, *, rule: str) -> str:
    """The alert as plain text: problems, those of `MOST_SAID` with the addresses of their pages, and what is over."""
    lines = [
        f"* {one.sentence} Since {one.since:%Y-%m-%d %H:%M} UTC.{_page(base, one.path)}" for one in problems[:MOST_SAID]
    ]
    if len(problems) > MOST_SAID:
        lines.append(f"* and {plural(len(problems) - MOST_SAID, 'more problem')}")
    if over:
        lines += ["", "Over:"] if lines else ["Over:"]
        lines += [f"* {one.sentence}{_page(base, one.path)}" for one in over[:MOST_SAID]]
        if len(over) > MOST_SAID:
            lines.append(f"* and {len(over) - MOST_SAID} more")
    return "\n".join([*lines, "", f"The alert rule {rule} tells this.{_page(base, '/attention/')}"])


def for_chat(said: str) -> str:
    """A text in which names that users chose call nobody in a chat.

    >>> for_chat("task <!channel> of @all") == "task <\u200b!channel> of @\u200ball"
    True
    """
    return said.replace("<!", "<\u200b!").replace("<@", "<\u200b@").replace("@", "@\u200b")


def _page(base: str, path: str) -> str:
    return f" {base}{path}" if base else ""


def payload(
    problems: Sequence[Problem], over: Sequence[Over], base: str, *, rule: str, now: datetime
) -> dict[str, Any]:
    """The alert as JSON."""
    return {
        "rule": rule,
        "at": now.isoformat(),
        "text": text(problems, over, base, rule=rule),
        "problems": [
            {
                "key": one.key,
                "kind": one.kind,
                "tone": one.tone,
                "sentence": one.sentence,
                "since": one.since.isoformat(),
                "about": one.owner,
                "page": f"{base}{one.path}",
            }
            for one in problems
        ],
        "over": [{"sentence": one.sentence, "page": f"{base}{one.path}"} for one in over],
    }
