"""What a whole installation of a test leaves behind."""

from __future__ import annotations

from pathlib import Path

from jedisite.processes.postgres_binaries import server_account
from jedisite.processes.postgres_state import State, StateFolder
from tests.installation import remove_data_of


def make_home(home: Path, data: Path) -> None:
    folder = StateFolder(home)
    folder.make(server_account())
    data.mkdir(parents=True)
    folder.save(State(data=str(data), password="x"))


def test_databases_of_a_run_that_lie_elsewhere_go_with_it_and_those_of_others_stay(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    make_home(run / "test_a0" / "site", elsewhere / "aa")
    (elsewhere / "aa.old-1").mkdir()
    make_home(run / "inside", run / "inside" / "postgres" / "data")
    make_home(tmp_path / "other", elsewhere / "bb")
    remove_data_of(run, elsewhere)
    assert [path.name for path in elsewhere.iterdir()] == ["bb"]
    assert (run / "inside" / "postgres" / "data").is_dir()
