"""What a payload that takes ranges of events and its pilot say to each other, in the words of PanDA's pilot. Pure.

The payload says `Ready for events` and gets a JSON list of ranges, or `No more events`. Of each range it says
`<file>,ID:<range>,CPU:<s>,WALL:<s>` when its output is there, or `ERR_<NAME> <range>: <text>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.worker_node.pilot.errors import DIAG_LIMIT, Code
from tasks_app.worker_node.pilot.plain import plain_text

READY: Final = "Ready for events"
NO_MORE: Final = "No more events"
LONGEST: Final = 1 << 16
"""Bytes of one message."""
FATAL: Final = "FATAL"
"""In the name of an error: the range is not to be tried again."""
_ERROR: Final = re.compile(r"(ERR_[A-Z0-9_]{1,60})\s+([0-9]{1,19}(?:-[0-9]{1,19}){4}):?\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finished:
    """A range whose output is in a file, whose path is as the payload says it."""

    range_id: str
    path: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A range that could not be processed."""

    range_id: str
    text: str
    fatal: bool = False
    code: Code = Code.UNKNOWN_PAYLOAD_FAILURE


def said(message: bytes) -> Finished | Failed | str:
    """A message of the payload. Anything but a report on a range is returned as the text that it is."""
    text = plain_text(message.decode(errors="replace")).rstrip("\n")
    if error := _ERROR.fullmatch(text):
        name, range_id, why = error.groups()
        return Failed(range_id, f"{name}: {why.strip()}"[:DIAG_LIMIT], fatal=FATAL in name)
    path, *words = text.split(",")
    told = dict(word.strip().split(":", 1) for word in words if ":" in word)
    return Finished(told["ID"], path) if path and told.get("ID") else text


def offer(ranges: Sequence[Mapping[str, object]]) -> bytes:
    """The answer to a payload that is ready, in the server's words for each range."""
    return json.dumps(list(ranges)).encode() if ranges else NO_MORE.encode()
