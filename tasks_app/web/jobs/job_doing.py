"""Pages that say what a kill of jobs would do, or the debug mode of one, ask for the reason, and do it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.datastructures import MultiValueDict
from django.views.decorators.http import require_http_methods

from jedisite import audit
from jedisite.identity.callers import Caller, Right, caller_of, needs
from tasks_app.commands import bulk
from tasks_app.commands.act_words import question
from tasks_app.dispatch.debugging import set_debug
from tasks_app.domain import words
from tasks_app.domain.states import JOB_FINAL
from tasks_app.lists.filtersets import JobFilter
from tasks_app.models import Job
from tasks_app.params import special_handling
from tasks_app.params.acts import JOB_ACTS, JobAct
from tasks_app.params.faults import ParamErrors
from tasks_app.upkeep import killing
from tasks_app.web.commands import chosen_rows, command_buttons
from tasks_app.web.lists.misspelt import takes

KILL = "kill"


def job_buttons(job: Any, caller: Caller) -> list[tuple[JobAct, str]]:
    """What people can do to a job, each with why it cannot be done now, "" when it can."""
    is_on = special_handling.has(job.special_handling, special_handling.DEBUG)
    return [
        (act, _job_refuses(job, caller))
        for act in JOB_ACTS.values()
        if act.name == KILL or (act.name == "debug") != is_on
    ]


def _job_refuses(job: Any, caller: Caller) -> str:
    if not _may(job, caller):
        return f"Job {job.id} belongs to {job.user}; you may not command it."
    return f"Job {job.id} is {job.status} already." if job.status in JOB_FINAL else ""


def _may(job: Any, caller: Caller) -> bool:
    return caller.may_command(job.user or "", job.working_group)


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes()
def job_do(request: HttpRequest, job_id: int, name: str) -> HttpResponse:
    """Kill one job, or let its pilot send what the payload prints (`debug`), or no longer (`no-debug`)."""
    act = JOB_ACTS.get(name)
    if act is None:
        raise Http404(f"There is no action {name!r}.")
    job = get_object_or_404(Job.objects.all(), pk=job_id)
    refused, faults = _job_refuses(job, caller_of(request)), []
    if request.method == "POST":
        faults = [refused] if refused else _do_to_one(act, job_id, request)
        if not faults:
            messages.success(request, f"{act.title}: accepted for job {job_id}.")
            return redirect("dashboard:job", job_id=job_id)
    context = {"section": "jobs", "act": act, "job": job, "refused": refused, "faults": faults, "given": request.POST}
    context["question"] = question(name, f"job {job_id}")
    if act.name == KILL and not refused:
        context["plan"] = killing.plan_kill([job_id], caller_of(request))
    code = 200 if not faults else 409 if _may(job, caller_of(request)) else 403
    return render(request, "tasks_app/job_do.html", context, status=code)


def _do_to_one(act: JobAct, job_id: int, request: HttpRequest) -> list[str]:
    """Do it; returns why that failed, in sentences, and then nothing was done."""
    caller = caller_of(request)
    try:
        reason = command_buttons.reason_in(request.POST)
    except ParamErrors as exc:
        return command_buttons.faults_of(exc)
    if act.name == KILL:
        return [] if killing.kill_for_a_reason([job_id], caller, reason) else ["You may not kill this job."]
    with transaction.atomic():
        if not set_debug(job_id, act.name == "debug"):
            return ["The job has ended, or its special handling has no room for this flag."]
        audit.record(caller.name, act.name, "job", job_id, reason=reason)
    return []


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes("command", "ids", "query")
def jobs_bulk(request: HttpRequest) -> HttpResponse:
    """Kill many jobs: `ids`, or `query` (the filters of the address of the list of jobs).

    Shows what would be hit; with POST and `confirm`, kills the jobs that were shown.
    """
    given = request.POST if request.method == "POST" else request.GET
    query = given.get("query", "").lstrip("?")
    act = JOB_ACTS[KILL]
    context: dict[str, Any] = {
        "section": "jobs",
        "act": act,
        "query": query,
        "back": chosen_rows.list_address("dashboard:jobs", query),
        "given": given,
        "faults": [],
    }
    try:
        if given.get("command", KILL) != KILL:
            raise bulk.SelectionError("command", "The only command for many jobs is kill.")
        ids = _chosen(given, query)
    except bulk.SelectionError as exc:
        context["faults"] = [str(exc)]
        return render(request, "tasks_app/jobs_bulk.html", context, status=400)
    caller = caller_of(request)
    if request.method == "POST" and "confirm" in given:
        try:
            reason = command_buttons.reason_in(given)
        except ParamErrors as exc:
            context["faults"] = command_buttons.faults_of(exc)
        else:
            killed = killing.kill_for_a_reason(ids, caller, reason)
            _tell(request, len(killed), len(ids) - len(killed))
            return redirect(chosen_rows.list_address("dashboard:jobs", query))
    plan = killing.plan_kill(ids, caller)
    context |= {"plan": plan, "ids": ",".join(map(str, plan.ids))}
    return render(request, "tasks_app/jobs_bulk.html", context, status=400 if context["faults"] else 200)


def _chosen(given: MultiValueDict[str, str], query: str) -> list[int]:
    """The jobs that the query finds or, in the end and without a query, those that are named. Raises SelectionError."""
    ids = chosen_rows.chosen_ids(given)
    if ids is not None:
        return bulk.checked_ids(ids, "job")
    found = bulk.filtered(JobFilter, Job.objects.only("id"), chosen_rows.filters_of(query), "job")
    if not found:
        raise bulk.SelectionError("query", "No job matches.")
    return [job.id for job in found]


def _tell(request: HttpRequest, killed: int, left: int) -> None:
    if killed:
        messages.success(
            request, f"{words.plural(killed, 'job')} killed; running ones stop after their next heartbeat."
        )
    if left:
        messages.warning(request, f"{words.plural(left, 'job')} not killed: already ended, or not yours.")
