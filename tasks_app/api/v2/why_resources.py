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
        description="The gates that a task passes, in order: the first whose answer is no is what it waits for. With them "
        "the last verdict of each broker (every skipped site with code, sentence and advice, and the sites that came near), "
        "the verdicts of the last 48 hours, and how many tasks of the same share and work queue come before.",
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
        description="The gates that a job passes, in order: the first whose answer is no is what it waits for. With them the "
        "decision that sent it to its site, signs of pilots there, and how many jobs of the site go first.",
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
        description="Newest first; the same decision again only counts as a repeat. The latest ones stand with every "
        "number in /api/v2/tasks/{task_id}/why/.",
    )
)
class VerdictViewSet(Lists, OfTask):
    rights = {"list": Right.READ}
    queryset = VerdictRecord.objects.all()
    serializer_class = VerdictRowSerializer


class SiteWhyViewSet(WhyViewSet):
    @extend_schema(
        summary="Why a site gets no work",
        description="What the brokers said of a queue for the tasks that are open: by code with examples, which tasks came "
        "near, and decisions by day.",
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
        summary="Decide on a task's sites again under changes",
        description="The last decision on its jobs is made again on the grid as it was, once as it is and once with the "
        "changes; nothing is touched. `reasons` has sites that are skipped by another code, `numbers` those that are skipped "
        "by the same code with another sentence. 409 when no decision is kept with its grid.",
        request=WhatIfSerializer,
        responses={200: OpenApiTypes.OBJECT},
    )
    def create(self, request: Any, task_id: int) -> Response:
        one_of(Task, task_id)
        body = WhatIfSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        lines = body.validated_data["changes"]
        try:
            return Response(deciding_again.told(*deciding_again.for_task(task_id, lines)))
        except ChangeError as exc:
            where = f"changes.{lines.index(exc.line)}"
            raise InvalidFields([{"field": where, "rule": "change", "message": exc.why}]) from exc
        except deciding_again.NothingKeptError as exc:
            raise Conflict(sentence(exc)) from exc
