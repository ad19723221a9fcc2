"""The power fails: the file system stops at once, and what it had not written is gone.

ext4 on a loop device is shut down without its log being flushed, as after the power fails; then it is mounted again.
Only what a client had read before that moment counts as acknowledged: a flush that is under way at that moment may be
reported as done without being so (a plain file that is appended to and flushed shows the same here). The control does the same to a database that
does not wait for the disk: if that loses nothing either, then this looks at nothing.
"""

import contextlib
import fcntl
import os
import random
import sqlite3
import struct
import subprocess
import sys
import time
from typing import Any

from .clients import Load, differences
from .report import row, skipped
from .runs import NotStarted, Server, folder, mount, mounts, proem, settings, spawn, started, unmount

FS_IOC_SHUTDOWN, WITHOUT_LOG = 0x8004587D, struct.pack("I", 2)

# Tells the number of each row that is committed.
CARELESS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = " + sys.argv[2] + "; CREATE TABLE IF NOT EXISTS row (number INTEGER)")
for number in range(1_000_000):
    connection.execute("INSERT INTO row VALUES (?)", [number])
    print(number, flush=True)
"""


class Disk:
    """A file system of its own, whose power can fail."""

    def __init__(self, place):
        self.image, self.point = place / "image", place / "disk"
        self.point.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(256 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True, stderr=subprocess.DEVNULL)
        self.plug_in()

    def plug_in(self):
        if not mount(self.point, "-o", "loop", self.image):
            raise PermissionError("no loop device may be mounted here")

    def cut(self):
        """The moment before which everything counts."""
        place = os.open(self.point, os.O_RDONLY)
        try:
            before = time.monotonic()
            fcntl.ioctl(place, FS_IOC_SHUTDOWN, WITHOUT_LOG)
            return before
        finally:
            os.close(place)

    def plug_in_again(self):
        unmount(self.point)
        self.plug_in()


class Timed(dict):
    """Also knows when each epoch was acknowledged first."""

    def __init__(self):
        self.times: dict[Any, float] = {}

    def __setitem__(self, key, text):
        self.times.setdefault(key, time.monotonic())
        super().__setitem__(key, text)


class TimedLoad(Load):
    memory = Timed


def cuts(disk, place, count):
    chance, begun = random.Random(29), time.monotonic()
    acknowledged: dict[Any, str] = {}
    late: dict[Any, str] = {}
    tried: dict[Any, Any] = {}
    problems: list[str] = []
    store = disk.point / "proem.db"
    damaged = 0
    for cut in range(count):
        try:
            server = Server(place, store)
        except NotStarted as error:
            problems.append(str(error))
            break
        load = TimedLoad([server], f"cut{cut}")
        time.sleep(chance.uniform(0.02, 0.5))
        moment = disk.cut()
        server.kill()
        load.end()
        disk.plug_in_again()
        tried |= load.tried
        times = load.acknowledged.times
        for key, text in load.acknowledged.items():
            (acknowledged if times[key] < moment else late)[key] = text
        # The file system answers every call with an error, from the cut on: the server may call that damage.
        problems += [problem for problem in load.problems if not problem.startswith("500")]
        code, out, _ = proem("store", "check", "--store", store)
        damaged += code != 0 or "no damage" not in out
    lost, foreign, late_lost = len(acknowledged), 0, len(late)
    try:
        (lost, foreign), (late_lost, _) = differences(store, acknowledged, tried), differences(store, late, tried)
    except ValueError as error:
        problems.append(str(error))
    seen = (
        f"{len(acknowledged)} acknowledged epochs, {lost} lost, {foreign} foreign; of {len(late)} that were read a moment "
        f"later {late_lost} lost; {damaged} checks found damage, {len(problems)} problems"
    )
    row(
        "power",
        "the power fails under load",
        count,
        "every acknowledged epoch is there, byte for byte; no repair",
        seen,
        acknowledged and not (lost or foreign or damaged or problems),
        seconds=round(time.monotonic() - begun, 1),
        acknowledged=len(acknowledged),
        late=len(late),
        late_lost=late_lost,
        problems=problems[:5],
    )


def careless(disk, synchronous, count):
    """The number of acknowledged rows, of lost ones among them, and of power cuts."""
    told = lost = cuts = 0
    for cut in range(count):
        store = disk.point / f"{synchronous}-{cut}.db"
        writer = spawn(
            [sys.executable, "-c", CARELESS, str(store), synchronous],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        last = -1
        while last < 200:
            last = int(writer.stdout.readline())
        disk.cut()
        writer.kill()
        writer.communicate()
        started.remove(writer)
        disk.plug_in_again()
        found = rows_of(store)
        told, lost, cuts = told + last + 1, lost + max(0, last + 1 - found), cuts + (found < last + 1)
    return told, lost, cuts


def rows_of(store):
    """The number of conversations; 0 if the file is not a database any more."""
    try:
        with sqlite3.connect(store) as connection:
            return connection.execute("SELECT count(*) FROM row").fetchone()[0]
    except sqlite3.DatabaseError:
        return 0
    finally:
        connection.close()


def control(disk, count):
    for synchronous in ("NORMAL", "OFF"):
        told, lost, cuts_ = careless(disk, synchronous, count)
        row(
            "power",
            f"control: the same, SQLite with synchronous = {synchronous}",
            count,
            "loses rows, or this sees nothing",
            f"{told} acknowledged rows, {lost} lost, in {cuts_} of {count} cuts",
            lost,
            lost=lost,
        )


def run(short):
    count = settings.count or (2 if short else 100)
    with folder() as place, contextlib.ExitStack() as at_the_end:
        try:
            at_the_end.callback(lambda: str(place / "disk") in mounts and unmount(place / "disk"))
            disk = Disk(place)
            disk.cut()
            disk.plug_in_again()
        except (OSError, subprocess.CalledProcessError) as error:
            skipped("power", "the power fails under load", error)
            return
        cuts(disk, place, count)
        control(disk, min(count, 10))
