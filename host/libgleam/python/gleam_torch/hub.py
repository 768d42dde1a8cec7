# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Who is in a group, and how far each is. Rank 0 of the group has the Hub; every rank, rank 0 too,
has a connection to it, which ends with the rank's process. Messages are lines of JSON; "t" is
their kind. Data goes by the group alone.

A broadcast has a number n, from 1, and k messages from number m on. To the Hub:

    hello {token, rank, ip, keeper, back}   the first line; back: of a lost rank's new process
    want {ok, why, at}      the group is wanted; at (rank 0): where the helper has members join
    in {}, fail {why}       the helper has joined, or has not
    start {n, m, k}         the source asks to begin; the answer is go {n}
    held {m}                the source waits for ranks that have not read all before m, which they have in memory
    sent {m}                the source has completions of all messages before m
    ate {m}, have {n}       the rank has read all before m; has all of broadcast n
    bar {n, j}              the rank is at barrier j after broadcast n; the answer, when all are, is the same
    label {n, label}, ask {id, rank, label, n}, bye {}

From it, beside the answers: join {at, members}, gloo {why}, ready {n, m} (the rank is in from
broadcast n on, which begins with m), credit {ate, sent}, members {ranks, event}, over {why}.
"""
import json
import selectors
import socket
import struct
import threading
import time

MAX_LINE = 1 << 16  # bytes of a line
MAX_BEHIND = 1 << 20  # bytes that a rank may be behind with reading
PING = 0.25  # seconds between empty lines to all: where nobody acknowledges one for a second, the host is gone


class Peer:
    """A connection to the Hub, and its rank after hello."""

    def __init__(self):
        self.rank = self.ip = self.keeper = self.want = None
        self.ready = self.joined = False  # it counts; its helper has joined
        self.entry, self.ate, self.version = 1, 0, 0
        self.moved, self.leaving = 0.0, False  # when ate became more; it is being removed, and counts until then

    def send(self, **m):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError


class Hub:
    """The decisions, without sockets. remove(p) takes a peer's address out of the group, and returns at once; with a
    reason p is lost when that is done."""

    def __init__(self, size, remove, lag=0, clock=time.time):
        self.size, self.remove, self.lag, self.clock = size, remove, lag, clock  # lag: seconds; 0 is never
        self.held, self.held_at = 0, 0.0  # the source waits until all have read what is before message held
        self.peers, self.seen = {}, set()  # by rank; ranks that have said hello
        self.state = "gather"  # then joining, and made or gloo
        self.at = None
        self.started = self.next = self.sent = self.ate = 0  # broadcasts; messages
        self.source = None  # the rank of a broadcast under way
        self.barriers, self.labels = {}, {}
        self.over = ""

    def ready(self):
        return [p for p in self.peers.values() if p.ready]

    def tell(self, **m):
        for p in list(self.peers.values()):
            p.send(**m)

    def end(self, why):
        if not self.over:
            self.over = why
            self.tell(t="over", why=why)

    def receive(self, p, m):
        """Takes a message; a wrong one raises an exception, and the caller closes p."""
        if p.rank is None and m["t"] != "hello":
            raise ValueError("no hello")
        getattr(self, "on_" + m["t"])(p, m)

    def on_hello(self, p, m):
        rank = m["rank"]
        if p.rank is not None or type(rank) is not int or not 0 <= rank < self.size:
            raise ValueError("rank")
        old = self.peers.get(rank)
        if self.over or bool(m["back"]) != (rank in self.seen) or m["back"] and (self.state != "made" or rank == 0):
            p.send(t="over", why=self.over or "rank %d cannot %s" % (rank, "come back" if m["back"] else "join twice"))
            return
        if old:
            self.lose(old, "lost", "another process has taken its place")
        p.rank, p.ip, p.keeper = rank, m["ip"], m["keeper"]
        p.ready = not m["back"]
        self.peers[rank] = p
        self.seen.add(rank)
        if m["back"]:
            p.send(t="join", at=self.at, members=0)
        else:
            self.changed(None)

    def complete(self):
        return len(self.seen) == self.size

    def on_want(self, p, m):
        p.want = m
        self.at = m.get("at") or self.at
        if not self.complete() or any(q.want is None for q in self.ready()):
            return
        why = next(("rank %d: %s" % (q.rank, q.want["why"]) for q in self.ready() if not q.want["ok"]), "")
        if why:
            self.by_gloo(why)
        elif self.state == "gather":
            self.state = "joining"
            self.tell(t="join", at=self.at, members=self.size - 1)

    def by_gloo(self, why):
        if self.state != "made":
            self.state = "gloo"
            self.tell(t="gloo", why=why)

    def on_fail(self, p, m):
        if self.state == "made":
            self.lose(p, "lost", m["why"])
        else:
            self.by_gloo("rank %d: %s" % (p.rank, m["why"]))

    def on_in(self, p, m):
        p.joined = True
        if self.state == "made":
            # What begins after this is received whole: its source is told to go after this.
            p.entry, p.ate, p.version, p.ready = self.started + 1, self.next, self.started, True
            p.send(t="credit", ate=self.ate, sent=self.sent)
            p.send(t="ready", n=p.entry, m=p.ate)
            self.changed("joined", p)
        elif self.state == "joining" and all(q.joined for q in self.ready()):
            self.state = "made"
            self.tell(t="ready", n=1, m=0)

    def on_start(self, p, m):
        self.started, self.next, self.source = m["n"], m["m"] + m["k"], p.rank
        self.held = 0
        p.send(t="go", n=m["n"])

    def on_sent(self, p, m):
        self.sent, self.source, self.held = m["m"], None, 0
        p.ate = max(p.ate, m["m"])
        self.credit(True)

    def on_ate(self, p, m):
        if m["m"] > p.ate:
            p.ate, p.moved = m["m"], self.clock()
        self.credit()

    def on_held(self, p, m):
        self.held, self.held_at = m["m"], self.clock()

    def late(self):
        """Takes out who has held the source for longer than lag."""
        for p in self.ready():
            since = self.clock() - max(self.held_at, p.moved)
            if self.lag and p.ate < self.held and p.rank != self.source and since >= self.lag and not p.leaving:
                why, p.leaving = "it has not read for %d ms" % (1000 * since), True
                if p.rank == 0:
                    self.lose(p, "lost", why)
                else:  # nothing is written over what it may still read: the source goes on when it is out
                    self.remove(p, why)

    def credit(self, tell=False):
        ate = min((q.ate for q in self.ready()), default=self.ate)
        if tell or ate != self.ate:
            self.ate = ate
            self.tell(t="credit", ate=ate, sent=self.sent)

    def on_have(self, p, m):
        p.version = m["n"]

    def on_bar(self, p, m):
        if m["n"] < p.entry - 1 and p.entry > 1:
            p.send(t="bar", n=m["n"], j=m["j"])  # the others have passed it
            return
        self.barriers.setdefault((m["n"], m["j"]), set()).add(p.rank)
        self.release()

    def release(self):
        if not self.complete():
            return
        for key, at in list(self.barriers.items()):
            # One who has come back is in from its first broadcast on: those behind it do not wait for it.
            if all(q.rank in at for q in self.ready() if q.entry <= key[0] or q.entry == 1):
                del self.barriers[key]
                self.tell(t="bar", n=key[0], j=key[1])

    def on_label(self, p, m):
        self.labels[m["label"]] = m["n"]

    def on_ask(self, p, m):
        q = self.peers.get(m.get("rank"))
        keepers = [[r.rank, r.keeper] for r in self.ready() if r.version >= m["n"] and r is not p] if m.get("n") else []
        p.send(t="told", id=m["id"], version=q and q.version, label=self.labels.get(m.get("label")), keepers=keepers)

    def on_bye(self, p, m):
        self.lose(p, "left", "")

    def lose(self, p, kind, why):
        """Takes a rank out: its connection has ended, the switch has evicted it, or it leaves."""
        if self.peers.get(p.rank) is not p:
            return
        del self.peers[p.rank]
        if p.ip and self.state == "made" and p.rank != 0:
            self.remove(p)
        if kind == "lost":
            p.send(t="over", why="this rank is out of the group: " + why)
        was_ready, p.ready = p.ready, False
        if not was_ready:
            return
        self.changed(kind, p, why)
        if p.rank == 0 and kind == "lost":
            self.end("rank 0, which leads the group, is lost: " + why)
        elif self.source == p.rank:
            self.end("rank %d, the source of broadcast %d, is lost: %s" % (p.rank, self.started, why))
        elif kind == "lost" and self.state in ("gather", "joining"):
            self.end("rank %d is lost before the group was made: %s" % (p.rank, why))
        self.credit()
        self.release()

    def evicted(self, ip, why):
        for p in list(self.peers.values()):
            if p.ip == ip and (p.ready or p.joined):
                self.lose(p, "lost", why)

    def changed(self, kind, p=None, why=""):
        event = [self.clock(), kind, p.rank, why] if kind else None
        self.tell(t="members", ranks=sorted(q.rank for q in self.ready()), event=event)


def alive(sock):
    """Has the kernel notice within a second or two that the host at the other end is gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 1), (socket.TCP_USER_TIMEOUT, 1000)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


class Connection(Peer):
    """A Peer with a socket that is never waited for."""

    def __init__(self, sock, server):
        super().__init__()
        self.sock, self.server, self.read, self.unsent, self.dead = sock, server, b"", b"", False

    def send(self, **m):
        self.put(json.dumps(m, separators=(",", ":")).encode() + b"\n")

    def put(self, data):
        if not self.dead:
            self.unsent += data
            self.flush()

    def flush(self):
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent):]
        except BlockingIOError:
            pass
        except OSError:
            self.dead = True
        self.dead = self.dead or len(self.unsent) > MAX_BEHIND
        if self.unsent or self.dead:
            self.server.wake()


class Server:
    """A Hub with connections, on a thread of its own."""

    def __init__(self, ip, token, size, remove, lag=0):
        self.token, self.hub, self.lock = token, Hub(size, remove, lag), threading.RLock()
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self.listener = socket.create_server((ip, 0), family=family, backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.waker, self.woken = socket.socketpair()
        for s in (self.listener, self.waker, self.woken):
            s.setblocking(False)
        self.connections, self.closing = set(), False
        self.thread = threading.Thread(target=self.run, daemon=True, name="gleam-hub")
        self.thread.start()

    def wake(self):
        try:
            self.waker.send(b"x")
        except OSError:
            pass  # it is awake, or has ended

    def evicted(self, ip, why):
        with self.lock:
            self.hub.evicted(ip, why)

    def removed(self, p, why, done):
        with self.lock:
            p.leaving = False
            if done:
                self.hub.lose(p, "lost", why)

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
                    self.hub.late()
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
                    for c in list(self.connections):
                        self.look(s, c)
                    if self.closing and not any(c.unsent for c in self.connections):
                        break
            for c in self.connections:
                c.sock.close()
            self.listener.close()

    def accept(self, s):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        alive(sock)
        c = Connection(sock, self)
        self.connections.add(c)
        s.register(sock, selectors.EVENT_READ, c)

    def serve(self, c):
        c.flush()
        try:
            data = c.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        c.dead = c.dead or not data
        *lines, c.read = (c.read + data).split(b"\n")
        try:
            for line in lines:
                m = json.loads(line)
                if c.rank is None and m["token"] != self.token:
                    raise ValueError("token")
                self.hub.receive(c, m)
            if len(c.read) > MAX_LINE:
                raise ValueError("line")
        except Exception:  # pylint: disable=broad-except
            c.dead = True  # whatever it has said

    def look(self, s, c):
        """Ends a connection that is dead, or has it wait until it can send."""
        if c.dead:
            s.unregister(c.sock)
            self.connections.remove(c)
            if c.rank is not None:
                self.hub.lose(c, "lost", "its process has ended, or its host does not answer")
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            c.sock.close()
        else:
            s.modify(c.sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if c.unsent else 0), c)
