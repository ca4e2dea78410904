"""The list of sites: the queues where work runs, how they do, and what they have to do."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from jedisite.web.columns import Row
from tasks_app.api.v2.grid_resources import QueueViewSet
from tasks_app.domain import words
from tasks_app.drawing import bullets
from tasks_app.lists.queue_columns import QUEUES
from tasks_app.templatetags import dashboard as tags
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.tasks import page_queries

COLUMN = QUEUES.by_name
COUNTED = "jobs_counted"
WORSE_BY = 10.0
"""Percentage points above the same hour a week ago from which on a failure rate is marked."""


def _name(row: Row, now: datetime) -> SafeString:
    return cells.link(reverse("dashboard:site", args=[row["name"]]), tags.breakable(row["name"]))


def _status(row: Row, now: datetime) -> SafeString:
    """The status; below it since when, who set it, and why."""
    chip = cells.status(row["status"], "", f"{reverse('dashboard:sites')}?status={row['status']}")
    since = tags.ago(row["status_since"], now) if row["status_since"] else ""
    by = f" by {row['status_by']}" if row["status_by"] else ""
    why = f"{': ' if by or since else ''}{words_of(row['status_reason'])}" if row["status_reason"] else ""
    if not since and not by and not why:
        return chip
    return format_html('{} <br><span class="small muted">{}{}{}</span>', chip, since, by, why)


def words_of(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cores(row: Row, now: datetime) -> SafeString:
    """Cores against the pledge, as a bar and in numbers; with a link to the jobs."""
    cores, pledged = row["cores"] or 0, row["pledged_cores"]
    bullet = bullets.of_cores(cores, pledged)
    jobs = f"{reverse('dashboard:jobs')}?{urlencode({'site': row['name'], 'status': page_queries.AT_PILOT}, safe=',')}"
    of = f" / {words.count(pledged)}" if pledged > 0 else ""
    return format_html('<a href="{}">{}</a>{}{}', jobs, words.count(cores), of, _bullet_svg(bullet))


def _pilots(row: Row, now: datetime) -> str | SafeString:
    """Workers that run, of those and the ones asked for."""
    running, asked = row["pilots_running"] or 0, row["pilots_requested"] or 0
    if not running and not asked:
        return "0"
    workers = f"{reverse('dashboard:workers')}?{urlencode({'site': row['name']})}"
    return format_html('<a href="{}">{}</a> / {}', workers, words.count(running), words.count(running + asked))


def _ended(row: Row, now: datetime) -> SafeString:
    """Jobs that finished and that failed in the last hour."""
    jobs = f"{reverse('dashboard:jobs')}?{urlencode({'site': row['name'], 'status': ''})}"
    good, bad = (row[name] or 0 for name in ("finished_1h", "failed_1h"))
    parts = ((f"{jobs}finished", good), (f"{jobs}failed", bad))
    shown = [format_html('<a href="{}">{}</a>', url, words.count(n)) if n else "0" for url, n in parts]
    return format_html("{}, {}", *shown)


def _failures(row: Row, now: datetime) -> str | SafeString:
    """The failure rate, with that of a week ago; marked when it is much worse."""
    value, then = row["failure_percent"], row["failure_percent_last_week"]
    text = cells.shown("percent", value, now)
    if value is not None and value >= (then or 0.0) + WORSE_BY:
        text = format_html('<strong class="worse">{}</strong>', text)
    return text if then is None else format_html('{} <span class="small muted">({})</span>', text, f"{then:.0f} %")


def _free(row: Row, now: datetime) -> str:
    return words.size(None if row["storage_free_gb"] is None else row["storage_free_gb"] * 1e9)


def _skipped(row: Row, now: datetime) -> str | SafeString:
    """Decisions of brokers for the queue and against it, and what they objected to most."""
    if not row["chosen"] and not row["skipped"]:
        return cells.DASH
    why = reverse("dashboard:site-why", args=[row["name"]])
    mostly = (
        format_html('<br><span class="mono small muted may-wrap">{}</span>', tags.breakable(row["skipped_mostly"]))
        if row["skipped_mostly"]
        else ""
    )
    return format_html(
        '{} : <a href="{}">{}</a>{}', words.count(row["chosen"] or 0), why, words.count(row["skipped"]), mostly
    )


def _jobs(name: str, status: str, *also: str) -> Cell:
    of = ("name", *also)
    return cells.counted("dashboard:jobs", COLUMN[name], lambda row: {"site": row["name"], "status": status}, of)


def _workers(name: str) -> Cell:
    return cells.counted("dashboard:workers", COLUMN[name], lambda row: {"site": row["name"]}, ("name",))


def _why(name: str) -> Cell:
    def render(row: Row, now: datetime) -> str | SafeString:
        value = row[name]
        if not value:
            return mark_safe("0") if value == 0 else cells.DASH
        return cells.link(reverse("dashboard:site-why", args=[row["name"]]), cells.shown(COLUMN[name].kind, value, now))

    return Cell(render, ("name",))


LISTING = Listing(
    page="dashboard:sites",
    api="api-v2:queues",
    section="sites",
    title="Sites",
    one="queue",
    many="queues",
    view=QueueViewSet,
    facets=(
        FacetOf("status", "Status", "status"),
        FacetOf("cloud", "Region", "cloud"),
        FacetOf("site", "Site", "site_name"),
        FacetOf("type", "Takes", "type"),
    ),
    cells={
        "name": Cell(_name),
        "site_name": cells.filtered("dashboard:sites", "site", COLUMN["site_name"]),
        "cloud": cells.filtered("dashboard:sites", "cloud", COLUMN["cloud"]),
        "status": Cell(_status, ("status_reason", "status_since", "status_by")),
        "cores": Cell(_cores, ("name", "pledged_cores", COUNTED)),
        "running": _jobs("running", page_queries.AT_PILOT, COUNTED),
        "queued": _jobs("queued", page_queries.QUEUED, COUNTED),
        "transferring": _jobs("transferring", "transferring", COUNTED),
        "pilots_requested": _workers("pilots_requested"),
        "pilots_running": Cell(_pilots, ("name", "pilots_requested")),
        "finished_1h": Cell(_ended, ("name", "failed_1h")),
        "failed_1h": _jobs("failed_1h", "failed"),
        "failure_percent": Cell(_failures, ("failure_percent_last_week",)),
        "chosen": _why("chosen"),
        "skipped": Cell(_skipped, ("name", "chosen", "skipped_mostly")),
        "skipped_mostly": _why("skipped_mostly"),
        "storage_free_gb": Cell(_free),
        **{name: cells.limit(COLUMN[name]) for name in ("max_memory_mb", "max_walltime_s")},
        "work_dir_mb": cells.limit(COLUMN["work_dir_mb"], none="not set"),
        "alerts": cells.counted("dashboard:overview", COLUMN["alerts"], lambda row: {}, ()),
    },
    refresh_s=30,
    counted=COUNTED,
    nothing_yet="No site is described yet. Add one in the admin under Queues, or run manage.py import_sites.",
)


@needs(Right.READ)
@require_safe
def site_list(request: HttpRequest) -> HttpResponse:
    """Queues by name unless the address says another order."""
    return list_page.show(request, LISTING)


def _bullet_svg(bullet: bullets.Bullet) -> SafeString:
    """The bar without a band, for cells of lists: what the template `partials/bullet.html` draws, quickly."""
    mark = ""
    if bullet.mark_start is not None:
        mark = format_html('<rect class="mark" x="{}%" y="8%" width="1.5%" height="84%"/>', bullet.mark_start)
    return format_html(
        '<svg class="bullet" role="img" aria-label="{}" preserveAspectRatio="none"><title>{}</title>'
        '<rect class="{}" x="0" y="28%" width="{}%" height="44%"/>{}</svg>',
        bullet.label,
        bullet.label,
        bullet.tone,
        bullet.value,
        mark,
    )
