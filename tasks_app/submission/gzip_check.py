"""Whether a gzip file that arrives in pieces is whole, and does not hold too much."""

from __future__ import annotations

import zlib

from jedisite.vocabulary.words import thousands

UNPACKED_LIMIT_BYTES = 5 * 1024**3
"""Of what an archive holds; transforms unpack no more."""
STEP_BYTES = 1 << 20
PACKED_STEP_BYTES = 1 << 14
"""Each part of an archive has what is behind it in the same step copied: in long steps, very many parts took hours."""
PARTS_LIMIT = 200_000
"""Of one archive. Tools that pack in parallel make one of each 64 KiB or more."""
FREE_BYTES, FREE_FACTOR = 1024**3, 100
"""What unpacks to more than the one has to weigh at least a hundredth of it: a few MB of zeros took a thread for long."""

LARGE_BYTES = 32 * 1024**2
"""What unpacks to more keeps a thread for longer than other calls can wait: a second and more for each 50 MB."""


class BadGzipError(ValueError):
    """What arrives is no gzip file, or holds too much; the sentence says which."""


class GzipCheck:
    """Reads a gzip file in pieces, and keeps nothing of what it holds. Its parts bear their checksums and sizes."""

    def __init__(self) -> None:
        self._part = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._packed = self._unpacked = 0
        self._parts = 1

    def write(self, block: bytes) -> None:
        """Raises BadGzipError."""
        self._packed += len(block)
        for start in range(0, len(block), PACKED_STEP_BYTES):
            self._step(block[start : start + PACKED_STEP_BYTES])

    def _step(self, block: bytes) -> None:
        while block:
            if self._part.eof:  # the next part; what follows the last one may be zeros
                if not block.strip(b"\0"):
                    return
                self._part = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._parts += 1
            try:
                self._unpacked += len(self._part.decompress(block, STEP_BYTES))
            except zlib.error as exc:
                raise BadGzipError("the file is not a gzip archive, or was damaged in transfer") from exc
            self._check()
            block = self._part.unused_data if self._part.eof else self._part.unconsumed_tail

    def _check(self) -> None:
        if self._unpacked > UNPACKED_LIMIT_BYTES:
            raise BadGzipError(
                f"the sandbox contains more than {thousands(UNPACKED_LIMIT_BYTES)} bytes when it is unpacked"
            )
        if self._unpacked > max(FREE_BYTES, FREE_FACTOR * self._packed):
            free = thousands(FREE_BYTES)
            raise BadGzipError(
                f"the sandbox unpacks to more than {free} bytes, and to more than {FREE_FACTOR} times its size"
            )
        if self._parts > PARTS_LIMIT:
            raise BadGzipError(f"the sandbox has more than {thousands(PARTS_LIMIT)} gzip parts: pack it in one")

    @property
    def is_large(self) -> bool:
        """Whether so much was unpacked that few are to be at it at once."""
        return self._unpacked > LARGE_BYTES

    @property
    def is_whole(self) -> bool:
        return self._part.eof
