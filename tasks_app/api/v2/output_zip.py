"""API v2: all outputs that a task has made, in one zip."""

from __future__ import annotations

from typing import Any, Final

from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import thousands
from jedisite.web.problems import Conflict, InvalidFields
from tasks_app.api.v2.base import OfTask
from tasks_app.api.v2.content import SAFE, check_may_fetch
from tasks_app.ddm import fetching, output_zips
from tasks_app.models import Dataset, Task

ZIP: Final = "application/zip"
_PARAMETER: Final = "dataset"


class OutputZipViewSet(OfTask):
    rights = {"retrieve": Right.READ}
    queryset = Task.objects.all()

    def known_parameters(self) -> set[str]:
        return {_PARAMETER}

    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        """There is one form only; refusals are problem documents."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        summary="The outputs of a task in one zip",
        description="All outputs that the task has made so far, without its logs, or those of one dataset: at most "
        f"{thousands(output_zips.MOST_FILES)} files and {thousands(output_zips.MOST_BYTES)} bytes. For its owner, managers "
        "and members of its working group, shifters, production and administrators. 404: there is no output, or one that "
        "no longer exists; 409: they are too large for a zip, or one is not in a storage that this site serves; 503: other "
        "zips are being made or sent.",
        parameters=[
            OpenApiParameter(
                _PARAMETER, OpenApiTypes.STR, description="name of an output dataset of the task; otherwise all"
            )
        ],
        responses={(200, ZIP): OpenApiTypes.BINARY},
    )
    def retrieve(self, request: Any, task_id: int) -> HttpResponseBase:
        task = self.task()
        check_may_fetch(self.caller, task)
        dataset = self._dataset(task)
        try:
            files = output_zips.outputs_of(task.id, dataset)
            if not files:
                raise exceptions.NotFound(f"{dataset.name if dataset else f'Task {task.id}'} has no finished outputs.")
            content = output_zips.made(files, self.caller.name)
        except fetching.NoFileError as exc:
            raise exceptions.NotFound(str(exc)) from exc
        except (fetching.NotSentError, output_zips.TooLargeError) as exc:
            raise Conflict(str(exc)) from exc
        answer = FileResponse(content, content_type=ZIP)
        answer.block_size = fetching.PIECE_BYTES
        name = f"{dataset.name.replace('/', '').replace(':', '.')}.zip" if dataset else f"task.{task.id}.outputs.zip"
        for header, value in SAFE.items():
            answer[header] = value
        answer["Accept-Ranges"] = "none"
        answer["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
        return answer

    def _dataset(self, task: Task) -> Dataset | None:
        name = self.request.query_params.get(_PARAMETER)
        if name is None:
            return None
        found = Dataset.objects.filter(task_id=task.id, type="output", name=name).first()
        if found is None:
            names = list(Dataset.objects.filter(task_id=task.id, type="output").values_list("name", flat=True)[:5])
            said = f"Task {task.id} has no output dataset of that name; it has {', '.join(names) or 'none'}."
            raise InvalidFields([{"field": _PARAMETER, "rule": "output dataset", "message": said}])
        return found
