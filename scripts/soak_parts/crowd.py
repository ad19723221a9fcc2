"""Sockets that send a byte of a header, or of a body, now and then; those that the server closes are opened again."""

import contextlib
import socket
import threading

from faults_parts.slow import Slow

BYTE_SECONDS = 5  # Seconds between two bytes of a socket.
STEPS = 50


class Crowd:
    def __init__(self, server, count):
        self.server, self.is_over, self.sent, self.closed = server, threading.Event(), 0, 0
        self.sockets = [self.open(number) for number in range(count)]
        self.thread = threading.Thread(target=self.drip, daemon=True)
        self.thread.start()

    def open(self, number):
        """One of three sends a body that does not end, one a header, one nothing."""
        try:
            connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
            if number % 3 == 1:
                connection.sendall(Slow.HEAD + b"Content-Length: 1000000\r\n\r\n{")
            connection.setblocking(False)
            return connection
        except OSError:
            return None

    def drip(self):
        step = 0
        while not self.is_over.wait(BYTE_SECONDS / STEPS):
            for number in range(step % STEPS, len(self.sockets), STEPS):
                if not self.push(number, step // STEPS):
                    self.closed += 1
                    if self.sockets[number]:
                        self.sockets[number].close()
                    self.sockets[number] = self.open(number)
            step += 1

    def push(self, number, at):
        """True if the connection is still open."""
        connection = self.sockets[number]
        if connection is None:
            return False
        try:
            if number % 3 < 2:
                connection.send((Slow.HEAD[at % len(Slow.HEAD) :][:1], b" ")[number % 3])
                self.sent += 1
            with contextlib.suppress(BlockingIOError):
                return bool(connection.recv(4096))
        except OSError:
            return False
        return True

    def end(self):
        self.is_over.set()
        self.thread.join()
        for connection in self.sockets:
            if connection:
                connection.close()
