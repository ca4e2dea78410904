"""What the pilot opens to copy it is what was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks_app.worker_node.pilot.copying import content_of, copy_new


class ToldToEndError(Exception):
    pass


def test_a_file_is_read_no_further_when_the_check_says_so(tmp_path: Path) -> None:
    source = tmp_path / "large"
    with source.open("wb") as file:
        file.truncate(1 << 40)
    asked = iter(range(2))

    def check() -> None:
        if next(asked, None) is None:
            raise ToldToEndError

    with pytest.raises(ToldToEndError):
        content_of(source, check)


def test_a_folder_that_has_become_a_link_leads_nowhere(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "storage").mkdir()
    (root / "secrets").mkdir()
    for folder in ("storage", "secrets"):
        (root / folder / "x").write_text(folder)
    source = root / "storage" / "x"
    assert copy_new(source, root / "first", lambda: None, durable=False, follow=False, resolved=True).size == 7
    (root / "storage").rename(root / "was")
    (root / "storage").symlink_to(root / "secrets")
    with pytest.raises(OSError, match="link"):
        copy_new(source, root / "second", lambda: None, durable=False, follow=False, resolved=True)
    assert not (root / "second").exists()
