import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.advice.task_remedies import Remedy
from brokerage_app.grid.queue_status import set_status
from brokerage_app.models import GlobalShare, JobCount, PilotCalls, Queue, QueueStatusLog, VerdictRecord
from brokerage_app.verdicts import records
from brokerage_app.verdicts.records import Decided, keep
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import UNTRIED, Choice, Verdict
from jedisite.agents import agent_orders
from jedisite.models import Agent, AuditEntry
from tasks_app.commands import handlers
from tasks_app.counts import statistics
from tasks_app.domain.states import TaskStatus
from tasks_app.explaining import following, queries
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.gates import walk
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task, TaskStatusLog
from tests.statements import sent

pytestmark = pytest.mark.django_db
Make = Callable[..., Any]
Api = Callable[..., Client]
MOST_QUERIES = 12
LOW_AT = ("low_memory", "needs {} MB, the site gives {} MB", (4000, 3000))
LOW = Skip("B", *LOW_AT)
LOWER = Skip("D", "low_memory", "needs {} MB, the site gives {} MB", (4000, 1000))
OFF = Skip("C", "site_offline", "the site's status is {}", ("offline",))
BAD = Verdict((), (LOWER, LOW, OFF))


@pytest.fixture
def waiting(make_task: Make, make_dataset: Make) -> Any:
    task = make_task(status="pending", gshare="Express", error_dialog="no site", current_priority=500)
    make_dataset(task, status="ready", files=10, files_to_be_used=10, files_used=0)
    Queue.objects.create(name="B", site_name="B", max_memory_mb=3000, capability="")
    Queue.objects.create(name="C", site_name="C", status="offline", capability="")
    Queue.objects.create(name="D", site_name="D", max_memory_mb=1000, capability="")
    Agent.objects.update_or_create(
        name="pending", defaults={"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
    )
    keep(Decided(task.id, BAD, TaskNeeds(memory_mb=4000, share="Express")))
    return task


def test_a_task_says_what_it_waits_for_and_which_sites_came_near(
    api: Api, waiting: Any, make_task: Make, make_dataset: Make
) -> None:
    make_dataset(make_task(status="ready", gshare="Express", current_priority=900), files=2, files_to_be_used=2)
    used_up = make_task(status="running", gshare="Express", current_priority=950)
    make_dataset(used_up, files=2, files_to_be_used=2, files_used=2)
    make_task(status="ready", gshare="Other", current_priority=900)
    found = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()
    assert found["blocked_by"]["name"] == "sites"
    assert found["blocked_by"]["code"] == "low_memory"
    assert "All 3 sites were skipped: 2 low memory, 1 site offline." in found["blocked_by"]["sentence"]
    assert found["blocked_by"]["advice"] and found["blocked_by"]["who_can_fix"] == "user"
    (verdict,) = found["verdicts"]
    assert [(one["site"], one["gap"]) for one in verdict["nearly"]] == [("B", 0.25), ("D", 0.75)]
    assert [(one["code"], one["sites"]) for one in verdict["reasons"]] == [("low_memory", 2), ("site_offline", 1)]
    assert verdict["skipped"][1]["sentence"] == "needs 4000 MB, the site gives 3000 MB"
    position = found["position"]
    assert (position["share"], position["priority"], position["ahead"]) == ("Express", 500, 1)
    assert [one["priority"] for one in position["first"]] == [900] and position["next_pass"]
    funnel = [(one["code"], one["before"], one["after"]) for one in verdict["funnel"]]
    assert funnel == [("site_offline", 3, 2), ("low_memory", 2, 0)]
    assert [(one["site"], one["gate"]) for one in verdict["skipped"]] == [("C", 1), ("B", 2), ("D", 2)]


def test_a_site_that_the_task_may_not_use_did_not_come_near(
    api: Api, waiting: Any, client: Client, make_user: Make
) -> None:
    keep(Decided(waiting.id, BAD, TaskNeeds(memory_mb=4000, included_sites=("D*",))))
    (verdict,) = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["verdicts"]
    assert [one["site"] for one in verdict["nearly"]] == ["D"]
    client.force_login(make_user())
    page = client.get(f"/tasks/{waiting.id}/why/").content.decode()
    assert "Nearly:" not in page and "All sites kept out by a number" in page, "a quarter of what is needed is not near"
    keep(Decided(waiting.id, BAD, TaskNeeds(memory_mb=4000, included_sites=("B*",))))
    page = client.get(f"/tasks/{waiting.id}/why/").content.decode()
    assert (
        "Nearly:" in page and '/sites/B/why/">B</a> is missed by 25 %' in page and '/sites/D/why/">D</a> is' not in page
    )


def test_reasons_over_time_are_intervals(api: Api, waiting: Any) -> None:
    keep(Decided(waiting.id, BAD, TaskNeeds(memory_mb=4000, share="Express")))
    keep(Decided(waiting.id, Verdict((Choice("B", 1.0),), (OFF,)), TaskNeeds(share="Express")))
    history = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["history"]
    assert [(one["code"], one["times"], one["chosen"]) for one in history] == [("", 1, 1), ("low_memory", 2, 0)]
    assert history[1]["counts"] == {"low_memory": 2, "site_offline": 1}
    VerdictRecord.objects.update(at=timezone.now() - timedelta(hours=48, seconds=1))
    assert api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["history"] == []


def test_a_site_says_which_tasks_skipped_it_and_which_came_near(
    api: Api, waiting: Any, make_task: Make, make_user: Make, client: Client
) -> None:
    client.force_login(make_user())
    other = make_task(status="running")
    keep(Decided(other.id, Verdict((Choice("B", 1.0),), (OFF,))))
    ended = make_task(status="done")
    keep(Decided(ended.id, BAD))
    records.fold()
    Queue.objects.filter(pk="B").update(max_memory_mb=3000)
    found = api().get("/api/v2/sites/B/why/").json()
    assert [(one["column"], one["value"], one["tasks"]) for one in found["settings"]] == [("max_memory_mb", 4000, 1)]
    assert [(one["task"], one["code"]) for one in found["blocked"]] == [(waiting.id, "low_memory")]
    assert (found["chosen_for"], found["skipped_for"]) == (1, 1)
    (reason,) = found["reasons"]
    assert (reason["code"], reason["tasks"], reason["examples"][0]["task"]) == ("low_memory", 1, waiting.id)
    assert [(one["task"], one["gap"]) for one in found["nearly"]] == [(waiting.id, 0.25)]
    decided = VerdictRecord.objects.filter(task_id=waiting.id).latest("id").at
    for one in (found["nearly"][0], found["blocked"][0], reason["examples"][0]):
        assert datetime.fromisoformat(one["at"]) == decided, "the grid may have changed since"
    page = client.get("/sites/B/why/").content.decode()
    assert page.count(f'datetime="{decided.isoformat()}"') == 3
    assert {(day["code"], day["decisions"]) for day in found["days"]} == {("", 1), ("low_memory", 2)}
    off = api().get("/api/v2/sites/C/why/").json()
    assert off["reasons"][0]["tasks"] == 2 and off["nearly"] == []
    assert api().get("/api/v2/sites/NOWHERE/why/").status_code == 404


def test_a_queue_speaks_for_its_pseudo_queues_and_each_for_itself(api: Api, make_task: Make) -> None:
    Queue.objects.create(name="Q", site_name="S")
    skips = (Skip("Q/SCORE", *LOW_AT), Skip("Q/MCORE", *LOW_AT), Skip("QQ/MCORE", *LOW_AT))
    keep(Decided(make_task(status="running").id, Verdict((), skips)))
    records.fold()
    whole = api().get("/api/v2/sites/Q/why/").json()
    assert (whole["skipped_for"], whole["reasons"][0]["tasks"], whole["reasons"][0]["examples"][0]["queue"]) == (
        1,
        1,
        "Q/SCORE",
    )
    found = api().get("/api/v2/sites/Q/SCORE/why/").json()
    assert (found["site"], found["skipped_for"]) == ("Q/SCORE", 1)
    assert found["days"][0]["decisions"] == 1
    assert api().get("/api/v2/sites/QQ/MCORE/why/").status_code == 404


def test_a_share_says_what_holds_up_its_tasks(api: Api, waiting: Any, make_job: Make) -> None:
    make_job(task_id=waiting.id, status="activated", gshare="Express")
    statistics.refresh()
    records.fold()
    found = api().get("/api/v2/shares/Express/why/").json()
    assert found["tasks"] == {"pending": 1} and found["jobs"] == {"activated": 1} and found["waiting"] == 1
    assert [(one["code"], one["tasks"]) for one in found["reasons"]] == [("low_memory", 1)]
    assert {(day["code"], day["decisions"]) for day in found["days"]} == {("low_memory", 2), ("site_offline", 1)}
    assert api().get("/api/v2/shares/Nobody/why/").status_code == 404


def test_a_code_of_a_former_version_is_shown_as_it_is(api: Api, waiting: Any) -> None:
    VerdictRecord.objects.update(code="gone_code", reasons={"gone_code": ["B"]}, skipped=[["B", "gone_code", "x", []]])
    found = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()
    assert found["verdicts"][0]["reasons"][0]["title"] == "gone code"


NUMBERS = "needs 4000 MB, the site gives 3000 MB"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/tasks/{}/why/", NUMBERS),
        ("/sites/B/why/", NUMBERS),
        ("/shares/Express/", "All 3 sites were skipped: 2 low memory, 1 site offline."),
    ],
)
def test_pages_say_the_same(client: Client, make_user: Make, waiting: Any, address: str, says: str) -> None:
    records.fold()
    client.force_login(make_user())
    page = client.get(address.format(waiting.id))
    assert page.status_code == 200
    text = page.content.decode()
    assert "low_memory" in text.replace("<wbr>", "") and says in text


def test_the_pages_ask_a_bounded_number_of_times(
    client: Client, make_user: Make, waiting: Any, make_task: Make, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        keep(Decided(make_task(status="pending", gshare="Express").id, BAD, TaskNeeds(share="Express")))
    client.force_login(make_user())
    client.get("/help/states/")  # the choices of the frame are kept for a minute
    client.get(f"/tasks/{waiting.id}/why/")  # descriptions of the grid are kept until they change
    for address, most in ((f"/tasks/{waiting.id}/why/", MOST_QUERIES), ("/sites/B/why/", 12), ("/shares/Express/", 12)):
        with django_assert_max_num_queries(most):
            assert client.get(address).status_code == 200


def test_a_blocked_task_with_remedies_takes_twelve_statements(
    client: Client, make_user: Make, waiting: Any, django_assert_max_num_queries: Any
) -> None:
    """All that go to the server, those that read the grid included: others than the counter of Django sees."""
    page = f"/tasks/{waiting.id}/why/"
    client.force_login(make_user())
    client.get("/help/states/")  # the choices of the frame are kept for a minute
    assert "What would help" in client.get(page).content.decode()
    with django_assert_max_num_queries(MOST_QUERIES), sent() as statements:
        text = client.get(page).content.decode()
    assert "was tested just now" in text and "Ask for 3000 MB of memory" in text
    assert len(statements) <= MOST_QUERIES, "\n".join(" ".join(one.split())[:110] for one in statements)


def test_a_task_that_was_never_brokered_says_so(api: Api, make_task: Make) -> None:
    task = make_task(status="registered")
    found = api().get(f"/api/v2/tasks/{task.id}/why/").json()
    assert found["verdicts"] == [] and found["blocked_by"]["code"] == "task_not_refined"


def test_a_task_all_of_whose_files_are_in_jobs_says_what_these_wait_for(
    api: Api, make_task: Make, make_dataset: Make, make_job: Make, client: Client, make_user: Make
) -> None:
    task = make_task(status="running", gshare="Express")
    make_dataset(task, status="ready", files=2, files_to_be_used=2, files_used=2)
    make_job(task_id=task.id, status="activated", site="OFFQ")
    make_job(task_id=task.id, status="activated", site="OFFQ")

    def blocked() -> Any:
        return api().get(f"/api/v2/tasks/{task.id}/why/").json()["blocked_by"]

    assert blocked()["sentence"] == "2 jobs wait at OFFQ: the queue no longer exists"
    queue = Queue.objects.create(name="OFFQ", site_name="S", status="paused", status_reason="too hot", capability="")
    assert blocked()["sentence"] == "2 jobs wait at OFFQ: the queue is paused (“too hot”)"
    now, until = timezone.now(), timezone.now() + timedelta(days=1)
    set_status("OFFQ", "offline", by="ada", reason="still too hot", until=until, now=now)
    assert blocked()["sentence"] == (
        f"2 jobs wait at OFFQ: the queue is offline until {until:%Y-%m-%d %H:%M} UTC (“still too hot”)"
    )
    queue.refresh_from_db()
    assert blocked()["code"] == "jobs_at_closed_queue"
    client.force_login(make_user())
    assert (
        "<strong>Its jobs wait.</strong> 2 jobs wait at OFFQ" in client.get(f"/tasks/{task.id}/why/").content.decode()
    )
    queue.status = "online"
    queue.save()
    assert re.match(
        "no pilot has asked for jobs at OFFQ yet: it was added [0-9] s ago; 2 jobs wait there", blocked()["sentence"]
    )
    QueueStatusLog.objects.filter(queue="OFFQ").update(at=timezone.now() - timedelta(hours=4))
    assert blocked()["sentence"].startswith("no pilot has asked for jobs at OFFQ for 3 h; 2 jobs wait there")


def test_a_paused_task_says_who_paused_it_and_why(make_task: Callable[..., Task]) -> None:
    made = make_task(status="running", error_dialog="a reason of long ago")
    handlers.pause(made, handlers.Order("pause", "ada", "wrong input"))
    facts = queries.facts_of(Task.objects.get(pk=made.id), timezone.now(), {}, None)
    blocked = first_no(walk(facts))
    assert blocked is not None and blocked.sentence == "paused by ada: wrong input"
    assert TaskStatusLog.objects.get(task_id=made.id).reason == "paused by ada: wrong input"


def test_advice_on_a_task_that_has_ended_asks_for_its_errors_and_its_sites(
    api: Api, make_task: Make, make_job: Make, make_dataset: Make
) -> None:
    def told(task: Task) -> tuple[str, str]:
        blocked = api().get(f"/api/v2/tasks/{task.id}/why/").json()["blocked_by"]
        return blocked["advice"], blocked["sentence"]

    failed, aborted = (
        make_task(status="failed", error_dialog="nothing was done"),
        make_task(status="aborted", site="GONE"),
    )
    make_dataset(failed, files=2, files_failed=2)
    assert "none of its jobs had an error" in told(failed)[0]
    make_job(task_id=failed.id, status="failed")
    assert told(failed)[0].startswith("Look at the errors of its jobs")
    advice, sentence = told(aborted)
    assert "run the task again (incexec) with other sites" in advice
    assert sentence == "the task is aborted; GONE no longer exists"
    Queue.objects.create(name="GONE", site_name="S")
    make_dataset(aborted, files=2, files_finished=1)
    assert told(aborted) == ("Retry the task to process more of its input.", "the task is aborted")


def test_a_task_that_has_ended_has_no_place_in_the_queue(
    api: Api, make_task: Make, make_dataset: Make, client: Client, make_user: Make
) -> None:
    make_dataset(make_task(status="ready", gshare="Express", current_priority=900), files=2, files_to_be_used=2)
    ended, waits = (make_task(status=status, gshare="Express", current_priority=1) for status in ("done", "ready"))
    places = {task.id: api().get(f"/api/v2/tasks/{task.id}/why/").json()["position"] for task in (ended, waits)}
    assert [places[task.id]["ahead"] for task in (ended, waits)] == [0, 1]
    client.force_login(make_user())
    pages = [client.get(f"/tasks/{task.id}/why/").content.decode() for task in (ended, waits)]
    assert ["Its place in the queue" in page for page in pages] == [False, True]


def test_a_weight_is_said_as_the_product_of_named_values(client: Client, make_user: Make, make_task: Make) -> None:
    task, factors = make_task(status="running"), (("running + 1", 3.0), ("1 / (queued + 10)", 1 / 12))
    skipped = (Skip("C", "not_preassigned", "the work is bound to {}", ("A",)),)
    keep(Decided(task.id, Verdict((Choice("A", 0.25, factors),), skipped), TaskNeeds()))
    client.force_login(make_user())
    page = client.get(f"/tasks/{task.id}/why/").content.decode()
    assert "weight 0.2500, " in page and "the product of" in page
    assert "<li>running + 1 = <strong>3</strong></li>" in page
    assert "<li>1 / (queued + 10) = <strong>0.0833</strong></li>" in page
    assert "1 of 2 sites was chosen, A; skipped: 1 not the task&#x27;s site." in page


def test_a_queue_that_gets_its_first_jobs_is_not_said_to_weigh_nothing(
    client: Client, make_user: Make, make_task: Make
) -> None:
    task = make_task(status="running")
    keep(Decided(task.id, Verdict((Choice("A", 0.0, ((UNTRIED, 0.0),), bootstrap=True),)), TaskNeeds()))
    client.force_login(make_user())
    page = client.get(f"/tasks/{task.id}/why/").content.decode()
    assert "gets its first few jobs whatever the weights: no job runs or is queued there" in page
    assert "weight 0" not in page and "the product of" not in page


def test_the_status_of_a_site_is_said_with_its_reason(client: Client, make_user: Make) -> None:
    Queue.objects.create(name="OFF", site_name="S", status="offline", status_reason="new switches until noon")
    client.force_login(make_user())
    assert "Its status is offline (“new switches until noon”)." in client.get("/sites/OFF/why/").content.decode()


def test_a_task_that_is_tried_again_and_again_waits_since_it_was_tried_first(
    api: Api, waiting: Any, client: Client, make_user: Make
) -> None:
    """Each pass takes it to `ready` and back to `pending`, and asks the broker anew: no wait begins by that."""
    began = timezone.now() - timedelta(hours=7)
    Agent.objects.update(last_ended_at=timezone.now(), errors_in_a_row=0, paused=False)
    Task.objects.filter(pk=waiting.id).update(frozen_time=began, state_change_time=timezone.now())
    for status in ("ready", "pending"):
        task_moves.move_task(waiting.id, TaskStatus(status), by="test", reason="", frozen_time=began)
        blocked = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["blocked_by"]
        assert (blocked["name"], datetime.fromisoformat(blocked["since"])) == ("sites", began), status
    client.force_login(make_user())
    assert "7 h ago</time></span></p>" in client.get(f"/tasks/{waiting.id}/why/").content.decode()
    row = api().get("/api/v2/tasks/?columns=id,since").json()["results"][0]
    assert (row["id"], datetime.fromisoformat(row["since"])) == (waiting.id, began)
    task_moves.move_task(waiting.id, TaskStatus.READY, by="test", reason="")
    task_moves.move_task(waiting.id, TaskStatus.PENDING, by="test", reason="")
    waiting.refresh_from_db()
    assert waiting.since > began, "it had got on meanwhile"


def test_a_task_that_is_not_tried_again_is_in_its_state_since_it_came_there(make_task: Make) -> None:
    then = timezone.now() - timedelta(hours=2)
    assert make_task(status="running", state_change_time=then, frozen_time=then - timedelta(hours=1)).since == then
    assert make_task(status="assigning", state_change_time=then).since == then


def test_a_task_that_has_done_all_its_work_is_no_trouble(
    client: Client, make_task: Make, make_dataset: Make, make_user: Make
) -> None:
    client.force_login(make_user())
    tasks = [make_task(status=status) for status in ("done", "failed")]
    for task in tasks:
        make_dataset(task, files=2, **{"files_finished" if task.status == "done" else "files_failed": 2})
    done, failed = (client.get(f"/tasks/{task.id}/why/").content.decode() for task in tasks)
    assert "It gets no more jobs." in done and "What would help:" not in done and "first-no" not in done
    assert '<tr class="first-wait">' in done and "chip bad" not in done
    assert "What would help:" in failed and "first-no" in failed


def test_a_task_that_was_set_aside_before_its_input_is_known_waits_for_that(
    api: Api, client: Client, make_user: Make, make_task: Make
) -> None:
    parent = make_task(status="running")
    wait = timedelta(minutes=1)
    client.force_login(make_user())
    for parent_id, code, says in (
        (
            parent.id,
            "parent_not_finished",
            f"The parent task {parent.id} is running; this task starts when the parent is done.",
        ),
        (None, "input_not_read", "the container data.all has no datasets yet; the task waits for them"),
    ):
        task = make_task(status="registered", parent_id=parent_id)
        task_moves.set_aside(task.id, task.fence, by="refiner", reason=says, wait=wait, frozen=False)
        blocked = api().get(f"/api/v2/tasks/{task.id}/why/").json()["blocked_by"]
        assert (blocked["name"], blocked["code"], blocked["sentence"]) == ("inputs", code, says)
        text = client.get(f"/tasks/{task.id}/why/").content.decode()
        assert says[1:] in text and "the task needs no input" not in text


def test_no_pilot_calls_in_the_future(api: Api, make_task: Make, make_dataset: Make, make_job: Make) -> None:
    """Calls have the time of the database, whose clock may be ahead of that of the web site."""
    soon = timezone.now() + timedelta(minutes=2)
    task, queue = make_task(status="running"), Queue.objects.create(name="SITE_A", site_name="S", capability="")
    make_dataset(task, status="ready", files=1, files_to_be_used=1, files_used=1)
    waits, runs = make_job(task_id=task.id, status="activated"), make_job(task_id=task.id, heartbeat_at=soon)
    PilotCalls.objects.create(site=queue.name, hour=soon, get_job=1, last_get_job=soon)
    Agent.objects.filter(name="job_generator").update(last_ended_at=soon)
    gates = api().get(f"/api/v2/tasks/{task.id}/why/").json()["gates"]
    for job in (waits, runs):
        gates += api().get(f"/api/v2/jobs/{job.id}/why/").json()["gates"]
    said = "; ".join(gate["sentence"] for gate in gates)
    assert said.count("the last call came 0 s ago") == 2 and "the last heartbeat came 0 s ago" in said, said
    assert "-" not in said, said


def test_a_site_lists_only_tasks_that_it_still_keeps_waiting(
    api: Api, waiting: Any, make_task: Make, make_job: Make, client: Client, make_user: Make
) -> None:
    """Not those that run elsewhere, and no reason of a status that it has no more."""

    def found(site: str) -> tuple[list[int], list[str]]:
        said = api().get(f"/api/v2/sites/{site}/why/").json()
        return [one["task"] for one in said["blocked"]], [one["code"] for one in said["reasons"]]

    elsewhere, here = (make_task(status="running", gshare="Express", current_priority=600) for _ in range(2))
    for task, site in ((elsewhere, "D"), (here, "B")):
        keep(Decided(task.id, BAD, TaskNeeds(memory_mb=4000, share="Express")))
        make_job(task_id=task.id, status="running", site=site)
    assert found("B") == ([here.id, waiting.id], ["low_memory"])
    assert found("C") == ([waiting.id], ["site_offline"])
    for status in ("online", "brokeroff"):
        set_status("C", status, by="ada", reason="new switches", now=timezone.now())
        assert found("C") == ([], [])
    client.force_login(make_user())
    page = client.get("/sites/C/why/").content.decode()
    assert (
        "Wait until the site is online again" not in page and "No open task is kept from this site at present." in page
    )
    set_status("C", "offline", by="ada", reason="off again", now=timezone.now())
    assert found("C") == ([waiting.id], ["site_offline"])


def test_a_share_whose_tasks_were_skipped_before_does_not_say_that_none_was(
    waiting: Any, client: Client, make_user: Make
) -> None:
    client.force_login(make_user())
    assert "was left without a site" not in client.get("/shares/Express/").content.decode()
    keep(Decided(waiting.id, Verdict((Choice("B", 1.0),), (OFF,)), TaskNeeds(memory_mb=400, share="Express")))
    page = client.get("/shares/Express/").content.decode()
    assert "No open task of this share was left without a site by its last decision." in page


def test_a_share_of_nothing_is_the_reason_only_where_jobs_of_others_wait(make_task: Make, make_job: Make) -> None:
    GlobalShare.objects.create(name="Nothing", value=0)
    GlobalShare.objects.create(name="All", value=100)
    task = make_task(status="running", gshare="Nothing")
    make_job(task_id=task.id, status="activated", site="B", gshare="Nothing")
    waits = {"work_queue_id": 0, "resource_type": "SCORE", "label": "user", "status": "activated", "cores": 1}
    JobCount.objects.create(site="B", share="Nothing", jobs=1, **waits)
    JobCount.objects.create(site="C", share="All", jobs=5, **waits)
    others = JobCount.objects.create(site="B", share="All", jobs=0, **waits)

    def found() -> str:
        return queries.facts_of(task, timezone.now(), {}, None).share_zero

    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    PilotCalls.objects.create(site="B", hour=hour, get_job=1, last_get_job=now)
    assert found() == ""
    JobCount.objects.filter(pk=others.pk).update(jobs=1)
    assert found() == "Nothing"
    PilotCalls.objects.update(last_get_job=now - timedelta(minutes=4))
    assert found() == "", "nobody gets a job while no pilot asks"


def test_a_task_whose_agent_is_paused_says_who_paused_it_and_why(api: Api, waiting: Task) -> None:
    agent = Agent.objects.get(pk="pending")
    agent_orders.set_paused(agent, True, by="ada", reason="first")
    agent_orders.set_paused(agent, False, by="ada", reason="well again")
    agent_orders.set_paused(agent, True, by="grace", reason="a move of\nthe database.")
    at = AuditEntry.objects.order_by("-id")[0].at
    blocked = api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["blocked_by"]
    assert (blocked["code"], blocked["who_can_fix"]) == ("agent_paused", "shifter")
    assert blocked["sentence"] == (
        f"the agent pending is paused by grace since {at:%Y-%m-%d %H:%M} UTC (“a move of the database”)"
    )
    AuditEntry.objects.all().delete()
    assert (
        api().get(f"/api/v2/tasks/{waiting.id}/why/").json()["blocked_by"]["sentence"] == "the agent pending is paused"
    )


def test_advice_links_to_the_acts_that_it_names_for_those_who_may_do_them(
    client: Client, make_user: Make, waiting: Any
) -> None:
    """The owner changes what the task needs; a shifter sets a queue online; others get the words alone."""
    linked = {}
    for name, right in (("ada", ""), ("bob", ""), ("grace", "shifter")):
        client.force_login(make_user(name, right) if right else make_user(name))
        text = client.get(f"/tasks/{waiting.id}/why/").content.decode()
        assert "Ask for 3000 MB of memory" in text
        linked[name] = (f"/tasks/{waiting.id}/do/needs/" in text, "/sites/C/#d-set" in text)
    assert linked == {"ada": (True, False), "bob": (False, False), "grace": (False, True)}


@pytest.mark.parametrize(
    ("what", "lines", "acts", "queue"),
    [
        ("Make jobs of 1 file (nFilesPerJob; now 2)", (), ["split_rule"], ""),
        ("Reassign the task to a site other than A", (), ["reassign"], ""),
        ("Kill the task and run it again (incexec) with an excludedSite other than A", (), ["kill"], ""),
        ("Have A.B set online", ('site.A.B.status="online"',), [], "A.B"),
        ("Wait until jobs that are queued at A have started", ("site.A.queued=0",), [], ""),
        (
            "Have SITE_A set online, and have an operator lower the priority of the task below 1000 (currentPriority; now 1000)",
            ('site.SITE_A.status="online"', "needs.priority=999"),
            ["priority"],
            "SITE_A",
        ),
        (
            "Reassign the task to a site other than B, and ask for 900 MB of memory at most (ramCount; now 1000)",
            (),
            ["reassign", "needs"],
            "",
        ),
    ],
)
def test_the_acts_of_advice(what: str, lines: tuple[str, ...], acts: list[str], queue: str) -> None:
    remedy = Remedy(what, "user", lines)
    assert (list(following.acts_of(remedy)), following.queue_of(remedy)) == (acts, queue)


def test_a_part_of_a_cpu_time_below_one_stays_a_part() -> None:
    remedy = Remedy("Lower the cpuTime of the task to 27 % of what it is, if its jobs need no more", "user", ())
    lower = "Lower the cpuTime of the task from 1000 to 270, if its jobs need no more"
    assert following.with_cpu_time(remedy, 1000, "").what == lower
    assert "from 1000 to 270 HS06s an event, if" in following.with_cpu_time(remedy, 1000, "HS06sPerEventFixed").what
    assert following.with_cpu_time(remedy, 3, "HS06sPerEvent") == remedy
    small = replace(remedy, what=remedy.what.replace("27 %", "0.0027 %"))
    assert following.with_cpu_time(small, 10**8, "").what == lower.replace("1000 to 270", "100000000 to 2700")
    assert following.with_cpu_time(remedy, None, "") == remedy
