"""Why files do not arrive: what keeps their copies waiting, and how that is said. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from jedisite.vocabulary.words import plural
from tasks_app.domain import job_refusal_codes as codes
from tasks_app.domain.words import ago, size
from tasks_app.transfers.rules.pace import MB

NO_ROOM: Final = "no room at "
IS_FULL: Final = "the destination is full"
AWAY: Final = "the folder of the storage %s is away"
NO_REPLICA: Final = "no replica can be read"
"""How the errors of copies begin that are told from others; % stands for a name."""
NO_DISK: Final = "no storage on disk takes files"
NEXT_TURN: Final = "the mover continues in its next turn"
SHOWN: Final = 3
_BY_ITSELF: Final = ""
_ORDER: Final = (
    codes.COPY_WITHOUT_DISK,
    codes.COPY_WITHOUT_SOURCE,
    codes.COPY_STORAGE_GONE,
    codes.COPY_STORAGE_OFF,
    codes.COPY_STORAGE_CLOSED,
    codes.COPY_LINK_OFF,
    codes.COPY_STORAGE_AWAY,
    codes.COPY_NO_ROOM,
    codes.COPY_FAILS,
    codes.COPY_TAPE_BUSY,
    codes.COPY_LINK_SLOW,
    codes.COPY_LINK_BUSY,
    codes.COPY_MOVER_BUSY,
    _BY_ITSELF,
)
"""What is said first: what stays until somebody mends it, then what passes."""


@dataclass(frozen=True, slots=True)
class Load:
    """A link: `wanted` files are being copied over it or wait for their first attempt, `at_once` at most at a time.

    left      bytes of these that are not there yet
    mbps      that all files on it may have together; 0: any
    turn      bytes that one turn of the mover copies, over all links; 0: any
    drives    files that its tape reads at a time, `reads` are being read or wait for it; None: it begins at no tape
    latency   seconds before the tape gives the first byte of a file
    closed    code and sentence of what closes the way; both "" where it is open
    """

    at_once: int = 1
    wanted: int = 0
    left: int = 0
    mbps: float = 0.0
    turn: int = 0
    drives: int | None = None
    reads: int = 0
    latency: float = 0.0
    closed: tuple[str, str] = ("", "")

    @property
    def copy_s(self) -> float:
        """Seconds that the link needs for these files at its rate."""
        return self.left / MB / self.mbps if self.mbps > 0 else 0.0

    @property
    def read_s(self) -> float:
        """Seconds for which its tape makes them wait."""
        drives = self.drives or 1
        return self.latency * max(-(-self.wanted // self.at_once), -(-self.reads // drives))


def why_busy(source: str, destination: str, load: Load) -> tuple[str, str]:
    """Code and sentence of what makes files wait that no attempt has failed for; none when all of them are copied next.

    Said of all that want to go over the link, not of what goes in this moment, it stays until the last of them has its turn. What
    is named is what holds them up: where there is no tape, more files at a time share what the link and the mover's turn give.
    """
    link = f"the link from {source} to {destination}"
    is_link, is_tape = load.wanted > load.at_once, load.drives is not None and load.reads > load.drives
    if load.mbps > 0 and (is_link or is_tape) and (load.drives is None or load.copy_s > load.read_s):
        return (
            codes.COPY_LINK_SLOW,
            f"{link} gives {load.mbps:g} MB/s in all, and has {plural(load.wanted, 'file')} to copy",
        )
    if is_tape and load.drives is not None and not (is_link and load.at_once < load.drives):
        said = f"the tape {source} reads {plural(load.drives, 'file')} at a time"
        return codes.COPY_TAPE_BUSY, f"{said}, and has {load.reads} to read"
    if is_link and load.drives is not None:
        said = f"{link} takes {plural(load.at_once, 'file')} at a time"
        return codes.COPY_LINK_BUSY, f"{said}, and has {load.wanted} to copy"
    if load.left > load.turn > 0:
        said = f"the mover copies {size(load.turn)} in a turn"
        return codes.COPY_MOVER_BUSY, f"{said}, and has {size(load.left)} to copy from {source} to {destination}"
    return _BY_ITSELF, ""


@dataclass(frozen=True, slots=True)
class Copies:
    """Files that fare alike on a link: `way` is active, other (another request copies the file), queued, or retried.

    size, copied   bytes of all of them; again: when the first of them is tried again
    error, attempt of the oldest one; tried: when its last attempt ended
    example        the oldest one: scope and name
    """

    source: str
    destination: str
    way: str
    files: int
    size: int = 0
    copied: int = 0
    error: str = ""
    attempt: int = 0
    again: datetime | None = None
    since: datetime | None = None
    example: tuple[str, str] = ("", "")
    tasks: tuple[int, ...] = ()
    tried: datetime | None = None


class Reason(NamedTuple):
    """Why so many files have not arrived. `code` is "" where they come by themselves; `again` says when they are tried again.

    seen   when the last attempt saw it, in words; "" where that is now
    """

    code: str
    files: int
    said: str
    again: str = ""
    subject: str = ""
    seen: str = ""

    @property
    def words(self) -> str:
        return "; ".join(filter(None, (self.said + self.seen, self.again)))


def reason_of(copies: Copies, load: Load, now: datetime, attempts: int, lacks: str = "") -> Reason:
    """Why these files have not arrived. `lacks`: why no place of a file that has no source can be read."""
    files, link = copies.files, f"{copies.source}:{copies.destination}"
    if copies.way == "active":
        pace = f", over a link that gives {load.mbps:g} MB/s in all" if load.mbps else ""
        said = f"{size(copies.copied)} of {size(copies.size)} copied so far{pace}"
        return Reason(_BY_ITSELF, files, said, subject=link)
    if not copies.destination:
        return Reason(codes.COPY_WITHOUT_DISK, files, NO_DISK)
    again, (code, closed) = _again(copies, now, attempts), load.closed
    if closed:
        # What is closed is waited for; attempts are used up where there is nothing that could open.
        return Reason(code, files, closed, again if code == codes.COPY_STORAGE_GONE else "", closed)
    if not copies.source:
        said = f"no replica of {copies.example[1]} can be read" + (f" ({lacks})" if lacks else "")
        return Reason(codes.COPY_WITHOUT_SOURCE, files, said, again, copies.destination)
    if copies.way == "other":
        return Reason(_BY_ITSELF, files, "being copied for another job or task already", subject=link)
    if copies.way == "queued":
        code, said = why_busy(copies.source, copies.destination, load)
        return Reason(code, files, said or NEXT_TURN, subject=copies.source if code == codes.COPY_TAPE_BUSY else link)
    seen = when_seen(copies.error, copies.tried, now)
    if is_away(copies.error):
        return Reason(codes.COPY_STORAGE_AWAY, files, copies.error, again, copies.error, seen)
    if seems_full(copies.error):
        return Reason(codes.COPY_NO_ROOM, files, copies.error, again, copies.destination, seen)
    said = f"the copy from {copies.source} to {copies.destination} failed: {copies.error}"
    return Reason(codes.COPY_FAILS, files, said, again, link)


def is_away(error: str) -> bool:
    """Whether an attempt found a storage without its folder."""
    before, after = AWAY.split("%s")
    return error.startswith(before) and after in error


def seems_full(error: str) -> bool:
    """Whether an attempt found no room at the destination."""
    return error.startswith((NO_ROOM, IS_FULL))


def when_seen(error: str, tried: datetime | None, now: datetime) -> str:
    """When an attempt saw how a storage is, which may have changed since then; "" for other errors, and where it is not known."""
    if tried is None or not (is_away(error) or seems_full(error)):
        return ""
    return f", seen {ago(tried, now)}"


def _again(copies: Copies, now: datetime, attempts: int) -> str:
    """When the next attempt is, and which one it is. Waits for room or for a storage are not counted as attempts."""
    if not copies.error:
        return ""
    when = "due now"
    if copies.again is not None and copies.again > now:
        when = f"at {copies.again.astimezone(UTC):%H:%M:%S} UTC"
    number = f", number {copies.attempt + 1} of {attempts}," if copies.attempt else ""
    return f"the next attempt{number} is {when}"


@dataclass(frozen=True, slots=True)
class CopyWaits:
    """What somebody waits for: `left` of so many files have not arrived at these places, for these reasons."""

    files: int = 0
    left: int = 0
    places: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def code(self) -> str:
        """Of what has to be mended first; "" where the files come by themselves."""
        return self.reasons[0].code if self.reasons else ""

    @property
    def why(self) -> str:
        """The reasons, and of how many files each is one, where there are several."""
        if len(self.reasons) == 1:
            return self.reasons[0].words
        parts = [f"{one.words} ({plural(one.files, 'file')})" for one in self.reasons[:SHOWN]]
        if more := self.reasons[SHOWN:]:
            parts.append(f"other reasons for {plural(sum(one.files for one in more), 'file')}")
        return "; ".join(parts)

    def left_in_words(self, whose: str = "") -> str:
        """That so many files `whose` they are, such as "of its input", have not arrived; "" when all have."""
        if not self.left:
            return ""
        number = plural(self.left, "file") if self.left >= self.files else f"{self.left} of {self.files} files"
        where = " and ".join(self.places) if len(self.places) < 3 else f"{len(self.places)} storages"
        arrived = f"{'has' if self.left == 1 else 'have'} not arrived" + (f" at {where}" if where else "")
        return " ".join(filter(None, (number, whose, arrived)))


NO_COPIES: Final = CopyWaits()


def joined(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """What has to be mended first comes first, then what concerns most files; the same said of several links is said once."""
    found: dict[str, Reason] = {}
    for one in reasons:
        same = found.get(one.words)
        found[one.words] = one._replace(files=one.files + same.files) if same else one
    return tuple(sorted(found.values(), key=lambda one: (_ORDER.index(one.code), -one.files, one.words)))
