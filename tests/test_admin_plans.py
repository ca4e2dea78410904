"""No list of a large table in the admin reads the table: each filter, search and page goes through an index."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext

from brokerage_app.models import DatasetReplica, ReplicaLookup, VerdictRecord
from events_app.models import Event
from jedisite.admin import list_paging
from jedisite.admin.base import LargeTableAdmin
from jedisite.models import AgentPass, AuditEntry
from tasks_app import models as tasks
from tests.plans import fill_table, plan_of, scanned
from tests.test_admin import address

ROWS = 6000
SPREAD = "(ARRAY[10000000, 11000000, 90000000])[1 + i % 3]::bigint + i / 40"
"""Task ids in each partition of the files, the default one too; about 13 rows of a table for each."""
TIMES = "date_trunc('month', now()) + (i % 5 - 1) * interval '30 days' + i * interval '1 minute'"
"""Times in each month that has a partition, and in months that have none."""
TABLES: dict[type[models.Model], dict[str, str]] = {
    tasks.File: {
        "jeditaskid": SPREAD,
        "datasetid": "i / 10",
        "status": "'ready'",
        "type": "'input'",
        "lfn": "'f' || i",
    },
    tasks.Job: {"jeditaskid": SPREAD, "jobstatus": "(ARRAY['finished', 'failed', 'running'])[1 + i % 3]"}
    | {"computingsite": "'S' || i % 200"},
    tasks.JobArchive: {"jeditaskid": SPREAD, "jobstatus": "'failed'", "modificationtime": TIMES},
    tasks.JobFile: {"pandaid": "i / 10", "fileid": "i / 2"},
    tasks.TaskStatusLog: {"jeditaskid": SPREAD, "modificationtime": TIMES},
    tasks.JobStatusLog: {"pandaid": "i / 5", "modificationtime": TIMES},
    tasks.JobRetryHistory: {"jeditaskid": SPREAD, "ins_utc_tstamp": TIMES},
    Event: {
        "jeditaskid": SPREAD,
        "pandaid": "i / 10",
        "fileid": "i / 20",
        "job_processid": "i",
        "def_max_eventid": "i",
    },
    AgentPass: {"agent": "'agent' || i % 300", "started_at": TIMES},
    AuditEntry: {"object_type": "'task'", "object_id": "i::text"},
    tasks.Dataset: {
        "jeditaskid": "1 + i / 10",
        "type": "'input'",
        "status": "'ready'",
        "containername": "'c' || i / 9",
    },
    tasks.CatalogueFile: {"dataset_id": "1 + i / 10"},
    tasks.FileRetry: {"fileid": "i", "jeditaskid": SPREAD, "datasetid": "i / 10"},
    VerdictRecord: {"jeditaskid": SPREAD},
    ReplicaLookup: {"datasetname": "'d' || i"},
    DatasetReplica: {"datasetname": "'d' || i / 5", "endpoint": "'SE' || i"},
    tasks.SubmissionKey: {"caller": "'u' || i / 5", "created": "now() - i * interval '1 second'"},
}
PARENTS: dict[type[models.Model], tuple[str, dict[str, str]]] = {
    tasks.Dataset: ("jedi_tasks", {"status": "'running'"}),
    tasks.CatalogueFile: ("catalogue_datasets", {"id": "i"}),
}

pytestmark = pytest.mark.django_db


@pytest.fixture
def grace(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("grace"))
    return client


def watched(name: str, table: str) -> bool:
    return name == table or name.startswith(f"{table}_")


def queries_of(row: models.Model, model_admin: LargeTableAdmin) -> list[str]:
    """Query strings: nothing, each filter with a value of the row, each filter within another, each search."""
    found = [""]
    exact = [f for f in model_admin.list_filter if hasattr(f, "form_class")]
    for item in exact:
        value = getattr(row, item.field_name)
        if value is None:
            continue
        outer = "".join(f"{name}={getattr(row, name)}&" for name in item.within)
        found.append(f"{outer}{item.parameter_name}={value}")
        for other in model_admin.list_filter:
            for option in getattr(other, "options", ())[:1]:
                found.append(f"{item.parameter_name}={value}&{other.parameter_name}={option}")
    if "month" in [getattr(f, "parameter_name", "") for f in model_admin.list_filter]:
        found.append(f"month={row._meta.model._base_manager.dates(_month_column(model_admin), 'month')[1]:%Y%m}")
    return found + [f"q={getattr(row, str(s).removesuffix('__exact'))}" for s in model_admin.search_fields] + ["q=0"]


def _month_column(model_admin: LargeTableAdmin) -> str:
    return next(str(f.field_name) for f in model_admin.list_filter if f.parameter_name == "month")


@pytest.mark.parametrize("model", TABLES, ids=lambda m: m.__name__)
def test_nothing_that_a_list_or_a_page_asks_reads_the_table(grace, model, monkeypatch):
    monkeypatch.setattr(
        list_paging, "EXACT_UP_TO", 150
    )  # as small beside this table as the real one beside a large one
    if model in PARENTS:
        fill_table(PARENTS[model][0], 1 + ROWS // 10, **PARENTS[model][1])
    fill_table(model._meta.db_table, ROWS, **TABLES[model])
    model_admin = admin.site._registry[model]
    assert isinstance(model_admin, LargeTableAdmin)
    row = model._base_manager.order_by("pk")[ROWS // 2]
    pages = [f"{address(model, 'changelist')}?{query}" for query in queries_of(row, model_admin)]
    for page in [*pages, model_admin.url_of(row)]:
        with CaptureQueriesContext(connection) as context:
            assert grace.get(page).status_code == 200
        asked = [q["sql"] for q in context.captured_queries if f'FROM "{model._meta.db_table}"' in q["sql"]]
        assert asked, page
        for sql in asked:
            if sql.startswith("EXPLAIN"):
                continue
            plan = plan_of(sql)
            bad = [name for name in scanned(plan) if watched(name, model._meta.db_table)]
            assert not bad, f"{page}\n{sql}\n{plan}"


def test_a_filter_that_needs_another_is_not_offered_alone(grace):
    fill_table("file_retries", 100, fileid="i", jeditaskid="i / 50", datasetid="i / 10")
    alone = grace.get(address(tasks.FileRetry, "changelist"), {"dataset_id": "3"}).context["cl"]
    both = grace.get(address(tasks.FileRetry, "changelist"), {"dataset_id": "3", "task_id": "0"}).context["cl"]
    assert (alone.result_count, both.result_count) == (100, 10)


def test_a_large_table_is_counted_by_estimate_and_a_small_one_exactly(grace):
    table = tasks.JobStatusLog._meta.db_table
    fill_table(table, 30_000, pandaid="i % 2", modificationtime=TIMES)
    listed = grace.get(address(tasks.JobStatusLog, "changelist")).context["cl"]
    assert listed.result_count == list_paging.estimated_rows(table) == 30_000
    assert listed.paginator.num_pages == list_paging.EXACT_UP_TO // listed.list_per_page
    narrowed = grace.get(address(tasks.JobStatusLog, "changelist"), {"job_id": "1"}).context["cl"]
    assert narrowed.result_count == pytest.approx(15_000, rel=0.2)
    tasks.JobStatusLog.objects.filter(id__gt=tasks.JobStatusLog.objects.order_by("id")[6999].id).delete()
    assert grace.get(address(tasks.JobStatusLog, "changelist")).context["cl"].result_count == 7000


def test_a_page_beyond_the_last_is_refused_without_being_sought(grace):
    fill_table("job_files", 500, pandaid="i")
    answer = grace.get(address(tasks.JobFile, "changelist"), {"p": "99999999"})
    assert answer.status_code == 302 and "e=1" in answer["Location"]
