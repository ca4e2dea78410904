"""The door through which people change the values of global shares outside the admin."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from brokerage_app.models import GlobalShare
from jedisite import audit
from jedisite.vocabulary.words import on_one_line

LARGEST = 1_000_000
LONGEST_REASON = 500


class ShareValueError(ValueError):
    """Values that cannot be set: `field` (the name of a share, or reason) and a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def parse(name: str, text: str) -> int:
    """A value as people type it. Raises ShareValueError."""
    text = text.strip()
    if not text.isascii() or not text.isdecimal() or len(text) > 7 or int(text) > LARGEST:
        raise ShareValueError(name, f"The value of {name} is a whole number from 0 to {LARGEST}, not {text[:20]!r}.")
    return int(text)


@transaction.atomic
def set_values(
    values: Mapping[str, int], *, seen: Mapping[str, int], by: str, reason: str
) -> dict[str, tuple[int, int]]:
    """Store new values of shares and say who did it, in one transaction. Returns (old, new) of those that changed.

    `seen`: the values that the person saw. Raises ShareValueError, and then stores nothing, when one of these is not the
    stored one any more, when a share is not there, when nothing changes, or without a reason.
    """
    reason = on_one_line(reason)
    if not reason:
        raise ShareValueError("reason", "Give a reason: all who look at the queue see it.")
    if len(reason) > LONGEST_REASON or "\x00" in reason:
        raise ShareValueError("reason", f"A reason has at most {LONGEST_REASON} characters and no U+0000.")
    rows = {
        row.name: row for row in GlobalShare.objects.select_for_update().filter(name__in=list(values)).order_by("name")
    }
    changed: dict[str, tuple[int, int]] = {}
    for name, value in sorted(values.items()):
        row = rows.get(name)
        if row is None:
            raise ShareValueError(name, f"There is no share {name[:32]!r}.")
        if seen.get(name, row.value) != row.value:
            raise ShareValueError(
                name, f"{name} was set to {row.value} in the meantime. Please check the preview again."
            )
        if not 0 <= value <= LARGEST:
            raise ShareValueError(name, f"The value of {name} is a whole number from 0 to {LARGEST}, not {value}.")
        if value != row.value:
            changed[name] = (row.value, value)
            row.value = value
    if not changed:
        raise ShareValueError("", "No value was changed: all are the same as before.")
    GlobalShare.objects.bulk_update([rows[name] for name in changed], ["value"])
    for name, (old, new) in changed.items():
        details = {"changed": {"value": [old, new]}}
        audit.record(by, "share.value", "globalshare", name, reason=reason, details=details)
    return changed
