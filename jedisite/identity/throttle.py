"""Delays after failed logins, longer each time; a user who logs in from the usual address is not delayed.

Attempts are counted before they are judged, so that many at once are no way round, and taken back when they succeed. They
are counted for an account from one address, for an address whatever the account, and for an account from wherever: the
last makes its owner wait a minute at most, and not at all at an address where the owner has been let in before. An
attempt that is turned away here is not looked at and not counted.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from jedisite.models import LoginAttempts

REMEMBERED: Final = timedelta(hours=6)
"""Failures count that long after the last of them."""
AT_HOME: Final = timedelta(days=90)
"""An address from which somebody was let in counts as theirs for so long."""


class TooManyAttempts(Exception):
    """The attempt was not checked; `wait_s` is the number of seconds until the next attempt is."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"There were too many failed attempts; try again in {wait_s} s.")
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Rule:
    """`free` failures cost nothing; from then on the wait doubles from one second up to `most_s`."""

    name: str
    free: int
    most_s: int

    def wait_s(self, failures: int) -> int:
        """Seconds to wait after so many failures."""
        if failures <= self.free:
            return 0
        return min(self.most_s, 1 << min(failures - self.free - 1, 30))

    def key(self, *subject: str) -> str:
        """Names of accounts and addresses are not kept: what somebody types as a name may be a password."""
        return hashlib.sha256("\x00".join([settings.SECRET_KEY, self.name, *subject]).encode()).hexdigest()


ACCOUNT_HERE: Final = Rule("account from an address", 5, 900)
ADDRESS: Final = Rule("address", 30, 900)
ACCOUNT: Final = Rule("account", 20, 60)
CODE: Final = Rule("code of a device", 10, 900)
NEW_DEVICE: Final = Rule("new device", 60, 10)
_HOME: Final = Rule("home", 0, 0)


def address_of(request: HttpRequest) -> str:
    """Where a request comes from; behind a trusted proxy, what that says of it. Of IPv6 the network; "" when unknown."""
    address = _address(request.META.get("REMOTE_ADDR", ""))
    for said in reversed(request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        if address is None or not any(address in network for network in settings.JEDI_PROXIES):
            break
        found = _address(said.strip())
        if found is None:
            break  # what stands further left is the caller's own
        address = found
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address) if address else ""


def begin_login(account: str, address: str, now: datetime | None = None) -> None:
    """Count an attempt to log in. Raises TooManyAttempts."""
    account = account.strip().lower()
    keys = {ACCOUNT_HERE.key(account, address): ACCOUNT_HERE, ADDRESS.key(address): ADDRESS}
    if not _is_home(account, address, now or timezone.now()):
        keys[ACCOUNT.key(account)] = ACCOUNT
    _count(keys, now or timezone.now())


def succeeded(account: str, address: str, now: datetime | None = None) -> None:
    """Take the attempt back: it was the owner's."""
    account, moment = account.strip().lower(), now or timezone.now()
    LoginAttempts.objects.filter(key=ACCOUNT_HERE.key(account, address)).delete()
    _take_back(ADDRESS.key(address), ACCOUNT.key(account), now=moment)
    LoginAttempts.objects.update_or_create(
        key=_HOME.key(account, address), defaults={"failures": 0, "free_at": moment, "expires": moment + AT_HOME}
    )


def attempt(rule: Rule, subject: str, now: datetime | None = None) -> None:
    """Count an attempt of some other kind. Raises TooManyAttempts."""
    _count({rule.key(subject): rule}, now or timezone.now())


def check(rule: Rule, subject: str, now: datetime | None = None) -> None:
    """Count nothing, but raise TooManyAttempts as `attempt` would: for codes that are too long to be guessed."""
    moment = now or timezone.now()
    row = LoginAttempts.objects.filter(key=rule.key(subject), expires__gt=moment, free_at__gt=moment).first()
    if row is not None:
        raise TooManyAttempts(math.ceil((row.free_at - moment).total_seconds()))


def forget_old(now: datetime | None = None) -> int:
    """Remove what counts no more. Returns how many rows."""
    return LoginAttempts.objects.filter(expires__lt=now or timezone.now()).delete()[0]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_home(account: str, address: str, now: datetime) -> bool:
    return LoginAttempts.objects.filter(key=_HOME.key(account, address), expires__gt=now).exists()


def _count(keys: dict[str, Rule], now: datetime) -> None:
    # What is there can be locked: of first attempts at once, too, each counts.
    LoginAttempts.objects.bulk_create(
        [LoginAttempts(key=key, failures=0, free_at=now, expires=now + REMEMBERED) for key in sorted(keys)],
        ignore_conflicts=True,
    )
    with transaction.atomic():
        rows = LoginAttempts.objects.select_for_update().order_by("key").filter(key__in=list(keys))
        known = {row.key: row for row in rows if row.expires > now}
        blocked = max((row.free_at for row in known.values()), default=now)
        if blocked <= now:
            failures = {key: known[key].failures + 1 if key in known else 1 for key in keys}
            LoginAttempts.objects.bulk_create(
                [
                    LoginAttempts(
                        key=key,
                        failures=count,
                        free_at=now + timedelta(seconds=keys[key].wait_s(count)),
                        expires=now + REMEMBERED,
                    )
                    for key, count in sorted(failures.items())
                ],
                update_conflicts=True,
                unique_fields=["key"],
                update_fields=["failures", "free_at", "expires"],
            )
            return
    raise TooManyAttempts(math.ceil((blocked - now).total_seconds()))


def _take_back(*keys: str, now: datetime) -> None:
    with transaction.atomic():
        # In the order of `_count`: two that hold each other's row would end in an error.
        rows = LoginAttempts.objects.select_for_update().order_by("key").filter(key__in=keys, failures__gt=0)
        LoginAttempts.objects.filter(key__in=[row.key for row in rows]).update(failures=F("failures") - 1, free_at=now)
