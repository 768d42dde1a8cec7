# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The last broadcasts of a rank, for those that lack one, by TCP. Who asks names token and number; the
answer is the lengths and a digest of each block, or null. It then asks for the blocks that it has
not, and gets their bytes, and + if they were unchanged all the time. No torch is in here."""
import collections
import contextlib
import hashlib
import json
import socket
import struct
import threading
import time

from . import door

BLOCK = 1 << 20
MAX_LINE = 1 << 26  # bytes; a TiB has 2^20 blocks
MAX_REQUEST = 200  # bytes of token and number
SO_MAX_PACING_RATE = 47


def pieces(lengths, size):
    """The messages of buffers that are sent as one stream: for each its list of (buffer, begin, end)."""
    message, room = [], size
    for b, length in enumerate(lengths):
        at = 0
        while at < length:
            take = min(room, length - at)
            message.append((b, at, at + take))
            at, room = at + take, room - take
            if room == 0:
                yield message
                message, room = [], size
    if message:
        yield message


def digest(buffers, parts):
    h = hashlib.blake2b(digest_size=16)
    for b, begin, stop in parts:
        h.update(buffers[b][begin:stop])
    return h.hexdigest()


class Keeper:
    """References to the buffers of the last broadcasts, and a thread that gives them to who knows the token, to one at a
    time; rate bounds what it sends, in bytes a second, where it is not 0."""

    def __init__(self, ip, depth, token, rate=0):
        self.token, self.rate, self.sent = token, rate, 0  # sent: bytes of blocks
        self.kept = collections.deque(maxlen=depth)  # (n, buffers, owners, unchanged)
        self.door, self.turn = door.Door(), threading.Lock()
        self.listener = socket.create_server((ip, 0), family=socket.AF_INET6 if ":" in ip else socket.AF_INET)
        self.at = self.listener.getsockname()[:2]
        threading.Thread(target=self.run, daemon=True, name="gleam-keeper").start()

    def add(self, n, buffers, owners, unchanged):
        self.kept.append((n, buffers, owners, unchanged))

    def drop(self, owners):
        """Forgets what is about to be overwritten."""
        self.kept = collections.deque((k for k in self.kept if not k[2] & owners), self.kept.maxlen)

    def close(self):
        self.listener.close()

    def run(self):
        while True:
            try:
                sock, at = self.listener.accept()
            except OSError:
                if self.listener.fileno() < 0:
                    return
                time.sleep(0.1)  # this process has no room for another one
                continue
            out = self.door.enter(sock, at[0])
            if out:
                with contextlib.suppress(OSError):  # it has just ended
                    out.shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self.meet, args=(sock,), daemon=True, name="gleam-keeper").start()

    def meet(self, sock):
        """Has who knows the token served, when it is their turn."""
        with sock:
            try:
                token, n = self.request(sock).split()
                self.door.leave(sock)
                if not door.same(token.decode(), self.token):
                    sock.sendall(b"null\n")
                    return
                with self.turn:
                    self.serve(sock, int(n))
            except (OSError, ValueError, TypeError, IndexError):
                pass
            finally:
                self.door.leave(sock)

    @staticmethod
    def request(sock):
        """The first line, if it comes in time."""
        line, until = b"", time.monotonic() + door.HELLO
        while not line.endswith(b"\n") and len(line) < MAX_REQUEST:
            sock.settimeout(max(until - time.monotonic(), 1e-3))
            more = sock.recv(MAX_REQUEST - len(line))
            if not more:
                break
            line += more
        return line

    def serve(self, sock, n):
        found = [k for k in list(self.kept) if k[0] == n]
        if not found:
            sock.sendall(b"null\n")
            return
        sock.settimeout(30)
        if self.rate:
            sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("Q", self.rate))
        _, buffers, _, unchanged = found[0]
        lengths = [len(b) for b in buffers]
        blocks = list(pieces(lengths, BLOCK))
        sock.sendall(json.dumps([lengths, [digest(buffers, parts) for parts in blocks]]).encode() + b"\n")
        with sock.makefile("rb") as f:
            wanted = json.loads(f.readline(MAX_LINE))
        for i in wanted:
            for b, begin, stop in blocks[i]:
                sock.sendall(buffers[b][begin:stop])
                self.sent += stop - begin
        sock.sendall(b"+" if unchanged() and any(k is found[0] for k in list(self.kept)) else b"-")


def fetch(at, token, n, buffers):
    """Fills buffers with broadcast n from the Keeper there, which had it all the time; ValueError says what it has not.
    What they have of it already is not sent."""
    with socket.create_connection(at, 10) as sock, sock.makefile("rb") as f:
        sock.sendall(b"%s %d\n" % (token.encode(), n))
        there = json.loads(f.readline(MAX_LINE) or '"ended"')
        if there is None:
            raise ValueError("has not kept it")
        if there == "ended":
            raise ValueError("has ended the connection")
        lengths, digests = there
        if lengths != [len(b) for b in buffers]:
            raise RuntimeError("broadcast %d has tensors of %s bytes" % (n, lengths))
        blocks = list(pieces(lengths, BLOCK))
        lacking = [i for i, parts in enumerate(blocks) if digest(buffers, parts) != digests[i]]
        sock.sendall(json.dumps(lacking).encode() + b"\n")
        for i in lacking:
            for b, begin, stop in blocks[i]:
                if f.readinto(buffers[b][begin:stop]) != stop - begin:
                    raise ValueError("has ended the connection")
            if digest(buffers, blocks[i]) != digests[i]:
                raise ValueError("has changed it meanwhile")
        if f.read(1) != b"+":
            raise ValueError("has changed it meanwhile")
