"""Files are opened where trusted links lead, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks_app.ddm.opening import ForeignLinkError, open_exactly, open_led_to

STRANGER = 54_321
ROOTS_FILE = Path("/etc/passwd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of somebody who is neither root nor the site's user, as far as the tests may make one."""
    made = tmp_path.resolve() / "data"
    made.mkdir()
    (made / "own").write_text("own")
    links = {"one": "own", "two": "one", "up": "../data/own", "away": ROOTS_FILE, "folder": ROOTS_FILE.parent}
    for name, target in links.items():
        (made / name).symlink_to(target)
    if os.geteuid() == 0:
        for path in made.iterdir():
            os.lchown(path, STRANGER, STRANGER)
    return made


def test_links_lead_to_files_of_the_same_user(folder: Path) -> None:
    for name in ("own", "one", "two", "up"):
        real, stream = open_led_to(folder / name, trusted={0})
        with stream:
            assert (real, stream.read()) == (folder / "own", b"own"), name


@pytest.mark.parametrize("name", ["away", f"folder/{ROOTS_FILE.name}"])
def test_nobodys_link_leads_to_the_file_of_another_user(folder: Path, name: str) -> None:
    with pytest.raises(ForeignLinkError, match=rf"is a link of the user .* to {ROOTS_FILE}, a file of the user root: "):
        open_led_to(folder / name, trusted={0})
    trusted = {0, (folder / "away").lstat().st_uid}
    real, stream = open_led_to(folder / name, trusted=trusted)
    stream.close()
    assert real == ROOTS_FILE, "of whom it is trusted they may"


def test_a_link_behind_a_trusted_link_is_looked_at_too(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(folder / "away")
    with pytest.raises(ForeignLinkError, match=f"{folder}/away is a link of"):
        open_led_to(tmp_path / "mine", trusted={0})


def test_what_is_no_file_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "round").symlink_to("round")
    for name in ("pipe", "", "round", "nothing"):
        with pytest.raises(OSError):
            open_led_to(folder / name)[1].close()
    with pytest.raises(OSError):
        open_exactly(folder / "one").close()
    with pytest.raises(OSError, match="a link on the way to it leads elsewhere"):
        open_exactly(folder / "folder" / ROOTS_FILE.name).close()
