"""What people may edit in the admin: of every table the fields, all in one list. What agents own is not among them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.urls import reverse

from jedisite.admin.base import ReadOnlyAdmin
from tasks_app.models import Task
from tests.admin_rows import fill

pytestmark = pytest.mark.django_db
QUEUE = """site_name type cloud grid_type storage status status_reason status_until core_count core_power work_dir_mb capability
    min_memory_mb max_memory_mb min_walltime_s max_walltime_s max_input_mb direct_access_lan direct_access_wan max_disk_io_kbps
    space_gb transferring_limit transfer_days_high transfer_days_low releases policy connectivity job_seed workflow
    pledged_cores catchall params data"""
SHARE = "parent value vo queue_id throttled prod_source_label working_group campaign processing_type trans_path rtype"
STORAGE = """site_name type token is_tape path space_free_gb space_total_gb space_expired_gb space_min_free_gb
    space_unavailable_gb over_quota states blacklisted_read blacklisted_write data"""
WORK_QUEUE = "name type vo status partition_id stretchable share order criteria variables function"
ERROR = "error_source error_code pattern"
ALERTS = """name active kinds about only_bad tells_ends after_min every_min quiet_from quiet_until time_zone mail_to webhook
    feed"""
EDITABLE = {
    "auth.Group": "name permissions",
    "auth.User": "username password first_name last_name email is_active is_staff is_superuser groups user_permissions",
    "brokerage_app.GdpConfig": "component key vo value value_json description app type",
    "brokerage_app.GlobalShare": SHARE,
    "brokerage_app.HarvesterSlots": "queue share resource_type slots expires",
    "brokerage_app.LinkValue": "source destination key value at",
    "brokerage_app.Queue": QUEUE,
    "brokerage_app.QueueEndpoint": "queue endpoint scope order_read order_write is_local",
    "brokerage_app.ResourceType": "position min_cores max_cores min_ram_per_core_mb max_ram_per_core_mb",
    "brokerage_app.Site": "role tier state data",
    "brokerage_app.SoftwareTags": "data",
    "brokerage_app.StorageEndpoint": STORAGE,
    "brokerage_app.WorkQueue": WORK_QUEUE,
    "brokerage_app.WorkerNodeCpus": "queue level logical_cpus percentage",
    "brokerage_app.WorkerNodeGpus": "queue vendor model memory_mb architecture framework_version driver_version per_host",
    "django_q.Schedule": "schedule_type minutes cron next_run repeats",
    "jedisite.Agent": "period_s paused",
    "jedisite.ForeignIdentity": "issuer subject user",
    "tasks_app.AlertRule": ALERTS,
    "tasks_app.ErrorClass": f"{ERROR} active description name",
    "tasks_app.Harvester": "owner",
    "tasks_app.RetryRule": f"{ERROR} architecture release work_queue action parameters active expires description",
}
"""Fields of a stored row that an administrator may change, by table. Of tables that are not here none may."""


def test_people_edit_these_fields_and_no_others(rf: RequestFactory) -> None:
    request = rf.get("/admin/")
    request.user = User.objects.create_superuser("grace")
    found = {}
    for model, model_admin in admin.site._registry.items():
        if isinstance(model_admin, ReadOnlyAdmin):
            assert not model_admin.has_change_permission(request)
            continue
        row = fill(model, 1)[0]
        shown = flatten_fieldsets(model_admin.get_fieldsets(request, row))
        fixed = set(model_admin.get_readonly_fields(request, row))
        form = model_admin.get_form(request, row)
        found[model._meta.label] = sorted(set(shown) & set(form.base_fields) - fixed)
        assert not model_admin.get_inlines(request, row)
        assert not model_admin.list_editable, "a list that is edited would go past the forms"
    assert found == {label: sorted(fields.split()) for label, fields in EDITABLE.items()}


def test_what_is_for_looking_has_no_field_for_a_reason(client: Any) -> None:
    client.force_login(User.objects.create_superuser("grace"))
    assert "_why" not in client.get(reverse("admin:tasks_app_task_change", args=[fill(Task, 1)[0].pk])).text
