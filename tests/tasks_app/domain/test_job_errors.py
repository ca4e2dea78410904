"""Which error explains a failed job: whoever is asked gives the same answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection

from jedisite.database.sql import hot_cursor
from tasks_app.domain.final import error_summary
from tasks_app.domain.fingerprints import fingerprint_of
from tasks_app.domain.job_errors import (
    ALL_FIELDS,
    COMPONENTS,
    ERRORS_OF_J,
    FIELDS,
    NAMES,
    JobError,
    error_of,
    errors_in,
    main_error,
)
from tasks_app.failures.error_queries import MainError, error_groups, errors_of, with_main_error
from tasks_app.messaging.mail import facts_of
from tasks_app.messaging.rules.mail_summary import error_line
from tasks_app.models import Job, Notification, Task
from tasks_app.models.retry import SOURCES, RetryRule
from tasks_app.outcomes import libraries
from tasks_app.retries import apply_rules

CODES = {
    "pilot_error_code": (None, 0, 1305, -1305, 1137, -1149),
    "exe_error_code": (None, 0, 65, -11),
    "ddm_error_code": (None, None, 201),
    "brokerage_error_code": (None, None, None, 141),
    "dispatcher_error_code": (None, None, 100),
    "task_buffer_error_code": (None, None, 300, 150),
    "sup_error_code": (None, None, None, 7),
    "trans_exit_code": (None, "", "0", " 0 ", "3", "139", " 65"),
}


def scenes() -> list[dict[str, object]]:
    """Some forty failed jobs: each part alone, pairs of which the order matters, and mixtures of all kinds."""
    alone = [{name: next(v for v in reversed(CODES[name]) if v)} for name in FIELDS]
    pairs: list[dict[str, object]] = [
        {},
        {"pilot_error_code": 1305, "trans_exit_code": "3"},
        {"pilot_error_code": 1305, "exe_error_code": 65, "trans_exit_code": "65"},
        {"pilot_error_code": 1305, "ddm_error_code": 201},
        {"pilot_error_code": -1305, "task_buffer_error_code": 300},
        {"pilot_error_code": 1144, "exe_error_code": 143, "task_buffer_error_code": 150},
        {"pilot_error_code": 1212, "exe_error_code": 137},
        {"pilot_error_code": 1305, "brokerage_error_code": 141},
        {"sup_error_code": 7, "trans_exit_code": "1"},
    ]
    chosen = random.Random(12)
    mixed = [{name: chosen.choice(values) for name, values in CODES.items()} for _ in range(24)]
    found = [*alone, *pairs, *mixed]
    for number, scene in enumerate(found):
        scene |= {part.diag_field: f"{part.name} said {number % 3}" for part in COMPONENTS if number % 4}
    assert len(found) == 41
    return found


@pytest.fixture
def failed(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[Job]:
    """The scenes as jobs of a task, and the same errors on jobs that do not count: another task's, and one that goes on."""
    task, other = make_task(), make_task()
    jobs = [make_job(task_id=task.id, status="failed", **scene) for scene in scenes()]
    for scene in scenes()[:12]:
        make_job(task_id=other.id, status="failed", **scene)
        make_job(task_id=task.id, status="running", **scene)
    return list(Job.objects.filter(pk__in=[job.pk for job in jobs]).order_by("pk"))


def key_of(error: JobError | None) -> str:
    return error.key if error else ""


def test_the_order_of_what_explains_a_job() -> None:
    everything = {"pilot_error_code": 1137, **{name: 9 for name in FIELDS if name != "pilot_error_code"}}
    assert [error.component for error in errors_in(everything)] == list(NAMES)
    vague = [error.key for error in errors_in({**everything, "pilot_error_code": -1305})]
    assert vague[0] == "exe:9" and vague[-2:] == ["trans:9", "pilot:1305"]
    assert (
        key_of(main_error({**everything, "pilot_error_code": 1144, "task_buffer_error_code": 150})) == "taskbuffer:150"
    )
    assert errors_in({"pilot_error_code": 0, "trans_exit_code": " 0"}) == []
    assert key_of(main_error({"pilot_error_code": -1149})) == "pilot:1149", (
        "the sign is another attempt's, not the error's"
    )


def test_rules_can_be_written_for_every_component() -> None:
    assert sorted(SOURCES) == sorted(NAMES)


@pytest.mark.django_db
def test_the_statement_and_the_function_give_the_same_errors_in_the_same_order(failed: list[Job]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT j.pandaid, e.component, e.code, e.diag FROM jobs j CROSS JOIN LATERAL {ERRORS_OF_J} e
                 WHERE j.pandaid = ANY(%s) ORDER BY j.pandaid, e.rank""",  # noqa: S608
            [[job.pk for job in failed]],
        )
        rows = cursor.fetchall()
    for job in failed:
        assert [JobError(*row[1:]) for row in rows if row[0] == job.pk] == errors_in(vars(job))


@pytest.mark.django_db
def test_pages_mails_dialogs_rules_libraries_and_fingerprints_name_the_same_error(failed: list[Job]) -> None:
    task_id = failed[0].task_id
    assert task_id is not None
    expected = {job.pk: key_of(main_error(vars(job))) for job in failed}
    counted = Counter(expected.values())
    assert len(counted) > 12 and counted[""]

    with hot_cursor() as cursor:
        found = apply_rules.find(cursor, list(expected), every=True)
    rules = {row.job_id: "{}:{}".format(*row.errors[0][:2]) for row in found.by_task[task_id]}
    assert rules == {job: key for job, key in expected.items() if key}

    prints = {job.pk: fingerprint_of({name: getattr(job, name) for name in ALL_FIELDS})[0] for job in failed}
    assert {job: f"{found.component}:{found.code}".strip(":") for job, found in prints.items()} == expected

    columns = {job.pk: key_of(error_of({**vars(job), "status": "failed"})) for job in failed}
    assert columns == expected
    for job in failed:
        assert expected[job.pk] in libraries._how(job.pk)

    groups = {key_of(group.error): group.jobs for group in error_groups(task_id)}
    assert groups == counted

    jobs = Job.objects.filter(task_id=task_id, status="failed")
    asked = {job: key or "" for job, key in jobs.annotate(key=MainError()).values_list("pk", "key")}
    assert asked == expected
    for key, number in counted.items():
        if key:
            assert with_main_error(jobs, *key.split(":")).count() == number

    every = errors_of(task_id)
    frequent, rare = every[:5], sum(number for _, number in every[5:])
    assert rare and all(counted[error.key] == number for error, number in frequent)
    assert [number for _, number in frequent] == sorted((n for key, n in counted.items() if key), reverse=True)[:5]
    dialog = error_summary(every, "failed")
    mail = facts_of(Notification(task_id=task_id, status="failed", reason="")).errors
    assert dialog is not None and f"; {rare} × other errors; ask for more memory" in dialog
    assert [line.key for line in mail] == [error.key for error, _ in frequent]
    for error, number in frequent:
        assert f"{number} × {error.key}" in dialog
        assert error_line(error, number).sentence == error.sentence


@pytest.mark.django_db
def test_a_code_on_a_job_that_goes_on_or_has_finished_is_not_listed_as_its_error(make_job: Callable[..., Job]) -> None:
    jobs = {
        state: make_job(status=state, pilot_error_code=1099) for state in ("running", "finished", "failed", "holding")
    }
    named = {job.status for job in jobs.values() if error_of(vars(job))}
    assert {job.status for job in with_main_error(Job.objects.all(), "pilot", "1099")} == named == {"failed", "holding"}


@pytest.mark.django_db
def test_the_longest_codes_are_listed(make_job: Callable[..., Job]) -> None:
    for code in (2**31 - 1, -(2**31)):
        job = make_job(status="failed", pilot_error_code=code, task_id=code % 1000)
        error = main_error(vars(job))
        assert error is not None
        assert list(with_main_error(Job.objects.all(), error.component, error.code)) == [job]
    assert not with_main_error(Job.objects.all(), "exe", "9999999999")


@pytest.mark.parametrize(
    ("source", "code", "fault"),
    [
        ("pilot", 1099, ""),
        ("exe", -11, ""),
        ("pilot", -1099, "Codes of pilots are compared without their sign: give it without one."),
        ("trans", 0, "The code 0 is no error, so no job has it."),
    ],
)
def test_a_rule_about_a_code_that_no_job_can_have_is_refused(source: str, code: int, fault: str) -> None:
    rule = RetryRule(error_source=source, error_code=code, action="no_retry")
    assert rule.faults.get("error_code", "") == fault
