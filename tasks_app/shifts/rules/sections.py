"""The sections of a shift's page and report: what broke, what was done, what is open, what to watch. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from jedisite.vocabulary.words import on_one_line, plural, shortened
from tasks_app.attention.rules.findings import address
from tasks_app.attention.rules.site_rules import BASE_ENDED, is_spike
from tasks_app.domain import words
from tasks_app.domain.fingerprints import normalised
from tasks_app.shifts.rules.shift_facts import (
    DeedFact,
    ErrorFact,
    ItemFact,
    RateFact,
    ShiftFacts,
    StatusFact,
    StoppedFact,
    WaitingFact,
)

MOST_LINES: Final = 12
LONGEST_LINE: Final = 240
SHOWN_TASKS: Final = 5
WATCHED: Final = timedelta(hours=24)
"""What ends or returns within this time is to be watched."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a section: one fact with the page that says more.

    tone    bad, warn or ""
    at      when it happened last; None: it is a state
    note    who or why, after the text
    links   further pages: (label, path)
    """

    text: str
    path: str
    tone: str = ""
    at: datetime | None = None
    note: str = ""
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Lines under a title, the first MOST_LINES of `total`; `path` lists all, `empty` says that there are none."""

    name: str
    title: str
    lines: tuple[Line, ...]
    total: int
    path: str
    empty: str

    @property
    def more(self) -> int:
        return self.total - len(self.lines)


def sections(facts: ShiftFacts) -> list[Section]:
    """All sections in the order in which a shifter reads them."""
    window = _window(facts)
    errors = [_error(error, facts, window) for error in facts.errors]
    sites = [_site(rate, window) for rate in worse(facts.rates)]
    stopped, deeds = _stopped(facts.stopped), [_deed(deed, window) for deed in facts.deeds]
    watch = [*_ends(facts), *_returns(facts), *(_waits(task, facts.now) for task in facts.waiting)]
    awake = [item for item in facts.items if not _snoozed(item, facts.now)]
    at = f"?{urlencode(window)}"
    return [
        _section("open", "Open now", [_open(item, facts.now) for item in awake], "/attention/", "Nothing is open."),
        _section(
            "watch", "To watch", watch, "/attention/?state=snoozed", "Nothing ends or returns in the next 24 hours."
        ),
        _section("errors", "What failed", errors, f"/errors/{at}", "No job failed.", facts.kinds),
        _section("sites", "Sites that fail more than before", sites, f"/sites/{at}", "No site fails more than before."),
        _section("tasks", "Tasks that stopped", stopped, "/tasks/", "No task stopped."),
        _section("deeds", "What was done", deeds, f"/audit/{at}", "No action was recorded."),
        _section(
            "queues",
            "Changed queues",
            [_moved(move) for move in facts.moves],
            f"/sites/{at}",
            "No queue changed its status.",
        ),
    ]


def headline(facts: ShiftFacts) -> str:
    """The window in a sentence or two."""
    stopped, people = len(facts.stopped), len({deed.actor for deed in facts.deeds})
    done = sum(deed.times for deed in facts.deeds)
    new = f"with {plural(facts.new_kinds, 'new kind')} of error" if facts.new_kinds else "with no new kind of error"
    broke = [
        f"{plural(facts.failures, 'job')} failed {new}" if facts.failures else "No job failed",
        f"{plural(stopped, 'task')} stopped" if stopped else "",
        f"{plural(len(worse(facts.rates)), 'site fails', 'sites fail')} more than before" if worse(facts.rates) else "",
        f"{plural(done, 'action')} by {plural(people, 'account')}" if done else "",
    ]
    awake = [item for item in facts.items if not _snoozed(item, facts.now)]
    taken = sum(1 for item in awake if item.acknowledged_by)
    now = f"{plural(len(awake), 'item needs', 'items need')} attention now"
    now = f"{now}, {taken} acknowledged" if taken else now
    return f"{'; '.join(part for part in broke if part)}. {now if awake else 'Nothing needs attention now'}."


def worse(rates: Iterable[RateFact]) -> list[RateFact]:
    """The sites at which clearly more jobs fail than in the day before, most failures first."""
    found = []
    for rate in rates:
        if is_spike(rate.failed, _percent(rate.finished, rate.failed), usually(rate) or 0.0):
            found.append(rate)
    return sorted(found, key=lambda rate: (-rate.failed, rate.site))


def usually(rate: RateFact) -> float | None:
    """Failed jobs of the day before in percent; None when too few ended to tell."""
    if rate.before_finished + rate.before_failed < BASE_ENDED:
        return None
    return _percent(rate.before_finished, rate.before_failed)


def _percent(finished: int, failed: int) -> float:
    return 100 * failed / (finished + failed) if finished + failed else 0.0


def _window(facts: ShiftFacts) -> dict[str, str]:
    """The parameters of an address that name the window, which addresses have by the minute."""
    return {"since": f"{facts.since:%Y-%m-%dT%H:%M}", "until": f"{facts.until:%Y-%m-%dT%H:%M}"}


def _section(name: str, title: str, lines: list[Line], path: str, empty: str, total: int = 0) -> Section:
    return Section(name, title, tuple(lines[:MOST_LINES]), max(total, len(lines)), path, empty)


def _said(text: str, longest: int = LONGEST_LINE) -> str:
    """What people, pilots or agents wrote, on one line of bounded length and without its full stop."""
    return shortened(on_one_line(text[: 4 * longest].replace("\0", " ")).rstrip("."), longest)


def _error(error: ErrorFact, facts: ShiftFacts, window: dict[str, str]) -> Line:
    new = error.first_seen >= facts.since
    known = error.known_until is not None and error.known_until > facts.now
    lost = f", {words.hours(error.wasted_core_s / 3600)} core hours lost" if error.wasted_core_s >= 360 else ""
    what = " ".join(part for part in (error.key, _said(error.text, 140)) if part)
    notes = [
        f"cause: {error.cause}" if error.cause else "",
        _said(error.spread, 160),
        f"known until {error.known_until:%Y-%m-%d}" if known and error.known_until else "",
        _said(error.ticket, 80),
    ]
    return Line(
        f"{'New: ' if new else ''}{what}: {plural(error.jobs, 'failed job')}{lost}",
        f"{address('errors', error.number)}?{urlencode(window)}",
        "bad" if new and not known else "",
        note=", ".join(note for note in notes if note),
    )


def _site(rate: RateFact, window: dict[str, str]) -> Line:
    usual = usually(rate)
    before = "too few jobs the day before to compare" if usual is None else f"{usual:.0f} % the day before"
    ended = plural(rate.finished + rate.failed, "job")
    return Line(
        f"{rate.site or 'No site'}: {_percent(rate.finished, rate.failed):.0f} % of {ended} failed; {before}",
        f"/errors/?{urlencode({'site': rate.site, **window})}",
        "bad",
    )


def _stopped(tasks: Iterable[StoppedFact]) -> list[Line]:
    """One line for each status and cause, the largest group first."""
    groups: defaultdict[tuple[str, str], list[StoppedFact]] = defaultdict(list)
    for task in tasks:
        groups[task.status, normalised(task.reason)].append(task)
    return [_group(status, some) for (status, _), some in sorted(groups.items(), key=lambda kv: (-len(kv[1]), kv[0]))]


def _group(status: str, tasks: list[StoppedFact]) -> Line:
    latest = max(tasks, key=lambda task: task.at)
    cause = _said(latest.reason, 160) or "no reason given"
    restarted = sum(1 for task in tasks if task.now != status)
    path = address("tasks", latest.task_id)
    tone = "" if status == "aborted" else "warn"
    if len(tasks) == 1:
        note = f"now {latest.now}" if restarted else ""
        return Line(f"Task {latest.task_id} of {_said(latest.user, 60)} {status}: {cause}", path, tone, latest.at, note)
    users = len({task.user for task in tasks})
    text = f"{plural(len(tasks), 'task')} of {plural(users, 'user')} {status}: {cause}"
    note = f"{restarted} moved on since" if restarted else ""
    links = tuple((str(task.task_id), address("tasks", task.task_id)) for task in tasks[:SHOWN_TASKS])
    return Line(text, f"/tasks/?{urlencode({'status': status})}", tone, latest.at, note, links)


def _deed(deed: DeedFact, window: dict[str, str]) -> Line:
    how = (
        f"{deed.kind} {_said(deed.object_id, 64)}"
        if deed.times == 1
        else f"{deed.kind}, {words.count(deed.times)} times"
    )
    query = {"actor": deed.actor, "action": deed.action, "object_type": deed.object_type, **window}
    text = f"{_said(deed.actor, 80)}: {deed.title} ({how})"
    return Line(text, f"/audit/?{urlencode(query)}", "", deed.at, _said(deed.reason, 160))


def _moved(move: StatusFact) -> Line:
    until = f" until {move.until:%Y-%m-%d %H:%M} UTC" if move.until else ""
    text = f"{move.queue}: {move.old} → {move.new}{until}"
    why = ": ".join(part for part in (_said(move.by, 80), _said(move.reason, 160)) if part)
    return Line(text, address("sites", move.queue), "", move.at, why)


def _snoozed(item: ItemFact, now: datetime) -> bool:
    return item.snoozed_until is not None and item.snoozed_until > now


def _open(item: ItemFact, now: datetime) -> Line:
    taken = f"acknowledged by {_said(item.acknowledged_by, 80)}" if item.acknowledged_by else ""
    note = ", ".join(
        part
        for part in (f"open for {words.ago(item.since, now).removesuffix(' ago')}", taken, _said(item.ticket, 80))
        if part
    )
    return Line(_said(item.sentence), item.path, item.tone, note=note)


def _ends(facts: ShiftFacts) -> list[Line]:
    """Statuses of queues with an end that comes soon."""
    return [
        Line(
            f"{status.queue}: {status.new} ends at {status.until:%Y-%m-%d %H:%M} UTC"
            + (f", then {status.after}" if status.after else ""),
            address("sites", status.queue),
            note=": ".join(part for part in (_said(status.by, 80), _said(status.reason, 160)) if part),
        )
        for status in facts.ending
        if status.until is not None
    ]


def _returns(facts: ShiftFacts) -> list[Line]:
    """Snoozed items that return soon."""
    soon = [
        item for item in facts.items if item.snoozed_until and facts.now < item.snoozed_until <= facts.now + WATCHED
    ]
    return [
        Line(f"Snooze ends at {item.snoozed_until:%Y-%m-%d %H:%M} UTC: {_said(item.sentence)}", item.path, "")
        for item in sorted(soon, key=lambda item: item.snoozed_until or facts.now)
    ]


def _waits(task: WaitingFact, now: datetime) -> Line:
    long = words.ago(task.since, now).removesuffix(" ago")
    why = _said(task.reason, 160) or "no reason given"
    text = f"Task {task.task_id} of {_said(task.user, 60)} has been {task.status} for {long}: {why}"
    return Line(text, f"{address('tasks', task.task_id)}why/", "warn")
