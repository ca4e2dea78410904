"""Putting data of this machine into the local catalogue: files as a dataset, datasets as a container."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path

import structlog
from django.conf import settings
from django.db import transaction

from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import SITE, ForeignDatasetError
from tasks_app.ddm.local import ENDPOINT, adler32, catalogue, container_name, file_url
from tasks_app.models import CatalogueDataset, CatalogueFile
from tasks_app.params.filelists import why_not_carried
from tasks_app.params.keys import NAME
from tasks_app.params.made import CONTAINER_MARK
from tasks_app.readers import wake_readers

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
    registering them in the same dataset, and by tasks of its `owner` (default: the site, so that no task adds any).
    Raises OSError for a file that cannot be read, ValueError when there is none, two have the same name, pilots cannot carry
    a name, or the dataset exists and is closed.

    The files stay where they are. Links at the places of the storage lead to them, by which PanDA's pilots find inputs.
    """
    listed = list(paths)
    lfns = list(names) if names is not None else [p.name for p in listed]
    counts = list(events) if events is not None else [None] * len(listed)
    if name.endswith(CONTAINER_MARK):
        raise ValueError(f"{name} is the name of a container: it takes datasets, not files")
    _check_name(name)
    if not lfns:
        raise ValueError(f"there is no file for the dataset {name}")
    for lfn in lfns:
        if no := why_not_carried(lfn):
            raise ValueError(
                f"pilots cannot carry the file {lfn!r}: {no}; give it another name. Nothing was registered"
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
    known = set(dataset.files.filter(lfn__in=lfns).values_list("lfn", flat=True))
    if known:
        raise ValueError(f"the dataset {name} has {min(known)} already")
    CatalogueFile.objects.bulk_create(
        [
            CatalogueFile(
                dataset=dataset,
                lfn=lfn,
                scope=scope,
                guid=str(uuid.uuid4()),
                size=path.stat().st_size,
                adler32=adler32(path),
                events=count,
                endpoint=ENDPOINT,
                url=file_url(path.resolve()),
            )
            for path, lfn, count in zip(listed, lfns, counts, strict=True)
        ],
        batch_size=2000,
    )
    if not new and not is_open:
        catalogue.close([name], by=SITE)
    if not new:
        wake_readers([name])
    root = Path(settings.JEDI_STORAGE).resolve()
    places = [(storage_path(root, scope, lfn), path.resolve()) for path, lfn in zip(listed, lfns, strict=True)]
    transaction.on_commit(lambda: _link(places))
    return dataset


def _check_name(name: str) -> None:
    if not NAME.fits(name):
        raise ValueError(f"{name!r} cannot be the name of a dataset: {NAME.words}")


def _link(places: Iterable[tuple[Path, Path]]) -> None:
    """Make links from places of the storage to files that lie elsewhere.

    A place that leads to another file stays as it is: its name is used twice in its scope, where PanDA's pilots know
    a file by scope and name alone. One that leads nowhere is taken.
    """
    for place, file in places:
        if place.exists():
            if place.resolve() != file:
                log.warning("dataset.name_taken", place=str(place), file=str(file))
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(file)


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
        raise ValueError(f"the dataset {missing[0]} does not exist in the local catalogue")
    catalogue.add_to_container(full, members, by=SITE)
    CatalogueDataset.objects.filter(name=full).update(open=is_open)
    wake_readers([full])
    return CatalogueDataset.objects.get(name=full)
