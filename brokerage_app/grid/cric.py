"""Descriptions of queues, storage, sites and links as information systems give them (CRIC's JSON), checked and mapped.

A file is an object with any of `queues`, `storages`, `sites` (records by name), `links` and `software`. Keys that nobody
here knows stay in the whole record, which is kept. Names and units of keys: the JEDI brokerage document.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

STATUSES: Final = ("online", "standby", "brokeroff", "test", "offline", "paused")
TYPES: Final = ("production", "analysis", "unified")
PARTS: Final = ("queues", "storages", "sites", "links", "software")
SCOPE_SUFFIX: Final = "_analysis"
MOST: Final = 2**31 - 1
_TRUE: Final = frozenset({"true", "y", "yes", "1"})
_FALSE: Final = frozenset({"false", "n", "no", "0", ""})

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: of which record (`queue A`), in which field, and what."""

    record: str
    field: str
    says: str

    def __str__(self) -> str:
        return f"{self.record}: {self.field} {self.says}"


class BadDescriptionError(ValueError):
    """A description that cannot be used; `faults` names all that is wrong with it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults[:20])))


@dataclass(slots=True)
class Described:
    """Values of columns, one map a row. `data` is the record as it came.

    `relations`: (queue, endpoint, scope, order of reading, order of writing); their queues' former ones are replaced.
    """

    sites: list[dict[str, Any]] = field(default_factory=list)
    storages: list[dict[str, Any]] = field(default_factory=list)
    queues: list[dict[str, Any]] = field(default_factory=list)
    relations: list[tuple[str, str, str, int | None, int | None]] = field(default_factory=list)
    links: list[tuple[str, str, str, float, datetime | None]] = field(default_factory=list)
    software: dict[str, Any] = field(default_factory=dict)


def _text(most: int) -> Read:
    def read(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"must be a text, not {_shown(value)}")
        text = str(value).strip()
        if len(text) > most:
            raise ValueError(f"must have {most} characters at most, not {len(text)}")
        if "\x00" in text:
            raise ValueError("must not have a zero byte")
        return text

    return read


def _one_of(*values: str) -> Read:
    def read(value: Any) -> str:
        if value not in values:
            raise ValueError(f"must be one of {', '.join(values)}, not {_shown(value)}")
        return str(value)

    return read


def _number(value: Any) -> float:
    try:
        found = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"must be a number, not {_shown(value)}")
    return found


def _at_least(least: float) -> Read:
    def read(value: Any) -> float:
        found = _number(value)
        if found < least:
            raise ValueError(f"must be {least:g} or more, not {found:g}")
        return found

    return read


def _whole(least: int) -> Read:
    def read(value: Any) -> int:
        found = _number(value)
        if found != int(found) or not least <= found <= MOST:
            raise ValueError(f"must be a whole number from {least} to {MOST}, not {_shown(value)}")
        return int(found)

    return read


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"must be true or false, not {_shown(value)}")


def _names(value: Any) -> list[str]:
    found = value.split("|") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"must be a list of names, not {_shown(value)}")
    return [one.strip() for one in found if one.strip()]


def _map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a map, not {_shown(value)}")
    return value


def _activities(value: Any) -> dict[str, str]:
    found = {}
    for name, state in _map(value).items():
        status = state.get("status", {}).get("value") if isinstance(state, dict) else state
        if not isinstance(status, str):
            raise ValueError(f"must give a state for {name}, not {_shown(state)}")
        found[name] = status.upper()
    return found


def folder(value: Any) -> str:
    """A folder of this machine from / on; "" for none. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {_shown(value)}")
    text = _text(4000)(value)
    parts = [part for part in text.split("/") if part]
    if text and (not text.startswith("/") or not parts or not {".", ".."}.isdisjoint(parts)):
        raise ValueError(f"must be a folder that begins with / and has no . or .. in it, not {_shown(value)}")
    return "".join(f"/{part}" for part in parts)


def _cores(value: Any) -> int:
    """-1 takes jobs of any number; 0 is the same as 1."""
    found: int = _whole(-1)(value)
    return {-1: 0, 0: 1}.get(found, found)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a record: the column that it goes to, how it is read, and the column's value without it."""

    name: str
    column: str
    read: Read
    default: Any = None
    also: tuple[str, ...] = ()
    required: bool = False
    write: Callable[[Any], Any] = lambda value: value


QUEUE: Final = (
    Key("pandasite", "site_name", _text(60), "", also=("atlas_site", "site")),
    Key("type", "type", _one_of(*TYPES), "production"),
    Key("cloud", "cloud", _text(50), ""),
    Key("status", "status", _one_of(*STATUSES), required=True),
    Key("comment", "status_reason", _text(4000), ""),
    Key("resource_type", "grid_type", _text(16), ""),
    Key("corecount", "core_count", _cores, 1, write=lambda cores: cores or -1),
    Key("corepower", "core_power", _at_least(0), 0.0),
    Key("maxrss", "max_memory_mb", _whole(0)),
    Key("minrss", "min_memory_mb", _whole(0), 0),
    Key("maxinputsize", "max_input_mb", _whole(-1), 0),
    Key("maxtime", "max_walltime_s", _whole(0)),
    Key("mintime", "min_walltime_s", _whole(0), 0),
    Key("pledgedcpu", "pledged_cores", _whole(-1), 0),
    Key("transferringlimit", "transferring_limit", _whole(0), 0),
    Key("transtimehi", "transfer_days_high", _at_least(0)),
    Key("transtimelo", "transfer_days_low", _at_least(0)),
    Key("maxdiskio", "max_disk_io_kbps", _at_least(0)),
    Key("releases", "releases", _names, ()),
    Key("fairsharepolicy", "policy", _text(4000), ""),
    Key("wnconnectivity", "connectivity", _text(64), ""),
    Key("jobseed", "job_seed", _text(16), ""),
    Key("capability", "capability", _text(16), ""),
    Key("workflow", "workflow", _text(64), ""),
    Key("direct_access_lan", "direct_access_lan", _flag, False),
    Key("direct_access_wan", "direct_access_wan", _flag, False),
    Key("catchall", "catchall", _text(4000), ""),
    Key("params", "params", _map, {}),
    Key("space", "space_gb", _at_least(0)),
)
WORK_DIR: Final = "maxwdir"
STORAGE: Final = (
    Key("site_name", "site_name", _text(60), "", also=("site", "rcsite"), required=True),
    Key("type", "type", _text(32), "DATADISK"),
    Key("token", "token", _text(60), "", also=("ddm_spacetoken_name",)),
    Key("is_tape", "is_tape", _flag, False),
    Key("path", "path", folder, ""),
    Key("space_total", "space_total_gb", _at_least(0)),
    Key("space_free", "space_free_gb", _at_least(0)),
    Key("space_expired", "space_expired_gb", _at_least(0)),
    Key("space_min_free", "space_min_free_gb", _at_least(0)),
    Key("space_unavailable", "space_unavailable_gb", _at_least(0)),
    Key("over_quota", "over_quota", _flag, False),
    Key("detailed_status", "states", _activities, {}),
    Key("blacklisted_read", "blacklisted_read", _flag, False, also=("blacklisted",)),
    Key("blacklisted_write", "blacklisted_write", _flag, False, also=("blacklisted",)),
)
SITE: Final = (
    Key("role", "role", _one_of("nucleus", "satellite")),
    Key("tier_level", "tier", _text(16), "", also=("tier",)),
    Key("state", "state", _text(20), "ACTIVE"),
)


_KEYS: Final[Mapping[str, tuple[Key, ...]]] = MappingProxyType({"sites": SITE, "storages": STORAGE, "queues": QUEUE})


def describe(plain: Any, known: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType({})) -> Described:
    """What a file says. Raises BadDescriptionError, which names every record and field that is wrong.

    `known` are the records that there are, by part and name, in the same form: what the file does not name of them stays.
    Queues may name storages of these though the file does not describe them.
    """
    faults: list[Fault] = []
    found = Described()
    if not isinstance(plain, dict):
        raise BadDescriptionError([Fault("the file", "", f"must be a JSON object, not {_shown(plain)}")])
    for name in plain.keys() - set(PARTS):
        faults.append(Fault("the file", name, f"is not one of {', '.join(PARTS)}"))
    for name, record in _records(plain, "sites", known, faults):
        row = _row(f"site {name}", record, SITE, faults)
        policies = record.get("datapolicies") or record.get("data_policies") or ()
        nucleus = any("nucleus" in str(policy).lower() for policy in policies if isinstance(policies, list))
        row["role"] = row["role"] or ("nucleus" if nucleus else "satellite")
        found.sites.append({"name": name, **row, "data": record})
    for name, record in _records(plain, "storages", known, faults):
        found.storages.append({"name": name, **_row(f"storage {name}", record, STORAGE, faults), "data": record})
    storages = known.get("storages", {}).keys() | {row["name"] for row in found.storages}
    for name, record in _records(plain, "queues", known, faults):
        row = _row(f"queue {name}", record, QUEUE, faults)
        row["work_dir_mb"] = _work_dir(record.get(WORK_DIR), row["max_input_mb"])
        found.queues.append({"name": name, **row, "data": record})
        _relations(name, record, storages, found, faults)
    _links(plain.get("links"), found, faults)
    for name, record in _records(plain, "software", {}, faults):
        found.software[name] = record
    if faults:
        raise BadDescriptionError(faults)
    return found


def _records(
    plain: Mapping[str, Any], part: str, known: Mapping[str, Mapping[str, Mapping[str, Any]]], faults: list[Fault]
) -> Iterable[tuple[str, dict[str, Any]]]:
    records = plain[part] if plain.get(part) is not None else {}
    if not isinstance(records, dict):
        faults.append(Fault("the file", part, f"must be a map of records by name, not {_shown(records)}"))
        return
    most = 128 if part in ("queues", "software") else 60
    for name, record in records.items():
        if not name or len(name) > most or "\x00" in name:
            faults.append(Fault(f"{part} {_shown(name)}", "name", f"must have 1 to {most} characters"))
        elif not isinstance(record, dict):
            faults.append(Fault(f"{part} {name}", "record", f"must be a map, not {_shown(record)}"))
        else:
            yield name, _over(known.get(part, {}).get(name, {}), record, _KEYS.get(part, ()))


def _over(known: Mapping[str, Any], record: dict[str, Any], keys: Iterable[Key]) -> dict[str, Any]:
    """A record over the one that there is: what it names, by whatever name of a key, takes the place of that."""
    replaced = {key.name for key in keys if record.keys() & {key.name, *key.also}}
    if record.keys() & {"datapolicies", "data_policies"}:
        replaced.add("role")
    if "status" in record and record["status"] != known.get("status"):
        replaced.add("comment")  # it is the reason of the former status
    aliases = {name for key in keys if key.name in replaced for name in key.also}
    return {name: value for name, value in known.items() if name not in replaced | aliases} | record


def _row(record_name: str, record: Mapping[str, Any], keys: Iterable[Key], faults: list[Fault]) -> dict[str, Any]:
    row = {}
    for key in keys:
        name = next((n for n in (key.name, *key.also) if record.get(n) is not None), None)
        row[key.column] = list(key.default) if isinstance(key.default, tuple) else key.default
        if name is None:
            if key.required:
                faults.append(Fault(record_name, key.name, "is missing"))
            continue
        try:
            row[key.column] = key.read(record[name])
        except ValueError as exc:
            faults.append(Fault(record_name, name, str(exc)))
    return row


def _work_dir(value: Any, max_input_mb: int) -> int:
    """Scratch space of a slot (MB), 0 is no limit; of a value that is no number, what the largest input leaves over."""
    if value is None:
        return 0
    try:
        return max(0, min(MOST, int(float(value))))
    except (TypeError, ValueError, OverflowError):
        return {0: 0, -1: 16_336}.get(max_input_mb, max_input_mb + 2000)


def _relations(
    queue: str, record: Mapping[str, Any], storages: Set[str], found: Described, faults: list[Fault]
) -> None:
    given = record["astorages"] if record.get("astorages") is not None else {}
    if not isinstance(given, dict):
        faults.append(Fault(f"queue {queue}", "astorages", f"must be a map, not {_shown(given)}"))
        return
    orders: dict[tuple[str, str], list[int | None]] = {}
    for activity, endpoints in given.items():
        scope = "analysis" if activity.endswith(SCOPE_SUFFIX) else "default"
        place = {"read_lan": 0, "write_lan": 1}.get(activity.removesuffix(SCOPE_SUFFIX))
        if place is None:
            continue
        if not isinstance(endpoints, list) or not all(isinstance(one, str) for one in endpoints):
            faults.append(Fault(f"queue {queue}", f"astorages.{activity}", "must be a list of names of storages"))
            continue
        for order, endpoint in enumerate(dict.fromkeys(endpoints), 1):
            if endpoint not in storages:
                faults.append(
                    Fault(f"queue {queue}", f"astorages.{activity}", f"names {endpoint}, which is not described")
                )
            else:
                orders.setdefault((endpoint, scope), [None, None])[place] = order
    for (endpoint, scope), (read, write) in orders.items():
        found.relations.append((queue, endpoint, scope, read, write))


def _links(given: Any, found: Described, faults: list[Fault]) -> None:
    """Links are a list of [source, destination, key, value] with or without a time in ISO form."""
    if given is None:
        return
    if not isinstance(given, list):
        faults.append(Fault("the file", "links", f"must be a list, not {_shown(given)}"))
        return
    for number, row in enumerate(given):
        where = f"link {number}"
        if not isinstance(row, list) or not 4 <= len(row) <= 5:
            faults.append(
                Fault(where, "row", f"must be source, destination, key, value and perhaps a time: {_shown(row)}")
            )
            continue
        try:
            source, destination, key = (_text(most)(value) for most, value in zip((60, 60, 64), row[:3], strict=True))
            at = datetime.fromisoformat(row[4]) if len(row) == 5 else None
            if at is not None and at.tzinfo is None:
                raise ValueError("must have a time with its zone")
            utc = None if at is None else at.astimezone(UTC)
            found.links.append((source, destination, key, _number(row[3]), utc))
        except OverflowError:
            faults.append(Fault(where, "row", f"has a time that is not in UTC: {_shown(row)}"))
        except (ValueError, TypeError) as exc:
            faults.append(Fault(where, "row", str(exc)))


def record_of(values: Mapping[str, Any], keys: Iterable[Key], whole: Mapping[str, Any]) -> dict[str, Any]:
    """A record that `describe` reads as these values; other keys as they were in the whole record."""
    keys = tuple(keys)
    ours = {name for key in keys for name in (key.name, *key.also)}
    record = {name: value for name, value in whole.items() if name not in ours}
    return record | {key.name: key.write(values[key.column]) for key in keys if values[key.column] is not None}
