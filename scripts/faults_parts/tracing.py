"""strace, which makes the k-th call of a thread fail, or ends the process there.

It counts each call of each thread by itself. So a fault is put into a server that runs already, when the calls of its
start are past, and one client sends it one request after the other.
"""

import collections
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from .runs import spawn, started, until


@functools.cache
def reason_not():
    """The reason why strace cannot be used here, or nothing."""
    if not shutil.which("strace"):
        return "strace is not installed"
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        try:
            with Trace(sleeper.pid, ["read:error=EIO:when=1"]):
                return None
        except (TimeoutError, RuntimeError):
            return "strace may not trace here"
        finally:
            sleeper.kill()


def required():
    return "PROEM_REQUIRE_STRACE" in os.environ


def command(injections, paths=(), log="/dev/null"):
    calls = ",".join(injection.split(":")[0] for injection in injections)
    words = ["strace", "-f", "-o", str(log), "-e", f"trace={calls}", "-e", "signal=none"]
    words += [word for injection in injections for word in ("-e", f"inject={injection}")]
    return words + [word for path in paths for word in ("-P", str(path))]


class Trace:
    """strace on a process that runs; the faults are gone when it ends, and the process stays."""

    def __init__(self, process_id, injections, paths=()):
        self.log = tempfile.NamedTemporaryFile("r", prefix="proem-faults-trace-", delete=False)
        self.said = tempfile.NamedTemporaryFile("r", prefix="proem-faults-trace-", delete=False)
        with open(self.said.name, "w") as said:
            words = [*command(injections, paths, self.log.name), "-p", str(process_id)]
            self.process = spawn(words, stdout=said, stderr=said)

    def __enter__(self):
        try:
            until(20, self.is_attached, "strace attaches")
        except BaseException:
            self.__exit__()
            raise
        return self

    def is_attached(self):
        if self.process.poll() is not None:
            raise RuntimeError(pathlib.Path(self.said.name).read_text())
        return "attached" in pathlib.Path(self.said.name).read_text()

    def injected(self):
        """The number of calls of each kind that got a fault."""
        lines = pathlib.Path(self.log.name).read_text(errors="replace").splitlines()
        return collections.Counter(
            found[1] for line in lines if (found := re.search(r"(\w+)(?:\(| resumed>).*\(INJECTED\)", line))
        )

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        # What it traced goes on only when it has let go of it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        started.remove(self.process)
        self.counts = self.injected()
        for file in (self.log, self.said):
            file.close()
            os.unlink(file.name)
