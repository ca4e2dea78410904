"""Errors of the API as problem documents (RFC 9457), and a JSON parser that names what is wrong."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponsePermanentRedirect,
    JsonResponse,
    UnreadablePostError,
)
from django.template.loader import render_to_string
from django.urls import is_valid_path
from rest_framework import exceptions, status
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from jedisite.database import database_faults
from jedisite.vocabulary.words import sentence, thousands

CONTENT_TYPE = "application/problem+json"
MAX_DEPTH = 60
LONGEST_NAME_SHOWN = 100
RESOURCES = "/api/v2/"


class Refusal(exceptions.APIException):
    """A request that is refused for named fields; each error has the keys field, rule and message."""

    errors: list[dict[str, str]]

    def __init__(self, errors: Iterable[Mapping[str, str]]) -> None:
        super().__init__()
        self.errors = [dict(e) for e in errors]


class InvalidFields(Refusal):
    """Input that breaks rules: each error names the field, the rule and says it in a sentence."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "Some fields of the request are not valid."


class BadBody(Refusal):
    """A body that is not JSON, or JSON that cannot be stored."""

    status_code = status.HTTP_400_BAD_REQUEST
    default_detail = "The body is not valid JSON."


class PackedBody(Refusal):
    """A body that is packed, as its header Content-Encoding says."""

    status_code = status.HTTP_415_UNSUPPORTED_MEDIA_TYPE
    default_detail = "This call takes no packed bodies."


class Conflict(exceptions.APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "The state of the object does not allow this."


class TooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(
            detail or f"The request is larger than {thousands(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)} bytes."
        )


class BodyNotRead(exceptions.APIException):
    status_code = status.HTTP_408_REQUEST_TIMEOUT
    default_detail = "The body of the request arrived too slowly or was cut off."


class Unavailable(exceptions.APIException):
    status_code: int = status.HTTP_503_SERVICE_UNAVAILABLE
    wait = 5
    """Seconds after which a client may try again: the header Retry-After."""


class DatabaseFailed(Unavailable):
    def __init__(self, fault: database_faults.Fault) -> None:
        super().__init__(fault.sentence)
        self.wait = fault.retry_s


class NotPlainJSONError(ValueError):
    """Bytes that are not JSON, or JSON that cannot be stored. `field` is the path of the culprit, "" for the whole body."""

    def __init__(self, rule: str, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.rule = rule
        self.field = field


def problem(status_code: int, title: str, detail: str, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """The body of a problem document."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status_code, "detail": detail}
    if errors:
        body["errors"] = errors
    return body


def _field_errors(detail: Any, path: str = "") -> list[dict[str, str]]:
    if isinstance(detail, Mapping):
        found = []
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)[:LONGEST_NAME_SHOWN]
            found += _field_errors(value, ".".join(part for part in (path, name) if part))
        return found
    if isinstance(detail, list):
        found = []
        for index, value in enumerate(detail):
            found += _field_errors(value, path if isinstance(value, str) else f"{path}[{index}]")
        return found
    rule = getattr(detail, "code", None) or "invalid"
    return [{"field": path, "rule": rule, "message": _PLAIN.get(rule, str(detail))}]


_PLAIN = {"not_a_dict": "Expected an object.", "not_a_list": "Expected a list."}
"""Faults that the framework tells in words of Python."""


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what a view raises into a problem document."""
    from rest_framework.renderers import JSONRenderer  # these imports read the settings that name this module
    from rest_framework.views import exception_handler as drf_handler

    if isinstance(exc, RequestDataTooBig):
        exc = TooLarge()
    elif isinstance(exc, UnreadablePostError):
        exc = BodyNotRead()
    elif fault := database_faults.fault_of(exc):
        exc = DatabaseFailed(fault)
    elif isinstance(exc, exceptions.ValidationError):
        exc = InvalidFields(_field_errors(exc.detail))
    response = drf_handler(exc, context)
    if response is None:
        return None
    code = response.status_code
    detail = "There is no such object." if isinstance(exc, Http404) else str(getattr(exc, "detail", exc))
    if isinstance(exc, exceptions.UnsupportedMediaType):
        detail += " Send JSON, with the header Content-Type: application/json."
    response.data = problem(code, status_title(code), detail, _errors_of(exc))
    response.content_type = CONTENT_TYPE
    request = context.get("request")
    if request is not None:
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), CONTENT_TYPE
    return response


def _errors_of(exc: Exception) -> list[dict[str, str]] | None:
    if isinstance(exc, Refusal):
        return exc.errors
    header = {exceptions.UnsupportedMediaType: "Content-Type", exceptions.NotAcceptable: "Accept"}.get(type(exc))
    return [{"field": header, "rule": "media type", "message": str(exc)}] if header else None


def status_title(code: int) -> str:
    return HTTPStatus(code).phrase


def json_problem(status_code: int, detail: str) -> JsonResponse:
    """A problem document from a view that does not use the REST framework."""
    return JsonResponse(
        problem(status_code, status_title(status_code), detail), status=status_code, content_type=CONTENT_TYPE
    )


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            shown = key[:LONGEST_NAME_SHOWN].encode(errors="backslashreplace").decode()
            raise NotPlainJSONError("duplicate key", f"the key {shown!r} occurs twice in one object", shown)
        seen.add(key)
    return found


def _fault(value: Any, depth: int = 0) -> tuple[str, str, str] | None:
    """(path, rule, sentence) of the first value that PostgreSQL cannot store, or that is nested too deep; None if all is well.

    PostgreSQL stores neither NUL nor half a surrogate pair, and JSON has no infinity (which 1e999 becomes).
    """
    if isinstance(value, str):
        return _fault_of_text(value)
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", "finite", f"{value} is not a JSON number")
    if not isinstance(value, dict | list):
        return None
    if depth >= MAX_DEPTH:
        return "", "depth", f"objects are nested deeper than {MAX_DEPTH}"
    if isinstance(value, dict):
        for key, item in value.items():
            found = _fault_of_text(key) or _fault(item, depth + 1)
            if found:
                name = key[:LONGEST_NAME_SHOWN].encode(errors="backslashreplace").decode()
                path = name if not found[0] else name + ("" if found[0].startswith("[") else ".") + found[0]
                return path, *found[1:]
        return None
    for index, item in enumerate(value):
        if type(item) is not int and (found := _fault(item, depth + 1)):
            return f"[{index}]" + (f".{found[0]}" if found[0] and found[0][0] != "[" else found[0]), *found[1:]
    return None


def _fault_of_text(value: str) -> tuple[str, str, str] | None:
    if "\x00" in value:
        return "", "characters", "a text holds the character U+0000"
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        return "", "characters", "a text holds half a surrogate pair"
    return None


def strict_json(data: bytes) -> Any:
    """Parse JSON. Raises NotPlainJSONError (a ValueError) with a sentence for anything that is not plain JSON in UTF-8."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_no_duplicates)
    except UnicodeError as exc:
        raise NotPlainJSONError("encoding", "the body is not UTF-8 text") from exc
    except RecursionError as exc:
        raise NotPlainJSONError("depth", f"objects are nested deeper than {MAX_DEPTH}") from exc
    except json.JSONDecodeError as exc:
        raise NotPlainJSONError("syntax", str(exc)) from exc
    except NotPlainJSONError:
        raise
    except ValueError as exc:
        raise NotPlainJSONError("range", "a whole number has thousands of digits") from exc
    found = _fault(value)
    if found:
        path, rule, sentence = found
        raise NotPlainJSONError(rule, sentence, path)
    return value


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        if (media_type or "").partition(";")[0].strip().lower() != self.media_type:
            raise exceptions.UnsupportedMediaType(media_type or "")  # a pattern such as */*
        if packed := stream.META.get("HTTP_CONTENT_ENCODING", "").strip().lower().removeprefix("identity"):
            said = f"Send the JSON as it is, without Content-Encoding: {packed[:40]}."
            raise PackedBody([{"field": "Content-Encoding", "rule": "media type", "message": said}])
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise TooLarge
        try:
            return strict_json(data)
        except NotPlainJSONError as exc:
            message = sentence(exc)
            raise BadBody([{"field": exc.field, "rule": exc.rule, "message": message}]) from exc


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """The site's 400: a problem document under /api/, a page elsewhere. The same holds for the others below."""
    if isinstance(exception, RequestDataTooBig):
        said = str(TooLarge())
        if is_api(request):
            return json_problem(413, said)
        return HttpResponse(render_to_string("413.html", {"said": said, "theme": theme_of(request)}), status=413)
    if is_api(request):
        return json_problem(400, "The request is malformed.")
    from django.views.defaults import bad_request as page

    return page(request, exception or Exception())


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if is_api(request):
        return json_problem(403, str(exception or "") or "You may not do this.")
    from django.views.defaults import permission_denied as page

    return page(request, exception or PermissionDenied())


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Who reads is sent to the address with a slash at its end, if there is one; a body is not sent twice."""
    slash = is_valid_path(f"{request.path_info}/") and not is_valid_path(request.path_info)
    if slash and request.method in ("GET", "HEAD"):
        return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    if is_api(request):
        hint = f" The address ends with a slash: {request.path[:200]}/" if slash else ""
        if not slash and (request.path.startswith(RESOURCES) or request.path == "/api/"):
            hint = f" GET {RESOURCES} lists the resources."
        return json_problem(404, f"There is no resource at {request.path[:200]}.{hint}")
    from django.views.defaults import page_not_found as page

    return page(request, Http404(_missing(request, exception)))


CALLED = {"catalogued": "dataset", "queue": "work queue"}
"""What addresses are of, where the first word of their name does not say it."""


def _missing(request: HttpRequest, exception: Exception | None) -> str:
    """The sentence on what is not there: that of the view, or what the address is of; "" for an address of nothing."""
    if isinstance(exception, Http404) and str(exception).startswith("There is no "):
        return str(exception)
    match = request.resolver_match
    if match is None or match.url_name is None or len(match.kwargs) != 1:
        return ""
    kind = match.url_name.partition("-")[0]
    return f"There is no {CALLED.get(kind, kind)} {str(*match.kwargs.values())[:100]}."


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the exception is handled. What the database failed outside of views comes here, too."""
    if fault := database_faults.fault_of(sys.exception()):
        return unavailable(request, fault)
    if is_api(request):
        return json_problem(500, "An unexpected error occurred on the server; the server log has the details.")
    from django.views.defaults import server_error as page

    return page(request)


FOR_PROGRAMS = ("/api/v1/", "/server/panda/", "/metrics", "/auth/", "/trf/", "/cache/")


def too_many(request: HttpRequest, wait_s: int, said: str) -> HttpResponse:
    """The 429 for people."""
    text = render_to_string("429.html", {"said": said, "theme": theme_of(request), "back": request.get_full_path()})
    return HttpResponse(text, status=429, headers={"Retry-After": str(wait_s), "Cache-Control": "no-store"})


def theme_of(request: HttpRequest) -> str:
    return request.COOKIES.get("theme", "auto")


def unavailable(request: HttpRequest, fault: database_faults.Fault) -> HttpResponse:
    """The 503 for a fault of the database, without asking the database: a problem document, a text, or a page.

    The page loads itself again, unless something was sent: that the browser would send again, or ask about.
    """
    if is_api(request) and not request.path.startswith(FOR_PROGRAMS):
        response: HttpResponse = json_problem(503, fault.sentence)
    elif request.path.startswith(FOR_PROGRAMS):
        response = HttpResponse(f"{fault.sentence}\n", status=503, content_type="text/plain")
    else:
        theme = theme_of(request)
        sent = request.method not in ("GET", "HEAD")
        text = render_to_string("503.html", {"fault": fault, "theme": theme, "sent": sent})
        response = HttpResponse(text, status=503)
    response.headers["Retry-After"] = str(fault.retry_s)
    response.headers["Cache-Control"] = "no-store"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if is_api(request):
        return json_problem(403, reason or "The CSRF token is missing or wrong.")
    from django.views.csrf import csrf_failure as page

    return page(request, reason)
