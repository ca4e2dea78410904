"""The page of task parameters: what each means, and of those that are refused why."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from tasks_app.params.not_available import NOT_AVAILABLE
from tasks_app.params.schema import describe


@pytest.mark.django_db
def test_every_parameter_is_on_the_page_and_what_is_refused_says_why(reader: Client) -> None:
    text = html.unescape(reader.get("/help/parameters/").content.decode()).replace("<wbr>", "")
    accepted, refused = text.split('id="refused"')
    for one in describe():
        assert one.name in (refused if one.refused else accepted) and one.meaning in text, one.name
    assert all(one.sentence in refused for one in NOT_AVAILABLE.values())


@pytest.mark.django_db
def test_programs_read_the_same() -> None:
    keys = {k["name"]: k for k in Client().get("/api/v2/task-parameters/").json() if not k["inside"]}
    assert {name for name, key in keys.items() if key["refused"]} == set(NOT_AVAILABLE)
