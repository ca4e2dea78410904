"""How long files are kept: a stickier wish overrides a weaker one, never the other way round. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tasks_app.workflows.rules.definition import Definition, Keep, Package

STICKINESS: Final[Mapping[Keep, int]] = {Keep.DELETABLE: 0, Keep.TEMPORARY: 1, Keep.RETAIN: 2}


def stickiest(wishes: Iterable[Keep]) -> Keep:
    """The wish that holds of all that a file's producer and readers have."""
    return max(wishes, key=STICKINESS.__getitem__, default=Keep.DELETABLE)


def kept_files(definition: Definition) -> dict[str, Keep]:
    """How long each file of a workflow is kept: as the stickiest of its producer's and its readers' wishes says."""
    return kept_by(package for *_, package in definition.packages())


def kept_by(packages: Iterable[Package]) -> dict[str, Keep]:
    """The same of the files of some packages, all of those that read or write them."""
    found: dict[str, Keep] = {}
    for package in packages:
        for binary in package.binaries:
            wishes = [(file.name, file.keep) for file in binary.inputs]
            wishes += [(file.name, file.keep) for file in binary.outputs]
            for name, keep in wishes:
                found[name] = stickiest((found.get(name, Keep.DELETABLE), keep))
    return found


def is_deleted(package: Package, kept: Mapping[str, Keep]) -> bool:
    """Whether what a package writes goes when the workflow has ended: nobody wishes to keep any file of it."""
    names = [file.name for file in package.outputs()]
    return bool(names) and all(kept[name] is Keep.DELETABLE for name in names)
