"""Recorded requests of PanDA's own programs, sent to our server: their answers are compared field by field.

A recording says which keys, types and encodings its program accepted. Ours may have more keys; what is a number, a text,
a list or a time there must be one here. Ids of the recording are mapped to those of the test.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

FOLDER = Path(__file__).parent / "data" / "transcripts"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?")
Ids = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request and its answer; `name` is that of the file and the number in it."""

    name: str
    method: str
    path: str
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    encoding: str | None
    body: Mapping[str, Any]
    status: int
    response: Any


def exchanges(name: str) -> Iterator[Exchange]:
    """The requests of a recording such as `client_api`, in order."""
    for line in (FOLDER / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "n" in row:
            number = row.pop("n")
            yield Exchange(name=f"{name} {number}", **row)


def send(client: Client, exchange: Exchange, ids: Ids | None = None) -> Any:
    """Send a request as it was written, with other ids, and return the answer of the test client."""
    ids = ids or {}
    query = urlencode(mapped(exchange.query, ids), doseq=True)
    kind, data = encoded(exchange, mapped(exchange.body, ids))
    headers = {name: value for name, value in exchange.headers.items() if name != "Content-Type"}
    path = f"{mapped(exchange.path, ids)}?{query}" if query else mapped(exchange.path, ids)
    return client.generic(exchange.method, path, data, content_type=kind, headers=headers)


def encoded(exchange: Exchange, body: Any) -> tuple[str, bytes]:
    """Content type ("" when none was said) and bytes of a body."""
    kind = exchange.headers.get("Content-Type", "")
    if exchange.encoding == "form":
        return kind, urlencode(body, doseq=True).encode()
    if exchange.encoding == "multipart":
        parts = {
            name: SimpleUploadedFile(part["filename"], b"0" * part["size"], part["content_type"])
            for name, part in body.items()
        }
        return MULTIPART_CONTENT, encode_multipart(BOUNDARY, parts)
    if exchange.encoding is None:
        return kind, b""
    data = json.dumps(body).encode()
    return kind, gzip.compress(data, mtime=0) if exchange.encoding == "gzip+json" else data


def mapped(value: Any, ids: Ids) -> Any:
    """The value with recorded ids replaced: numbers, and texts that are one or hold one of more than four digits."""
    if isinstance(value, Mapping):
        return {name: mapped(item, ids) for name, item in value.items()}
    if isinstance(value, list):
        return [mapped(item, ids) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    if value in ids:
        return ids[value]
    if isinstance(value, str):
        for old, new in ids.items():
            if len(str(old)) > 4:
                value = re.sub(rf"(?<!\d){re.escape(str(old))}(?!\d)", str(new), value)
    return value


def differences(recorded: Any, ours: Any, where: str = "") -> list[str]:
    """Where our answer is not of the shape of the recorded one: `path: what`. Null in the recording says nothing."""
    if recorded is None:
        return []
    if kind_of(recorded) != kind_of(ours):
        return [f"{where or 'answer'}: {kind_of(recorded)} there, {kind_of(ours)} here"]
    if isinstance(recorded, dict):
        found = []
        for name, value in recorded.items():
            inner = f"{where}.{name}".lstrip(".")
            found += differences(value, ours[name], inner) if name in ours else [f"{inner}: missing"]
        return found
    if isinstance(recorded, list) and recorded:
        if not ours:
            return [f"{where}: empty"]
        return [
            d
            for n, item in enumerate(ours)
            for d in differences(recorded[min(n, len(recorded) - 1)], item, f"{where}[{n}]")
        ]
    return []


def kind_of(value: Any) -> str:
    """null, boolean, number, text, list, object, or time: PanDA's `{"__datetime__": …}`."""
    if isinstance(value, dict):
        if "__datetime__" not in value:
            return "object"
        written = value["__datetime__"]
        return "time" if set(value) == {"__datetime__"} and MOMENT.fullmatch(written) else f"bad time {written!r}"
    kinds = ((type(None), "null"), (bool, "boolean"), (int | float, "number"), (str, "text"), (list, "list"))
    return next(name for kind, name in kinds if isinstance(value, kind))


def compare(exchange: Exchange, answer: Any) -> list[str]:
    """Differences between the recorded answer and ours; the flag `success` and a StatusCode must be equal, too."""
    if answer.status_code != exchange.status:
        return [f"status: {exchange.status} there, {answer.status_code} here: {answer.content[:200]!r}"]
    if not isinstance(exchange.response, dict | list):
        return []
    ours = json.loads(answer.content)
    found = differences(exchange.response, ours)
    if isinstance(exchange.response, dict) and isinstance(ours, dict):
        for flag in ("success", "StatusCode"):
            if exchange.response.get(flag) != ours.get(flag, exchange.response.get(flag)):
                said = ours.get("message") or ours.get("errorDialog")
                found.append(f"{flag}: {exchange.response[flag]!r} there, {ours[flag]!r} here: {said!r}")
    return found
