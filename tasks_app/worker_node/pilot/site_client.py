"""Talking to the site: PanDA's v1 calls over HTTP, tried again while the server is away."""

from __future__ import annotations

import http.client
import json
import logging
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tasks_app.worker_node.pilot.latch import Latch, wait_any

log = logging.getLogger(__name__)

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
TIMEOUT_S = 20.0
ANSWER_LIMIT_BYTES = 64_000_000
BLOCK_BYTES = 1 << 20
BODY_LIMIT_BYTES = 10 * 1024 * 1024
"""What the site takes. Who refuses more may close the connection while we still send, which looks like a server that is away."""
TOO_LARGE = 413
LOOPBACK = ("localhost", "127.0.0.1", "::1")
AGAIN = frozenset({408, 429, 500, 502, 503, 504})

Body = Mapping[str, object] | Callable[[], Mapping[str, object]]


class UnreachableError(Exception):
    """The server gave no useful answer for as long as we were ready to wait."""


class RefusedError(Exception):
    """The server understood and said no; trying again is of no use."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the server answered {status}: {text}")
        self.status = status


class InterruptedCallError(Exception):
    """A latch was set while we waited for the next attempt."""


@dataclass(frozen=True, slots=True)
class Answer:
    success: bool
    message: str
    data: Any

    @property
    def command(self) -> str:
        """What the server wants done with the job; empty for nothing."""
        value = self.data.get("command") if isinstance(self.data, dict) else None
        return "" if value in (None, "NULL") else str(value)


def backoff(attempt: int, chance: float) -> float:
    """Seconds before attempt number `attempt` + 1 (counted from 0): doubled each time, with jitter; chance in [0, 1).

    The jitter keeps a thousand pilots from returning in the same second when the server is up again.
    """
    return min(FIRST_DELAY_S * 2.0 ** min(attempt, 20), LONGEST_DELAY_S) * (0.5 + chance / 2)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could carry the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """One per pilot; may be used by several threads at once."""

    def __init__(self, server: str, token: str | Callable[[], str]) -> None:
        """A token that may change is asked for at each call."""
        self.server = server.rstrip("/")
        self._token = token
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if urlsplit(server).hostname in LOOPBACK:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def post(self, path: str, body: Body, *, patience_s: float, until: Sequence[Latch] = ()) -> Answer:
        """Call a v1 method. A callable `body` is asked anew for each attempt, so that late reports are fresh.

        Raises UnreachableError, RefusedError, InterruptedCallError.
        """
        raw = self._insist(path, body, patience_s, until)
        return Answer(bool(raw.get("success")), str(raw.get("message") or ""), raw.get("data"))

    def get_json(self, path: str, *, patience_s: float, until: Sequence[Latch] = ()) -> dict[str, Any]:
        """A JSON object. Raises UnreachableError, RefusedError, InterruptedCallError."""
        return self._insist(path, None, patience_s, until)

    def get_bytes(self, path: str, *, patience_s: float, limit: int, until: Sequence[Latch] = ()) -> bytes:
        """A file of at most `limit` bytes. Raises UnreachableError, RefusedError, InterruptedCallError."""
        data: bytes = self._retry(path, lambda: self._once(path, None, limit), patience_s, until)
        return data

    def get_file(self, path: str, target: Path, *, patience_s: float, limit: int, until: Sequence[Latch] = ()) -> None:
        """Write a file of at most `limit` bytes. Raises UnreachableError, RefusedError, InterruptedCallError."""

        def attempt() -> None:
            with self._opener.open(self._request(path, None), timeout=TIMEOUT_S) as answer, target.open("wb") as file:
                while block := answer.read(BLOCK_BYTES):
                    if file.tell() + len(block) > limit:
                        raise RefusedError(413, f"the answer has more than {limit} bytes")
                    file.write(block)

        self._retry(path, attempt, patience_s, until)

    def is_own(self, url: str) -> bool:
        """Whether the address is of the same server (scheme, host and port); one that cannot be read is not."""
        try:
            ours, theirs = urlsplit(self.server), urlsplit(url)
        except ValueError:
            return False
        return (ours.scheme, ours.netloc.lower()) == (theirs.scheme, theirs.netloc.lower())

    def _insist(self, path: str, body: Body | None, patience_s: float, until: Sequence[Latch]) -> dict[str, Any]:
        def attempt() -> dict[str, Any]:
            fresh = body() if callable(body) else body
            data = None if fresh is None else json.dumps(fresh).encode()
            if data is not None and len(data) > BODY_LIMIT_BYTES:
                raise RefusedError(TOO_LARGE, f"{len(data)} bytes exceed the limit of {BODY_LIMIT_BYTES}")
            raw = json.loads(self._once(path, data, ANSWER_LIMIT_BYTES))
            if not isinstance(raw, dict):
                raise ValueError("the answer is not a JSON object")
            return raw

        result: dict[str, Any] = self._retry(path, attempt, patience_s, until)
        return result

    def _retry(self, path: str, attempt: Callable[[], Any], patience_s: float, until: Sequence[Latch]) -> Any:
        deadline = time.monotonic() + patience_s
        number = 0
        while True:
            asked_s = 0.0
            try:
                return attempt()
            except urllib.error.HTTPError as exc:
                with exc:
                    text = exc.read(300).decode(errors="replace").strip() or str(exc.reason)
                if exc.code not in AGAIN:
                    raise RefusedError(exc.code, text) from exc
                trouble = f"{exc.code} {text}"
                asked_s = _seconds(exc.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException, ValueError) as exc:
                trouble = str(exc) or type(exc).__name__
            delay = max(backoff(number, random.random()), asked_s)
            left = deadline - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"{path}: no answer in {patience_s:.0f} s, the last trouble was: {trouble}")
            log.warning("server.away path=%s attempt=%d next_s=%.1f trouble=%s", path, number + 1, delay, trouble[:200])
            if wait_any(until, min(delay, left)):
                raise InterruptedCallError(path)
            number += 1

    def _request(self, path: str, data: bytes | None) -> urllib.request.Request:
        request = urllib.request.Request(path if "://" in path else self.server + path, data)
        request.add_header("Authorization", f"Bearer {self._token() if callable(self._token) else self._token}")
        request.add_header("Accept", "*/*" if data is None else "application/json")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        return request

    def _once(self, path: str, data: bytes | None, limit: int) -> bytes:
        with self._opener.open(self._request(path, data), timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(limit + 1)
        if len(content) > limit:
            raise RefusedError(413, f"the answer has more than {limit} bytes")
        return content


def _seconds(retry_after: str | None) -> float:
    """The header `Retry-After` in seconds, within reason; dates are ignored."""
    return min(float(retry_after), 60.0) if retry_after and retry_after.isdigit() else 0.0
