"""How the list of tasks is shown."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jedisite.web.columns import Row
from tasks_app.api.v2.task_resources import TaskViewSet
from tasks_app.domain import words
from tasks_app.domain.progress import Progress
from tasks_app.lists.task_columns import TASKS
from tasks_app.params.acts import ACTS
from tasks_app.templatetags import dashboard as tags
from tasks_app.web.lists import cells
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.tasks import page_queries

COLUMN = TASKS.by_name
BLOCKED_CHARACTERS = 160


def _name(row: Row, now: datetime) -> SafeString:
    return cells.link(reverse("dashboard:task", args=[row["id"]]), tags.breakable(row["name"] or "(no name)"))


def _blocked(row: Row, now: datetime) -> str | SafeString:
    """What blocks the task, with the way to its whole story."""
    if not row["blocked_by"]:
        return cells.DASH
    why = reverse("dashboard:task-why", args=[row["id"]])
    return format_html(
        '<a class="blocked" href="{}">{}</a>', why, cells.shortened(row["blocked_by"], BLOCKED_CHARACTERS)
    )


def _status(row: Row, now: datetime) -> SafeString:
    """The status, and since when."""
    chip = cells.status(row["status"], "task", f"{reverse('dashboard:tasks')}?{urlencode({'status': row['status']})}")
    return format_html('{} <span class="small muted">{}</span>', chip, cells.shown("ago", row["since"], now))


def _progress(row: Row, now: datetime) -> str | SafeString:
    done = Progress(row["files"], row["files_finished"], row["files_failed"], row["files_working"])
    if not done.total:
        return "no files"
    failed = f", {words.count(done.failed)} failed" if done.failed else ""
    return format_html(
        '<span class="bar-text">{} % of {}{}</span>{}',
        done.percent,
        words.plural(done.total, "file"),
        failed,
        tags.bar_of(done),
    )


def _jobs(name: str, status: str) -> Cell:
    return cells.counted("dashboard:jobs", COLUMN[name], lambda row: {"task": row["id"], "status": status}, ("id",))


LISTING = Listing(
    page="dashboard:tasks",
    api="api-v2:tasks",
    section="tasks",
    title="Tasks",
    one="task",
    many="tasks",
    view=TaskViewSet,
    facets=(
        FacetOf("status", "Status", "status"),
        FacetOf("share", "Share", "gshare"),
        FacetOf("queue", "Work queue", "work_queue__name"),
        FacetOf("user", "User", "user"),
        FacetOf("type", "Type", "task_type"),
        FacetOf("resource_type", "Resource type", "resource_type"),
    ),
    cells={
        "id": cells.to("dashboard:task", COLUMN["id"]),
        "name": Cell(_name, ("id",)),
        "blocked_by": Cell(_blocked, ("id",)),
        "status": Cell(_status, ("since",)),
        "progress": Cell(_progress, ("files", "files_finished", "files_failed", "files_working")),
        "running": _jobs("running", page_queries.AT_PILOT),
        "queued": _jobs("queued", page_queries.QUEUED),
        "failed": _jobs("failed", "failed"),
        "finished": _jobs("finished", "finished"),
        "reason": cells.filtered("dashboard:tasks", "reason", COLUMN["reason"]),
        "user": cells.filtered("dashboard:tasks", "user", COLUMN["user"]),
        "task_type": cells.filtered("dashboard:tasks", "type", COLUMN["task_type"]),
        "gshare": cells.filtered("dashboard:tasks", "share", COLUMN["gshare"]),
        "work_queue": cells.filtered("dashboard:tasks", "queue", COLUMN["work_queue"]),
        "nucleus": cells.filtered("dashboard:tasks", "nucleus", COLUMN["nucleus"]),
        "parent_id": cells.to("dashboard:task", COLUMN["parent_id"]),
        "req_id": cells.filtered("dashboard:tasks", "request", COLUMN["req_id"]),
    },
    bulk="dashboard:tasks-bulk",
    actions=[(act.name, act.title) for act in ACTS.values() if act.for_many],
    nothing_yet="No task has been submitted yet.",
    nothing_help="partials/submit.html",
)
