"""The bytes of what tasks made: for whom, in which parts, and from nowhere but the storage."""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from jedisite.vocabulary.roles import Scope
from tasks_app.ddm import logarchives
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.local_files import file_url
from tasks_app.ddm.log_reading import LOOKS
from tasks_app.models import Dataset, File, JobFile, Task

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 3000
Store = Callable[..., File]


@pytest.fixture
def store(make_task: Callable[..., Task], tmp_path: Path, settings: Any) -> Store:
    """A file in the storage, and in the books of a task of ada, as a pilot leaves it. `path`: where it lies instead."""
    settings.JEDI_STORAGE = tmp_path / "storage"
    task = make_task(user="ada", working_group="phys-higgs")

    def made(content: bytes = CONTENT, lfn: str = "out.root", **changes: Any) -> File:
        path = storage_path(settings.JEDI_STORAGE.resolve(), "user.ada", lfn)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        values = {
            "task_id": task.id,
            "dataset_id": 1,
            "type": "output",
            "status": "finished",
            "scope": "user.ada",
            "size": len(content),
            "checksum": f"ad:{zlib.adler32(content):08x}",
            "surl": file_url(path),
        }
        return File.objects.create(lfn=lfn, **values | changes)

    return made


def place_of(file: File) -> Path:
    return Path(file.surl.removeprefix("file://localhost"))


def address(file: File) -> str:
    return f"/api/v2/files/{file.id}/content"


def refusal(answer: Any, code: int) -> str:
    assert answer.status_code == code, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return str(answer.json()["detail"])


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"tarball/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_a_file_comes_as_it_is_and_is_never_shown_by_a_browser(api: Any, store: Store) -> None:
    file = store(b"<script>alert(1)</script>", 'we "ird\r\nX: y é.html')
    answer = api(name="ada").get(address(file), headers={"accept": "text/html"})
    assert answer.status_code == 200 and b"".join(answer.streaming_content) == b"<script>alert(1)</script>"
    assert answer["Content-Type"] == "application/octet-stream" and answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Length"] == "25" and "sandbox" in answer["Content-Security-Policy"]
    assert answer["Content-Disposition"].startswith(
        "attachment; filename*=utf-8''we%20%22ird%0D%0AX%3A%20y%20%C3%A9.html"
    )


def test_parts_are_sent_and_what_is_known_is_not_sent_again(api: Any, store: Store) -> None:
    client, file = api(name="ada"), store()

    def get(**headers: str) -> Any:
        return client.get(address(file), headers=headers)

    whole = get()
    tag = whole["ETag"]
    assert b"".join(whole.streaming_content) == CONTENT and whole["Accept-Ranges"] == "bytes"
    part = get(range="bytes=1000-1999")
    assert (part.status_code, part["Content-Range"]) == (206, f"bytes 1000-1999/{len(CONTENT)}")
    assert b"".join(part.streaming_content) == CONTENT[1000:2000] and part["Content-Length"] == "1000"
    rest = get(range="bytes=700000-", **{"if-range": tag})
    assert rest.status_code == 206 and b"".join(rest.streaming_content) == CONTENT[700_000:]
    assert b"".join(get(range="bytes=700000-", **{"if-range": '"older"'}).streaming_content) == CONTENT
    assert get(**{"if-none-match": tag}).status_code == 304
    beyond = get(range="bytes=768000-")
    assert refusal(beyond, 416) == "The file has 768\u202f000 bytes." and beyond["Content-Range"] == "bytes */768000"
    head = client.head(address(file))
    assert (head.status_code, head["Content-Length"], head.content) == (200, "768000", b"")
    place_of(file).write_bytes(CONTENT[::-1])
    assert b"".join(get(**{"if-none-match": tag}).streaming_content) == CONTENT[::-1]


def test_rows_of_files_have_the_address_of_their_content(api: Any, store: Store, make_job: Callable[..., Any]) -> None:
    file, failed = store(), store(lfn="none.root", surl=None, status="failed")
    read = store(lfn="in.root", type="input")
    job = make_job(task_id=file.task_id)
    for one in (read, file, failed):
        JobFile.objects.create(
            job_id=job.id, task_id=file.task_id, dataset_id=1, file_id=one.id, type=one.type, lfn=one.lfn, surl=one.surl
        )
    site = api(name="ada")
    Dataset.objects.create(id=1, task_id=file.task_id, name="user.ada.out", type="output")
    for path in (f"tasks/{file.task_id}", "datasets/1", f"jobs/{job.id}"):
        rows = site.get(f"/api/v2/{path}/files/").json()["results"]
        found = {row["lfn"]: row["content"] for row in rows}
        assert found == {"out.root": f"http://testserver{address(file)}", "none.root": None, "in.root": None}, path
    assert b"".join(site.get(found["out.root"]).streaming_content) == CONTENT
    assert {row["lfn"]: row["content"] for row in site.get(f"/api/v2/jobs/{job.id}/").json()["files"]} == found


def test_files_are_for_the_owner_managers_of_the_group_and_those_who_run_the_grid(
    api: Any, make_user: Any, make_token: Any, store: Store
) -> None:
    file = store()
    make_user("ian").groups.add(Group.objects.create(name="manager:phys-higgs"))
    make_user("eva").groups.add(*Group.objects.bulk_create([Group(name="manager:phys-top"), Group(name="member:")]))
    make_user("mia").groups.add(Group.objects.create(name="member:phys-higgs"))
    may = {
        "owner": api(name="ada"),
        "manager": api(name="ian"),
        "member": api(name="mia"),
        "shifter": api("shifter"),
        "production": api("production"),
        "administrator": api("administrator"),
        "reader": Client(headers={"authorization": f"Bearer {make_token(name='ada', scope=Scope.READ)}"}),
    }
    for who, client in may.items():
        assert b"".join(client.get(address(file)).streaming_content) == CONTENT, who
    for client in (api(name="eve"), api(name="eva")):
        assert "belongs to ada" in refusal(client.get(address(file)), 403)
    assert Client().get(address(file)).status_code == 401 and api("pilot").get(address(file)).status_code == 403
    assert api(name="ada").get("/api/v2/files/999/content").status_code == 404


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        ({"type": "input"}, 409, "an input"),
        ({"surl": None, "status": "failed"}, 404, "is failed: no job has stored it"),
        ({"size": 5}, 409, "768\u202f000 bytes in the storage and 5 in the books"),
        ({"scope": "user.eve"}, 409, "not in a storage that this site serves"),
        ({"scope": "user.eve", "surl": "root://se.example//x/out.root"}, 409, "is at root://se.example//x/out.root"),
        ({"lfn": "../out.root"}, 409, "not a valid file name"),
        ({"lfn": ".."}, 409, "not a valid file name"),
    ],
)
def test_what_is_not_sent_is_told(api: Any, store: Store, changes: Any, code: int, sentence: str) -> None:
    file = store()
    File.objects.filter(pk=file.pk).update(**changes)
    assert sentence in refusal(api(name="ada").get(address(file)), code)


@pytest.mark.parametrize("type", ["output", "log", "lib"])
def test_only_of_outputs_that_are_gone_it_is_said_that_they_can_be_made_again(
    api: Any, store: Store, type: str
) -> None:
    file = store(type=type)
    place_of(file).unlink()
    said = refusal(api(name="ada").get(address(file)), 404)
    assert ("makes it again" in said) == (type == "output") and said.startswith(
        "out.root is no longer in this site's storage"
    )


@pytest.mark.parametrize("begin", ["file://", "file://localhost/"])
def test_a_file_that_is_gone_is_missed_however_its_address_was_written(api: Any, store: Store, begin: str) -> None:
    file = store()
    place_of(file).unlink()
    File.objects.filter(pk=file.pk).update(surl=f"{begin}{place_of(file)}")
    assert "no longer in this site's storage" in refusal(api(name="ada").get(address(file)), 404)


def test_no_link_leads_out_of_the_storage_or_to_the_file_of_another(api: Any, store: Store, tmp_path: Path) -> None:
    client, file, other = api(name="ada"), store(b"12345"), store(b"54321", "other.root")
    (tmp_path / "secret_key").write_bytes(b"99999")
    place = place_of(file)

    def check() -> None:
        assert client.get(address(file)).status_code == 404

    for target in (tmp_path / "secret_key", place_of(other)):
        place.unlink()
        place.symlink_to(target)
        check()
    place.unlink()
    os.mkfifo(place)
    check()
    place.unlink()
    place.mkdir()
    check()
    place.rmdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / file.lfn).write_bytes(b"99999")
    place.parent.rmdir()
    place.parent.symlink_to(tmp_path / "folder")
    check()


def test_a_log_is_sent_unless_it_holds_secrets(api: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    client = api(name="ada")
    good = archive(**{"payload.stdout": b"hello"})
    answer = client.get(address(store(good, "good.log.tgz", type="log")))
    assert answer.status_code == 200 and b"".join(answer.streaming_content) == good
    bad = store(archive(**{"payload.stdout": b"x", "panda_secrets.json": b"{}"}), "bad.log.tgz", type="log")
    assert "contains secrets" in refusal(client.get(address(bad)), 409)
    cut = store(good[:-20], "cut.log.tgz", type="log")
    assert "cannot be searched" in refusal(client.get(address(cut)), 409)
    monkeypatch.setattr(logarchives, "UNPACKED_LIMIT", 1000)
    large = store(archive(x=b"0" * 100_000), "large.log.tgz", type="trn_log")
    assert "cannot be searched" in refusal(client.get(address(large)), 409)


@pytest.mark.parametrize("limit", ["BUSY_S", "LONGEST_S"])
def test_a_log_that_takes_long_to_search_may_be_asked_for_again(
    api: Any, store: Store, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    client, log = api(name="ada"), store(archive(x=b"hello"), "x.log.tgz", type="log")
    with monkeypatch.context() as patch:
        patch.setattr(logarchives, limit, -1)
        answer = client.get(address(log))
        assert "Try again, or see the job's log page" in refusal(answer, 503) and answer["Retry-After"] == "30"
    assert b"".join(client.get(address(log)).streaming_content)


def test_few_logs_are_searched_at_once(api: Any, store: Store) -> None:
    client, log, plain = api(name="ada"), store(archive(x=b"hello"), "x.log.tgz", type="log"), store()
    with LOOKS.place("bob"), LOOKS.place("carol"):
        answer = client.get(address(log))
        assert "Too many log archives are being read" in refusal(answer, 503) and answer["Retry-After"] == "2"
        assert b"".join(client.get(address(plain)).streaming_content) == CONTENT
        assert client.head(address(log)).status_code == 200
    with LOOKS.place("ada"):
        assert "being read for you" in refusal(client.get(address(log)), 503)
    assert b"".join(client.get(address(log)).streaming_content)


def test_a_log_is_not_unpacked_for_who_asks_for_none_of_its_bytes(api: Any, store: Store) -> None:
    client = api(name="ada")
    broken = store(b"this is no archive", "broken.log.tgz", type="log")
    head = client.head(address(broken))
    assert (head.status_code, head["Content-Length"]) == (200, "18")
    assert client.get(address(broken), headers={"if-none-match": head["ETag"]}).status_code == 304
    assert client.get(address(broken), headers={"range": "bytes=18-"}).status_code == 416
    assert "cannot be searched" in refusal(client.get(address(broken), headers={"range": "bytes=0-1"}), 409)
