"""What no page of the admin offers, sent by hand: it is refused with a sentence, and never ends with an error of ours."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.db import models
from django.test import Client, RequestFactory

from brokerage_app.models import GlobalShare, Queue, WorkQueue
from jedisite.admin.base import AuditedAdmin
from tests.test_admin import ADDABLE, REPRESENTATIVES, address, grace, label

__all__ = ["grace"]
pytestmark = pytest.mark.django_db
AUDITED = [m for m in REPRESENTATIVES if isinstance(admin.site._registry[m], AuditedAdmin)]
UNSTORABLE = ('{"a": "\\u0000"}', '{"a": ["\\ud800"]}', '"\\udc00"', '{"a": NaN}', '{"\\u0000": 1}', "1e999")


def actions_of(model: type[models.Model]) -> list[str]:
    model_admin: Any = admin.site._registry[model]
    request = RequestFactory().get("/")
    request.user = User.objects.get(username="grace")
    return list(model_admin.get_actions(request))


def test_a_selection_that_no_page_offers_is_refused_with_a_sentence(grace: Client) -> None:
    seen = 0
    for model in AUDITED:
        for action in actions_of(model):
            for chosen in ("abc", "\x00", "9" * 40):
                posted = {"action": action, ACTION_CHECKBOX_NAME: [chosen]}
                answer = grace.post(address(model, "changelist"), posted)
                assert answer.status_code in (200, 302), (label(model), action, chosen)
                if chosen == "\x00":
                    assert "is no" in str(list(get_messages(answer.wsgi_request))[-1]), (label(model), action)
                    seen += 1
    assert seen


def test_names_that_turn_the_direction_of_a_line_are_refused_at_their_field(grace: Client) -> None:
    for model, name in ((Queue, "name"), (WorkQueue, "name"), (GlobalShare, "name")):
        answer = grace.post(address(model, "add"), {name: "a\u202eb"})
        assert "contains a line feed or another control character" in str(answer.context["adminform"].form.errors[name])


def test_json_that_cannot_be_stored_is_refused_at_its_field(grace: Client) -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.get(username="grace")
    seen = 0
    for model in ADDABLE:
        model_admin: Any = admin.site._registry[model]
        fields = model_admin.get_form(request).base_fields
        names = [name for name, field in fields.items() if isinstance(field, forms.JSONField)]
        for text in UNSTORABLE if names else ():
            answer = grace.post(address(model, "add"), dict.fromkeys(names, text))
            assert answer.status_code == 200, (label(model), text)
            assert set(names) <= set(answer.context["adminform"].form.errors), (label(model), text)
            seen += 1
    assert seen
