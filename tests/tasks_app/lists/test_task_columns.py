"""What the computed columns of the list of tasks show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tasks_app.models import Dataset, Task


@pytest.mark.django_db
def test_files_of_all_first_inputs_are_counted(api: Callable[..., Client], make_task: Callable[..., Task]) -> None:
    made, none = make_task(), make_task()
    more: dict[str, Any] = {"task_id": made.id, "type": "input", "status": "ready"}
    first = Dataset.objects.create(name="a", files=5, files_finished=2, files_failed=1, files_used=4, **more)
    Dataset.objects.create(name="b", files=3, files_used=3, **more)
    Dataset.objects.create(name="c", files=9, files_failed=9, files_used=9, master_id=first.id, **more)
    columns = ("files", "files_finished", "files_failed", "files_working")
    answer = api().get("/api/v2/tasks/", {"columns": ",".join(("id", *columns))})
    assert answer.status_code == 200, answer.content
    shown = {row["id"]: [row[name] for name in columns] for row in answer.json()["results"]}
    assert shown == {made.id: [8, 2, 1, 4], none.id: [0, 0, 0, 0]}
