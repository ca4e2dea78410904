"""What finished jobs of a task say: read in one query, measured, and put as columns of the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from brokerage_app.grid.configured import configuration
from brokerage_app.policy.parameters import PARAMETERS
from tasks_app.models import Task
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.offered import MERGES
from tasks_app.scouts.rules.scout_metrics import (
    SAMPLE_LIMIT,
    WALLTIME_UNIT,
    JobSample,
    Measured,
    MetricSettings,
    Presets,
    TaskSize,
    core_power_of,
    group_size_gb,
    measure,
    measure_merge,
)
from tasks_app.scouts.rules.scout_verdict import ScoutLimits, configured
from tasks_app.submission.resource_typing import with_type

LEAST_MEMORY_MB = 1000
"""Measured memory below the lowest step of the ladder would only have jobs killed for a little more."""
SCOUT_PARAMETERS = tuple(p for p in PARAMETERS if p.component == "dbproxy" and p.key.startswith(("SCOUT_", "RAM_THR")))
FRAME = 20_000
"""Finished jobs from which a sample is drawn."""
MB = 2**20


def limits_for(task: Task) -> ScoutLimits:
    """The limits of the verdict on a task: those of its label and VO in the configuration (component dbproxy)."""
    found, label, vo = configuration(), task.prod_source_label or "", task.vo or ""
    values: dict[str, float | bool] = {}
    for parameter in SCOUT_PARAMETERS:
        suffixes = (label,) if parameter.per else ()
        value, row = found.source(parameter.component, parameter.key, *suffixes, vo=vo)
        if row is not None:
            values[parameter.key] = value
    return configured(label, values)


def settings_for(task: Task) -> MetricSettings:
    """How numbers are measured; a task that asks for less memory than the least keeps its own."""
    found, vo = configuration(), task.vo or ""

    def read(key: str) -> Any:
        return found.get("dbproxy", key, vo=vo)

    least = read("SCOUT_RAMCOUNT_MIN")
    return MetricSettings(
        ram_rank=read("SCOUT_RAMCOUNT_RANK"),
        ram_margin_percent=read("SCOUT_RAMCOUNT_MARGIN"),
        ram_min_mb=min(LEAST_MEMORY_MB, task.ram_count or LEAST_MEMORY_MB) if least is None else least,
        cpu_time_rank=read("SCOUT_CPUTIME_RANK"),
        disk_io_cap_kb_s=read("SCOUT_DISK_IO_CAP"),
    )


# Sizes and events are those of the jobs' own parts of files; consumers have as much of theirs as they have processed.
_SAMPLE = """
WITH masters AS (SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %(task)s AND masterid IS NULL
                    AND type IN ('input', 'pseudo_input')),
frame AS (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = 'finished' AND eventservice IS DISTINCT FROM 2
           ORDER BY pandaid LIMIT %(frame)s),
chosen AS (SELECT pandaid FROM frame ORDER BY md5(pandaid::text) LIMIT %(limit)s)
SELECT j.pandaid, coalesce(extract(epoch FROM j.endtime - j.starttime), 0)::float8, j.cpuconsumptiontime,
       greatest(coalesce(j.actualcorecount, j.corecount, 1), 1), coalesce(j.maxpss, j.maxrss), j.computingsite, q.core_power,
       CASE WHEN j.eventservice > 0 AND i.events > 0 THEN i.mb * least(coalesce(j.nevents, 0)::float8 / i.events, 1)
            ELSE i.mb END,
       CASE WHEN j.eventservice > 0 THEN j.nevents ELSE i.events END,
       i.pseudo, i.library_mb, coalesce(o.streams, '[]'), coalesce(j.jobmetrics, ''), coalesce(j.eventservice, 0) > 0
  FROM chosen JOIN jobs j USING (pandaid) LEFT JOIN queues q ON q.name = j.computingsite
 CROSS JOIN LATERAL (
       SELECT sum(fsize * CASE WHEN f.startevent IS NOT NULL AND f.nevents > 0
                               THEN least((f.endevent - f.startevent + 1)::float8 / f.nevents, 1) ELSE 1 END)
                  FILTER (WHERE m.datasetid IS NOT NULL) / 1048576 AS mb,
              sum(coalesce(f.endevent - f.startevent + 1, f.nevents)) FILTER (WHERE m.datasetid IS NOT NULL)::bigint AS events,
              bool_or(f.type = 'pseudo_input') AS pseudo, sum(f.fsize) FILTER (WHERE f.type = 'lib') / 1048576 AS library_mb,
              count(m.datasetid) AS masters
         FROM job_files f LEFT JOIN masters m USING (datasetid)
        WHERE f.pandaid = j.pandaid AND f.type IN ('input', 'pseudo_input', 'lib')) i
  LEFT JOIN LATERAL (
       SELECT json_agg(json_build_array(f.dataset, coalesce(f.fsize, 0)) ORDER BY f.row_id) AS streams FROM job_files f
        WHERE f.pandaid = j.pandaid AND f.type = 'output') o ON true
 WHERE i.masters > 0 ORDER BY j.pandaid
"""


def samples_of(cursor: psycopg.Cursor[Any], task_id: int, limit: int = SAMPLE_LIMIT) -> list[JobSample]:
    """Up to `limit` finished jobs that processed primary input, all consumers of a jobset: no build jobs and no merge jobs."""
    cursor.execute(_SAMPLE, {"task": task_id, "limit": limit, "frame": FRAME})
    return [_sample(*row) for row in cursor.fetchall()]


def _sample(
    job_id: int,
    exec_s: float,
    cpu_s: int | None,
    cores: int,
    pss_kb: int | None,
    site: str | None,
    power: float | None,
    input_mb: float | None,
    events: int | None,
    pseudo: bool,
    library_mb: float | None,
    streams: list[list[Any]],
    metrics: str,
    event_service: bool,
) -> JobSample:
    said = _metrics(metrics)
    moved = [said[name] for name in ("totRBYTES", "totWBYTES") if name in said]
    work_mb = said["workDirSize"] / MB if "workDirSize" in said else said.get("workfolder_mb")
    return JobSample(
        job_id,
        max(exec_s, 0.0),
        cpu_s,
        cores,
        core_power_of(site or "", {}, power),
        pss_kb,
        None,
        float(input_mb or 0),
        events,
        tuple((name, size) for name, size in streams),
        sum(moved) / 1024 if moved else None,
        work_mb,
        float(library_mb) if library_mb else None,
        said.get("leak"),
        said.get("chi2"),
        bool(pseudo),
        event_service,
    )


def _metrics(text: str) -> dict[str, float]:
    """The numbers among `name=value` pieces."""
    found: dict[str, float] = {}
    for piece in text.split():
        name, equals, value = piece.partition("=")
        try:
            number = float(value)
        except ValueError:
            continue
        if equals and 0 <= number < 2**62:
            found[name] = number
    return found


def presets_of(task: Task) -> Presets:
    return Presets(
        walltime=task.walltime,
        cpu_time=task.cpu_time,
        cpu_time_unit=task.cpu_time_unit or "HS06sPerEvent",
        cpu_efficiency_percent=90 if task.cpu_efficiency is None else task.cpu_efficiency,
        base_walltime_s=task.base_walltime or 0,
        ram=task.ram_count,
        ram_unit=task.ram_unit or "MB",
        base_ram_mb=task.base_ram_count or 0,
        out_disk=task.out_disk_count,
        out_disk_unit=task.out_disk_unit or "kB",
        work_disk=task.work_disk_count,
        work_disk_unit=task.work_disk_unit or "MB",
    )


def size_of(cursor: psycopg.Cursor[Any], task_id: int, finished_jobs: int) -> TaskSize:
    """Files and events of the task's masters, by their counters."""
    cursor.execute(
        """SELECT coalesce(sum(nfiles), 0)::bigint, coalesce(sum(nfilesused), 0)::bigint,
                  coalesce(sum(nfilesfinished), 0)::bigint, sum(nevents)::bigint, sum(neventsused)::bigint
             FROM jedi_datasets WHERE jeditaskid = %s AND masterid IS NULL AND type IN ('input', 'pseudo_input')""",
        [task_id],
    )
    files, used, finished, events, done = cursor.fetchone() or (0, 0, 0, None, None)
    return TaskSize(files, used, finished, finished_jobs, events, done)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was measured: attributes of the task to set, and the split rule with NG where TN asks for a size of outputs."""

    measured: Measured
    presets: Presets
    samples: Sequence[JobSample]
    columns: dict[str, Any]
    rule: SplitRule


def measure_task(task: Task, samples: Sequence[JobSample], rule: SplitRule) -> Numbers:
    """Numbers of a task from its finished jobs. Nothing is written. Raises ValueError for unknown units."""
    presets = presets_of(task)
    found = measure(samples, presets, settings_for(task))
    group = group_size_gb(
        rule, samples, work_disk_mb=found.work_disk_mb or 0, per_event="PerEvent" in (found.out_disk_unit or "")
    )
    if group is not None:
        rule = rule.having("NG", group)
    return Numbers(found, presets, samples, _columns(task, found), rule)


_MERGES = """
WITH chosen AS (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = 'finished' AND processingtype = %(merges)s
                 ORDER BY pandaid DESC LIMIT %(limit)s)
SELECT j.pandaid, coalesce(extract(epoch FROM j.endtime - j.starttime), 0)::float8, j.cpuconsumptiontime,
       greatest(coalesce(j.actualcorecount, j.corecount, 1), 1), coalesce(j.maxpss, j.maxrss), coalesce(i.mb, 0)
  FROM chosen JOIN jobs j USING (pandaid)
 CROSS JOIN LATERAL (SELECT (sum(fsize) / 1048576)::float8 AS mb FROM job_files f
                      WHERE f.pandaid = j.pandaid AND f.type = 'input') i
"""


def merge_columns(cursor: psycopg.Cursor[Any], task: Task, limit: int = SAMPLE_LIMIT) -> dict[str, Any]:
    """Attributes of the task that its latest finished merge jobs change: what the next ones are given."""
    cursor.execute(_MERGES, {"task": task.id, "merges": MERGES, "limit": limit})
    samples = [
        JobSample(job_id, max(exec_s, 0.0), cpu_s, cores, max_pss_kb=pss_kb, input_mb=mb)
        for job_id, exec_s, cpu_s, cores, pss_kb, mb in cursor.fetchall()
    ]
    if not samples:
        return {}
    found = measure_merge(samples, task.merge_walltime, task.merge_ram_count, settings_for(task))
    columns: dict[str, Any] = {"merge_walltime_unit": WALLTIME_UNIT}
    if found.walltime is not None:
        columns["merge_walltime"] = found.walltime
    if found.ram_mb is not None:
        columns |= {"merge_ram_count": found.ram_mb, "merge_ram_unit": "MB"}
    return columns


def _columns(task: Task, found: Measured) -> dict[str, Any]:
    """Attributes of the task with new values. The unit of walltime is always among them: it says "measured"."""
    pairs = {
        "walltime": found.walltime,
        "cpu_time": found.cpu_time,
        "cpu_time_unit": found.cpu_time_unit,
        "ram_count": found.ram_mb,
        "out_disk_count": found.out_disk,
        "out_disk_unit": found.out_disk_unit,
        "work_disk_count": found.work_disk_mb,
        "work_disk_unit": None if found.work_disk_mb is None else "MB",
        "io_intensity": found.io_intensity_kb_s,
        "io_intensity_unit": None if found.io_intensity_kb_s is None else "kBPerS",
        "disk_io": found.disk_io_kb_s,
        "disk_io_unit": None if found.disk_io_kb_s is None else "kBPerS",
        "memory_leak_core": None if found.leak_kb_s_per_core is None else round(found.leak_kb_s_per_core),
        "memory_leak_x2": None if found.leak_chi2 is None else round(min(found.leak_chi2, 1e9), 3),
    }
    columns = with_type(task, {name: value for name, value in pairs.items() if value is not None})
    columns["walltime_unit"] = found.walltime_unit
    return columns
