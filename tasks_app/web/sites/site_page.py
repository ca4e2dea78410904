"""The pages of one queue: what it does, its worker nodes, its storage and network; and what people may do about it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import JSONObject
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from brokerage_app.grid import queue_status, samples
from brokerage_app.grid.full_storage import full_storage
from brokerage_app.models import (
    PilotCalls,
    Queue,
    QueueActivity,
    QueueEndpoint,
    QueueStatusLog,
    VerdictCount,
    WorkerNode,
)
from jedisite import audit
from jedisite.identity.callers import Right, caller_of, needs
from jedisite.models import AuditEntry
from tasks_app.dispatch.description import UNSAID_SCRATCH_MB
from tasks_app.domain import window, words
from tasks_app.domain.states import JOB_AT_PILOT
from tasks_app.drawing import bullets, strips
from tasks_app.drawing.stacks import of_series
from tasks_app.explaining.rules.wait_facts import pilot_command
from tasks_app.explaining.stored_verdicts import explained
from tasks_app.failures.failing_nodes import failing_nodes, find_black_holes
from tasks_app.failures.rules.black_holes import BlackHole, NodeEnds
from tasks_app.models import Job
from tasks_app.usage import site_use
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.tasks import page_queries

REFRESH_S = 30
USUAL_WINDOW = "24h"
POINTS = 150
HISTORY = 30
NODES = 200
LONGEST_NOTE = 1000
NOTE = "queue.note"
STATUS_WORDS: Final = {
    "online": "takes jobs",
    "test": "takes only jobs with the label test",
    "brokeroff": "drains: finishes its jobs; new ones only if bound to it",
    "standby": "takes production jobs, and work bound to it",
    "paused": "pilots get no jobs for now",
    "offline": "takes no jobs, and pilots get none",
}
STATUS_TONES = {status: words.tone(status) for status in Queue.STATUSES}


def _queue(name: str) -> Queue:
    """The queue with `activity`, what it has done lately, as a dictionary, and `uses`, names of its storage. One query."""
    uses = QueueEndpoint.objects.filter(queue=OuterRef("name")).order_by("endpoint_id").values("endpoint_id").distinct()
    activity = QueueActivity.objects.filter(site=OuterRef("name")).values(
        found=JSONObject(
            last_start="last_start",
            started_per_h="started_per_h",
            pilots_3h="pilots_3h",
            batch_jobs="batch_jobs",
            transferring_to="transferring_to",
        )
    )
    if "\x00" in name:
        raise Http404
    calls = PilotCalls.objects.filter(site=OuterRef("name"), last_get_job__isnull=False).order_by("-last_get_job")
    called = Subquery(calls.values("last_get_job")[:1])
    more: dict[str, Any] = {"called": called, "activity": Subquery(activity), "uses": ArraySubquery(uses)}
    queues = Queue.objects.select_related("storage").annotate(**more)
    return get_object_or_404(queues, pk=name)


def _frame(request: HttpRequest, queue: Queue, tab: str) -> dict[str, Any]:
    now = timezone.now()
    return {
        "section": "sites",
        "queue": queue,
        "tab": tab,
        "span": window.read(request.GET, now, USUAL_WINDOW),
        "may_operate": caller_of(request).may(Right.OPERATE),
        "seconds": REFRESH_S,
        "now": now,
    }


@needs(Right.READ)
@require_safe
@takes()
def site_page(request: HttpRequest, name: str) -> HttpResponse:
    """What the queue does: status and its history, jobs, pilots, what ran, errors, and what brokers said of it."""
    queue = _queue(name)
    context = _frame(request, queue, "site")
    now, span = context["now"], context["span"]
    jobs = site_use.open_jobs(name)
    step = samples.step_for(span.length, POINTS)
    ran = samples.each(
        "share", site=name, since=span.since, until=span.until, step=step, names=("running_cores",), under_way=True
    )
    ends_at = samples.steps(span.since, span.until, step, under_way=True)
    cores = {share: series.values["running_cores"] for share, series in ran.items()}
    log = QueueStatusLog.objects.filter(queue=name).order_by("-id")
    history = list(log.filter(Q(ended_at=None) | Q(ended_at__gt=span.since))[:HISTORY])
    notes = AuditEntry.objects.filter(object_type="queue", object_id=name[:64], action=NOTE).order_by("-id")[:10]
    verdicts = VerdictCount.objects.filter(
        Q(site=name) | Q(site__startswith=f"{name}/"), kind="job", day__gt=now - timedelta(days=2)
    )
    outcomes = list(verdicts.values("code").annotate(n=Sum("decisions")).order_by("-n")[:8])
    ends = site_use.ends(now, name).get(name, site_use.Ends())
    first_count_s = None if ends.at else site_use.first_count_within(now)
    context |= {
        "counted_at": jobs.counted,
        "jobs": jobs,
        "ends": ends,
        "counts_within": words.duration(first_count_s) if first_count_s else "",
        "called": queue.called,  # type: ignore[attr-defined]
        "pilots": site_use.pilot_flow(name, now),
        "activity": queue.activity or {"pilots_3h": None, "started_per_h": None},  # type: ignore[attr-defined]
        "last_start": _moment((queue.activity or {}).get("last_start")),  # type: ignore[attr-defined]
        "bullet": bullets.of_cores(jobs.cores, queue.pledged_cores),
        "plot": of_series(ends_at, cores),
        "points": [
            (at, [(share, values[i]) for share, values in cores.items()])
            for i, at in reversed(list(enumerate(ends_at)))
        ],
        "shares": list(cores),
        "history": history,
        "holds": next((row for row in history if row.ended_at is None), None),
        "strip": strips.strip(
            [strips.Held(row.new, row.at, row.ended_at, row.reason[:120]) for row in history],
            span.since,
            span.until,
            STATUS_TONES,
        ),
        "notes": notes,
        "holes": find_black_holes(span.since, span.until, name),
        "full": full_storage(name),
        "errors": site_use.top_errors(name, span.since, span.until),
        "outcomes": [(row["code"], explained(row["code"]) if row["code"] else None, row["n"]) for row in outcomes],
        "statuses": [(s, STATUS_WORDS[s]) for s in STATUS_WORDS],
        "limits": limits(queue),
        "pilot_command": pilot_command(name),
        "AT_PILOT": page_queries.AT_PILOT,
        "QUEUED": page_queries.QUEUED,
    }
    return render(request, "tasks_app/site_page.html", context)


def _moment(text: str | None) -> datetime | None:
    """A moment as PostgreSQL writes it into JSON."""
    found = datetime.fromisoformat(text) if text else None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


_UNSAID_SCRATCH: Final = f"not set: {words.count(UNSAID_SCRATCH_MB)} MB, or more if a job is expected to need more"


def limits(queue: Queue) -> list[tuple[str, str]]:
    """What a slot of the queue offers and what the queue asks, in words."""
    memory = f"{words.count(queue.max_memory_mb)} MB" if queue.max_memory_mb else "no limit"
    if queue.min_memory_mb:
        memory += f", at least {words.count(queue.min_memory_mb)} MB"
    walltime = words.duration(queue.max_walltime_s) if queue.max_walltime_s else "no limit"
    if queue.min_walltime_s:
        walltime += f", at least {words.duration(queue.min_walltime_s)}"
    return [
        ("Takes", {"unified": "production and analysis"}.get(queue.type, queue.type)),
        ("Cores per slot", str(queue.core_count) if queue.core_count > 0 else "any number"),
        ("Memory per slot", memory),
        ("Time", walltime),
        ("Scratch disk", f"{words.count(queue.work_dir_mb)} MB" if queue.work_dir_mb else _UNSAID_SCRATCH),
        ("Input per job", f"{words.count(queue.max_input_mb)} MB" if queue.max_input_mb > 0 else "no limit"),
        ("Power per core", f"{queue.core_power:g} HS23"),
        (
            "Transferring",
            words.plural(queue.transferring_limit, "job") if queue.transferring_limit else "general limit",
        ),
        ("Disk reads", f"{queue.max_disk_io_kbps:g} kB/s per core" if queue.max_disk_io_kbps else "general limit"),
        ("Connectivity", queue.connectivity or "unknown"),
        ("Policy", queue.policy or "none"),
    ]


@needs(Right.READ)
@require_safe
@takes()
def site_nodes(request: HttpRequest, name: str) -> HttpResponse:
    """Worker nodes: what failed there in the window, what runs there now, what they are; black holes first."""
    queue = _queue(name)
    context = _frame(request, queue, "nodes")
    span = context["span"]
    failing = failing_nodes(span.since, span.until, name)
    holes = {hole.ends.node: hole for hole in find_black_holes(span.since, span.until, name)}
    running = Job.objects.filter(site=name, status__in=JOB_AT_PILOT).values_list("worker_node").annotate(n=Count("id"))
    # A slot on a node is written slot@node.
    at_node: Counter[str] = Counter()
    for node, n in running.order_by():
        at_node[(node or "").rpartition("@")[2]] += n
    known = WorkerNode.objects.filter(Q(queue=name) | Q(queue="", site=queue.site_name)).order_by("-last_seen", "host")
    hardware = {node.host: node for node in known[:NODES]}
    context |= {"rows": _nodes(failing, holes, at_node, hardware), "holes": list(holes.values())}
    return render(request, "tasks_app/site_nodes.html", context)


def _nodes(
    failing: list[NodeEnds], holes: dict[str, BlackHole], running: Counter[str], hardware: dict[str, WorkerNode]
) -> list[dict[str, Any]]:
    """A row a node: black holes, then those with most failed jobs, then the busiest."""
    by_node = {node.node: node for node in failing}
    names = sorted(
        {*by_node, *(node for node in running if node), *hardware},
        key=lambda node: (node not in holes, -(by_node[node].failed if node in by_node else 0), -running[node], node),
    )
    return [
        {
            "node": node,
            "ends": by_node.get(node),
            "hole": holes.get(node),
            "running": running[node],
            "hardware": hardware.get(node),
        }
        for node in names[:NODES]
    ]


@needs(Right.READ)
@require_safe
@takes()
def site_data(request: HttpRequest, name: str) -> HttpResponse:
    """Storage that the queue reads and writes, what is being transferred, and how near other sites are."""
    queue = _queue(name)
    context = _frame(request, queue, "data")
    moving: dict[str, int] = (queue.activity or {}).get("transferring_to") or {}  # type: ignore[attr-defined]
    context |= {
        "endpoints": QueueEndpoint.objects.filter(queue=queue)
        .select_related("endpoint")
        .order_by("scope", F("order_write").asc(nulls_last=True), F("order_read").asc(nulls_last=True), "endpoint"),
        "moving": sorted(moving.items(), key=lambda pair: (-pair[1], pair[0])),
        "directions": [
            ("From here", "destination", site_use.links(queue.site_name, outward=True)),
            ("To here", "source", site_use.links(queue.site_name, outward=False)),
        ],
    }
    return render(request, "tasks_app/site_data.html", context)


@needs(Right.OPERATE)
@require_POST
def site_status(request: HttpRequest, name: str) -> HttpResponse:
    """Set the status of the queue, with a reason and perhaps an end."""
    get_object_or_404(Queue, pk=name)
    now = timezone.now()
    status, reason = request.POST.get("status", ""), request.POST.get("reason", "")
    try:
        until = _until(request.POST.get("until", ""), request.POST.get("hours", ""), now)
        row = queue_status.set_status(name, status, by=caller_of(request).name, reason=reason, until=until, now=now)
    except queue_status.QueueStatusError as exc:
        messages.error(request, f"{exc.field}: {exc}")
    else:
        end = f" until {row.until:%Y-%m-%d %H:%M} UTC, then {row.after}" if row.until else ""
        messages.success(request, f"{name} is {row.new}{end}.")
    return redirect("dashboard:site", name=name)


def _until(text: str, hours: str, now: datetime) -> datetime | None:
    """The end of a status: a time in UTC, or hours from now; None without either. Raises QueueStatusError."""
    try:
        if text.strip():
            found = datetime.fromisoformat(text.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return now + timedelta(hours=float(hours)) if hours.strip() else None
    except (ValueError, OverflowError) as exc:
        sentence = "Enter an end as a time such as 2026-01-31T08:00 (UTC), or as a number of hours."
        raise queue_status.QueueStatusError("until", sentence) from exc


@needs(Right.OPERATE)
@require_POST
def site_note(request: HttpRequest, name: str) -> HttpResponse:
    """Write down something about the queue for others to read."""
    get_object_or_404(Queue, pk=name)
    text = request.POST.get("note", "").strip()
    if not text or len(text) > LONGEST_NOTE or "\x00" in text:
        messages.error(request, f"note: enter 1 to {LONGEST_NOTE} characters, without U+0000.")
    else:
        with transaction.atomic():
            audit.record(caller_of(request).name, NOTE, "queue", name, reason=text)
        messages.success(request, "Note saved.")
    return redirect("dashboard:site", name=name)
