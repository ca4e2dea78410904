"""The chunk of merge jobs: unmerged logs are its master, unmerged outputs its secondaries, and the files that one job
made stay together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks_app.splitting.chunk import Chunk, Group, InputFile, Secondary


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
