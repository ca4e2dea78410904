"""Why: the explanations of a task, a site and a share as resources, for scripts."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from brokerage_app.advice.whatif import FORMS, ChangeError
from brokerage_app.models import VerdictRecord
from jedisite.identity.callers import Right
from jedisite.vocabulary.words import sentence
from jedisite.web.problems import Conflict, InvalidFields
from tasks_app.api.counted import CountedList
from tasks_app.api.v2.base import Lists, OfTask, Resource, StrictSerializer, none_of, one_of
from tasks_app.api.v2.job_resources import job_of
from tasks_app.explaining import deciding_again, why_job, why_site, why_task
from tasks_app.models import Job, Task


class WhyViewSet(Resource):
    rights = {"retrieve": Right.READ}
    queryset = Task.objects.all()
    serializer_class = serializers.Serializer
    pagination_class = None
    filter_backends = []


class TaskWhyViewSet(WhyViewSet):
    @extend_schema(
        summary="Why a task waits",
        description="The gates that a task passes, in order: the task waits for the first gate whose answer is no. "
        "Also the last verdict of each broker (every skipped site with code, sentence and advice, and the sites that "
        "nearly qualified), the verdicts of the last 48 hours, and the number of tasks of the same share and work "
        "queue that come first.",
        responses=OpenApiTypes.OBJECT,
    )
    def retrieve(self, request: Any, task_id: int) -> Response:
        return Response(why_task.why(one_of(Task.objects.select_related("work_queue"), task_id)))


class JobWhyViewSet(Resource):
    rights = {"retrieve": Right.READ}
    queryset = Job.objects.all()
    serializer_class = serializers.Serializer
    pagination_class = None
    filter_backends = []

    @extend_schema(
        summary="What a job waits for",
        description="The gates that a job passes, in order: the job waits for the first gate whose answer is no. "
        "Also the decision that sent it to its site, the last calls of pilots there, and the number of jobs at the "
        "site that go first.",
        responses=OpenApiTypes.OBJECT,
    )
    def retrieve(self, request: Any, job_id: int) -> Response:
        return Response(why_job.why(job_of(job_id)))


class VerdictRowSerializer(serializers.ModelSerializer[VerdictRecord]):
    """An outcome of brokerage, which may have come several times. `reasons` has the sites that each code skipped."""

    class Meta:
        model = VerdictRecord
        fields = [
            "id",
            "task_id",
            "first_at",
            "at",
            "repeats",
            "kind",
            "broker",
            "share",
            "code",
            "sentence",
            "chosen",
            "reasons",
        ]


@extend_schema_view(
    list=extend_schema(
        summary="Decisions on where a task runs",
        description="Newest first; an unchanged decision only counts as a repeat. The latest ones are given with "
        "every number in /api/v2/tasks/{task_id}/why/.",
    )
)
class VerdictViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = VerdictRecord.objects.all()
    serializer_class = VerdictRowSerializer


class SiteWhyViewSet(WhyViewSet):
    @extend_schema(
        summary="Why a site gets no work",
        description="The brokers' reasons against a queue for the open tasks: by code with examples, with the tasks "
        "that it nearly got, and decisions by day.",
        responses=OpenApiTypes.OBJECT,
    )
    def retrieve(self, request: Any, name: str) -> Response:
        queue = why_site.queue_of(name)
        if queue is None:
            raise none_of("queue", name)
        return Response(why_site.why_site(queue, name=name))


class ShareWhyViewSet(WhyViewSet):
    @extend_schema(
        summary="Why the tasks of a share wait",
        description="What holds up the open tasks of a global share: by code with examples, and decisions by day.",
        responses=OpenApiTypes.OBJECT,
    )
    def retrieve(self, request: Any, name: str) -> Response:
        if not why_site.share_is_known(name):
            raise none_of("share", name)
        return Response(why_site.why_share(name))


class WhatIfSerializer(StrictSerializer):
    """Lines of changes, made in their order."""

    changes = CountedList(
        child=serializers.CharField(max_length=2000), min_length=1, max_length=50, help_text=f"each one is {FORMS}"
    )


class TaskWhatIfViewSet(Resource):
    rights = {"create": Right.READ}
    queryset = Task.objects.all()
    serializer_class = WhatIfSerializer
    pagination_class = None
    filter_backends = []

    @extend_schema(
        summary="Repeat the decision on a task's sites with changes",
        description="The last decision on its jobs is made again on the grid of that time, once unchanged and once "
        "with the changes; nothing is stored. `reasons` lists sites that are skipped with another code, `numbers` "
        "those skipped with the same code and another sentence. 409 when no decision was kept together with its "
        "grid.",
        request=WhatIfSerializer,
        responses={200: OpenApiTypes.OBJECT},
    )
    def create(self, request: Any, task_id: int) -> Response:
        one_of(Task, task_id)
        body = WhatIfSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        lines = body.validated_data["changes"]
        try:
            return Response(deciding_again.as_plain(*deciding_again.for_task(task_id, lines)))
        except ChangeError as exc:
            where = f"changes.{lines.index(exc.line)}"
            raise InvalidFields([{"field": where, "rule": "change", "message": exc.why}]) from exc
        except deciding_again.NothingKeptError as exc:
            raise Conflict(sentence(exc)) from exc
