"""From unmerged files at a site and its limits to the merge jobs there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tasks_app.splitting.chunk import Group, InputFile
from tasks_app.splitting.limits import SplitLimits
from tasks_app.splitting.merging import merge_chunk, merge_groups, merge_inputs

MASTER: Final = "TRN_LOG0"
"""The stream of the logs of the jobs whose outputs are merged."""


def plan_merges(
    log_dataset: int,
    logs: Sequence[InputFile],
    outputs: Mapping[str, tuple[int, Sequence[InputFile]]],
    limits: SplitLimits,
    *,
    rest_too: bool,
) -> dict[tuple[str, ...], list[Group]]:
    """The inputs of the merge jobs, by the streams that they read besides the logs: only such jobs are stored together.

    `outputs` gives dataset id and files of each stream. Unless `rest_too`, a last job that could take more is left out.
    """
    arranged = merge_chunk(log_dataset, logs, outputs)
    alike: dict[tuple[str, ...], list[Group]] = {}
    for group in merge_groups(arranged.chunk, limits, rest_too=rest_too):
        inputs = merge_inputs(group, arranged.streams, MASTER)
        files = inputs.pop(MASTER)
        alike.setdefault(tuple(inputs), []).append(group._replace(files=files, secondaries=tuple(inputs.values())))
    return alike
