"""What pilots read of queues and storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue, StorageEndpoint, StorageFolder
from tasks_app.ddm.addresses import storage_path
from tasks_app.worker_node.pilot.storage import base_folder, default_endpoint, holding_folders, place

pytestmark = pytest.mark.django_db


def test_a_pilot_without_a_token_reads_queues_and_storage_and_nothing_that_is_private(client: Client) -> None:
    storage = StorageEndpoint.objects.create(name="SE_A", site_name="A", path="/data/se")
    described = {
        "copytools": {"gfal": {}},
        "acopytools": {"pr": ["gfal"]},
        "timefloor": 60,
        "siteid": "x",
        "contact": "ada",
    }
    Queue.objects.create(name="A_1", site_name="A", storage=storage, catchall="a,b", status_reason="ada is ill")
    Queue.objects.create(name="A_2", site_name="A", data=described, status="test", core_count=8)
    queues = client.get("/cache/pandaqueues.json").json()
    assert {name: client.get(f"/cache/schedconfig/{name}.all.json").json() for name in ("A_1", "A_2")} == queues
    local, other = queues["A_1"], queues["A_2"]
    assert (local["catchall"], local["copytools"]) == ("a,b,mv_final_destination", {"mv": {}})
    assert local["astorages"]["pw"] == local["astorages"]["es_events"] == ["SE_A"]
    assert local["acopytools"]["es_events"] == local["acopytools"]["pw"] == ["mv"]
    assert (other["copytools"], other["acopytools"]) == ({"gfal": {}}, {"pr": ["gfal"]})
    assert (other["timefloor"], other["status"], other["corecount"], other["catchall"]) == (60, "test", 8, "")
    assert "ada" not in str(queues)
    assert client.get("/cache/schedconfig/NONE.all.json").status_code == 404
    floors = [client.get(f"/cache/schedconfig/{name}.all.json?timefloor=30").json()["timefloor"] for name in queues]
    assert floors == [30, 60], "who starts a pilot chooses only what the queue leaves open"
    assert "timefloor" not in client.get("/cache/schedconfig/A_1.all.json?timefloor=-1").json()


def test_an_endpoint_keeps_its_number_and_one_without_a_folder_has_no_path_at_all(client: Client) -> None:
    told = {"write_wan": [{"endpoint": "davs://a.example:443", "path": "/x/"}]}
    for name, more in (("SE_B", {"path": "/data/se/"}), ("SE_C", {"data": {"arprotocols": told}}), ("SE_D", {})):
        StorageEndpoint.objects.create(name=name, site_name="A", **more)
    before = client.get("/cache/ddmendpoints.json").json()
    StorageEndpoint.objects.create(name="SE_A", site_name="A")
    StorageEndpoint.objects.filter(name="SE_C").delete()
    after = client.get("/cache/ddmendpoints.json").json()
    assert [after[name]["id"] for name in ("SE_B", "SE_D")] == [before[name]["id"] for name in ("SE_B", "SE_D")]
    assert len({row["id"] for row in (*before.values(), after["SE_A"])}) == 4
    assert {row["path"] for rows in after["SE_B"]["arprotocols"].values() for row in rows} == {"/data/se/"}
    assert (before["SE_C"]["arprotocols"], before["SE_D"]["arprotocols"]) == (told, {})


def test_our_pilot_is_told_in_which_folders_files_have_been_seen(client: Client, tmp_path: Path) -> None:
    now = timezone.now()
    for name in ("held", "empty", "unseen"):
        (tmp_path / name).mkdir()
        endpoint = StorageEndpoint.objects.create(name=name, site_name="A", path=str(tmp_path / name))
        if name != "unseen":
            StorageFolder.objects.create(endpoint=endpoint, looked_at=now, holds_files=name == "held", inode=1)
    told = client.get("/cache/ddmendpoints.json").json()
    assert [name for name, entry in told.items() if "holds_files" in entry] == ["held"]
    assert holding_folders(told) == {tmp_path / "held"}
    assert not holding_folders({"odd": {"holds_files": True}, "odder": 1, "oddest": {"holds_files": "yes"}})


def test_our_pilot_and_the_catalogue_agree_with_the_layout_of_pandas_pilots(client: Client, tmp_path: Path) -> None:
    storage = StorageEndpoint.objects.create(name="SE_A", site_name="A", path=str(tmp_path))
    Queue.objects.create(name="A_1", site_name="A", storage=storage)
    endpoint = default_endpoint(client.get("/cache/schedconfig/A_1.all.json").json())
    base = base_folder(endpoint, client.get("/cache/ddmendpoints.json").json())
    # As pilot 3.7 was seen to do it.
    seen = tmp_path / "user/jdoe/ff/fe/user.jdoe.6001.out"
    assert place(base, "user.jdoe", "user.jdoe.6001.out").path == seen
    assert storage_path(tmp_path, "user.jdoe", "user.jdoe.6001.out") == seen
