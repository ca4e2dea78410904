"""How PanDA's callers write requests and read answers: encodings, envelopes, codes.

v1 answers `{"success", "message", "data"}` with status 200, refusals too: its callers read the reason only then. Who is
not allowed gets the same with 403, and who is not known a plain text with 401. The legacy calls always answer 200 and a
JSON object with `StatusCode`: PanDA's pilots look at nothing else.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError

from jedisite.vocabulary.words import thousands
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.params.faults import shown

GZIP = b"\x1f\x8b"
LONGEST_NUMBER = 40
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:\.[0-9]*)?")
MOST_FIELDS = 1000
"""Fields of a form or a query."""


class StatusCode(IntEnum):
    """Status codes of the legacy calls."""

    OK = 0
    TIMEOUT = 10
    NO_JOBS = 20
    FAILED = 30
    INVALID = 50
    ROLE = 60
    PERMISSION = 70
    KEY_MISSING = 80
    PROXY_ERROR = 90


class BadCallError(ValueError):
    """A parameter is missing or wrong: the sentence names it."""


class Encoder(DjangoJSONEncoder):
    """Times as PanDA's clients read them: `{"__datetime__": "2026-11-20T11:24:24.985767"}`, UTC without a zone."""

    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            plain = o.astimezone(UTC).replace(tzinfo=None) if o.tzinfo else o
            return {"__datetime__": plain.isoformat()}
        return super().default(o)


def envelope(data: Any = None, *, message: str = "", success: bool = True, status: int = 200) -> JsonResponse:
    """The answer of a v1 call."""
    return JsonResponse({"success": success, "message": message, "data": data}, encoder=Encoder, status=status)


def refused(message: str, data: Any = None, *, status: int = 200) -> JsonResponse:
    """The answer to a refused v1 call; `data` is a code where PanDA's clients expect one."""
    return envelope(data, message=message, success=False, status=status)


def plain(status: int, sentence: str) -> HttpResponse:
    """The answer to a v1 caller who is unknown, or whose request was not read."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return HttpResponse(f"{sentence}\n", status=status, content_type="text/plain", headers=headers)


def legacy(code: StatusCode = StatusCode.OK, says: str = "", **more: Any) -> JsonResponse:
    """The answer of a legacy call; `says` goes to errorDialog."""
    said = {"errorDialog": says} if says else {}
    return JsonResponse({"StatusCode": int(code), **said, **more}, encoder=Encoder)


def query_of(request: HttpRequest) -> dict[str, Any]:
    """The parameters of a GET: a key that is repeated becomes a list; `None` as a text is none. Raises BadCallError."""
    try:
        found = {name: _single(values) for name, values in request.GET.lists()}
    except TooManyFieldsSent as exc:
        raise BadCallError(f"the query has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} parameters") from exc
    _check_texts(dict(request.GET.lists()))
    return {name: value for name, value in found.items() if value != "None"}


def body_of(request: HttpRequest) -> dict[str, Any]:
    """The parameters in a body: a JSON object, a form, or a form of several parts with files. Raises BadCallError.

    Packed bodies are known by their first bytes, and a body whose kind is not said is JSON when it begins so: PanDA's
    clients and pilots send gzip without Content-Encoding, and forms without Content-Type.
    """
    kind = (request.content_type or "").lower()
    if kind == "multipart/form-data":
        return _parts_of(request)
    data = request.body
    if data[:2] == GZIP:
        data = _unpacked(data)
    if data.lstrip()[:1] == b"{" or (kind == "application/json" and data.strip()):
        return _object_of(data)
    return _form_of(data)


def _object_of(data: bytes) -> dict[str, Any]:
    try:
        body = strict_json(data)
    except NotPlainJSONError as exc:
        said = f"the body is not valid JSON: {exc}"
        raise BadCallError(f"{exc.field}: {exc}" if exc.field else said) from exc
    if not isinstance(body, dict):
        raise BadCallError("the body is not a JSON object")
    return body


def _form_of(data: bytes) -> dict[str, Any]:
    try:
        fields = parse_qs(data.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="surrogateescape")
    except ValueError as exc:
        raise BadCallError(f"the body is neither a JSON object nor a form: {exc}") from exc
    _check_texts(fields)
    found = {name: _single(values) for name, values in fields.items()}
    return {name: value for name, value in found.items() if value != "None"}


def _parts_of(request: HttpRequest) -> dict[str, Any]:
    try:
        fields = request.POST.dict()
    except (MultiPartParserError, TooManyFieldsSent, TooManyFilesSent) as exc:
        raise BadCallError(f"the body is not a multipart form: {exc}") from exc
    _check_texts({name: [value] for name, value in fields.items()})
    return {**fields, **request.FILES.dict()}


def _check_texts(fields: Mapping[str, list[str]]) -> None:
    """Raises BadCallError with the first parameter that holds what cannot be stored."""
    for name, values in fields.items():
        for text in (name, *values):
            if "\x00" in text:
                raise BadCallError(f"{shown(name)[1:-1]}: a text holds the character U+0000")
            try:
                text.encode()
            except UnicodeEncodeError as exc:
                raise BadCallError(f"{shown(name)[1:-1]}: a text is not UTF-8") from exc


def _single(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else values


def _unpacked(data: bytes) -> bytes:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacker.decompress(data, limit)
    except (zlib.error, gzip.BadGzipFile) as exc:
        raise BadCallError(f"the body is not gzip: {exc}") from exc
    if unpacker.unconsumed_tail:
        raise RequestDataTooBig(f"the unpacked body is larger than {thousands(limit)} bytes")
    if not unpacker.eof:
        raise BadCallError("the body is not gzip: it ends too early")
    return found


def text(body: Mapping[str, Any], name: str, length: int = 250) -> str:
    """A text parameter, "" when absent; cut to `length`. Raises BadCallError."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise BadCallError(f"{name} must be a text")
    return str(value)[:length]


def number(body: Mapping[str, Any], name: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """A whole number, None when absent; decimals and texts of numbers are taken as PanDA takes them. Raises BadCallError."""
    value = body.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and not is_plain_number(value):
            raise ValueError(value)
        found = value if isinstance(value, int) else _whole(value)
    except (TypeError, ValueError, OverflowError) as exc:
        raise BadCallError(f"{name} must be a number, not {str(value)[:50]!r}") from exc
    if isinstance(value, bool) or not least <= found <= most:
        raise BadCallError(f"{name} must be a number from {least} to {most}, not {found}")
    return found


def _whole(value: Any) -> int:
    """A number that came as a float or as a text, cut to a whole one: texts exactly, which a float is not beyond 2**53.

    Raises TypeError, ValueError, OverflowError.
    """
    found = _WHOLE.fullmatch(value[:LONGEST_NUMBER].strip()) if isinstance(value, str) else None
    return int(found[1]) if found and len(value) <= LONGEST_NUMBER else int(float(value))


def is_plain_number(text: str) -> bool:
    """Whether a text is in the characters of numbers: Python's own reading takes digits of other scripts and underscores, too."""
    return text.isascii() and "_" not in text


def moment(body: Mapping[str, Any], name: str) -> datetime | None:
    """A time given as `YYYY-mm-dd HH:MM:SS` in UTC, with fractions or without, or in seconds since 1970; anything else is no
    time and is left out."""
    value = body.get(name)
    if isinstance(value, str) and not is_plain_number(value):
        return None
    try:
        if isinstance(value, str) and "-" in value[1:]:
            return _read(value[:32]) or _read(value[:26]) or _read(value[:19])
        return datetime.fromtimestamp(float(value), UTC) if value else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _read(text: str) -> datetime | None:
    """Raises OverflowError for a time that is none in UTC, such as midnight of the year 1 east of Greenwich."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) < len("YYYY-mm-dd HH:MM:SS"):
        return None  # a day is no time
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def object_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A JSON object, given as such or as its text; {} when absent. Raises BadCallError."""
    value = _json_of(body, name)
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise BadCallError(f"{name} must be a JSON object")
    return value


def list_of(body: Mapping[str, Any], name: str) -> list[Any]:
    """A JSON list, given as such or as its text. Raises BadCallError."""
    value = _json_of(body, name)
    if value is None:
        raise BadCallError(f"{name} is missing")
    if not isinstance(value, list):
        raise BadCallError(f"{name} must be a JSON list")
    return value


def _json_of(body: Mapping[str, Any], name: str) -> Any:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        return value
    try:
        return strict_json(value.encode())
    except NotPlainJSONError as exc:
        where = f"{name}.{exc.field}: {exc}" if exc.field else f"{name} is not valid JSON: {exc}"
        raise BadCallError(where) from exc
