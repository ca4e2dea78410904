"""Certificates: a DN counts from a trusted proxy, for programs, and when it is bound to an account."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jedisite.models import ForeignIdentity

pytestmark = pytest.mark.django_db
DN = "/DC=example/OU=people/CN=Ada Lovelace"


@pytest.fixture
def ask(make_user: Callable[..., User], settings: Any) -> Callable[..., int]:
    settings.JEDI_X509_HEADER, settings.JEDI_X509_PROXIES = (
        "X-Client-DN",
        [ip_network("10.0.0.0/30"), ip_network("::1")],
    )
    ForeignIdentity.objects.create(issuer=ForeignIdentity.X509, subject=DN, user=make_user("ada"))

    def asked(dn: str = DN, address: str = "10.0.0.1", where: str = "/api/v2/tasks/", **headers: str) -> int:
        return Client(headers={"x-client-dn": dn, **headers}).get(where, REMOTE_ADDR=address).status_code

    return asked


def test_a_dn_counts_from_the_proxy_only(
    ask: Callable[..., int], make_token: Callable[..., str], settings: Any
) -> None:
    assert [ask(), ask(address="::1"), ask(where="/tasks/")] == [200, 200, 200]
    assert ask(dn=DN + "/CN=1234567/CN=limited proxy") == 200
    for wrong in (
        {"dn": "/CN=Ada Lovelace"},
        {"dn": DN.lower()},
        {"dn": DN + "/CN=Eve"},
        {"dn": ""},
        {"dn": DN * 20},
        {"address": "10.0.0.4"},
        {"address": ""},
        {"address": "::2"},
    ):
        assert ask(**wrong) == 401, wrong
    # A token counts before a certificate, also one that is wrong.
    assert ask(authorization="Bearer jedi_x") == 401
    assert ask(dn="/CN=Eve", authorization=f"Bearer {make_token()}") == 200
    User.objects.update(is_active=False)
    assert ask() == 401
    settings.JEDI_X509_HEADER, settings.JEDI_X509_PROXIES = "", []
    assert ask() == 401


def test_a_browser_is_not_believed_about_its_certificate(ask: Callable[..., int]) -> None:
    assert ask(**{"sec-fetch-site": "cross-site"}) == 401
    assert ask(origin="https://evil.example") == 401
    assert ask(origin="null") == 401  # a page in a sandbox
    assert ask(origin="atlas") == 200
