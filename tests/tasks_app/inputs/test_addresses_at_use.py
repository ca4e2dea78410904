"""The catalogue holds addresses that pilots have reported: they are looked at again when they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import Maker
from tasks_app.ddm.local_files import file_url
from tasks_app.ddm.local_storage import catalogue
from tasks_app.models import CatalogueDataset, CatalogueFile

pytestmark = pytest.mark.django_db(transaction=True)
BOB = Maker("bob", 7)
NAME = "user.bob.hits"


@pytest.fixture
def root(settings: Any, tmp_path: Path) -> Path:
    settings.JEDI_STORAGE = tmp_path.resolve() / "storage"
    return Path(settings.JEDI_STORAGE)


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content")
    return path


def dataset(urls: dict[str, str], made_by_task: int | None = 7) -> None:
    row = CatalogueDataset.objects.create(name=NAME, scope="user.bob", owner="bob", made_by_task=made_by_task)
    for lfn, url in urls.items():
        CatalogueFile.objects.create(
            dataset=row, lfn=lfn, scope="user.bob", guid=lfn, size=7, adler32="00000001", endpoint="LOCAL_SE", url=url
        )


def addresses() -> dict[str, str | None]:
    return {file.lfn: file.surl for page in catalogue.list_files(NAME) for file in page}


def test_a_file_that_a_task_has_made_is_an_input_only_where_its_place_is(root: Path) -> None:
    own, others = file_url(storage_path(root, "user.bob", "own")), file_url(storage_path(root, "user.ann", "private"))
    astray = {"private": others, "passwd": "file:///etc/passwd", "up": f"file://{root}/x/../../secret"}
    dataset({"own": own, "far": "root://se.example//data/far", **astray})
    assert addresses() == {"own": own, "far": "root://se.example//data/far", **dict.fromkeys(astray)}


def test_what_was_registered_lies_where_it_lies(root: Path, tmp_path: Path) -> None:
    elsewhere = file_url(put(tmp_path / "data" / "x"))
    dataset({"x": elsewhere}, made_by_task=None)
    assert addresses() == {"x": elsewhere}


@pytest.mark.parametrize("way", ["delete", "remove"])
def test_a_dataset_takes_with_it_no_file_of_another_to_which_an_address_in_it_leads(root: Path, way: str) -> None:
    own, others = put(storage_path(root, "user.bob", "own")), put(storage_path(root, "user.ann", "private"))
    dataset({"own": file_url(own), "private": file_url(others)})
    if way == "delete":
        assert catalogue.delete([NAME], by=BOB) == 1
    else:
        assert catalogue.remove(NAME, ["own", "private"], by=BOB) == 2
    assert not own.exists() and others.exists()
