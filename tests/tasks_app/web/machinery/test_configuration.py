"""The page of the configuration shows every parameter, what is set, and rows that are not in force."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import GdpConfig
from brokerage_app.policy.parameters import COMPONENTS, PARAMETERS
from tasks_app.web.machinery.configuration_pages import TITLES

pytestmark = pytest.mark.django_db


def test_each_component_has_a_heading() -> None:
    assert set(TITLES) == set(COMPONENTS)


def test_the_page_shows_every_parameter_with_its_default_and_what_is_set(
    reader: Client, django_assert_max_num_queries: Any
) -> None:
    row = {"app": "jedi", "component": "jobbroker", "type": "float"}
    GdpConfig.objects.create(key="MIN_WEIGHT_managed", value="2.5", vo="atlas", **row)
    GdpConfig.objects.create(key="MIN_WEIGHT_user", value="heavy", **row)
    GdpConfig.objects.create(key="NO_SUCH_KEY", value="1", **row)
    with django_assert_max_num_queries(9):
        text = reader.get("/help/configuration/").content.decode().replace("<wbr>", "")
    for parameter in PARAMETERS:
        assert f'id="{parameter.component}.{parameter.key}"' in text
        assert parameter.name in text
    assert "<strong>2.5</strong>" in text and "MIN_WEIGHT_managed of atlas" in text
    assert "heavy" in text and "of the type float" in text
    assert "there is no parameter NO_SUCH_KEY of jobbroker" in text
    assert "(1 in total)" in text, "rows that are not in force do not count"
