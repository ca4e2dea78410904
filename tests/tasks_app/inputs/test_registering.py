"""A scope and a name are one file: at every door by which files come into the local catalogue."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.core.management import call_command
from django.core.management.base import CommandError

from brokerage_app.grid.local_twin import ensure_local_site
from tasks_app.ddm.addresses import Roots, storage_path
from tasks_app.ddm.base import Content, Named
from tasks_app.ddm.local_files import file_url
from tasks_app.ddm.local_storage import catalogue
from tasks_app.inputs.registering import register_dataset
from tasks_app.models import CatalogueDataset, CatalogueFile
from tasks_app.outcomes.final_reports import MISSING_OUTPUT, judge
from tasks_app.outcomes.job_outputs import Output

pytestmark = pytest.mark.django_db
SCOPE = "user.ada"


@pytest.fixture
def lab(tmp_path: Path, settings: Any, django_capture_on_commit_callbacks: Any) -> Any:
    settings.JEDI_STORAGE = tmp_path / "storage"

    def register(name: str, folder: str, /, *options: str, **files: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        for file, content in files.items():
            (tmp_path / folder / f"{file}.csv").write_text(content)
        out, err = StringIO(), StringIO()
        with django_capture_on_commit_callbacks(execute=True):
            call_command("register_dataset", name, str(tmp_path / folder), *options, stdout=out, stderr=err)
        return out.getvalue() + err.getvalue()

    return register


def place(lfn: str) -> Path:
    return storage_path(Path(site.JEDI_STORAGE), SCOPE, lfn)


def test_a_name_that_its_scope_has_for_another_content_is_refused_and_nothing_is_registered(lab: Any) -> None:
    lab("user.ada.meas", "data", meas_01="1\n2\n", meas_02="3\n")
    with pytest.raises(CommandError) as refused:
        lab("user.ada.third", "data3", meas_01="20\n", other="7\n")
    said = str(refused.value)
    assert "the scope user.ada has a file meas_01.csv already, with another content" in said
    assert "the dataset user.ada.meas has 4 bytes" in said and "yours 3 bytes" in said
    assert "Give the file another name, or choose a dataset of another scope. Nothing was registered" in said
    assert [d.name for d in CatalogueDataset.objects.all()] == ["user.ada.meas"]
    assert place("meas_01.csv").read_text() == "1\n2\n" and not place("other.csv").exists()
    assert "lab.third: 2 files\n" in lab("lab.third", "data3"), "another scope"
    assert place("meas_01.csv").read_text() == "1\n2\n"


def test_a_folder_that_grows_is_registered_again_and_what_is_new_in_it_is_added(lab: Any) -> None:
    assert "user.ada.grow: 1 file\n" in lab("user.ada.grow", "data", "--open", one="1")
    was = CatalogueFile.objects.get()
    assert "user.ada.grow: 3 files, 2 are new\n" in lab("user.ada.grow", "data", "--open", two="2", three="3")
    assert "user.ada.grow: 3 files, 0 are new\n" in lab("user.ada.grow", "data", "--open")
    assert CatalogueFile.objects.get(lfn="one.csv").guid == was.guid and place("three.csv").read_text() == "3"
    with pytest.raises(CommandError, match=r"has a file one\.csv already, with other content: .* under another name"):
        lab("user.ada.grow", "data", "--open", one="9", four="4")
    assert CatalogueFile.objects.count() == 3 and CatalogueDataset.objects.get().open
    assert "user.ada.grow: 4 files, 1 is new\n" in lab("user.ada.grow", "data", one="1", four="4")
    assert not CatalogueDataset.objects.get().open


def test_the_same_size_is_not_the_same_content(lab: Any) -> None:
    lab("user.ada.a", "a", n="12")
    with pytest.raises(CommandError, match=r"has 2 bytes \(adler32 .*yours 2 bytes \(adler32 "):
        lab("user.ada.b", "b", n="21")


def test_the_same_content_in_two_datasets_is_one_file_without_a_warning(lab: Any, caplog: Any) -> None:
    lab("user.ada.a", "a", n="1")
    said = lab("user.ada.b", "b", n="1")
    assert "user.ada.b: 1 file\n" in said and "taken" not in said and not caplog.records
    assert place("n.csv").read_text() == "1" and CatalogueFile.objects.count() == 2


def test_an_output_that_lies_at_the_place_is_not_replaced(lab: Any) -> None:
    place("n.csv").parent.mkdir(parents=True)
    place("n.csv").write_text("output")
    with pytest.raises(CommandError, match=r"the storage has another file n\.csv of the scope user\.ada already"):
        lab("user.ada.a", "a", n="1")
    assert not CatalogueDataset.objects.exists() and place("n.csv").read_text() == "output"
    place("n.csv").write_text("1")
    lab("user.ada.a", "a")
    assert not place("n.csv").is_symlink()


def test_a_link_to_what_is_no_longer_registered_is_replaced(lab: Any, tmp_path: Path) -> None:
    lab("user.ada.a", "a", n="1")
    CatalogueDataset.objects.all().delete()
    lab("user.ada.b", "b", n="2")
    assert place("n.csv").read_text() == "2" and place("n.csv").resolve() == tmp_path / "b" / "n.csv"
    assert [one.name for one in place("n.csv").parent.iterdir()] == ["n.csv"]


def test_the_catalogue_says_which_names_stand_for_another_content_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("a")
    register_dataset("lab.a", "lab", [tmp_path / "n"])
    same, other = Named("lab.b", "lab", "n", 1, "620062"), Named("lab.b", "lab", "n", 1, "00620063")
    assert catalogue.others_of_these_names([same, other._replace(scope="my"), other._replace(dataset="lab.a")]) == {}
    assert catalogue.others_of_these_names([same, other]) == {("lab", "n"): Content("lab.a", 1, "00620062")}


def test_an_output_whose_name_stands_for_another_file_fails_its_job(settings: Any, tmp_path: Path) -> None:
    settings.JEDI_STORAGE = tmp_path
    made = Output(1, 2, "output", "n.csv", SCOPE, "user.ada.out", "LOCAL_SE")
    report = {"n.csv": {"fsize": 3, "adler32": "1", "surl": file_url(place("n.csv"))}}
    assert judge(1, 2, "finished", report, [made], None, Roots()).status == "finished"
    taken = {(SCOPE, "n.csv"): Content("user.ada.meas", 4, "1")}
    outcome = judge(1, 2, "finished", report, [made], None, Roots(), taken)
    assert (outcome.status, outcome.code, outcome.stored) == ("failed", MISSING_OUTPUT, ())
    assert outcome.diag == (
        "the output n.csv could not be stored: the scope user.ada has another file of that name, in the dataset user.ada.meas "
        "(4 bytes), and a scope and a name are one file"
    )


def test_while_the_folder_of_the_storage_is_away_nothing_is_registered(lab: Any) -> None:
    ensure_local_site(site.JEDI_STORAGE, slots=1)
    site.JEDI_STORAGE.rmdir()
    with pytest.raises(CommandError, match=r"the folder of LOCAL_SE \(.*\) is not there. Nothing was registered"):
        lab("user.ada.meas", "data", a="1")
    assert not site.JEDI_STORAGE.exists() and not CatalogueDataset.objects.exists()
    site.JEDI_STORAGE.mkdir()
    assert "user.ada.meas: 1 file" in lab("user.ada.meas", "data")


def test_links_of_others_to_what_is_not_theirs_are_not_registered(lab: Any, tmp_path: Path) -> None:
    lab("user.ada.a", "data", n="1")
    (tmp_path / "secret").write_text("secret")
    link = tmp_path / "data" / "m.csv"
    link.symlink_to(tmp_path / "secret")
    if os.geteuid() == 0:
        os.lchown(link, 54_321, 54_321)
        with pytest.raises(
            CommandError, match=r"m\.csv is a link of the user 54321 to .*secret, a file of the user root"
        ):
            lab("user.ada.b", "data")
        assert not CatalogueDataset.objects.filter(name="user.ada.b").exists()
        os.lchown(link, 0, 0)
    assert "user.ada.b: 2 files" in lab("user.ada.b", "data"), "the site's own links lead anywhere"


def test_the_sites_own_folder_is_not_registered_but_for_its_storage(lab: Any, tmp_path: Path, settings: Any) -> None:
    settings.JEDI_HOME, settings.JEDI_STORAGE = tmp_path, tmp_path / "storage"
    with pytest.raises(CommandError, match=r"key\.csv is in the site's own folder, .*, which holds its secrets"):
        lab("user.ada.a", "run", key="1")
    assert not CatalogueDataset.objects.exists()
    (tmp_path / "storage").mkdir()
    assert "user.ada.a: 1 file" in lab("user.ada.a", "storage/records", n="1")
