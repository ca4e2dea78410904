"""What is read once for one task's turn: its rule and numbers, what its jobs want of a site, and where outputs go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from brokerage_app.cases.gathering import endpoint_of
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.jumbo_use import ENABLED, read_use
from tasks_app.domain.scopes import scope_of, scope_of_user
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.generation.library_jobs import Source as Sandbox
from tasks_app.generation.library_jobs import failing_sites, source_of
from tasks_app.generation.rules.common_facts import LOCAL, OutputStream, TaskFacts
from tasks_app.generation.rules.consumers import Consumers, consumers_of
from tasks_app.generation.rules.sources import DatasetRow, Order
from tasks_app.generation.taken_back import taken_back
from tasks_app.generation.wants import inputs_at_hand, needs_of, of_work
from tasks_app.inputs.preprocessed import params_of
from tasks_app.inputs.rules.scout_share import will_scout
from tasks_app.models import Dataset, OutputTemplate, Task, WorkflowPackage
from tasks_app.models.dataset import INPUT_TYPES, LOG_TYPES, UNMERGED_TYPES
from tasks_app.params import buildstep, special_handling
from tasks_app.params.buildstep import BuildStep
from tasks_app.params.dataset_attributes import OPTIONAL, Attributes
from tasks_app.params.job_groups import JobGroups, read_groups
from tasks_app.params.kinds import names_of
from tasks_app.params.merge_tags import with_merge_step
from tasks_app.params.naming import NameTemplate
from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts.rules import scouts
from tasks_app.splitting.limits import MB, SiteNumbers, SplitLimits, TaskNumbers, limits_for, reads_directly
from tasks_app.splitting.pairing import keeps_numbers
from tasks_app.submission.resource_typing import resource_table

UNREAD = (DatasetStatus.REGISTERED, DatasetStatus.DEFINED, DatasetStatus.TOUPDATE, DatasetStatus.PENDING)
"""An input in one of these states is about to get files: a job that is made without it would lack them."""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Everything about one task that is read once for its turn.

    rule, raw     its split rule, and its parameters as they were submitted
    numbers       by which its jobs are cut
    needs         what its jobs want of a site
    facts         what its jobs have in common
    build         how its sources are compiled; None for a task without any
    inputs        its masters and secondaries; `outputs`: what its jobs write first
    template      the command line of its jobs
    scouting      its jobs are scouts, which are cut smaller and change sites sooner
    has_seeds     each job gets a random seed number
    sandbox       the file of data management that each job reads as its sandbox
    package_priorities  of jobs of packages of a workflow that have their own, by the boundary of their files
    """

    task: Task
    fence: int
    now: datetime
    rule: SplitRule
    raw: Mapping[str, Any]
    numbers: TaskNumbers
    needs: TaskNeeds
    facts: TaskFacts
    build: BuildStep | None
    inputs: Sequence[Dataset]
    outputs: Sequence[OutputTemplate]
    template: JobParamsTemplate
    scouting: bool
    has_seeds: bool
    sandbox: Sandbox | None = None
    package_priorities: Mapping[int, int] = field(default_factory=dict)

    def with_inputs(self) -> TurnFacts:
        """The same with the places where the input is, for brokers that ask. Two statements."""
        return replace(self, needs=replace(self.needs, inputs=inputs_at_hand(self.task, masters_of(self.inputs))))

    @property
    def keeps_numbers(self) -> bool:
        """Whether files that come back meet the numbers of a sequence that they had."""
        return keeps_numbers(self.rule)

    @property
    def skip_short(self) -> bool:
        """Whether incomplete jobs are not to be made."""
        return bool(self.raw.get("skipShortOutput"))

    @property
    def scope(self) -> str:
        """The scope of the task's own files."""
        user = self.task.user
        return scope_of(self.outputs[0].dataset.name, user) if self.outputs else scope_of_user(user)

    @property
    def order(self) -> Order | None:
        """In which order files are used; None for that in which they were found."""
        if "GB" in self.rule:
            return Order.GROUP
        return Order.BLOCK if any(self.rule.flag(code) for code in ("RL", "OL", "RP")) else None

    @property
    def in_order(self) -> bool:
        return self.order is not None

    @property
    def consumers(self) -> Consumers | None:
        """What its jobs are that process event ranges; None for other tasks."""
        beside_jumbo = read_use(self.task.use_jumbo) in ENABLED
        return consumers_of(self.task.event_service or 0, self.rule, beside_jumbo=beside_jumbo)

    @property
    def is_workflow(self) -> bool:
        """Whether its groups may be packages of a workflow."""
        return bool(self.raw.get("loadXML"))

    @property
    def job_groups(self) -> JobGroups | None:
        """What the groups of `loadXML` run and write."""
        xml = self.raw.get("loadXML")
        return read_groups(str(xml)) if xml else None

    def unread(self) -> Dataset | None:
        """The first input whose files are not all known yet."""
        return next((dataset for dataset in self.inputs if dataset.status in UNREAD), None)

    def secondaries(self) -> list[Dataset]:
        """The secondary datasets, as they are now: they serve the jobs of all masters (`refining/layout.py`)."""
        ids = [d.id for d in self.inputs if d.master_id is not None and d.status == DatasetStatus.READY]
        return list(Dataset.objects.filter(pk__in=ids).order_by("list_position", "id")) if ids else []

    def row(self, dataset: Dataset) -> DatasetRow:
        # The files of groups are handed out in portions that are not those of the cursor, whatever the dataset is.
        return row_of(dataset, self.order if dataset.master_id is None or self.order is Order.GROUP else None)

    def needs_with(self, memory_mb: int) -> TaskNeeds:
        """What a job wants whose files ask for that memory, in the unit of the task's."""
        if memory_mb <= self.needs.memory_mb:
            return self.needs
        return replace(self.needs, memory_mb=memory_mb, memory_raised=True)

    def streams(self, master_id: int | None = None, own_outputs: int | None = None) -> list[OutputStream]:
        """What each job of a master writes, or what any does.

        `own_outputs`: so many outputs that its group names, each in the stream of the one output.
        """
        is_mapped = self.rule.get_int("GB") in (2, 4)
        rows = [row for row in self.outputs if not is_mapped or master_id is None or _is_of(row.dataset, master_id)]
        found = [stream_of(row, self.task) for row in rows]
        if own_outputs is None:
            return found
        return [
            replace(stream, part=part)
            for stream in found
            for part in (range(own_outputs) if stream.type not in LOG_TYPES else (None,))
        ]

    def reads_directly(self, site: SiteView) -> bool:
        return reads_directly(
            self.rule, capable=site.direct_io, enforced=site.direct_io_only, from_afar=site.direct_io_wan
        )

    def limits(self, site: SiteView, work_dir_mb: int | None = None) -> SplitLimits:
        """The limits of one job at a site. `work_dir_mb`: scratch space of one job, where it is not that of the slot."""
        scratch_mb = site.work_dir_mb if work_dir_mb is None else work_dir_mb
        return limits_for(
            self.rule,
            self.numbers,
            SiteNumbers(
                cores=self.needs.cores_at(site),
                core_power=site.core_power,
                max_work_dir_bytes=scratch_mb * MB if scratch_mb else None,
                max_time_s=site.max_walltime_s or None,
                min_time_s=site.min_walltime_s or None,
                direct_io=self.reads_directly(site),
            ),
            scouting=self.scouting,
        )


def read_turn(task: Task, fence: int, now: datetime) -> TurnFacts:
    """Read what the turn of a claimed task has to know. Raises BadTemplate, BadBuildError."""
    rule, raw = SplitRule.parse(task.split_rule), params_of(task.id)
    text = buildstep.with_sandbox(task.job_params_template.template, raw.get("fixedSandbox"))
    if task.event_service:
        text = with_merge_step(text, raw.get("esmergeSpec"))
    build = buildstep.build_step(raw)
    failing = failing_sites(task, build) if build is not None else {}
    needs = replace(needs_of(task, raw), avoided_sites=taken_back(task.id, task.vo or ""), failing_builds=failing)
    templates = OutputTemplate.objects.filter(task_id=task.id).select_related("dataset")
    outputs = written_first(templates.order_by("dataset__list_position", "id"), rule)
    found = list(
        Dataset.objects.filter(task=task, type__in=(*INPUT_TYPES, "random_seed")).order_by("list_position", "id")
    )
    streams = {row.stream_name or "" for row in found} | {row.stream_name or "" for row in outputs}
    template = compile_template(text, streams=streams, keep_order="OI" in rule or "DY" in rule)
    datasets = [dataset for dataset in found if dataset.status != DatasetStatus.REMOVED]
    inputs = [dataset for dataset in datasets if dataset.type in INPUT_TYPES]
    masters = masters_of(inputs)
    scouting = _is_scouting(task, rule, masters)
    needs = of_work(needs, task, rule, masters, now, scouting=scouting)
    places = [endpoint_of(row.dataset.destination, row.dataset.storage_token) for row in outputs]
    # Others go to the storage of whatever queue is chosen, which is asked of each.
    named = () if rule.flag("SO") else tuple(dict.fromkeys(filter(None, places)))
    optional = any(OPTIONAL in Attributes.parse(row.dataset.attributes) for row in outputs)
    needs = replace(needs, outputs=named, unplaced_outputs=LOCAL if rule.flag("SO") or "" in places else "")
    return TurnFacts(
        task=task,
        fence=fence,
        now=now,
        rule=rule,
        raw=raw,
        numbers=numbers_of(task),
        needs=needs,
        facts=_facts_of(task, rule, raw, scouting=scouting, optional=optional),
        build=build,
        inputs=inputs,
        outputs=outputs,
        template=template,
        scouting=scouting,
        has_seeds=len(inputs) < len(datasets),
        package_priorities=_package_priorities(task) if raw.get("loadXML") else {},
        sandbox=source_of(buildstep.via_data_management(raw.get("tarBallViaDDM")), task.user, "tarBallViaDDM"),
    )


def _package_priorities(task: Task) -> dict[int, int]:
    rows = WorkflowPackage.objects.filter(task_id=task.id, priority__isnull=False, boundary__isnull=False)
    return {boundary or 0: priority or 0 for boundary, priority in rows.values_list("boundary", "priority")}


def has_held_packages(task_id: int) -> bool:
    return WorkflowPackage.objects.filter(task_id=task_id, is_held=True).exists()


def _is_of(output: Dataset, master_id: int) -> bool:
    """Whether jobs of a master write to this dataset, where each master has outputs of its own."""
    return output.type in LOG_TYPES or output.provenance_id in (None, master_id)


def masters_of(inputs: Iterable[Dataset]) -> list[Dataset]:
    return [dataset for dataset in inputs if dataset.master_id is None]


def written_first(templates: Iterable[OutputTemplate], rule: SplitRule) -> list[OutputTemplate]:
    """The outputs that jobs write: with merging, those that are to be merged; never what merge jobs alone write."""
    merging = rule.flag("MO")
    return [t for t in templates if (t.dataset.type in UNMERGED_TYPES) is merging and t.stream_name != "LOG_MERGE"]


def stream_of(row: OutputTemplate, task: Task) -> OutputStream:
    """What the jobs of a task write of one template."""
    dataset = row.dataset
    return OutputStream(
        row.id,
        row.dataset_id,
        dataset.name,
        dataset.type,
        row.stream_name or "",
        scope_of(dataset.name, task.user),
        endpoint_of(dataset.destination, dataset.storage_token),
        NameTemplate(row.file_name_template, task_id=task.id, jobset_id=task.req_id),
    )


def _is_scouting(task: Task, rule: SplitRule, masters: list[Dataset]) -> bool:
    """Whether jobs made now are scouts. A task that scouts goes on so until its scouts are judged."""
    unreleased = sum(max(master.files - master.files_to_be_used, 0) for master in masters)
    mutable = any(master.state == "mutable" for master in masters)
    if task.status == TaskStatus.SCOUTING:
        return will_scout(rule)
    return scouts.chunk_is_scout(rule, unreleased=unreleased, mutable=mutable)


def row_of(dataset: Dataset, order: Order | None = None) -> DatasetRow:
    return DatasetRow(
        dataset.id,
        dataset.name,
        dataset.type,
        dataset.stream_name or "",
        dataset.attributes or "",
        dataset.pick_cursor,
        dataset.files,
        dataset.files_to_be_used - dataset.files_used,
        dataset.events or 0,
        order,
        dataset.state == "mutable",
    )


def numbers_of(task: Task) -> TaskNumbers:
    """The numbers of a task by which its jobs are cut. A walltime that has a unit is one for each MB of input."""
    return TaskNumbers(
        core_count=task.core_count or 1,
        cpu_time=task.cpu_time,
        cpu_time_unit=task.cpu_time_unit,
        cpu_efficiency_percent=task.cpu_efficiency,
        base_walltime_s=task.base_walltime,
        walltime_s_per_mb=_walltime_per_mb(task),
        out_disk_count=task.out_disk_count,
        out_disk_unit=task.out_disk_unit,
        work_disk_count=task.work_disk_count,
        work_disk_unit=task.work_disk_unit,
    )


def _walltime_per_mb(task: Task) -> int:
    # Negative values only switch the looping check off.
    return abs(task.walltime or 0) if task.unit_of_walltime else 0


def _facts_of(task: Task, rule: SplitRule, raw: Mapping[str, Any], *, scouting: bool, optional: bool) -> TaskFacts:
    priority = task.current_priority or 0
    return TaskFacts(
        id=task.id,
        name=task.name or "",
        user=task.user,
        vo=task.vo,
        label=task.prod_source_label,
        task_type=task.task_type,
        working_group=task.working_group,
        processing_type=task.processing_type,
        transformation=task.trans_path,
        priority=scouts.scout_priority(priority) if scouting else priority,
        req_id=task.req_id,
        work_queue_id=task.work_queue_id,
        gshare=task.gshare,
        resource_type=task.resource_type,
        release=task.trans_uses,
        home_package=task.trans_home,
        cmt_config=task.architecture or None,
        container=task.container_name,
        source_url=str(raw.get("sourceURL") or ""),
        seed_offset=rule.get_int("RS") or 0,
        transfer_type=str(raw.get("transferType") or "direct"),
        cpu_limit_s_per_mb=_walltime_per_mb(task),
        base_walltime_s=task.base_walltime or 0,
        special_handling=special_handling.of_task(rule, scouting=scouting, optional=optional),
        name_fields=rule.name_fields,
        names_of_files=rule.flag("UF"),
        resource_types=resource_table(),
        push=rule.flag("PC"),
        cloud=task.cloud if rule.flag("CV") else None,
        nucleus=task.nucleus,
        stays=rule.flag("SO"),
        addresses=names_of(raw.get("pfnList")) if raw.get("noInput") else (),
    )
