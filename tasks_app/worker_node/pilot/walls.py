"""Walls round a payload: it sees the system's programs and its own folder, and no process, file or port of anybody else.

bubblewrap builds them out of the kernel's namespaces: for root, who then hands the payload to a user that nothing else
runs as, and for everybody else where the kernel gives user namespaces to all. Linux; no Django.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tasks_app.worker_node.pilot import syscalls

JOB = "/job"
"""Where a payload finds its folder."""
FIRST_UID = 0x7000_0000
"""Users above are nobody's by the rules of systemd and of the distributions; each pilot has one of its own."""
MOST_UIDS = 1 << 22
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "group",
    "hosts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
KEPT = ("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH")
"""Variables of our environment that payloads get, beside those that begin with LC_; what else is there is our own."""
SHARED_MEMORY_BYTES = 512 * 1024**2
PROCESSES = 1024
"""Processes and threads of a payload."""
PROBE_LIMIT_S = 20.0
MEMORY_SLACK = 2 * 1024**3
FILE_SLACK = 1024**3
VICTIM = b"1000"
"""When memory is short the kernel ends the payload first, and not the database."""


@dataclass(frozen=True, slots=True)
class Walls:
    """`uid` None: the payload stays who we are. `readable`: folders that it sees besides the system's, and cannot change.

    `hidden` is seen by no payload, whatever is readable. With `network` it reaches what this machine reaches.
    With `nests` more walls can be put up inside.
    `shown` are pairs: what of ours it sees elsewhere and cannot change, and where; `links`, too: what a link leads to, and
    where the link is.
    """

    uid: int | None = None
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    nests: bool = False

    def around(self, argv: Sequence[str], folder: Path | None, refused: Sequence[int] = ()) -> list[str]:
        """The command that runs `argv` in its folder, or in none. It inherits what `refused_calls` gives, if that is given."""
        command = [
            "bwrap",
            "--die-with-parent",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        if self.uid is None:
            command += ["--unshare-user"]
        else:
            command += [
                "--cap-drop",
                "ALL",
                "--cap-add",
                "CAP_SETUID",
                "--cap-add",
                "CAP_SETGID",
                "--cap-add",
                "CAP_SETPCAP",
            ]
            command += ["--cap-add", "CAP_SYS_ADMIN"] if self.nests else []
        command += [] if self.network else ["--unshare-net"]
        for fd in refused:
            command += ["--seccomp", str(fd)]
        command += ["--proc", "/proc", "--dev", "/dev"]
        command += ["--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
        if folder:
            command += ["--bind", str(folder), JOB, "--bind", str(folder / "tmp"), "/tmp"]
        else:
            command += ["--tmpfs", "/tmp"]
        for path in filter(os.path.lexists, SYSTEM):
            # Folders that are links on a system of today are links in there.
            command += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
        command += ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/etc/ssl"]
        for name in ETC:
            command += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        readable = [*_python(), *self.readable]
        command += _folders_above(readable)
        for path in readable:
            command += ["--ro-bind", path, path]
        hidden = [p for p in self.hidden if any(Path(p).is_relative_to(seen) for seen in (*SYSTEM, *readable))]
        for path in hidden:
            command += ["--perms", "0711", "--tmpfs", path]
        command += _folders_above([where for _, where in (*self.shown, *self.links) if not where.startswith(f"{JOB}/")])
        for what, where in self.shown:
            command += ["--ro-bind", what, where]
        for target, where in self.links:
            command += ["--symlink", target, where]
        for path in (*hidden, "/dev", "/"):
            command += ["--remount-ro", path]
        command += ["--chdir", "/", "--"]
        if self.uid is not None:
            who = str(self.uid)
            # Who is not root makes a /proc only where one is there of which nothing is covered; bwrap covers root's.
            command += (
                ["sh", "-c", 'mount -t proc -o nosuid,nodev,noexec proc /proc && exec "$@"', "sh"] if self.nests else []
            )
            command += ["setpriv", "--reuid", who, "--regid", who, "--clear-groups", "--no-new-privs"]
            command += ["--bounding-set=-all", "--inh-caps=-all", "--"]
        # Not by bwrap: root without its rights may not enter a folder that is the payload's alone.
        return [*command, "env", f"--chdir={JOB}", *argv] if folder else [*command, *argv]

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """What of our environment a payload gets, with a home of its own."""
        kept = {name: value for name, value in outer.items() if name in KEPT or name.startswith("LC_")}
        return kept | {"HOME": f"{JOB}/tmp", "TMPDIR": f"{JOB}/tmp", "USER": "payload", "LOGNAME": "payload"}

    def of_another(self, number: int) -> Walls:
        """The same for a user of its own: for each of several pilots that one process starts."""
        return self if self.uid is None else replace(self, uid=_payload_uid(number))

    def hand_over(self, folder: Path) -> None:
        """Give the folder and what the pilot has put into it to the payload's user, who may open its outputs once more:
        /dev/stderr is what stderr is."""
        if self.uid is None:
            return
        for path in (folder, *folder.iterdir()):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)


@contextmanager
def refused_calls() -> Iterator[tuple[int, ...]]:
    """An open file with the filter of calls for one start of bwrap; none on a machine for which there is no filter."""
    program = syscalls.program(os.uname().machine)
    if not program:
        yield ()
        return
    fd = os.memfd_create("refused calls")
    try:
        os.write(fd, program)
        os.lseek(fd, 0, os.SEEK_SET)
        yield (fd,)
    finally:
        os.close(fd)


def find(*, readable: Sequence[str] = (), hidden: Sequence[str] = (), network: bool = False) -> Walls | str:
    """The walls that this machine can build, tried out; or a sentence on why it can build none."""
    walls = Walls(_payload_uid(os.getpid()) if os.geteuid() == 0 else None, tuple(readable), tuple(hidden), network)
    if not shutil.which("bwrap"):
        return "bubblewrap (bwrap) is not installed"
    if walls.uid is not None and not shutil.which("setpriv"):
        return "setpriv, of util-linux, is not installed"
    with refused_calls() as refused:
        said = tried(walls.around(["true"], None, refused), refused)
    return f"bwrap cannot make namespaces here: {said}" if said else walls


def tried(command: Sequence[str], inherits: Sequence[int] = ()) -> str:
    """What a command said that failed; "" for one that did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False, pass_fds=inherits
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {PROBE_LIMIT_S:.0f} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]


def _payload_uid(number: int) -> int:
    """A user that nobody else on this machine runs as; in a container that has few users, one of the last of them."""
    number %= MOST_UIDS
    with open("/proc/self/uid_map") as file:
        ranges = [(int(first), int(count)) for first, _, count in map(str.split, file)]
    wished = FIRST_UID + number
    if any(first <= wished < first + count for first, count in ranges):
        return wished
    first, count = max(ranges)
    return first + count - 2 - number % max(1, min(5000, count // 4))


def _folders_above(paths: Sequence[str]) -> list[str]:
    """Words that make the folders above these, open to the payload's user."""
    above = {str(folder) for path in paths for folder in Path(path).parents if folder != Path("/")}
    return [word for path in sorted(above - set(SYSTEM)) for word in ("--perms", "0755", "--dir", path)]


def _python() -> list[str]:
    """Folders of the Python that payloads find first in their PATH, where they are not the system's."""
    return [path for path in {sys.prefix, sys.base_prefix} if not path.startswith("/usr/") and path != "/usr"]


def limit(memory_mb: int, disk_mb: int, folder: Path) -> dict[int, int]:
    """Limits of the kernel (number of the resource: value) for each process of a payload; 0 means that none is known.

    They are fuses, well above what the pilot itself watches: for what grows faster than it looks.
    """
    memory = memory_mb * 1024**2 if memory_mb else psutil.virtual_memory().total // 2
    half = shutil.disk_usage(folder).free // 2
    largest = disk_mb * 1024**2
    return {
        resource.RLIMIT_DATA: 2 * memory + MEMORY_SLACK,
        resource.RLIMIT_FSIZE: min(2 * largest + FILE_SLACK, max(half, largest)) if disk_mb else half,
        resource.RLIMIT_NPROC: _threads_of_user() + PROCESSES,
    }


def _threads_of_user() -> int:
    """How many there are of our user outside of the walls: older kernels count them together with those inside."""
    if os.geteuid() == 0:
        return 0
    mine = os.geteuid()
    return sum(
        process.info["num_threads"] or 0
        for process in psutil.process_iter(["uids", "num_threads"])
        if process.info["uids"] and process.info["uids"].real == mine
    )


def obey(limits: Mapping[int, int]) -> None:
    """In the child, before it becomes the payload: take the limits, as far as ours are not narrower yet."""
    for what, most in limits.items():
        _, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(what, (most, most))
    with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(VICTIM)
