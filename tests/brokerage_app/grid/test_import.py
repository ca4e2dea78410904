"""Descriptions of the grid from files: what is read, what is refused by name, and that all comes out as it went in."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from brokerage_app.grid import queue_status
from brokerage_app.grid.cric import BadDescriptionError, describe
from brokerage_app.grid.grid_storing import export
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import LinkValue, Queue, QueueEndpoint, Site, SoftwareTags, StorageEndpoint
from jedisite.models import AuditEntry

QUEUE = {
    "pandasite": "CERN",
    "status": "online",
    "cloud": "CERN,WORLD",
    "corecount": 8,
    "corepower": "11.5",
    "maxrss": 32000,
    "minrss": 0,
    "maxwdir": 120000,
    "maxtime": 345600,
    "pledgedcpu": -1,
    "releases": "AUTO|x",
    "capability": "ucore",
    "catchall": "useJumboJobs",
    "params": {"jobChunkSize": 5},
    "direct_access_lan": "True",
    "maxinputsize": -1,
    "resource_type": "GRID",
    "workflow": "pull_ups",
    "wnconnectivity": "full#IPv4",
    "gatekeeper": "kept as it is",
    "astorages": {
        "read_lan": ["CERN_DISK", "CERN_TAPE"],
        "write_lan": ["CERN_DISK"],
        "write_lan_analysis": ["CERN_SCR"],
    },
}
FILE: dict[str, Any] = {
    "queues": {"CERN_Q1": QUEUE, "BARE": {"status": "test"}},
    "storages": {
        "CERN_DISK": {
            "site": "CERN",
            "space_free": 10,
            "space_total": 100.5,
            "detailed_status": {"write_wan": "off"},
            "arprotocols": {},
        },
        "CERN_TAPE": {"site_name": "CERN", "type": "DATATAPE", "is_tape": "Y", "blacklisted_write": "Y"},
        "CERN_SCR": {"site_name": "CERN", "blacklisted": True},
    },
    "sites": {
        "CERN": {"datapolicies": ["Nucleus"], "tier_level": 0},
        "FAR": {"role": "satellite", "state": "DISABLED"},
    },
    "links": [
        ["CERN", "FAR", "AGIS_closeness", 3],
        ["FAR", "CERN", "dashb_mbps_1h", "2.5", "2030-01-02T03:04:05+00:00"],
    ],
    "software": {"CERN_Q1": {"containers": ["any"]}, "ALL": {"tags": []}},
}


def load(tmp_path: Path, plain: Any) -> str:
    file = tmp_path / "grid.json"
    file.write_text(plain if isinstance(plain, str) else json.dumps(plain))
    out = StringIO()
    call_command("import_sites", str(file), stdout=out, stderr=out)
    return out.getvalue()


@pytest.mark.django_db
def test_one_of_a_kind_is_counted_as_one(tmp_path: Path) -> None:
    one = {
        "sites": {"A": {}},
        "queues": {"A_Q": {"pandasite": "A", "status": "online"}},
        "software": {"A_Q": {"tags": []}},
    }
    assert load(tmp_path, one).splitlines() == [
        "site A: new",
        "queue A_Q: new",
        "software of A_Q: new",
        "read 1 site, 0 storages, 1 queue, 0 links, 1 software entry; 3 records other than links new or changed",
    ]
    with pytest.raises(CommandError, match=r"nothing was stored: 1 fault$"):
        load(tmp_path, {"sites": {"A": {"role": "king"}}})
    (entry,) = AuditEntry.objects.all()
    assert (entry.actor, entry.action, entry.object_id) == ("manage.py", "grid.import", "grid.json")
    assert entry.details == {"changed": (counts := {"sites": 1, "queues": 1, "software": 1}), "read": counts}


@pytest.mark.django_db
def test_the_trail_counts_what_is_new_or_changed_and_links_are_not_read_for_it(tmp_path: Path) -> None:
    load(tmp_path, FILE)
    with CaptureQueriesContext(connection) as asked:
        assert load(tmp_path, FILE).endswith("; 0 records other than links new or changed\n")
    table = connection.ops.quote_name(LinkValue._meta.db_table)
    assert [one["sql"] for one in asked if f"FROM {table}" in one["sql"]] == []
    load(tmp_path, {**FILE, "software": {"ALL": {"tags": ["x"]}}, "sites": {"NEW": {}, **FILE["sites"]}})
    first, same, last = (entry.details for entry in AuditEntry.objects.order_by("id"))
    read = {"sites": 2, "storages": 3, "queues": 2, "links": 2, "software": 2}
    assert first == {"changed": {"sites": 2, "storages": 3, "queues": 2, "software": 2}, "read": read}
    assert same == {"changed": {}, "read": read}
    assert last["changed"] == {"sites": 1, "software": 1}


@pytest.mark.django_db
def test_a_file_becomes_queues_storage_sites_and_links(tmp_path: Path) -> None:
    assert "\nread 2 sites, 3 storages, 2 queues, 2 links, 2 software entries; 9 records other" in load(tmp_path, FILE)
    queue = Queue.objects.get(name="CERN_Q1")
    assert (queue.core_count, queue.core_power, queue.max_memory_mb, queue.work_dir_mb) == (8, 11.5, 32000, 120000)
    assert (queue.releases, queue.direct_access_lan, queue.type, queue.pledged_cores) == (
        ["AUTO", "x"],
        True,
        "production",
        -1,
    )
    assert queue.data["gatekeeper"] == "kept as it is"
    bare = Queue.objects.get(name="BARE")
    assert (bare.core_count, bare.core_power, bare.max_memory_mb, bare.capability) == (1, 0.0, None, "")
    assert dict(Site.objects.values_list("name", "role")) == {"CERN": "nucleus", "FAR": "satellite"}
    grid = load_grid(timezone.now())
    site = grid.sites["CERN_Q1"]
    assert (site.inputs, site.outputs, site.analysis_outputs) == (
        ("CERN_DISK", "CERN_TAPE"),
        ("CERN_DISK",),
        ("CERN_SCR",),
    )
    assert (site.portion, site.jumbo, site.direct_io_only, site.cloud) == (5, True, True, "CERN")
    assert not grid.endpoints["CERN_DISK"].is_up("write_wan") and not grid.endpoints["CERN_SCR"].is_up("read_lan")
    assert grid.endpoints["CERN_TAPE"].is_tape
    assert grid.nuclei["CERN"].default_output == "CERN_DISK"


@pytest.mark.django_db
def test_what_is_exported_is_imported_as_it_was(tmp_path: Path) -> None:
    load(tmp_path, FILE)
    first = export()
    for model in (QueueEndpoint, Queue, StorageEndpoint, Site, LinkValue, SoftwareTags):
        model.objects.all().delete()
    out = StringIO()
    call_command("export_sites", stdout=out)
    assert json.loads(out.getvalue())["queues"] == {}
    load(tmp_path, first)
    assert export() == first
    assert first["queues"]["CERN_Q1"]["gatekeeper"] == "kept as it is"
    load(tmp_path, first)
    assert export() == first


@pytest.mark.django_db
def test_what_the_file_does_not_name_stays(tmp_path: Path) -> None:
    load(tmp_path, FILE)
    load(tmp_path, {"queues": {"CERN_Q1": {**QUEUE, "status": "offline", "astorages": {"read_lan": ["CERN_TAPE"]}}}})
    assert dict(Queue.objects.values_list("name", "status")) == {"CERN_Q1": "offline", "BARE": "test"}
    assert list(QueueEndpoint.objects.values_list("endpoint", "order_read", "order_write")) == [("CERN_TAPE", 1, None)]
    assert Site.objects.get(name="CERN").role == "nucleus"


@pytest.mark.django_db
def test_fields_that_a_record_does_not_name_stay(tmp_path: Path) -> None:
    load(tmp_path, FILE)
    before = export()
    said = load(
        tmp_path,
        {
            "sites": {"CERN": {"tier_level": 1}},
            "storages": {"CERN_SCR": {"blacklisted_write": False}},
            "queues": {"CERN_Q1": {"releases": ["ANY"]}, "BARE": {"status": "offline", "comment": "night"}},
        },
    )
    assert said.splitlines() == [
        "site CERN: tier_level 0 → 1",
        "storage CERN_SCR: blacklisted_write true → false",
        "queue BARE: comment none → night, status test → offline",
        'queue CERN_Q1: releases ["AUTO", "x"] → ["ANY"]',
        "read 1 site, 1 storage, 2 queues, 0 links, 0 software entries; 4 records other than links new or changed",
    ]
    expected = json.loads(json.dumps(before))
    expected["sites"]["CERN"]["tier_level"] = "1"
    expected["storages"]["CERN_SCR"]["blacklisted_write"] = False
    expected["queues"]["CERN_Q1"]["releases"] = ["ANY"]
    expected["queues"]["BARE"] |= {"status": "offline", "comment": "night"}
    assert export() == expected
    load(tmp_path, {"queues": {"BARE": {"status": "online"}, "CERN_Q1": {"site": "FAR", "maxrss": None}}})
    bare, queue = Queue.objects.get(name="BARE"), Queue.objects.get(name="CERN_Q1")
    assert (bare.status_reason, queue.site_name, queue.max_memory_mb) == ("", "FAR", None), "null takes a value away"


@pytest.mark.django_db
def test_a_record_without_a_status_leaves_one_for_a_time_as_it_is(tmp_path: Path) -> None:
    load(tmp_path, FILE)
    now = timezone.now()
    queue_status.set_status("CERN_Q1", "offline", by="ada", reason="switches", until=now + timedelta(hours=1), now=now)
    load(tmp_path, {"queues": {"CERN_Q1": {"corecount": 4}}})
    assert Queue.objects.get(name="CERN_Q1").status == "offline"
    queue_status.end_due(now + timedelta(hours=2))
    queue = Queue.objects.get(name="CERN_Q1")
    assert (queue.status, queue.core_count) == ("online", 4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": None}, "queue Q: status is missing"),
        (
            {"status": "on"},
            "queue Q: status must be one of online, standby, brokeroff, test, offline, paused, not 'on'",
        ),
        ({"maxrss": "lots"}, "queue Q: maxrss must be a number, not 'lots'"),
        ({"maxrss": -5}, "queue Q: maxrss must be a whole number from 0 to 2147483647, not -5"),
        ({"maxtime": 1.5}, "queue Q: maxtime must be a whole number from 0 to 2147483647, not 1.5"),
        ({"corepower": float("inf")}, "queue Q: corepower must be a number, not inf"),
        ({"type": "x"}, "queue Q: type must be one of production, analysis, unified, not 'x'"),
        ({"params": []}, "queue Q: params must be a map, not []"),
        ({"releases": [1]}, "queue Q: releases must be a list of names, not [1]"),
        ({"direct_access_lan": "maybe"}, "queue Q: direct_access_lan must be true or false, not 'maybe'"),
        ({"pandasite": "x" * 61}, "queue Q: pandasite must have 60 characters at most, not 61"),
        ({"astorages": {"read_lan": ["X"]}}, "queue Q: astorages.read_lan names X, which is not described"),
        ({"astorages": {"read_lan": "X"}}, "queue Q: astorages.read_lan must be a list of names of storages"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadDescriptionError) as caught:
        describe({"queues": {"Q": {"status": "online", **changes}}})
    assert [str(fault) for fault in caught.value.faults] == [says]


@pytest.mark.parametrize(
    "plain",
    [
        [],
        "not json",
        {"queue": {}},
        {"queues": []},
        {"queues": {"": {"status": "online"}}},
        {"queues": {"Q": 1}},
        {"storages": {"S": {}}},
        {"sites": {"S": {"role": "x"}}},
        {"links": {}},
        {"links": [["A", "B", "k"]]},
        {"links": [["A", "B", "k", "x"]]},
        {"links": [["A", "B", "k", 1, "yesterday"]]},
        {"links": [["A", "B", "k", 1, "0001-01-01T00:00:00+14:00"]]},
        {"storages": {"S": {"site": "A", "detailed_status": {"read_lan": 1}}}},
    ],
)
@pytest.mark.django_db
def test_of_a_file_with_a_fault_nothing_is_stored(tmp_path: Path, plain: Any) -> None:
    good: dict[str, Any] = {"queues": {"GOOD": {"status": "online"}}}
    if isinstance(plain, dict):
        whole = {
            name: {**good.get(name, {}), **part} if isinstance(part, dict) else part for name, part in plain.items()
        }
        plain = {**good, **whole}
    with pytest.raises(CommandError):
        load(tmp_path, plain)
    assert not Queue.objects.exists() and not Site.objects.exists() and not LinkValue.objects.exists()


@pytest.mark.parametrize(
    ("work_dir", "max_input", "mb"),
    [(5000, 0, 5000), ("5000", 0, 5000), (None, 0, 0), ("bad", 9000, 11000), ("bad", 0, 0), ("bad", -1, 16336)],
)
def test_scratch_space_that_is_no_number_is_what_the_input_leaves(work_dir: Any, max_input: int, mb: int) -> None:
    found = describe({"queues": {"Q": {"status": "online", "maxwdir": work_dir, "maxinputsize": max_input}}})
    assert found.queues[0]["work_dir_mb"] == mb


def of_storage(path: Any, name: str = "S") -> dict[str, Any]:
    return {"storages": {name: {"site_name": "A", "path": path}}}


@pytest.mark.parametrize("path", ["relative/folder", "./x", "/etc/../tmp", "/x/.", "/", "///"])
def test_a_folder_of_a_storage_begins_with_a_slash_and_leads_nowhere_else(path: str) -> None:
    with pytest.raises(BadDescriptionError) as caught:
        describe(of_storage(path))
    says = f"storage S: path must be a folder that begins with / and has no . or .. in it, not {path!r}"
    assert [str(fault) for fault in caught.value.faults] == [says]


@pytest.mark.parametrize("path", [5, 1.5, True, ["/x"]])
def test_a_folder_of_a_storage_is_a_text(path: Any) -> None:
    with pytest.raises(BadDescriptionError, match="storage S: path must be a text, not"):
        describe(of_storage(path))


def refused(tmp_path: Path, plain: Any) -> str:
    """The faults of a file of which nothing is stored."""
    before, out = export(), StringIO()
    (tmp_path / "grid.json").write_text(json.dumps(plain))
    with pytest.raises(CommandError, match="nothing was stored"):
        call_command("import_sites", str(tmp_path / "grid.json"), stdout=out, stderr=out)
    assert export() == before
    return out.getvalue()


@pytest.mark.django_db
def test_the_folder_of_a_storage_is_made_by_the_import_that_names_it_and_never_again(tmp_path: Path) -> None:
    folder = tmp_path / "disks" / "north"
    load(tmp_path, of_storage(f"{folder}/"))
    assert folder.is_dir() and StorageEndpoint.objects.get().path == str(folder)
    folder.rmdir()
    load(tmp_path, of_storage(str(folder)))
    load(tmp_path, {"storages": {"S": {"space_free": 5}}})
    assert not folder.exists(), "its disk is not mounted"


@pytest.mark.django_db
def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("")
    assert f"storage S: path must be a folder: {file} is none" in refused(tmp_path, of_storage(str(file)))
    assert f"storage S: path cannot be made: {file}/x: Not a directory" in refused(tmp_path, of_storage(f"{file}/x"))
    load(tmp_path, of_storage(str(folder)))
    (tmp_path / "link").symlink_to(folder)
    for other in (folder, tmp_path / "link"):
        says = f"storage T: path must be a folder of its own: {other} is that of S, and one file would have two names"
        assert says in refused(tmp_path, of_storage(str(other), "T"))
    twice = {"storages": {name: {"site_name": "A", "path": str(tmp_path / "new")} for name in ("T", "U")}}
    assert refused(tmp_path, twice).count("must be a folder of its own") == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.django_db
def test_a_storage_with_files_keeps_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    load(tmp_path, of_storage(str(folder)))
    (folder / "lab").mkdir()
    assert f"storage S: path cannot be taken away: there are files in {folder}" in refused(tmp_path, of_storage(None))
    (folder / "lab").rmdir()
    load(tmp_path, of_storage(None))
    assert StorageEndpoint.objects.get().path == ""


@pytest.mark.django_db
def test_the_example_of_the_documentation_can_be_imported(tmp_path: Path) -> None:
    told = (Path(settings.BASE_DIR) / "docs" / "sites.md").read_text()
    example = told.partition("```json\n")[2].partition("```")[0]
    assert "\nread 1 site, 1 storage, 1 queue, 1 link, 1 software entry; 4 records" in load(tmp_path, example)
    queue = Queue.objects.get(name="NORTH_Q")
    assert (queue.max_memory_mb, queue.max_walltime_s, queue.work_dir_mb, queue.core_power) == (
        16000,
        172800,
        40000,
        11.5,
    )
    used = QueueEndpoint.objects.values_list("endpoint_id", "scope", "order_read", "order_write", "is_local")
    assert list(used) == [("NORTH_DISK", "default", 1, 1, True)]
    assert Site.objects.get(name="NORTH").role == "nucleus" and StorageEndpoint.objects.get().space_free_gb == 200000
