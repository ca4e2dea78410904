"""Which files of a listing a task wants. Pure; the order of the filters is that of the contents feeder (lifecycle 6.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

from jedisite.vocabulary.patterns import Pattern, compiled
from jedisite.vocabulary.words import plural
from tasks_app.params.faults import shown


class ListedFile(Protocol):
    """What selection reads of a file: its name and its number of events, if that is known."""

    @property
    def lfn(self) -> str: ...
    @property
    def events(self) -> int | None: ...


F = TypeVar("F", bound=ListedFile)
PAGE = 50_000


@dataclass(frozen=True)
class Wanted:
    """The wishes for one dataset.

    produced      names that the parent task made; others are left out (attribute cc)
    include, exclude   patterns of which one, or none, must be found in a name
    named         the explicit list; with `any_attempt` also files that were made again under another number of an attempt
    aligned_to    events of a job: files that hold whole jobs come first, then the largest (orderInputBy)
    offset        files left out from the front of the order
    sample        the seed of a random order that is the same at every look
    used          names that other tasks have processed (skipFilesUsedBy)
    taken         names that are stored already: left out, but for `with_taken`, and never counted
    most_files    files that may still be added
    most_events   the file that reaches this number of events is the last
    events_a_file what counts as the events of each file, in place of what is known of it
    """

    produced: frozenset[str] | None = None
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    named: frozenset[str] | None = None
    any_attempt: bool = False
    aligned_to: int | None = None
    offset: int = 0
    sample: str | None = None
    used: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()
    with_taken: bool = False
    most_files: int | None = None
    most_events: int | None = None
    events_a_file: int | None = None

    @property
    def has_filter(self) -> bool:
        return bool(self.include or self.exclude or self.named is not None or self.produced is not None)

    def is_named(self, lfn: str) -> bool:
        if self.named is None:
            return True
        return lfn in self.named or (self.any_attempt and without_attempt(lfn) in self._bases)

    @cached_property
    def _bases(self) -> frozenset[str]:
        return frozenset(map(without_attempt, self.named or ()))


MOST_ATTEMPT_DIGITS = 3


def without_attempt(lfn: str) -> str:
    """A name without the number of an attempt at its end: `f._000001.root` of `f._000001.root.2`."""
    base, _, number = lfn.rpartition(".")
    return base if base and number.isdecimal() and len(number) <= MOST_ATTEMPT_DIGITS else lfn


class _Room(NamedTuple):
    files: int | None
    events: int | None


def patterns(text: object) -> tuple[Pattern, ...]:
    """The patterns of a comma text. Raises PatternError."""
    return tuple(compiled(piece.strip()) for piece in str(text or "").split(",") if piece.strip())


def names_given(files: Iterable[object]) -> frozenset[str]:
    """Names in an explicit list: texts, with or without a scope before a colon, or objects with `lfn`."""
    names = (str(f.get("lfn") or "") if isinstance(f, dict) else str(f) for f in files)
    return frozenset(name.rpartition(":")[2] for name in names if name)


def why_none(
    parts: Sequence[Sequence[str]],
    include: object,
    exclude: object,
    where: str,
    offset: int = 0,
    quoted: Callable[[str], str] = shown,
) -> list[tuple[str, str]]:
    """Why none of these files is taken, which are all that there are in `where`; nothing when some file is.

    `parts` are the files of each dataset, from whose front `offset` files are left out. `quoted` writes patterns for people.
    Each reason is `include`, `exclude` or `offset`, and the end of a sentence that begins with the name of it.
    Raises PatternError.
    """
    wanted, unwanted = patterns(include), patterns(exclude)
    lfns = sorted(chain.from_iterable(parts))
    if not lfns:
        return []
    found = []
    examples, is_one = " and ".join(lfns[:2]), len(lfns) == 1
    those = f"of the {len(lfns)} files of {where}, such as {examples}"
    only = f"the only file of {where}, {examples}"
    taken = {lfn for lfn in lfns if not wanted or any(p.search(lfn) for p in wanted)}
    if not taken:
        said = f"does not take {only}" if is_one else f"takes none {those}"
        found.append(("include", f"{quoted(str(include))} {said}"))
    judged = taken or set(lfns)  # where nothing is included, it is still said that nothing else would be left
    if unwanted and all(any(p.search(lfn) for p in unwanted) for lfn in judged):
        blamed = ",".join(p.text for p in unwanted if any(p.search(lfn) for lfn in judged))
        which = f" that include {quoted(str(include))} takes" if wanted and taken else ""
        said = f"leaves out {only}" if is_one else f"leaves out all{which} {those}"
        found.append(("exclude", f"{quoted(blamed)} {said}"))
    left = judged if found else {lfn for lfn in taken if not any(p.search(lfn) for p in unwanted)}
    most = max(sum(lfn in left for lfn in part) for part in parts)
    if offset and most <= offset:
        each = (
            f"{where} has only {plural(most, 'file')}" if len(parts) == 1 else f"no dataset of it has more than {most}"
        )
        such = " that the patterns take" if left != set(lfns) else ""
        found.append(("offset", f"{offset} leaves out every file: {each}{such}"))
    return found


def select(pages: Iterable[list[F]], wanted: Wanted, page: int = PAGE) -> Iterator[list[F]]:
    """The files that are wanted, in pages. The listing is walked as it comes unless a wish needs all of it at once."""
    if wanted.has_filter:
        pages = (_filtered(files, wanted) for files in pages)
    if wanted.aligned_to or wanted.sample is not None:
        files = list(chain.from_iterable(pages))
        if wanted.aligned_to:
            files = _aligned_first(files, wanted.aligned_to)
        files = files[wanted.offset :]
        if wanted.sample is not None:
            files.sort(key=lambda f: _place(wanted.sample or "", f.lfn))
        pages = (files[at : at + page] for at in range(0, len(files), page))
    elif wanted.offset:
        pages = _behind(pages, wanted.offset)
    if wanted.used:
        pages = ([f for f in files if f.lfn not in wanted.used] for files in pages)
    yield from _limited(pages, wanted)


def _filtered(files: list[F], wanted: Wanted) -> list[F]:
    return [
        f
        for f in files
        if (wanted.produced is None or f.lfn in wanted.produced)
        and (not wanted.include or any(p.search(f.lfn) for p in wanted.include))
        and not any(p.search(f.lfn) for p in wanted.exclude)
        and wanted.is_named(f.lfn)
    ]


def _aligned_first(files: list[F], events: int) -> list[F]:
    """Files whose events make whole jobs, by name; then the others, those with most events first."""
    whole = [f for f in files if f.events and f.events % events == 0]
    others = [f for f in files if not (f.events and f.events % events == 0)]
    return sorted(whole, key=lambda f: f.lfn) + sorted(others, key=lambda f: (-(f.events or 0), f.lfn))


def _place(seed: str, lfn: str) -> bytes:
    """The place of a file in a random order: it does not depend on what else is there."""
    return hashlib.blake2b(f"{seed}\n{lfn}".encode(), digest_size=8).digest()


def _behind(pages: Iterable[list[F]], offset: int) -> Iterator[list[F]]:
    left = offset
    for files in pages:
        if left < len(files):
            yield files[left:]
        left = max(0, left - len(files))


def _limited(pages: Iterable[list[F]], wanted: Wanted) -> Iterator[list[F]]:
    room = _Room(wanted.most_files, wanted.most_events)
    for files in pages:
        if room != (None, None) or wanted.taken:
            files, room = _fitting(files, room, wanted)
        if files:
            yield files


def _fitting(files: list[F], room: _Room, wanted: Wanted) -> tuple[list[F], _Room]:
    """The files of a page for which there is room, and what room is left then."""
    left, events = room
    fit = []
    for file in files:
        if file.lfn in wanted.taken:
            if wanted.with_taken:
                fit.append(file)
            continue
        if (left is not None and left <= 0) or (events is not None and events <= 0):
            continue
        fit.append(file)
        left = None if left is None else left - 1
        events = None if events is None else events - (wanted.events_a_file or file.events or 0)
    return fit, _Room(left, events)
