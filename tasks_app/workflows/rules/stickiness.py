"""How long files are kept: a stickier wish overrides a weaker one, never the other way round. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tasks_app.workflows.rules.definition import Definition, Keep

STICKINESS: Final[Mapping[Keep, int]] = {Keep.DELETABLE: 0, Keep.TEMPORARY: 1, Keep.RETAIN: 2}


def stickiest(wishes: Iterable[Keep]) -> Keep:
    """The wish that holds of all that a file's producer and readers have."""
    return max(wishes, key=STICKINESS.__getitem__, default=Keep.DELETABLE)


def kept_files(definition: Definition) -> dict[str, Keep]:
    """How long each file of a workflow is kept: as the stickiest of its producer's and its readers' wishes says."""
    found: dict[str, Keep] = {}
    for *_, package in definition.packages():
        for binary in package.binaries:
            wishes = [(file.name, file.keep) for file in binary.inputs]
            wishes += [(file.name, file.keep) for file in binary.outputs]
            for name, keep in wishes:
                found[name] = stickiest((found.get(name, Keep.DELETABLE), keep))
    return found
