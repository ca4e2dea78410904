"""Ranges in the admin: their states in words, and a choice of states once a job or a file is named."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.events_app.busy_ranges import Busy

pytestmark = pytest.mark.django_db
LIST = "/admin/events_app/event/"


def test_states_are_words_and_are_chosen_within_a_job_or_a_file(operator: Client, busy: Busy) -> None:
    whole = operator.get(LIST)
    assert whole.status_code == 200 and "status=1" not in whole.content.decode()
    assert "no attempt left" in whole.content.decode()
    of_job = operator.get(f"{LIST}?job_id={busy.consumer.id}").content.decode()
    assert "discarded" in of_job and "status=1" in of_job
    sent = operator.get(f"{LIST}?job_id={busy.consumer.id}&status=1")
    assert [row.status for row in sent.context["cl"].result_list] == [1]
