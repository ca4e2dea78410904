"""Texts as one word without a sign that a shell or PanDA's pilot would make something of. Pure.

The kernel takes no word of a command line that is longer than 128 kB, and a shell gets its command as one word: so they are
compressed. A job of a thousand files says their names twice, with sizes and checksums.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

SIGNS = b"._"
"""In the place of + and / of base64; no word begins with one, since compressed data begins with the same letter always."""


def as_word(texts: Sequence[str]) -> str:
    packed = zlib.compress(json.dumps(texts).encode())
    return base64.b64encode(packed, SIGNS).rstrip(b"=").decode()


def of_word(word: str) -> list[str]:
    """The texts. Raises ValueError or zlib.error for what is no such word."""
    packed = base64.b64decode(word + "=" * (-len(word) % 4), SIGNS, validate=True)
    texts: list[str] = json.loads(zlib.decompress(packed))
    return texts
