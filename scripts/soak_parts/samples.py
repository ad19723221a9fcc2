"""Samples of a server's memory, descriptors and threads."""

import contextlib
import pathlib
import threading
import time


class Samples:
    """One sample an interval, with the phase and the part of the run that it belongs to."""

    def __init__(self, server, store, record, interval):
        self.server, self.files, self.record, self.interval = server, files(store), record, interval
        self.all, self.quarter, self.begun, self.is_over = [], 0, time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        """Until the end, or the server's."""
        with contextlib.suppress(OSError, TypeError):  # One that has ended has no memory to tell of.
            while not self.is_over.wait(self.interval):
                self.all.append(self.take())

    def take(self):
        sizes = [path.stat().st_size if path.exists() else 0 for path in self.files]
        return {
            "at": round(time.monotonic() - self.begun, 1),
            "quarter": self.quarter,
            "phase": self.record.phase,
            "memory_kb": self.server.status("VmRSS"),
            "descriptors": self.server.descriptors(),
            "threads": self.server.threads(),
            "cpu_seconds": round(self.server.cpu(), 2),
            "store_bytes": sizes[0] if sizes else None,
            "log_bytes": sizes[1] if sizes else None,
        }

    def end(self):
        self.is_over.set()
        self.thread.join()


def files(store):
    """A file's store and its log; a database's own are not to be seen from here."""
    if "://" in str(store):
        return []
    return [pathlib.Path(store), pathlib.Path(f"{store}-wal")]
