"""Whoever starts a site for the first time can log in and get a token; later starts show no secret."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from jedisite.identity import callers, first_account
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import title_of
from tasks_app.management.commands import demo

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:8000"


def test_the_first_start_makes_an_account_that_runs_the_site(client: Client) -> None:
    User.objects.create_user("ada", password="engine-of-1843")
    site, login, more = first_account.lines(URL)
    assert site == f"The site is at {URL}/"
    _, name, _, password, *_ = login.split()
    answer = client.post("/login/", {"username": name, "password": password})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert f"manage.py token make {name}" in more and f"changepassword {name}" in more
    token = io.StringIO()
    call_command("token", "make", name, stdout=token)
    caller = callers.caller_of_token(token.getvalue().strip())
    assert caller is not None and caller.may(callers.Right.OPERATE)
    again = first_account.lines(URL)
    assert again[1:] == [f"user {name}", more] and User.objects.count() == 2


def test_whoever_runs_the_site_already_is_named(client: Client) -> None:
    User.objects.create_superuser("grace", password="compiler-of-1952")
    assert first_account.lines(URL)[1] == "user grace" and User.objects.count() == 1


def test_an_account_that_a_command_changes_is_in_the_audit_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("createsuperuser", "--noinput", username="grace", email="grace@lab.org")
    user = User.objects.get()
    monkeypatch.setattr("getpass.getpass", lambda prompt="": "compiler-of-1952")
    call_command("changepassword", "grace", stdout=io.StringIO())
    user.refresh_from_db()
    assert user.check_password("compiler-of-1952")
    entries = AuditEntry.objects.order_by("id").values_list("actor", "action", "object_type", "object_id", "details")
    key = str(user.pk)
    assert list(entries) == [
        ("manage.py", "user.make", "user", key, {"name": "grace", "rights": "administrator"}),
        ("manage.py", "user.password", "user", key, {"name": "grace"}),
    ]
    user.set_password("bug-of-1947")
    user.save()
    assert AuditEntry.objects.count() == 2, "only commands are recorded here"
    assert title_of("user.password") == "Change a password"


def test_nobody_is_given_rights_by_the_name_alone() -> None:
    User.objects.create_user(first_account.FIRST, password="engine-of-1843")
    assert "createsuperuser" in first_account.lines(URL)[1]
    assert not User.objects.filter(is_superuser=True).exists()


def test_the_demonstration_keeps_a_password_that_there_is() -> None:
    assert (password := demo._make_login()) and demo._make_login() == ""
    user = User.objects.get(username=first_account.FIRST)
    assert user.check_password(password) and user.is_superuser
    user.set_unusable_password()
    user.save()
    password = demo._make_login()
    assert User.objects.get(username=first_account.FIRST).check_password(password)
