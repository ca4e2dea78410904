"""Putting data of this machine into the local catalogue: files as a dataset, datasets as a container."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import transaction

from brokerage_app.models import StorageEndpoint
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.ddm.addresses import Roots, storage_path
from tasks_app.ddm.base import SITE, ForeignDatasetError, Named
from tasks_app.ddm.local_files import adler32, adler32_of, file_url
from tasks_app.ddm.local_storage import ENDPOINT, catalogue, container_name
from tasks_app.ddm.opening import ForeignLinkError, open_led_to
from tasks_app.domain.scopes import CONTAINER_MARK
from tasks_app.inputs.readers import wake_readers
from tasks_app.models import CatalogueDataset, CatalogueFile
from tasks_app.params.filelists import why_not_carried
from tasks_app.params.keys import NAME

log = structlog.get_logger(__name__)


@transaction.atomic
def register_dataset(
    name: str,
    scope: str,
    paths: Iterable[Path],
    *,
    names: Iterable[str] | None = None,
    events: Iterable[int | None] | None = None,
    is_open: bool = False,
    owner: str = "",
) -> CatalogueDataset:
    """Register files that lie on this machine as a dataset, with their real size and checksum.

    `names` gives their logical names (default: the files' own names). With `is_open` more files may be added later, by
    registering them in the same dataset, and by tasks of its `owner` (default: the site, so that no task adds any); those that
    it has already, with the same content, stay. Raises OSError for a file that cannot be read, ValueError when there is none,
    two have the same name, pilots cannot carry a name, the dataset exists and is closed, it or its scope has a name already,
    for another content, a link of somebody leads to a file of somebody else, or a file is one of the site's own.

    The files stay where they are. Links at the places of the storage lead to them, by which PanDA's pilots find inputs.
    """
    listed = list(paths)
    lfns = list(names) if names is not None else [p.name for p in listed]
    counts = list(events) if events is not None else [None] * len(listed)
    if name.endswith(CONTAINER_MARK):
        raise ValueError(f"{name} is the name of a container, which contains datasets, not files")
    _check_name(name)
    if not lfns:
        raise ValueError(f"there is no file for the dataset {name}")
    for lfn in lfns:
        if no := why_not_carried(lfn):
            raise ValueError(
                f"pilots cannot transfer the file {lfn!r}: {no}; give it another name. Nothing was registered"
            )
    if len(set(lfns)) != len(lfns):
        raise ValueError(f"two files of the dataset {name} have the same name")
    dataset, new = CatalogueDataset.objects.get_or_create(
        name=name, defaults={"scope": scope, "open": is_open, "owner": owner}
    )
    if owner and dataset.owner != owner:
        raise ValueError(str(ForeignDatasetError(name, dataset.owner, dataset.made_by_task)))
    if not new and not dataset.open:
        raise ValueError(
            f"the dataset {name} exists already and is closed, so it takes no more files: choose another name; "
            "a dataset that is to grow is registered with --open each time but the last"
        )
    read = {lfn: _read(path) for lfn, path in zip(lfns, listed, strict=True)}
    there = set[str]()
    for row in dataset.files.filter(lfn__in=lfns).order_by("lfn"):
        if (row.size, row.adler32) != (read[row.lfn].size, read[row.lfn].adler32):
            raise ValueError(
                f"the dataset {name} has a file {row.lfn} already, with other content: register changed files under "
                "another name. Nothing was registered"
            )
        there.add(row.lfn)
    found = [file for lfn, file in read.items() if lfn not in there]
    _check_places(found)
    rows = [
        CatalogueFile(
            dataset=dataset,
            lfn=lfn,
            scope=scope,
            guid=str(uuid.uuid4()),
            size=file.size,
            adler32=file.adler32,
            events=count,
            endpoint=ENDPOINT,
            url=file_url(file.path),
        )
        for lfn, count in zip(lfns, counts, strict=True)
        if lfn not in there
        for file in (read[lfn],)
    ]
    _check_names(name, scope, rows)
    links = _links(scope, rows, [file.path for file in found])
    CatalogueFile.objects.bulk_create(rows, batch_size=2000)
    if not new and not is_open:
        catalogue.close([name], by=SITE)
    if not new:
        wake_readers([name])
    transaction.on_commit(lambda: _link(links))
    return dataset


class _File(NamedTuple):
    """What a path led to when it was read: the file's path without links, its size and checksum."""

    path: Path
    size: int
    adler32: str


def _read(path: Path) -> _File:
    """Pilots read what is registered with their own rights, for everybody: so nobody's link leads to what is not theirs."""
    try:
        real, stream = open_led_to(path)
    except ForeignLinkError as exc:
        raise ValueError(f"{exc}. Nothing was registered") from exc
    with stream:
        return _File(real, os.fstat(stream.fileno()).st_size, adler32_of(stream))


def _check_places(files: Iterable[_File]) -> None:
    """Raises ValueError for a file of the site's own folder that lies in no storage: pilots would not open it."""
    home, stores = Path(settings.JEDI_HOME).resolve(), {root.resolve() for root in Roots()}
    for file in files:
        if file.path.is_relative_to(home) and not any(file.path.is_relative_to(root) for root in stores):
            raise ValueError(
                f"{file.path} is in the site's own folder, {home}, which holds its secrets. Nothing was registered"
            )


def _check_name(name: str) -> None:
    if not NAME.fits(name):
        raise ValueError(f"{name!r} cannot be the name of a dataset: {NAME.words}")


def _check_names(dataset: str, scope: str, rows: Sequence[CatalogueFile]) -> None:
    """Raises ValueError when the scope has one of these names for another content: a scope and a name are one file.

    Nobody else registers files in this scope until the transaction ends.
    """
    with hot_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"files of {scope}"])
    others = catalogue.others_of_these_names(Named(dataset, scope, row.lfn, row.size, row.adler32) for row in rows)
    taken = [(row, others[scope, row.lfn]) for row in rows if (scope, row.lfn) in others]
    if not taken:
        return
    row, other = taken[0]
    more = f" The same applies to {plural(len(taken) - 1, 'other file')} of yours." if taken[1:] else ""
    raise ValueError(
        f"the scope {scope} has a file {row.lfn} already, with another content: the one in the dataset {other.dataset} has "
        f"{_content(other.size, other.adler32)}, yours {_content(row.size, row.adler32)}. A scope and a name are one file, "
        f"and pilots would read that one.{more} Give the file another name, or choose a dataset of another scope. "
        "Nothing was registered"
    )


def _content(size: int, checksum: str) -> str:
    return f"{plural(size, 'byte')} (adler32 {checksum})"


def _links(scope: str, rows: Iterable[CatalogueFile], paths: Iterable[Path]) -> list[tuple[Path, Path]]:
    """Which links the storage needs: place and file. A place that leads to the same content stays as it is.

    Raises ValueError when a place is taken by another content that is no link: somebody's output lies there; and when the
    folder of the storage is away.
    """
    root, links = Path(settings.JEDI_STORAGE).resolve(), []
    for row, path in zip(rows, paths, strict=True):
        place, file = storage_path(root, scope, row.lfn), path
        if place.exists() and (place.resolve() == file or _holds(place, row)):
            continue
        if place.exists() and not place.is_symlink():
            raise ValueError(
                f"the storage has another file {row.lfn} of the scope {scope} already ({place}), and a scope and a name are "
                "one file. Give yours another name, or choose a dataset of another scope. Nothing was registered"
            )
        links.append((place, file))
    if links and not root.is_dir() and StorageEndpoint.objects.filter(name=ENDPOINT).exists():
        # It was made with its endpoint: its disk is not mounted, and the links would lie elsewhere.
        raise ValueError(f"the folder of {ENDPOINT} ({root}) is not there. Nothing was registered")
    return links


def _holds(place: Path, row: CatalogueFile) -> bool:
    return place.is_file() and place.stat().st_size == row.size and adler32(place) == row.adler32


def _link(links: Iterable[tuple[Path, Path]]) -> None:
    """Make links from places of the storage to files that lie elsewhere. Links that lead to nothing of use are replaced."""
    for place, file in links:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = place.with_name(f".{uuid.uuid4().hex}.part")
        made.symlink_to(file)
        if place.is_symlink():
            os.replace(made, place)
            continue
        try:
            os.link(made, place, follow_symlinks=False)  # unlike a renaming, this fails when the name is taken
        except FileExistsError:
            log.warning("dataset.place_taken", place=str(place), file=str(file))  # an output came in between
        made.unlink()


@transaction.atomic
def register_container(name: str, datasets: Iterable[str], *, is_open: bool = False) -> CatalogueDataset:
    """Register a container of datasets that exist, or add datasets to it. Its name ends with a slash.

    Raises ValueError for a dataset that does not exist, and for a container in place of a dataset.
    """
    full, members = container_name(name), list(datasets)
    _check_name(full)
    known = set(CatalogueDataset.objects.filter(name__in=members).values_list("name", flat=True))
    missing = [member for member in members if member not in known]
    if missing:
        near = catalogue.unknown(missing[:1], user="").get(missing[0])
        hint = f". Did you mean {near}?" if near else ""
        raise ValueError(f"the dataset {missing[0]} does not exist in the local catalogue{hint}")
    catalogue.add_to_container(full, members, by=SITE)
    CatalogueDataset.objects.filter(name=full).update(open=is_open)
    wake_readers([full])
    return CatalogueDataset.objects.get(name=full)
