"""A turn of the mover: requests are claimed, copied as far as their links allow, and written down, until its volume is used.

Whatever a killed mover has begun another one goes on with: the copy grows under a name of its own, and what got its place
but was not written down is found there.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from jedisite.agents.passes import owner, renew_lease
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.ddm.local_files import file_url
from tasks_app.domain.transfer_states import ReplicaStatus, TransferStatus
from tasks_app.transfers import file_copies, replicas
from tasks_app.transfers.claiming import Held, Link, claim, free_dead
from tasks_app.transfers.file_copies import BadFileError, Content, NoCopyError, NoRoomError, ShutError
from tasks_app.transfers.link_settings import MoverSettings, mover_settings
from tasks_app.transfers.other_sources import read_elsewhere
from tasks_app.transfers.requesting import source_of
from tasks_app.transfers.room import Room, room_now
from tasks_app.transfers.rules.copy_waits import AWAY, NO_REPLICA
from tasks_app.transfers.rules.pace import MB, ROOM_FOR, LinkPace, allowance
from tasks_app.transfers.storages import Storage, local_storages, shut
from tasks_app.transfers.turn_books import Step, book

log = structlog.get_logger(__name__)
FILES_A_TURN: Final = 400
FILES_A_STEP: Final = 50


@dataclass(frozen=True, slots=True)
class Moved:
    """What a turn did: requests that ended, bytes, and whether more could be copied at once."""

    ended: int = 0
    bytes: int = 0
    more: bool = False


@dataclass(slots=True)
class Turn:
    """`freed`: times at which transfers of a link ended in this turn, from which on others may use their part of it."""

    settings: MoverSettings
    stores: Mapping[str, Storage]
    now: datetime
    left: int
    room: Room
    freed: dict[Link, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    bad: frozenset[tuple[str, str, str]] = frozenset()

    def step(self, held: Held) -> Step:
        """Copy what the link allows of one file."""
        if self.freed[held.link] and held.moved_at == held.started == self.now:
            begin = self.freed[held.link].pop(0)
            held = held._replace(started=begin, moved_at=begin)
        failed = Step(held, TransferStatus.QUEUED, self.now)
        try:
            return self._step(held)
        except ShutError:
            self.room.left.pop(held.id, None)
            return replace(failed, waits=True)
        except (BadFileError, NoCopyError, OSError) as exc:
            self.room.left.pop(held.id, None)
            if away := self._away(held):
                return replace(failed, error=away, waits=self._may_wait(held))
            if not isinstance(exc, BadFileError):
                waits = isinstance(exc, NoRoomError) and self._may_wait(held)
                return replace(failed, error=file_copies.said_of(exc), waits=waits)
            source = self._place(held.source, held)
            return replace(failed, error=f"{exc} at {held.source}", bad_source=True, source_url=file_url(source.path))

    def _may_wait(self, held: Held) -> bool:
        return self.now < held.created + ROOM_FOR

    def _away(self, held: Held) -> str:
        """Which of the two storages has no folder now, so that nothing is known of its files; "" when both have theirs."""
        both = (self.stores[name] for name in (held.destination, held.source) if name in self.stores)
        return next((f"{AWAY % one.name}: it {fault}" for one in both if (fault := one.folder_fault)), "")

    def _place(self, endpoint: str, held: Held) -> file_copies.Place:
        return file_copies.place_of(self.stores[endpoint].path, held.scope, held.lfn)

    def _step(self, held: Held) -> Step:
        where, content = self._checked(held), Content(held.size, held.adler32)
        part, is_bad = file_copies.part_of(where, held.id), (held.scope, held.lfn, held.destination) in self.bad
        done = Step(held, TransferStatus.DONE, self.now, held.size, file_url(where.path))
        if held.source == held.destination:
            if not file_copies.is_there(where, content, may_be_bad=True):
                raise BadFileError("it is not what was expected, or not there,")
            return done
        source = self.stores[held.source]
        done = replace(done, source_url=file_url(self._place(held.source, held).path))
        if file_copies.is_there(where, content, may_be_bad=is_bad):
            part.unlink(missing_ok=True)
            return done
        pace = self.settings.pace(held.source, held.destination, source.is_tape)
        most = allowance(pace, held.active, held.started, held.moved_at, self.now)
        most = self.left if most is None else min(most, self.left)
        self._check_room(held, part)
        had, has = file_copies.copy_on(source.path, held.scope, held.lfn, where, part, content, most)
        self.room.note(held.id, held.destination, has, held.size)
        self.left -= has - had
        at = self._used_until(held, pace, has - had)
        if has < held.size:
            return Step(held, TransferStatus.ACTIVE, at, has)
        file_copies.conclude(source.path, held.scope, held.lfn, where, part, content, replaces=is_bad)
        self.freed[held.link].append(at)
        return replace(done, at=at)

    def _check_room(self, held: Held, part: Path) -> None:
        try:
            self.room.check(held.id, held.destination, part, held.size)
        except NoRoomError:
            part.unlink(missing_ok=True)  # what an earlier attempt has left takes room from others
            raise

    def _checked(self, held: Held) -> file_copies.Place:
        """The place of the copy. Raises NoCopyError when one of the two is no storage here, ShutError when the way is closed."""
        target = self.stores.get(held.destination)
        if target is None:
            raise NoCopyError(f"{held.destination} is no storage of this machine")
        if closed := shut(held.source, held.destination, self.stores):
            raise ShutError(closed.said)
        if not held.source:
            raise NoCopyError(NO_REPLICA)
        if held.source not in self.stores:
            raise NoCopyError(f"{held.source} is no storage of this machine")
        return self._place(held.destination, held)

    def _used_until(self, held: Held, pace: LinkPace, copied: int) -> datetime:
        """Up to when the transfer has used its part of the link."""
        if pace.mbps <= 0:
            return self.now
        seconds = copied * max(held.active, 1) / (pace.mbps * MB)
        begin = max(held.moved_at, held.started + pace.latency)
        # A link that was not served for long has lost that time.
        return min(self.now, max(begin, self.now - timedelta(seconds=30)) + timedelta(seconds=seconds))


def move(now: datetime) -> Moved:
    """One turn. Only in the agent: copying takes as long as the volume of a turn."""
    settings, stores = mover_settings(), local_storages()
    with hot_cursor() as cursor:
        free_dead(cursor)
    read_elsewhere(settings, stores, now)
    turn = Turn(settings, stores, now, settings.turn_bytes, room_now(stores))
    seen: list[int] = []
    ended = 0
    while turn.left > 0 and len(seen) < FILES_A_TURN:
        held = _with_sources(claim(settings, stores, now, FILES_A_STEP, seen), stores)
        if not held:
            break
        turn.bad = _bad_places(held)
        seen += [one.id for one in held]
        ended += book([turn.step(one) for one in held], settings, stores, now)
        renew_lease()
    remove_parts(stores)
    return Moved(ended, settings.turn_bytes - turn.left, turn.left <= 0 or len(seen) >= FILES_A_TURN)


def _with_sources(held: list[Held], stores: Mapping[str, Storage]) -> list[Held]:
    """Those that had no replica to read may have one now, also one that was called bad and is there again.

    What is on tape waits for a drive, as all of that tape do.
    """
    lost = [one for one in held if not one.source]
    if not lost:
        return held
    names = [(one.scope, one.lfn) for one in lost]
    with hot_cursor() as cursor:
        places = replicas.places_of(cursor, names)
        if again := _there_again(lost, places, stores):
            replicas.add(cursor, again)
            places = replicas.places_of(cursor, names)
        found = [
            one._replace(source=source_of(places[one.scope, one.lfn], one.destination, stores))
            if not one.source
            else one
            for one in held
        ]
        cursor.execute(
            """UPDATE transfer_requests q SET source = n.source FROM unnest(%s::bigint[], %s::text[]) n (id, source)
                WHERE q.id = n.id AND q.source = '' AND n.source <> ''""",
            [[one.id for one in found], [one.source for one in found]],
        )
        missed = {one.id for one in lost}
        drives = [one.id for one in found if one.id in missed and one.source in stores and stores[one.source].is_tape]
        if drives:
            cursor.execute(
                """UPDATE transfer_requests SET status = 'queued', attempt = attempt - 1, lockedby = '', lease_until = NULL,
                          next_try = NULL WHERE id = ANY(%s::bigint[]) AND status = 'active' AND lockedby = %s""",
                [numbers(drives), owner()],
            )
    return [one for one in found if one.id not in drives]


def _there_again(
    lost: list[Held], places: Mapping[replicas.Name, list[replicas.Place]], stores: Mapping[str, Storage]
) -> list[tuple[str, str, str, str]]:
    """Bad places of these files at which a storage has them with their size and checksum."""
    found = []
    for one in {(one.scope, one.lfn): one for one in lost}.values():
        for place in places[one.scope, one.lfn]:
            store = stores.get(place.endpoint)
            if place.status != ReplicaStatus.BAD or store is None or store.why_not_read:
                continue
            with contextlib.suppress(NoCopyError):
                where, content = file_copies.place_of(store.path, one.scope, one.lfn), Content(one.size, one.adler32)
                if file_copies.is_there(where, content, may_be_bad=True):
                    found.append(place[:4])
    return found


def _bad_places(held: list[Held]) -> frozenset[tuple[str, str, str]]:
    """Destinations at which a bad copy lies, which is replaced."""
    with hot_cursor() as cursor:
        places = replicas.places_of(cursor, [(one.scope, one.lfn) for one in held])
    return frozenset(p[:3] for found in places.values() for p in found if p.status == ReplicaStatus.BAD)


def remove_parts(stores: Mapping[str, Storage], limit: int = 200) -> int:
    """What transfers have left that failed for good, that nobody wants any more, or whose file came by another's. Returns how
    many there were."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT id, scope, lfn, destination FROM transfer_requests
                WHERE has_part AND status NOT IN ('queued', 'active') AND destination <> ALL(%s::text[])
                ORDER BY id LIMIT %s""",
            [texts(name for name, one in stores.items() if not one.is_there), limit],
        )
        rows = cursor.fetchall()
        gone = []
        for request, scope, lfn, destination in rows:
            try:
                if destination in stores:
                    file_copies.remove_part(stores[destination].path, scope, lfn, request)
                gone.append(request)
            except NoCopyError as exc:
                log.warning("mover.part_stays", request=request, error=str(exc))
        if gone:
            cursor.execute(
                "UPDATE transfer_requests SET has_part = false WHERE id = ANY(%s::bigint[])", [numbers(gone)]
            )
    return len(gone)
