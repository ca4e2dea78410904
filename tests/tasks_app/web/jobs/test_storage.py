"""What the pages read from the storage element is bounded, and never from elsewhere."""

from __future__ import annotations

import gzip
import html
import io
import itertools
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tasks_app.ddm import logarchives, small_files
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.log_reading import LOOKS
from tasks_app.models import File, Job, JobFile, Task

CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
# As grid tools write proxies: the key comes second. In two pieces for tools that search code for keys.
PROXY = CERTIFICATE + b"-----BEGIN PRIVATE" + b" KEY-----\nMIIE\n-----END PRIVATE" + b" KEY-----\n"


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    settings.JEDI_STORAGE = tmp_path / "storage"
    settings.JEDI_STORAGE.mkdir()
    return settings.JEDI_STORAGE


def make_log(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_the_ends_of_the_texts_are_read(root: Path) -> None:
    log = make_log(
        root / "log.tgz", {"tarball/payload.stderr": b"oops", "tarball/payload.stdout": b"a" * 50 + b"end\xff"}
    )
    found = small_files.read_log(log, limit=10)
    out, err = found.tails
    assert (out.name, out.text, out.size, out.skipped) == ("payload.stdout", "aaaaaaend\ufffd", 54, 44)
    assert (err.name, err.text, err.skipped) == ("payload.stderr", "oops", 0)
    assert (found.members, found.more) == ([("tarball/payload.stderr", 4), ("tarball/payload.stdout", 54)], False)
    (other,) = small_files.read_log(log, limit=10, member="tarball/payload.stderr").tails
    assert (other.name, other.member, other.text) == ("tarball/payload.stderr", "tarball/payload.stderr", "oops")
    with pytest.raises(small_files.StorageError, match="holds none of"):
        small_files.read_log(log, limit=10, member="../secret")


def test_a_log_with_very_many_files_names_some_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"f{n}" for n in range(small_files.MEMBERS_SHOWN + 5)]
    log = make_log(root / "log.tgz", {**dict.fromkeys(names, b""), "x" * 301: b"", "payload.stdout": b"last"})
    found = small_files.read_log(log, limit=10)
    assert (len(found.members), found.more, found.tails[0].text) == (small_files.MEMBERS_SHOWN, True, "last")
    monkeypatch.setattr(small_files, "MEMBER_LIMIT", 10)
    with pytest.raises(small_files.StorageError, match="holds none"):
        small_files.read_log(log, limit=10)


def many_headers() -> bytes:
    """An archive of one file that has thousands of long names: 12 kB."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 8
    one = head.tobuf(tarfile.GNU_FORMAT) + b"a" * 8 + bytes(tarfile.BLOCKSIZE - 8)
    return gzip.compress(one * 3000 + tarfile.TarInfo("payload.stderr").tobuf(), mtime=0)


@pytest.mark.parametrize(
    "content",
    [b"", b"not a tar", gzip.compress(b"not a tar", mtime=0), b"\x1f\x8bbroken", many_headers()],
    ids=["empty", "text", "packed text", "half packed", "many headers"],
)
def test_what_is_no_archive_is_refused(root: Path, content: bytes) -> None:
    path = root / "log.tgz"
    path.write_bytes(content)
    with pytest.raises(small_files.StorageError):
        small_files.read_log(path, limit=10)


def test_what_was_read_before_it_took_long_is_shown(root: Path) -> None:
    log = make_log(root / "log.tgz", {"payload.stderr": b"seen", "payload.stdout": b"0" * 10_000_000})
    seconds = itertools.count()
    found = small_files.read_log(log, limit=10, clocks=logarchives.Clocks(lambda: next(seconds), lambda: 0.0))
    assert [tail.name for tail in found.tails] == ["payload.stderr"] and found.more
    assert found.ended == "Not all of it was read: reading it takes more than 5 s of a processor. Please try again."
    still = logarchives.Clocks(lambda: 0.0, lambda: 0.0)
    assert not small_files.read_log(log, limit=10, clocks=still).ended


def test_an_archive_that_unpacks_to_too_much_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logarchives, "UNPACKED_LIMIT", 100_000)
    log = make_log(root / "log.tgz", {"other": b"0" * 1_000_000, "payload.stdout": b"never reached"})
    with pytest.raises(small_files.StorageError):
        small_files.read_log(log, limit=10)
    log = make_log(root / "log.tgz", {"payload.stderr": b"seen", "payload.stdout": b"0" * 1_000_000})
    assert [tail.name for tail in small_files.read_log(log, limit=10).tails] == ["payload.stderr"]


@pytest.mark.parametrize(
    "name",
    [
        "panda_secrets.json",
        "tarball_1/panda_secrets.json",
        "a/b/Panda_Secrets.JSON",
        "a/x509up_u0",
        "My.PEM",
        "a/proxy.pem",
        "a/token",
        "./.netrc",
        "a/b/host.key",
        "a/secret_key",
    ],
)
def test_secrets_in_a_log_are_neither_listed_nor_shown(root: Path, name: str) -> None:
    log = make_log(root / "log.tgz", {"a/payload.stdout": b"text", name: PROXY})
    assert small_files.read_log(log, limit=10).members == [("a/payload.stdout", 4)]
    with pytest.raises(small_files.StorageError, match="holds none of"):
        small_files.read_log(log, limit=10, member=name)
    with log.open("rb") as opened:
        assert logarchives.holds_secrets(opened)
    with make_log(root / "other.tgz", {"a/payload.stdout": b"panda_secrets.json", "a/tokens.py": b""}).open(
        "rb"
    ) as opened:
        assert not logarchives.holds_secrets(opened)


def test_certificates_that_are_for_everybody_are_shown_and_sent(root: Path) -> None:
    log = make_log(root / "log.tgz", {"a/payload.stdout": b"text", "a/cacert.pem": CERTIFICATE * 5000})
    assert small_files.read_log(log, limit=10).members == [
        ("a/payload.stdout", 4),
        ("a/cacert.pem", 5000 * len(CERTIFICATE)),
    ]
    assert small_files.read_log(log, limit=6, member="a/cacert.pem").tails[0].text == "-----"
    with log.open("rb") as opened:
        assert not logarchives.holds_secrets(opened)
    big = make_log(root / "big.tgz", {"a.pem": CERTIFICATE * (logarchives.KEY_FILE_LIMIT // len(CERTIFICATE)) + PROXY})
    with big.open("rb") as opened:
        assert logarchives.holds_secrets(opened), "nobody looks for keys without end"


def test_links_in_archives_are_not_followed(root: Path) -> None:
    path = root / "log.tgz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("payload.stdout")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(small_files.StorageError, match="holds none"):
        small_files.read_log(path, limit=10)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "surl",
    [
        "file://localhost/etc/passwd",
        "file://localhost{root}/../outside",
        "https://host/x",
        "file://host/x",
        "root://x",
        "file://localhost{root}/user/eve/00/11/x",
    ],
)
def test_nothing_but_the_file_itself_is_read(root: Path, surl: str) -> None:
    (root.parent / "outside").write_text("secret")
    (root / "user/eve/00/11").mkdir(parents=True)
    (root / "user/eve/00/11/x").write_text("of somebody else")
    with pytest.raises(small_files.StorageError):
        small_files.path_of(surl.replace("{root}", str(root)), "x", scope="user.ada")


@pytest.mark.django_db
def test_links_out_of_the_storage_are_not_followed(root: Path) -> None:
    (root.parent / "outside").write_text("secret")
    (root / "link").symlink_to(root.parent / "outside")
    with pytest.raises(small_files.StorageError, match="outside"):
        small_files.path_of(f"file://localhost{root}/link", "link", scope="x")


def test_without_a_url_the_place_follows_from_the_name(root: Path) -> None:
    path = storage_path(root, "user.ada", "x.log.tgz")
    assert path.relative_to(root).parts[:2] == ("user", "ada") and len(path.relative_to(root).parts) == 5
    path.parent.mkdir(parents=True)
    path.touch()
    assert small_files.path_of(None, "x.log.tgz", scope="user.ada") == path


@pytest.mark.django_db
def test_the_log_page_shows_the_ends_escaped(reader: Client, failed_job: Job, root: Path) -> None:
    place = storage_path(root, "user.ada", "file.0")
    log = make_log(place, {"payload.stdout": b"<script>alert(2)</script>", "payload.stderr": b""})
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}")
    text = reader.get(f"/jobs/{failed_job.id}/log/").content.decode()
    assert "&lt;script&gt;alert(2)" in text and "<script>alert" not in text


LONG = "".join(f"line {n}\n" for n in range(1, 20_001)).replace("line 777\n", "ValueError: no <b>muons</b>\n")


@pytest.mark.django_db
def test_who_may_have_the_log_finds_errors_and_words_in_all_of_it(
    operator: Client, failed_job: Job, root: Path
) -> None:
    log = make_log(storage_path(root, "user.ada", "file.0"), {"a/payload.stdout": LONG.encode()})
    task = Task.objects.get(pk=failed_job.task_id)
    kept = File.objects.create(
        task_id=task.id, dataset_id=1, lfn="file.0", type="log", status="finished", surl=f"file://localhost{log}"
    )
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}", file_id=kept.id)
    address = f"/jobs/{failed_job.id}/log/"
    text = operator.get(address).content.decode()
    assert 'data-n="20000"' in text and 'data-n="777"' not in text, "its end"
    (jump,) = re.findall(r'Lines that tell of errors: <a href="([^"#]+)#t1-777">777</a>', text)
    text = operator.get(address + html.unescape(jump)).content.decode()
    assert 'id="t1-777" data-n="777" class="here">ValueError: no &lt;b&gt;muons' in text
    assert 'data-n="577"' in text and 'data-n="978"' not in text and "Lines 577 to 977" in text
    text = operator.get(address + "?find=MUONS").content.decode()
    assert "1 line with “MUONS”:" in text and "line=777&amp;find=MUONS#t1-777" in text
    text = operator.get(address + "?find=LINE+1").content.decode().replace("\u202f", "")
    assert "11111 lines with “LINE 1”; the first 100 are shown:" in text
    assert "No line holds “&lt;i&gt;[”." in operator.get(address + "?find=<i>[").content.decode()
    assert "It has no line" in operator.get(address + "?line=999999").content.decode()
    assert operator.get(address + "?line=x").status_code == 200


@pytest.mark.django_db
def test_others_read_the_end_of_a_log_and_cannot_look_through_it(reader: Client, failed_job: Job, root: Path) -> None:
    log = make_log(storage_path(root, "user.ada", "file.0"), {"a/payload.stdout": LONG.encode()})
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}")
    for query in ("", "?find=muons", "?line=777"):
        text = reader.get(f"/jobs/{failed_job.id}/log/{query}").content.decode()
        assert 'data-n="20000"' in text and "ValueError" not in text and 'data-n="777"' not in text
        assert "Lines that tell of errors" not in text and "Find in the whole text" not in text


@pytest.mark.django_db
def test_the_log_of_pandas_pilot_is_listed_and_each_file_can_be_looked_at(
    reader: Client, failed_job: Job, root: Path
) -> None:
    folder = "tarball_PandaJob_500001_LOCAL_Q/"
    log = make_log(
        storage_path(root, "user.ada", "file.0"),
        {
            f"{folder}{name}": text.encode()
            for name, text in {
                "pilotlog.txt": "pilots say",
                "payload.stdout": "payloads say",
                "<i>&a=b c.txt": "<b>of another",
            }.items()
        },
    )
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}")
    text = reader.get(f"/jobs/{failed_job.id}/log/").content.decode()
    assert text.index("payloads say") < text.index("pilots say") and "of another" not in text
    assert "<i>&a" not in text
    (link,) = [word.split('"')[1] for word in text.split("<a ") if "c.txt" in word]
    text = reader.get(f"/jobs/{failed_job.id}/log/{link}").content.decode()
    assert "&lt;b&gt;of another" in text and "payloads say" not in text
    assert "holds none of" in reader.get(f"/jobs/{failed_job.id}/log/?member=../../x").content.decode()


@pytest.mark.django_db
def test_names_in_no_known_letters_are_shown(reader: Client, failed_job: Job, root: Path) -> None:
    place = storage_path(root, "user.ada", "file.0")
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w:gz", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        for name in ("payload.stdout", "caf\xe9.txt"):
            archive.addfile(tarfile.TarInfo(name))
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{place}")
    address = f"/jobs/{failed_job.id}/log/"
    assert "caf\ufffd.txt" in reader.get(address).content.decode()
    assert "holds none" not in reader.get(address, {"member": "caf\ufffd.txt"}).content.decode()


@pytest.mark.django_db
def test_few_look_into_logs_at_once_and_the_others_are_told_to_come_again(
    reader: Client, failed_job: Job, root: Path
) -> None:
    log = make_log(storage_path(root, "user.ada", "file.0"), {"payload.stdout": b"payloads say"})
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}")
    address, me = f"/jobs/{failed_job.id}/log/", reader.get("/").wsgi_request.user.get_username()
    with LOOKS.place("bob"):
        assert "payloads say" in reader.get(address).content.decode()
        with LOOKS.place("carol"):
            answer = reader.get(address)
            assert (answer.status_code, answer["Retry-After"]) == (503, "2")
            assert "Too many log archives are being read; please try again" in answer.content.decode()
            assert reader.get(f"/jobs/{failed_job.id}/").status_code == 200
    with LOOKS.place(me):
        assert "being read for you" in reader.get(address).content.decode()
    assert "payloads say" in reader.get(address).content.decode()


@pytest.mark.django_db
def test_who_looks_into_a_log_for_too_long_is_told_that_trying_again_may_help(
    reader: Client, failed_job: Job, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(storage_path(root, "user.ada", "file.0"), {"payload.stdout": b"payloads say"})
    JobFile.objects.filter(job_id=failed_job.id, type="log").update(surl=f"file://localhost{log}")
    with monkeypatch.context() as patch:
        patch.setattr(logarchives, "BUSY_S", -1)
        page = reader.get(f"/jobs/{failed_job.id}/log/").content.decode()
    assert "cannot be shown: reading it takes more than -1 s of a processor. Please try again." in page
    assert "Please try again" not in reader.get(f"/jobs/{failed_job.id}/log/").content.decode()


@pytest.mark.django_db
def test_a_log_that_is_not_there_is_said(reader: Client, failed_job: Job, root: Path) -> None:
    assert "not in this site" in reader.get(f"/jobs/{failed_job.id}/log/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (json.dumps({"name": "m", "title": "<i>Mass", "edges": [0, 1, 2], "counts": [5, 7]}), "&lt;i&gt;Mass"),
        ('{"counts": [1], "edges": [0, "<b>"]}', "not a number"),
        ("x" * 3_000_000, "larger than"),
    ],
)
def test_histograms_are_drawn_from_checked_numbers(
    reader: Client, make_task: Any, root: Path, content: str, seen: str
) -> None:
    task: Task = make_task()
    path = storage_path(root, "user.ada", "x.hist.json")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    file = File.objects.create(
        task_id=task.id, dataset_id=1, lfn="x.hist.json", type="output", status="finished", scope="user.ada"
    )
    surl = f"file://localhost{path}"
    JobFile.objects.create(job_id=1, task_id=task.id, file_id=file.id, lfn="x.hist.json", type="output", surl=surl)
    assert "x.hist.json" in reader.get(f"/tasks/{task.id}/histograms/").content.decode()
    text = reader.get(f"/tasks/{task.id}/histograms/{file.id}/").content.decode()
    assert seen in text and "<b>" not in text and "<i>" not in text
