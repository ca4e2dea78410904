"""The rules of the broker of analysis in their order, and when each is asked."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.analysis_case import AUTO, AnalysisCase
from brokerage_app.filters import analysis, events, policy, resources, software_rules, state
from brokerage_app.filters.asking import Rule
from brokerage_app.filters.data import direct_access, storage_up
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView


def _by_data(case: AnalysisCase) -> bool:
    return case.by_data and case.near.datasets > 0


def _not_bound(case: AnalysisCase) -> bool:
    return not case.is_single


def _reads_and_writes(case: AnalysisCase) -> bool:
    return case.needs.disk_io_kbps is not None


def _knows_intensity(case: AnalysisCase) -> bool:
    return case.needs.io_intensity is not None and not case.needs.merging


def _avoids_virtual(case: AnalysisCase) -> bool:
    needs = case.needs
    if needs.avoid_vp or needs.merging or not case.by_data or case.is_union:
        return True
    return any(data.distributed for data in needs.inputs)


def _several_or_one(case: AnalysisCase) -> bool:
    return case.several is not None


def _limits_cores(case: AnalysisCase) -> bool:
    return case.needs.max_cores > 0 and not case.is_single


def _not_bound_nor_merging(case: AnalysisCase) -> bool:
    return not case.is_single and not case.needs.merging


def asks_software(case: AnalysisCase) -> bool:
    return names_software(case) and not case.is_single


def names_software(case: AnalysisCase) -> bool:
    """Work that brings its own software and names neither platform, container nor hardware leaves nothing to ask."""
    asked = case.platform
    if asked.kind != "standalone" or asked.fault or asked.container:
        return True
    platform = asked.platform
    return bool(platform.sw_platform or platform.base_platform or platform.asks_hardware)


def _asks_memory(case: AnalysisCase) -> bool:
    return case.needs.memory_mb > 0


def _direct_only(case: AnalysisCase) -> bool:
    return case.needs.direct_io == DIRECT_ONLY and not case.needs.merging


def _no_source(case: AnalysisCase) -> bool:
    return case.near.datasets > 0 and not case.has_source


def _not_merging(case: AnalysisCase) -> bool:
    return not case.needs.merging


def _is_not_measured(case: AnalysisCase) -> bool:
    return (case.needs.scouting and not case.is_single) or case.needs.merging or not case.time.is_known


def _needs_pilots(case: AnalysisCase) -> bool:
    return "test" not in case.needs.label


def _excludes(case: AnalysisCase) -> bool:
    return bool(case.needs.excluded_sites)


def _lists(case: AnalysisCase) -> bool:
    return bool(case.wanted) and AUTO not in case.needs.included_sites


def _has_cloud(case: AnalysisCase) -> bool:
    return case.needs.cloud not in ("", "any", "WORLD")


def _was_taken_back(case: AnalysisCase) -> bool:
    """Work that is bound has nowhere else to go."""
    return bool(case.needs.avoided_sites) and not case.is_bound


def _asks_gpu_alone(case: AnalysisCase) -> bool:
    """Of work that is bound to a queue software is not asked; without the GPU its jobs would fail."""
    return case.is_single and case.platform.platform.gpu_spec is not None


def _is_bound(case: AnalysisCase) -> bool:
    return case.is_bound


def _wants_files(case: AnalysisCase) -> bool:
    return bool(case.near.whole)


ORDER: Final = (
    codes.NO_DATA_THERE,
    codes.SITE_OFFLINE,
    codes.SITE_PAUSED,
    codes.SITE_STANDBY,
    codes.SITE_BROKEROFF,
    codes.SITE_TEST_ONLY,
    codes.ZERO_SHARE,
    codes.JUMBO_QUEUE,
    codes.NO_JUMBO_QUEUE,
    codes.FEW_EVENTS,
    codes.DISK_IO_BUSY,
    codes.IO_INTENSITY,
    codes.VIRTUAL_STORAGE,
    codes.TOO_FEW_CORES,
    codes.MULTI_CORE_ONLY,
    codes.TOO_MANY_CORES,
    codes.HARDWARE_RESERVED,
    codes.BAD_ARCHITECTURE,
    codes.NO_RELEASE,
    codes.NO_CPU,
    codes.NO_GPU,
    codes.NO_CONTAINER,
    codes.NO_PLATFORM,
    codes.LOW_MEMORY,
    codes.HIGH_MEMORY,
    codes.NO_DIRECT_ACCESS,
    codes.SCRATCH_DISK,
    codes.NO_OUTPUT_STORAGE,
    codes.STORAGE_FULL,
    codes.INPUT_NOT_READABLE,
    codes.OUTPUT_NOT_WRITABLE,
    codes.STORAGE_NOT_RECEIVING,
    codes.STORAGE_NOT_SENDING,
    codes.SOURCE_NOT_SENDING,
    codes.LOCAL_QUOTA,
    codes.SHORT_WALLTIME,
    codes.LONG_WALLTIME,
    codes.SHORT_FOR_SCOUTS,
    codes.SHORT_FOR_UNKNOWN,
    codes.NO_EVENT_SERVICE,
    codes.EVENT_SERVICE_HIGH_ONLY,
    codes.EVENT_SERVICE_NEEDS_CORES,
    codes.EVENT_SERVICE_ONLY,
    codes.NO_EVENT_CHANNEL,
    codes.NO_PILOTS,
    codes.EXCLUDED,
    codes.NOT_INCLUDED,
    codes.OTHER_CLOUD,
    codes.NOT_PREASSIGNED,
    codes.FILES_NOT_THERE,
    codes.BUILD_FAILS_THERE,
    codes.QUEUE_FULL,
    codes.QUEUE_FULL_OF_TYPE,
    codes.USER_QUEUE_LONG,
    codes.CLOSED_THERE,
    codes.TAKEN_BACK,
    codes.FAILING_THERE,
    codes.OVERLOADED,
    codes.OVERLOADED_VIRTUAL,
    codes.HOSPITAL,
    codes.PILOTS_STOPPED,
    codes.BELOW_MIN_WEIGHT,
    codes.LOW_WEIGHT,
)
"""Where each reason stands in funnels, and which of several counts as the last. Each that a rule gives has its place."""

DIRECT_ONLY: Final = 2

RULES: Final[tuple[Rule[AnalysisCase, SiteView], ...]] = (
    Rule(analysis.has_data, _by_data),
    Rule(analysis.online),
    Rule(policy.has_share, _not_bound),
    Rule(events.jumbo, _not_bound),
    Rule(resources.disks_not_busy, _reads_and_writes),
    Rule(resources.io_intensity, _knows_intensity),
    Rule(analysis.not_virtual, _avoids_virtual),
    Rule(resources.core_mode, _several_or_one),
    Rule(resources.max_cores, _limits_cores),
    Rule(analysis.fits_gpu_queue),
    Rule(software_rules.has_software, asks_software),
    Rule(software_rules.has_gpu, _asks_gpu_alone),
    Rule(resources.memory, _asks_memory),
    Rule(direct_access, _direct_only),
    Rule(resources.scratch_disk),
    Rule(analysis.output_storage),
    Rule(storage_up),
    Rule(analysis.source, _no_source),
    Rule(analysis.quota_there),
    Rule(resources.walltime, _not_merging),
    Rule(resources.least_walltime, _not_merging),
    Rule(resources.walltime_of_unmeasured, _is_not_measured),
    Rule(events.event_service, _not_bound),
    Rule(events.channel),
    Rule(state.has_pilots, _needs_pilots),
    Rule(policy.not_excluded, _excludes),
    Rule(policy.included, _lists),
    Rule(analysis.cloud, _has_cloud),
    Rule(policy.preassigned, _is_bound),
    Rule(analysis.files_there, _wants_files),
    Rule(policy.can_build, policy.builds_fail),
    Rule(analysis.queue_not_full, temporary=True),
    Rule(analysis.user_queue, _not_merging, temporary=True),
    Rule(analysis.none_closed, _not_bound_nor_merging, temporary=True),
    Rule(policy.not_taken_back, _was_taken_back, temporary=True),
    Rule(analysis.few_bad_jobs, _not_merging, temporary=True),
)
"""In the order of the documents, but for what the task itself has met at a queue: it is asked last, since it keeps the task from
a queue only while another is left. Whether a queue is busier than others is asked at the end: it depends on what is left."""
