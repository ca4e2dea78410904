"""The local twin of data management: datasets of files on this machine's disks, kept in two tables.

Its tables live in the same database, so its calls may be part of a transaction.
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from django.db import transaction

from jedisite.sql import hot_cursor, numbers, texts
from tasks_app.ddm.base import DatasetInfo, FileInfo, NewFile, UnknownDatasetError
from tasks_app.models import CatalogueDataset, CatalogueFile

ENDPOINT = "LOCAL_SE"
CHUNK = 1024 * 1024


_WHOLE = {NewFile._fields.index("size"), NewFile._fields.index("events")}


class LocalCatalogue:
    """See `base.DataManagement`."""

    def describe(self, dataset: str) -> DatasetInfo:
        found = CatalogueDataset.objects.filter(name=dataset).first()
        if found is None:
            raise UnknownDatasetError(f"the dataset {dataset} does not exist in the local catalogue")
        return DatasetInfo(dataset, found.open, found.files.count())

    def list_files(self, dataset: str, page: int = 50_000) -> Iterator[list[FileInfo]]:
        after = ""
        while True:
            with hot_cursor() as cursor:
                cursor.execute(
                    """SELECT f.lfn, f.scope, f.guid, f.size, 'ad:' || f.adler32, f.events, f.lumi_block, f.url
                         FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id
                        WHERE d.name = %s AND f.lfn > %s ORDER BY f.lfn LIMIT %s""",
                    [dataset, after, page],
                )
                rows = cursor.fetchall()
            if rows:
                yield [FileInfo._make(row) for row in rows]
                after = rows[-1][0]
            if len(rows) < page:
                return

    def create(self, datasets: Iterable[str], *, scope: str, task_id: int) -> None:
        CatalogueDataset.objects.bulk_create(
            [CatalogueDataset(name=name, scope=scope, made_by_task=task_id, open=True) for name in datasets],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["open"],
        )

    def add(self, files: Iterable[NewFile]) -> None:
        rows = list(files)
        if not rows:
            return
        with hot_cursor() as cursor:
            cursor.execute(
                """INSERT INTO catalogue_files (dataset_id, lfn, scope, guid, size, adler32, events, endpoint, url)
                   SELECT d.id, n.lfn, n.scope, n.guid, n.size, n.adler32, n.events, n.endpoint, n.url
                     FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[],
                                 %s::text[], %s::text[]) AS n (dataset, lfn, scope, guid, size, adler32, events, endpoint, url)
                     JOIN catalogue_datasets d ON d.name = n.dataset
                   ON CONFLICT (dataset_id, lfn) DO NOTHING""",
                [
                    numbers(column) if place in _WHOLE else texts(column)
                    for place, column in enumerate(zip(*rows, strict=True))
                ],
            )

    def close(self, datasets: Iterable[str]) -> None:
        CatalogueDataset.objects.filter(name__in=list(datasets)).update(open=False)


catalogue = LocalCatalogue()


def file_url(path: Path) -> str:
    return "file://localhost" + quote(str(path))


def path_of(url: str) -> Path:
    """The path that a local URL names. Raises ValueError for any other URL."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ValueError(f"{url} is not a file on this machine")
    return Path(unquote(parts.path))


def storage_path(root: Path, scope: str, lfn: str) -> Path:
    """Where a file lies in a storage element: the layout that PanDA's pilots use."""
    digest = hashlib.md5(f"{scope}:{lfn}".encode(), usedforsecurity=False).hexdigest()
    return root.joinpath(*scope.split("."), digest[:2], digest[2:4], lfn)


def adler32(path: Path) -> str:
    """Adler-32 of a file's content, 8 hexadecimal digits."""
    value = 1
    with path.open("rb") as stream:
        while block := stream.read(CHUNK):
            value = zlib.adler32(block, value)
    return f"{value:08x}"


@transaction.atomic
def register_dataset(
    name: str,
    scope: str,
    paths: Iterable[Path],
    *,
    names: Iterable[str] | None = None,
    events: Iterable[int | None] | None = None,
) -> CatalogueDataset:
    """Register files that lie on this machine as a closed dataset, with their real size and checksum.

    `names` gives their logical names (default: the files' own names). Raises OSError for a file that cannot be read,
    ValueError when two files have the same name or the dataset exists.
    """
    listed = list(paths)
    lfns = list(names) if names is not None else [p.name for p in listed]
    counts = list(events) if events is not None else [None] * len(listed)
    if len(set(lfns)) != len(lfns):
        raise ValueError(f"two files of the dataset {name} have the same name")
    dataset, new = CatalogueDataset.objects.get_or_create(name=name, defaults={"scope": scope, "open": False})
    if not new:
        raise ValueError(f"the dataset {name} exists already")
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
    return dataset
