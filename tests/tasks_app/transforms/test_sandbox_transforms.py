"""The payloads that bring a user's sandbox: built, unpacked, run. Nothing in an archive gets out of the work folder."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.lacking import needs_program
from tests.tasks_app.running_transforms import TRANSFORMS, Run, load, read


def archive(path: Path, **members: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            data = text.encode()
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
    return path


HELLO = """#include <stdio.h>
int main(int count, char **words) { int sum = 0, c; FILE *in = fopen(words[1], "r");
  while ((c = fgetc(in)) != EOF) sum += c; printf("%d\\n", sum); return 0; }
"""


def test_a_c_program_is_built_and_run_where_it_was_not_built(run: Run, tmp_path: Path) -> None:
    needs_program("cc")
    kept, other = tmp_path / "kept", tmp_path / "other"
    kept.mkdir(), other.mkdir()
    archive(kept / "sources.1.tar.gz", src__sum_c=HELLO)
    command = quote("mv sum_c sum.c && cc -O1 -o sum sum.c")
    run(
        "build_command",
        "-i",
        "sources.1.tar.gz",
        "-o",
        "x.lib.tgz",
        "-r",
        "src",
        "--sourceURL",
        f"file://{kept}",
        "--bexec",
        command,
    )
    assert read(tmp_path / "jobReport.json") == {"files": {}}
    with tarfile.open(tmp_path / "x.lib.tgz") as tar:
        assert {"src/sum", "src/sum.c"} <= set(tar.getnames())
    shutil.copy(tmp_path / "x.lib.tgz", other)
    (other / "in.txt").write_text("abc")
    done = subprocess.run(
        [
            str(TRANSFORMS / "run_command"),
            "-l",
            "x.lib.tgz",
            "-r",
            "src",
            "-i",
            "['in.txt']",
            "-o",
            "{'out': 'lfn.1'}",
            "-p",
            quote("./sum %IN > out"),
        ],
        cwd=other,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (other / "lfn.1").read_text() == f"{sum(b'abc')}\n"


def test_a_build_that_fails_writes_no_library_and_its_last_words_are_the_compilers(run: Run, tmp_path: Path) -> None:
    archive(tmp_path / "s.tar.gz", build_sh="echo broken.c:3: error: no such thing >&2; exit 2")
    done = run("build_command", "-i", "s.tar.gz", "-o", "x.lib.tgz", "--bexec", quote("sh build_sh"), code=2)
    assert "no such thing" in done.stderr
    assert not (tmp_path / "x.lib.tgz").exists()


def test_without_a_command_the_sandbox_itself_becomes_the_library(run: Run, tmp_path: Path) -> None:
    archive(tmp_path / "s.tar.gz", a="one", sub__b="two")
    run("build_command", "-i", "s.tar.gz", "-o", "x.lib.tgz", "-r", ".")
    with tarfile.open(tmp_path / "x.lib.tgz") as tar:
        assert [m.name for m in tar if m.isfile()] == ["a", "sub/b"]


def evil(path: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ((member("../out", size=1),), "leads out"),
        ((member("a/../../out", size=1),), "leads out"),
        ((member("/etc/passwd", size=1),), "leads out"),
        ((member("link", tarfile.SYMTYPE, "/etc/passwd"),), "the link link leads out"),
        ((member("sub/link", tarfile.SYMTYPE, "../../up"),), "the link sub/link leads out"),
        ((member("hard", tarfile.LNKTYPE, "../secret"),), "the link hard leads out"),
        ((member("d", tarfile.SYMTYPE, "."), member("d/x", size=1)), "through a link"),
        ((member("d", tarfile.SYMTYPE, "e"), member("d", size=1)), "through a link"),
        ((member("fifo", tarfile.FIFOTYPE),), "neither file, folder nor link"),
        ((member("device", tarfile.CHRTYPE),), "neither file, folder nor link"),
    ],
)
@pytest.mark.parametrize("call", [("run_command", "-a"), ("build_command", "-o", "x", "-i")])
def test_an_archive_that_would_write_elsewhere_is_refused_whole(
    run: Run, tmp_path: Path, call: tuple[str, ...], members: tuple[tarfile.TarInfo, ...], says: str
) -> None:
    evil(tmp_path / "s.tar.gz", member("innocent", size=1), *members)
    done = run(*call, "s.tar.gz", "--", "touch ran", code=70)
    assert says in done.stderr
    assert read(tmp_path / "jobReport.json")["failure"]["kind"] == "bad_sandbox"
    assert not list(tmp_path.rglob("innocent")) and not list(tmp_path.rglob("ran"))


def test_an_archive_that_is_too_large_when_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = load("run_command")
    monkeypatch.setattr(transform, "UNPACKED_LIMIT_BYTES", 1000)
    monkeypatch.setattr(transform, "MEMBERS_LIMIT", 3)
    evil(tmp_path / "large.tgz", member("zeros", size=1001))
    evil(tmp_path / "many.tgz", *(member(str(number)) for number in range(4)))
    for name in ("large.tgz", "many.tgz"):
        with pytest.raises(transform.Trouble, match="holds more than 3 members and 1000 bytes"):
            transform.unpack(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b cut"])
def test_what_is_no_archive_is_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.tar.gz").write_bytes(content)
    assert "could not be unpacked" in run("run_command", "-a", "s.tar.gz", "--", "true", code=70).stderr


def test_a_sandbox_that_is_nowhere_has_its_own_code(run: Run, tmp_path: Path) -> None:
    assert "is nowhere" in run("run_command", "-a", "jobO.1.tar.gz", "--", "true", code=71).stderr
    done = run("run_command", "-a", "jobO.1.tar.gz", "--sourceURL", f"file://{tmp_path}", "--", "true", code=71)
    assert "could not be fetched" in done.stderr
    assert read(tmp_path / "jobReport.json")["failure"]["kind"] == "no_sandbox"


def test_a_folder_outside_of_the_sandbox_is_none(run: Run) -> None:
    assert "not in the sandbox" in run("run_command", "-r", "../..", "--", "true", code=70).stderr


def test_preprocessing_reports_what_its_command_found(run: Run, tmp_path: Path) -> None:
    archive(
        tmp_path / "s.tar.gz", find_sh="""echo '{"INDS": "a.b", "INLFNLIST": ["f1", "f2"], "N": 3}' > results.json"""
    )
    run("preprocess_command", "-a", "s.tar.gz", "-p", quote("sh find_sh"))
    assert read(tmp_path / "jobReport.json")["results"] == {"INDS": "a.b", "INLFNLIST": ["f1", "f2"], "N": 3}


@pytest.mark.parametrize("said", ["", "[1]", '{"INDS": {"a": 1}}', '{"INDS": [true]}', "{"])
def test_results_of_another_shape_are_refused(run: Run, tmp_path: Path, said: str) -> None:
    (tmp_path / "results.json").write_text(said)
    assert "results.json" in run("preprocess_command", "--", "true", code=72).stderr
