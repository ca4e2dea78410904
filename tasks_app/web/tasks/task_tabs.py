"""Pages behind the tabs of a task, and two tasks side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from brokerage_app.models import ResourceType
from jedisite.identity.callers import Right, needs
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import details_in_words
from tasks_app.drawing import flows
from tasks_app.drawing.stacks import of_tones
from tasks_app.models import Command, Job, JobParamsTemplate, ScoutReport, Task, TaskParams, TaskStatusLog
from tasks_app.templatetags.dashboard import TABS
from tasks_app.web.frame import comparing, keyset_pages
from tasks_app.web.jobs.job_listing import LISTING as JOB_LISTING
from tasks_app.web.lists import list_page
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.machinery.trail import in_words
from tasks_app.web.tasks import page_queries, scout_words, task_facts

SHOWN = 200
TITLES = dict(TABS)
TONES: Final = {"finished": "ok", "failed": "bad", "cancelled or closed": "off", "running": "run", "waiting": "wait"}


def render_tab(request: HttpRequest, task: Task, tab: str, context: dict[str, Any]) -> HttpResponse:
    """The page of a tab; its template is named like it."""
    template = f"tasks_app/{tab.replace('-', '_')}.html"
    base = {"section": "tasks", "task": task, "tab": tab, "tab_title": TITLES[tab], "now": timezone.now()}
    return render(request, template, {**base, **context})


@needs(Right.READ)
@require_safe
@takes()
def task_sites(request: HttpRequest, task_id: int) -> HttpResponse:
    """How the task fares at each site, and what the broker said of it last."""
    task = get_object_or_404(Task, pk=task_id)
    sizes = set(ResourceType.objects.values_list("name", flat=True))
    rows = task_facts.sites(task_id, page_queries.latest_verdicts([task_id]).get(task_id), sizes)
    counted = sum(row.jobs for row in rows)
    context = {"rows": rows, "is_capped": counted >= task_facts.MOST_JOBS, "most": task_facts.MOST_JOBS}
    return render_tab(request, task, "task-sites", context)


JOBS = replace(JOB_LISTING, page="dashboard:task-jobs", template="tasks_app/task_jobs.html", has_views=False)


@needs(Right.READ)
@require_safe
def task_jobs(request: HttpRequest, task_id: int) -> HttpResponse:
    """The jobs of the task, of all attempts or only of the last ones."""
    task = get_object_or_404(Task, pk=task_id)
    return list_page.show(
        request,
        JOBS,
        Job.objects.filter(task_id=task_id),
        fixed={"task": str(task_id)},
        task=task,
        tab="task-jobs",
        tab_title=TITLES["task-jobs"],
    )


@needs(Right.READ)
@require_safe
@takes()
def task_scouts(request: HttpRequest, task_id: int) -> HttpResponse:
    """What scouts and later jobs measured, against what was declared."""
    task = get_object_or_404(Task, pk=task_id)
    reports = list(ScoutReport.objects.filter(task_id=task_id).order_by("-id")[:50])
    return render_tab(request, task, "task-scouts", {"scouting": scout_words.of_task(task), "reports": reports})


@needs(Right.READ)
@require_safe
@takes()
def task_flow(request: HttpRequest, task_id: int) -> HttpResponse:
    """What was read from where and written where."""
    task = get_object_or_404(Task, pk=task_id)
    found = flows.links(task_facts.flows(task_id))
    context = {
        "links": found[:SHOWN],
        "more": max(len(found) - SHOWN, 0),
        "sankey": flows.sankey(found),
        "most": task_facts.MOST_FLOWING,
    }
    return render_tab(request, task, "task-flow", context)


@needs(Right.READ)
@require_safe
@takes()
def task_profile(request: HttpRequest, task_id: int) -> HttpResponse:
    """How many jobs had come how far at which time."""
    task = get_object_or_404(Task, pk=task_id)
    now = timezone.now()
    found = task_facts.profile(task_id, now) or task_facts.profile(task_id, now, archived=True)
    context: dict[str, Any] = {"plot": None}
    if found is not None:
        table = list(zip(found.ends, found.made, *found.layers.values(), strict=True))
        context = {
            "plot": of_tones(found.ends, found.layers, TONES),
            "names": list(found.layers),
            "table": table[::-1],
        }
    return render_tab(request, task, "task-profile", context)


@needs(Right.READ)
@require_safe
@takes()
def task_params(request: HttpRequest, task_id: int) -> HttpResponse:
    """What was submitted, and the template of the jobs' parameters."""
    task = get_object_or_404(Task, pk=task_id)
    context = {
        "params": TaskParams.objects.filter(task_id=task_id).values_list("params", flat=True).first(),
        "template": JobParamsTemplate.objects.filter(task_id=task_id).values_list("template", flat=True).first(),
    }
    return render_tab(request, task, "task-params", context)


@needs(Right.READ)
@require_safe
@takes()
def task_audit(request: HttpRequest, task_id: int) -> HttpResponse:
    """Who did what to the task: the audit trail, its commands, and its states."""
    task = get_object_or_404(Task, pk=task_id)
    entries = AuditEntry.objects.filter(object_type="task", object_id=str(task_id)).order_by("-id")
    context = {
        "entries": [(entry, in_words(details_in_words(entry.action, entry.details))) for entry in entries[:SHOWN]],
        "commands": list(Command.objects.filter(task_id=task_id).order_by("-id")[:SHOWN]),
        "log": list(TaskStatusLog.objects.filter(task_id=task_id).order_by("-id")[:SHOWN]),
        "shown": SHOWN,
    }
    return render_tab(request, task, "task-audit", context)


@needs(Right.READ)
@require_safe
@takes("ids")
def task_compare(request: HttpRequest) -> HttpResponse:
    """Two tasks side by side: what differs in their attributes and in what was submitted."""
    texts = request.GET.get("ids", "").replace(" ", ",").split(",")
    wanted = [number for text in texts if (number := keyset_pages.number(text)) is not None]
    tasks = Task.objects.select_related("work_queue").in_bulk(wanted[:2])
    missing = [text for text in texts if text and keyset_pages.number(text) not in tasks][:4]
    context: dict[str, Any] = {"section": "tasks", "given": request.GET.get("ids", "")[:100], "missing": missing}
    if len(tasks) == 2:
        pair = [tasks[number] for number in wanted[:2]]
        params = {row.task_id: row.params for row in TaskParams.objects.filter(task_id__in=tasks)}
        context |= {
            "pair": pair,
            "attributes": comparing.differences(*map(comparing.attributes, pair)),
            "params": comparing.differences(*(comparing.flat(params.get(task.id) or {}) for task in pair)),
            "matrices": [page_queries.job_matrix(task.id) for task in pair],
        }
    return render(request, "tasks_app/task_compare.html", context)
