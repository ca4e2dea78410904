"""Files of this machine, opened for what they are: the file at exactly a path, or the one that trusted links lead to."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Collection
from pathlib import Path
from typing import IO, Final

MOST_LINKS: Final = 40
"""As many as Linux follows."""


class ForeignLinkError(ValueError):
    """Somebody's link leads to a file of somebody else; the sentence says whose."""


def open_exactly(path: Path) -> IO[bytes]:
    """The plain file at exactly this path, open. Raises OSError when there is none, or a link on the way leads elsewhere."""
    # Without waiting: a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    # The path of what was opened, whatever becomes of the folders meanwhile.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        says = "it is not a plain file"
    elif os.readlink(f"/proc/self/fd/{descriptor}") != str(path):
        says = "a link on the way to it leads elsewhere"
    else:
        return open(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, says, str(path))


def open_led_to(path: Path, trusted: Collection[int] | None = None) -> tuple[Path, IO[bytes]]:
    """The plain file that a path leads to, with its path without links, open.

    Links of `trusted` users (by number; default: root and our own) may lead anywhere, those of others only to files of their
    own: we can read more than whoever made the link. Raises OSError, and ForeignLinkError.
    """
    links, real = _followed(path)
    stream = open_exactly(real)
    owner = os.fstat(stream.fileno()).st_uid
    allowed = {owner, *((0, os.geteuid()) if trusted is None else trusted)}
    for link, maker in links:
        if maker not in allowed:
            stream.close()
            raise ForeignLinkError(
                f"{link} is a link of the user {_name(maker)} to {real}, a file of the user {_name(owner)}: links of others are "
                "followed only to their own files; name the file itself"
            )
    return real, stream


def _followed(path: Path) -> tuple[list[tuple[Path, int]], Path]:
    """Symbolic links on the way to a file, each with the number of its owner, and the path of the file without any."""
    links: list[tuple[Path, int]] = []
    at = path.absolute()
    while link := next((one for one in (*reversed(at.parents), at) if one.is_symlink()), None):
        if len(links) >= MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        links.append((link, link.lstat().st_uid))
        at = link.parent / os.readlink(link) / at.relative_to(link)
    return links, Path(os.path.normpath(at))


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
