"""The archives with users' code that this site keeps for its jobs. They are kept as they are, never unpacked here.

A name belongs for ever to the user who uploads it first, or whose task names it first, and what was uploaded under it never
changes, unless the name says that its owner may overwrite it: jobs fetch their code by name, also those of a task that runs
again after its sandbox was removed.

A file is complete on disk, under a name that the site makes, before its row is written: what has no row is never served,
and is swept away later. Within the owner's quota an archive stays as long as an open task has named it, and for
JEDI_SANDBOX_DAYS after its last use.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection, transaction
from django.http.request import validate_host

from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Sandbox, TaskParams
from tasks_app.params.buildstep import OVERWRITABLE, archives_of
from tasks_app.params.clientwords import is_from_client
from tasks_app.params.resubmission import apply_changes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
LEFT_OVER = timedelta(days=1)
"""Files without a row are swept when they are older."""


def unlink_after_commit(path: Path) -> None:
    """After the commit: remove a file. One that cannot be removed keeps none of the others, and is swept later."""
    transaction.on_commit(lambda: path.unlink(missing_ok=True), robust=True)


def find(name: str) -> Sandbox | None:
    """The sandbox of that name; None when there is none, or its file is gone."""
    row = Sandbox.objects.filter(name=name).first()
    return row if row is not None and row.is_there else None


def same(owner: str, size: int, crc: int) -> Sandbox | None:
    """The newest sandbox of somebody that holds the same."""
    row = Sandbox.objects.filter(owner=owner, crc=crc, size=size).order_by("-id").first()
    return row if row is not None and row.is_there else None


def used(name: str, task_id: int | None = None) -> None:
    """Date a sandbox anew, at most once an hour, and note the task that names it: an open task keeps it."""
    # Tasks that share a sandbox do not wait for one another to date it.
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH found AS (SELECT id FROM sandboxes WHERE name = %(name)s FOR KEY SHARE),
                    noted AS (INSERT INTO sandbox_tasks (sandbox_id, task_id)
                              SELECT id, %(task)s FROM found WHERE %(task)s::bigint IS NOT NULL ON CONFLICT DO NOTHING),
                    old AS (SELECT id FROM sandboxes WHERE name = %(name)s
                               AND last_used < clock_timestamp() - interval '1 hour' FOR NO KEY UPDATE SKIP LOCKED)
               UPDATE sandboxes s SET last_used = clock_timestamp() FROM old WHERE s.id = old.id""",
            {"name": name, "task": task_id},
        )


def refusal(
    user: str, raw: Mapping[str, Any], task_id: int | None = None, command_line: str | None = None, *, new: str = ""
) -> str:
    """Why a task of that user cannot run with the sandboxes that its parameters name; "" when it can.

    A sandbox of another user must be there when the task is submitted (without `task_id`) or gets it as its `new` one;
    afterwards the task must have named it then. Without `command_line` that of the parameters counts.
    """
    for name in archives_of(raw, _line(raw) if command_line is None else command_line):
        row = Sandbox.names.filter(name=name).first()
        if row is not None and row.owner != user:
            if name.endswith(OVERWRITABLE):
                return f"the sandbox {name} belongs to another user, who may overwrite it"
            at_door = task_id is None or name == new
            if row.stored is None if at_door else not row.tasks.filter(pk=task_id).exists():
                return f"the sandbox {name} belongs to another user, and was not there when the task was submitted"
        if _is_ours(raw) and (row is None or not row.is_there):
            return _not_here(name, row, raw)
        if "$" in name:  # nobody owns the names that come of it
            return f"the sandbox {name} is named by a placeholder: write its whole name"
    return ""


def _not_here(name: str, row: Sandbox | None, raw: Mapping[str, Any]) -> str:
    at = f" at {raw['sourceURL']}" if raw.get("sourceURL") else ""
    if row is not None and row.sha256:
        other = " (prun: --useNewCode)" if is_from_client(raw) else ""
        return (
            f"the sandbox {name} was removed and is not kept{at}: upload the same archive again, or name another{other}"
        )
    return f"the sandbox {name} is not kept{at}: upload it first"


def _line(raw: Mapping[str, Any]) -> str:
    return " ".join(str(item.get("value", "")) for item in raw.get("jobParameters") or ())


def _is_ours(raw: Mapping[str, Any]) -> bool:
    """Whether this site has to keep the sandboxes: it is named, or no other server is, at least none that can be read."""
    source = str(raw.get("sourceURL") or "")
    try:
        url = urlsplit(source)
    except ValueError:
        return True
    # A folder (file://) is that of whoever runs the job: to look there would tell users which files this machine has.
    return not source or bool(
        url.scheme != "file" and url.hostname and validate_host(url.hostname, settings.ALLOWED_HOSTS)
    )


def claim(user: str, raw: Mapping[str, Any], command_line: str | None = None) -> None:
    """Names of sandboxes that nobody has yet become this user's: else another user could upload code for the task."""
    found = archives_of(raw, _line(raw) if command_line is None else command_line)
    taken = set(Sandbox.names.filter(name__in=found).values_list("name", flat=True))
    new = [name for name in sorted(found) if name not in taken and NAME.fullmatch(name)]
    rows = [Sandbox(owner=user, name=name, stored=None, size=0, crc=0) for name in new]
    Sandbox.names.bulk_create(rows, ignore_conflicts=True)


def note_task(task_id: int, raw: Mapping[str, Any]) -> None:
    """A task was submitted, or gets other code: its sandboxes stay until it has ended."""
    for name in archives_of(raw, _line(raw)):
        used(name, task_id)


def refusal_again(task_id: int, user: str, raw: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """Why a task of these parameters cannot run with these changes; "" when it can, and then it has a new sandbox noted."""
    changed, new = apply_changes(raw, changes), os.path.basename(str(changes.get("fixedSandbox") or ""))
    claim(user, changed)
    no = refusal(user, changed, task_id, new=new)
    if new and not no:
        used(new, task_id)
    return no


def gone(task_ids: Iterable[int]) -> dict[int, str]:
    """Why those of the tasks cannot run again that name a sandbox which this site has kept for them and keeps no longer.

    One statement, and one more when there are any.
    """
    named: dict[int, dict[str, Sandbox]] = defaultdict(dict)
    there: dict[int, bool] = {}
    links: Any = Sandbox.tasks.through
    for link in links.objects.filter(task_id__in=list(task_ids)).select_related("sandbox"):
        row = link.sandbox
        if row.pk not in there:
            there[row.pk] = row.is_there
        if not there[row.pk]:
            named[link.task_id][row.name] = row
    found = {}
    for task_id, raw in TaskParams.objects.filter(pk__in=list(named)).values_list("pk", "params"):
        names = [name for name in archives_of(raw, _line(raw)) if name in named[task_id]] if _is_ours(raw) else []
        if names:
            found[task_id] = _not_here(names[0], named[task_id][names[0]], raw)
    return found


def lacking(task_id: int, user: str, raw: Mapping[str, Any], command_line: str) -> str:
    """Why the jobs of a task cannot get its sandbox; empty when they can, or when another server keeps it.

    A sandbox that is used is marked as such, so that cleaning leaves it.
    """
    claim(user, raw, command_line)
    no = refusal(user, raw, task_id, command_line)
    if no:
        return f"user sandbox file unavailable: {no}"
    for name in archives_of(raw, command_line):
        used(name, task_id)
    return ""


@transaction.atomic
def remove(rows: Iterable[int]) -> int:
    """Remove sandboxes by their ids, whoever needs them; their names stay taken. Returns how many there were."""
    found = list(Sandbox.objects.select_for_update(skip_locked=True).filter(pk__in=list(rows)))
    Sandbox.objects.filter(pk__in=[row.pk for row in found]).update(stored=None)
    for row in found:
        unlink_after_commit(row.path)
    return len(found)


def unused(before: datetime, limit: int) -> list[int]:
    """Ids of sandboxes that were last used before then, and that no open task has named; oldest use first."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT s.id FROM sandboxes s
                WHERE s.last_used < %s AND s.stored IS NOT NULL
                  AND NOT EXISTS (SELECT 1 FROM sandbox_tasks u JOIN jedi_tasks t ON t.jeditaskid = u.task_id
                                   WHERE u.sandbox_id = s.id AND t.status <> ALL(%s))
                ORDER BY s.last_used LIMIT %s""",
            [before, sorted(TASK_FINAL), limit],
        )
        return [number for (number,) in cursor.fetchall()]


def sweep(now: datetime) -> int:
    """Delete what killed processes left: parts of uploads, and files whose row was not written or is gone."""
    before = (now - LEFT_OVER).timestamp()
    try:
        with os.scandir(settings.JEDI_SANDBOXES) as entries:
            old = {
                e.name: Path(e.path) for e in entries if e.is_file(follow_symlinks=False) and e.stat().st_mtime < before
            }
    except FileNotFoundError:
        return 0
    known = set(Sandbox.objects.filter(stored__in=list(old)).values_list("stored", flat=True))
    lost = [path for name, path in old.items() if name not in known]
    for path in lost:
        path.unlink(missing_ok=True)
    return len(lost)
