"""Rules on the state of a site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from brokerage_app.cases.case import Case, GridCase
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import BROKEROFF, ONLINE, PAUSED, STANDBY, TEST, SiteView
from brokerage_app.vocabulary.skip import Skip

HOUR_S: Final = 3600
INACTIVE_AFTER_S: Final = 2 * HOUR_S
LONGEST_REASON: Final = 200
ALLOW_NO_PILOT: Final = "allow_no_pilot"


def online(case: Case, site: SiteView) -> Skip | None:
    """Only online sites; test sites for label test; work that is bound to the site also where it drains or stands by."""
    if case.needs.is_bound_to(site):
        return open_to_bound(case, site)
    return _online(case, site)


def open_to_bound(case: Case, site: SiteView) -> Skip | None:
    """Work that is bound goes to sites that drain or stand by, too; not where its jobs would only be closed or wait.

    Queued jobs at sites that are offline or in test are closed, and tried again until their input has no attempt left.
    """
    return None if site.status in (BROKEROFF, STANDBY) else _online(case, site)


def _online(case: Case, site: SiteView) -> Skip | None:
    if site.status == ONLINE:
        return None
    needs = case.needs
    if site.status == TEST:
        if needs.label == TEST:
            return None
        said = _told(site, ("the site takes only jobs with the label test",), (", the task has {}", needs.label))
        return Skip(site.name, codes.SITE_TEST_ONLY, *said)
    code = _CODES.get(site.status, codes.SITE_OFFLINE)
    return Skip(site.name, code, *_told(site, ("the site's status is {}", site.status)))


_CODES: Final[Mapping[str, str]] = {
    BROKEROFF: codes.SITE_BROKEROFF,
    PAUSED: codes.SITE_PAUSED,
    STANDBY: codes.SITE_STANDBY,
}


def _told(site: SiteView, first: tuple[str, ...], *others: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The sentence on a queue that is not online: until when, and the reason given for the status.

    Each part is a text and its values; the end of the status stands behind the first.
    """
    until, reason = site.status_until, site.status_reason
    shown = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1].rstrip()}…"
    parts = [
        first,
        *([(" until {} UTC", f"{until:%Y-%m-%d %H:%M}")] if until else []),
        *others,
        *([(" (“{}”)", shown.rstrip("."))] if reason else []),
    ]
    return "".join(text for text, *_ in parts), tuple(value for _, *values in parts for value in values)


def online_or_standby(case: GridCase, site: SiteView) -> Skip | None:
    """As `online`, and queues that stand by for more work; bound are also parts and lists of queues."""
    if case.is_bound:
        return open_to_bound(case, site)
    return None if site.status == STANDBY else _online(case, site)


def active(case: GridCase, site: SiteView) -> Skip | None:
    """A queue that has started nothing for two hours while jobs wait there gets no work that is urgent."""
    since = site.last_start_s
    if since is None or since <= INACTIVE_AFTER_S:
        return None
    counts = case.totals(site)
    waiting = counts.activated + counts.starting
    if not waiting:
        return None
    return Skip(
        site.name,
        codes.INACTIVE,
        "no job has started there for {1:.1f} h, the limit is {0:.0f} h; {2:job waits|jobs wait}",
        (INACTIVE_AFTER_S / HOUR_S, since / HOUR_S, waiting),
    )


def has_pilots(case: GridCase, site: SiteView) -> Skip | None:
    """Pilots have called in the last three hours, or the queue is told how many slots it has."""
    if site.pilots_3h != 0 or site.slots_for(case.share) is not None:
        return None
    return Skip(site.name, codes.NO_PILOTS, "needs {} pilot request in 3 h, there were {}", (1, 0))


def pilots_ask(case: Case, site: SiteView) -> Skip | None:
    """Pilots ask for jobs where some have waited for minutes. For choosing among queues that would all do."""
    if site.silent_s is None or ALLOW_NO_PILOT in site.switches:
        return None
    says = "for {:.0f} min, no pilot has asked for the jobs that wait there"
    return Skip(site.name, codes.PILOTS_STOPPED, says, (site.silent_s / 60,))


def pilots_come(case: Case, site: SiteView) -> Skip | None:
    """Pilots have asked for jobs in the last minutes, whether any wait. For choosing among queues that would all do.

    Of a queue whose pilots have ended, jobs tell only after minutes, and each that comes after them waits as long.
    """
    if site.quiet_s is None or ALLOW_NO_PILOT in site.switches:
        return None
    if site.quiet_s < 2 * HOUR_S:
        return Skip(
            site.name, codes.PILOTS_STOPPED, "no pilot has asked for a job there for {:.0f} min", (site.quiet_s / 60,)
        )
    return Skip(
        site.name, codes.PILOTS_STOPPED, "no pilot has asked for a job there for {:.0f} h", (site.quiet_s / HOUR_S,)
    )


def has_pilots_for_queued(case: Case, site: SiteView) -> Skip | None:
    """Pilots have called in the last three hours; asked of queues where jobs wait, since pilots may come only for jobs."""
    if site.pilots_3h != 0 or not site.queued or ALLOW_NO_PILOT in site.switches or "test" in case.needs.label:
        return None
    return Skip(
        site.name,
        codes.NO_PILOTS,
        "needs {} pilot request in 3 h, there were {}; {:job waits|jobs wait}",
        (1, 0, site.queued),
    )
