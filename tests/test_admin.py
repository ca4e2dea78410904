"""Every page of the admin: it opens with empty and with filled tables, filters, searches, and refuses what it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.templatetags.admin_list import admin_list_filter
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import Permission, User
from django.db import models
from django.test import Client, RequestFactory
from django.urls import reverse

from jedisite.admin.base import LargeTableAdmin, ReadOnlyAdmin
from jedisite.admin.list_filters import MonthFilter
from jedisite.models import ApiToken
from tests.admin_rows import fill
from tests.thorough import FULL

REGISTERED = sorted(admin.site._registry, key=lambda m: m._meta.label)
OURS = ("jedisite", "brokerage_app", "tasks_app", "events_app")
READ_ONLY = [m for m in REGISTERED if isinstance(admin.site._registry[m], ReadOnlyAdmin)]
LARGE = [m for m in REGISTERED if isinstance(admin.site._registry[m], LargeTableAdmin)]
ADDABLE = [m for m in REGISTERED if m not in READ_ONLY and m.__name__ not in ("Agent", "Schedule")]


def _written(model: type[models.Model]) -> tuple[Any, ...]:
    """What the pages of a model are made of: the kind of its admin, and what is written for it alone."""
    kind = type(admin.site._registry[model])
    return kind.__bases__, *sorted(name for name, value in vars(kind).items() if callable(value))


REPRESENTATIVES = REGISTERED if FULL else list({_written(model): model for model in REGISTERED}.values())
"""One model of all whose pages are written once."""
SEARCHED = ["1", "no such thing", "99999999999999999999999", "%", "' OR 1=1", '"', "−1", "x" * 300]
MOST_QUERIES = 16
"""Queries of one list: session, user, rights, count, rows, choices of filters."""

pytestmark = pytest.mark.django_db


def label(model: type[models.Model]) -> str:
    return model._meta.label


def address(model: type[models.Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def page_of(row: models.Model) -> str:
    model_admin = admin.site._registry[type(row)]
    if isinstance(model_admin, LargeTableAdmin):
        return model_admin.url_of(row)
    return address(type(row), "change", quote(row.pk))


def filter_queries(model: type[models.Model]) -> list[str]:
    """One query string for each value of each filter of a model's list."""
    found: list[str] = []
    for item in admin.site._registry[model].list_filter:
        if isinstance(item, tuple):
            found += [f"{item[0]}_from=2020-01-31&{item[0]}_to=31/12/2040", f"{item[0]}_from=x&{item[0]}_to=9999-12-31"]
        elif isinstance(item, str):
            values = [value for value, _ in model._meta.get_field(item).flatchoices] or ["1"]
            found += [f"{item}__exact={value}" for value in values[:3]]
        elif issubclass(item, MonthFilter):
            found += ["month=202001", "month=x"]
        else:
            name = item.parameter_name
            found += [f"{name}={value}" for value in ("1", "x", "99999999999999999999999", "%00", "")]
    return found


@pytest.fixture
def make_staff(db: None) -> Callable[..., User]:
    """Somebody of the staff, without any right but those named."""
    made = iter(range(100))

    def make(*rights: str, name: str = "") -> User:
        user = User.objects.create_user(name or f"staff{next(made)}", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        return user

    return make


@pytest.fixture
def grace(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("grace"))
    return client


@pytest.fixture
def listed(grace: Client, rf: RequestFactory) -> Callable[[type[models.Model], str], ChangeList]:
    """A list for a query string, with its rows read and its filters rendered; it raises what the view would redirect for.

    The rest of the page, which is the same for every query and takes most of its time, is not made.
    """
    user = User.objects.get(username="grace")

    def open_list(model: type[models.Model], query: str) -> ChangeList:
        request = rf.get(f"{address(model, 'changelist')}?{query}")
        request.user = user
        shown = admin.site._registry[model].get_changelist_instance(request)
        list(shown.result_list)
        for filter_shown in shown.filter_specs:
            admin_list_filter(shown, filter_shown)
        return shown

    return open_list


def test_every_model_of_ours_has_an_admin():
    missing = [m._meta.label for name in OURS for m in apps.get_app_config(name).get_models() if m not in REGISTERED]
    assert missing == []


def test_all_admins_wear_the_same_theme():
    from unfold.admin import ModelAdmin

    assert [label(m) for m in REGISTERED if not isinstance(admin.site._registry[m], ModelAdmin)] == []


def test_the_first_page_and_the_pages_of_the_rooms_open(grace):
    assert grace.get(reverse("admin:index")).status_code == 200
    for name in {m._meta.app_label for m in REGISTERED}:
        assert grace.get(reverse("admin:app_list", args=[name])).status_code == 200


@pytest.mark.parametrize("model", REPRESENTATIVES, ids=label)
def test_a_list_opens_with_an_empty_table(grace, model):
    model._base_manager.exclude(pk=User.objects.get().pk if model is User else -1 if _numbered(model) else "").delete()
    answer = grace.get(address(model, "changelist"))
    assert answer.status_code == 200
    assert "Create a new item" not in answer.content.decode(), "who may not add a row is not asked to"


def _numbered(model: type[models.Model]) -> bool:
    return isinstance(model._meta.pk, models.IntegerField | models.OneToOneField)


@pytest.mark.parametrize("model", REGISTERED, ids=label)
def test_a_list_shows_its_rows_and_costs_the_same_for_any_number(grace, model, django_assert_max_num_queries):
    rows = fill(model, 20)
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = grace.get(address(model, "changelist"))
    assert answer.status_code == 200
    assert answer.context["cl"].result_count >= len(rows)
    # Where there are more rows than those, such as the schedules of all agents, they may be on a later page.
    listing = answer.context["cl"]
    assert listing.result_count > listing.list_per_page or any(page_of(row) in answer.text for row in rows)


@pytest.mark.parametrize("model", REGISTERED, ids=label)
def test_every_filter_takes_every_value(listed, model):
    fill(model, 2)
    for query in filter_queries(model):
        listed(model, query)


@pytest.mark.parametrize("model", REGISTERED, ids=label)
def test_a_search_for_anything_opens(grace, listed, model):
    fill(model, 2)
    for text in SEARCHED:
        listed(model, urlencode({"q": text}))
    if model in REPRESENTATIVES:
        # Each text stands in the whole page of some models.
        text = SEARCHED[REPRESENTATIVES.index(model) % len(SEARCHED)]
        assert grace.get(address(model, "changelist"), {"q": text}).status_code == 200


def test_every_model_can_be_searched():
    assert [label(m) for m in REGISTERED if not admin.site._registry[m].search_fields] == []


@pytest.mark.parametrize("model", LARGE, ids=label)
def test_a_search_finds_the_row_by_each_of_its_columns(listed, model):
    row = fill(model, 3)[1]
    row.refresh_from_db()
    for lookup in admin.site._registry[model].search_fields:
        name = lookup.removesuffix("__exact")
        if not getattr(row, name):
            continue
        assert listed(model, urlencode({"q": str(getattr(row, name))})).result_count >= 1, lookup


@pytest.mark.parametrize("model", REGISTERED, ids=label)
def test_the_page_of_a_row_opens(grace, model, django_assert_max_num_queries):
    row = fill(model, 1)[0]
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = grace.get(page_of(row))
    assert answer.status_code == 200


@pytest.mark.parametrize("model", REPRESENTATIVES, ids=label)
def test_the_page_of_no_row_leads_back(grace, model):
    for key in ("0", "x", "1-2-3", "99999999999999999999999", "_00", "1-99999999999999999999999"):
        assert grace.get(address(model, "change", key)).status_code == 302, key


@pytest.mark.parametrize("model", [*ADDABLE, ApiToken], ids=label)
def test_a_page_for_adding_opens(grace, model):
    assert grace.get(address(model, "add")).status_code == 200


@pytest.mark.parametrize("model", [m for m in READ_ONLY if m in REPRESENTATIVES], ids=label)
def test_what_the_machinery_writes_is_not_changed_by_hand(grace, model):
    row = fill(model, 1)[0]
    before = model._base_manager.filter(pk=row.pk).values().get()
    # The theme takes a posted `dataset` for something of its own.
    names = [f.name for f in model._meta.concrete_fields if f.name != "dataset"]
    posted = dict.fromkeys(names, "1") | {"_save": "Save", "post": "yes"}
    assert grace.post(page_of(row), posted).status_code == 403
    assert grace.post(page_of(row).removesuffix("change/") + "delete/", posted).status_code == 403
    if model is not ApiToken:
        assert grace.get(address(model, "add")).status_code == 403
        assert grace.post(address(model, "add"), posted).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
    grace.post(address(model, "changelist"), chosen)
    assert model._base_manager.filter(pk=row.pk).values().get() == before


@pytest.mark.parametrize("model", [m for m in LARGE if m in REPRESENTATIVES], ids=label)
def test_a_large_list_takes_no_order_and_no_column_from_the_address(grace, model):
    fill(model, 2)
    plain = grace.get(address(model, "changelist")).context["cl"]
    sorted_ = grace.get(address(model, "changelist"), {"o": "-2.1"}).context["cl"]
    assert plain.queryset.query.order_by == sorted_.queryset.query.order_by
    column = next(f.name for f in model._meta.concrete_fields if not f.is_relation)
    for lookup in (f"{column}__gt", f"{column}__isnull", "xmin__contains"):
        assert grace.get(address(model, "changelist"), {lookup: "1"}).status_code == 400


def test_facets_are_never_counted(grace):
    for model in REGISTERED:
        assert admin.site._registry[model].show_facets is admin.ShowFacets.NEVER
        assert not admin.site._registry[model].show_full_result_count


@pytest.mark.parametrize("model", REPRESENTATIVES, ids=label)
def test_staff_see_what_they_were_given_to_see_and_nothing_else(client, model, make_staff):
    row = fill(model, 1)[0]
    client.force_login(make_staff())
    assert client.get(address(model, "changelist")).status_code == 403
    assert client.get(page_of(row)).status_code == 403
    client.force_login(make_staff(f"view_{model._meta.model_name}"))
    assert client.get(address(model, "changelist")).status_code == 200
    assert client.get(page_of(row)).status_code == 200
    assert client.post(page_of(row), {}).status_code == 403
    assert client.get(address(model, "add")).status_code == 403


def test_people_who_are_not_staff_are_asked_to_log_in(client, make_user: Callable[..., User]):
    client.force_login(make_user("ada"))
    answer = client.get(reverse("admin:index"))
    assert answer.status_code == 302 and "/admin/login/" in answer["Location"]
