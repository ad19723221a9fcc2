"""A network of two machines; one of them can drop all packets without an error."""

import contextlib
import itertools
import os
import subprocess

from .runs import Postgres

numbers = itertools.count(os.getpid() % 1000 * 10)
spaces: list["Network"] = []


class Network:
    """A namespace with a cable to it. PostgreSQL runs in there."""

    def __init__(self):
        number = next(numbers)
        self.name, self.cable = f"proem-faults-{number}", f"pf{number}"
        base = f"10.213.{number // 64 % 256}.{number % 64 * 4}".rpartition(".")
        self.near, self.far = (f"{base[0]}.{int(base[2]) + host}" for host in (1, 2))
        spaces.append(self)
        ip("netns", "add", self.name)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "far", "netns", self.name)
        ip("address", "add", f"{self.near}/30", "dev", self.cable)
        ip("link", "set", self.cable, "up")
        for words in (
            ("address", "add", f"{self.far}/30", "dev", "far"),
            ("link", "set", "far", "up"),
            ("link", "set", "lo", "up"),
        ):
            ip("-n", self.name, *words)

    def silence(self):
        """Drops packets from there, acknowledgements of the kernel included."""
        ip("-n", self.name, "route", "add", "blackhole", f"{self.near}/32")

    def speak(self):
        ip("-n", self.name, "route", "del", "blackhole", f"{self.near}/32")

    def remove(self):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            ip("netns", "del", self.name)
        spaces.remove(self)


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def remove_all():
    for space in list(spaces):
        space.remove()


@contextlib.contextmanager
def postgres_far_away(place):
    """PostgreSQL on the other machine, and the network between."""
    place.mkdir()
    place.chmod(0o755)
    network = Network()
    try:
        # Not `ip netns exec`: it takes a copy of every mount with it, which keeps file systems of others in use.
        server = Postgres(place, network.far, ["nsenter", f"--net=/run/netns/{network.name}"])
        try:
            yield server, network
        finally:
            server.stop()
    finally:
        network.remove()
