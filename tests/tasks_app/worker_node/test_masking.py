"""What is masked of what a payload printed, by table and for any cut of the stream."""

from __future__ import annotations

import base64
import html
import io
import json
import shlex
import subprocess
import time
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.worker_node.pilot import masking
from tasks_app.worker_node.pilot.masking import mask_file, mask_text, masked, needles_of, otherwise_written
from tests.tasks_app.running_transforms import TRANSFORMS

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


def test_what_a_secret_file_holds_is_masked_as_its_payload_decodes_it() -> None:
    held = "user = ada\npassword = open-sesame\n\n" + json.dumps({"key": "in-a-json-file"})
    lines = {
        "___file___:FSEC": base64.b64encode(held.encode()).decode(),
        "coded": base64.b64encode(b"hunter2-hunter2").decode(),
    }
    needles = needles_of(json.dumps(lines))
    assert mask_text(f"<{held}>", needles) == "<***>"
    assert mask_text("it says password = open-sesame here", needles) == "it says *** here"
    assert mask_text(f"as it came: {lines['___file___:FSEC']}", needles) == "as it came: ***"
    assert mask_text("hunter2-hunter2", needles) == "***"
    wrapped = {"___file___:F": base64.encodebytes(held.encode() * 4).decode()}
    assert "open-sesame" not in mask_text(held, needles_of(json.dumps(wrapped)))


def test_a_secret_file_that_is_no_text_is_masked_as_it_came() -> None:
    coded = base64.b64encode(bytes(range(200, 256))).decode()
    assert mask_text(coded, needles_of(json.dumps({"___file___:F": coded}))) == "***"


def needles_of_one(value: str) -> list[bytes]:
    return needles_of(json.dumps({"value": value}))


FORMS = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 without its end": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "in an address": lambda text: quote(text, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in JSON": lambda text: json.dumps(text)[1:-1],
    "in JSON with letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "in Python": lambda text: repr(text)[1:-1],
    "as bytes in Python": lambda text: repr(text.encode())[2:-1],
    "in a shell": lambda text: shlex.quote(text).removeprefix("'").removesuffix("'"),
    "in bash": lambda text: (
        subprocess.run(
            ["bash", "-c", 'printf %q "$0"', text],
            env={"LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    ),
    "in a page": html.escape,
}


@pytest.mark.parametrize(
    "value", ["hunter2-hunter2", "p\"s's w&rd/+?>~", "sch\xf6nes Pa\xdfwort 1", "k" * 200 + "~?" * 40]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_masked_in_the_forms_in_which_programs_write_it(form: str, value: str) -> None:
    written = FORMS[form](value)
    left = mask_text(f"({written})", needles_of_one(value))
    assert left.replace("\n", "").strip("()").strip("*=") == "", left


@given(st.binary(max_size=30), st.binary(min_size=9, max_size=60), st.binary(max_size=30))
def test_of_a_value_in_a_longer_text_in_base64_at_most_parts_of_its_first_and_last_letters_are_left(
    before: bytes, value: bytes, behind: bytes
) -> None:
    found = list(otherwise_written(value))
    coded = base64.b64encode(before + value + behind)
    left = b"".join(masked(io.BytesIO(coded).read, found))
    first, last = (len(before) * 8 + 5) // 6, (len(before) + len(value)) * 8 // 6
    assert coded[first:last] not in left and b"***" in left


@pytest.mark.parametrize("form", FORMS)
def test_short_values_are_looked_for_in_no_form(form: str) -> None:
    written = FORMS[form]("a'b&c")
    assert mask_text(written, needles_of_one("a'b&c")) == written


@given(st.text(min_size=1, max_size=12))
def test_nothing_that_is_looked_for_is_shorter_than_what_is_looked_for_at_least(value: str) -> None:
    assert all(len(one) >= masking.LEAST for one in needles_of_one(value))


def test_the_file_of_secrets_holds_none_when_it_is_printed() -> None:
    left = mask_text(SECRETS, needles_of(SECRETS))
    assert '"plain": "***"' in left and '"short": "abc"' in left
    assert not any(part in left for part in ("hunter2", "tok3n", "MII", "ss", "one-of"))


@pytest.mark.parametrize("secrets", ["", "{}", "[", '{"a": "x"}', "null", "[[[[" * 5000])
def test_what_holds_no_secret_masks_nothing(secrets: str) -> None:
    assert mask_text("some text of a payload", needles_of(secrets)) == "some text of a payload"


MOST_SECRETS, LONGEST_SECRET = 50, 1_000_000


@cache
def listed(text: str, count: int, others: int) -> str:
    """So many texts, of which so many differ."""
    return json.dumps([text % (i % others) for i in range(count)])


LARGE = {
    "a list of texts": lambda n: listed("token##%06d", LONGEST_SECRET // 17, LONGEST_SECRET).replace("##", f"{n:02}"),
    "a list of short texts": lambda n: listed("##%d", LONGEST_SECRET // 8, 100).replace("##", f"{n:02}"),
    "a list of numbers": lambda n: f"[{', '.join([str(n)] * (LONGEST_SECRET // 4))}]",
    "a list in base64": lambda n: base64.b64encode(
        listed("t##%d", 60_000, 60_000).replace("##", str(n)).encode()
    ).decode(),
    "short lines": lambda n: f"{n}\n" * (LONGEST_SECRET // 3),
    "empty lines": lambda n: "\n" * (LONGEST_SECRET - 100) + "x" * n,
    "quotes": lambda n: '"' * (LONGEST_SECRET - n),
    "one letter": lambda n: "a" * (LONGEST_SECRET - n),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_looked_for_is_found_in_little_time_in_the_largest_secrets(kind: str) -> None:
    """The server does so for each final report."""
    secrets = json.dumps({f"secret{n}": LARGE[kind](n) for n in range(MOST_SECRETS)})
    begun = time.process_time()
    found = needles_of(secrets)
    assert time.process_time() - begun < 5
    assert len(found) <= masking.MOST


def test_values_are_looked_for_before_the_many_texts_that_one_of_them_holds() -> None:
    first = {"password": "hunter2-hunter2", "list": json.dumps([f"token{i:06}" for i in range(5000)])}
    for secrets in (first, dict(reversed(first.items()))):
        assert mask_text("with hunter2-hunter2", needles_of(json.dumps(secrets))) == "with ***"


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
    st.lists(st.sampled_from([b"abcdef", b"abcdefgh", b"defghijk", b"x", b"abc", b"hijk\n"]), max_size=20).map(
        b"".join
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
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
    length = mask_file(
        str(path), needles_of(json.dumps({"a": "hunter2-hunter2", "b": "aaaaaaaaab", "c": "k" * 300_000}))
    )
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
