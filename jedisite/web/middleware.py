"""Headers and checks for every answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse

from jedisite.database import database_faults
from jedisite.identity.throttle import TooManyAttempts
from jedisite.server.arrivals import READS_REST
from jedisite.web.problems import is_api, json_problem, too_many, unavailable

log = structlog.get_logger(__name__)

STRICT = (
    "default-src 'self'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'; form-action 'self'; "
    "img-src 'self' data:"
)
# The admin's theme and the API viewer are other people's pages: they need inline styles and evaluated expressions.
RELAXED = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; frame-ancestors 'none'; form-action 'self'"
)
CHUNK = 1 << 16
MOST_UNREAD = 3 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
UNREAD_S = 10.0
SENDING = frozenset({"POST", "PUT", "PATCH"})
DETAILS = {
    405: "This address does not support this method.",
    411: "The length of the body must be sent first: use Content-Length, not chunks.",
}


class ContentSecurityPolicy:
    """Set the Content-Security-Policy: no inline script or style on our own pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        relaxed = request.path.startswith(("/admin/", "/api/docs/"))
        response.headers.setdefault("Content-Security-Policy", RELAXED if relaxed else STRICT)
        return response


class PrivateAnswers:
    """What is made for who asks is kept by no cache on the way, and asked for again, unless a view says otherwise."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class UnreadBodies:
    """Read what a request's body has left, for a while, before it is answered.

    A server that closes on unread data resets the connection, and whoever sent a body that is refused early (too large, no
    valid token, no such address) would see a broken pipe and try again, not the answer. Our own worker does it itself.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        read_later = request.META.get(READS_REST)
        if not read_later and request.META.get("CONTENT_LENGTH") and not hasattr(request, "_body"):
            left, ends = MOST_UNREAD, time.monotonic() + UNREAD_S
            with contextlib.suppress(OSError):
                while left > 0 and time.monotonic() < ends and (piece := request.read(CHUNK)):
                    left -= len(piece)
        return response


class LongForms:
    """Refuse a long form with files where none is taken, before anything reads it: it would be read to its end, whoever
    sent it, for the token against cross-site requests that may be in it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if request.content_type != "multipart/form-data" or not length.isdigit():
            return
        takes_files = getattr(getattr(view, "cls", None), "uploads", None) is not None
        if int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE and not takes_files:
            raise RequestDataTooBig


class StatedLengths:
    """Refuse a body that comes in chunks: Django reads nothing of it, so that the request would pass for one without."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        coded = request.method in SENDING and request.META.get("HTTP_TRANSFER_ENCODING", "identity") != "identity"
        if coded and not request.META.get("CONTENT_LENGTH"):
            return HttpResponse(f"{DETAILS[411]}\n", status=411, content_type="text/plain")
        return self.get_response(request)


class StorablePaths:
    """Nothing has a name with NUL in it: no table can store one, so an address with one leads nowhere."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in request.path_info:
            raise Http404("An address cannot contain NUL.")
        return self.get_response(request)


class DatabaseFaults:
    """A view that the database fails is answered with 503: see `database_faults`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        fault = database_faults.fault_of(exception)
        if fault is None:
            return None
        log.warning("database.fault", path=request.path, fault=fault.sentence, error=str(exception).strip()[:300])
        return unavailable(request, fault)


class Throttled:
    """A caller with too many attempts gets 429 and the time of the next attempt."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return too_many(request, exception.wait_s, str(exception)) if isinstance(exception, TooManyAttempts) else None


class ProblemsUnderApi:
    """Whatever refuses a request under /api/ (a decorator, another middleware), the answer is a problem document."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code < 400 or not is_api(request) or settings.DEBUG:
            return response
        kind = response.headers.get("Content-Type", "")
        if "json" in kind or (kind == "text/plain" and request.path.startswith("/api/v1/")):
            return response  # PanDA's clients print the text of a refusal as it is
        answer = json_problem(response.status_code, DETAILS.get(response.status_code, response.reason_phrase))
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response.headers:
                answer.headers[name] = response.headers[name]
        return answer
