"""The chunk of merge jobs: unmerged logs are its master, unmerged outputs its secondaries, and the files that one job
made stay together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks_app.splitting.chunk import Chunk, End, Group, InputFile, Secondary
from tasks_app.splitting.limits import MB, MERGE_GROWTH, MOST_FILES, SplitLimits
from tasks_app.splitting.splitter import split

PATIENCE = timedelta(hours=1)
"""How long an incomplete group waits for jobs that could still be made of input that is left."""


@dataclass(frozen=True, slots=True)
class Heap:
    """What waits to be merged at one site.

    producers      jobs whose files wait
    files, size    number and bytes of their files, logs and all outputs together
    events         events of those jobs, 0 when they are not counted
    newest         when the last of those jobs had done its part
    jobs_open      another job of the task is queued or runs at the site
    input_left     more jobs can be made of the task's input
    """

    site: str
    producers: int
    files: int
    size: int
    events: int
    newest: datetime
    jobs_open: bool = False
    input_left: bool = False


def nothing_more(heap: Heap, now: datetime, patience: timedelta = PATIENCE) -> bool:
    """Whether no more files are to be expected at a site, so that what waits there is merged though it is little.

    All jobs of the task at the site have ended (JEDI's rule). While input is left the next job may come there any
    moment, so then only when none has come for some time.
    """
    if heap.jobs_open:
        return False
    return not heap.input_left or now - heap.newest >= patience


def may_be_full(heap: Heap, limits: SplitLimits) -> bool:
    """Whether what waits could make a full merge job: the splitter knows for certain."""
    if heap.producers >= most_producers(limits) or heap.files >= MOST_FILES:
        return True
    if limits.events_per_job and heap.events >= limits.events_per_job:
        return True
    if limits.max_output_bytes and heap.size * MERGE_GROWTH >= limits.max_output_bytes:
        return True
    walltime = limits.base_walltime_s + limits.walltime_s_per_mb * heap.size / MB
    if limits.walltime_s_per_mb and limits.max_walltime_s is not None and walltime >= limits.max_walltime_s:
        return True
    needs = heap.size * (1 + MERGE_GROWTH) + limits.work_bytes
    return limits.size_limit_bytes is not None and needs >= limits.size_limit_bytes


def most_producers(limits: SplitLimits) -> int:
    """Jobs whose files one merge job takes at most, by their number alone."""
    return limits.files_per_job or limits.max_files


def merge_groups(chunk: Chunk, limits: SplitLimits, *, rest_too: bool) -> list[Group]:
    """The merge jobs of a chunk. Unless `rest_too`, the last one is left out when it could take more."""
    cut = split(chunk, limits)
    groups = cut.groups
    grows = groups and cut.ends.get(End.INPUT) and len(groups[-1].files) < most_producers(limits)
    return groups[:-1] if grows and not rest_too else groups


@dataclass(frozen=True, slots=True)
class MergeChunk:
    """A chunk to be split with the merge limits.

    `streams` are those of its secondaries, in their order, without those that have no files. `orphans` are files whose
    job left no log here: they wait for it.
    """

    chunk: Chunk
    streams: tuple[str, ...]
    orphans: tuple[InputFile, ...]


def merge_chunk(
    log_dataset: int, logs: Sequence[InputFile], outputs: Mapping[str, tuple[int, Sequence[InputFile]]]
) -> MergeChunk:
    """Arrange unmerged files by the job that made them (their boundary).

    `outputs` gives dataset id and files of each stream. The logs of one job stand next to each other, jobs in the
    order of their first log. Raises ValueError for a file that does not say which job made it.
    """
    by_job: dict[int, list[InputFile]] = {}
    for log in logs:
        by_job.setdefault(_producer(log), []).append(log)
    masters = [log for some in by_job.values() for log in some]
    secondaries, streams, orphans = [], [], []
    for stream, (dataset, files) in outputs.items():
        known = [file for file in files if _producer(file) in by_job]
        orphans += [file for file in files if _producer(file) not in by_job]
        if known:
            streams.append(stream)
            secondaries.append(Secondary(dataset, known))
    return MergeChunk(Chunk(log_dataset, masters, tuple(secondaries)), tuple(streams), tuple(orphans))


def _producer(file: InputFile) -> int:
    if file.boundary is None:
        raise ValueError(f"The unmerged file {file.lfn} does not say which job made it.")
    return file.boundary


def merge_inputs(group: Group, streams: Sequence[str], log_stream: str = "TRN_LOG0") -> dict[str, list[InputFile]]:
    """Inputs of one merge job by stream, the largest first.

    Streams without any file are not there: their outputs are not made either.
    """
    found = {log_stream: _by_size(group.files)}
    for stream, files in zip(streams, group.secondaries, strict=True):
        if files:
            found[stream] = _by_size(files)
    return found


def _by_size(files: Sequence[InputFile]) -> list[InputFile]:
    return sorted(files, key=lambda file: (-file.size, file.file_id))


def merged_streams(inputs: Mapping[str, Sequence[InputFile]], outputs: Sequence[str]) -> list[str]:
    """Which of the output streams a merge job makes: those with inputs (`TRN_OUTPUT0` for `OUTPUT0`), and its log."""
    return [stream for stream in outputs if f"TRN_{stream}" in inputs or stream == "LOG_MERGE"]
