"""What the jobs of a task want of a site: from its columns, its split rule and its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from brokerage_app.brokers.deciding import allowed
from brokerage_app.formulas.walltime import hs06s_per_event, is_undefined
from brokerage_app.grid.repository import load_grid
from brokerage_app.policy.workqueues import RESOURCE
from brokerage_app.vocabulary.needs import InputData, TaskNeeds
from jedisite.database.sql import hot_cursor
from tasks_app.generation.rules.consumers import consumers_of
from tasks_app.inputs.locality import inputs_of
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.params.kinds import names_of
from tasks_app.params.split_codes import CODES
from tasks_app.params.splitrule import SplitRule

MB: Final = 1024 * 1024
LOOKED_AT: Final = 100
"""Files by which the size of the smallest job is estimated."""
AT_HAND: Final = 5000
"""Files that a turn looks at when it asks how much input would have to be moved."""
_BYTES: Final = {"B": 1, "kB": 1024, "MB": MB, "GB": 1024 * MB}
_FILES: Final = """
SELECT coalesce(max(fsize), 0), coalesce(max(nevents), 0) FROM (
    SELECT fsize, coalesce(endevent - startevent + 1, nevents) AS nevents
      FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s ORDER BY fileid LIMIT %s) f
"""
_USED: Final = """
SELECT DISTINCT computingsite FROM jobs
 WHERE jeditaskid = %s AND computingsite IS NOT NULL
   AND jobstatus IN ('defined', 'assigned', 'activated', 'sent', 'starting', 'running') ORDER BY computingsite
"""


class Atom(NamedTuple):
    """The smallest job of a task: its input as it is read and the part that is processed, in MB, and its events.

    `largest_mb` is its largest file: where less fits, jobs are cut down to that.
    """

    size_mb: float = 0.0
    effective_mb: float = 1.0
    events: int = 0
    largest_mb: float = 0.0


def needs_of(task: Task, raw: dict[str, Any]) -> TaskNeeds:
    """What the jobs of a task want of a site, as far as its own columns and parameters say."""
    rule, sites, queue = SplitRule.parse(task.split_rule), names_of(task.site), task.work_queue
    return TaskNeeds(
        task_id=task.id,
        vo=task.vo or "",
        label=task.prod_source_label or "user",
        user=task.user or "",
        working_group=task.working_group or "",
        processing_type=task.processing_type or "",
        cloud="" if rule.flag("CV") else task.cloud or "",
        share=task.gshare or "",
        work_queue=queue.name if queue is not None else "",
        resource_queue=queue is not None and queue.function == RESOURCE,
        resource_type=task.resource_type or "",
        priority=task.current_priority or 0,
        cores=task.core_count,
        max_cores=rule.get_int("CC") or 0,
        memory_mb=task.ram_count or 0,
        memory_per_core=(task.ram_unit or "").startswith("MBPerCore"),
        base_memory_mb=task.base_ram_count or 0,
        walltime_s=0 if task.unit_of_walltime else max(task.walltime or 0, 0),
        walltime_s_per_mb=float(abs(task.walltime or 0)) if task.unit_of_walltime else 0.0,
        walltime_known=not is_undefined(task.walltime, task.unit_of_walltime, task.cpu_time, task.cpu_time_unit),
        cpu_efficiency_percent=90 if task.cpu_efficiency is None else task.cpu_efficiency,
        base_walltime_s=task.base_walltime or 0,
        job_size_mb=(rule.get_int("NG") or 0) * 1024,
        out_disk=task.out_disk_count or 0,
        out_disk_unit=task.out_disk_unit or "kB",
        work_disk=task.work_disk_count or 0,
        work_disk_unit=task.work_disk_unit or "MB",
        included_sites=names_of(raw.get("includedSite")) or (sites if len(sites) > 1 else ()),
        excluded_sites=names_of(raw.get("excludedSite")),
        preassigned_site=sites[0] if len(sites) == 1 else "",
        listed_sites=sites if len(sites) > 1 else (),
        architecture=task.architecture or "",
        trans_home=task.trans_home or "",
        trans_uses=task.trans_uses or "",
        container=task.container_name or "",
        container_tags_only=rule.flag("OT"),
        io_intensity=None if task.io_intensity is None else float(task.io_intensity),
        disk_io_kbps=None if task.disk_io is None else float(task.disk_io),
        direct_io=rule.get_int("IL") or 0,
        local_io=rule.flag("LI"),
        direct_io_wan=rule.flag("IW"),
        network=_word(rule, "IP"),
        ip_stack=_word(rule, "IK"),
        nucleus=task.nucleus or "",
        t1_weight=rule.get_int("TW"),
        full_chain=_word(rule, "FU"),
        avoid_vp=rule.flag("AV"),
        prestaging=rule.get_int("IS") == 1,
        incomplete_input=rule.flag("AI"),
        merges_output=rule.flag("MO"),
        event_service=(made := consumers_of(task.event_service or 0, rule)) is not None and made.share_events,
    )


def gone_sites(task: Task, now: datetime) -> tuple[str, ...]:
    """The sites that a task names, when none of them exists any more; () for a task that may run somewhere or names none."""
    raw = TaskParams.objects.filter(pk=task.id).values_list("params", flat=True).first() or {}
    needs = needs_of(task, raw)
    if not (needs.preassigned_site or needs.listed_sites or needs.included_sites):
        return ()
    may = allowed(replace(needs, excluded_sites=(), cloud=""), load_grid(now))
    return () if may.names else may.unknown


def of_work(
    needs: TaskNeeds, task: Task, rule: SplitRule, masters: Sequence[Dataset], now: datetime, *, scouting: bool
) -> TaskNeeds:
    """The same for the work that is left now. Two short statements at most."""
    master = max(masters, key=lambda d: d.files_to_be_used - d.files_used, default=None)
    atom = Atom() if master is None else atom_of(task, rule, master, scouting=scouting)
    left = sum(max(d.files_to_be_used - d.files_used, 0) for d in masters)
    disk_mb = (
        atom.largest_mb + _mb(task.out_disk_count, task.out_disk_unit) + _mb(task.work_disk_count, task.work_disk_unit)
    )
    files, events = rule.get_int("NF") or 0, rule.get_int("NE") or 0
    an_event = hs06s_per_event(task.cpu_time or 0, task.cpu_time_unit or "")
    consumers = consumers_of(task.event_service or 0, rule)
    # A consumer takes as many ranges as it gets to, and others go on with the rest.
    shares = consumers.shares if consumers is not None else 1
    return replace(
        needs,
        scouting=scouting,
        disk_mb=math.ceil(disk_mb),
        atom_mb=atom.size_mb,
        file_mb=atom.largest_mb,
        effective_mb=atom.effective_mb,
        atom_events=atom.events,
        files_a_job=files if files == rule.files_per_job() else 0,
        events_a_job=0 if files or scouting else events,
        cpu_hs06s=atom.events * an_event / shares,
        # Where a queue wants jobs of a certain length, they take as many events as fit, in steps of the smallest range.
        least_cpu_hs06s=min(rule.get_int("DY") or 0, atom.events) * an_event,
        jobs_wanted=math.ceil(left / (rule.files_per_job() or 1)),
        frozen_s=None if task.frozen_time is None else (now - task.frozen_time).total_seconds(),
        used_sites=_used(task.id),
    )


def atom_of(task: Task, rule: SplitRule, master: Dataset, *, scouting: bool) -> Atom:
    """The largest of the smallest jobs: so many files of the largest size among the first hundred, or so many events."""
    with hot_cursor() as cursor:
        cursor.execute(_FILES, [task.id, master.id, LOOKED_AT])
        ((size, events),) = cursor.fetchall()
    files, wanted = rule.files_per_job() or 0, rule.get_int("NE") or 0
    if files or not wanted or scouting:
        files = files or 1
        return Atom(files * size / MB, max(files * size / MB, 1.0), files * events, size / MB)
    files = max(1, math.ceil(wanted / events)) if events else 1
    part = wanted / (files * events) if events else 1.0
    return Atom(files * size / MB, max(files * size * min(part, 1.0) / MB, 1.0), wanted, size / MB)


def inputs_at_hand(task: Task, masters: Sequence[Dataset]) -> tuple[InputData, ...]:
    """Where the input is that jobs of a turn may read: of each dataset as many files as are left, 5000 at most.

    Datasets of which nobody knows yet where they are are left out. Two statements.
    """
    left = {d.name: d.files_to_be_used - d.files_used for d in masters}
    return tuple(_part(data, left.get(data.name, data.files)) for data in inputs_of(task) if data.replicas)


def _part(data: InputData, left: int) -> InputData:
    files = max(1, min(left, AT_HAND))
    if files >= data.files:
        return data
    part = files / data.files
    replicas = {
        place: replace(one, files=round(one.files * part), size_mb=one.size_mb * part)
        for place, one in data.replicas.items()
    }
    return replace(data, files=files, size_mb=data.size_mb * part, replicas=replicas)


def _used(task_id: int) -> tuple[str, ...]:
    with hot_cursor() as cursor:
        cursor.execute(_USED, [task_id])
        return tuple(site for (site,) in cursor)


def _mb(count: int | None, unit: str | None) -> float:
    """A size as the task states it, taken once, whatever it is for."""
    plain = (unit or "B").removesuffix("Fixed").removesuffix("PerEvent")
    return (count or 0) * _BYTES[plain] / MB


def _word(rule: SplitRule, code: str) -> str:
    """The word that stands for the number of a code; empty without one."""
    number = rule.get_int(code)
    return CODES[code].values.get(number, "") if number is not None else ""
