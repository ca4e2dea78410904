"""What a verdict says of queues, which may have variants for sizes of jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from brokerage_app.brokers.choosing import ANALYSIS, decide
from brokerage_app.cases.case import grid_of
from brokerage_app.grid.describing import with_pseudo
from brokerage_app.models import Queue, ResourceType, VerdictCount, VerdictRecord
from brokerage_app.policy.configuration import Configuration
from brokerage_app.verdicts.records import Decided, fold, keep
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.explaining.stored_verdicts import QueueSkip, Reason, answers, by_queue, nearest_of, steps
from tasks_app.explaining.why_site import why_site
from tasks_app.models import Job, Task
from tasks_app.web.tasks import task_facts

SIZES = {"SCORE", "MCORE"}
SKIPPED = [
    ["CERN/SCORE", "low_memory", "needs 4000 MB, the site gives 2000 MB", [4000, 2000]],
    ["LYON/SCORE", "site_offline", "the site's status is offline", []],
    ["CERN/MCORE", "short_walltime", "needs 9 h, the site gives 4 h", []],
    ["LYON/MCORE", "site_offline", "the site's status is offline", []],
    ["BNL/PROD", "excluded", "the task excludes it", []],
    ["RAL/MCORE", "low_memory", "needs 4000 MB, the site gives 2000 MB", []],
]
CHOSEN = [["RAL/SCORE", 2.5, {}]]


def test_variants_of_a_queue_are_one_row_and_differing_reasons_stand_inside() -> None:
    assert by_queue(SKIPPED, CHOSEN, SIZES) == [
        QueueSkip(
            "CERN",
            (
                Reason("low_memory", "needs 4000 MB, the site gives 2000 MB", ("SCORE",)),
                Reason("short_walltime", "needs 9 h, the site gives 4 h", ("MCORE",)),
            ),
        ),
        QueueSkip("LYON", (Reason("site_offline", "the site's status is offline"),)),
        QueueSkip("BNL/PROD", (Reason("excluded", "the task excludes it"),)),
    ]


@pytest.mark.django_db
def test_the_page_of_a_task_counts_queues(
    client: Client, make_user: Callable[..., object], make_task: Callable[..., Task], make_job: Callable[..., Job]
) -> None:
    for position, size in enumerate(sorted(SIZES)):
        ResourceType.objects.get_or_create(name=size, defaults={"position": position})
    task = make_task(status="running")
    VerdictRecord.objects.create(
        task_id=task.id, chosen=CHOSEN, skipped=SKIPPED, sentence="1 of 4 sites was chosen, RAL."
    )
    client.force_login(make_user())  # type: ignore[arg-type]
    text = client.get(f"/tasks/{task.id}/").content.decode()
    assert "Why 3 sites were skipped" in text and "LYON/SCORE" not in text and text.count("status is offline") == 1
    assert '<span class="muted">MCORE:</span> needs 9 h' in text
    VerdictRecord.objects.update(skipped=SKIPPED[1:4:2])
    assert "Why 1 site was skipped" in client.get(f"/tasks/{task.id}/").content.decode()
    make_job(task_id=task.id, site="RAL", status="running")
    rows = task_facts.sites(task.id, VerdictRecord.objects.get(), SIZES)
    assert [(row.site, row.jobs, row.is_chosen, row.verdict) for row in rows] == [
        ("RAL", 1, True, "chosen with weight 2.5")
    ], "what is said of a variant is said of the queue that has the jobs"


@pytest.mark.django_db
def test_steps_sites_nearly_counts_and_the_page_of_a_site_count_queues(make_task: Callable[..., Task]) -> None:
    """One count everywhere: a queue that cuts its slots to size is one site, whatever its variants were told."""
    views = [
        SiteView("TIGHT", outputs=("SE",), cores=8, max_memory_mb=1000, capability="ucore"),
        SiteView("OFF", status="offline"),
    ]
    views.append(SiteView("WIDE", outputs=("SE",), cores=8, max_memory_mb=128_000, capability="ucore"))
    world, task = grid_of(with_pseudo(views, DEFAULT_TABLE)), make_task(status="pending").id
    assert len(world.sites) == 3 + 2 * 4
    needs = TaskNeeds(task_id=task, cores=1, memory_mb=3000, share="MC", label="user", vo="atlas")
    verdict = decide(needs, world, Configuration())
    record = VerdictRecord.objects.get(pk=keep(Decided(task, verdict, needs, broker=ANALYSIS)))
    assert {(one.site, one.code) for one in answers(record)} == {
        ("WIDE", ""),
        ("TIGHT", "low_memory"),
        ("OFF", "site_offline"),
    }
    assert [(step.code, step.before, step.after) for step in steps(record)] == [
        ("site_offline", 3, 2),
        ("low_memory", 2, 1),
    ]
    assert [(one["site"], one["need"], one["offer"]) for one in nearest_of(record)] == [("TIGHT", 2700, 125)]
    fold()
    assert sorted(VerdictCount.objects.values_list("site", "code", "decisions")) == [
        ("OFF", "site_offline", 1),
        ("TIGHT", "low_memory", 1),
        ("WIDE", "", 1),
    ]
    for view in views:
        Queue.objects.create(name=view.name, site_name=view.name)
    found = {view.name: why_site(Queue.objects.get(name=view.name)) for view in views}
    assert [(one["code"], one["tasks"]) for one in found["TIGHT"]["reasons"]] == [("low_memory", 1)]
    assert [(one["need"], one["offer"]) for one in found["TIGHT"]["nearly"]] == [(2700, 125)]
    assert found["TIGHT"]["nearly"][0]["sentence"] == (
        "needs 2700 MB, the site gives 125 MB (1 of the 8 cores of a slot of 1000 MB)"
    )
    assert (found["WIDE"]["reasons"], found["WIDE"]["chosen_for"]) == ([], 1)
