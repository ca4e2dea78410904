import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from brokerage_app.brokers.choosing import decide
from brokerage_app.cases.case import grid_of
from brokerage_app.grid.describing import view_of, with_pseudo
from brokerage_app.models import Queue, VerdictRecord
from brokerage_app.policy.configuration import Configuration
from brokerage_app.verdicts.records import Decided, Snapshots, keep
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import Verdict
from tasks_app.explaining import why_site

pytestmark = pytest.mark.django_db
Make = Callable[..., Any]
Api = Callable[..., Client]
GRID = grid_of([SiteView("A", max_memory_mb=2000), SiteView("B", status="offline")])


@pytest.fixture
def decided(make_task: Make) -> Any:
    task = make_task(status="pending")
    snapshots = Snapshots(GRID)
    for number, memory in ((task.id, 3000), (task.id + 1, 1000)):
        needs = TaskNeeds(memory_mb=memory, task_id=number)
        keep(Decided(number, decide(needs, GRID, Configuration()), needs, snapshots=snapshots))
    return task


def ask(client: Client, task_id: int, *changes: str) -> Any:
    return client.post(f"/api/v2/tasks/{task_id}/what-if/", {"changes": list(changes)}, content_type="application/json")


def rows() -> list[dict[str, Any]]:
    return list(VerdictRecord.objects.order_by("id").values())


def test_less_memory_would_get_a_site_and_nothing_is_touched(api: Api, decided: Any) -> None:
    before = rows()
    found = ask(api(), decided.id, "needs.memory_mb=2000").json()
    assert found["gained"] == ["A"] and found["lost"] == []
    assert found["before"]["code"] and found["after"]["code"] == ""
    assert rows() == before


def test_a_site_that_comes_online_would_help(api: Api, decided: Any) -> None:
    found = ask(api(), decided.id, "site.B.status=online").json()
    assert found["gained"] == ["B"]


def test_variants_of_a_queue_for_sizes_of_jobs_are_one_queue(
    client: Client, make_user: Make, api: Api, make_task: Make
) -> None:
    """`V` takes small jobs and large ones in slots cut to size: it is gained once, and is one queue of two."""
    task = make_task(status="pending").id
    low, high = (SiteView(f"V/{size}", parent="V", max_memory_mb=mb) for size, mb in (("LOMEM", 2000), ("HIMEM", 2500)))
    grid = grid_of([SiteView("A", max_memory_mb=500), SiteView("V", is_parent=True, max_memory_mb=2500), low, high])
    needs = TaskNeeds(memory_mb=3000, task_id=task)
    keep(Decided(task, decide(needs, grid, Configuration()), needs, snapshots=Snapshots(grid)))
    found = ask(api(), task, "needs.memory_mb=1000").json()
    assert (found["gained"], [one["site"] for one in found["after"]["chosen"]]) == (["V"], ["V"])
    assert [one["site"] for one in found["before"]["skipped"]] == ["A", "V"]
    client.force_login(make_user("bob"))
    page = client.get(f"/tasks/{task}/what-if/", {"changes": "needs.memory_mb=1000"}).context["found"]
    assert (page.total, page.unchanged, page.rows[0].site, page.rows[0].change) == (2, 0, "V", "gained")


def test_a_number_that_changes_under_the_same_code_is_a_change_of_its_own(
    client: Client, make_user: Make, api: Api, decided: Any
) -> None:
    found = ask(api(), decided.id, "site.A.max_memory_mb=2500").json()
    was, would = (f"needs 3000 MB, the site gives {given} MB" for given in (2000, 2500))
    assert found["numbers"] == [{"site": "A", "code": "low_memory", "before": was, "after": would}]
    assert found["reasons"] == [], "the reason is the same"
    client.force_login(make_user())
    page = client.get(f"/tasks/{decided.id}/what-if/", {"changes": "site.A.max_memory_mb=2500"}).content.decode()
    assert "the site gives 2500 MB (before: needs 3000 MB, the site gives 2000 MB)" in page
    assert "No site is affected" not in page


@pytest.mark.parametrize("change", ["memory=3", "needs.memory=3", "site.Z.status=online", "config.a.b=3"])
def test_a_bad_change_names_its_place(api: Api, decided: Any, change: str) -> None:
    answer = ask(api(), decided.id, "needs.cores=1", change)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "changes.1"


def test_a_task_without_a_kept_decision_is_a_conflict(api: Api, make_task: Make) -> None:
    assert ask(api(), make_task().id, "needs.cores=1").status_code == 409
    assert ask(api(), 7, "needs.cores=1").status_code == 404


def test_the_page_says_the_same_and_keeps_the_changes_in_its_address(
    client: Client, make_user: Make, decided: Any
) -> None:
    client.force_login(make_user())
    text = client.get(f"/tasks/{decided.id}/what-if/", {"changes": "needs.memory_mb=2000"}).content.decode()
    assert "Sites gained: A." in text and "needs.memory_mb=2000</textarea>" in text
    bad = client.get(f"/tasks/{decided.id}/what-if/", {"changes": "needs.memory=<b>"})
    assert bad.status_code == 400 and "there is no field memory" in bad.content.decode()
    assert "<b>" not in bad.content.decode()


def test_the_last_decisions_are_replayed(decided: Any) -> None:
    out, before = StringIO(), rows()
    call_command("replay", last=10, change=["needs.memory_mb=1500"], json=True, stdout=out)
    found = json.loads(out.getvalue().splitlines()[-1])
    assert (found["decisions"], found["decisive"], found["unblocked_tasks"]) == (2, 1, [decided.id])
    assert found["gained"] == {"A": 1}
    assert rows() == before
    call_command("replay", last=10, change=["site.A.max_memory_mb=500"], json=True, stdout=out)
    found = json.loads(out.getvalue().splitlines()[-1])
    assert found["blocked_tasks"] == [decided.id + 1] and found["lost"] == {"A": 1}


def test_a_change_that_does_not_fit_the_grid_of_a_decision_leaves_it_out(decided: Any) -> None:
    out = StringIO()
    call_command("replay", change=["site.Z.status=online"], json=True, stdout=out)
    assert json.loads(out.getvalue().splitlines()[-1])["left_out"] == 2


@pytest.mark.parametrize(
    "options", [{"change": []}, {"last": 0, "change": ["needs.cores=1"]}, {"change": ["needs.x=1"]}]
)
def test_replay_refuses_what_it_cannot_do(options: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match=r"--(change|last)"):
        call_command("replay", **options)


def test_a_site_says_only_settings_that_let_tasks_have_it_when_they_are_tried(api: Api, make_task: Make) -> None:
    grid = grid_of(
        [
            SiteView("A", max_memory_mb=2000, work_dir_mb=100),
            SiteView("V", is_parent=True, max_memory_mb=2000),
            SiteView("V/LOMEM", parent="V", max_memory_mb=500),
        ]
    )
    for name in ("A", "V"):
        Queue.objects.create(name=name, site_name=name, max_memory_mb=2000, work_dir_mb=100, capability="")
    snapshots, skips = Snapshots(grid), (("A", 2000), ("V/LOMEM", 500))

    def decided(**more: Any) -> int:
        task = make_task(status="pending").id
        needs = TaskNeeds(task_id=task, **{"memory_mb": 3000, **more})
        low = (
            Skip(name, "low_memory", "needs {} MB, the site gives {} MB", (needs.memory_mb, has)) for name, has in skips
        )
        keep(Decided(task, Verdict((), tuple(low)), needs, snapshots=snapshots))
        return task

    gets = decided()
    decided(memory_mb=9000, excluded_sites=("A",))
    decided(memory_mb=9000, preassigned_site="V/LOMEM")
    decided(disk_mb=500)
    (setting,) = api().get("/api/v2/sites/A/why/").json()["settings"]
    assert (setting["column"], setting["value"], setting["tasks"], setting["task"]) == ("max_memory_mb", 3000, 1, gets)
    assert ask(api(), gets, setting["change"]).json()["gained"] == ["A"]
    assert api().get("/api/v2/sites/V/why/").json()["settings"] == []


@pytest.mark.parametrize(
    ("columns", "needs", "column", "now", "value", "title"),
    [
        ({"max_memory_mb": 16_000}, {"memory_mb": 24_000}, "max_memory_mb", 16_000, 21_600, "memory of a slot"),
        (
            {"max_memory_mb": 2000, "catchall": "per_core_attr"},
            {"memory_mb": 24_000},
            "max_memory_mb",
            2000,
            2700,
            "memory of each core",
        ),
        (
            {"max_memory_mb": 2000, "catchall": "per_core_attr", "capability": "mcore"},
            {"memory_mb": 20_100},
            "max_memory_mb",
            2000,
            2262,
            "memory of each core",
        ),
        ({"max_walltime_s": 3600}, {"walltime_s": 30_000, "cores": 1}, "max_walltime_s", 3600, 30_000, "time limit"),
    ],
)
def test_queues_that_cut_their_slots_and_limits_of_each_core_get_settings_that_help(
    api: Api,
    make_task: Make,
    columns: dict[str, Any],
    needs: dict[str, Any],
    column: str,
    now: int,
    value: int,
    title: str,
) -> None:
    row = Queue.objects.create(**{"name": "V", "site_name": "V", "capability": "ucore", "core_count": 8, **columns})
    grid = grid_of(with_pseudo([view_of(row)], DEFAULT_TABLE).values())
    task = make_task(status="pending").id
    # The broker of production asks for nine tenths of the memory.
    wants = TaskNeeds(task_id=task, vo="atlas", label="managed", **{"cores": 8, **needs})
    verdict = decide(wants, grid, Configuration())
    assert not verdict.chosen, verdict.sentence()
    keep(Decided(task, verdict, wants, broker="production", snapshots=Snapshots(grid)))
    (setting,) = api().get("/api/v2/sites/V/why/").json()["settings"]
    assert (setting["column"], setting["now"], setting["value"], setting["title"]) == (column, now, value, title)
    gained = ask(api(), task, setting["change"]).json()["gained"]
    assert [name.partition("/")[0] for name in gained] == ["V"]


@pytest.mark.parametrize(
    ("queues", "tried"), [(0, (3, 20)), (1, (3, 20)), (40, (3, 5)), (131, (3, 1)), (150, (2, 1)), (5000, (1, 1))]
)
def test_a_page_on_a_site_asks_the_fewer_tasks_the_larger_the_grid_is(queues: int, tried: tuple[int, int]) -> None:
    assert why_site.tries(queues) == tried
    settings, tasks = tried
    assert (2 * settings * tasks + why_site.GRID_READ) * queues <= why_site.MOST_ASKED or tried == (1, 1)
