"""The rules of the broker of production jobs in their order, and when each is asked."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.production_case import ProductionCase
from brokerage_app.filters import capacity, data, events, network_rules, policy, resources, software_rules, state
from brokerage_app.filters.asking import Rule
from brokerage_app.formulas.zeroshare import EXEMPT_WORK_QUEUES
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView

ORDER: Final = (
    codes.SITE_OFFLINE,
    codes.SITE_PAUSED,
    codes.SITE_STANDBY,
    codes.SITE_BROKEROFF,
    codes.SITE_TEST_ONLY,
    codes.NUCLEUS_NOT_WRITABLE,
    codes.LINKS_FULL,
    codes.LINK_BLOCKED,
    codes.LINK_FULL,
    codes.OPPORTUNISTIC,
    codes.INACTIVE,
    codes.ZERO_SHARE,
    codes.JUMBO_QUEUE,
    codes.NO_JUMBO_QUEUE,
    codes.FEW_EVENTS,
    codes.DISK_IO_BUSY,
    codes.TOO_FEW_CORES,
    codes.MULTI_CORE_ONLY,
    codes.TOO_MANY_CORES,
    codes.NO_RELEASE,
    codes.NO_CPU,
    codes.NO_GPU,
    codes.NO_CONTAINER,
    codes.HARDWARE_RESERVED,
    codes.BAD_ARCHITECTURE,
    codes.NO_PLATFORM,
    codes.LOW_MEMORY,
    codes.HIGH_MEMORY,
    codes.NO_DIRECT_ACCESS,
    codes.SCRATCH_DISK,
    codes.STORAGE_FULL,
    codes.INPUT_NOT_READABLE,
    codes.OUTPUT_NOT_WRITABLE,
    codes.STORAGE_NOT_RECEIVING,
    codes.STORAGE_NOT_SENDING,
    codes.SOURCE_NOT_SENDING,
    codes.SHORT_WALLTIME,
    codes.SHORT_FOR_SCOUTS,
    codes.SHORT_FOR_UNKNOWN,
    codes.LONG_WALLTIME,
    codes.NO_CONNECTIVITY,
    codes.NO_EVENT_SERVICE,
    codes.EVENT_SERVICE_HIGH_ONLY,
    codes.EVENT_SERVICE_NEEDS_CORES,
    codes.EVENT_SERVICE_ONLY,
    codes.NO_EVENT_CHANNEL,
    codes.TOO_MANY_TRANSFERRING,
    codes.NON_PLEDGED,
    codes.OVER_PLEDGED,
    codes.OUTSIDE_NUCLEUS,
    codes.IO_INTENSITY,
    codes.OUTSIDE_FULL_CHAIN,
    codes.FULL_CHAIN_ONLY,
    codes.NO_PILOTS,
    codes.BUILD_FAILS_THERE,
    codes.TOO_MUCH_INPUT_MISSING,
    codes.LOCKED,
    codes.INPUT_NOT_LOCAL,
    codes.QUEUE_FULL,
    codes.SLOW_NETWORK,
    codes.QUEUE_FULL_OF_TYPE,
    codes.TAKEN_BACK,
    codes.PILOTS_STOPPED,
    codes.BOOTSTRAP_ELSEWHERE,
    codes.BELOW_MIN_WEIGHT,
    codes.NOT_BUSIEST_OF_NUCLEUS,
    codes.LOW_WEIGHT,
)
"""Where each reason stands in funnels, and which of several counts as the last. Each that a rule gives has its place."""


def _has_nucleus(case: ProductionCase) -> bool:
    return bool(case.needs.nucleus)


def _is_not_single(case: ProductionCase) -> bool:
    return not case.is_single


def _is_urgent(case: ProductionCase) -> bool:
    return not case.is_bound and case.is_urgent


def _wants_active(case: ProductionCase) -> bool:
    return not case.is_bound and (case.is_urgent or case.needs.merging or case.needs.merges_output)


def _asks_share(case: ProductionCase) -> bool:
    return case.needs.work_queue not in EXEMPT_WORK_QUEUES


def _asks_disk_io(case: ProductionCase) -> bool:
    return case.needs.disk_io_kbps is not None


def _asks_cores(case: ProductionCase) -> bool:
    return not case.is_single and case.several is not None


def _asks_max_cores(case: ProductionCase) -> bool:
    return not case.is_single and case.needs.max_cores > 0


def asks_software(case: ProductionCase) -> bool:
    return case.platform.is_asked or bool(case.platform.fault)


def _asks_memory(case: ProductionCase) -> bool:
    return case.needs.memory_mb > 0


def _asks_direct(case: ProductionCase) -> bool:
    return case.needs.direct_io == DIRECT_ONLY and not case.needs.merging


def _is_not_measured(case: ProductionCase) -> bool:
    return (case.needs.scouting and not case.is_single) or case.needs.merging or not case.time.is_known


def _asks_network(case: ProductionCase) -> bool:
    return not case.is_single and bool(case.needs.network or case.needs.ip_stack)


def _is_short_of_work(case: ProductionCase) -> bool:
    return not case.is_single and case.settings.work_shortage


def stays_at_nucleus(case: ProductionCase) -> bool:
    return (case.needs.t1_weight or 0) < 0 and not case.needs.merging and bool(case.needs.nucleus)


def _asks_io(case: ProductionCase) -> bool:
    return case.needs.io_intensity is not None and not case.needs.merging


def _asks_pilots(case: ProductionCase) -> bool:
    return not case.is_bound and ("test" not in case.needs.label or case.is_express)


def _is_heavy_on_input(case: ProductionCase) -> bool:
    needs = case.needs
    return (
        not case.is_single
        and not needs.merging
        and not needs.event_service
        and case.inputs.files > 0
        and (needs.io_intensity or 0) > case.settings.io_intensity_cutoff
    )


def _reads_input(case: ProductionCase) -> bool:
    return case.inputs.files > 0


def _is_express(case: ProductionCase) -> bool:
    return case.is_express


def _is_not_express(case: ProductionCase) -> bool:
    return not case.is_express


DIRECT_ONLY: Final = 2
RULES: Final[tuple[Rule[ProductionCase, SiteView], ...]] = (
    Rule(state.online_or_standby),
    Rule(network_rules.nucleus_writable, _has_nucleus, temporary=True),
    Rule(network_rules.nucleus_not_flooded, _has_nucleus, temporary=True),
    Rule(network_rules.link_open, _has_nucleus),
    Rule(network_rules.link_not_full, _has_nucleus, temporary=True),
    Rule(policy.not_opportunistic, _is_urgent),
    Rule(state.active, _wants_active, temporary=True),
    Rule(policy.has_share, _asks_share),
    Rule(events.jumbo, _is_not_single),
    Rule(resources.disks_not_busy, _asks_disk_io, temporary=True),
    Rule(resources.core_mode, _asks_cores),
    Rule(resources.max_cores, _asks_max_cores),
    Rule(software_rules.has_software, asks_software),
    Rule(resources.memory, _asks_memory),
    Rule(data.direct_access, _asks_direct),
    Rule(resources.scratch_disk),
    Rule(data.storage_space, temporary=True),
    Rule(data.storage_up, temporary=True),
    Rule(data.source_sends, _reads_input, temporary=True),
    Rule(resources.walltime),
    Rule(resources.walltime_of_unmeasured, _is_not_measured),
    Rule(resources.least_walltime),
    Rule(software_rules.has_connectivity, _asks_network),
    Rule(events.event_service, _is_not_single),
    Rule(events.channel),
    Rule(capacity.not_too_many_transferring, temporary=True),
    Rule(policy.within_pledge, _is_short_of_work),
    Rule(policy.at_nucleus, stays_at_nucleus),
    Rule(resources.io_intensity, _asks_io),
    Rule(policy.full_chain, _has_nucleus),
    Rule(state.has_pilots, _asks_pilots, temporary=True),
    Rule(policy.can_build, policy.builds_fail),
)
"""Asked in this order of each candidate (section 5 of the brokerage document)."""
MISSING: Final[Rule[ProductionCase, SiteView]] = Rule(data.little_input_missing, _is_heavy_on_input)
"""Asked of those that are left; switched off when it would leave none."""
FINAL: Final[tuple[Rule[ProductionCase, SiteView], ...]] = (
    Rule(capacity.not_locked),
    Rule(data.local_data_only, _reads_input),
    Rule(capacity.under_cap, _is_not_express),
    Rule(network_rules.fast_enough, _is_express),
    Rule(capacity.under_cap_of_type, _is_not_express),
)
"""Asked of those that are left and have no temporary problem."""
