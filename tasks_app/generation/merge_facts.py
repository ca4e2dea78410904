"""What the merge jobs of a task have in common, what they want of a site, and by which limits they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from brokerage_app.grid.configured import configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.lines import URGENT
from tasks_app.generation.rules.common_facts import OutputStream, TaskFacts, job_walltime_s
from tasks_app.generation.rules.merge_plan import MASTER
from tasks_app.generation.rules.sources import DatasetRow
from tasks_app.generation.turn_facts import TurnFacts, masters_of, read_turn, row_of, stream_of
from tasks_app.models import Dataset, OutputTemplate, Task
from tasks_app.models.dataset import UNMERGED_TYPES
from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.refining.offered import MERGES
from tasks_app.refining.policy import Transforms
from tasks_app.retries.rules.memory import LEAST_MERGE_MB
from tasks_app.splitting.limits import MB, SiteNumbers, SplitLimits, TaskNumbers, limits_for, merge_name_fields
from tasks_app.splitting.merging import Heap, merged_streams

PRIORITY = 5000
BEHIND_ALL = 2**62
"""Unmerged files come in any order: all that are ready stand in the list of files that are to be handed out."""


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What is read once of a task whose outputs are merged.

    first        what its other jobs have in common and want
    facts, needs the same of its merge jobs; `walltime_h`: how long they may run, None without a limit of their own
    waits_since  since when files wait for a queue that takes no merge jobs
    unmerged     the datasets that they read, by stream
    outputs      what they may write
    input_name   the dataset that the first jobs read: names of outputs have its fields
    template     the command line of merge jobs
    """

    first: TurnFacts
    facts: TaskFacts
    needs: TaskNeeds
    walltime_h: float | None
    waits_since: datetime | None
    unmerged: Mapping[str, DatasetRow]
    outputs: Sequence[OutputStream]
    input_name: str
    template: JobParamsTemplate

    def asked(self, heap: Heap, site: SiteView | None, now: datetime) -> TaskNeeds:
        """What the broker is asked for a site's files. Without a wish of the task the slots are those of its other jobs."""
        size_mb, since = heap.size / MB / max(heap.producers, 1), self.waits_since
        return replace(
            self.needs_at(site) if site is not None else self.needs,
            cores=self.first.task.merge_core_count or self.first.needs.cores,
            atom_mb=size_mb,
            file_mb=size_mb,
            effective_mb=max(size_mb, 1.0),
            unchanged_s=(now - heap.newest).total_seconds(),
            frozen_s=None if since is None else (now - max(since, heap.newest)).total_seconds(),
        )

    def needs_at(self, site: SiteView) -> TaskNeeds:
        """Without a wish of the task the memory is what the site has, up to the usual; not after jobs had too little."""
        if self.first.task.merge_ram_count or self.needs.memory_raised or not site.max_memory_mb:
            return self.needs
        return replace(self.needs, memory_mb=min(self.needs.memory_mb, site.max_memory_mb))

    def with_memory(self, memory_mb: int) -> MergeFacts:
        """The same for files whose merge jobs had too little memory: 0 for others, in the unit of `mergeRamCount`."""
        memory_mb *= (self.needs.cores or 1) if (self.first.task.merge_ram_unit or "").startswith("MBPerCore") else 1
        if memory_mb <= self.needs.memory_mb:
            return self
        return replace(self, needs=replace(self.needs, memory_mb=memory_mb, memory_raised=True))

    def limits(self, site: SiteView) -> SplitLimits:
        return limits_for(
            self.first.rule,
            merge_numbers(self.first.numbers, self.first.task.merge_walltime, self.first.task.merge_walltime_unit),
            SiteNumbers(
                cores=self.needs.cores_at(site),
                core_power=site.core_power,
                max_work_dir_bytes=site.work_dir_mb * MB if site.work_dir_mb else None,
                max_time_s=job_walltime_s(self.walltime_h, self.first.task.base_walltime, site),
            ),
            merging=True,
        )

    def made_of(self, inputs: Iterable[str]) -> list[OutputStream]:
        """The outputs of a merge job that has files of these streams; the log of its own is the last.

        With a merge log, the other logs are what the job writes of the logs that it reads.
        """
        wanted = merged_streams(dict.fromkeys(inputs, ()), [o.stream for o in self.outputs])
        found = [o for o in self.outputs if o.stream in wanted]
        if any(o.stream == "LOG_MERGE" for o in found):
            writes = self.template_writes
            found = [
                o if o.stream == "LOG_MERGE" or o.type != "log" else replace(o, type="output")
                for o in found
                if o.type != "log" or o.stream in writes or o.stream == "LOG_MERGE"
            ]
        return found

    @property
    def template_writes(self) -> set[str]:
        """The logs that the command line names as files to be written."""
        logs = {o.stream for o in self.outputs if o.type == "log"}
        return logs if ":LOG}" in self.template.text else logs & self.template.names


def read_merge(task: Task, now: datetime) -> MergeFacts:
    """Read what the merge jobs of a task have to know. Raises BadTemplate, BadBuildError."""
    first = read_turn(task, task.fence, now)
    datasets = Dataset.objects.filter(task_id=task.id, type__in=UNMERGED_TYPES).order_by("list_position", "id")
    unmerged = {d.stream_name or "": _row_of(d) for d in datasets}
    rows = OutputTemplate.objects.filter(task_id=task.id).exclude(dataset__type__in=UNMERGED_TYPES)
    rows = rows.select_related("dataset").order_by("dataset__list_position", "id")
    outputs = [stream_of(row, task) for row in rows]
    text = str((first.raw.get("mergeSpec") or {}).get("jobParameters") or "")
    streams = {*unmerged, *(o.stream for o in outputs)}
    return MergeFacts(
        first=first,
        facts=_facts(first),
        needs=_needs(first),
        waits_since=next((d.frozen_time for d in datasets if d.stream_name == MASTER), None),
        walltime_h=configuration().get("jobgen", "MERGE_JOB_MAX_WALLTIME", task.prod_source_label, vo=task.vo),
        unmerged=unmerged,
        outputs=outputs,
        input_name=next((d.name for d in masters_of(first.inputs)), ""),
        template=compile_template(text, streams=streams, keep_order=True),
    )


def _facts(first: TurnFacts) -> TaskFacts:
    spec = first.raw.get("mergeSpec") or {}
    facts = replace(
        first.facts,
        processing_type=MERGES,
        priority=PRIORITY,
        cpu_limit_s_per_mb=0,
        transformation=spec.get("transPath") or Transforms().merge,
    )
    if first.facts.processing_type == URGENT:
        facts = replace(facts, special_handling=",".join(filter(None, (URGENT, facts.special_handling))))
    return replace(facts, name_fields=merge_name_fields(first.rule)) if facts.names_of_files else facts


def _needs(first: TurnFacts) -> TaskNeeds:
    """What a merge job is: nothing that was measured of the task's other jobs holds for it."""
    task = first.task
    cores = task.merge_core_count or 1
    each_core = (task.merge_ram_unit or "").startswith("MBPerCore")
    memory_mb = (task.merge_ram_count or 0) * (cores if each_core else 1)
    return replace(
        first.needs,
        merging=True,
        merges_output=False,
        scouting=False,
        cores=cores,
        memory_mb=max(memory_mb, LEAST_MERGE_MB),
        memory_per_core=False,
        memory_raised=False,
        base_memory_mb=0,
        failing_builds={},
        avoided_sites=(),
        disk_mb=0,
        out_disk=0,
        job_size_mb=0,
        walltime_s=0,
        walltime_s_per_mb=(task.merge_walltime or 0) if task.merge_walltime_unit else 0,
        walltime_known=True,
        cpu_hs06s=0.0,
        least_cpu_hs06s=0.0,
        io_intensity=None,
        disk_io_kbps=None,
        inputs=(),
    )


def merge_numbers(numbers: TaskNumbers, walltime: int | None, unit: str | None) -> TaskNumbers:
    """The numbers by which merge jobs are cut: their own time for each MB that they read, once it is measured."""
    return replace(numbers, walltime_s_per_mb=walltime if unit else None)


def _row_of(dataset: Dataset) -> DatasetRow:
    return replace(row_of(dataset), attributes="", cursor=BEHIND_ALL)
