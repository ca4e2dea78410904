"""The page of task parameters: what each means, and of those that are refused why."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from tasks_app.params.not_available import ITEMS, NOT_AVAILABLE, STEPS
from tasks_app.params.schema import describe


@pytest.mark.django_db
def test_every_parameter_is_on_the_page_and_what_is_refused_says_why(reader: Client) -> None:
    text = html.unescape(reader.get("/help/parameters/").content.decode()).replace("<wbr>", "")
    accepted, refused = text.split('id="refused"')
    for one in describe():
        assert one.name in (refused if one.refused else accepted) and one.meaning in text, one.name
    tables = (NOT_AVAILABLE, ITEMS, *STEPS.values())
    assert all(name in refused and one.sentence in refused for table in tables for name, one in table.items())


@pytest.mark.django_db
def test_programs_read_the_same() -> None:
    keys = Client().get("/api/v2/task-parameters/").json()
    refused = {(key["inside"], key["name"]): key["refused"] for key in keys if key["refused"]}
    tables = {"": NOT_AVAILABLE, "item": ITEMS, **STEPS}
    assert refused == {(inside, name): one.sentence for inside, table in tables.items() for name, one in table.items()}
