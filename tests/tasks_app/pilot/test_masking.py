"""What is masked of what a payload printed, by table and for any cut of the stream."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_app.pilot import masking
from tasks_app.pilot.masking import mask_file, mask_text, masked, needles_of
from tests.tasks_app.transforms import TRANSFORMS

KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n"
SECRETS = json.dumps(
    {
        "plain": "hunter2-hunter2",
        "short": "abc",
        "file": "tok3n-in-a-file\n",
        "key": KEY,
        "account": json.dumps({"name": "bot", "auth": {"password": 'p"ss\\wörd', "list": ["one-of-two", 12345678]}}),
    }
)


@pytest.mark.parametrize(
    ("printed", "left"),
    [
        ("login with hunter2-hunter2.", "login with ***."),
        ("hunter2-hunter2hunter2-hunter2", "***"),
        ("hunter2", "hunter2"),
        ("abc", "abc"),
        ("token=tok3n-in-a-file;", "token=***;"),
        (f"<{KEY}>", "<***\n>"),
        ("error in line kqhkiG9w0BAQEF", "error in line ***"),
        ('password p"ss\\wörd', "password ***"),
        (json.dumps({"auth": 'p"ss\\wörd'}), '{"auth": "***"}'),
        ("user one-of-two of bot", "user *** of bot"),
        ("", ""),
    ],
)
def test_values_lines_and_texts_in_values_are_masked(printed: str, left: str) -> None:
    assert mask_text(printed, needles_of(SECRETS)) == left


def test_the_file_of_secrets_holds_none_when_it_is_printed() -> None:
    left = mask_text(SECRETS, needles_of(SECRETS))
    assert '"plain": "***"' in left and '"short": "abc"' in left
    assert not any(part in left for part in ("hunter2", "tok3n", "MII", "ss", "one-of"))


@pytest.mark.parametrize("secrets", ["", "{}", "[", '{"a": "x"}', "null", "[[[[" * 5000])
def test_what_holds_no_secret_masks_nothing(secrets: str) -> None:
    assert mask_text("some text of a payload", needles_of(secrets)) == "some text of a payload"


def plainly(text: bytes, needles: list[bytes]) -> bytes:
    """The same, with a mark for each byte."""
    hidden = bytearray(len(text))
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            hidden[at : at + len(needle)] = b"\1" * len(needle)
            at = text.find(needle, at + len(needle))
    out = b""
    for n in range(len(text)):
        if not hidden[n]:
            out += text[n : n + 1]
        elif not n or not hidden[n - 1]:
            out += b"***"
    return out


@given(
    st.lists(st.sampled_from([b"abcdef", b"abcdefgh", b"defghijk", b"x", b"abc", b"hijk\n"]), max_size=20).map(b"".join),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
@settings(max_examples=300, deadline=None)
def test_where_the_stream_is_cut_makes_no_difference(text: bytes, cuts: list[int]) -> None:
    needles = [b"abcdef", b"abcdefghx", b"ghijkx", b"defghi"]
    stream, turn = io.BytesIO(text), iter(cuts * len(text))
    found = b"".join(masked(lambda _: stream.read(next(turn, 9)), needles))
    assert found == plainly(text, needles)


@pytest.mark.parametrize("filling", [b"log line of a payload\n", b"aaaaaa"], ids=["lines", "one letter"])
def test_a_large_file_is_masked_in_its_place_in_little_time(tmp_path: Path, filling: bytes) -> None:
    path, part = tmp_path / "payload.stdout", filling * (12_000_000 // len(filling))
    path.write_bytes(part + b"hunter2-hunter2" + part[:100])
    begun = time.process_time()
    length = mask_file(str(path), needles_of(json.dumps({"a": "hunter2-hunter2", "b": "aaaaaaaaab", "c": "k" * 300_000})))
    assert time.process_time() - begun < 5
    assert length == path.stat().st_size and path.read_bytes() == part + b"***" + part[:100]


def test_a_link_is_not_followed_and_a_folder_left(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("hunter2-hunter2")
    (tmp_path / "payload.stdout").symlink_to(other)
    with pytest.raises(OSError, match=r"payload\.stdout"):
        mask_file(str(tmp_path / "payload.stdout"), needles_of(SECRETS))
    assert other.read_text() == "hunter2-hunter2"


@pytest.mark.parametrize("name", ["run_command", "merge_command"])
def test_transforms_carry_the_same_functions(name: str) -> None:
    text = Path(masking.__file__).read_text()
    shared = text[text.index("LEAST = ") : text.index("# Transforms carry")].strip()
    assert "def mask_file" in shared and shared in (TRANSFORMS / name).read_text()
