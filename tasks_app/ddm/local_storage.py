"""The local twin of data management: datasets of files on this machine's disks, kept in a few tables.

Its tables live in the same database, so its calls may be part of a transaction. Files on disk are removed only after
the commit, and only below the site's own storage: what users registered where it lay is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum

from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import are_numbered_alike, differ_little, nearest
from tasks_app.ddm.addresses import Roots, is_its_place
from tasks_app.ddm.base import (
    Content,
    DatasetInfo,
    FileInfo,
    ForeignDatasetError,
    Maker,
    Named,
    NewFile,
    Places,
    UnknownDatasetError,
)
from tasks_app.ddm.dataset_places import places_of_datasets
from tasks_app.ddm.local_files import remove_from_disk
from tasks_app.ddm.replica_removal import forget_replicas
from tasks_app.domain.scopes import CONTAINER_MARK, scope_of
from tasks_app.models import CatalogueDataset, CatalogueFile
from tasks_app.params.items import LONGEST_DATASET

log = structlog.get_logger(__name__)
ENDPOINT = "LOCAL_SE"
_LOGS = re.compile(r"\.log(\.[0-9]+)?/?$")
MOST_OWN = 200
MOST_COUNTED = 20_000
"""So many files are looked at for their events while somebody waits."""
MOST_BESIDE = 25
"""Names on each side of an unknown one with which it is compared."""
MOST_TOLD = 10
"""So many unknown names are compared with others; that takes some milliseconds each."""


_WHOLE = {NewFile._fields.index("size"), NewFile._fields.index("events")}

# A file that was made again: its name has a serial number, an extension, and the number of the attempt. Names are taken
# apart without patterns first: of most datasets no two names differ in such a number only.
_OLDER_ATTEMPTS = r"""
WITH numbered AS MATERIALIZED (
    SELECT f.dataset_id, f.lfn, left(f.lfn, length(s.stem) - 1) AS base, substr(f.lfn, length(s.stem) + 1)::int AS attempt
      FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id,
           LATERAL (SELECT rtrim(f.lfn, '0123456789') AS stem OFFSET 0) s
     WHERE d.name = %(name)s AND right(f.lfn, 1) BETWEEN '0' AND '9' AND right(s.stem, 1) = '.'
       AND length(f.lfn) - length(s.stem) <= 3),
several AS MATERIALIZED (SELECT base, max(attempt) AS last FROM numbered GROUP BY base HAVING count(*) > 1)
SELECT n.lfn FROM several b JOIN numbered n USING (base) WHERE n.attempt < b.last AND base ~ '[0-9]{5,}\.[A-Za-z]'
UNION
SELECT f.lfn FROM numbered n JOIN catalogue_files f ON f.dataset_id = n.dataset_id AND f.lfn = n.base
 WHERE f.lfn ~ '[0-9]{5,}\.[A-Za-z]'
"""

_BESIDE = """
SELECT w.name, n.name FROM unnest(%(names)s::text[]) w (name) CROSS JOIN LATERAL (
    (SELECT d.name FROM catalogue_datasets d WHERE d.name > w.name ORDER BY d.name LIMIT %(most)s)
    UNION ALL
    (SELECT d.name FROM catalogue_datasets d WHERE d.name < w.name ORDER BY d.name DESC LIMIT %(most)s)) n
"""

# By name first, of which there is an index. Adler-32 is written with and without leading zeros, in both cases.
_OTHERS = """
SELECT DISTINCT ON (n.scope, n.lfn) n.scope, n.lfn, d.name, f.size, f.adler32
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[]) n (dataset, scope, lfn, size, adler32)
  JOIN catalogue_files f ON f.lfn = n.lfn AND f.scope = n.scope
                        AND (f.size <> n.size OR lpad(lower(f.adler32), 8, '0') <> lpad(lower(n.adler32), 8, '0'))
  JOIN catalogue_datasets d ON d.id = f.dataset_id AND d.name <> n.dataset
 ORDER BY n.scope, n.lfn, f.id
"""


_LACKING = """
SELECT w.name FROM unnest(%(names)s::text[]) WITH ORDINALITY w (name, place)
 WHERE NOT EXISTS (SELECT 1 FROM catalogue_files f WHERE f.dataset_id = ANY(%(ids)s::bigint[]) AND f.lfn = w.name)
 ORDER BY w.place
"""
# So many names on each side of all datasets together: their number is the user's.
_BESIDE_FILES = """
SELECT w.name, n.lfn FROM unnest(%(names)s::text[]) w (name) CROSS JOIN LATERAL (
    (SELECT DISTINCT f.lfn FROM unnest(%(ids)s::bigint[]) d (id) CROSS JOIN LATERAL (
         SELECT lfn FROM catalogue_files WHERE dataset_id = d.id AND lfn > w.name ORDER BY lfn LIMIT %(most)s) f
      ORDER BY f.lfn LIMIT %(most)s)
    UNION ALL
    (SELECT DISTINCT f.lfn FROM unnest(%(ids)s::bigint[]) d (id) CROSS JOIN LATERAL (
         SELECT lfn FROM catalogue_files WHERE dataset_id = d.id AND lfn < w.name ORDER BY lfn DESC LIMIT %(most)s) f
      ORDER BY f.lfn DESC LIMIT %(most)s)) n
"""
# What may be an older attempt of a file that was made again is looked at when the task is fed.
_SHORT = r"""
SELECT lfn, events FROM (SELECT lfn, events FROM catalogue_files WHERE dataset_id = ANY(%(ids)s::bigint[]) LIMIT %(most)s) f
 WHERE CASE WHEN %(wanted)s::bigint IS NULL THEN coalesce(events, 0) = 0 ELSE events > 0 AND events < %(wanted)s::bigint END
   AND lfn !~ '[.][0-9]{1,3}$'
 ORDER BY lfn LIMIT 1
"""


class LocalCatalogue:
    """See `base.DataManagement`."""

    def describe(self, dataset: str) -> DatasetInfo:
        found = _find(dataset)
        members = CatalogueDataset.objects.filter(containers=found) if found.is_container else [found]
        is_open = found.open or any(member.open for member in members)
        files = CatalogueFile.objects.filter(dataset__in=members).count()
        return DatasetInfo(found.name, is_open, files, found.made_by_task, found.owner)

    def list_files(self, dataset: str, page: int = 50_000, *, all_attempts: bool = False) -> Iterator[list[FileInfo]]:
        for name in self.constituents(dataset):
            older = frozenset() if all_attempts else _older_attempts(name)
            for files in _pages(name, page):
                yield [f for f in files if f.lfn not in older] if older else files

    def replicas(self, datasets: Iterable[str]) -> dict[str, Places]:
        return places_of_datasets(list(datasets))

    def constituents(self, name: str) -> list[str]:
        found = _find(name)
        return list(found.members.order_by("name").values_list("name", flat=True)) if found.is_container else [name]

    def unknown(self, names: Iterable[str], *, user: str) -> dict[str, str]:
        wanted = list(dict.fromkeys(names))
        both = [one for name in wanted for one in (name, container_name(name))]
        there = set(CatalogueDataset.objects.filter(name__in=both).values_list("name", flat=True))
        missing = [name for name in wanted if name not in there and container_name(name) not in there]
        if not missing:
            return {}
        own = list(
            CatalogueDataset.objects.filter(owner=user).order_by("-id").values_list("name", flat=True)[:MOST_OWN]
        )
        near = {name: list(own) for name in missing[:MOST_TOLD]}
        with hot_cursor() as cursor:
            cursor.execute(_BESIDE, {"names": texts(missing[:MOST_TOLD]), "most": MOST_BESIDE})
            for name, other in cursor:
                near[name].append(other)
        return {name: _meant(name, near.get(name, ())) for name in missing}

    def hollow(self, names: Iterable[str]) -> set[str]:
        wanted = list(dict.fromkeys(names))
        both = [one for name in wanted for one in (name, container_name(name))]
        files, members = CatalogueFile.objects, CatalogueDataset.objects.filter(containers=OuterRef("pk"))
        is_full = Exists(files.filter(dataset=OuterRef("pk"))) | Exists(
            files.filter(dataset__containers=OuterRef("pk"))
        )
        rows = CatalogueDataset.objects.filter(name__in=both).annotate(
            full=is_full, grows=Exists(members.filter(open=True))
        )
        # A container is open as long as datasets may be put into it: that is for ever.
        is_hollow = {
            name: not full and not grows and (name.endswith(CONTAINER_MARK) or not is_open)
            for name, is_open, full, grows in rows.values_list("name", "open", "full", "grows")
        }
        return {name for name in wanted if is_hollow.get(name, is_hollow.get(container_name(name), False))}

    def lacking(
        self, datasets: Iterable[str], lfns: Iterable[str], *, complete: bool = False, hints: bool = True
    ) -> dict[str, str]:
        wanted = list(dict.fromkeys(lfns))
        rows, is_complete = _with_members(datasets)
        if complete and not is_complete:
            return {}
        values: dict[str, Any] = {"ids": numbers(row.id for row in rows), "names": texts(wanted)}
        with hot_cursor() as cursor:
            cursor.execute(_LACKING, values)
            absent = {lfn: "" for (lfn,) in cursor}
            asked = list(absent)[: MOST_TOLD if hints else 0]
            near: dict[str, list[str]] = {lfn: [] for lfn in asked}
            if asked:
                cursor.execute(_BESIDE_FILES, {**values, "names": texts(asked), "most": MOST_BESIDE})
                for lfn, other in cursor:
                    if not are_numbered_alike(lfn, other):
                        near[lfn].append(other)
        return absent | {lfn: nearest(lfn, others) for lfn, others in near.items()}

    def names_in(self, datasets: Iterable[str], most: int) -> list[list[str]] | None:
        rows, is_complete = _with_members(datasets)
        if not is_complete:
            return None
        files = CatalogueFile.objects.filter(dataset__in=rows).values_list("dataset_id", "lfn")
        found: dict[int, list[str]] = {}
        for dataset_id, lfn in files[: most + 1]:
            found.setdefault(dataset_id, []).append(lfn)
        return list(found.values()) if sum(map(len, found.values())) <= most else None

    def short_of_events(self, datasets: Iterable[str], wanted: int | None) -> tuple[str, int | None] | None:
        ids = numbers(row.id for row in _with_members(datasets)[0])
        with hot_cursor() as cursor:
            cursor.execute(_SHORT, {"ids": ids, "wanted": wanted, "most": MOST_COUNTED})
            return cursor.fetchone()

    def matching(self, pattern: str, most: int) -> list[str]:
        start = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        if not start or len(pattern) > LONGEST_DATASET:
            return []
        names = CatalogueDataset.objects.filter(name__startswith=start).order_by("name").values_list("name", flat=True)
        return [name for name in names[:MOST_OWN] if fnmatchcase(name, pattern)][:most]

    def database_releases(self) -> list[str]:
        found = CatalogueDataset.objects.filter(name__startswith="ddo.", name__contains=".DBRelease.")
        return list(
            found.filter(Exists(CatalogueFile.objects.filter(dataset=OuterRef("pk")))).values_list("name", flat=True)
        )

    def others_of_these_names(self, files: Iterable[Named]) -> dict[tuple[str, str], Content]:
        rows = list(files)
        if not rows:
            return {}
        datasets, scopes, names, sizes, sums = zip(*rows, strict=True)
        with hot_cursor() as cursor:
            cursor.execute(_OTHERS, [texts(datasets), texts(scopes), texts(names), numbers(sizes), texts(sums)])
            return {(scope, lfn): Content(*held) for scope, lfn, *held in cursor}

    @transaction.atomic
    def create(self, datasets: Iterable[str], *, scope: str, by: Maker) -> None:
        names = list(datasets)
        CatalogueDataset.objects.bulk_create(
            [CatalogueDataset(name=n, scope=scope, owner=by.owner, made_by_task=by.task_id, open=True) for n in names],
            ignore_conflicts=True,
        )
        for row in CatalogueDataset.objects.filter(name__in=names).order_by("name").select_for_update():
            if not by.may_write(row.owner):
                raise ForeignDatasetError(row.name, row.owner, row.made_by_task)
        _written_by(names, by).update(open=True)
        _made_by(names, by).update(expires=None)
        CatalogueDataset.objects.filter(members__name__in=names, open=False).update(open=True)

    def add(self, files: Iterable[NewFile]) -> None:
        rows = list(files)
        if not rows:
            return
        with hot_cursor() as cursor:
            cursor.execute(
                """INSERT INTO catalogue_files (dataset_id, lfn, scope, guid, size, adler32, events, endpoint, url)
                   SELECT d.id, n.lfn, n.scope, n.guid, n.size, n.adler32, n.events, n.endpoint, n.url
                     FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[],
                                 %s::text[], %s::text[], %s::text[])
                          AS n (dataset, lfn, scope, guid, size, adler32, events, endpoint, url, owner)
                     JOIN catalogue_datasets d ON d.name = n.dataset AND d.owner = n.owner
                   ON CONFLICT (dataset_id, lfn) DO NOTHING""",
                [
                    numbers(column) if place in _WHOLE else texts(column)
                    for place, column in enumerate(zip(*rows, strict=True))
                ],
            )

    def close(self, datasets: Iterable[str], *, by: Maker) -> None:
        found = _written_by(datasets, by)
        names = list(found.values_list("name", flat=True))
        found.update(open=False)
        still_open = CatalogueDataset.objects.filter(containers=OuterRef("pk"), open=True)
        CatalogueDataset.objects.filter(~Exists(still_open), members__name__in=names, open=True).update(open=False)

    def add_to_container(self, container: str, datasets: Iterable[str], *, by: Maker) -> None:
        name = container_name(container)
        row, _ = CatalogueDataset.objects.get_or_create(
            name=name,
            defaults={"scope": scope_of(name, by.owner), "owner": by.owner, "made_by_task": by.task_id, "open": True},
        )
        if not by.may_write(row.owner):
            raise ForeignDatasetError(row.name, row.owner, row.made_by_task)
        members = list(CatalogueDataset.objects.filter(name__in=list(datasets)))
        if any(member.is_container for member in members):
            raise ValueError(f"the container {name} accepts datasets, not containers")
        row.members.add(*members)
        if not row.open and any(member.open for member in members):
            CatalogueDataset.objects.filter(pk=row.pk).update(open=True)

    @transaction.atomic
    def remove(self, dataset: str, lfns: Iterable[str], *, by: Maker) -> int:
        found = CatalogueFile.objects.filter(dataset__in=_written_by([dataset], by), lfn__in=list(lfns))
        files = list(found.values_list("url", "scope", "lfn"))
        found.delete()
        forget_replicas(files)
        remove_from_disk(files)
        return len(files)

    @transaction.atomic
    def delete(self, datasets: Iterable[str], *, by: Maker) -> int:
        ids = list(_made_by(datasets, by).values_list("id", flat=True))
        files = CatalogueFile.objects.filter(dataset__in=ids)
        gone = list(files.values_list("url", "scope", "lfn"))
        remove_from_disk(gone)
        files.delete()
        forget_replicas(gone)
        CatalogueDataset.objects.filter(pk__in=ids).delete()
        return len(ids)

    def keep_until(self, datasets: Iterable[str], end: datetime | None, *, by: Maker) -> None:
        names = list(datasets)
        _made_by(names, by).update(expires=end)
        if end is not None:
            _written_by(names, by).filter(expires__lt=end).update(expires=end)

    def disk_usage(self, scopes: Iterable[str]) -> dict[str, int]:
        found = CatalogueFile.objects.filter(scope__in=list(scopes)).values_list("scope").annotate(Sum("size"))
        return dict(found.order_by("scope"))


catalogue = LocalCatalogue()


def _written_by(names: Iterable[str], by: Maker) -> QuerySet[CatalogueDataset]:
    """Those of these datasets into which this one may write: those of the owner."""
    found = CatalogueDataset.objects.filter(name__in=list(names))
    return found if by.is_site else found.filter(owner=by.owner)


def _made_by(names: Iterable[str], by: Maker) -> QuerySet[CatalogueDataset]:
    """Those of these datasets that this one may end: those that the task has made."""
    found = _written_by(names, by)
    return found if by.is_site else found.filter(made_by_task=by.task_id)


def _meant(name: str, candidates: Iterable[str]) -> str:
    """The name that was probably meant: a dataset of logs only when no other is near, or logs are asked for."""
    return nearest_data(name, [one for one in candidates if differ_little(name, one)])


def nearest_data(name: str, known: Collection[str]) -> str:
    """The nearest of these names, of logs only when no other is near, or logs are asked for; "" when none is near."""
    data = [one for one in known if not _LOGS.search(one)]
    return nearest(name, known if _LOGS.search(name) else data) or nearest(name, known)


def container_name(name: str) -> str:
    return name if name.endswith(CONTAINER_MARK) else name + CONTAINER_MARK


def _with_members(names: Iterable[str]) -> tuple[list[CatalogueDataset], bool]:
    """Datasets and containers with what is in these, and whether all are known and get no more files."""
    wanted = list(names)
    both = [one for name in wanted for one in (name, container_name(name))]
    found = CatalogueDataset.objects.filter(name__in=both)
    rows = [*found, *CatalogueDataset.objects.filter(containers__in=found)]
    there = {row.name for row in rows}
    is_known = all({name, container_name(name)} & there for name in wanted)
    return rows, is_known and not any(row.open for row in rows)


def _find(name: str) -> CatalogueDataset:
    """The dataset or container of this name; the slash of a container may be left out. Raises UnknownDatasetError."""
    rows = CatalogueDataset.objects.in_bulk([name, container_name(name)], field_name="name")
    found = rows.get(name) or rows.get(container_name(name))
    if found is None:
        raise UnknownDatasetError(f"the dataset {name} does not exist in the local catalogue")
    return found


def _pages(dataset: str, page: int) -> Iterator[list[FileInfo]]:
    """The files by name. One that a task has made has no address when that is not its place on this machine."""
    after, roots = "", Roots()
    while True:
        with hot_cursor() as cursor:
            cursor.execute(
                """SELECT f.lfn, f.scope, f.guid, f.size, 'ad:' || f.adler32, f.events, f.lumi_block, f.url,
                          d.made_by_task IS NOT NULL
                     FROM catalogue_files f JOIN catalogue_datasets d ON d.id = f.dataset_id
                    WHERE d.name = %s AND f.lfn > %s ORDER BY f.lfn LIMIT %s""",
                [dataset, after, page],
            )
            rows = cursor.fetchall()
        if rows:
            yield [_looked_at(FileInfo._make(row), made, roots) for *row, made in rows]
            after = rows[-1][0]
        if len(rows) < page:
            return


def _looked_at(file: FileInfo, made: bool, roots: Roots) -> FileInfo:
    if not made or not file.surl or is_its_place(file.surl, file.scope, file.lfn, roots):
        return file
    log.warning("catalogue.file_astray", lfn=file.lfn, url=file.surl)
    return file._replace(surl=None)


def _older_attempts(dataset: str) -> frozenset[str]:
    """Names of files of which a later attempt is there too."""
    with hot_cursor() as cursor:
        cursor.execute(_OLDER_ATTEMPTS, {"name": dataset})
        return frozenset(lfn for (lfn,) in cursor.fetchall())
