"""The job object that the server hands out, read once into plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class BadJobError(ValueError):
    """The job object makes no sense; the text says where."""


@dataclass(frozen=True, slots=True)
class Input:
    """`size` in bytes and `adler32` are None when the server does not know them."""

    lfn: str
    url: str
    size: int | None
    adler32: int | None


@dataclass(frozen=True, slots=True)
class Output:
    """A file to be staged out. `endpoint` empty: the queue's own choice. `guid` empty: a new one is made. `optional`: the payload
    need not write it."""

    lfn: str
    scope: str
    endpoint: str
    guid: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """`outputs` are the payload's; the log is apart. Limits are 0 when there is none.

    `takes_ranges`: it takes ranges of events until there are none left; `merges_ranges`: its inputs are files with outputs of
    ranges, and `write_to_file` says which of them belong to which output.
    `secrets`: a JSON object of the user's secrets as a text, "" for a job that asked for none.
    """

    id: int
    task_id: int
    attempt: int
    fence: int
    secret: str
    transformation: str
    parameters: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    log: Output | None
    cores: int
    memory_mb: int
    walltime_s: int
    disk_mb: int
    queue_disk_mb: int
    takes_ranges: bool = False
    merges_ranges: bool = False
    write_to_file: str = ""
    secrets: str = field(default="", repr=False)


def parse_job(raw: Mapping[str, object]) -> Job:
    """Raises BadJobError."""
    name = _text(raw, "transformation")
    if not name:
        raise BadJobError("the job has no transformation")
    outputs, log = _outputs(raw)
    return Job(
        id=_number(raw, "PandaID", needed=True),
        task_id=_number(raw, "taskID"),
        attempt=_number(raw, "attemptNr"),
        fence=_number(raw, "fence"),
        secret=_text(raw, "jobSecret"),
        transformation=name,
        parameters=_text(raw, "jobPars"),
        inputs=inputs_of(raw),
        outputs=outputs,
        log=log,
        cores=max(1, _number(raw, "coreCount")),
        memory_mb=max(0, _number(raw, "minRamCount")),
        walltime_s=max(0, _number(raw, "maxWalltime")),
        disk_mb=max(0, _number(raw, "maxDiskCount")),
        queue_disk_mb=max(0, _number(raw, "maxwdir")),
        takes_ranges=_text(raw, "eventService") == "True",
        merges_ranges=_text(raw, "eventServiceMerge") == "True",
        write_to_file=_text(raw, "writeToFile"),
        secrets=_text(raw, "secrets"),
    )


def is_plain_name(name: str) -> bool:
    """Whether a name can be a file in a folder and nothing else: no path, no control characters, not hidden."""
    return bool(name) and name[0] != "." and "/" not in name and name.isprintable() and len(name.encode()) <= 255


def inputs_of(raw: Mapping[str, object]) -> tuple[Input, ...]:
    """The inputs that a job's description names. Raises BadJobError."""
    names = _list(raw, "inFiles")
    urls = raw.get("surlsIn") or []
    if not isinstance(urls, list) or len(urls) != len(names):
        count = len(urls) if isinstance(urls, list) else 0
        raise BadJobError(f"the job has {len(names)} input files but {count} addresses (surlsIn)")
    sizes = _aligned(raw, "fsize", len(names))
    sums = _aligned(raw, "checksum", len(names))
    return tuple(
        Input(_plain(name), "" if url is None else str(url), _size(size), adler32_of(checksum))
        for name, url, size, checksum in zip(names, urls, sizes, sums, strict=True)
    )


def _outputs(raw: Mapping[str, object]) -> tuple[tuple[Output, ...], Output | None]:
    names = _list(raw, "outFiles")
    log_name = _text(raw, "logFile")
    endpoints = _aligned(raw, "ddmEndPointOut", len(names))
    plain = [(name, endpoint) for name, endpoint in zip(names, endpoints, strict=True) if name != log_name]
    scopes = _list(raw, "scopeOut")
    if len(scopes) != len(plain):
        raise BadJobError(f"the job has {len(plain)} outputs but {len(scopes)} scopes (scopeOut)")
    pairs, optional = zip(plain, scopes, strict=True), set(_list(raw, "allowNoOutput"))
    outputs = tuple(
        Output(_plain(name), scope, endpoint, optional=name in optional) for (name, endpoint), scope in pairs
    )
    if not log_name:
        return outputs, None
    endpoint = dict(zip(names, endpoints, strict=True)).get(log_name, "")
    return outputs, Output(_plain(log_name), _text(raw, "scopeLog"), endpoint, _text(raw, "logGUID"))


def _text(raw: Mapping[str, object], key: str) -> str:
    value = raw.get(key)
    return "" if value is None or value == "NULL" else str(value)


def _number(raw: Mapping[str, object], key: str, *, needed: bool = False) -> int:
    text = _text(raw, key)
    if not text and not needed:
        return 0
    try:
        return int(text)
    except ValueError:
        raise BadJobError(f"{key} is {text!r}, not a whole number") from None


def _list(raw: Mapping[str, object], key: str) -> list[str]:
    text = _text(raw, key)
    return text.split(",") if text else []


def _aligned(raw: Mapping[str, object], key: str, count: int) -> list[str]:
    """A comma text with one entry a file; an empty one means that nothing is known of any."""
    values = _list(raw, key) or [""] * count
    if len(values) != count:
        raise BadJobError(f"{key} has {len(values)} entries, one is needed for each file: {count}")
    return ["" if value == "NULL" else value for value in values]


def _plain(name: str) -> str:
    if not is_plain_name(name):
        raise BadJobError(f"{name!r} is not a valid file name")
    return name


def _size(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def adler32_of(text: str) -> int | None:
    """`ad:<hex>`; other kinds of checksum are not checked."""
    kind, _, value = text.partition(":")
    if kind != "ad":
        return None
    try:
        return int(value, 16)
    except ValueError:
        raise BadJobError(f"{text!r} is not an adler32 checksum") from None
