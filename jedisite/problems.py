"""Errors of the resource API as problem documents (RFC 9457), and a JSON parser that names what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions, status
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"
MAX_DEPTH = 60


class InvalidFields(exceptions.APIException):
    """Input that breaks rules: each error names the field, the rule and says it in a sentence."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "The request has fields that break a rule."

    def __init__(self, errors: Iterable[Mapping[str, str]]) -> None:
        super().__init__()
        self.errors = [dict(e) for e in errors]


class Conflict(exceptions.APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "The state of the object does not allow this."


class TooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The request is larger than this site takes."


def problem(status_code: int, title: str, detail: str, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """The body of a problem document."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status_code, "detail": detail}
    if errors:
        body["errors"] = errors
    return body


def _field_errors(detail: Any, path: str = "") -> list[dict[str, str]]:
    if isinstance(detail, Mapping):
        return [e for key, value in detail.items() for e in _field_errors(value, f"{path}.{key}" if path else str(key))]
    if isinstance(detail, list):
        found = []
        for index, value in enumerate(detail):
            found += _field_errors(value, path if isinstance(value, str) else f"{path}[{index}]")
        return found
    return [{"field": path, "rule": getattr(detail, "code", "invalid"), "message": str(detail)}]


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Turn what a view raises into a problem document."""
    from rest_framework.views import (
        exception_handler as drf_handler,  # its import reads the settings that name this module
    )

    if isinstance(exc, RequestDataTooBig):
        exc = TooLarge()
    response = drf_handler(exc, context)
    if response is None:
        return None
    code = response.status_code
    title = status_title(code)
    if isinstance(exc, InvalidFields):
        response.data = problem(code, title, str(exc.detail), exc.errors)
    elif isinstance(exc, exceptions.ValidationError):
        response.data = problem(code, title, InvalidFields.default_detail, _field_errors(exc.detail))
    else:
        detail = "There is no such object." if isinstance(exc, Http404) else str(getattr(exc, "detail", exc))
        response.data = problem(code, title, detail)
    response.content_type = CONTENT_TYPE
    return response


def status_title(code: int) -> str:
    from http import HTTPStatus

    return HTTPStatus(code).phrase


def json_problem(status_code: int, detail: str) -> JsonResponse:
    """A problem document from a view that does not use the REST framework."""
    return JsonResponse(
        problem(status_code, status_title(status_code), detail), status=status_code, content_type=CONTENT_TYPE
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _check_text(value: Any, depth: int = 0) -> None:
    """PostgreSQL stores neither NUL nor half a surrogate pair; say so before anything is stored."""
    if depth > MAX_DEPTH:
        raise ValueError(f"objects are nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError("a text holds the character U+0000")
        value.encode()
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, depth + 1)
            _check_text(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_text(item, depth + 1)


def strict_json(data: bytes) -> Any:
    """Parse JSON. Raises ValueError with a sentence for anything that is not plain JSON in UTF-8."""
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_no_duplicates)
        _check_text(value)
    except UnicodeError as exc:
        raise ValueError("the body is not UTF-8 text without lone surrogates") from exc
    except RecursionError as exc:
        raise ValueError(f"objects are nested deeper than {MAX_DEPTH}") from exc
    return value


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        from django.conf import settings

        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.")
        try:
            return strict_json(data)
        except ValueError as exc:
            raise exceptions.ParseError(f"The body is not valid JSON: {exc}") from exc


def not_found(request: HttpRequest, exception: Exception | None = None) -> Any:
    """The site's 404: a problem document under /api/, a page elsewhere."""
    if request.path.startswith("/api/"):
        return json_problem(404, f"There is nothing at {request.path}.")
    from django.views.defaults import page_not_found

    return page_not_found(request, exception or Http404())
