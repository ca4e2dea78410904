"""One task's turn in the job generator: what it needs, what is left of its input, and bunches of jobs until a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from brokerage_app.brokers import generic
from brokerage_app.models import VerdictRecord
from brokerage_app.needs import TaskNeeds
from brokerage_app.snapshot import SiteView
from brokerage_app.spread import Portion, spread
from brokerage_app.verdict import Verdict
from jedisite.sql import hot_cursor
from tasks_app.feeding import hold
from tasks_app.generating.builder import Builder, OutputStream, TaskFacts
from tasks_app.generating.picker import DatasetRow, chunk_of, pick, secondary_limit
from tasks_app.generating.store import SeedSource, Source, store
from tasks_app.models import Dataset, OutputTemplate, Task, TaskParams
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.params.splitrule import SplitRule
from tasks_app.scopes import scope_of
from tasks_app.splitting.limits import MB, SiteNumbers, SplitLimits, TaskNumbers, limits_for
from tasks_app.splitting.naming import NameTemplate
from tasks_app.splitting.splitter import split

FILES_A_STEP = 40_000
"""Files that one transaction hands out at most."""
JOBS_A_STEP = 5_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one task's turn: jobs made, whether input is left, and the broker's verdict.

    `short_of` names the secondary dataset that has too few files left for the next job.
    """

    jobs: int
    input_left: bool
    verdict: Verdict
    short_of: str = ""


class TaskWork:
    """Everything about one task that is read once for its turn."""

    def __init__(self, task: Task, fence: int) -> None:
        self.task, self.fence = task, fence
        self.short_of = ""
        self.rule = SplitRule.parse(task.split_rule)
        self.raw: dict[str, Any] = TaskParams.objects.get(pk=task.id).params
        self.template: JobParamsTemplate = compile_template(task.job_params_template.template)
        self.numbers = _numbers_of(task)
        self.needs = needs_of(task, self.raw)
        self.facts = _facts_of(task, self.rule, self.raw)
        self.outputs = list(
            OutputTemplate.objects.filter(task_id=task.id)
            .select_related("dataset")
            .order_by("dataset__list_position", "id")
        )

    def jobs_left(self) -> int:
        """About how many jobs the files make that are left; at least 1."""
        files = sum(master.files_to_be_used - master.files_used for master in masters_with_work(self.task.id))
        return max(1, math.ceil(files / (self.rule.get_int("NF") or 1)))

    def streams(self, site: SiteView) -> list[OutputStream]:
        return [
            OutputStream(
                row.id, row.dataset_id, row.dataset.name, row.dataset.type, row.stream_name or "",
                scope_of(row.dataset.name), row.dataset.destination or "LOCAL_SE",
                NameTemplate(row.file_name_template, task_id=self.task.id, jobset_id=self.task.req_id),
            )
            for row in self.outputs
        ]  # fmt: skip

    def limits(self, site: SiteView) -> SplitLimits:
        return limits_for(
            self.rule, self.numbers,
            SiteNumbers(
                cores=self.needs.cores_at(site), core_power=site.core_power,
                max_work_dir_bytes=site.work_dir_mb * MB if site.work_dir_mb else None, max_time_s=site.max_walltime_s or None,
            ),
        )  # fmt: skip


def _numbers_of(task: Task) -> TaskNumbers:
    return TaskNumbers(
        core_count=task.core_count or 1, cpu_time=task.cpu_time, cpu_time_unit=task.cpu_time_unit,
        cpu_efficiency_percent=task.cpu_efficiency, base_walltime_s=task.base_walltime,
        out_disk_count=task.out_disk_count, out_disk_unit=task.out_disk_unit, work_disk_count=task.work_disk_count,
        work_disk_unit=task.work_disk_unit,
    )  # fmt: skip


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(value or ())


def needs_of(task: Task, raw: dict[str, Any]) -> TaskNeeds:
    """What the jobs of a task want of a site."""
    sites = _names(task.site)
    return TaskNeeds(
        cores=task.core_count, memory_mb=task.ram_count or 0, memory_per_core=(task.ram_unit or "").startswith("MBPerCore"),
        base_memory_mb=task.base_ram_count or 0, label=task.prod_source_label or "user",
        included_sites=_names(raw.get("includedSite")) or (sites if len(sites) > 1 else ()),
        excluded_sites=_names(raw.get("excludedSite")), preassigned_site=sites[0] if len(sites) == 1 else "",
        resource_type=task.resource_type or "", priority=task.current_priority or 0,
    )  # fmt: skip


def _facts_of(task: Task, rule: SplitRule, raw: dict[str, Any]) -> TaskFacts:
    factor = {"kB": 1 / 1024, "GB": 1024}.get(task.work_disk_unit or "MB", 1)
    return TaskFacts(
        id=task.id, name=task.name or "", user=task.user, vo=task.vo, label=task.prod_source_label,
        working_group=task.working_group, processing_type=task.processing_type, transformation=task.trans_path,
        priority=task.current_priority or 0,
        req_id=task.req_id, work_queue_id=task.work_queue_id, gshare=task.gshare, resource_type=task.resource_type,
        release=task.trans_uses, home_package=task.trans_home, cmt_config=None, container=task.container_name,
        source_url=str(raw.get("sourceURL") or ""), seed_offset=rule.get_int("RS") or 0,
        work_mb=int((task.work_disk_count or 0) * factor) + 300, max_walltime_s=(rule.get_int("MW") or 0) * 3600,
    )  # fmt: skip


def masters_with_work(task_id: int) -> list[Dataset]:
    found = Dataset.objects.with_work(task_id, types=INPUT_TYPES).filter(master_id=None)
    return list(found.order_by("list_position", "id"))


def _row_of(dataset: Dataset) -> DatasetRow:
    return DatasetRow(
        dataset.id, dataset.name, dataset.type, dataset.stream_name or "", dataset.attributes or "", dataset.pick_cursor,
        dataset.files, dataset.files_to_be_used - dataset.files_used,
    )  # fmt: skip


def generate(
    task: Task, fence: int, sites: dict[str, SiteView], now: datetime, *, max_jobs: int, min_queue: int | None = None
) -> Turn:
    """Make jobs of a claimed task until its input, the sites' room or `max_jobs` is used up.

    `sites` is the pass's snapshot; the jobs made are added to it. Raises LostClaimError when the claim is gone.
    """
    work = TaskWork(task, fence)
    floor = settings.JEDI_QUEUE_FLOOR if min_queue is None else min_queue
    verdict = generic.broker(work.needs, sites.values(), generic.filters(floor))
    made = 0
    while made < max_jobs and verdict.chosen:
        # Not more than there may be left, else the first site would take all of a small task.
        wanted = min(max_jobs - made, work.jobs_left())
        portions = spread(work.needs, [sites[c.site] for c in verdict.chosen], wanted, min_queue=floor)
        stored = 0
        for portion in portions:
            stored += _fill(work, portion, sites, now)
        made += stored
        if not stored:
            break
        verdict = generic.broker(work.needs, sites.values(), generic.filters(floor))
    return Turn(made, bool(masters_with_work(task.id)), verdict, work.short_of)


def _fill(work: TaskWork, portion: Portion, sites: dict[str, SiteView], now: datetime) -> int:
    """Make up to a number of jobs for one site, in steps. Returns how many."""
    stored = 0
    builder: Builder | None = None
    for master in masters_with_work(work.task.id):
        while stored < portion.jobs:
            step, builder = _step(work, master, portion.site, min(portion.jobs - stored, JOBS_A_STEP), now, builder)
            stored += step
            if not step:
                break
            master.refresh_from_db(fields=["pick_cursor", "files_used", "files_to_be_used", "files"])
            if master.files_used >= master.files_to_be_used:
                break
        builder = None
    seen = sites[portion.site.name]
    sites[portion.site.name] = replace(seen, queued=seen.queued + stored)
    return stored


def _step(
    work: TaskWork, master: Dataset, site: SiteView, most_jobs: int, now: datetime, builder: Builder | None
) -> tuple[int, Builder]:
    """One transaction: pick, split, build, store."""
    row = _row_of(master)
    limits = work.limits(site)
    typical = limits.files_per_job or min(limits.max_files, 50)
    limit = min(FILES_A_STEP, typical * most_jobs + typical)
    with transaction.atomic(), hot_cursor() as cursor:
        hold(cursor, work.task.id, work.fence)
        picked = pick(cursor, work.task.id, row, limit)
        sources = [Source(row, picked)]
        for secondary in Dataset.objects.filter(task=work.task, master_id=master.id, type__in=INPUT_TYPES).order_by(
            "list_position", "id"
        ):
            other = _row_of(secondary)
            sources.append(
                Source(other, pick(cursor, work.task.id, other, secondary_limit(other, len(picked.files), most_jobs)))
            )
        builder = builder or Builder(
            work.facts, work.needs, site, work.streams(site), work.template, [s.dataset.stream for s in sources], now
        )
        chunk = chunk_of(row, picked, [(s.dataset, s.picked) for s in sources[1:]])
        cut = split(
            chunk, limits, more_to_come=len(picked.files) == limit or master.state == "mutable", most_groups=most_jobs
        )
        if not cut.groups:
            work.short_of = next((s.dataset.name for s in sources if s.dataset.id == cut.short_of), "")
            return 0, builder
        store(cursor, builder, cut.groups, sources, _seeds(work.task.id))
    return len(cut.groups), builder


def _seeds(task_id: int) -> SeedSource | None:
    dataset = Dataset.objects.filter(task_id=task_id, type="random_seed").first()
    if dataset is None:
        return None
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT c.fileid, c.firstevent FROM file_retries r
                 JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid = r.fileid
                WHERE r.jeditaskid = %(task)s AND r.datasetid = %(dataset)s ORDER BY c.firstevent""",
            {"task": task_id, "dataset": dataset.id},
        )
        return SeedSource(dataset.id, cursor.fetchall(), dataset.files)


KEPT_VERDICTS = 3


def keep_verdict(task_id: int, verdict: Verdict) -> None:
    """Keep a verdict for people to read, if it says something new; of each task the last few."""
    latest = VerdictRecord.objects.filter(task_id=task_id).order_by("-id").first()
    if latest is not None and latest.sentence == verdict.sentence():
        VerdictRecord.objects.filter(pk=latest.id).update(at=Now())
        return
    record = VerdictRecord.objects.create(
        task_id=task_id,
        chosen=[[c.site, c.weight] for c in verdict.chosen],
        skipped=[[s.site, s.code, s.detail] for s in verdict.skipped],
        sentence=verdict.sentence(),
    )
    old = VerdictRecord.objects.filter(task_id=task_id, id__lt=record.id).order_by("-id").values_list("id", flat=True)
    VerdictRecord.objects.filter(id__in=list(old[KEPT_VERDICTS - 1 :])).delete()
