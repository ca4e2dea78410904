"""Guessing passwords and codes takes ever longer; who knows them is held up by others for a bounded time only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory, override_settings

from jedisite.identity import dev_keys, throttle
from jedisite.identity.throttle import (
    ACCOUNT,
    ACCOUNT_HERE,
    ADDRESS,
    TooManyAttempts,
    address_of,
    begin_login,
    succeeded,
)
from jedisite.models import LoginAttempts
from tests.flow.threads import together

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOME, ELSEWHERE = "192.0.2.1", "198.51.100.7"


@pytest.mark.parametrize(
    ("failures", "wait_s"), [(0, 0), (5, 0), (6, 1), (7, 2), (8, 4), (15, 512), (16, 900), (10_000, 900)]
)
def test_the_wait_doubles_up_to_a_limit(failures: int, wait_s: int) -> None:
    assert ACCOUNT_HERE.wait_s(failures) == wait_s


def fail(account: str, address: str, at: datetime = NOW) -> int:
    """An attempt with a wrong password: 0, or the seconds to wait when it was not looked at."""
    try:
        begin_login(account, address, at)
    except TooManyAttempts as exc:
        return exc.wait_s
    return 0


@pytest.mark.django_db
def test_one_address_that_guesses_one_password_waits_longer_each_time() -> None:
    assert [fail("ada", HOME) for _ in range(8)] == [0] * 6 + [1, 1]
    assert fail("ada", HOME, NOW + timedelta(seconds=1)) == 0  # the seventh failure costs two seconds
    assert fail("ada", HOME, NOW + timedelta(seconds=2)) == 1
    assert fail("Ada ", HOME, NOW + timedelta(seconds=2)) == 1  # however the name is written
    assert fail("bob", HOME, NOW + timedelta(seconds=2)) == 0
    assert fail("ada", ELSEWHERE, NOW + timedelta(seconds=2)) == 0
    assert fail("ada", HOME, NOW + timedelta(seconds=3) + throttle.REMEMBERED) == 0


@pytest.mark.django_db
def test_one_address_that_guesses_at_many_accounts_waits() -> None:
    assert [fail(f"user{n}", HOME) for n in range(ADDRESS.free + 2)] == [0] * (ADDRESS.free + 1) + [1]
    assert fail("ada", ELSEWHERE) == 0


@pytest.mark.django_db
def test_many_addresses_cannot_lock_the_owner_out() -> None:
    begin_login("ada", HOME, NOW)
    succeeded("ada", HOME, NOW)
    at = NOW
    for n in range(ACCOUNT.free + 40):
        wait_s = fail("ada", f"203.0.113.{n}", at)
        at += timedelta(seconds=max(1, wait_s))
        assert wait_s <= 60
    assert fail("ada", ELSEWHERE, at) <= 60
    assert fail("ada", HOME, at) == 0  # where ada was let in before, nobody else's failures count


@pytest.mark.django_db(transaction=True)
def test_of_first_attempts_at_once_each_is_counted() -> None:
    together(*(lambda: fail("ada", HOME) for _ in range(6)))
    assert LoginAttempts.objects.get(key=ACCOUNT_HERE.key("ada", HOME)).failures == 6


@pytest.mark.django_db
def test_success_takes_back_what_was_counted() -> None:
    for _ in range(200):
        begin_login("ada", HOME, NOW)
        succeeded("ada", HOME, NOW)
    assert fail("ada", HOME) == 0


@pytest.mark.django_db
def test_no_name_and_no_address_is_kept_and_old_rows_go() -> None:
    fail("my secret pass phrase", HOME)
    assert not any(
        "secret" in text or HOME in text for row in LoginAttempts.objects.values_list() for text in map(str, row)
    )
    assert throttle.forget_old(NOW) == 0
    assert throttle.forget_old(NOW + throttle.REMEMBERED + timedelta(seconds=1)) == 3


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
@pytest.mark.django_db
def test_a_login_page_answers_429_before_it_looks_at_the_password(path: str, make_user: Callable[..., User]) -> None:
    user = make_user("root", "administrator")
    user.set_password("right password")
    user.save()

    def post(password: str, address: str = HOME) -> tuple[int, str, str | None]:
        answer = Client(REMOTE_ADDR=address).post(path, {"username": "root", "password": password})
        return answer.status_code, answer.content.decode(), answer.get("Retry-After")

    assert [post("wrong")[0] for _ in range(6)] == [200] * 6
    LoginAttempts.objects.update(free_at=datetime.now(UTC) + timedelta(seconds=30))
    status, said, wait_s = post("right password")
    assert status == 429 and "There were too many failed attempts; try again in" in said
    assert wait_s is not None and 25 <= int(wait_s) <= 30
    LoginAttempts.objects.update(free_at=datetime.now(UTC))
    assert post("right password")[0] == 302
    assert post("right password", ELSEWHERE)[0] == 302


@pytest.mark.django_db
def test_codes_of_devices_cannot_be_tried_out(make_user: Callable[..., User]) -> None:
    with override_settings(JEDI_DEV_ISSUER="dev", JEDI_SERVER_URL="http://testserver"):
        client = Client(REMOTE_ADDR=HOME)
        asked = {"client_id": dev_keys.CLIENT, "grant_type": "refresh_token", "refresh_token": "guess"}
        answers = [client.post("/dev-issuer/token", asked) for _ in range(throttle.CODE.free + 2)]
        assert [answer.status_code for answer in answers] == [400] * (throttle.CODE.free + 1) + [429]
        assert answers[-1].json()["error"] == "slow_down" and int(answers[-1]["Retry-After"]) == 1
        client.force_login(make_user("ada"))
        codes = [client.get("/dev-issuer/verify", {"user_code": f"BCDF-{n}"}) for n in range(throttle.CODE.free + 2)]
        assert [answer.status_code for answer in codes] == [404] * (throttle.CODE.free + 1) + [429]
        begun = [
            client.post("/dev-issuer/device", {"client_id": dev_keys.CLIENT})
            for _ in range(throttle.NEW_DEVICE.free + 2)
        ]
        assert begun[-2].status_code == 200 and begun[-1].status_code == 429


@pytest.mark.parametrize(
    ("remote", "forwarded", "proxies", "address"),
    [
        (HOME, "", [], HOME),
        (HOME, ELSEWHERE, [], HOME),  # anybody can send the header
        (HOME, ELSEWHERE, [HOME], ELSEWHERE),
        (HOME, f"10.1.1.1, {ELSEWHERE}", [HOME], ELSEWHERE),  # the first part is what the caller sent
        (HOME, f"{ELSEWHERE}, 10.0.0.9", [HOME, "10.0.0.0/8"], ELSEWHERE),
        (HOME, "nonsense", [HOME], HOME),
        (HOME, f"{ELSEWHERE}, 203.0.113.5:51234", [HOME], HOME),  # with what the proxy says no more is believed
        ("2001:db8:1:2:3::4", "", [], "2001:db8:1:2::/64"),
        ("", "", [], ""),
    ],
)
def test_the_address_is_the_callers_and_cannot_be_made_up(
    remote: str, forwarded: str, proxies: list[str], address: str
) -> None:
    from ipaddress import ip_network

    request = RequestFactory().get("/", REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded)
    with override_settings(JEDI_PROXIES=[ip_network(proxy) for proxy in proxies]):
        assert address_of(request) == address
