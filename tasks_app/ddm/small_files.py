"""Reading small pieces of files in the local storage element, for pages and books. What is read is bounded and untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tasks_app.ddm import local_files, logarchives
from tasks_app.ddm.addresses import Roots, storage_path
from tasks_app.ddm.rules.log_lines import Line, LineReader

LOG_MEMBERS = ("payload.stdout", "payload.stderr", "pilot.log", "pilotlog.txt")
MEMBER_LIMIT = 5000
PACKED_LIMIT = 4 * 1024 * 1024
"""Archives that are larger are read when somebody looks at them, not for their last line."""
LINE_LIMIT = 4096
MEMBERS_SHOWN = 300
LONGEST_NAME = 300


class StorageError(Exception):
    """A file that cannot be shown; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What is shown of a text file of `size` bytes and `line_count` lines: its end, or the `lines` around one of them.

    `member` is its whole name in the archive; `skipped`: bytes before its end that are left out. `errors` are the numbers of the
    first lines that tell of errors, `hits` the first of `hit_count` lines with what was looked for.
    """

    name: str
    member: str
    size: int
    skipped: int
    lines: list[Line]
    line_count: int = 0
    errors: list[int] = field(default_factory=list)
    hits: list[Line] = field(default_factory=list)
    hit_count: int = 0

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Log:
    """What is read of a log archive: ends of texts, and (name, bytes) of the files in it."""

    tails: list[Tail]
    members: list[tuple[str, int]]
    more: bool
    """Whether there are more files than `members` names."""
    ended: str = ""
    """Why the reading ended early, where trying again may help; a sentence."""


def path_of(surl: str | None, lfn: str, *, scope: str | None) -> Path:
    """The path of a file in a storage of this machine, from its URL or else from its scope and name in the site's own.

    Raises StorageError when the URL is not that of the file's own place in a storage, or when no file is there.
    """
    roots = Roots()
    place = storage_path(roots.own[-1], scope or "", lfn)
    if surl:
        try:
            path = local_files.path_of(surl)
        except ValueError as exc:
            raise StorageError(f"The file is at {surl}, which this site cannot read.") from exc
    else:
        path = place
    resolved = path.resolve()
    if resolved != place and not any(resolved.is_relative_to(real) for _, real in roots.served):
        raise StorageError("The file is outside this site's storage.")
    # Pilots report addresses: nobody reads another's file by reporting its address.
    if resolved != place and resolved not in roots.places(surl or "", scope, lfn):
        raise StorageError(
            f"The file was reported at {surl}, which is not the place for a file of that scope and name."
        )
    if not resolved.is_file():
        raise StorageError(f"{lfn} is not in this site's storage (yet).")
    return resolved


def small_file(path: Path, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes; raises StorageError when it is larger or unreadable."""
    try:
        with path.open("rb") as opened:
            content = opened.read(limit + 1)
    except OSError as exc:
        raise StorageError(f"{path.name} cannot be read: {exc.strerror}.") from exc
    if len(content) > limit:
        raise StorageError(f"{path.name} is larger than the {limit // 1000} kB that are shown here.")
    return content


def read_log(
    path: Path,
    *,
    limit: int,
    member: str = "",
    find: str = "",
    around: int = 0,
    clocks: logarchives.Clocks = logarchives.CLOCKS,
) -> Log:
    """The last `limit` bytes of each text of interest in a log archive (tar or tar.gz), and what files it holds.

    Texts come in the order of LOG_MEMBERS, whatever folder they are in; with `member`, it is that file alone, by its whole
    name. With `around` it is not the end, but what stands around the line of that number. Lines with `find` are found in all of
    the text. Nothing is unpacked to disk. Raises StorageError when it is no such archive, when none of these is in it, or when
    it unpacks to too much before one is found. Secrets of the payload are passed over.
    """
    found: dict[str, Tail] = {}
    members: list[tuple[str, int]] = []
    more, ended, wanted = False, "", (member,) if member else LOG_MEMBERS
    try:
        with path.open("rb") as raw:
            for number, entry in enumerate(logarchives.members_of(raw, clocks)):
                more = number >= MEMBER_LIMIT or len(members) >= MEMBERS_SHOWN
                if number >= MEMBER_LIMIT:
                    break
                if not entry.is_file or len(entry.name) > LONGEST_NAME:
                    continue
                content = logarchives.content_of(entry)
                if content is None:
                    continue
                if not more:
                    members.append((entry.name, entry.size))
                name = entry.name if member else PurePosixPath(entry.name).name
                if name in wanted and name not in found:
                    found[name] = _read(name, entry.name, content, entry.size, LineReader(limit, find, around))
    except logarchives.BROKEN as exc:
        again = " Please try again." if isinstance(exc, logarchives.TooLongError) else ""
        if not found:
            why = (
                f"cannot be shown: {exc}"
                if isinstance(exc, logarchives.TooMuchError)
                else "cannot be read as a log archive"
            )
            raise StorageError(f"{path.name} {why}.{again}") from exc
        more, ended = True, again and f"Not all of it was read: {exc}.{again}"
    if not found:
        raise StorageError(f"{path.name} holds none of {', '.join(wanted)}.")
    return Log([found[name] for name in wanted if name in found], members, more, ended)


def last_words(surl: str, lfn: str, scope: str) -> str:
    """The last line that a job's payload wrote to stderr, from its log archive; "" when there is none, or it is too large."""
    try:
        path = path_of(surl, lfn, scope=scope)
        if path.stat().st_size > PACKED_LIMIT:
            return ""
        tails = read_log(path, limit=LINE_LIMIT).tails
    except (StorageError, OSError, ValueError):
        return ""
    text = next((tail.text for tail in tails if tail.name == "payload.stderr"), "")
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _read(name: str, member: str, content: Iterable[bytes], size: int, reader: LineReader) -> Tail:
    for piece in content:
        reader.feed(piece)
    reader.close()
    lines, skipped = reader.shown(), reader.skipped(size)
    return Tail(name, member, size, skipped, lines, reader.lines, reader.errors, reader.hits, reader.hit_count)
