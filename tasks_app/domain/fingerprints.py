"""Which failures are the same: what differs from job to job is masked in what the parts of a job say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from tasks_app.domain.job_errors import TRANS, main_error

LONGEST_COMPONENT, LONGEST_TEXT, LONGEST_EXAMPLE, LONGEST_KEY = 16, 240, 500, 128
LONGEST_READ = 1000
"""Characters of a message that are looked at."""
CATEGORIES: Final = (
    "payload",
    "stage-in",
    "stage-out",
    "memory",
    "time",
    "disk",
    "lost",
    "killed",
    "data",
    "pilot",
    "system",
    "unknown",
)
"""What kind of thing went wrong. `lost`: the pilot fell silent; `data`: data management; `system`: server and broker."""
CAUSES: Final[Mapping[str, str]] = {
    "node": "a worker node",
    "site": "a site",
    "version": "a version of the pilot",
    "task": "what one task runs",
    "user": "what one user runs",
    "software": "software that several tasks run",
    "data": "data or storage",
    "system": "this system",
}
"""What people may name as the cause of an error, in words; the first five are found from evidence."""

_PILOT: Final[Mapping[int, str]] = {
    1098: "disk",
    1104: "disk",
    1099: "stage-in",
    1103: "stage-in",
    1171: "stage-in",
    1246: "stage-in",
    1313: "stage-in",
    1331: "stage-in",
    1133: "stage-out",
    1137: "stage-out",
    1141: "stage-out",
    1165: "stage-out",
    1221: "stage-out",
    1320: "stage-out",
    1110: "payload",
    1149: "payload",
    1220: "payload",
    1305: "payload",
    1150: "time",
    1213: "time",
    1212: "memory",
    1235: "memory",
    1144: "killed",
    1200: "killed",
    1201: "killed",
    1318: "lost",
}
_COMPONENTS: Final[Mapping[str, str]] = {
    "exe": "payload",
    TRANS: "payload",
    "pilot": "pilot",
    "ddm": "data",
    "brokerage": "system",
    "jobdispatcher": "lost",
    "taskbuffer": "system",
    "sup": "system",
}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Failures with equal fingerprints count as the same. `component` and `code` are empty when no part said anything."""

    component: str
    code: str
    text: str
    category: str


def fingerprint_of(values: Mapping[str, Any]) -> tuple[Fingerprint, str]:
    """The fingerprint of a failed job and what was said word for word, from the job's error fields by name."""
    error = main_error(values)
    if error is None:
        return Fingerprint("", "", "", "unknown"), ""
    text = normalised(error.detail or error.sentence)
    category = category_of(error.component, error.code)
    return Fingerprint(error.component, error.code, text, category), error.detail[:LONGEST_EXAMPLE]


def category_of(component: str, code: str) -> str:
    """The category of an error; `unknown` for a component that does not exist."""
    if component == "pilot" and code.lstrip("-").isdecimal():
        return _PILOT.get(int(code.lstrip("-")), "pilot")
    return _COMPONENTS.get(component, "unknown")


# A message is cut at these: whatever stands between two of them is looked at by itself. Masks are written with angle
# brackets, so that nothing that has been masked is read again as part of something else: to normalise twice changes nothing.
_PIECE: Final = re.compile(r"\w[\w+.-]{0,20}://[^\s'\"`<>()\[\]{}|]+|[^\s'\"`<>;=()\[\]{}|]+")
_QUOTED: Final = re.compile(r"(?<![\w>])(?:'[^'<>]{1,200}'|\"[^\"<>]{1,200}\"|`[^`<>]{1,200}`)(?![\w<])")
_AROUND: Final = ".:!?,;"
_DIGITS: Final = re.compile(r"\d+(?:[.,]\d+)*")
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX: Final = re.compile(r"0x[0-9a-f]+|(?:ad:|md5:)?[0-9a-f]{8,}", re.IGNORECASE)
# Part of a name: long, with a digit and a letter; a shorter one with two letters, as 100000b is a number of bytes.
_HEX_PART: Final = re.compile(
    r"(?<![^\W_])(?:0x[0-9a-f]+|(?=[a-f]*[0-9])(?=[0-9]*[a-f])(?:[0-9a-f]{8,}|(?=[0-9]*[a-f][0-9]*[a-f])[0-9a-f]{6,7}))(?![^\W_])",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?")
_HOST: Final = re.compile(
    r"(?:[\w-]+@)?(?:[\w-]+\.){2,}(?:[a-z]{2,3}|info|local|example|internal|localdomain)(?::\d+)?", re.IGNORECASE
)
_FILE: Final = re.compile(
    r"(?:[\w-]+\.){2,}(?:txt|log|out|err|py|sh|gz|tgz|bz|xz|db|h5|md|so|tar|zip|csv|dat|xml|yml|root|json|yaml|pool|hdf5)",
    re.IGNORECASE,
)
_WORDS_WITH_SLASH: Final = re.compile(r"[^\W\d_]{1,12}/[^\W\d_]{1,12}")
_WORDS_WITH_DIGITS: Final = frozenset(
    {"md5", "adler32", "crc32", "sha1", "sha256", "utf8", "utf-8", "x86_64", "ipv4", "ipv6"}
)
LONG_NAME, DIGITS_OF_A_NAME = 16, 4
"""From this length, and with so many digits or a hexadecimal part, a piece is a name: it stands for one file, job or the like."""


@lru_cache(maxsize=4096)
def normalised(text: str) -> str:
    """A message with what differs from job to job masked, of at most LONGEST_TEXT characters.

    Masked are addresses, paths, hosts, times, numbers, hexadecimal numbers and quoted names. Takes time in proportion to the
    length of the text, of which LONGEST_READ characters are read; to normalise the result again gives the same.
    """
    found = _PIECE.sub(_mask, _QUOTED.sub("<name>", " ".join(text[:LONGEST_READ].split())))
    if len(found) <= LONGEST_TEXT:
        return found
    # Cut between words: half a word could read as something else.
    return found[:LONGEST_TEXT].rpartition(" ")[0].strip() or "<name>"


def _mask(match: re.Match[str]) -> str:
    piece = match.group()
    core = piece.strip(_AROUND)
    if not core:
        return piece
    masked = _masked(core)
    if masked == core:
        return piece
    start = piece.index(core)
    return f"{piece[:start]}{masked}{piece[start + len(core) :]}"


def _masked(core: str) -> str:
    """What stands for a piece of a message that neither begins nor ends with a full stop or the like."""
    if "://" in core:
        return "<url>"
    if "/" in core:
        return core if _WORDS_WITH_SLASH.fullmatch(core) else "<path>"
    if _UUID.fullmatch(core):
        return "<uuid>"
    if _FILE.fullmatch(core):
        return "<file>"
    if _ADDRESS.fullmatch(core) or _HOST.fullmatch(core):
        return "<host>"
    numbers = _DIGITS.findall(core)
    if not numbers or core.lower() in _WORDS_WITH_DIGITS:
        return core
    if _TIME.fullmatch(core):
        return "<time>"
    if _HEX.fullmatch(core) and not core.isdecimal():
        return "<hex>"
    parts = _HEX_PART.split(core)
    if _is_long_name(core, has_hex=len(parts) > 1):
        return "<name>"
    if len(parts) > 1:
        return "<hex>".join(_PIECE.sub(_mask, rest) for rest in parts)
    return "<n>".join(_PIECE.sub(_mask, rest) for rest in _DIGITS.split(core))


def _is_long_name(core: str, *, has_hex: bool) -> bool:
    return len(core) >= LONG_NAME and (has_hex or sum(map(len, _DIGITS.findall(core))) >= DIGITS_OF_A_NAME)


_VERSION: Final = re.compile(r"\d+(?:\.\d+){1,4}[\w-]{0,12}")


@lru_cache(maxsize=1024)
def version_of(pilot_id: str) -> str:
    """The version in what a pilot calls itself: the last of its parts between bars that is one, else the whole, shortened."""
    for part in reversed(pilot_id.split("|")):
        if _VERSION.fullmatch(part.strip()):
            return part.strip()[:32]
    return pilot_id.strip()[:32]


def node_of(host: str) -> str:
    """The host of a worker node: batch systems put the name of the slot and an @ before it."""
    return host.rpartition("@")[2].strip()[:LONGEST_KEY]
