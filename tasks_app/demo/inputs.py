"""Input datasets of the demonstration: Python sources that every machine has, and small data files of which some are broken."""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tasks_app.ddm.registering import register_dataset

SOURCES_WANTED = 1_000
RECORDS = 20
BROKEN_RECORDS = 4


def register_sources(name: str, scope: str) -> int:
    """Register the files of the Python standard library, and when those are fewer than 1 000 also of installed packages.

    Returns how many files the dataset has.
    """
    library = Path(sysconfig.get_path("stdlib"))
    packages = Path(sysconfig.get_path("purelib"))
    chosen = {_lfn("stdlib", library, path): path for path in _sources(library) if packages not in path.parents}
    for path in _sources(packages):
        if len(chosen) >= SOURCES_WANTED:
            break
        chosen[_lfn("packages", packages, path)] = path
    names = sorted(chosen)
    register_dataset(name, scope, [chosen[n] for n in names], names=names)
    return len(names)


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.relative_to(root).parts and path.is_file():
            yield path


def _lfn(prefix: str, root: Path, path: Path) -> str:
    return ".".join((prefix, *path.relative_to(root).parts))


def register_records(name: str, scope: str, folder: Path, seed: int) -> int:
    """Write small JSON files, some cut off in the middle, and register them. Returns how many are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    paths = []
    for number in range(RECORDS):
        text = json.dumps({"run": number, "values": [round(chance.gauss(91.2, 2.5), 4) for _ in range(200)]})
        broken = number % (RECORDS // BROKEN_RECORDS) == 2
        path = folder / f"{name}.{number:03d}.json"
        path.write_text(text[: len(text) // 2] if broken else text)
        paths.append(path)
    register_dataset(name, scope, paths, events=[1] * len(paths))
    return RECORDS - BROKEN_RECORDS
