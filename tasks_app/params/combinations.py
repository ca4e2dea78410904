"""Parameters that contradict each other, or that others leave without effect: what is refused, and what is worth saying. Pure.

Refused is what cannot mean anything. What PanDA's clients and workflow systems send together by themselves is taken, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tasks_app.params import group_rules, partners, read_keys
from tasks_app.params.clientwords import is_from_client, option_of
from tasks_app.params.faults import Faults, join_path
from tasks_app.params.items import Item
from tasks_app.params.read_keys import EFFECT

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

_SAME: Final = (("nEventsPerInputFile", "nEventsPerFile"), ("minGranularity", "nEventsPerRange"))
_SLICES: Final = ("nEventsPerJob", "tgtNumEventsPerJob", "minGranularity", "nEventsPerRange")
_KNOW: Final = ("nEventsPerInputFile", "nEventsPerFile", "useRealNumEvents", "getNumEventsInMetadata")
_OF_MERGING: Final = (
    "nFilesPerMergeJob",
    "nEventsPerMergeJob",
    "nGBPerMergeJob",
    "nMaxFilesPerMergeJob",
    "mergeRamCount",
    "mergeCoreCount",
    "mergeSpec",
)
_OF_BLOCKS: Final = ("respectLB", "orderByLB")
_STAGING: Final = ("inputPreStaging", "toStaging", "panda_data_carousel")
_OF_INPUT: Final = (*_STAGING, "waitInput")
_OF_INPUT_MAYBE: Final = ("allowEmptyInput", "allowIncompleteInDS", "ignoreMissingInDS")


def same(params: TaskParams, faults: Faults) -> None:
    """Two names of one thing have one value."""
    for name, other in _SAME:
        one, two = params.whole(name), params.whole(other)
        if one is not None and two is not None and one != two:
            faults.add(other, "contradiction", f"{name} is {one} and {other}, its other name, {two}: give one of them.")
    asks = next((name for name in _STAGING if params.flag(name)), None)
    for other in _STAGING:
        if asks and params.given(other) and not params.flag(other):
            faults.add(other, "contradiction", f"{asks} is true and {other}, its other name, false: give one of them.")


def cores(params: TaskParams, faults: Faults) -> None:
    count, most = params.whole("coreCount"), params.whole("maxCoreCount")
    if count is not None and most is not None and count > most:
        faults.add("maxCoreCount", "at least", f"It must not be below coreCount ({count}), and it is {most}.")


def retry_memory(params: TaskParams, faults: Faults) -> None:
    """Retries can get more memory than the first attempt."""
    most, step, ram = params.whole("retryRamMax"), params.whole("retryRamStep"), params.whole("ramCount")
    if most is None:
        return
    if step is None and params.whole("retryRamOffset") is None:
        faults.add("retryRamMax", EFFECT, "It has no effect without retryRamStep or retryRamOffset.")
    if step is not None and most < step:
        faults.add("retryRamMax", "at least", f"It must not be below retryRamStep ({step}), and it is {most}.")
    is_per_core = (params.ram_unit or "").startswith("MBPerCore")
    count = (params.whole("coreCount") or 1) if is_per_core else 1
    if ram and most < ram * count:
        of = f"ramCount ({ram} MB" + (f" for each of {count} cores)" if count > 1 else ")")
        faults.add("retryRamMax", "at least", f"It must not be below {of}, and it is {most}: no retry would get more.")


def places(params: TaskParams, faults: Faults) -> None:
    """Outputs have one place."""
    if not params.flag("stayOutputOnSite"):
        return
    named = [("destination", params.text("destination"))]
    named += [(join_path(item.where, "destination"), item.text("destination")) for item in _made(params)]
    for where, name in named:
        if name:
            said = f"With stayOutputOnSite outputs stay where they are made, and not at {name}: leave out one of them."
            faults.add(where, "contradiction", said)


def events(params: TaskParams, faults: Faults) -> None:
    """What divides files by their events knows how many they have."""
    knows = _knows_events(params)
    for name in ("minGranularity", "nEventsPerRange"):
        if params.whole(name) and not knows:
            said = "give nEventsPerInputFile, or useRealNumEvents where data management knows the numbers"
            faults.add(name, EFFECT, f"It has no effect unless the number of events in each file is known: {said}.")
    if params.whole("maxEventsPerJob") and not any(params.whole(name) for name in _SAME[1]):
        said = "It has no effect without minGranularity, which lets jobs have any number of events: give nEventsPerJob"
        faults.add("maxEventsPerJob", EFFECT, f"{said}, or minGranularity.")
    if not params.flag("skipShortInput") or params.flag("noInput"):
        return
    if not knows or not any(params.whole(name) for name in _SLICES):
        said = "It leaves out the rests of files that are divided by events, and these are not"
        faults.add(
            "skipShortInput", EFFECT, f"{said}: skipShortOutput makes no job with fewer files than nFilesPerJob."
        )


def nothing_read(params: TaskParams, faults: Faults) -> None:
    """A task that reads no file has no luminosity blocks, and waits for no file."""
    if not params.flag("noInput"):
        return
    asked = [*_OF_BLOCKS, *(() if reads_files(params) else _OF_INPUT)]
    for name in asked:
        if params.flag(name):
            faults.add(name, EFFECT, f"It has no effect with noInput: {_why_not(name)}.")


RULES: Final[tuple[tuple[Callable[[TaskParams, Faults], None], tuple[str, ...]], ...]] = (
    (same, tuple(name for pair in _SAME for name in pair)),
    (cores, ("coreCount", "maxCoreCount")),
    (
        retry_memory,
        ("retryRamMax", "retryRamStep", "retryRamOffset", "ramCount", "ramUnit", "ramCountUnit", "coreCount"),
    ),
    (places, ("stayOutputOnSite", "destination", "jobParameters", "log", "log_merge")),
    (events, ("skipShortInput", "noInput", "jobParameters", "maxEventsPerJob", *_SLICES, *_KNOW)),
    (nothing_read, ("noInput", "jobParameters", *_OF_BLOCKS, *_OF_INPUT)),
    (partners.addresses, ("pfnList", "noInput")),
    (read_keys.unread_keys, ("jobParameters", "log", "log_merge", "noInput", "mergeOutput", "parent_tid")),
)
"""Each with the keys that it reads."""


def remarks(params: TaskParams) -> list[str]:
    """Sentences on what is taken and leaves a parameter without effect."""
    return list(_remarks(params))


def _remarks(params: TaskParams) -> Iterator[str]:
    def called(name: str) -> str:
        return option_of(name, params.raw) if is_from_client(params.raw) else name

    files, most = params.whole("nFilesPerJob"), params.whole("nMaxFilesPerJob")
    if files and most and files > most:
        said = f"a job gets {files} files, as {called('nFilesPerJob')} says"
        yield f"{called('nMaxFilesPerJob')} {most} has no effect: {said}."
    wanted = next((name for name in ("nEventsPerJob", "nFilesPerJob") if params.whole(name)), None)
    if params.whole("tgtNumEventsPerJob") and wanted:
        yield f"{called('tgtNumEventsPerJob')} has no effect: {called(wanted)} says what a job gets."
    yield from _on_attempts(params, called("maxAttempt"), called("disableAutoRetry"), called("maxFailure"))
    yield from _on_names(params, called("addNthFieldToLFN"))
    if not params.flag("mergeOutput"):
        for name in _OF_MERGING:
            if params.spec(name) is not None if name == "mergeSpec" else params.whole(name):
                yield f"{called(name)} has no effect without {called('mergeOutput')}, which makes merge jobs."
    if params.flag("noInput") and not reads_files(params):
        for name in _OF_INPUT_MAYBE:
            if params.flag(name):
                yield f"{name} has no effect with noInput: the task reads no dataset."
    if params.events_per_input and params.flag("useRealNumEvents") and not params.flag("skipShortInput"):
        said = f"each file counts as {params.events_per_input} events, as {called('nEventsPerInputFile')} says"
        yield f"{called('useRealNumEvents')} has no effect: {said}; what a file has beyond them is not processed."
    if params.whole("nChunksToWait") and params.flag("noInputPooling"):
        yield "noInputPooling has no effect: nChunksToWait says for how many jobs inputs are gathered."
    both = params.given("forceStaged") and params.given("useLocalIO")
    if both and params.flag("forceStaged") != params.flag("useLocalIO"):
        yield "useLocalIO has no effect: forceStaged says the opposite."
    yield from group_rules.remarks(params)
    yield from partners.remarks(params, called)
    yield from read_keys.told_keys(params)


def _on_attempts(params: TaskParams, attempts: str, once: str, failures: str) -> Iterator[str]:
    most, fail = params.whole("maxAttempt"), params.whole("maxFailure")
    if params.flag("disableAutoRetry"):
        if most and most > 1:
            yield f"{attempts} {most} has no effect with {once}: each input is tried once."
    elif most and fail and fail > most:
        times = f"{most} times" if most > 1 else "once"
        yield f"{failures} {fail} has no effect: each input is tried {times}, as {attempts} {most} says."


def _on_names(params: TaskParams, fields: str) -> Iterator[str]:
    of_files = params.flag("useFileAsSourceLFN")
    if not params.names("addNthFieldToLFN"):
        if of_files:
            yield f"useFileAsSourceLFN has no effect without {fields}, which names the fields."
        return
    files = params.whole("nFilesPerJob") or 0
    if of_files and files > 1:
        few = f"a job may get fewer than {files} files"
        yield f"With useFileAsSourceLFN {few}: all that it reads agree in the fields that {fields} takes from their names."
    texts = [item.value for item in (*params.items, *params.logs, *params.merge_logs)]
    if not of_files and not any("${MIDDLENAME" in text for text in texts):
        yield f"{fields} has no effect: no name of an output has ${{MIDDLENAME}}, where the fields would stand."


def _why_not(name: str) -> str:
    if name in _OF_BLOCKS:
        return "the task reads no files, so it has no luminosity blocks"
    return "the task reads no dataset, so there is nothing to wait for"


def reads_files(params: TaskParams) -> bool:
    """Whether a task reads datasets beside the work that it makes up."""
    return any(item.is_template and item.param_type == "input" and item.datasets for item in params.items)


def _made(params: TaskParams) -> tuple[Item, ...]:
    return (*(item for item in params.items if item.param_type in ("output", "log")), *params.logs, *params.merge_logs)


def _knows_events(params: TaskParams) -> bool:
    if params.events_per_input or params.flag("useRealNumEvents") or params.flag("getNumEventsInMetadata"):
        return True
    return params.flag("noInput") or any(item.param_type == "pseudo_input" for item in params.items)
