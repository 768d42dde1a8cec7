# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank's end of one group: broadcasts of bytes through a ring in memory that the helper has, and
barriers. No torch is in here.

A broadcast is cut into messages of SLOT bytes. Message m is a WRITE with immediate m to slot m
modulo SLOTS of all members' rings. Its completion says that it is in the memory of all, not that
they have read it: so each rank tells the Hub how far it has read, at least each quarter of a ring,
and no source is more than a ring ahead of the last. Nobody waits for a rendezvous otherwise.
"""
import collections
import itertools
import json
import os
import queue
import random
import socket
import threading
import time

from . import hub

SLOT = 1 << 20
DEPTH = 32  # posts that are not complete
NAME = 0.25  # seconds for rank 0 to say who is lost, where the switch has said before that the group has failed
GRACE = 5  # seconds for what all have, but this process has not seen yet


class Lost(RuntimeError):
    """This rank is out of the group, or a source is, or, with policy strict, any rank."""


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


class Channel:
    """One group. helper() returns this process's Helper; at is the Hub's host and port."""

    def __init__(self, rank, size, at, token, helper, strict, slots, tensors, settings, server=None, back=False, timeout=1800):
        self.rank, self.size, self.token, self.helper_of, self.strict = rank, size, token, helper, strict
        self.slots, self.settings, self.server, self.timeout = slots, settings, server, timeout
        self.ring = slots * SLOT
        self.bytes, self.allotted = self.ring + tensors, self.ring
        self.changed = threading.Condition()
        self.members, self.gone, self.log = [], {}, []
        self.n = self.m = self.read = self.barriers = 0  # broadcasts and messages so far; read: as the Hub knows
        self.last = None  # the source before
        self.ate = self.sent = self.done = self.go = 0
        self.got, self.told, self.released = {}, {}, set()
        self.over = self.out = self.why_gloo = ""
        self.out_at = 0.0  # the time from which on out counts
        self.joining = self.entry = None
        self.helper = self.g = self.memory = None
        self.kept = collections.deque(maxlen=settings["keep"])  # (n, buffers, owners, unchanged)
        self.ids = itertools.count(1)
        self.keeper = socket.create_server((settings["ip"], 0), family=socket.AF_INET6 if ":" in settings["ip"] else socket.AF_INET)
        threading.Thread(target=self.keep, daemon=True, name="gleam-keeper").start()
        self.sock = socket.create_connection(at, 30)
        self.sock.settimeout(None)
        hub.alive(self.sock)
        os.register_at_fork(after_in_child=self.forget)
        self.lock = threading.Lock()
        self.tell(t="hello", token=token, rank=rank, ip=settings["ip"], keeper=self.keeper.getsockname()[:2], back=back)
        self.work = queue.SimpleQueue()
        self.threads = [threading.Thread(target=f, daemon=True, name="gleam-" + f.__name__) for f in (self.listen, self.act)]
        for t in self.threads:
            t.start()

    # What comes from the Hub and from the helper.

    def tell(self, **m):
        try:
            with self.lock:
                self.sock.sendall(json.dumps(m).encode() + b"\n")
        except OSError:
            pass  # listen says so

    def listen(self):
        try:
            for line in self.sock.makefile("rb"):
                if line == b"\n":
                    continue
                m = json.loads(line)
                with self.changed:
                    getattr(self, "on_" + m["t"])(m)
                    self.changed.notify_all()
        except OSError:
            pass
        with self.changed:
            self.out_at = 1e-9  # nobody says more
            self.out = self.out or "the connection to rank 0 of the group has ended: its process, or this rank's place in the group, is lost"
            self.changed.notify_all()

    def on_join(self, m):
        self.joining = m

    def on_gloo(self, m):
        self.why_gloo = m["why"]

    def on_ready(self, m):
        self.entry, self.n, self.m, self.read = m["n"], m["n"] - 1, m["m"], m["m"]

    def on_credit(self, m):
        self.ate, self.sent = m["ate"], m["sent"]

    def on_go(self, m):
        self.go = m["n"]

    def on_members(self, m):
        self.members = m["ranks"]
        if m["event"]:
            when, kind, rank, why = m["event"]
            self.log.append((when, kind, rank, why))
            if kind == "joined":
                self.gone.pop(rank, None)
                if rank == self.rank:  # which has not heard of those before
                    self.gone.update((r, ("lost", "before this rank came back")) for r in range(self.size) if r not in self.members)
            else:
                self.gone[rank] = (kind, why)

    def on_bar(self, m):
        self.released.add((m["n"], m["j"]))

    def on_told(self, m):
        self.told[m["id"]] = m

    def on_over(self, m):
        self.over = self.over or m["why"]

    def take(self, m):
        """What the helper says of the group."""
        if m.get("event") == "evicted" and "member" in m and self.server:
            self.server.evicted(m["member"], "the switch has removed it: " + m["text"])
        with self.changed:
            if "done" in m:
                self.done = max(self.done, max(m["done"]) % (1 << 40) + 1)
            self.got.update(m.get("got", ()))  # also the rest of a broadcast that this rank is not in, for which nobody asks
            if m.get("event") in ("failed", "ended") or m.get("event") == "evicted" and "member" not in m:
                self.out = self.out or "the group: %s: %s" % (m["event"], m.get("text", ""))
                self.out_at = self.out_at or time.monotonic() + NAME
            self.changed.notify_all()

    def cause(self, root=None, end=0):
        """The reason why there is no use in waiting for messages before end of root; "" if there is."""
        if self.over and (end == 0 or self.sent < end):
            return self.over
        lost = [r for r, (kind, _) in self.gone.items() if kind == "lost"]
        if self.strict and lost:
            return self.fate(lost[0])
        if root in self.gone and self.sent < end:
            return self.fate(root, ", the source,")
        if self.out and (end == 0 or self.sent < end) and time.monotonic() >= self.out_at:
            return self.out
        return ""

    def fate(self, rank, what=""):
        kind, why = self.gone[rank]
        return "rank %d%s %s%s" % (rank, what, "is lost: " if kind == "lost" else "has left the group", why)

    def wait(self, condition, root=None, end=0):
        """Waits until the condition holds; the caller holds changed. Raises Lost if it never will."""
        deadline, grace = time.monotonic() + self.timeout, None
        while not condition():
            why = self.cause(root, end)
            if why:
                raise Lost(why)
            now = time.monotonic()
            if self.out and grace is None:
                grace = now + GRACE
            if grace and now > grace:
                raise Lost(self.out)
            if now > deadline:
                raise RuntimeError("no end after %d s, the process group's timeout" % self.timeout)
            self.changed.wait(min(deadline, grace or deadline, self.out_at if self.out_at > now else deadline) - now)

    # The group's beginning and end.

    def open(self):
        """Joins the group; returns False if all go on by Gloo, with the reason in why_gloo. All ranks call it."""
        if self.helper or self.why_gloo:
            return not self.why_gloo
        if self.size == 1:
            self.entry = 1
            return True
        at = why = None
        try:
            self.helper = self.helper_of()
            self.g, self.memory, at = self.helper.window(self.bytes, self.rank == 0, self.take)
        except (RuntimeError, OSError) as err:
            why = str(err)
        self.tell(t="want", ok=not why, why=why, at=at)
        self.enter()
        return not self.why_gloo

    def enter(self):
        with self.changed:
            self.wait(lambda: self.joining or self.why_gloo)
        if not self.why_gloo:
            threading.Thread(target=self.join, daemon=True, name="gleam-join").start()  # which may wait for one that is lost
            with self.changed:
                self.wait(lambda: self.entry or self.why_gloo)
        if self.why_gloo and self.g:
            self.helper.leave(self.g)

    def join(self):
        s = self.settings
        try:
            if self.rank == 0:
                self.helper.ask("make", self.g, ip=s["group"], members=self.joining["members"], dead_after_ms=s["dead_after"], mtu=s.get("mtu", 0), timeout_ms=30000)
            else:
                self.helper.ask("join", self.g, master=self.joining["at"], timeout_ms=30000)
            self.tell(t="in")
        except RuntimeError as err:
            self.tell(t="fail", why=str(err))

    def rejoin(self):
        """Comes back into the group; returns the number of the last broadcast without this rank."""
        self.helper = self.helper_of()
        self.g, self.memory, _ = self.helper.window(self.bytes, False, self.take)
        self.enter()
        return self.n

    def forget(self):
        for s in (self.sock, self.keeper):
            s.close()

    def close(self):
        self.work.put(None)
        if self.threads[1] is not threading.current_thread():
            self.threads[1].join(10)
        self.tell(t="bye")
        if self.helper and self.g and not self.why_gloo:
            self.helper.leave(self.g)
        if self.server:
            self.server.close()
        self.keeper.close()
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.threads[0].join(5)

    def act(self):
        """The thread that does what is asked for, in order."""
        while True:
            f = self.work.get()
            if f is None:
                return
            f()

    # Collectives, on that thread.

    def allot(self, size):
        """The place of memory for a tensor in the window, the same at all ranks that ask for the same."""
        at, self.allotted = self.allotted, self.allotted + (size + 4095 & ~4095)
        if self.allotted > self.bytes:
            self.allotted = at
            raise MemoryError("%d bytes do not fit in what is left of GLEAM_TENSORS: %d" % (size, self.bytes - at))
        return at

    def whole(self):
        """With policy strict a rank that has left is missed at the next collective."""
        if self.strict and self.gone:
            raise Lost(self.fate(next(iter(self.gone))))

    def broadcast(self, buffers, root, places=None, owners=frozenset(), unchanged=lambda: (lambda: True)):
        """Sends buffers, writable memoryviews of bytes, or fills them. places: where they lie in the window, if they do.
        owners: what says that two buffers are the same memory. unchanged() returns what tells later whether they were changed."""
        lengths = [len(b) for b in buffers]
        if places is None:
            messages = list(pieces(lengths, SLOT))
        else:
            messages = [[(b, at, min(at + SLOT, n))] for b, n in enumerate(lengths) for at in range(0, n, SLOT)]
        with self.changed:
            self.whole()
        n, m, end = self.n + 1, self.m, self.m + len(messages)
        if root != self.rank:
            self.kept = collections.deque((k for k in self.kept if not k[2] & owners), self.kept.maxlen)
        if self.size > 1 and messages:
            if places is not None:  # what is there now is not needed any more: message m, which takes no slot, counts as read
                self.read = m + 1
                self.tell(t="ate", m=m + 1)
            if root == self.rank:
                self.send(n, m, messages, buffers, places)
            else:
                self.receive(m, messages, buffers, places, root)
        self.n, self.m, self.last = n, end, root
        if self.size > 1:
            self.tell(t="have", n=n)
        self.kept.append((n, buffers, owners, unchanged()))

    def send(self, n, m, messages, buffers, places):
        end = m + len(messages)
        with self.changed:
            if self.last != self.rank:
                self.wait(lambda: self.sent >= m)  # those of the source before
        self.tell(t="start", n=n, m=m, k=len(messages))
        with self.changed:
            self.wait(lambda: self.go >= n)
        self.done = m
        for number, parts in enumerate(messages, m):
            need = m + 1 if places else number + 1 - self.slots  # what all have to have read
            with self.changed:
                self.wait(lambda: number - self.done < DEPTH and (places or self.done >= need))
                if self.ate < need:
                    self.tell(t="held", m=need)
                    self.wait(lambda: self.ate >= need)
            at = length = 0
            if places:
                b, begin, stop = parts[0]
                at, length = places[b] + begin, stop - begin
            else:
                at = number % self.slots * SLOT
                for b, begin, stop in parts:
                    self.memory[at + length:at + length + stop - begin] = buffers[b][begin:stop]
                    length += stop - begin
            try:
                self.helper.post(self.g, number, at, length)
            except RuntimeError as err:
                raise Lost(str(err)) from err
            if number - self.read >= self.slots // 4:  # a source reads nothing
                self.read = number
                self.tell(t="ate", m=number)
        with self.changed:
            self.wait(lambda: self.done >= end)
        self.read = end
        self.tell(t="sent", m=end)

    def receive(self, m, messages, buffers, places, root):
        end = m + len(messages)
        for number, parts in enumerate(messages, m):
            imm = number & 0xffffffff
            with self.changed:
                self.wait(lambda: imm in self.got, root, end)
                length = self.got.pop(imm)
            if length != sum(stop - begin for _, begin, stop in parts):
                raise Lost("message %d has %d bytes: the ranks broadcast tensors of other sizes, or in another order" % (number, length))
            if not places:
                at = number % self.slots * SLOT
                for b, begin, stop in parts:
                    buffers[b][begin:stop] = memoryview(self.memory)[at:at + stop - begin]
                    at += stop - begin
            if number + 1 - self.read >= self.slots // 4:
                self.read = number + 1
                self.tell(t="ate", m=number + 1)

    def barrier(self):
        with self.changed:
            self.whole()
        self.barriers = self.barriers + 1 if getattr(self, "after", None) == self.n else 1
        self.after = self.n
        key = (self.n, self.barriers)
        self.tell(t="bar", n=key[0], j=key[1])
        with self.changed:
            self.wait(lambda: key in self.released)
            self.released.discard(key)

    # Versions.

    def ask(self, **m):
        if self.size == 1:
            return {"version": self.n, "label": None, "keepers": []}
        number = next(self.ids)
        self.tell(t="ask", id=number, **m)
        with self.changed:
            self.wait(lambda: number in self.told)
            return self.told.pop(number)

    def keep(self):
        """The thread that gives kept broadcasts to those who ask: token and number, then lengths and bytes."""
        while True:
            try:
                sock, _ = self.keeper.accept()
            except OSError:
                return
            with sock:
                try:
                    sock.settimeout(5)
                    token, n = sock.makefile("rb").readline(200).split()
                    sock.settimeout(30)
                    found = [k for k in list(self.kept) if k[0] == int(n)] if token.decode() == self.token else []
                    if not found:
                        sock.sendall(b"null\n")
                        continue
                    _, buffers, _, unchanged = found[0]
                    sock.sendall(json.dumps([len(b) for b in buffers]).encode() + b"\n")
                    for b in buffers:
                        sock.sendall(b)
                    sock.sendall(b"+" if unchanged() and any(k is found[0] for k in list(self.kept)) else b"-")
                except (OSError, ValueError):
                    continue

    def fetch(self, buffers, n):
        """Fills buffers with broadcast n from a member that has kept it; returns the rank of that one."""
        keepers = self.ask(n=n)["keepers"]
        random.shuffle(keepers)
        for rank, (host, port, *_) in keepers:
            try:
                with socket.create_connection((host, port), 10) as sock, sock.makefile("rb") as f:
                    sock.sendall(b"%s %d\n" % (self.token.encode(), n))
                    lengths = json.loads(f.readline(1 << 20))
                    if lengths is None:
                        continue
                    if lengths != [len(b) for b in buffers]:
                        raise RuntimeError("broadcast %d has tensors of %s bytes" % (n, lengths))
                    if all(f.readinto(b) == len(b) for b in buffers) and f.read(1) == b"+":
                        return rank
            except (OSError, ValueError):
                continue
        raise RuntimeError("no member has broadcast %d any more: GLEAM_KEEP says how many are kept, and tensors that were changed are not" % n)
