"""Every page in a real browser: it fits wide and narrow windows, and axe finds no serious fault in it in either theme.

Run without `-n`, it leaves pictures of every page in the test's folder (`--basetemp` says where).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import URLPattern, reverse
from django.utils import timezone

from brokerage_app.models import GlobalShare, StorageEndpoint, VerdictRecord, WorkQueue
from events_app.web import range_urls
from jedisite import audit
from jedisite.identity import device_logins
from jedisite.models import Agent, AgentPass
from tasks_app.agents import attention, samples
from tasks_app.ddm.addresses import storage_path
from tasks_app.failures.booking import book_ends
from tasks_app.models import (
    CatalogueDataset,
    CatalogueFile,
    Command,
    Dataset,
    ErrorFingerprint,
    File,
    Job,
    SavedView,
    Task,
    TaskStatusLog,
    Worker,
    WorkflowPackage,
)
from tasks_app.templatetags.dashboard import TABS
from tasks_app.web.urls import urlpatterns
from tests.browser.conftest import NARROW, WIDE
from tests.conftest import FIRST_JOB
from tests.ended_jobs import note_failed
from tests.events_app.busy_ranges import fill
from tests.tasks_app.web.workflows.some_workflows import LARGE, in_part, stored
from tests.thorough import FULL

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
Addresses = dict[str, list[str]]
LEFT_OUT = {
    # no pages of their own: they answer POST, lead elsewhere, or are not HTML
    "search-suggestions",
    "view-save",
    "view-change",
    "metrics",
    "workflow-dagman",
    "agent-action",
    "error-classify",
    "share-targets-change",
    "site-status",
    "site-note",
    "attention-action",
    "own-tasks-seen",
    "shift-report",
    "shift-note",
    "shift-hand-over",
    "shift-acknowledge",
    "events:api-ranges",
}
SERIOUS = ("serious", "critical")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
LOOK = """([leftOut, serious, known]) => {
    const others = axe._audit.rules.filter(rule => rule.impact && !serious.includes(rule.impact));
    const rules = Object.fromEntries(others.map(rule => [rule.id, {enabled: false}]));
    const options = {rules, resultTypes: ["violations"], reporter: "no-passes", preload: false};
    const contrast = axe._audit.checks["color-contrast"], measure = contrast.evaluate;
    const readable = new Set(known), places = new Map();
    const hash = text => {
        let [a, b] = [1, 2];
        for (let i = 0; i < text.length; i++) {
            a = Math.imul(a ^ text.charCodeAt(i), 2654435761);
            b = Math.imul(b ^ text.charCodeAt(i), 1597334677);
        }
        return `${a >>> 0}.${b >>> 0}`;
    };
    const placeOf = node => {
        if (node && !places.has(node)) {
            const {backgroundColor, backgroundImage, opacity} = getComputedStyle(node);
            const named = [node.tagName, node.getAttribute("class"), node.getAttribute("style")];
            places.set(node, hash([placeOf(node.parentElement), ...named, backgroundColor, backgroundImage, opacity].join()));
        }
        return places.get(node);
    };
    contrast.evaluate = function (node, ...more) {
        const {color, fontSize, fontWeight, textShadow} = getComputedStyle(node);
        const look = hash([placeOf(node), color, fontSize, fontWeight, textShadow].join());
        const found = readable.has(look) || measure.call(this, node, ...more);
        if (found) readable.add(look);
        return found;
    };
    const end = found => {
        contrast.evaluate = measure;
        return [found.violations, [...readable]];
    };
    return axe.run(leftOut.length ? {exclude: leftOut} : document, options).then(end);
}"""
"""Applies the rules that a serious fault would break; what the others find is not looked at, and they take time.

Most of it is taken by contrast. It is measured for one of all texts that look alike, which are those whose colours, sizes and
classes, and those of all that they stand in, are the same. `known` are the looks that were found readable before.
"""
SETTLED = """async () => {
    const frame = () => new Promise(requestAnimationFrame);
    while (document.querySelector(".htmx-request")) await frame();
    await frame();
    await frame();
    await Promise.allSettled(document.getAnimations().map(animation => animation.finished));
}"""
"""Parts that pages ask for are there, drawings have the size of their window, and no colour is still changing, which would be of
neither theme.
"""
FRAME = [[".topbar"], [".frame > nav"]]
"""What stands round every page and is the same on all."""
MORE_ROWS = [["tbody tr:nth-child(n + 11)"]]
"""Rows that are built like the ten above them; with JEDI_TEST_ALL=full they are looked at under the light theme."""


@pytest.fixture
def addresses(
    moved: Task,
    failed_job: Job,
    sites: None,
    tmp_path: Path,
    settings: Any,
    make_task: Callable[..., Task],
    make_job: Callable[..., Job],
) -> Addresses:
    """Addresses by the name of the page, over tables as a busy installation has them."""
    busy_task, ranged = moved, fill(make_task, make_job)
    now = timezone.now()
    Agent.objects.all().delete()
    Agent.objects.create(name="refiner", title="Turns parameters into tasks", period_s=5, due_at=now, passes=12345)
    Agent.objects.create(name="feeder", title="Lists the files of inputs", period_s=5, due_at=now - timedelta(hours=2))
    Agent.objects.create(name="adder", title="Books outcomes", period_s=5, due_at=now, last_error="Traceback: x" * 30)
    for number, status in enumerate(("running", "done", "failed", "exhausted", "aborted", "pending", "broken"), 100):
        name = f"user.ada.{status}." + "long_name." * 6
        why = "All 3 sites were skipped: 2 low memory, 1 site offline."
        Task.objects.create(
            id=busy_task.id + number,
            name=name,
            status=status,
            user="ada",
            task_type="anal",
            current_priority=900,
            error_dialog=why,
        )
    reason = "killed by ada: wrong input"
    TaskStatusLog.objects.create(
        task_id=busy_task.id, old_status="running", status="pending", by="commando", reason=reason
    )
    Command.objects.create(
        task_id=busy_task.id, name="pause", owner="ada", comment="wait for calibration", status="done"
    )
    settings.JEDI_STORAGE = tmp_path / "storage"
    settings.JEDI_DEV_ISSUER, settings.JEDI_SERVER_URL = "dev", "http://127.0.0.1:8000"
    histogram = _histogram(busy_task.id, settings.JEDI_STORAGE)
    note_failed(now - timedelta(days=1))
    book_ends(1000)
    begun = device_logins.start()
    assert begun is not None
    task, job = busy_task.id, failed_job.id
    verdict = VerdictRecord.objects.filter(task_id=task).latest("id").id
    dataset = Dataset.objects.filter(task_id=task).earliest("id").id
    kept = CatalogueDataset.objects.create(name=f"user.ada.{'measurements_' * 9}", scope="user.ada", owner="ada")
    box = CatalogueDataset.objects.create(name="user.ada.box/", scope="user.ada", open=False)
    box.members.add(kept)
    CatalogueFile.objects.create(
        dataset=kept,
        lfn=f"{'x' * 120}.root",
        scope="user.ada",
        guid="g",
        size=12345678,
        adler32="0badcafe",
        endpoint="LOCAL_SE",
        url="file:///x",
    )
    GlobalShare.objects.create(name="Analysis", value=100)
    queue = WorkQueue.objects.create(
        name="analysis", type="user", vo="lab", criteria="processing_type = 'test'", order=1
    )
    worker = Worker.objects.create(harvester="h", worker_id=1, site="SITE_A", status="running", message="x" * 300)
    ran = AgentPass.objects.create(agent="adder", started_at=now, duration_s=0.3, items=4, note="4 jobs", host="node1")
    SavedView.objects.create(owner="grace", page="tasks", name="Stuck ones", query="status=pending", pinned=True)
    audit.record("grace", "pause", "agent", "feeder", reason="database at work")
    StorageEndpoint.objects.get_or_create(name="DISK", defaults={"site_name": "A"})
    kind = ErrorFingerprint.objects.earliest("id")
    workflow, large = in_part(), stored(LARGE)
    package = WorkflowPackage.objects.filter(workflow=workflow).earliest("pk").pk
    for agent in (samples, attention):
        agent.run()
    return {
        "overview": ["/", "/?window=24h"],
        "attention": ["/attention/"],
        "own-tasks": ["/my-tasks/"],
        "shift": ["/shift/", "/shift/?window=24h"],
        "search": ["/search/?q=user.ada", "/search/?q=nothing-has-this-name", "/search/", "/search/?q=ada&kind=task"],
        "tasks": ["/tasks/?view=all", "/tasks/?name=nothing-has-this-name", "/tasks/?status=running&density=compact"],
        "events:events": ["/events/"],
        "events:task": [f"/tasks/{ranged.task.id}/events/", f"/tasks/{task}/events/"],
        "events:ranges": [f"/tasks/{ranged.task.id}/events/ranges/?view=all"],
        "task-histograms": [f"/tasks/{task}/histograms/"],
        "histogram": [f"/tasks/{task}/histograms/{histogram.id}/"],
        **{name: [reverse(f"dashboard:{name}", args=[task])] for name, _ in TABS},
        "task-what-if": [f"/tasks/{task}/what-if/"],
        "task-compare": [f"/tasks/compare/?ids={task},{task + 101}"],
        "task-do": [f"/tasks/{task}/do/{act}/" for act in ("kill", "reassign", "resume")],
        "tasks-bulk": [f"/tasks/bulk/?command=kill&ids={task}&ids={task + 101}&ids=7", "/tasks/bulk/?query=user%3Dada"],
        "jobs": ["/jobs/?view=all"],
        "job": [f"/jobs/{job}/", f"/jobs/{ranged.consumer.id}/"],
        "job-why": [f"/jobs/{job}/why/"],
        "job-timeline": [f"/jobs/{job}/timeline/"],
        "job-log": [f"/jobs/{job}/log/"],
        "jobs-compare": [f"/jobs/compare/?ids={job},{job + 1}"],
        "job-do": [f"/jobs/{FIRST_JOB}/do/kill/"],
        "jobs-bulk": [f"/jobs/bulk/?query=task%3D{task}"],
        "workflows": ["/workflows/?view=all", "/workflows/?name=nothing-has-this-name"],
        "workflow": [f"/workflows/{workflow.pk}/", f"/workflows/{large.pk}/"],
        "workflow-line": [f"/workflows/{workflow.pk}/lines/001/001/", f"/workflows/{workflow.pk}/lines/002/001/"],
        "workflow-packages": [f"/workflows/{workflow.pk}/packages/?view=all"],
        "workflow-do": [f"/workflows/{workflow.pk}/do/{act}" for act in ("retry/", "priority/", "drop/?line=001/002")],
        "workflow-node": ["/workflows/node/", "/workflows/node/?node=wn7"],
        "workflow-packages-bulk": [f"/workflows/packages/bulk/?command=drop&ids={package}"],
        "workflow-check": ["/workflows/check/"],
        "errors": ["/errors/"],
        "errors-pivot": ["/errors/pivot/"],
        "errors-jobs": ["/errors/jobs/"],
        "error": [f"/errors/{kind.id}/"],
        "views": ["/views/"],
        "brokerage": ["/brokerage/"],
        "what-if": ["/brokerage/what-if/"],
        "decision": [f"/brokerage/{verdict}/"],
        "help": ["/help/"],
        "help-codes": ["/help/codes/"],
        "code": ["/help/codes/low_memory/"],
        "help-parameters": ["/help/parameters/"],
        "help-states": ["/help/states/"],
        "help-glossary": ["/help/glossary/"],
        "help-configuration": ["/help/configuration/"],
        "sites": ["/sites/?view=all"],
        "site": ["/sites/SITE_A/"],
        **{f"site-{tab}": [f"/sites/SITE_A/{tab}/"] for tab in ("why", "nodes", "data")},
        "shares": ["/shares/"],
        "share": ["/shares/Analysis/"],
        "share-why": ["/shares/Analysis/why/"],
        "share-targets": ["/share-targets/"],
        "queues": ["/queues/"],
        "queue": [f"/queues/{queue.id}/"],
        "queue-tester": ["/queues/tester/"],
        "workers": ["/workers/?view=all"],
        "worker": [f"/workers/{worker.id}/"],
        "data": ["/data/"],
        "transfers": ["/transfers/"],
        "dataset": [f"/data/{dataset}/"],
        "catalogued": [f"/data/catalogue/{kept.id}/", f"/data/catalogue/{box.id}/"],
        "users": ["/users/"],
        "user": ["/users/ada/"],
        "audit": ["/audit/?view=all"],
        "agents": ["/agents/"],
        "agent": ["/agents/adder/"],
        "agent-pass": [f"/agents/adder/passes/{ran.id}/"],
        "timeouts": ["/timeouts/"],
        "tokens": ["/tokens/"],
        "device": [f"/dev-issuer/verify?user_code={begun[1]}", "/dev-issuer/verify"],
        "login": ["/login/"],
    }


def _histogram(task_id: int, root: Path) -> File:
    """A file with two histograms in the storage, as a task makes it."""
    edges = [round(60 + 0.75 * i, 2) for i in range(81)]
    counts = [round(900 * math.exp(-(((e - 91) / 3) ** 2)) + 40 * math.exp(-(e - 60) / 20)) for e in edges[:-1]]
    errors = [math.sqrt(count) for count in counts]
    mass = {
        "name": "mass",
        "title": "Mass of the pair",
        "x_label": "GeV",
        "edges": edges,
        "counts": counts,
        "errors": errors,
    }
    few = {"title": "Pairs", "xlabel": "m(mu+ mu-)", "unit": "GeV", "low": 0, "high": 4, "counts": [1, 0, 9, 2]}
    few |= {"underflow": 3, "events_in": 12000, "peak": {"value": 2.5, "error": 0.125}}
    path = storage_path(root, "user.ada", "x.hist.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"histograms": [mass, few]}))
    return File.objects.create(
        task_id=task_id, dataset_id=1, lfn="x.hist.json", type="output", status="finished", scope="user.ada", size=1234
    )


def test_every_page_has_an_address_here(addresses: Addresses) -> None:
    names = {entry.name for entry in urlpatterns if isinstance(entry, URLPattern)}
    names |= {f"events:{entry.name}" for entry in range_urls.urlpatterns}
    assert names - LEFT_OUT - set(addresses) == set()


def test_every_page_fits_and_can_be_read_by_all(
    open_page: Any, addresses: Addresses, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each page is loaded once and then looked at under each theme, with the width that goes with it; its frame once in all."""
    page, faults = open_page("/"), []
    page.locator("[data-pause-button]").click()  # no part of a page is replaced while it is looked at
    pictures = not hasattr(request.config, "workerinput")
    server = page.url.rstrip("/")
    frame: list[list[str]] = []
    readable: list[str] = []
    for name, paths in addresses.items():
        for number, path in enumerate(paths):
            page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
            page.emulate_media(color_scheme="light")
            answer = page.goto(server + path)
            assert answer is not None and answer.ok, f"{path} was answered with {answer and answer.status}"
            page.evaluate(AXE)
            faults += faults_of(page, f"{path}, wide and light", frame if FULL else frame + MORE_ROWS, readable)
            if pictures:
                page.screenshot(path=tmp_path / f"{name}-{number}-light-{WIDE[0]}.png", full_page=True)
            page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
            page.emulate_media(color_scheme="dark")
            faults += faults_of(page, f"{path}, narrow and dark", frame + MORE_ROWS, readable)
            if pictures:
                page.screenshot(path=tmp_path / f"{name}-{number}-dark-{NARROW[0]}.png", full_page=True)
            frame = FRAME
    assert not faults, "\n".join(faults)


def faults_of(page: Page, where: str, leave_out: list[list[str]], readable: list[str]) -> list[str]:
    """Sentences on what is too wide, and on what axe, which is in the page, finds in it as it is now.

    `readable` are the looks of texts that need not be measured again, to which those of this page are added.
    """
    page.evaluate(SETTLED)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    found, readable[:] = page.evaluate(LOOK, [leave_out, SERIOUS, [] if FULL else readable])
    return [f"{where}, is {overflow} px wider than its window"] * (overflow > 0) + [
        f"{where}: {v['id']} ({v['impact']}): {v['help']}: {v['nodes'][0]['html'][:200]}"
        for v in found
        if v["impact"] in SERIOUS
    ]
