"""Secrets in what a payload printed become ***: in files, as streams of any length, and in short texts.

Transforms carry the same functions, as each of them is one file.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import json
import os
import re
import stat
import urllib.parse
from collections import deque
from collections.abc import Callable, Iterator, Sequence

LEAST = 6
"""Characters; what is shorter would be found in texts that have nothing to do with it."""
MOST = 500
"""Texts that are looked for: each is a walk through all of the output."""
LONGEST = 1 << 16
"""Bytes; what is longer is looked for in pieces."""
EFFORT = MOST * LONGEST
"""Bytes of all that is made in order to find them: some of it is too short, too long or found already."""
EACH = 100
"""Bytes that a text counts besides its own: a secret may be a list of a million texts."""
BLOCK = 1 << 18
MASK = b"***"
URL_SAFE = bytes.maketrans(b"+/", b"-_")


def needles_of(secrets: str) -> list[bytes]:
    """What is looked for, given a JSON object of secrets, or any text: each value, each text in a value that is JSON
    itself or in base64, each of their lines, all of them as JSON writes them, and the values and texts as other languages
    write them.
    When there is too much, whole values come first, and what languages write last.
    """
    found: dict[bytes, None] = {}
    effort = EFFORT
    for one in candidates(secrets):
        if LEAST <= len(one) <= LONGEST:
            found[one] = None
        effort -= len(one) + EACH
        if len(found) == MOST or effort < 0:
            break
    return list(found)


def candidates(secrets: str) -> Iterator[bytes]:
    """What `needles_of` chooses from, in its order, some of it several times; made as it is asked for."""
    whole = []
    for text in texts_in(secrets):
        whole.append(text)
        yield from written_as_json(text)
    for text in whole:
        for line in text.splitlines():
            yield from written_as_json(line)
    for text in whole:
        data = text.strip().encode(errors="surrogatepass")
        if len(data) >= LEAST:
            yield from otherwise_written(data)


def texts_in(secrets: str) -> Iterator[str]:
    """The texts in a JSON object, or any text, then those in texts that are JSON themselves or in base64; each once."""
    seen: set[str] = set()
    shut: deque[str] = deque()
    values: list[object] = []
    try:
        values.append(json.loads(secrets))
    except (ValueError, RecursionError):
        values.append(secrets)
    while values:
        one = values.pop()
        if isinstance(one, (dict, list)):
            values += [*(one.values() if isinstance(one, dict) else one)][::-1]
        elif isinstance(one, str) and one not in seen:
            seen.add(one)
            shut.append(one)
            yield one
        while shut and not values:
            text = shut.popleft()
            with contextlib.suppress(ValueError, RecursionError):
                values.append(json.loads(text))
            with contextlib.suppress(ValueError):
                values.append(base64.b64decode("".join(text.split()), validate=True).decode())  # as files come


def written_as_json(text: str) -> Iterator[bytes]:
    """A text in pieces: as it is, in a JSON text such as the file of secrets, and as a JSON text in that file."""
    text = text.strip()
    for _ in range(3):
        data = text.encode(errors="surrogatepass")
        yield from (data[at : at + LONGEST] for at in range(0, max(1, len(data)), LONGEST))
        before, text = text, json.dumps(text)[1:-1]
        if text == before:
            return


def otherwise_written(data: bytes) -> Iterator[bytes]:
    """The forms in which programs write a value: for Python, a shell, an address, HTML, in hexadecimal and base64.

    None is shorter than the value. Base64 is found at any place of a longer text that was encoded as a whole, but for the
    few letters at its ends that also hold something else, and in lines of 64 or 76 letters when it begins with the value.
    """
    text = data.decode(errors="surrogateescape")
    forms = [repr(text)[1:-1], repr(data)[2:-1], json.dumps(text, ensure_ascii=False)[1:-1], html.escape(text)]
    forms += [text.replace("'", quote) for quote in ("\\'", "'\\''", "'\"'\"'")]
    forms += [text.replace('"', '\\"'), re.sub(r"""([][\s'"\\|&;()<>!{}*?^$`,])""", r"\\\1", text)]
    forms += [urllib.parse.quote(data, safe=safe) for safe in ("", "/", "!*'()~")]
    forms += [urllib.parse.quote_plus(data), data.hex(), data.hex().upper()]
    yield from (form.encode(errors="surrogateescape") for form in forms)
    for before in range(3):
        begun = base64.b64encode(bytes(before) + data)
        # A letter holds six bits: these ones hold bits of the value only.
        clean = begun[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        yield from (one for one in (clean, clean.translate(URL_SAFE)) if len(one) > LEAST)
    coded = base64.b64encode(data)
    yield from (coded, coded.rstrip(b"="), coded.translate(URL_SAFE).rstrip(b"="))
    for width in (64, 76):
        lines = (coded[at : at + width] for at in range(0, len(coded), width))
        yield from (one for one in lines if len(one) > LEAST)


def masked(read: Callable[[int], bytes], needles: Sequence[bytes]) -> Iterator[bytes]:
    """What `read` gives until it gives nothing, in pieces, without the needles. Never longer than what was read."""
    overlap = max(map(len, needles), default=1) - 1  # less than LONGEST
    kept, hidden, in_mask = b"", 0, False  # the first `hidden` bytes of what is kept are masked already
    while True:
        piece = read(BLOCK)
        text = kept + piece
        safe = max(0, len(text) - overlap) if piece else len(text)  # a needle may begin behind it, and not end here
        spans = []
        for needle in needles:
            start = text.find(needle)
            while start >= 0:
                spans.append((start, start + len(needle)))
                start = text.find(needle, start + len(needle))
        parts, at = [], hidden
        for start, end in sorted(spans):
            if start >= safe:
                break
            if start > at or not in_mask:
                parts += [text[at:start], MASK]
            at, in_mask = max(at, end), True
        if at < safe:
            parts.append(text[at:safe])
            in_mask = False
        yield b"".join(parts)
        if not piece:
            return
        kept, hidden = text[safe:], max(0, at - safe)


def mask_file(path: str, needles: Sequence[bytes], flags: int = os.O_NOFOLLOW) -> int:
    """Mask a plain file in its place; returns how long it is then, -1 when it is none. Raises OSError."""
    with open(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | flags), "r+b", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return -1
        length = 0
        for piece in masked(file.read, needles):
            behind = file.tell()
            file.seek(length)
            length += file.write(piece) or 0
            file.seek(behind)
        file.truncate(length)
        return length


# Transforms carry what stands above.


def mask_printed(needles: Sequence[bytes]) -> None:
    """Mask what this process and those that it started have printed, where that goes to files. They must have ended."""
    for number in (1, 2) if needles else ():
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.fstat(number).st_mode):
                os.lseek(number, mask_file(f"/proc/self/fd/{number}", needles, 0), os.SEEK_SET)


def mask_text(text: str, needles: Sequence[bytes]) -> str:
    if not needles or not text:
        return text
    found = b"".join(masked(io.BytesIO(text.encode(errors="surrogatepass")).read, needles))
    return found.decode(errors="replace")
