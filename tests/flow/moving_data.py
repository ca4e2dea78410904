"""Tasks of a random walk whose data moves between storages with real files, and what goes wrong with it meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, Queue, QueueEndpoint, Site, StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.agents import data_carousel, mover
from tasks_app.dispatch.reports import Report
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import TransferRequest, TransferRule
from tasks_app.transfers import file_copies, requesting
from tests.flow.driving import add_queue, parameters, reads, submit
from tests.flow.pilot import Job, Pilot, final_report, report, stored
from tests.flow.real_pilot import left, unreadable
from tests.tasks_app.transfers.storage_scene import SCOPE, Storages, configure

HUGE = 10**17
"""Bytes of which no disk has so many free."""


class MovingData:
    """Inputs on tape, inputs that are copied to the only queue that may have their jobs, outputs that a nucleus gathers.

    `number` keeps the names of several sets of tasks apart; the storages are those of the first.
    """

    def __init__(self, storages: Storages, chance: random.Random) -> None:
        self.storages, self.chance = storages, chance
        self.tasks: list[int] = []
        for name, site in (
            ("TAPE", ""),
            ("DISK_A", ""),
            ("DISK_B", "SITE_B"),
            ("CERN_DISK", "CERN"),
            ("FAR_DISK", "FAR"),
        ):
            storages.add(name, site, is_tape=name == "TAPE", space_total_gb=10**6, space_free_gb=10**6)
        QueueEndpoint.objects.create(queue=Queue.objects.get(name="SITE_B"), endpoint_id="DISK_B", order_read=1)
        for name, role in (("CERN", "nucleus"), ("FAR", "satellite")):
            Site.objects.create(name=name, role=role)
            more = {"site_name": name, "type": "production", "capability": "", "storage_id": f"{name}_DISK"}
            queue = add_queue(f"{name}_Q", **more)
            QueueEndpoint.objects.create(queue=queue, endpoint_id=f"{name}_DISK", order_read=1, order_write=1)
        key = "TASK_BROKER_managed"
        GdpConfig.objects.create(app="jedi", component="brokerage", key=key, value="production", type="str", vo="lab")
        configured.forget()
        for key, value in (("TAPE_LATENCY", 0), ("TRANSFER_RETRY", 0), ("TAPE_DRIVES", 2), ("LINK_TRANSFERS", 2)):
            configure(key, value)
        self.pilots = [Pilot(site="CERN_Q"), Pilot(site="FAR_Q")]

    def submit(self, number: int = 0) -> list[int]:
        """One task of each kind. Returns their ids."""
        name = f"lab.moving{number}"
        for kind, place in (("tape", "TAPE"), ("away", "DISK_A"), ("far", "FAR_DISK"), ("near", "CERN_DISK")):
            self.storages.dataset(f"{name}.{kind}", place, [f"{name}.{kind}.{one:05d}" for one in range(8)])
        staged = submit(
            parameters(
                f"{name}.s", reads(f"{name}.tape"), inputPreStaging=True, nChunksToWait=2, nFilesPerJob=1, maxAttempt=4
            )
        )
        away = submit(parameters(f"{name}.c", reads(f"{name}.away"), site="SITE_B", nFilesPerJob=2, maxAttempt=4))
        gathered = [
            submit(
                parameters(
                    f"{name}.{kind}.g",
                    reads(f"{name}.{kind}"),
                    nFilesPerJob=2,
                    maxAttempt=4,
                    prodSourceLabel="managed",
                    cpuTime=10,
                    includedSite=["CERN_Q", "FAR_Q"],
                )
            )
            for kind in ("far", "near")
        ]
        child = submit(
            parameters(
                f"{name}.m", reads(f"{name}.far.g.out"), site="SITE_B", nFilesPerJob=2, maxAttempt=4, noWaitParent=True
            ),
            parent=gathered[0],
        )
        self.tasks += [staged, away, *gathered, child]
        return [staged, away, *gathered, child]

    def steps(self) -> list[tuple[int, Callable[[], object]]]:
        return [
            (6, mover.run),
            (3, data_carousel.run),
            (2, self.disk_goes_or_comes),
            (2, self.a_replica_is_lost),
            (2, self.a_link_fails),
            (2, self.links_work_again),
            (1, self.storages_fill_up),
            (2, self.there_is_room_again),
        ]

    def final_report(self, job: Job, outcome: str) -> Report:
        """Of jobs of these tasks: they read their inputs, and leave their outputs where a storage is theirs."""
        if int(job["taskID"]) not in self.tasks:
            return final_report(job, outcome)
        if errors := unreadable(job):
            return report(job, "failed", errors=errors)
        if outcome != "finished":
            return final_report(job, outcome)
        known = set(StorageEndpoint.objects.values_list("name", flat=True))
        outputs = left(job) if known.issuperset(job["ddmEndPointOut"].split(",")) else stored(job)
        return report(job, "finished", outputs=outputs, measures={"cpu_time_s": 10})

    def disk_goes_or_comes(self) -> None:
        disk = StorageEndpoint.objects.get(name=self.chance.choice(("DISK_A", "DISK_B", "CERN_DISK", "FAR_DISK")))
        disk.blacklisted_write = not disk.blacklisted_write
        disk.save()

    def a_replica_is_lost(self) -> None:
        """A copy is gone from its disk or tape, or is another file."""
        copies = sorted(path for path in self.storages.root.glob("*/**/lab.moving*") if path.is_file())
        if copies:
            path = self.chance.choice(copies)
            if self.chance.random() < 0.5:
                path.unlink()
            else:
                path.write_bytes(b"something else")

    def a_link_fails(self) -> None:
        """Where the files that wait on one of the links would be written lies something that cannot be."""
        waiting = TransferRequest.objects.filter(status="queued").exclude(destination="").order_by("id")
        links = sorted(set(waiting.values_list("source", "destination")))
        if links:
            source, destination = self.chance.choice(links)
            for request in waiting.filter(source=source, destination=destination):
                where = file_copies.place_of(self.storages.root / destination, request.scope, request.lfn)
                file_copies.part_of(where, request.id).mkdir(parents=True, exist_ok=True)

    def links_work_again(self) -> None:
        for path in self.storages.parts():
            if path.is_dir():
                path.rmdir()

    def storages_fill_up(self) -> None:
        """The mover of another machine has begun a copy for which all room is kept."""
        if TransferRequest.objects.filter(bytes=HUGE, status="active").exists():
            return
        with transaction.atomic(), hot_cursor() as cursor:
            file = requesting.WantedFile(SCOPE, "huge", HUGE, "00000001", source="DISK_B")
            (rule,) = requesting.add_rules(cursor, [requesting.Wanted(TransferKind.COPY, "DISK_A", [file])])
        now = timezone.now()
        begun: dict[str, Any] = {"status": "active", "started": now, "moved_at": now}
        TransferRule.objects.filter(pk=rule).update(status="active", started=now)
        TransferRequest.objects.filter(rule=rule).update(
            **begun, attempt=1, bytes_copied=1, locked_by="another machine", lease_until=now + timedelta(days=1)
        )

    def there_is_room_again(self) -> None:
        with transaction.atomic(), hot_cursor() as cursor:
            huge = TransferRequest.objects.filter(bytes=HUGE, status="active").values_list("rule_id", flat=True)
            requesting.cancel(cursor, list(huge), "it was too large")

    def mend(self) -> None:
        """Nothing goes wrong any more."""
        StorageEndpoint.objects.update(blacklisted_write=False)
        self.links_work_again()
        self.there_is_room_again()

    def check_that_it_moved(self) -> None:
        """Of each kind something has arrived; no copy is left half done, and nothing waits."""
        for kind in TransferKind:
            assert TransferRule.objects.filter(kind=kind, files_done__gt=0).exists(), kind
        assert not self.storages.parts()
        assert not TransferRule.objects.filter(is_settled=False, kind__in=("copy", "gather")).exists()
