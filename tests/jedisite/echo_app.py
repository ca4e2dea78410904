"""An application for tests of the web server: says what it has read of a body, or why it could not.

At `/refuse` it reads no body; `/memory?n`, `/file?n` and `/pieces?n` answer with n bytes, of which the last are made as they go.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from tempfile import TemporaryFile
from typing import Any

from jedisite.server import connection_counts, web_worker
from jedisite.server.arrivals import WHOSE_BODY

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "jedisite.settings")
if held := os.environ.get("ECHO_MOST_HELD"):
    web_worker.MOST_HELD = int(held)  # type: ignore[misc] - a test of what happens beyond it
if os.environ.get("ECHO_IS_FAR"):
    connection_counts.NEAR = ()  # type: ignore[misc] - here clients are on this machine, and are to be counted


def _pieces(number: int) -> Iterator[bytes]:
    while number > 0:
        yield bytes(min(number, 65_536))
        number -= 65_536


def _answer(environ: dict[str, Any], number: int) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/memory":
        return [bytes(number)]
    if environ["PATH_INFO"] == "/pieces":
        return _pieces(number)
    file = TemporaryFile()  # noqa: SIM115 - the server closes it
    file.write(b"b" * 10)
    file.truncate(10 + number)
    file.seek(10)
    return environ["wsgi.file_wrapper"](file)  # type: ignore[no-any-return]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["QUERY_STRING"]:
        start_response("200 OK", [("Content-Length", environ["QUERY_STRING"])])
        return _answer(environ, int(environ["QUERY_STRING"]))
    if environ["PATH_INFO"] == "/refuse":
        start_response("401 Unauthorized", [("Content-Length", "0")])
        return []
    environ[WHOSE_BODY](environ.get("HTTP_X_ACCOUNT", ""))
    try:
        body = environ["wsgi.input"].read()
        status, said = "200 OK", b"%d %d" % (len(body), zlib.adler32(body))
    except OSError as exc:
        status, said = "408 Request Timeout", str(exc).encode()
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(said)))])
    return [said]
