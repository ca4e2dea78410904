"""What a verdict says of queues, which may have variants for sizes of jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from brokerage_app.models import ResourceType, VerdictRecord
from tasks_app.dashboard import task_facts
from tasks_app.explaining.verdicts import QueueSkip, Reason, by_queue
from tasks_app.models import Job, Task

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
    VerdictRecord.objects.create(task_id=task.id, chosen=CHOSEN, skipped=SKIPPED, sentence="1 of 4 sites was chosen, RAL.")
    client.force_login(make_user())  # type: ignore[arg-type]
    text = client.get(f"/tasks/{task.id}/").content.decode()
    assert "Why 3 sites got nothing" in text and "LYON/SCORE" not in text and text.count("status is offline") == 1
    assert '<span class="muted">MCORE:</span> needs 9 h' in text
    VerdictRecord.objects.update(skipped=SKIPPED[1:4:2])
    assert "Why 1 site got nothing" in client.get(f"/tasks/{task.id}/").content.decode()
    make_job(task_id=task.id, site="RAL", status="running")
    rows = task_facts.sites(task.id, VerdictRecord.objects.get(), SIZES)
    assert [(row.site, row.jobs, row.is_chosen, row.verdict) for row in rows] == [
        ("RAL", 1, True, "chosen with weight 2.5")
    ], "what is said of a variant is said of the queue that has the jobs"
