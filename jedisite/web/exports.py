"""Whole lists as CSV or NDJSON, streamed: the same rows and columns as the pages, read and sent a piece at a time.

Each piece is a statement of its own, so that no export holds an old state of the tables: a row that changes meanwhile is
sent as it is when its turn comes, and each row is sent once. When the database fails on the way, the connection is cut
and the answer has no proper end.
"""

from __future__ import annotations

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework import status
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from jedisite.identity.callers import api_caller
from jedisite.server.places import Places
from jedisite.web.problems import Unavailable

CHUNK = 1000
AT_ONCE = 2
"""Exports that one process of the web server sends at once; each keeps one of its four threads busy."""
MOST_OF_ONE = 1
"""Of these, to one account: who reads slowly leaves a place to others."""
Row = Mapping[str, Any]

# A spreadsheet takes a cell that begins so as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Export(BaseRenderer, ABC):
    """A form in which a list is sent as a whole. Answers are made by `stream`; a view chooses by the request."""

    charset = "utf-8"

    @abstractmethod
    def lines(self, columns: Sequence[str], pieces: Iterable[list[Row]]) -> Iterator[bytes]:
        """The rows in pieces as they are sent."""


class CSVExport(Export):
    """RFC 4180 with a line of names. Empty is no value; lists and objects are JSON.

    A text that a spreadsheet would take for a formula (it begins with = + - @, a tab or a carriage return) gets a ' in
    front. Numbers stay as they are.
    """

    media_type = "text/csv"
    format = "csv"

    def lines(self, columns: Sequence[str], pieces: Iterable[list[Row]]) -> Iterator[bytes]:
        yield _csv([columns])
        for rows in pieces:
            yield _csv([cell(row[name]) for name in columns] for row in rows)


class NDJSONExport(Export):
    """One JSON object a line."""

    media_type = "application/x-ndjson"
    format = "ndjson"

    def lines(self, columns: Sequence[str], pieces: Iterable[list[Row]]) -> Iterator[bytes]:
        encode = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        for rows in pieces:
            yield "".join([f"{encode(row)}\n" for row in rows]).encode()


def cell(value: Any) -> str:
    """A value as a cell of a CSV file."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, cls=JSONEncoder, ensure_ascii=False, separators=(",", ":"))


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


class TooManyExports(Unavailable):
    default_detail = "Too many exports are running; please try again in a moment."


class OwnExportUnderWay(Unavailable):
    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_detail = "Another export of yours is still running; try again when it has finished."


_places = Places(AT_ONCE, MOST_OF_ONE, TooManyExports, OwnExportUnderWay)


class _Held:
    """Pieces of an answer. The place among the exports is given back when the server closes the answer, sent or not."""

    def __init__(self, account: str, pieces: Iterator[bytes]) -> None:
        _places.take(account)
        self._account = account
        self._pieces: Iterator[bytes] | None = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._pieces is None:
            raise StopIteration
        return next(self._pieces)

    def close(self) -> None:
        if self._pieces is not None:
            self._pieces = None
            _places.give_back(self._account)


def stream(request: Request, columns: Sequence[str], pieces: Iterable[list[Row]]) -> StreamingHttpResponse:
    """The answer with a whole list, in the form of the request's renderer; its file is named from the request's address.

    Raises TooManyExports and OwnExportUnderWay.
    """
    export = request.accepted_renderer
    assert isinstance(export, Export)
    name = "-".join(re.sub(r"[^A-Za-z0-9_.-]", "_", part) for part in request.path.strip("/").split("/")[2:])
    headers = {"Content-Disposition": f'attachment; filename="{name}.{export.format}"', "Cache-Control": "no-store"}
    content_type, account = f"{export.media_type}; charset=utf-8", api_caller(request).name
    return StreamingHttpResponse(
        _Held(account, export.lines(columns, pieces)), content_type=content_type, headers=headers
    )
