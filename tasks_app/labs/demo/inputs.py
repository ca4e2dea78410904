"""Input datasets of the demonstration: Python sources that every machine has, and small data files of which some are broken."""

from __future__ import annotations

import io
import json
import random
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tasks_app.inputs.registering import register_dataset
from tasks_app.submission import sandbox_uploads

SOURCES_WANTED = 1_000
MOST_BYTES = 16_000
"""Of a source: the larger ones are a quarter of the standard library's files, and four fifths of what there is to read."""
RECORDS = 20
BROKEN_RECORDS = 4


def register_sources(name: str, scope: str) -> int:
    """Register the smaller files of the Python standard library, and when those are fewer than 1 000 also of installed packages.

    The dataset's name begins theirs: those of another day may have other contents, and a scope and a name are one file.
    Returns how many files the dataset has.
    """
    library = Path(sysconfig.get_path("stdlib"))
    packages = Path(sysconfig.get_path("purelib"))
    chosen = {_lfn(f"{name}.stdlib", library, path): path for path in _sources(library) if packages not in path.parents}
    for path in _sources(packages):
        if len(chosen) >= SOURCES_WANTED:
            break
        chosen[_lfn(f"{name}.packages", packages, path)] = path
    names = sorted(chosen)
    register_dataset(name, scope, [chosen[n] for n in names], names=names)
    return len(names)


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.relative_to(root).parts and path.is_file() and path.stat().st_size <= MOST_BYTES:
            yield path


def _lfn(prefix: str, root: Path, path: Path) -> str:
    return ".".join((prefix, *path.relative_to(root).parts))


COUNT_C = """#include <stdio.h>
#include <stdlib.h>
/* Primes among `count` numbers from `first` on, as JSON. */
int main(int words, char **word) {
    if (words != 3) return 64;
    long first = atol(word[1]), count = atol(word[2]), primes = 0;
    for (long n = first; n < first + count; n++) {
        int prime = n > 1;
        for (long d = 2; prime && d * d <= n; d++) prime = n % d != 0;
        primes += prime;
    }
    printf("{\\"first\\": %ld, \\"count\\": %ld, \\"primes\\": %ld}\\n", first, count, primes);
    return 0;
}
"""
COUNT_SH = """#!/bin/sh
awk -v first="$1" -v count="$2" 'BEGIN {
    for (n = first; n < first + count; n++) {
        prime = n > 1
        for (d = 2; prime && d * d <= n; d++) prime = n % d != 0
        primes += prime
    }
    printf "{\\"first\\": %d, \\"count\\": %d, \\"primes\\": %d}\\n", first, count, primes
}'
"""


def keep_sandbox(folder: Path, owner: str) -> str:
    """Pack the program that counts primes and give it to the site. Returns the archive's name."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "sources.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (("count.c", COUNT_C), ("count.sh", COUNT_SH)):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return sandbox_uploads.keep(archive, owner)


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
