"""Decide how a collection can be opened safely on its file system.

Processes share a collection through memory (the `-shm` file of SQLite's write-ahead log), which
works only on one machine. On a network file system, one process at a time opens a collection, with
a rollback journal and a lock on the whole file. If locks do not work across machines either, the
collection is refused.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from exampp.errors import InputError

ONE_MACHINE = "EXAMPP_ONE_MACHINE"
"""Environment variable that asserts that no other machine opens the collection."""
_LOCAL = re.compile(
    "aufs|apfs|bcachefs|btrfs|ecryptfs|erofs|exfat|ext[234]|f2fs|fuseblk|fuse.fuse-overlayfs|"
    "hfs|hfsplus|iso9660|jfs|msdos|nilfs2|ntfs3?|overlay|ramfs|reiserfs|rootfs|shiftfs|squashfs|"
    "tmpfs|ubifs|udf|ufs|vfat|xfs|zfs"
)
"""Local file systems, which other machines cannot reach."""
_WITHOUT_LOCKS = re.compile(
    r"(9p|acfs|davfs|drvfs|fuse(?!blk|\.fuse-overlayfs|\.glusterfs)[^ ]*|macfuse|osxfuse|prl_fs|"
    r"vboxsf|virtiofs|vmhgfs|webdav)( .*)?|.*[ ,](nolock|local_lock=(all|posix)|localflock)(,.*)?"
)
"""Type and options of file systems with locks that may not work across machines."""
_SHARED_BYTES = (0x40000002, 510)
"""Offset and number of the bytes that SQLite locks in an open collection."""
_MEMORY_BYTE = (128, 1)
"""Offset of the byte that SQLite locks in a used `-shm` file."""
_LOCK = struct.Struct("hhqqi")
"""The `struct flock` of 64-bit Linux: type, whence, start, length, process."""
_OPENING_SECONDS = 2.0
"""Seconds to allow another process for opening or closing its `-shm` file."""


def opens_alone(path: Path) -> bool:
    """Return whether only one process may open the collection at a time.

    Raises:
        InputError: Locks do not work across machines.
    """
    kind = file_system(path.resolve().parent)
    if _LOCAL.fullmatch(kind.partition(" ")[0]):
        return False
    if _WITHOUT_LOCKS.fullmatch(kind) and not os.environ.get(ONE_MACHINE):
        raise InputError(
            f"is on a file system ({kind.partition(' ')[0]}) without locks across machines; "
            "simultaneous writes would damage it",
            file=path,
            hint="Copy it to a local disk and combine copies with exampp merge, or set "
            f"{ONE_MACHINE}=1 if no other machine opens it",
        )
    return True


def file_system(folder: Path) -> str:
    """Return type and mount options of a file system, such as `nfs4 rw,hard`."""
    if sys.platform == "win32":
        return "cifs" if _is_remote(folder) else "ntfs"
    best = ("", "unknown")
    with suppress(OSError):
        for place, kind in _mounts(folder.stat().st_dev):
            if folder.is_relative_to(place) and len(place) >= len(best[0]):
                best = (place, kind)
    return best[1]


def _is_remote(folder: Path) -> bool:
    drive_remote = 4
    windows = getattr(ctypes, "windll", None)
    return folder.drive.startswith("\\\\") or (
        windows is not None and windows.kernel32.GetDriveTypeW(f"{folder.drive}\\") == drive_remote
    )


@cache
def _mounts(_device: int) -> tuple[tuple[str, str], ...]:
    """Return mount points with type and options; read once per device."""
    if sys.platform == "linux":
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        points = []
        for line in lines:
            fields, _, source = line.partition(" - ")
            place, options = fields.split(" ")[4:6]
            kind, _, more = source.split(" ", 2)
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), place)
            points.append((place, f"{kind} {options},{more}"))
        return tuple(points)
    import subprocess

    output = subprocess.run(["mount"], capture_output=True, text=True, check=False).stdout
    mounts = re.findall(r"^.* on (.*) \((\w+)(?:, )?(.*)\)$", output, re.M)
    return tuple((place, f"{kind} {options}") for place, kind, options in mounts)


def refuse_second_name(path: Path) -> None:
    """Raise InputError if the file has a second name, and so a second write-ahead log.

    The second name may be a hard link, or a bind mount of the file in a container.
    """
    until = time.monotonic() + _OPENING_SECONDS
    # an import links a new collection and then removes its first name
    while (second := path.exists() and path.stat().st_nlink > 1) and time.monotonic() < until:
        time.sleep(0.02)
    place = str(path.resolve())
    with suppress(OSError):
        second |= any(place == mounted for mounted, _ in _mounts(path.stat().st_dev))
    if second:
        raise InputError(
            "has a second name (a hard link or bind mount) through which another process could "
            "damage it",
            file=path,
            hint="Use a copy; in a container, mount the folder instead of the file",
        )


def shares_memory(path: Path) -> bool:
    """Return whether all processes using the collection share its `-shm` file.

    False if the file is reached by two names or from two machines, or if the memory mapping is
    private. Detected only on Linux; elsewhere True.
    """
    memory = Path(f"{path.resolve()}-shm")
    if sys.platform != "linux" or sys.maxsize < 2**32 or not memory.exists():
        return True
    with suppress(OSError):
        if _is_private(memory):
            return False
        until = time.monotonic() + _OPENING_SECONDS
        while _locked_by_others(path, *_SHARED_BYTES):
            if _locked_by_others(memory, *_MEMORY_BYTE):
                return True
            # another process may be opening or closing the collection
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
    return True


def _is_private(memory: Path) -> bool:
    """Return whether this process has a private mapping of a file."""
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():
        if line.endswith(f" {memory}"):
            return line.split(" ")[1][3] == "p"
    return False


def _locked_by_others(path: Path, start: int, length: int) -> bool:
    """Return whether another process has locked these bytes of an open file.

    Uses the descriptor of SQLite: closing another one would release its locks.
    """
    import fcntl

    status = path.stat()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            if os.path.samestat(os.fstat(int(name)), status):
                question = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
                lock = _LOCK.unpack(fcntl.fcntl(int(name), fcntl.F_GETLK, question))
                return bool(lock[0] != fcntl.F_UNLCK)
    return False
