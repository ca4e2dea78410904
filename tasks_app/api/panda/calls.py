"""Makes a view of a function that answers one of PanDA's calls.

    @call("task/kill", "POST", Right.SUBMIT, TaskParams)
    def kill(ask: Ask) -> HttpResponse: ...

The parameters are a serialiser: they check what comes in and describe the call in the schema. A hot call leaves the REST
framework's machinery out and gets its parameters as they came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from django.core.signals import got_request_exception
from django.http import HttpRequest, UnreadablePostError
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import exceptions, serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.views import APIView

from jedisite.database import database_faults
from jedisite.identity.callers import (
    Caller,
    Right,
    TokenAuthentication,
    api_caller,
    caller_by_token,
    refusal_without_token,
)
from jedisite.server.arrivals import WHOSE_BODY
from jedisite.web.problems import BodyNotRead, TooLarge
from tasks_app.api.panda.call_params import Params
from tasks_app.api.panda.wire import BadCallError, StatusCode, body_of, legacy, plain, query_of, refused

log = structlog.get_logger(__name__)

V1, LEGACY = "api/v1/", "server/panda/"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: who asks, with which parameters. `request` is for the few that need more."""

    caller: Caller
    given: Mapping[str, Any]
    request: HttpRequest


Answer = Callable[[Ask], HttpResponseBase]
Uploads = Callable[[HttpRequest, Caller], FileUploadHandler]


class AnyAccept(BaseContentNegotiation):
    """There is one way to answer, whatever a caller says it accepts."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class PandaView(APIView):
    """A v1 call: its parameters are checked by `params`. Callers come with tokens, never with sessions."""

    authentication_classes = [TokenAuthentication]
    content_negotiation_class = AnyAccept
    rights: Mapping[str, Right] = {}
    params: type[Params] = Params
    function: Answer
    uploads: Uploads | None = None

    def answer(self, request: Any) -> HttpResponseBase:
        http: HttpRequest = request._request
        caller, uploads = api_caller(request), type(self).uploads
        handler = uploads(http, caller) if uploads is not None else None
        if handler is not None:
            http.upload_handlers = [handler]
            if note_account := http.META.get(WHOSE_BODY):
                note_account(caller.name)
        try:
            raw = query_of(http) if http.method in ("GET", "HEAD") else body_of(http)
            return type(self).function(Ask(caller, self.params.check(raw), http))
        finally:
            if handler is not None:  # what the call has not kept goes at once
                handler.upload_interrupted()

    def handle_exception(self, exc: Exception) -> Any:
        status, sentence = _fault(exc)
        if status == 0:
            raise exc
        if status in (200, 403):
            return refused(sentence, status=status)
        answer = plain(status, sentence)
        wait = _wait_s(exc)
        if wait:
            answer.headers["Retry-After"] = str(wait)
        return answer


class LegacyView(PandaView):
    """A legacy call: whatever happens, the answer is JSON with a StatusCode."""

    def handle_exception(self, exc: Exception) -> Any:
        status, sentence = _fault(exc)
        if status == 0:
            # A page that says 500 would end the pilot. Whoever watches for errors of ours still gets to see it.
            log.exception("call.failed", call=self.request.path)
            got_request_exception.send(sender=type(self), request=self.request)
            sentence = "an unexpected error occurred on the server"
        return legacy(_CODES.get(status, StatusCode.FAILED), sentence)


_CODES = {200: StatusCode.INVALID, 401: StatusCode.PERMISSION, 403: StatusCode.ROLE, 413: StatusCode.INVALID}


def _fault(exc: Exception) -> tuple[int, str]:
    """The HTTP status and sentence of what a view raised; 200 and 403 are refusals in the envelope, 0 is our own error."""
    if isinstance(exc, BadCallError):
        return 200, str(exc)
    if isinstance(exc, RequestDataTooBig):
        return 413, str(TooLarge())
    if isinstance(exc, UnreadablePostError):
        return 408, str(BodyNotRead.default_detail)
    if fault := database_faults.fault_of(exc):
        return 503, fault.sentence
    if isinstance(exc, PermissionDenied):
        return 403, str(exc) or "you may not call this"
    if isinstance(exc, exceptions.APIException):
        return exc.status_code, str(exc.detail)
    return 0, ""


def _wait_s(exc: Exception) -> int:
    """After how many seconds a caller is to try again; 0: that is of no use, or any time will do."""
    if fault := database_faults.fault_of(exc):
        return fault.retry_s
    return math.ceil(getattr(exc, "wait", None) or 0)


class _Hot:
    """Answers without the REST framework: who asks, what they say, and the function."""

    takes_short_way = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        view: Any = self
        try:
            caller = caller_by_token(request)
            if caller is None:
                raise exceptions.NotAuthenticated(refusal_without_token(request))
            if not caller.may(view.rights["post"]):
                raise PermissionDenied(caller.lacks(view.rights["post"]))
            if request.method != "POST":
                raise exceptions.MethodNotAllowed(request.method or "")
            return type(view).function(Ask(caller, body_of(request), request))
        except Exception as exc:  # noqa: BLE001 - what is not a refusal is raised again
            return view.handle_exception(exc)


class HotView(_Hot, PandaView):
    """A v1 call that pilots make all the time."""


class HotLegacyView(_Hot, LegacyView):
    """A legacy call that pilots make all the time."""


def call(
    name: str,
    method: str,
    right: Right,
    params: type[Params] = Params,
    *,
    old: bool = False,
    hot: bool = False,
    uploads: Uploads | None = None,
    data: Any = OpenApiTypes.ANY,
) -> Callable[[Answer], type[PandaView]]:
    """Make a view of a function.

    `name` is the end of the address, such as `task/kill`; `old`: a legacy call; `uploads` makes what takes the
    files of a form, which are ignored without it. `data` describes the answer's data for
    the schema: a type of OpenAPI or a serialiser. The docstring of the function is the call's description.
    """
    base = {(False, False): PandaView, (False, True): HotView, (True, False): LegacyView, (True, True): HotLegacyView}

    def make(function: Answer) -> type[PandaView]:
        verb = method.lower()
        title, _, more = (function.__doc__ or name).strip().partition("\n")

        def handle(self: PandaView, request: Any) -> HttpResponseBase:
            return self.answer(request)

        handle.__name__ = verb
        asked = {"multipart/form-data": params} if uploads else params
        answered = OpenApiTypes.OBJECT if old else _envelope_of(name, data)
        described = extend_schema(
            operation_id=("legacy_" if old else "v1_") + name.replace("/", "_"),
            tags=["PanDA, legacy" if old else f"PanDA, {name.partition('/')[0]}"],
            summary=title.rstrip("."),
            description=" ".join(more.split()),
            parameters=[params] if verb == "get" and params is not Params else [],
            request=asked if verb != "get" and params is not Params else None,
            responses={200: answered},
        )(handle)
        return type(
            function.__name__,
            (base[old, hot],),
            {
                "__doc__": function.__doc__,
                "__module__": function.__module__,
                "rights": {verb: right},
                # Who is wrong about themselves is not told so where all are welcome.
                "authentication_classes": [] if right is Right.NOTHING else PandaView.authentication_classes,
                "params": params,
                "function": staticmethod(function),
                "uploads": staticmethod(uploads) if uploads else None,
                "where": (LEGACY if old else V1) + name,
                verb: described,
            },
        )

    return make


def _envelope_of(name: str, data: Any) -> Any:
    if isinstance(data, type) and issubclass(data, serializers.BaseSerializer):
        data = data(required=False, allow_null=True)
    elif not isinstance(data, serializers.BaseSerializer | serializers.Field):
        data = serializers.JSONField(allow_null=True, required=False)
    return inline_serializer(
        f"Answer_{name.replace('/', '_')}",
        {"success": serializers.BooleanField(), "message": serializers.CharField(allow_blank=True), "data": data},
    )


def addresses(modules: Iterable[Any]) -> list[URLPattern]:
    """The addresses of all calls in these modules."""
    found = [view for module in modules for view in vars(module).values() if getattr(view, "where", None)]
    return [path(view.where, view.as_view(), name=view.where.removeprefix(V1)) for view in dict.fromkeys(found)]
