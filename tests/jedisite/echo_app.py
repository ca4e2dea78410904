"""An application for tests of the web server: says what it has read of a body, or why it could not."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from jedisite import web_worker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "jedisite.settings")
if held := os.environ.get("ECHO_MOST_HELD"):
    web_worker.MOST_HELD = int(held)  # type: ignore[misc] - a test of what happens beyond it


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        body = environ["wsgi.input"].read()
        status, said = "200 OK", b"%d %d" % (len(body), zlib.adler32(body))
    except OSError as exc:
        status, said = "408 Request Timeout", str(exc).encode()
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(said)))])
    return [said]
