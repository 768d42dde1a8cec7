# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The connections of a Hub, with the times after which a silent host is gone."""
import json
import selectors
import socket
import struct
import threading
import time

from . import door
from .hub import Hub, Peer

MAX_LINE = 1 << 16  # bytes of a line
MAX_BEHIND = 1 << 20  # bytes that a rank may be behind with reading
WRONG, ENDED, SILENT = "wrong", "ended", "silent"  # how a connection is dead: for what it says, or as its rank reads nothing; the other kernel has closed it; its host is gone
PING = 0.15  # seconds between empty lines to all
SILENT = 0.35  # seconds for the other host's kernel to acknowledge one that is sent again, 0.2 to 0.4 s after the first time: then it is gone


def alive(sock):
    """Has the kernel notice within a second that the host at the other end is gone. It is the other kernel that answers:
    a process that is stopped or busy is not gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 1), (socket.TCP_USER_TIMEOUT, int(1000 * SILENT))):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def answers(at):
    """Whether a Hub is there, which says something to everybody who connects."""
    try:
        with socket.create_connection(at, 1) as s:
            return s.recv(1) != b""
    except OSError:
        return False


class Connection(Peer):
    """A Peer with a socket that is never waited for."""

    def __init__(self, sock, server):
        super().__init__()
        self.sock, self.server, self.read, self.unsent, self.dead = sock, server, b"", b"", ""

    def send(self, **m):
        self.put(json.dumps(m, separators=(",", ":")).encode() + b"\n")

    def put(self, data):
        if not self.dead:
            self.unsent += data
            self.flush()

    def end(self, err):
        self.dead = self.dead or (ENDED if isinstance(err, (ConnectionResetError, BrokenPipeError)) else SILENT)

    def flush(self):
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent):]
        except BlockingIOError:
            pass
        except OSError as err:
            self.end(err)
        self.dead = self.dead or WRONG * (len(self.unsent) > MAX_BEHIND)
        if self.unsent or self.dead:
            self.server.wake()


class Server:
    """A Hub with connections, on a thread of its own."""

    def __init__(self, ip, token, size, remove, lag=0, **hub):
        self.token, self.hub, self.lock = token, Hub(size, remove, lag, **hub), threading.RLock()
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self.listener = socket.create_server((ip, 0), family=family, backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.waker, self.woken = socket.socketpair()
        for s in (self.listener, self.waker, self.woken):
            s.setblocking(False)
        self.connections, self.door, self.closing = set(), door.Door(), False
        self.thread = threading.Thread(target=self.run, daemon=True, name="gleam-hub")
        self.thread.start()

    def wake(self):
        try:
            self.waker.send(b"x")
        except OSError:
            pass  # it is awake, or has ended

    def hears(self, what, *args):
        """Has the Hub hear of what its leader's helper says: evicted, failed or removed."""
        with self.lock:
            getattr(self.hub, what)(*args)

    def close(self):
        self.closing = True
        self.wake()
        self.thread.join(5)

    def run(self):
        with selectors.DefaultSelector() as s:
            s.register(self.listener, selectors.EVENT_READ)
            s.register(self.woken, selectors.EVENT_READ)
            ping = time.monotonic()
            while True:
                ready = s.select(min(PING, self.hub.lag / 4 or PING))
                with self.lock:
                    self.hub.tick()
                    if time.monotonic() > ping + PING:
                        ping = time.monotonic()
                        for c in self.connections:
                            c.put(b"\n")
                    for key, _ in ready:
                        if key.fileobj is self.listener:
                            self.accept(s)
                        elif key.fileobj is self.woken:
                            self.woken.recv(4096)
                        else:
                            self.serve(key.data)
                    for c in self.door.late():
                        c.dead = WRONG
                    for c in list(self.connections):
                        self.look(s, c)
                    if (self.closing or self.hub.gone) and not any(c.unsent for c in self.connections):
                        break
            self.listener.close()  # first: who finds it after its connection has ended takes the Hub for alive
            for c in self.connections:
                c.sock.close()

    def accept(self, s):
        try:
            sock, at = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        alive(sock)
        c = Connection(sock, self)
        self.connections.add(c)
        out = self.door.enter(c, at[0])
        if out:
            out.dead = WRONG
        s.register(sock, selectors.EVENT_READ, c)

    def serve(self, c):
        c.flush()
        try:
            data = c.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError as err:
            data = b""
            c.end(err)
        if not data:
            c.end(ConnectionResetError())
        *lines, c.read = (c.read + data).split(b"\n")
        try:
            for line in filter(None, lines):
                m = json.loads(line)
                if c.rank is None and not door.same(m["token"], self.token):
                    raise ValueError("token")
                self.hub.receive(c, m)
            if c.rank is not None:
                self.door.leave(c)
            if len(c.read) > (door.MAX_HELLO if c.rank is None else MAX_LINE):
                raise ValueError("line")
        except Exception:  # pylint: disable=broad-except
            c.dead = c.dead or WRONG  # whatever it has said

    def look(self, s, c):
        """Ends a connection that is dead, or has it wait until it can send."""
        if c.dead:
            s.unregister(c.sock)
            self.connections.remove(c)
            self.door.leave(c)
            if c.rank is not None:
                why = "its process has ended, or its host does not answer"
                if c.dead == SILENT and c.qp:
                    self.hub.evicted(c.ip, c.qp, why)
                self.hub.lose(c, "lost", why, c.dead != WRONG)
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            c.sock.close()
        else:
            s.modify(c.sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if c.unsent else 0), c)
