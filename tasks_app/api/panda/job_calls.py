"""PanDA's v1 calls on jobs, for clients and harvester."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import plural
from tasks_app.api.panda.call_params import Flag, Id, Listed, Number, Params
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.job_info import MOST_JOBS, described
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.dispatch.debugging import set_debug
from tasks_app.dispatch.reports import KILL
from tasks_app.domain.states import JobStatus
from tasks_app.models import Job, JobArchive, JobMetadata, Task
from tasks_app.upkeep.killing import kill_by_hand

UNKNOWN = {"status": "unknown", "command": KILL}
"""What harvester reads of a job that is not there: its worker has nothing to do."""


class JobsParams(Params):
    job_ids = Listed(child=Id(), allow_empty=False, max_length=MOST_JOBS)


@call("job/get_description", "POST", Right.READ, JobsParams)
def get_description(ask: Ask) -> HttpResponse:
    """Describe jobs, in the order of their ids; null for a job that does not exist, or ended long ago."""
    return envelope(described(ask.given["job_ids"], archived=False))


@call("job/get_description_incl_archive", "POST", Right.READ, JobsParams)
def get_description_incl_archive(ask: Ask) -> HttpResponse:
    """Describe jobs, in the order of their ids, including archived ones; null for a job that does not exist."""
    return envelope(described(ask.given["job_ids"]))


@call("job/get_status", "GET", Right.SITE_DATA, JobsParams)
def get_status(ask: Ask) -> HttpResponse:
    """States of jobs and commands for their pilots, in the order of their ids."""
    ids = ask.given["job_ids"]
    rows = {
        job_id: {"status": status, "command": command or ""}
        for model in (JobArchive, Job)
        for job_id, status, command in model.objects.filter(id__in=ids).values_list("id", "status", "command_to_pilot")
    }
    return envelope([rows.get(job_id, UNKNOWN) for job_id in ids])


class KillParams(JobsParams):
    code = Number(
        required=False, allow_null=True, help_text="reason, as one of PanDA's kill codes; killed by a user when absent"
    )


@call("job/kill", "POST", Right.SUBMIT, KillParams)
def kill(ask: Ask) -> HttpResponse:
    """Kill jobs; the answer shows for each job whether it was killed. Users can kill their own jobs, administrators all jobs."""
    done = kill_by_hand(ask.given["job_ids"], ask.caller, ask.given.get("code"))
    left = sum(not killed for killed in done)
    return envelope(
        done,
        message=f"{plural(left, 'job was', 'jobs were')} not killed: unknown, already ended or not yours"
        if left
        else "",
    )


class DebugParams(Params):
    job_id = Id()
    mode = Flag()


@call("job/set_debug_mode", "POST", Right.SUBMIT, DebugParams)
def set_debug_mode(ask: Ask) -> HttpResponse:
    """Let the pilot of a job send the payload's output while it runs, or no longer."""
    job_id, on = ask.given["job_id"], ask.given["mode"]
    job = Job.objects.filter(pk=job_id).only("user", "working_group").first()
    no = ""
    if job is None:
        no = f"there is no job {job_id}, or it ended long ago"
    elif not ask.caller.may_command(job.user or "", job.working_group):
        no = f"job {job_id} belongs to {job.user}; you may not change it"
    elif not set_debug(job_id, on):
        no = f"job {job_id} has ended"
    if no:
        return refused(no, no)  # pbook prints the data, also of a refusal
    return envelope(f"job {job_id} is {'' if on else 'no longer '}in debug mode", message="Succeeded")


class MetadataParams(Params):
    task_id = Id()


@call("job/get_metadata_for_analysis_jobs", "GET", Right.READ, MetadataParams)
def get_metadata_for_analysis_jobs(ask: Ask) -> HttpResponse:
    """Reports written by the payloads of finished jobs of a task."""
    task_id = ask.given["task_id"]
    if not Task.objects.filter(pk=task_id).exists():
        return refused(f"there is no task {task_id}")
    living, old = (m.objects.filter(task_id=task_id, status=JobStatus.FINISHED).values("id") for m in (Job, JobArchive))
    reports = JobMetadata.objects.filter(Q(id__in=living) | Q(id__in=old)).order_by("id")
    found = reports.values_list("id", "metadata")[:MOST_JOBS]
    message = f"only the first {MOST_JOBS}" if len(found) == MOST_JOBS else ""
    return envelope([{"PandaID": job_id, **_object(report)} for job_id, report in found], message=message)


def _object(report: Any) -> dict[str, Any]:
    """A report as an object; a text may hold one."""
    if isinstance(report, str):
        try:
            report = json.loads(report)
        except (ValueError, RecursionError):
            return {"metadata": report}
    return report if isinstance(report, dict) else {"metadata": report}


class JobSubmitParams(Params):
    jobs = serializers.JSONField(help_text="ignored")


@call("job/submit", "POST", Right.SUBMIT, JobSubmitParams, data=OpenApiTypes.NONE)
def submit(ask: Ask) -> HttpResponse:
    """Single jobs are not accepted: submit a task instead. Always refused."""
    return refused("this site accepts no single jobs; submit a task (task/submit) instead")
