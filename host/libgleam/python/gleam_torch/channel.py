# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank's end of one group: broadcasts of bytes through a ring in memory that the helper has, and
barriers. No torch is in here.

A broadcast is cut into messages of SLOT bytes. Message m is a WRITE with immediate m to slot m
modulo SLOTS of all members' rings. Its completion says that it is in the memory of all, not that
they have read it: so each rank tells the Hub how far it has read, at least each quarter of a ring,
and no source is more than a ring ahead of the last. Nobody waits for a rendezvous otherwise.
"""
import itertools
import json
import os
import queue
import random
import socket
import threading
import time

from . import keep
from .keep import pieces
from .link import Link

SLOT = 1 << 20
DEPTH = 32  # posts that are not complete
NAME = 0.25  # seconds for rank 0 to say who is lost, where the switch has said before that the group has failed
LATER = 0.02  # seconds between questions for a broadcast that is under way
ANEW = 20  # seconds for a Hub after one that is lost
TAKEN = "take another address"  # what the switch says of a GroupIP that another group has
GRACE = 5  # seconds for what all have, but this process has not seen yet


class Lost(RuntimeError):
    """This rank is out of the group, or a source is, or, with policy strict, any rank."""


class Channel(Link):
    """A group, and those that are made anew after it. helper() returns this process's Helper; at is the Hub's host and
    port; meet(channel, hubs, turn) finds or makes the one after it, as Meeting.next does."""

    def __init__(self, rank, size, at, token, helper, strict, slots, tensors, settings, server=None, back=False, timeout=1800, meet=None, hubs=1):
        self.rank, self.size, self.token, self.helper_of, self.strict = rank, size, token, helper, strict
        self.slots, self.settings, self.server, self.timeout = slots, settings, server, timeout
        self.ring = slots * SLOT
        self.bytes, self.allotted = self.ring + tensors, self.ring
        self.changed = threading.Condition()
        self.members, self.gone, self.log = [], {}, []
        self.n = self.have = 0  # the last broadcast; the last that this rank has in full
        self.told, self.why_gloo = {}, ""
        self.helper = self.g = None
        self.meet, self.hubs, self.lead, self.closing = meet, hubs, 0, False  # hubs: the present one's number
        self.fresh(1)
        self.ids = itertools.count(1)
        self.keeper = keep.Keeper(settings["ip"], settings["keep"], token, settings.get("rate", 0))
        self.lock, self.sock = threading.Lock(), None
        self.connect(at, back)
        os.register_at_fork(after_in_child=self.forget)
        self.work = queue.SimpleQueue()
        self.threads = [threading.Thread(target=f, daemon=True, name="gleam-" + f.__name__) for f in (self.listen, self.act)]
        for t in self.threads:
            t.start()

    def fresh(self, number):
        """Begins with the group of a number, of which nothing has come yet."""
        if self.helper and self.g:
            threading.Thread(target=self.helper.leave, args=(self.g,), daemon=True).start()
        self.number, self.next = number, 0  # next: the number of the group that is to be made anew
        self.m = self.read = self.barriers = 0  # messages so far; read: as the Hub knows
        self.last = self.after = None  # the source before; the broadcast before the barriers
        self.ate = self.sent = self.done = self.go = 0
        self.got, self.released = {}, set()
        self.over = self.out = ""
        self.out_at, self.raised, self.final = 0.0, False, False  # the time from which on out counts; Lost has been raised; nothing comes after
        self.joining = self.entry = self.g = self.memory = None
        self.allotted = self.ring

    # What comes from the helper.

    def taker(self):
        number = self.number
        return lambda m: self.take(m, number)

    def take(self, m, number):
        """What the helper says of the group of a number."""
        end = m.get("event") in ("failed", "ended") or m.get("event") == "evicted" and "member" not in m
        if self.server and number == self.number:
            if m.get("event") == "evicted" and "member" in m:
                self.server.hears("evicted", m["member"], m["qpn"], "the switch has removed it: " + m["text"])
            elif end:
                self.server.hears("failed", number, "the group: %s: %s" % (m["event"], m.get("text", "")))
        if "helper" in m and not self.server:
            self.tell(t="fail", why=m["text"])
        with self.changed:
            if number != self.number:
                return
            if "done" in m:
                self.done = max(self.done, max(m["done"]) % (1 << 40) + 1)
            self.got.update(m.get("got", ()))  # also the rest of a broadcast that this rank is not in, for which nobody asks
            if end:
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
                self.raised = bool(self.over or self.out)
                raise Lost(why)
            now = time.monotonic()
            if self.out and grace is None:
                grace = now + GRACE
            if grace and now > grace:
                self.raised = True
                raise Lost(self.out)
            if now > deadline:
                raise RuntimeError("no end after %d s, the process group's timeout; rank %s has read the least" % (self.timeout, self.ask()["least"]))
            self.changed.wait(min(deadline, grace or deadline, self.out_at if self.out_at > now else deadline) - now)

    # The group's beginning and end.

    def open(self):
        """Joins the group; returns False if all go on by Gloo, with the reason in why_gloo. All ranks call it. Where a
        group has ended it raises Lost, unless a call before has; the call after that joins the one that is made anew."""
        with self.changed:
            if (self.over or self.out) and not self.final and not self.strict:
                self.changed.wait_for(lambda: self.next or self.final, ANEW)
            if self.next:
                why, raised = self.over or self.out, self.raised
                self.fresh(self.next)
                if why and not raised:
                    raise Lost(why)
        if not self.entry and not self.why_gloo:
            self.enter()
        return not self.why_gloo

    def enter(self):
        if self.size == 1:
            self.entry = 1
            return
        while not self.entry and not self.why_gloo:
            with self.changed:
                if self.next:  # another member has died meanwhile, or another job has the group's address
                    self.fresh(self.next)
            at = why = None
            try:
                self.helper = self.helper_of()
                name = "%s/%d" % (self.token, self.number)  # of the group, which ranks of one address share
                self.g, self.memory, at = self.helper.window(name, self.bytes, self.server is not None, self.bytes > self.ring, self.taker())
            except (RuntimeError, OSError) as err:
                why = str(err)
            self.tell(t="want", ok=not why, why=why, at=at, n=self.have)
            with self.changed:
                self.wait(lambda: self.joining or self.why_gloo or self.next)
                if self.joining and not self.next:
                    threading.Thread(target=self.join, args=(self.joining, self.g, self.number), daemon=True, name="gleam-join").start()  # which may wait for one that is lost
                    self.wait(lambda: self.entry or self.why_gloo or self.next)
        if self.why_gloo and self.g:
            self.helper.leave(self.g)

    def join(self, m, g, number):
        s = self.settings
        try:
            if self.server:
                m, _ = self.helper.ask("make", g, ip=s["group"](), members=m["members"], dead_after_ms=s["dead_after"], mtu=s.get("mtu", 0), timeout_ms=30000)
            else:
                m, _ = self.helper.ask("join", g, master=m["at"], timeout_ms=30000)
            m = {"t": "in", "qp": m["qpn"]}
        except RuntimeError as err:
            m = {"t": "fail", "why": str(err), "taken": TAKEN in str(err)}
        self.put(json.dumps(dict(m, e=number)).encode() + b"\n")

    def rejoin(self, before=None):
        """Comes back into the group; returns the number of the last broadcast without this rank. before(n) is called ahead
        of it, while nobody waits for this rank; n is the newest broadcast then."""
        if before:
            before(self.ask()["newest"])
        self.enter()
        self.have = self.n
        return self.n

    def forget(self):
        for s in (self.sock, self.keeper):
            s.close()

    def close(self):
        self.closing = True
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
            self.keeper.drop(owners)
        if self.size > 1 and messages:
            if places is not None:  # what is there now is not needed any more: message m, which takes no slot, counts as read
                self.read = m + 1
                self.tell(t="ate", m=m + 1)
            if root == self.rank:
                self.send(n, m, messages, buffers, places)
            else:
                self.receive(m, messages, buffers, places, root)
        self.n, self.m, self.last, self.have = n, end, root, n
        self.keeper.add(n, buffers, owners, unchanged())
        if self.size > 1:  # only now: who lacks n asks those that have told this
            self.tell(t="have", n=n)

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
                self.raised = True
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
        self.barriers = self.barriers + 1 if self.after == self.n else 1
        self.after = self.n
        key = (self.n, self.barriers)
        self.tell(t="bar", n=key[0], j=key[1])
        with self.changed:
            self.wait(lambda: key in self.released)
            self.released.discard(key)

    # Versions.

    def ask(self, **m):
        if self.size == 1:
            return {"version": self.n, "newest": self.n, "label": None, "keepers": [], "root": None, "coming": False}
        while True:
            number, hubs = next(self.ids), self.hubs
            self.tell(t="ask", id=number, **m)
            with self.changed:
                self.changed.wait_for(lambda: number in self.told or self.final or self.hubs != hubs, ANEW)  # pylint: disable=cell-var-from-loop
                if number in self.told:
                    return self.told.pop(number)
                if self.hubs == hubs:
                    raise Lost(self.over or self.out or "rank %d of the group does not answer" % self.lead)

    def fetch(self, buffers, n):
        """Fills buffers with broadcast n from a member that has kept it; returns the rank of that one."""
        why, tried, end = [], set(), time.monotonic() + self.timeout
        while time.monotonic() < end:
            told = self.ask(n=n)
            keepers = [k for k in told["keepers"] if k[0] not in tried]
            if not keepers and not told["coming"]:
                break
            if not keepers:  # who comes back while broadcast n is under way is ahead of all
                time.sleep(LATER)
                continue
            rank, (host, port, *_) = min(keepers, key=lambda k: (k[0] == told["root"], random.random()))  # a source's link has enough to do
            tried.add(rank)
            try:
                keep.fetch((host, port), self.token, n, buffers)
                return rank
            except (OSError, ValueError) as err:
                why.append("rank %d: %s" % (rank, err))
        raise RuntimeError("no member has broadcast %d any more (%s): GLEAM_KEEP says how many are kept, and tensors that were changed are not" % (n, "; ".join(why) or "none has got it"))
