"""The command line of a jumbo job: that of a consumer, with a placeholder for its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

PLACEHOLDER: Final = "tmpin__cnt_{}"
"""Stands for the files of a dataset, which a jumbo job learns from its ranges."""


def jumbo_command(command: str, inputs: Mapping[str, Sequence[str]]) -> str:
    """`command` with a placeholder for the files of each dataset: for their list if it stands there, else for each name."""
    for dataset, files in inputs.items():
        named = PLACEHOLDER.format(dataset)
        listed = ",".join(files)
        if listed and listed in command:
            command = command.replace(listed, named)
            continue
        for name in sorted(files, key=len, reverse=True):
            command = command.replace(name, named)
    return command
