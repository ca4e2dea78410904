"""Fixtures for all tests: small, one thing each, with keyword arguments that override it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.contrib import admin
from django.contrib.auth.hashers import get_hashers
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, settings
from psycopg import sql

from brokerage_app.grid import configured
from jedisite.identity import callers, oidc_keys
from jedisite.vocabulary.roles import Scope
from tasks_app.attention import bell
from tasks_app.counts import line_order
from tasks_app.dispatch import closed_queues, queue_storages
from tasks_app.models import Dataset, Job, Task
from tasks_app.outcomes import unstored
from tasks_app.web.frame import frame
from tests.installation import remove_data_of
from tests.thorough import cases

# How quickly examples come and end says how busy the machine is, and nothing of what is tested: each test has a time limit.
# Of the changes to our decisions that a hundred examples see, eighty miss almost none.
settings.register_profile(
    "any machine", max_examples=cases(80, full=600), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

admin.autodiscover()  # tests are collected by what it has

FIRST_TASK = 20_000_000
FIRST_JOB = 6_000_000_000
GROUPS = {"shifter": "shift", "production": "production", "group manager": "manager:phys-higgs"}


@pytest.fixture(scope="session", autouse=True)
def no_database_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Databases of sites that root started in folders of this run lie outside of them, and would stay."""
    yield
    remove_data_of(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session", autouse=True)
def static_files_found_when_asked_for() -> None:
    """Each test client sets up the middleware anew: a scan of all static files then costs more than most requests."""
    django_settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def passwords_are_hashed_quickly() -> None:
    """A quarter of a second for each password keeps those who guess out; here it took most of the time of tests of pages."""
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    get_hashers.cache_clear()


_django_set_urlconf = _django_isolate_apps = _django_clear_site_cache = _template_string_if_invalid_marker = (
    pytest.fixture(lambda: None, scope="session")
)
"""What pytest-django does before each test for marks and a library that no test uses."""


def _forget() -> None:
    """Forget what a process keeps for some seconds."""
    callers._known.clear()
    configured.forget()
    line_order.forget()
    closed_queues.forget()
    queue_storages.forget()
    unstored.forget()
    bell.forget()
    frame.forget()


@pytest.fixture(autouse=True)
def nothing_kept_of_other_tests() -> Iterator[None]:
    """No test trusts a token, or goes by a configuration, an order of shares, a queue or a count, that another one has read."""
    _forget()
    yield
    _forget()
    oidc_keys.forget()


@pytest.fixture
def django_assert_max_num_queries(
    django_assert_max_num_queries: Callable[..., AbstractContextManager[Any]],
) -> Callable[[int], AbstractContextManager[Any]]:
    """Statements of a page are counted as in a process that has answered before: with what all pages share at hand."""

    @contextmanager
    def counted(number: int) -> Iterator[Any]:
        bell.numbers()
        frame.scope_choices()
        configured.configuration()
        with django_assert_max_num_queries(number) as found:
            yield found
        bell.forget()
        frame.forget()

    return counted


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    def make(name: str = "ada", role: str = "user", **changes: Any) -> User:
        user, made = User.objects.get_or_create(
            username=name,
            defaults={"is_superuser": role == "administrator", "is_staff": role == "administrator", **changes},
        )
        if made and role in GROUPS:
            user.groups.add(Group.objects.get_or_create(name=GROUPS[role])[0])
        return user

    return make


@pytest.fixture
def make_token(make_user: Callable[..., User]) -> Callable[..., str]:
    """A bearer token of somebody of that role; users are called after their role, `user` is ada."""

    def make(role: str = "user", *, name: str = "", days: float = 1, site: str = "", scope: Scope = Scope.ALL) -> str:
        lifetime = timedelta(days=days)
        if role in ("pilot", "worker"):
            return callers.issue_token(name or role, role, site=site, lifetime=lifetime)
        user = make_user(name or ("ada" if role == "user" else role), role)
        return callers.issue_token("test", "user", user=user, scope=scope, lifetime=lifetime)

    return make


@pytest.fixture
def api(make_token: Callable[..., str]) -> Callable[..., Client]:
    """A client that carries the token of somebody of that role: `api()` is ada, `api("production")`, …"""

    def make(role: str = "user", **more: Any) -> Client:
        if role == "anonymous":
            return Client()
        return Client(headers={"authorization": f"Bearer {make_token(role, **more)}"})

    return make


@pytest.fixture
def make_task(db: None) -> Callable[..., Task]:
    made = iter(range(FIRST_TASK, FIRST_TASK + 10_000))

    def make(**changes: Any) -> Task:
        number = changes.pop("id", None) or next(made)
        values = {"name": f"user.ada.{number}", "status": "running", "user": "ada", "task_type": "anal", **changes}
        return Task.objects.create(id=number, **values)

    return make


@pytest.fixture
def make_dataset(db: None) -> Callable[..., Dataset]:
    def make(task: Task, **changes: Any) -> Dataset:
        values = {"name": "user.ada:data", "type": "input", "status": "ready", **changes}
        return Dataset.objects.create(task=task, **values)

    return make


@pytest.fixture
def make_job(db: None) -> Callable[..., Job]:
    made = iter(range(FIRST_JOB, FIRST_JOB + 10_000))

    def make(**changes: Any) -> Job:
        number = changes.pop("id", None) or next(made)
        return Job.objects.create(id=number, **{"status": "running", "site": "SITE_A", "user": "ada", **changes})

    return make


@pytest.fixture
def task_params() -> Callable[..., dict[str, Any]]:
    """The smallest dictionary that can be submitted."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "taskName": "user.ada.test",
            "prodSourceLabel": "user",
            "noInput": True,
            "nEvents": 10,
            "nEventsPerJob": 5,
            "jobParameters": [{"type": "constant", "value": "-- echo"}],
            **changes,
        }

    return make


@pytest.fixture
def rows_stored(db: None) -> Callable[[], dict[str, int]]:
    """Rows in every table of ours, to show that a refusal stored nothing."""
    rooms = ("jedisite", "brokerage_app", "tasks_app")
    tables = [model._meta.db_table for room in rooms for model in apps.get_app_config(room).get_models()]
    counts = sql.SQL(", ").join(sql.SQL("(SELECT count(*) FROM {})").format(sql.Identifier(t)) for t in tables)
    query = sql.SQL("SELECT {}").format(counts)

    def count() -> dict[str, int]:
        connection.ensure_connection()
        # Planned once for a connection: that takes five times as long as counting.
        with psycopg.Cursor(connection.connection) as cursor:
            row = cursor.execute(query, prepare=True).fetchone()
        assert row is not None
        return dict(zip(tables, row, strict=True))

    return count
