"""What consumers report on their ranges, item by item: which items are taken, and what is answered to the others.

PanDA's versions of a report: 0 is a list of items; 1 a list of zip files, each with the items whose outputs it holds; 2 the
same for fine-grained jobs. All may be mixed. Answers are in the order of the items: true, false (refused) or null (ignored).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from events_app.rules.event_states import EventStatus
from events_app.rules.range_ids import RangeId, RangeIdError, parse_range_id
from jedisite.vocabulary.words import on_one_line

MOST: Final = 100_000
"""Items of one report that are looked at."""
TAKEN: Final = {
    "finished": EventStatus.FINISHED,
    "failed": EventStatus.FAILED,
    "fatal": EventStatus.FAILED,
    "running": EventStatus.RUNNING,
}
"""Words for a range, and the state that each gives. After `fatal` it is not tried again."""
IGNORED: Final = ("transferring",)
"""Nothing is written for these."""
LONGEST_DIAG: Final = 500
LOOKED_AT: Final = 4 * LONGEST_DIAG
"""Characters of an error that are read; some of them are left out."""
MOST_BYTES: Final = 2**48
_LARGEST: Final = 2**31 - 1
_ADLER32: Final = re.compile(r"(?:ad:)?([0-9a-fA-F]{1,8})")
_LFN: Final = re.compile(r"[A-Za-z0-9_.:+=@-]{1,256}")
_STORE: Final = re.compile(r"([0-9]{1,9})(?:/([0-9]{1,9}))?")


class ZipFile(NamedTuple):
    """A file that holds the outputs of several ranges, as its consumer has stored it. Size in bytes."""

    lfn: str
    size: int
    adler32: str
    events: int | None = None
    objstore_id: int | None = None
    path_convention: int | None = None


class RangeReport(NamedTuple):
    """What is written to a range: its state, where its output is, and the error.

    `attempts`: attempts that are left afterwards, when the report decides that; a fatal error leaves one, so that the copy
    which would be tried again has none.
    """

    status: EventStatus
    zip_row_id: int | None = None
    objstore_id: int | None = None
    path_convention: int | None = None
    error_code: int | None = None
    error_diag: str | None = None
    attempts: int | None = None


NOWHERE: Final = RangeReport(
    EventStatus.FAILED,
    error_code=1137,
    error_diag="it was reported as finished without a file (zipFile) and without a storage (objstoreID)",
)
"""What becomes of a report on a range whose output nobody could find. The code is that of pilots for outputs not stored."""


class Item(NamedTuple):
    """An item that is taken: its place among the answers, whose range it is, and what it says."""

    place: int
    range_id: RangeId
    report: RangeReport
    zip_file: ZipFile | None


@dataclass(slots=True)
class ReadItems:
    """The items that are taken, the answers to all (true for those), and why items were refused, by their place."""

    items: list[Item] = field(default_factory=list)
    answers: list[bool | None] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)

    def refuse(self, place: int, reason: str) -> None:
        self.answers[place] = False
        self.reasons[place] = reason


class _BadItemError(ValueError):
    """An item is refused; the sentence says why."""


def read_items(said: Sequence[Any]) -> ReadItems:
    """Read a report. Never raises: what is wrong with an item is its answer, and a bad zip file refuses its items.

    Of several items on one range the first counts: one that says otherwise is refused. That it is running counts less than
    how it ended.
    """
    found, seen = ReadItems(), dict[RangeId, Item]()
    for raw, zip_file, fault in _flat(said):
        place = len(found.answers)
        found.answers.append(None)
        if place >= MOST:
            continue
        try:
            if fault:
                raise _BadItemError(fault)
            item = _item(place, raw, zip_file)
        except (_BadItemError, RangeIdError) as exc:
            found.refuse(place, str(exc))
            continue
        if item is None:
            continue
        first = seen.setdefault(item.range_id, item)
        if first is not item and EventStatus.RUNNING in (first.report.status, item.report.status):
            if item.report.status is EventStatus.RUNNING:
                continue
            found.items.remove(first)
            seen[item.range_id] = first = item
        if first.report.status != item.report.status:
            found.refuse(place, "the same report says otherwise of the range before")
            continue
        found.items.append(item)
        found.answers[place] = True
    return found


def _flat(said: Sequence[Any]) -> Iterator[tuple[Any, ZipFile | None, str]]:
    """Each item with the zip file that holds its output, and what is wrong with that."""
    for one in said:
        if not (isinstance(one, Mapping) and "zipFile" in one):
            yield one, None, ""
            continue
        ranges = one.get("eventRanges")
        if not isinstance(ranges, Sequence) or isinstance(ranges, str):
            yield None, None, "eventRanges of a zipFile is no list"
            continue
        zip_file, fault = None, ""
        try:
            zip_file = _zip(one["zipFile"])
        except _BadItemError as exc:
            fault = f"its zipFile: {exc}"
        for raw in ranges:
            yield raw, zip_file, fault


def _item(place: int, raw: Any, zip_file: ZipFile | None) -> Item | None:
    """None for an item that is ignored. Raises _BadItemError, RangeIdError."""
    if not isinstance(raw, Mapping):
        raise _BadItemError("it is no object with an eventRangeID")
    if "eventRangeID" not in raw:
        raise _BadItemError("eventRangeID is missing")
    range_id = parse_range_id(raw["eventRangeID"])
    word = raw.get("eventStatus")
    if word in IGNORED:
        return None
    if not isinstance(word, str) or word not in TAKEN:
        raise _BadItemError(f"eventStatus is {word!r:.60}; known are {', '.join((*TAKEN, *IGNORED))}")
    if TAKEN[word] is EventStatus.RUNNING:
        return Item(place, range_id, RangeReport(EventStatus.RUNNING), None)
    store, convention = _store(raw.get("objstoreID"))
    if zip_file is not None:
        store, convention = zip_file.objstore_id, zip_file.path_convention
    diag = raw.get("errorDiag")
    report = RangeReport(
        TAKEN[word],
        objstore_id=store,
        path_convention=_number(raw, "pathConvention", lowest=-_LARGEST) if convention is None else convention,
        error_code=_number(raw, "errorCode", lowest=-_LARGEST),
        error_diag=_sentence(diag),
        attempts=1 if word == "fatal" else None,
    )
    return Item(place, range_id, report, zip_file)


def _sentence(diag: Any) -> str | None:
    """What a consumer says of an error, on one line: no character in it begins a new one or turns what follows round."""
    if diag is None:
        return None
    return on_one_line(str(diag)[:LOOKED_AT].replace("\0", ""))[:LONGEST_DIAG] or None


def _zip(raw: Any) -> ZipFile:
    if not isinstance(raw, Mapping):
        raise _BadItemError("it is no object with an lfn")
    lfn, checksum = raw.get("lfn"), raw.get("adler32")
    if not isinstance(lfn, str) or not _LFN.fullmatch(lfn) or lfn.strip(".") == "":
        raise _BadItemError(f"lfn is {lfn!r:.60}, which is no name of a file")
    known = _ADLER32.fullmatch(checksum) if isinstance(checksum, str) else None
    if known is None:
        raise _BadItemError(f"adler32 is {checksum!r:.60}, which is no checksum")
    size = _number(raw, "fsize", highest=MOST_BYTES)
    if size is None:
        raise _BadItemError("fsize is missing")
    store, convention = _store(raw.get("objstoreID"))
    if convention is None:
        convention = _number(raw, "pathConvention", lowest=-_LARGEST)
    return ZipFile(lfn, size, known[1].lower(), _number(raw, "numEvents"), store, convention)


def _store(said: Any) -> tuple[int | None, int | None]:
    """The number of an object store, and the convention of its paths: harvester says both as `11/1000`."""
    if said is None:
        return None, None
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= _LARGEST:
        return said, None
    both = _STORE.fullmatch(said) if isinstance(said, str) else None
    if both is None:
        raise _BadItemError(f"objstoreID is {said!r:.60}; it is a number, or two with a slash between")
    return int(both[1]), int(both[2]) if both[2] else None


def _number(raw: Mapping[str, Any], key: str, *, lowest: int = 0, highest: int = _LARGEST) -> int | None:
    """A whole number of an item, which pilots may also send as a text."""
    value = raw.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise _BadItemError(f"{key} is {value!r:.60}; it is a whole number from {lowest} to {highest}")
    return value
