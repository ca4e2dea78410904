"""Rules that only the broker of analysis has."""

from __future__ import annotations

from brokerage_app.cases.analysis_case import AnalysisCase
from brokerage_app.filters import policy, state
from brokerage_app.filters.asking import at
from brokerage_app.formulas.queue_room import MIN_QUEUE
from brokerage_app.formulas.software import accepts_on_gpu_queue
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip


def has_data(case: AnalysisCase, site: SiteView) -> Skip | None:
    """The queue has all input datasets, or, where no queue has, some of them."""
    near = case.near
    if site.name in near.with_data:
        return None
    if case.unsent is not None:
        says = "the input {} is only at {}, where reading from outside (read_wan) is blacklisted"
        return Skip(
            site.name, codes.SOURCE_NOT_SENDING, says, (case.unsent.data.name, ", ".join(case.unsent.complete[:5]))
        )
    here = near.on_disk.get(site.name, 0) + near.on_tape.get(site.name, 0)
    return Skip(
        site.name,
        codes.NO_DATA_THERE,
        "{:input dataset is|input datasets are} read, {:is|are} there{}",
        (near.datasets, here, " on disk or tape that counts" if here == near.datasets else ""),
    )


def online(case: AnalysisCase, site: SiteView) -> Skip | None:
    """Only online queues, with exceptions for test jobs, and for those whom the task names where they drain or stand by."""
    if case.is_preassigned(site) or site.name in case.listed:
        return state.open_to_bound(case, site)
    return state.online(case, site)


def not_virtual(case: AnalysisCase, site: SiteView) -> Skip | None:
    """No queue that fetches its input as it is read."""
    if not case.has_virtual(site):
        return None
    return Skip(site.name, codes.VIRTUAL_STORAGE, "the storage {} is virtual", (case.storage(site).inputs[0],))


def fits_gpu_queue(case: AnalysisCase, site: SiteView) -> Skip | None:
    """A queue that is for GPUs takes only tasks that name a platform, and that fit what it publishes."""
    if "gpu" not in site.switches:
        return None
    return at(site, accepts_on_gpu_queue(case.platform, case.software(site), case.sources()))


def none_closed(case: AnalysisCase, site: SiteView) -> Skip | None:
    """No job of the task was closed there lately."""
    closed = case.ended(site).closed
    if not closed:
        return None
    return Skip(
        site.name,
        codes.CLOSED_THERE,
        "{1:job of the task was|jobs of the task were} closed there in {2:g} h, the limit is {0}",
        (0, closed, case.settings.window_h),
    )


def output_storage(case: AnalysisCase, site: SiteView) -> Skip | None:
    """There is a storage for outputs, and space in it; also for input where that is to be moved there."""
    storage = case.storage(site)
    if not storage.has_output:
        return Skip(site.name, codes.NO_OUTPUT_STORAGE, "the queue has no endpoint for outputs")
    least = case.settings.min_output_gb
    if storage.output_gb is not None and storage.output_gb < least:
        return _full(site, least, storage.output_gb, storage.output)
    least = case.settings.min_input_gb
    moved = not case.by_data and storage.input != storage.output
    if moved and storage.input_gb is not None and storage.input_gb < least:
        return _full(site, least, storage.input_gb, storage.input)
    return None


def _full(site: SiteView, least: float, free: float, endpoint: str) -> Skip:
    return Skip(
        site.name,
        codes.STORAGE_FULL,
        "needs {:.0f} GB of usable space, there are {:.0f} GB at {}",
        (least, free, endpoint),
    )


def source(case: AnalysisCase, site: SiteView) -> Skip | None:
    """Input that a queue lacks can be fetched."""
    if site.name in case.near.with_data and not case.is_union:
        return None
    return Skip(
        site.name, codes.SOURCE_NOT_SENDING, "some input is missing there, and no storage that has it sends files"
    )


def quota_there(case: AnalysisCase, site: SiteView) -> Skip | None:
    """Outputs may be written to the storage of the queue: its quota is not used up."""
    output = case.storage(site).output
    endpoint = case.grid.endpoints.get(output)
    if endpoint is None or not endpoint.over_quota:
        return None
    return Skip(site.name, codes.LOCAL_QUOTA, "the quota of {} at {} is used up", (case.facts.who, output))


def cloud(case: AnalysisCase, site: SiteView) -> Skip | None:
    return None if site.cloud == case.needs.cloud else policy.in_other_cloud(site, case.needs.cloud)


def files_there(case: AnalysisCase, site: SiteView) -> Skip | None:
    """A queue near the input, or one that never gets input from elsewhere, has all files of it."""
    lacking = case.near.lacks(site.name)
    if not lacking or not ((case.by_data and not case.is_union) or site.only_local_data):
        return None
    return Skip(site.name, codes.FILES_NOT_THERE, "not all files of {} are there", (lacking,))


def queue_not_full(case: AnalysisCase, site: SiteView) -> Skip | None:
    """No more jobs of the share (and resource type) wait than twice what runs, 40 at least."""
    counts = case.of_type(site)
    cap = 2 * max(MIN_QUEUE, counts.running)
    if counts.queued <= cap:
        return None
    code = codes.QUEUE_FULL_OF_TYPE if case.type_at(site) else codes.QUEUE_FULL
    return Skip(
        site.name,
        code,
        "{:job is|jobs are} queued, the limit is {} with {} running",
        (counts.queued, cap, counts.running),
    )


def user_queue(case: AnalysisCase, site: SiteView) -> Skip | None:
    """The user has no more jobs waiting there than the user's part of what the queue can take."""
    room = case.room(site)
    if not room.exceeded:
        return None
    return Skip(
        site.name,
        codes.USER_QUEUE_LONG,
        "{:job of the user is|jobs of the user are} queued, the limit is {:.1f}: {:.1f} % of {:.0f}",
        (room.queued, room.most, 100 * room.part, room.queue_most),
    )


def few_bad_jobs(case: AnalysisCase, site: SiteView) -> Skip | None:
    """Not too many jobs of the task failed there or were closed lately."""
    ended = case.ended(site)
    bad, most = ended.failed + ended.closed, max(2 * ended.finished, case.settings.min_bad)
    if not bad or bad < most:
        return None
    return Skip(
        site.name,
        codes.FAILING_THERE,
        "{1:job has|jobs have} failed or been closed in {2:g} h; with {3} finished, fewer than {0} are allowed",
        (most, bad, case.settings.window_h, ended.finished),
    )


def is_overloaded(case: AnalysisCase, site: SiteView) -> bool:
    """Whether more jobs of the share wait for each running one than on the grid as a whole, by a good deal."""
    counts = case.counts(site)
    if counts.queued <= case.settings.overload_min_queued:
        return False
    if not counts.running:
        return True
    return counts.queued / counts.running > case.share_ratio * case.settings.overload_offset


def overloaded(case: AnalysisCase, site: SiteView) -> Skip:
    """The objection to a queue that is busier than others, where others are left."""
    counts = case.counts(site)
    virtual = case.near.datasets > 0 and site.name not in case.near.real
    code = codes.OVERLOADED_VIRTUAL if virtual else codes.OVERLOADED
    if not counts.running:
        return Skip(site.name, code, "{:job is|jobs are} queued and none runs", (counts.queued,))
    return Skip(
        site.name,
        code,
        "{:.2f} jobs wait for each running one, the limit is {:.2f}: {} queued, {} running",
        (
            counts.queued / counts.running,
            case.share_ratio * case.settings.overload_offset,
            counts.queued,
            counts.running,
        ),
    )
