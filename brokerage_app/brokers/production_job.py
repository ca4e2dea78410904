"""The broker of production jobs: the rules of the JEDI brokerage document in their order, then weights, then the best ten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from brokerage_app.cases.production_case import NOBODY, ProductionCase, ProductionSettings
from brokerage_app.filters import capacity, data, events, network_rules, policy, resources, software_rules, state
from brokerage_app.filters.asking import Rule, Sifted, sift
from brokerage_app.filters.candidates import Candidates, candidates, elsewhere_first
from brokerage_app.formulas.disk import work_dir_for_job_mb
from brokerage_app.formulas.software import resolved_platform
from brokerage_app.formulas.zeroshare import EXEMPT_WORK_QUEUES
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid, SiteView
from brokerage_app.vocabulary.verdict import Choice, Verdict

__all__ = ["FINAL", "LABELS", "MISSING", "RULES", "ProductionSettings", "broker", "case_of", "hint", "of_named"]

BEST: Final = 10

LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        codes.SITE_OFFLINE: "-status",
        codes.SITE_PAUSED: "-status",
        codes.SITE_STANDBY: "-status",
        codes.SITE_BROKEROFF: "-status",
        codes.SITE_TEST_ONLY: "-status",
        codes.NUCLEUS_NOT_WRITABLE: "-dest_blacklisted",
        codes.LINKS_FULL: "-links_full",
        codes.LINK_BLOCKED: "-link_unusable",
        codes.LINK_FULL: "-link_unusable",
        codes.OPPORTUNISTIC: "-opportunistic",
        codes.INACTIVE: "-inactive",
        codes.ZERO_SHARE: "-zeroshare",
        codes.JUMBO_QUEUE: "-jumbo",
        codes.FEW_EVENTS: "-fewevents",
        codes.DISK_IO_BUSY: "-diskIO",
        codes.TOO_FEW_CORES: "-cpucore",
        codes.MULTI_CORE_ONLY: "-cpucore",
        codes.TOO_MANY_CORES: "-max_cpucore",
        codes.NO_RELEASE: "-cache",
        codes.NO_CPU: "-cache",
        codes.NO_GPU: "-cache",
        codes.NO_CONTAINER: "-cache",
        codes.HARDWARE_RESERVED: "-cache",
        codes.BAD_ARCHITECTURE: "-cache",
        codes.NO_PLATFORM: "-regexpcmtconfig",
        codes.LOW_MEMORY: "-lowmemory",
        codes.HIGH_MEMORY: "-highmemory",
        codes.NO_DIRECT_ACCESS: "-remoteio",
        codes.SCRATCH_DISK: "-disk",
        codes.STORAGE_FULL: "-disk",
        codes.INPUT_NOT_READABLE: "-read_lan_blacklist",
        codes.OUTPUT_NOT_WRITABLE: "-write_lan_blacklist",
        codes.STORAGE_NOT_RECEIVING: "-write_wan_blacklist",
        codes.STORAGE_NOT_SENDING: "-read_wan_blacklist",
        codes.SOURCE_NOT_SENDING: "-source_blacklist",
        codes.SHORT_WALLTIME: "-shortwalltime",
        codes.SHORT_FOR_SCOUTS: "-scout_walltime",
        codes.SHORT_FOR_UNKNOWN: "-min_walltime",
        codes.LONG_WALLTIME: "-longwalltime",
        codes.NO_CONNECTIVITY: "-network",
        codes.NO_EVENT_SERVICE: "-es",
        codes.EVENT_SERVICE_HIGH_ONLY: "-eshigh",
        codes.EVENT_SERVICE_NEEDS_CORES: "-es_ucore",
        codes.EVENT_SERVICE_ONLY: "-nones",
        codes.TOO_MANY_TRANSFERRING: "-transferring",
        codes.NON_PLEDGED: "-non_pledged",
        codes.OVER_PLEDGED: "-over_pledged",
        codes.OUTSIDE_NUCLEUS: "-t1weight",
        codes.IO_INTENSITY: "-max_io_intensity",
        codes.OUTSIDE_FULL_CHAIN: "-full_chain",
        codes.FULL_CHAIN_ONLY: "-not_full_chain",
        codes.NO_PILOTS: "-nopilot",
        codes.TOO_MUCH_INPUT_MISSING: "-io",
        codes.LOCKED: "-lock",
        codes.INPUT_NOT_LOCAL: "-non_local",
        codes.QUEUE_FULL: "-cap",
        codes.SLOW_NETWORK: "-lowNetworkWeight",
        codes.QUEUE_FULL_OF_TYPE: "-cap_rt",
        codes.BOOTSTRAP_ELSEWHERE: "-others_bootstrap",
        codes.BELOW_MIN_WEIGHT: "-below_min_weight",
        codes.NOT_BUSIEST_OF_NUCLEUS: "-t1_weight",
        codes.LOW_WEIGHT: "-low_weight",
    }
)
"""What PanDA's logs call each reason. Queues that are no candidates at all have no label there."""


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


def _asks_software(case: ProductionCase) -> bool:
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


def _stays_at_nucleus(case: ProductionCase) -> bool:
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
    Rule(software_rules.has_software, _asks_software),
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
    Rule(capacity.not_too_many_transferring, temporary=True),
    Rule(policy.within_pledge, _is_short_of_work),
    Rule(policy.at_nucleus, _stays_at_nucleus),
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


def case_of(
    needs: TaskNeeds,
    grid: Grid,
    settings: ProductionSettings | None = None,
    found: Candidates | None = None,
    *,
    made: Mapping[str, int] = NOBODY,
    locked: Collection[str] = (),
) -> ProductionCase:
    """What the rules are asked with, of the candidates that were found for the work."""
    asked = found or candidates(needs, grid)
    return ProductionCase(
        needs,
        grid,
        settings or ProductionSettings(),
        is_single=asked.is_single,
        is_bound=asked.is_bound,
        made=made,
        locked=locked,
    )


def broker(
    needs: TaskNeeds,
    grid: Grid,
    settings: ProductionSettings | None = None,
    *,
    made: Mapping[str, int] = NOBODY,
    locked: Collection[str] = (),
) -> Verdict:
    """Choose queues for production jobs, best first, and say of every other queue why not.

    made     jobs that were made in this pass and are not in the grid's counts, by queue
    locked   queues that another broker looks at
    Ties go by name, so the same input gives the same answer whatever its order. Queues that are divided into pseudo
    queues are neither chosen nor skipped: their pseudo queues are.
    """
    found = candidates(needs, grid)
    case = case_of(needs, grid, settings, found, made=made, locked=locked)
    stopped = _unreachable(case)
    if stopped is not None:
        return Verdict(stopped=stopped)
    sifted = _sift(case, found.sites, RULES)
    last = sift(case, sifted.kept, FINAL)
    kept, avoided = elsewhere_first(case, last.kept)
    chosen, left = _select(case, kept)
    skipped = (*found.skipped, *sifted.out, *(skip for _, skip in sifted.marked), *last.out, *avoided, *left)
    return Verdict(tuple(chosen), skipped)


def hint(
    needs: TaskNeeds, grid: Grid, settings: ProductionSettings | None = None, sites: Iterable[SiteView] | None = None
) -> Verdict:
    """The queues among `sites` (all when None) that could run the jobs, wherever outputs are gathered.

    For the choice of a nucleus: no weights, and no look at links, input and how full the queues are. All are chosen with
    weight 1.
    """
    anywhere = replace(needs, nucleus="", preassigned_site="", listed_sites=())
    found = candidates(anywhere, grid)
    case = case_of(anywhere, grid, settings, found)
    asked = found.sites if sites is None else sorted((s for s in sites if not s.is_parent), key=lambda site: site.name)
    return _able(case, asked)


def of_named(needs: TaskNeeds, grid: Grid, settings: ProductionSettings | None = None) -> Verdict:
    """The queues that the task names and that could run its jobs, and why the others of the grid could not.

    At the nucleus of the task, or wherever outputs are gathered when it has none. No weights, and no look at how full the
    queues are. All are chosen with weight 1.
    """
    found = candidates(needs, grid)
    said = _able(case_of(needs, grid, settings, found), found.sites)
    return replace(said, skipped=(*found.skipped, *said.skipped))


def _able(case: ProductionCase, sites: Sequence[SiteView]) -> Verdict:
    sifted = sift(case, sites, RULES)
    return Verdict(
        tuple(Choice(site.name, 1.0) for site in sifted.kept),
        (*sifted.out, *(skip for _, skip in sifted.marked)),
    )


def _unreachable(case: ProductionCase) -> Skip | None:
    """Why nobody could read the input: no storage that is up has all of it."""
    if case.needs.merging or case.needs.prestaging:
        return None
    for one in case.reach:
        if one.readable:
            continue
        if one.complete:
            where = ", ".join(one.complete)
            says = "{} is complete only at {}, in downtime"
            return Skip("", codes.INPUT_IN_DOWNTIME, says, (one.data.name, where))
        says = "{1} has {0:file|files}, no storage has more than {2}"
        most = max((replica.files for replica in one.data.replicas.values()), default=0)
        return Skip("", codes.INPUT_INCOMPLETE, says, (one.data.files, one.data.name, most))
    return None


def _sift(
    case: ProductionCase, sites: Sequence[SiteView], rules: Sequence[Rule[ProductionCase, SiteView]]
) -> Sifted[SiteView]:
    """Ask the rules, and of those that are left how much input they miss."""
    found = sift(case, sites, rules)
    if not MISSING.asked(case):
        return found
    marks = {site.name: skip for site, skip in found.marked}
    left = sorted([*found.kept, *(site for site, _ in found.marked)], key=lambda site: site.name)
    on_disk, with_tape, out = [], [], []
    for site in left:
        skip = data.little_input_missing(case, site)
        if skip is not None:
            out.append(skip)
            continue
        skip = data.missing_but_for_tape(case, site)
        if skip is None:
            on_disk.append(site)
        else:
            with_tape.append((site, skip))
    if on_disk:
        out += [skip for _, skip in with_tape]
    elif not with_tape:
        return found
    kept = on_disk or [site for site, _ in with_tape]
    return Sifted(
        [site for site in kept if site.name not in marks],
        [(site, marks[site.name]) for site in kept if site.name in marks],
        [*found.out, *out],
    )


def _select(case: ProductionCase, sites: Sequence[SiteView]) -> tuple[list[Choice], list[Skip]]:
    """Weights, and the choice by them: empty queues first, then the heaviest, ten in all."""
    skipped: list[Skip] = []
    chosen: list[tuple[Choice, SiteView]] = []
    started: set[str] = set()
    for site in sites:
        choice = _choice(case, site)
        if choice.bootstrap and site.queue in started:
            says = "another kind of slots of {} gets the first jobs"
            skipped.append(Skip(site.name, codes.BOOTSTRAP_ELSEWHERE, says, (site.queue,)))
            continue
        if not choice.bootstrap and choice.weight < case.settings.min_weight:
            says = "a weight of {:.3g} is asked, it is {:.3g}"
            skipped.append(Skip(site.name, codes.BELOW_MIN_WEIGHT, says, (case.settings.min_weight, choice.weight)))
            continue
        if choice.bootstrap:
            started.add(site.queue)
        chosen.append((choice, site))
    if _stays_at_nucleus(case) and len(chosen) > 1:
        chosen, others = _busiest(case, chosen)
        skipped += others
    chosen.sort(key=lambda pair: (not pair[0].bootstrap, -pair[0].weight, pair[0].site))
    kept: list[Choice] = []
    counted = 0
    for choice, site in chosen:
        counted += not (case.needs.jumbo and site.jumbo)
        if counted <= BEST:
            kept.append(choice)
            continue
        says = "a weight of {:.3g} is the least of the best ten, it is {:.3g}"
        skipped.append(Skip(site.name, codes.LOW_WEIGHT, says, (kept[-1].weight, choice.weight)))
    return kept, skipped


def _choice(case: ProductionCase, site: SiteView) -> Choice:
    found, counts = case.weighed(site), case.counts(site)
    bootstrap = (
        not found.running
        and not counts.queued
        and not found.defined
        and case.needs.priority <= case.settings.max_prio_to_bootstrap
        and not case.needs.merging
        and not case.is_express
    )
    factors = (("nothing runs or waits there", 0.0),) if bootstrap else found.factors
    part = work_dir_for_job_mb(site.work_dir_mb, site.cores, case.cores)
    return Choice(
        site.name,
        0.0 if bootstrap else found.weight,
        factors,
        bootstrap,
        found.queued,
        found.cap,
        resolved_platform(case.platform, case.software(site)) if _asks_software(case) else "",
        int(part) if part != site.work_dir_mb else None,
    )


def _busiest(
    case: ProductionCase, chosen: Sequence[tuple[Choice, SiteView]]
) -> tuple[list[tuple[Choice, SiteView]], list[Skip]]:
    """Of the nucleus only the queue that runs most jobs of all kinds."""
    running = {choice.site: case.totals(site).running for choice, site in chosen}
    best = min(chosen, key=lambda pair: (-running[pair[0].site], pair[0].site))
    says = "{:job runs|jobs run} at the busiest, {} here; the task stays at {}"
    return [best], [
        Skip(
            choice.site, codes.NOT_BUSIEST_OF_NUCLEUS, says, (running[best[0].site], running[choice.site], best[0].site)
        )
        for choice, _ in chosen
        if choice.site != best[0].site
    ]
