"""Decide how a collection can be opened safely, from where its file lies.

Several processes share a collection through memory (the `-shm` file of SQLite's write-ahead log),
and only the processes of one machine share memory. On a network file system one process at a time
opens a collection, with a rollback journal and a lock on the whole file. If locks do not reach
other machines either, a collection is not opened at all.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from exampp.errors import InputError

ONE_MACHINE = "EXAMPP_ONE_MACHINE"
"""The environment variable that promises that no other machine opens the collection."""
_LOCAL = re.compile(
    "aufs|apfs|bcachefs|btrfs|ecryptfs|erofs|exfat|ext[234]|f2fs|fuseblk|fuse.fuse-overlayfs|"
    "hfs|hfsplus|iso9660|jfs|msdos|nilfs2|ntfs3?|overlay|ramfs|reiserfs|rootfs|shiftfs|squashfs|"
    "tmpfs|ubifs|udf|ufs|vfat|xfs|zfs"
)
"""Local file systems, which no other machine can reach."""
_WITHOUT_LOCKS = re.compile(
    r"(9p|acfs|davfs|drvfs|fuse(?!blk|\.fuse-overlayfs|\.glusterfs)[^ ]*|macfuse|osxfuse|prl_fs|"
    r"vboxsf|virtiofs|vmhgfs|webdav)( .*)?|.*[ ,](nolock|local_lock=(all|posix)|localflock)(,.*)?"
)
"""Type and options of file systems whose locks may not reach the other machines."""
_SHARED_BYTES = (0x40000002, 510)
"""The place and number of the bytes that SQLite locks in the file of an open collection."""
_MEMORY_BYTE = (128, 1)
"""The byte that SQLite locks in the `-shm` file while it uses it."""
_LOCK = struct.Struct("hhqqi")
"""The `struct flock` of 64-bit Linux: type, whence, start, length, process."""
_OPENING_SECONDS = 2.0
"""Seconds that another process may take to open or close its `-shm` file."""


def opens_alone(path: Path) -> bool:
    """Return whether only one process may open the collection, since other machines may reach it.

    Raises:
        InputError: Locks do not keep other machines out either.
    """
    kind = file_system(path.resolve().parent)
    if _LOCAL.fullmatch(kind.partition(" ")[0]):
        return False
    if _WITHOUT_LOCKS.fullmatch(kind) and not os.environ.get(ONE_MACHINE):
        raise InputError(
            f"is on a file system ({kind.partition(' ')[0]}) that does not keep two machines from "
            "writing at once, which would damage it",
            file=path,
            hint="Copy it to a local disk, and bring copies together with exampp merge; or set "
            f"{ONE_MACHINE}=1 if no other machine opens it",
        )
    return True


def file_system(folder: Path) -> str:
    """Return the type of a folder's file system and its mount options, as in `nfs4 rw,hard`."""
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
    """Return mount points with type and options of their file systems; read once per device."""
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
    output = subprocess.run(["mount"], capture_output=True, text=True, check=False).stdout
    mounts = re.findall(r"^.* on (.*) \((\w+)(?:, )?(.*)\)$", output, re.M)
    return tuple((place, f"{kind} {options}") for place, kind, options in mounts)


def refuse_second_name(path: Path) -> None:
    """Raise InputError if the file has another name, under which it has another write-ahead log.

    Such a name is a hard link, or a mount of the file alone, as a container may have it.
    """
    until = time.monotonic() + _OPENING_SECONDS
    # an import links a new collection into its place, and then removes the first name
    while (second := path.exists() and path.stat().st_nlink > 1) and time.monotonic() < until:
        time.sleep(0.02)
    place = str(path.resolve())
    with suppress(OSError):
        second |= any(place == mounted for mounted, _ in _mounts(path.stat().st_dev))
    if second:
        raise InputError(
            "has a second name, by which another process could damage it",
            file=path,
            hint="Copy it and use the copy; into a container, mount its folder and not the file",
        )


def shares_memory(path: Path) -> bool:
    """Return whether all processes that use the collection share its `-shm` file with this one.

    False if the same file is reached by two names or from two machines, or if the memory is mapped
    for one process. Only Linux can tell; elsewhere True is assumed.
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
            # another process may be about to open it, or to close the collection
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
    return True


def _is_private(memory: Path) -> bool:
    """Return whether this process has mapped a file privately."""
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():
        if line.endswith(f" {memory}"):
            return line.split(" ")[1][3] == "p"
    return False


def _locked_by_others(path: Path, start: int, length: int) -> bool:
    """Return whether another process holds a lock on these bytes of an open file.

    Uses SQLite's own descriptor: closing another one would release its locks.
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
