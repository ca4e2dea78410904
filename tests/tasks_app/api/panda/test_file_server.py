"""The calls with which PanDA's clients look for sandboxes and send them, and what becomes of what they send."""

from __future__ import annotations

import gzip
import json
import os
import random
import zlib
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from jedisite.server.arrivals import WHOSE_BODY
from jedisite.vocabulary.words import thousands
from tasks_app.agents.watchdogs import old_sandboxes
from tasks_app.api.panda import file_server
from tasks_app.models import Sandbox, Task
from tasks_app.submission import gzip_check, sandbox_uploads

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
NAME = "jobO.aac5cbe3-9c95-428a-b6f4-8bc608919725.tar.gz"
CONTENT = os.urandom(3000)
ARCHIVE = gzip.compress(CONTENT, mtime=0)
CRC = zlib.crc32(CONTENT)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    return tmp_path / "kept"


def send(client: Client, content: bytes = ARCHIVE, name: str = NAME, **more: Any) -> tuple[bool, str]:
    file = SimpleUploadedFile(name, content, "application/octet-stream")
    file.name = name  # Django would cut it to its last part
    answer = client.post("/api/v1/file_server/upload_cache_file", {"file": file, **more})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["data"] is None
    return body["success"], body["message"]


def look(client: Client, size: int = len(ARCHIVE), crc: int = CRC, **more: Any) -> dict[str, Any]:
    body = json.dumps({"file_size": size, "checksum": crc})
    answer = client.post("/api/v1/file_server/validate_cache_file", body, content_type="application/json", **more)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def fetch(name: str) -> Any:
    """The answer with its whole content."""
    answer: Any = Client().get(f"/cache/{name}")
    if answer.status_code == 200:
        answer.body = b"".join(answer.streaming_content)
    return answer


def test_a_sandbox_is_sent_found_again_by_its_owner_and_fetched_by_anybody(api: Api, folder: Path) -> None:
    ada = api()
    nothing = {"success": False, "message": "NOTFOUND", "data": None}
    assert look(ada) == nothing
    assert send(ada) == (True, "")
    there = {"success": True, "message": f"FOUND:127.0.0.1:{NAME}", "data": None}
    assert look(ada, headers={"host": "127.0.0.1:25080"}) == there
    assert look(ada, crc=CRC - 2**32 if CRC >= 2**31 else CRC, headers={"host": "127.0.0.1"}) == there
    assert look(ada, headers={"host": "[::1]:25080"}) == nothing, "a colon in it would confuse the client"
    assert look(ada, crc=CRC ^ 1) == look(ada, size=1) == look(api(name="eve")) == nothing
    answer = fetch(NAME)
    assert (answer.status_code, answer.body) == (200, ARCHIVE)
    assert f'filename="{NAME}"' in answer["Content-Disposition"]
    assert Client().get(f"/cache/{NAME}", headers={"if-none-match": answer["ETag"]}).status_code == 304
    row = Sandbox.objects.get()
    assert [p.name for p in folder.iterdir()] == [row.stored] and row.stored not in row.name
    row.path.unlink()
    assert look(ada) == nothing and fetch(NAME).status_code == 404


def test_a_name_is_taken_once_unless_it_may_be_overwritten_by_its_owner(
    api: Api, folder: Path, django_capture_on_commit_callbacks: Any
) -> None:
    ada, eve = api(), api(name="eve")
    for name in (NAME, "again.tar.gz.__ow__"):
        assert send(ada, name=name) == (True, "")
    for client, name in ((ada, NAME), (eve, NAME), (eve, "again.tar.gz.__ow__")):
        assert send(client, name=name) == (False, f"there is a sandbox of the name {name} already")
    # Nor does anybody take the name beside that of another's.
    for name, taken in ((f"{NAME}.__ow__", NAME), ("again.tar.gz", "again.tar.gz.__ow__")):
        assert send(eve, name=name) == (False, f"there is a sandbox of the name {taken} already")
    with django_capture_on_commit_callbacks(execute=True):
        assert send(ada, gzip.compress(b"newer", mtime=0), "again.tar.gz.__ow__") == (True, "")
    assert gzip.decompress(fetch("again.tar.gz.__ow__").body) == b"newer"
    assert Sandbox.objects.count() == len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"", NAME, "file: The submitted file is empty."),
        (b"PK\3\4" + bytes(50), NAME, "the file is not a gzip archive"),
        (ARCHIVE[:10], NAME, "the gzip archive is incomplete"),
        (ARCHIVE[:-1], NAME, "the gzip archive is incomplete"),
        (ARCHIVE[:-10], NAME, "the gzip archive is incomplete"),
        (ARCHIVE + ARCHIVE[:-10], NAME, "the gzip archive is incomplete"),
        (ARCHIVE[:-8] + bytes(8), NAME, "the file is not a gzip archive, or was damaged in transfer"),
        (ARCHIVE + b"more", NAME, "the file is not a gzip archive, or was damaged in transfer"),
        (ARCHIVE, ".hidden.tar.gz", "the name of a sandbox has up to 200 letters"),
        (ARCHIVE, "a b.tar.gz", "the name of a sandbox has up to 200 letters"),
        (ARCHIVE, "x" * 201, "the name of a sandbox has up to 200 letters"),
    ],
)
def test_what_is_no_sandbox_is_refused_and_leaves_nothing(
    api: Api, folder: Path, content: bytes, name: str, sentence: str
) -> None:
    success, message = send(api(), content, name)
    assert not success and message.startswith(sentence)
    assert not Sandbox.objects.exists() and not (folder.exists() and list(folder.iterdir()))


@pytest.mark.parametrize(
    "content", [ARCHIVE + ARCHIVE, ARCHIVE + bytes(512), gzip.compress(bytes(20_000_000), mtime=0)]
)
def test_parts_zeros_behind_them_and_much_in_little_are_whole_archives(api: Api, content: bytes) -> None:
    assert send(api(), content) == (True, "")


def test_what_unpacks_to_more_than_jobs_unpack_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_check, "UNPACKED_LIMIT_BYTES", 1_000_000)
    refusal = "the sandbox contains more than 1\u202f000\u202f000 bytes when it is unpacked"
    assert send(api(), gzip.compress(bytes(1_000_001), mtime=0)) == (False, refusal)
    assert send(api(), gzip.compress(bytes(1_000_000), mtime=0)) == (True, "")


def test_little_that_unpacks_to_much_and_very_many_parts_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_check, "FREE_BYTES", 1_000_000)
    refusal = "the sandbox unpacks to more than 1\u202f000\u202f000 bytes, and to more than 100 times its size"
    assert send(api(), gzip.compress(bytes(1_000_001), mtime=0)) == (False, refusal)
    assert send(api(), gzip.compress(bytes(1_000_000), mtime=0)) == (True, "")
    empty = gzip.compress(b"", mtime=0)
    refusal = "the sandbox has more than 200\u202f000 gzip parts: pack it in one"
    assert send(api(), empty * 200_001, "parts.tar.gz") == (False, refusal)


def test_sandboxes_that_unpack_to_much_are_checked_a_few_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_check, "LARGE_BYTES", 1_000_000)
    large, small = gzip.compress(bytes(1_000_001), mtime=0), gzip.compress(bytes(1_000_000), mtime=0)
    first = sandbox_uploads.Incoming("ada", "first.tar.gz")
    first.write(large)
    said = "another large sandbox of yours is being checked: upload this one again when that is done"
    assert send(api(), large) == (False, said) and not Sandbox.objects.exists()
    assert send(api(), small) == (True, "")
    second = sandbox_uploads.Incoming("bob", "second.tar.gz")
    second.write(large)
    with pytest.raises(sandbox_uploads.TooManyLargeError, match="several large sandboxes are being checked"):
        sandbox_uploads.Incoming("carol", "third.tar.gz").write(large)
    del second  # as when its connection breaks
    first.drop()
    assert send(api(), large, "again.tar.gz") == (True, "")
    with pytest.raises(sandbox_uploads.SandboxRefusedError):
        cut = sandbox_uploads.Incoming("ada", "cut.tar.gz")
        cut.write(large[:-5])
        cut.finish()
    assert send(api(), large, "last.tar.gz") == (True, "")


def test_only_the_last_part_of_a_path_counts(api: Api) -> None:
    assert send(api(), name=f"/some/where/../{NAME}") == (True, "")
    assert Sandbox.objects.get().name == NAME


@pytest.mark.parametrize(
    "name", ["jobO.\x01a.tar.gz", "jobO.\u200ba.tar.gz", r"C:\jobO.a.tar.gz", "jobO.&#97;.tar.gz", "jobO.\xe4.tar.gz"]
)
def test_a_name_that_would_not_be_taken_as_it_is_is_refused(api: Api, name: str) -> None:
    no = "the name of a sandbox has up to 200 letters, digits, dots, dashes and underscores"
    body = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        + ARCHIVE
        + b"\r\n--x--\r\n"
    )
    url = "/api/v1/file_server/upload_cache_file"
    answer = api().generic("POST", url, body, content_type="multipart/form-data; boundary=x")
    assert answer.json() == {"success": False, "message": no, "data": None}
    assert not Sandbox.objects.exists()


def test_a_form_without_the_file_or_with_two_is_refused(api: Api, folder: Path) -> None:
    ada = api()
    answer = ada.post("/api/v1/file_server/upload_cache_file", {"other": "x"})
    assert answer.json()["message"] == "file: No file was submitted."
    cut = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.gz"\r\n\r\n' + ARCHIVE[:100]
    answer = ada.post("/api/v1/file_server/upload_cache_file", cut, content_type="multipart/form-data")
    assert "no" in answer.json()["message"].lower() and not answer.json()["success"]
    files = [SimpleUploadedFile(name, ARCHIVE) for name in ("a.tar.gz", "b.tar.gz")]
    answer = ada.post("/api/v1/file_server/upload_cache_file", {"file": files})
    assert answer.json()["message"] == "only one file is accepted at a time"
    assert not Sandbox.objects.exists() and not list(folder.iterdir())


def test_nothing_stays_of_a_file_whose_sender_went_away(api: Api, folder: Path) -> None:
    there: list[int] = []

    class Cut(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            if not found:
                there.append(len(list(folder.iterdir())))
                raise ConnectionResetError("the client is gone")
            return found

    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.gz"\r\n\r\n' + ARCHIVE * 700
    answer = api().generic(
        "POST",
        "/api/v1/file_server/upload_cache_file",
        "x",
        content_type="multipart/form-data; boundary=x",
        **{"wsgi.input": Cut(body), "CONTENT_LENGTH": str(10 * len(body))},
    )
    assert answer.status_code == 408
    assert there[0] == 1
    assert not list(folder.iterdir()) and not Sandbox.objects.exists()


def test_a_file_is_refused_while_it_arrives_once_it_is_too_large(
    api: Api, folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, large = api(), gzip.compress(random.Random(1).randbytes(200_000), mtime=0)
    written: list[int] = []
    write = sandbox_uploads.Incoming.write
    monkeypatch.setattr(
        sandbox_uploads.Incoming, "write", lambda self, block: (written.append(len(block)), write(self, block))
    )
    monkeypatch.setattr(file_server.SandboxUpload, "chunk_size", 1 << 12)
    settings.JEDI_SANDBOX_QUOTA_MB = 0.05
    assert send(ada, large)[1].startswith(
        "your sandboxes would exceed the quota of 0.05 MB; those that were not used for 30"
    )
    assert 50_000 < sum(written) < 120_000, "the rest was not looked at"
    settings.JEDI_SANDBOX_QUOTA_MB = 1
    for limit, written_at_all in ((150_000, True), (120_000, False), (1000, False)):
        monkeypatch.setattr(sandbox_uploads, "LIMIT_BYTES", limit)
        monkeypatch.setattr(file_server, "FRAME_BYTES", 60_000)
        written.clear()
        assert send(ada, large) == (False, f"the sandbox has more than {thousands(limit)} bytes")
        assert bool(written) == written_at_all
    assert not Sandbox.objects.exists() and not list(folder.iterdir())


def test_a_full_disk_is_told_and_leaves_nothing(api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert send(api()) == (False, "the site has no space for the sandbox; ask an administrator to free some")
    assert not Sandbox.objects.exists() and not list(folder.iterdir())


def test_files_sent_to_other_calls_are_written_nowhere(api: Api, tmp_path: Path, settings: Any) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    file = BytesIO(bytes(5_000_000))
    file.name = "large"
    answer = api().post("/api/v1/task/kill", {"task_id": 7, "file": file})
    assert answer.json()["data"] == 2
    assert not list(tmp_path.iterdir())


def test_what_nobody_uses_is_removed_and_what_an_open_task_needs_is_kept(
    api: Api, folder: Path, task_params: Callable[..., dict[str, Any]], django_capture_on_commit_callbacks: Any
) -> None:
    ada = api()
    for number in range(3):
        assert send(ada, name=f"jobO.{number}.tar.gz")[0]
    line = {"type": "constant", "value": "-r . -a jobO.1.tar.gz -p x"}
    answer = ada.post("/api/v2/tasks/", task_params(jobParameters=[line]), content_type="application/json")
    assert answer.status_code == 201, answer.content
    made = Task.objects.get()
    assert list(made.sandbox_set.values_list("name", flat=True)) == ["jobO.1.tar.gz"]
    now = timezone.now()
    (folder / ".killed.part").write_bytes(b"half")
    (folder / ("f" * 32)).write_bytes(b"no row was written")
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    Sandbox.objects.update(last_used=now - timedelta(days=29, hours=12))
    assert fetch("jobO.2.tar.gz").status_code == 200
    with django_capture_on_commit_callbacks(execute=True):
        assert old_sandboxes.run(now=now + timedelta(days=1)).items == 1
    left = dict(Sandbox.objects.values_list("name", "stored"))
    assert sorted(left) == ["jobO.1.tar.gz", "jobO.2.tar.gz"]
    assert sorted(p.name for p in folder.iterdir()) == sorted(left.values())
    Task.objects.filter(pk=made.id).update(status="done")
    with django_capture_on_commit_callbacks(execute=True):
        assert old_sandboxes.run(now=now + timedelta(days=40)).items == 2
    assert not list(folder.iterdir())


def test_a_person_who_operates_may_remove_a_sandbox(
    api: Api, folder: Path, client: Client, make_user: Callable[..., Any], django_capture_on_commit_callbacks: Any
) -> None:
    send(api())
    client.force_login(make_user("root", "administrator"))
    data = {"action": "remove", "_selected_action": [Sandbox.objects.get().pk]}
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post("/admin/tasks_app/sandbox/", data).status_code == 302
    assert not Sandbox.objects.exists() and not list(folder.iterdir())


def test_the_server_is_told_whose_a_sandbox_is_before_it_is_read(api: Api) -> None:
    told: list[str] = []

    def note(account: str) -> None:
        assert not Sandbox.objects.exists()
        told.append(account)

    file = SimpleUploadedFile(NAME, ARCHIVE, "application/octet-stream")
    answer = api().post("/api/v1/file_server/upload_cache_file", {"file": file}, **{WHOSE_BODY: note})
    assert answer.json()["success"] and told == ["ada"] and Sandbox.objects.exists()
