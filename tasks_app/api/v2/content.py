"""API v2: the bytes of a file that a task made."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import Any, Final

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions

from jedisite.identity.callers import Right
from jedisite.vocabulary.roles import Caller
from jedisite.web.problems import Conflict, json_problem
from tasks_app.api.v2.base import Resource, one_of
from tasks_app.ddm import fetching
from tasks_app.ddm.log_reading import LOOKS, LogReadTookTooLong
from tasks_app.ddm.rules.byteranges import NoSuchRangeError, wanted
from tasks_app.models import File, Task

BYTES: Final = "application/octet-stream"
# Whatever is in the file, no browser runs or shows it as part of this site.
SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
    "Accept-Ranges": "bytes",
}


class FileContentViewSet(Resource):
    rights = {"retrieve": Right.READ}
    queryset = File.objects.all()

    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        """There is one form only; refusals are problem documents."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        summary="The content of a file",
        description="The bytes of an output, a log archive or a library that a task made, for its owner, managers and "
        "members of its working group, shifters, production and administrators. One byte range can be requested (206); "
        "`ETag` changes with the content. 404: the file does not exist, or no longer exists; 409: the file is not in "
        "a storage that this site serves, or is a log that contains secrets; 503: other logs are being searched for secrets, "
        "or searching this one took too long.",
        parameters=[
            OpenApiParameter("Range", OpenApiTypes.STR, OpenApiParameter.HEADER, description="such as bytes=1000-"),
            OpenApiParameter("If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER),
        ],
        responses={(200, BYTES): OpenApiTypes.BINARY, (206, BYTES): OpenApiTypes.BINARY, 304: None},
    )
    def retrieve(self, request: Any, pk: int) -> HttpResponseBase:
        file = one_of(File, pk)
        task = one_of(Task, file.task_id)
        check_may_fetch(self.caller, task)
        try:
            with ExitStack() as stack:
                opened = fetching.open_made(file)
                stack.callback(opened.stream.close)
                answer = _answer(request, opened, self.caller.name)
                if answer.streaming:
                    stack.pop_all()  # closed when all of it is sent
                return answer
        except fetching.NoFileError as exc:
            raise exceptions.NotFound(str(exc)) from exc
        except fetching.NotNowError as exc:
            raise LogReadTookTooLong(str(exc)) from exc
        except fetching.NotSentError as exc:
            raise Conflict(str(exc)) from exc


def check_may_fetch(caller: Caller, task: Task) -> None:
    """Raises PermissionDenied unless the caller may have the files that the task has made."""
    if not caller.may_fetch(task.user, task.working_group):
        raise exceptions.PermissionDenied(
            f"Task {task.id} belongs to {task.user}; its files are for its owner, managers and members of its "
            "working group, shifters, production and administrators."
        )


def _answer(request: Any, opened: fetching.Opened, account: str) -> HttpResponseBase:
    """Raises NotSentError and TooManyLogReads. A log is searched only when bytes of it are asked for."""
    tag = f'"{opened.tag}"'
    seen = parse_etags(request.headers.get("If-None-Match", ""))
    headers = {**SAFE, "ETag": tag}
    if tag in seen or "*" in seen:
        return HttpResponse(status=304, headers=headers)
    asked = request.headers.get("Range")
    if request.headers.get("If-Range", tag) != tag:
        asked = None  # it has changed since: all of it
    try:
        part = wanted(asked, opened.size)
    except NoSuchRangeError as exc:
        refused = json_problem(416, str(exc))
        refused["Content-Range"] = f"bytes */{opened.size}"
        return refused
    first, end = part or (0, opened.size)
    headers["Content-Length"] = str(end - first)
    headers["Content-Disposition"] = content_disposition_header(True, opened.name) or "attachment"
    if part:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{opened.size}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers, content_type=BYTES)
    # As a file, so that the web server sends it without keeping a thread.
    with LOOKS.place(account) if opened.is_log else nullcontext():
        content = opened.part(first, end)
    answer = FileResponse(content, status=status, headers=headers, content_type=BYTES)
    answer.block_size = fetching.PIECE_BYTES
    return answer
