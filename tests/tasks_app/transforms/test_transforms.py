"""The payloads that ship with the site, run as the pilot runs them."""

from __future__ import annotations

import ast
import json
import os
import tarfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.tasks_app.running_transforms import TRANSFORMS, Run, load, read


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load("zmumu_generate")


@pytest.fixture(scope="module")
def detector() -> ModuleType:
    return load("zmumu_reconstruct")


def invariant_mass(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(vectors[:, 0] ** 2 - np.sum(vectors[:, 1:] ** 2, axis=1))


def test_every_transform_is_a_program() -> None:
    for path in TRANSFORMS.iterdir():
        assert os.access(path, os.X_OK), path.name
        assert path.read_text().startswith("#!/usr/bin/env -S python3 -I\n"), path.name


def test_the_mass_peaks_at_the_z(generator: ModuleType) -> None:
    mass = generator.generate(seed=1, first=0, count=100_000)["mass"]
    counts, edges = np.histogram(mass, bins=120, range=(60, 120))
    assert abs(edges[counts.argmax()] + 0.25 - 91.19) < 0.5
    assert abs(np.median(mass) - 91.19) < 0.05
    assert mass.min() >= 60 and mass.max() <= 120
    half = counts.max() / 2
    assert abs(0.5 * (counts > half).sum() - 2.5) <= 0.5, "the full width at half the height is the Z's"


def test_the_muons_are_what_the_z_became(generator: ModuleType) -> None:
    events = generator.generate(seed=2, first=0, count=10_000)
    total = events["mu_minus"] + events["mu_plus"]
    assert np.allclose(invariant_mass(total), events["mass"], rtol=1e-9)
    # A light muon of high energy is a small difference of large numbers: its mass squared is compared on their scale.
    for name in ("mu_minus", "mu_plus"):
        muon = events[name]
        squared = muon[:, 0] ** 2 - np.sum(muon[:, 1:] ** 2, axis=1)
        assert np.all(np.abs(squared - 0.10566**2) < 1e-12 * muon[:, 0] ** 2 + 1e-12)


def test_the_decay_has_no_favourite_direction(generator: ModuleType) -> None:
    count = 100_000
    chance = generator.uniforms(3, 0, count)
    mass = np.full(count, 91.19)
    at_rest = np.column_stack([mass, np.zeros((count, 3))])
    minus, _ = generator.decay(at_rest, mass, chance[:, :2])
    direction = minus[:, 1:] / np.linalg.norm(minus[:, 1:], axis=1)[:, None]
    assert np.all(np.abs(direction.mean(axis=0)) < 0.01)
    assert np.all(np.abs((direction**2).mean(axis=0) - 1 / 3) < 0.01)


def test_an_event_is_the_same_wherever_its_job_begins(generator: ModuleType) -> None:
    whole = generator.generate(seed=4, first=0, count=100)
    parts = [generator.generate(seed=4, first=first, count=50) for first in (0, 50)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole["mass"], generator.generate(seed=5, first=0, count=100)["mass"])


def test_the_detector_loses_and_smears_and_does_so_again_the_same(generator: ModuleType, detector: ModuleType) -> None:
    events = generator.generate(seed=6, first=0, count=50_000)
    mass = detector.reconstruct(events)
    assert 0.4 < len(mass) / len(events) < 0.9
    assert abs(np.median(mass) - 91.19) < 0.2
    assert np.array_equal(mass, detector.reconstruct(events))
    halves = [detector.reconstruct(half) for half in (events[:25_000], events[25_000:])]
    assert np.array_equal(mass, np.concatenate(halves)), "what happens to an event depends on its number only"


def test_smearing_has_the_width_it_claims(detector: ModuleType) -> None:
    event = np.arange(100_000)
    pull = (detector.smeared_pt(np.full(100_000, 50.0), event, 0) / 50 - 1) / np.hypot(0.015, 0.0003 * 50)
    assert abs(pull.mean()) < 0.02 and abs(pull.std() - 1) < 0.02


def test_from_generation_to_the_merged_histogram(run: Run, tmp_path: Path) -> None:
    for number in range(2):
        run(
            "zmumu_generate",
            "--first-event",
            str(number * 20_000),
            "--max-events",
            "20000",
            "--seed",
            "7",
            "--output",
            f"{number}.npy",
        )
        assert read(tmp_path / "jobReport.json") == {"nEvents": 20_000, "files": {f"{number}.npy": {"nevents": 20_000}}}
        run("zmumu_reconstruct", "--inputs", f"{number}.npy", "--output", f"{number}.hist.json")
    run("zmumu_reconstruct", "--inputs", "0.npy,1.npy", "--output", "both.hist.json")
    run("merge_histograms", "--inputs", "0.hist.json,1.hist.json", "--output", "sum.hist.json")
    one, two, both, total = (read(tmp_path / f"{name}.hist.json") for name in ("0", "1", "both", "sum"))
    assert total["counts"] == [a + b for a, b in zip(one["counts"], two["counts"], strict=True)] == both["counts"]
    for key in ("events_in", "events_selected", "underflow", "overflow"):
        assert total[key] == one[key] + two[key] == both[key]
    assert total["events_in"] == 40_000
    assert sum(total["counts"]) + total["underflow"] + total["overflow"] == total["events_selected"]
    assert total["mean"] == pytest.approx(both["mean"])
    peak = total["peak"]
    assert abs(peak["value"] - 91.19) < 5 * peak["error"] + 0.05
    assert 0 < peak["error"] < 0.05
    report = read(tmp_path / "jobReport.json")
    assert report["nEvents"] == report["files"]["sum.hist.json"]["nevents"] == total["events_selected"]


def test_histograms_of_another_binning_are_not_added(run: Run) -> None:
    run("zmumu_generate", "--max-events", "10", "--output", "e.npy")
    run("zmumu_reconstruct", "--inputs", "e.npy", "--output", "a.hist.json")
    run("zmumu_reconstruct", "--inputs", "e.npy", "--output", "b.hist.json", "--bins", "60")
    done = run("merge_histograms", "--inputs", "a.hist.json,b.hist.json", "--output", "c.hist.json", code=65)
    assert done.stderr == "b.hist.json and a.hist.json are binned differently: 60 bins against 120\n"


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"counts": 3}'])
def test_what_is_no_histogram_is_not_added(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "a.hist.json").write_text(content)
    assert "a.hist.json" in run("merge_histograms", "--inputs", "a.hist.json", "--output", "c", code=65).stderr


def test_the_peak_of_a_flat_or_empty_histogram_makes_no_trouble() -> None:
    merge = load("merge_histograms")
    assert merge.estimate_peak({"counts": [0] * 10, "low": 0, "high": 10}) is None
    assert 0 <= merge.estimate_peak({"counts": [5] * 100, "low": 0, "high": 100})["value"] <= 100


def test_source_files_are_counted_and_broken_ones_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(
        '"""Doc."""\nimport os.path, sys\nfrom json import dumps\nfrom . import x\n\n# note\nclass A:\n'
        "    def f(self): pass\n    async def g(self): pass\n"
    )
    (tmp_path / "bad.py").write_text("def f(:\n")
    run("analyse_source", "--inputs", "good.py,bad.py", "--output", "out.json")
    result = read(tmp_path / "out.json")
    assert list(result.pop("unparsed")) == ["bad.py"]
    assert result == {
        "files": 2,
        "parsed": 1,
        "lines": 9,
        "code_lines": 7,
        "comments": 1,
        "functions": 2,
        "classes": 1,
        "docstrings": 1,
        "modules": {"os": 1, "sys": 1, "json": 1},
    }


def test_a_real_library_is_analysed(run: Run, tmp_path: Path) -> None:
    source = Path(ast.__file__).read_bytes()
    (tmp_path / "ast.py").write_bytes(source)
    run("analyse_source", "--inputs", "ast.py", "--output", "out.json")
    result = read(tmp_path / "out.json")
    assert result["lines"] == len(source.splitlines()) and result["functions"] > 50 and not result["unparsed"]


def test_a_corrupt_input_fails_with_65_and_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}')
    (tmp_path / "b.json").write_text('{"x": \n oops}')
    (tmp_path / "c.dat").write_text("CORRUPT rest")
    run("strict_checksum", "--inputs", "a.json", "--output", "sums.json")
    assert read(tmp_path / "sums.json")["a.json"]["size"] == 8
    done = run("strict_checksum", "--inputs", "a.json,b.json", "--output", "no.json", code=65)
    assert done.stderr == "The input b.json (13 bytes) is corrupt: line 2 column 2: Expecting value\n"
    assert (
        "begins with the marker" in run("strict_checksum", "--inputs", "c.dat", "--output", "no.json", code=65).stderr
    )
    assert not (tmp_path / "no.json").exists()


def test_a_command_gets_its_inputs_and_its_outputs_are_renamed(run: Run, tmp_path: Path) -> None:
    run(
        "run_command",
        "-j",
        "",
        "-p",
        "echo%20%25IN%20%3E%20out.txt%3B%20touch%20x1%20x2",
        "-i",
        "['a', 'b']",
        "-o",
        "{'out.txt': 'user.x.out', 'x*': 'user.x.tgz'}",
    )
    assert (tmp_path / "user.x.out").read_text() == "a,b\n"
    with tarfile.open(tmp_path / "user.x.tgz") as tar:
        assert tar.getnames() == ["x1", "x2"]
    assert read(tmp_path / "jobReport.json") == {"files": {}}


def test_a_commands_exit_code_is_passed_on(run: Run) -> None:
    run("run_command", "--", "exit", "7", code=7)
    run("run_command", "-p", "kill%20-9%20%24%24", code=137)
    assert "no command" in run("run_command", code=2).stderr
    assert "not a Python dict" in run("run_command", "-o", "[", "-p", "true", code=2).stderr


@pytest.mark.parametrize(
    "left", ["ln -s /proc/version jobReport.json", "ln -s nowhere/x jobReport.json", "mkdir -p jobReport.json/a"]
)
@pytest.mark.parametrize("name", ["run_command", "preprocess_command"])
def test_what_a_command_left_in_the_place_of_the_report_is_no_trouble(
    run: Run, tmp_path: Path, name: str, left: str
) -> None:
    done = run(name, "--", left, "&&", "echo", "{}", ">", "results.json")
    assert "Traceback" not in done.stderr and not (tmp_path / "nowhere").exists()
    if name == "preprocess_command":  # what is there to be read, a command may have written itself
        assert not (tmp_path / "jobReport.json").is_symlink() and read(tmp_path / "jobReport.json")["results"] == {}


def test_an_output_that_has_no_place_is_told_with_a_sentence(run: Run) -> None:
    done = run("run_command", "-o", "{'x*': 'lfn'}", "--", "touch x1; mkdir lfn", code=74)
    assert "Traceback" not in done.stderr
    assert "The files of the job cannot be put in their places: [Errno 21] Is a directory" in done.stderr


def test_the_report_of_a_merge_is_not_written_through_a_link_of_its_script(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "merge.sh").write_text('#!/bin/sh\nln -s nowhere/x jobReport.json\ncat "$2" > "$1"\n')
    (tmp_path / "merge.sh").chmod(0o755)
    run("merge_command", "-r", ".", "-j", "merge.sh", "a:all", "--mergeSingleFile")
    assert read(tmp_path / "jobReport.json") == {"files": {}}


def test_a_sandbox_is_unpacked_and_the_command_runs_in_its_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print(open('in.txt').read())")
    with tarfile.open(tmp_path / "lib.tgz", "w:gz") as tar:
        tar.add(tmp_path / "hello.py", "sub/hello.py")
    (tmp_path / "in.txt").write_text("from the input")
    run(
        "run_command",
        "-l",
        "lib.tgz",
        "-r",
        "sub",
        "-i",
        "['in.txt']",
        "-o",
        "{'o': 'lfn'}",
        "--",
        "python3 hello.py > o",
    )
    assert (tmp_path / "lfn").read_text() == "from the input\n"


# --- merge_command ---


def test_merging_puts_files_end_to_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n")
    (tmp_path / "b.txt").write_bytes(b"two\n")
    run("merge_command", "a.txt,b.txt:all.txt", "b.txt:single.dat")
    assert (tmp_path / "all.txt").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "single.dat").read_bytes() == b"two\n"
    assert read(tmp_path / "jobReport.json") == {"files": {}}


def test_merging_knows_json_and_tables(run: Run, tmp_path: Path) -> None:
    for name, content in {
        "a.json": "[1, 2]",
        "b.json": "[3]",
        "c.json": "{}",
        "a.csv": "x,y\n1,2",
        "b.csv": "x,y\n3,4",
    }.items():
        (tmp_path / name).write_text(content)
    run("merge_command", "a.json,b.json:lists.json", "a.json,c.json:mixed.json", "a.csv,b.csv:all.csv")
    assert json.loads((tmp_path / "lists.json").read_text()) == [1, 2, 3]
    assert json.loads((tmp_path / "mixed.json").read_text()) == [[1, 2], {}]
    assert (tmp_path / "all.csv").read_text() == "x,y\n1,2\n3,4\n"


def test_merging_archives_keeps_each_in_a_folder_of_its_own(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "payload.stdout").write_text(f"I am {name}")
        with tarfile.open(tmp_path / f"{name}.log.tgz", "w:gz") as tar:
            tar.add(tmp_path / "payload.stdout", "../payload.stdout" if name == "b" else "payload.stdout")
    run("merge_command", "a.log.tgz,b.log.tgz:all.log.tgz")
    with tarfile.open(tmp_path / "all.log.tgz") as tar:
        assert tar.getnames() == ["a.log/payload.stdout", "b.log/payload.stdout"]
        content = tar.extractfile("b.log/payload.stdout")
        assert content and content.read() == b"I am b"


def test_merging_runs_the_users_command_but_not_for_logs(run: Run, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / "a.log.tgz", "w:gz") as tar:
        tar.add(tmp_path / "a.txt", "a.txt")
    run(
        "merge_command",
        "-j",
        "cat%20%IN%20%3E%20%OUT%20%26%26%20echo%20!%20%3E%3E%20%OUT",
        "a.txt,b.txt:all.txt",
        "a.log.tgz:all.log.tgz",
    )
    assert (tmp_path / "all.txt").read_text() == "a.txtb.txt!\n"
    assert tarfile.is_tarfile(tmp_path / "all.log.tgz")
    assert "ended with 3" in run("merge_command", "-j", "exit%203", "a.txt:out.txt", code=3).stderr


@pytest.mark.parametrize(
    ("argument", "code", "sentence"),
    [
        ("bad.tgz:all.tgz", 65, "bad.tgz is not an archive"),
        ("bad.json:all.json", 65, "bad.json is not JSON"),
        ("missing:all", 65, "missing"),
        ("a,b", 2, "not a list of inputs, a colon and an output"),
    ],
)
def test_merging_says_what_is_wrong(run: Run, tmp_path: Path, argument: str, code: int, sentence: str) -> None:
    for name in ("bad.tgz", "bad.json"):
        (tmp_path / name).write_text("nonsense")
    assert sentence in run("merge_command", argument, code=code).stderr
