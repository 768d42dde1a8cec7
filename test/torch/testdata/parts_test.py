# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of gleam_torch that need no torch: ring, credits, membership and versions, with a
helper that copies from one rank's memory into the others'."""
import contextlib
import itertools
import json
import os
import queue
import random
import selectors
import socket
import sys
import threading
import time
import types
import unittest

package = types.ModuleType("gleam_torch")  # without torch
package.__path__ = [os.path.join(sys.argv.pop(), "gleam_torch")]
sys.modules["gleam_torch"] = package
from gleam_torch import channel, door, helper, hub, keep, meet, server  # noqa: E402  pylint: disable=wrong-import-position

SLOT = channel.SLOT = 1 << 10
channel.GRACE = 1


class Fabric:
    """A group in memory: what a rank posts is in the others' windows in order, and complete a little later."""

    def __init__(self):
        self.ports, self.lock, self.posts = {}, threading.Lock(), 0
        self.windows, self.copies, self.members = {}, 0, []  # by address and name; posts to other addresses; of what was made
        self.taken, self.qps = 0, itertools.count(16)
        self.open, self.mixed, self.completions = [], False, queue.SimpleQueue()
        threading.Thread(target=self.complete, daemon=True).start()

    def complete(self):
        while True:
            source, number = self.completions.get()
            time.sleep(0.0002)
            with self.lock:
                self.open.remove((source, number))
            source.take({"done": [number + (1 << 40)]})

    def post(self, source, number, offset, length):
        with self.lock:
            self.posts += 1
            self.mixed = self.mixed or any(s is not source for s, _ in self.open)
            self.open.append((source, number))
            others = [p for p in self.ports.values() if p is not source and p.name == source.name]
            for memory in {id(p.memory): p.memory for p in others if p.ip != source.ip}.values():
                self.copies += 1
                memory[offset:offset + length] = source.memory[offset:offset + length]
            for p in others:
                p.take({"got": [[number & 0xffffffff, length]]})
        self.completions.put((source, number))


class Store:
    """torch's, in memory."""

    def __init__(self):
        self.values, self.lock, self.lost = {}, threading.Lock(), False

    def add(self, key, n):
        with self.lock:
            if self.lost:
                raise RuntimeError("connection reset")
            self.values[key] = self.values.get(key, 0) + n
            return self.values[key]

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key]


class FakeHelper:
    def __init__(self, fabric, rank, ip, works=True):
        self.fabric, self.rank, self.ip, self.works, self.removed, self.stuck, self.qp = fabric, rank, ip, works, [], None, None

    def window(self, name, size, master, alone, take):
        if not self.works:
            raise RuntimeError("there is no interface")
        if alone and (self.ip, name) in self.fabric.windows:
            raise RuntimeError("several ranks have this address")
        self.name, self.memory, self.take = name, self.fabric.windows.setdefault((self.ip, name), bytearray(size)), take
        return 1, self.memory, "here" if master else None

    def ask(self, op, _, **m):
        if op == "remove":
            self.removed.append((m["member"], m["qpn"]))
        elif self.stuck:
            self.stuck.wait(20)
            raise RuntimeError("it took too long")
        elif op == "make" and self.fabric.taken:
            self.fabric.taken -= 1
            raise RuntimeError("another registration has this group address: take another address")
        else:
            with self.fabric.lock:
                self.qp = self.qp or next((p.qp for p in self.fabric.ports.values() if (p.ip, p.name) == (self.ip, self.name)), None) or next(self.fabric.qps)
                self.fabric.ports[self.rank] = self
                if op == "make":
                    self.fabric.members.append(m["members"])
            return {"qpn": self.qp}, []
        return None

    def post(self, _, number, offset, length):
        self.fabric.post(self, number, offset, length)

    def leave(self, _):
        with self.fabric.lock:
            self.fabric.ports.pop(self.rank, None)


class Job:
    """Ranks in one process, with a server. hosts: that of each rank."""

    def __init__(self, size, strict=False, slots=4, lame=None, keep=4, tensors=0, lag=0, again=False, hosts=None):
        self.hosts = hosts or range(size)
        self.fabric, self.size, self.strict, self.slots, self.keep, self.tensors = Fabric(), size, strict, slots, keep, tensors
        self.helpers, self.removed = {}, []
        self.meeting = meet.Meeting(Store())
        self.server = server.Server("127.0.0.1", "secret", size, self.remove, lag, again=again)
        self.meeting.publish(1, ("127.0.0.1", self.server.port), "secret")
        self.channels = [self.channel(r, works=r != lame) for r in range(size)]

    def channel(self, rank, back=False, works=True):
        ip = "127.0.0.%d" % (1 + self.hosts[rank])
        self.helpers[rank] = FakeHelper(self.fabric, rank, ip, works)
        settings = {"ip": ip, "group": lambda: "10.0.0.1", "dead_after": 1, "keep": self.keep}
        hubs = self.meeting.latest()

        def serve(c, number):
            s = server.Server("127.0.0.1", "secret", self.size, self.remove, again=True, number=number << 16, lead=c.rank, expected={*c.members, c.rank} - set(c.gone))
            self.server = s
            return s, ("127.0.0.1", s.port), "secret"
        return channel.Channel(rank, self.size, self.meeting.place(hubs)[0], "secret", lambda: self.helpers[rank], self.strict, self.slots, self.tensors, settings,
                               self.server if rank == 0 and not back else None, back, 20, lambda c, n, turn: self.meeting.next(n, turn, lambda k: serve(c, k)), hubs)

    def each(self, f, ranks=None):
        """Runs f(channel) for all ranks at once; returns results, exceptions among them."""
        ranks = range(self.size) if ranks is None else ranks
        results = dict.fromkeys(ranks)

        def run(r):
            try:
                results[r] = f(self.channels[r])
            except Exception as err:  # pylint: disable=broad-except
                results[r] = err
        threads = [threading.Thread(target=run, args=(r,)) for r in ranks]
        for t in threads:
            t.start()
        for t in threads:
            t.join(30)
            assert not t.is_alive(), "a rank hangs"
        return [results[r] for r in ranks]

    def remove(self, p, why=""):
        self.removed.append(p.ip)
        if why:
            self.fabric.ports.pop(p.rank)
            threading.Thread(target=lambda: self.server.hears("removed", p, why, True)).start()

    def kill(self, rank):
        self.fabric.ports.pop(rank, None)
        if self.channels[rank].server:  # a process that is killed
            self.channels[rank].server.hub.gone = True
        with contextlib.suppress(OSError):  # the hub has ended it
            self.channels[rank].sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        lead = self.server.hub.lead
        self.each(lambda c: c.close(), [r for r in range(self.size) if r != lead])
        self.channels[lead].close()


def data(seed, size):
    return bytearray(random.Random(seed).randbytes(size))


class Parts(unittest.TestCase):
    def job(self, *args, **kwargs):
        j = Job(*args, **kwargs)
        self.addCleanup(j.close)
        return j

    def until(self, happened):
        deadline = time.monotonic() + 10
        while not happened() and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertTrue(happened())

    def test_pieces(self):
        for seed in range(300):
            r = random.Random(seed)
            lengths = [r.choice([0, 1, 5, 9, 10, 11, 35]) for _ in range(r.randint(0, 6))]
            got = list(channel.pieces(lengths, 10))
            self.assertEqual([(b, i) for m in got for b, begin, stop in m for i in range(begin, stop)], [(b, i) for b, n in enumerate(lengths) for i in range(n)])
            self.assertTrue(all(sum(stop - begin for _, begin, stop in m) == 10 for m in got[:-1]))

    def test_broadcasts(self):
        """Random sizes, many rings long, from all roots; one reads slowly, and nothing is overwritten before."""
        j = self.job(3)
        r = random.Random(1)
        plan = [(r.randrange(3), [r.choice([0, 1, 100, SLOT - 1, SLOT, 9 * SLOT + 17, 20 * SLOT]) for _ in range(r.randint(1, 4))]) for _ in range(40)]

        def run(c):
            self.assertTrue(c.open())
            for i, (root, sizes) in enumerate(plan):
                want = [data(100 * i + k, n) for k, n in enumerate(sizes)]
                buffers = [bytearray(w) if c.rank == root else bytearray(len(w)) for w in want]
                if c.rank == 2 and i % 8 == 0:
                    time.sleep(0.02)
                c.broadcast([memoryview(b) for b in buffers], root)
                if buffers != want:
                    return "broadcast %d differs" % i
            c.barrier()
            return c.n
        self.assertEqual(j.each(run), [40] * 3)
        self.assertFalse(j.fabric.mixed, "two sources at a time")
        self.assertEqual(j.fabric.posts, sum(len(list(channel.pieces(s, SLOT))) for _, s in plan))

    def test_window(self):
        """What lies in the window is written when all have called, and not before."""
        j = self.job(2, tensors=1 << 14)
        self.assertEqual(j.each(lambda c: c.open()), [True, True])
        at = [c.allot(3 * SLOT) for c in j.channels]
        self.assertEqual(at, [4 * SLOT] * 2)
        with self.assertRaises(MemoryError):
            j.channels[0].allot(1 << 14)
        a, b = j.channels
        views = [memoryview(c.memory)[at[0]:at[0] + 3 * SLOT] for c in j.channels]
        for seed in (1, 2):
            views[0][:] = data(seed, 3 * SLOT)
            t = threading.Thread(target=lambda: a.broadcast([views[0]], 0, [at[0]]))
            t.start()
            t.join(0.2)
            self.assertTrue(t.is_alive())
            self.assertEqual(bytes(views[1]) == data(seed, 3 * SLOT), False)
            b.broadcast([views[1]], 0, [at[0]])
            t.join(10)
            self.assertEqual(bytes(views[1]) == data(seed, 3 * SLOT), True)

    def test_sizes_differ(self):
        j = self.job(2)

        def run(c):
            c.open()
            c.broadcast([memoryview(bytearray(100 + c.rank))], 0)
        self.assertIn("other sizes", str(j.each(run)[1]))

    def test_no_helper(self):
        j = self.job(3, lame=1)
        self.assertEqual(j.each(lambda c: (c.open(), c.why_gloo)), [(False, "rank 1: there is no interface")] * 3)

    def test_lost_while_made(self):
        """A rank that dies while the group is made is an error at the others before their helpers give up."""
        j = self.job(3)
        stuck = threading.Event()
        self.addCleanup(stuck.set)
        for h in j.helpers.values():
            h.stuck = stuck
        threading.Timer(0.3, lambda: j.kill(2)).start()
        begin = time.monotonic()
        for err in j.each(lambda c: c.open())[:2]:
            self.assertIsInstance(err, channel.Lost)
            self.assertIn("rank 2 is lost before the group was made", str(err))
        self.assertLess(time.monotonic() - begin, 5)

    def test_lost_receiver(self):
        """The others go on with broadcasts and barriers; a new process is in from the next broadcast on, and catches up."""
        j = self.job(3)
        sizes = 30 * SLOT

        def step(c, seed, begin=False):
            if begin:
                c.open()
            b = bytearray(data(seed, sizes) if c.rank == 0 else sizes)
            if c.rank == 2 and seed == 2:
                return None  # it hangs, and is killed
            c.broadcast([memoryview(b)], 0)
            c.barrier()
            return b == data(seed, sizes)
        self.assertEqual(j.each(lambda c: step(c, 1, True)), [True] * 3)
        threading.Timer(0.3, lambda: j.kill(2)).start()
        self.assertEqual(j.each(lambda c: step(c, 2), [0, 1]), [True] * 2)
        self.assertEqual(j.channels[0].members, [0, 1])
        self.assertEqual(j.removed, ["127.0.0.3"])
        j.each(lambda c: c.close(), [2])

        # The new process enters while a broadcast is under way, which it is not in.
        back, early, at_once = threading.Event(), [], bytearray(sizes)
        fetched = queue.SimpleQueue()
        fetching = threading.Thread(target=lambda: fetched.put(j.channels[2].fetch([memoryview(at_once)], 3)), daemon=True)
        original = j.fabric.post

        def post(source, number, offset, length):
            original(source, number, offset, length)
            if number == 75 and not back.is_set():
                j.channels[2] = j.channel(2, back=True)
                self.assertEqual(j.channels[2].rejoin(early.append), 3)
                fetching.start()  # nobody has all of 3 yet
                back.set()
        j.fabric.post = post
        self.assertEqual(j.each(lambda c: step(c, 3), [0, 1]), [True] * 2)
        self.assertTrue(back.is_set())
        self.assertEqual(early, [2])
        self.assertIn(fetched.get(timeout=10), [0, 1])
        self.assertEqual(at_once, data(3, sizes))
        late = bytearray(sizes)
        self.assertIn(j.channels[2].fetch([memoryview(late)], 3), [0, 1])
        self.assertEqual(late, data(3, sizes))
        with self.assertRaisesRegex(RuntimeError, "has tensors of"):
            j.channels[2].fetch([memoryview(bytearray(5))], 3)
        with self.assertRaisesRegex(RuntimeError, "no member has broadcast 9"):
            j.channels[2].fetch([memoryview(late)], 9)
        self.assertEqual(j.each(lambda c: step(c, 4)), [True] * 3)
        self.assertEqual([e[1:3] for e in j.channels[0].log], [("lost", 2), ("joined", 2)])
        self.assertEqual(j.channels[1].ask(rank=2)["version"], 4)

    def test_changed_is_not_served(self):
        j = self.job(2)
        changed = []
        b = [bytearray(b"x" * 5000), bytearray(5000)]

        def run(c):
            c.open()
            c.broadcast([memoryview(b[c.rank])], 0, owners=frozenset([c.rank]), unchanged=lambda: lambda: not changed)
            c.barrier()
        j.each(run)
        got = bytearray(5000)
        self.assertEqual(j.channels[1].fetch([memoryview(got)], 1), 0)
        changed.append(1)
        with self.assertRaisesRegex(RuntimeError, "no member.*rank 0: has changed it meanwhile"):
            j.channels[1].fetch([memoryview(got)], 1)
        changed.clear()
        self.assertEqual(j.channels[0].fetch([memoryview(got)], 1), 1)
        j.each(run)  # into the same memory
        with self.assertRaisesRegex(RuntimeError, "no member.*rank 1: has not kept it"):
            j.channels[0].fetch([memoryview(got)], 1)
        self.assertEqual(j.channels[0].fetch([memoryview(got)], 2), 1)

    def test_the_first_keeper_fails(self):
        """A broadcast is fetched from who gets it later, where those that had it first have ended; who tells that it has one gives it."""
        j = self.job(3)
        j.each(lambda c: c.open())
        told = []
        for c in j.channels:
            def tell(c=c, tell=c.tell, **m):
                told.extend([any(k[0] == m["n"] for k in c.keeper.kept)] if m["t"] == "have" else [])
                tell(**m)
            c.tell = tell
        j.channels[0].keeper.listener.shutdown(socket.SHUT_RDWR)
        got, b = bytearray(3 * SLOT), data(1, 3 * SLOT)

        def run(c):
            if c.rank == 2:
                while not told:
                    time.sleep(0.001)
                return c.fetch([memoryview(got)], 1)
            if c.rank == 1:
                time.sleep(0.3)
            c.broadcast([memoryview(b if c.rank == 0 else bytearray(3 * SLOT))], 0)
            return None
        self.assertEqual(j.each(run), [None, None, 1])
        self.assertEqual((got, told), (b, [True, True]))

    def test_lacking(self):
        """Only the blocks that differ are sent, at the rate; a keeper that dies in between leaves what it has sent."""
        rate = 4 << 20
        full = [memoryview(data(1, 3_000_000)), memoryview(data(2, 1_500_001))]
        keepers = [keep.Keeper("127.0.0.1", 2, "secret", r) for r in (rate, 0)]
        for k in keepers:
            self.addCleanup(k.close)
            k.add(7, full, frozenset(), lambda: True)
        got = [memoryview(bytearray(len(b))) for b in full]
        with self.assertRaisesRegex(ValueError, "not kept"):
            keep.fetch(keepers[0].at, "secret", 8, got)
        begin = time.monotonic()
        keep.fetch(keepers[0].at, "secret", 7, got)
        seconds = time.monotonic() - begin
        self.assertEqual((got, keepers[0].sent), (full, 4_500_001))
        self.assertGreater(seconds, 0.7 * 4_500_001 / rate)
        got[1][700_000] ^= 1
        keep.fetch(keepers[1].at, "secret", 7, got)
        self.assertEqual((got, keepers[1].sent), (full, 1 << 20))
        keep.fetch(keepers[1].at, "secret", 7, got)
        self.assertEqual(keepers[1].sent, 1 << 20)
        with self.assertRaisesRegex(ValueError, "not kept"):
            keep.fetch(keepers[1].at, "guess", 7, got)

    def test_barrier_without_the_lost(self):
        j = self.job(3)
        j.each(lambda c: c.open())
        threading.Timer(0.3, lambda: j.kill(2)).start()
        self.assertEqual(j.each(lambda c: c.barrier(), [0, 1]), [None, None])

    def test_token(self):
        there = server.Server("127.0.0.1", "secret", 2, lambda p: None)
        self.addCleanup(there.close)
        for token, want in (("guess", b""), ("secret", b"{")):
            with socket.create_connection(("127.0.0.1", there.port)) as s:
                s.sendall(json.dumps({"t": "hello", "token": token, "rank": 0, "ip": "", "keeper": [], "back": False}).encode() + b"\n")
                s.settimeout(5)
                got = b""
                with contextlib.suppress(ConnectionResetError):
                    got = s.recv(1)
                self.assertEqual(got, want)

    def test_lost_source(self):
        j = self.job(3)

        def run(c):
            c.open()
            if c.rank == 1:
                c.tell(t="start", n=1, m=0, k=10)
                c.helper.post(1, 0, 0, SLOT)
                time.sleep(0.1)
                j.kill(1)
                return None
            b = bytearray(10 * SLOT)
            begin = time.monotonic()
            try:
                c.broadcast([memoryview(b)], 1)
            except channel.Lost as err:
                again = ""
                try:
                    c.barrier()
                except channel.Lost as e:
                    again = str(e)
                return str(err), again, time.monotonic() - begin < 5
            return None
        for why, again, quick in j.each(run)[::2]:
            for text in (why, again):
                self.assertRegex(text, "^rank 1, the source.*, is lost: its process has ended, or its host does not answer$")
            self.assertTrue(quick)

    def test_source_lost_before(self):
        """A rank that has come back knows who was lost before."""
        j = self.job(3)
        j.each(lambda c: (c.open(), c.barrier()))
        for r in (1, 2):
            j.kill(r)
            j.each(lambda c: c.close(), [r])
        self.until(lambda: j.channels[0].members == [0])
        j.channels[2] = j.channel(2, back=True)
        j.channels[2].rejoin()
        with self.assertRaisesRegex(channel.Lost, "rank 1, the source, is lost: before this rank was in"):
            j.channels[2].broadcast([memoryview(bytearray(10))], 1)

    def test_earlier_connection(self):
        """A connection that is silent takes out the ranks of its address, unless its rank has come back by another one."""
        for again in (True, False):
            s = server.Server("127.0.0.1", "secret", 4, lambda *_: None)
            self.addCleanup(s.close)
            old, new, beside = (server.Connection(socket.socketpair()[0], s) for _ in range(3))
            for p, rank, qp in (old, 2, 16), (new, 2, 17), (beside, 3, 17 if again else 16):
                p.rank, p.ip, p.state, p.qp = rank, "10.0.0.2", hub.IN, qp
            old.end(TimeoutError())
            with s.lock, selectors.DefaultSelector() as ready:
                s.hub.peers = {2: new if again else old, 3: beside}
                ready.register(old.sock, selectors.EVENT_READ, old)
                s.connections.add(old)
                s.look(ready, old)
                self.assertEqual(s.hub.peers, {2: new, 3: beside} if again else {})

    def test_lost_while_it_comes_back(self):
        """A new process is lost in each state ahead of its first broadcast, in each way: the others go on, and the next one comes back.
        That the process before it is evicted, which is said late, takes it out in none."""
        j = self.job(3, again=True)
        ip, old = "127.0.0.3", None

        def step(c):
            c.open()
            b = bytearray(data(c.n, 9 * SLOT) if c.rank == 0 else 9 * SLOT)
            c.broadcast([memoryview(b)], 0)
            c.barrier()
            return b == data(c.n - 1, 9 * SLOT), c.members

        def hold(f, late):
            def run(*args, **kwargs):
                got = f(*args, **kwargs) if late else None
                there.set()
                self.assertTrue(go.wait(10))
                return got if late else f(*args, **kwargs)
            return run
        self.assertEqual(j.each(step), [(True, [0, 1, 2])] * 3)
        for how in ("evicted", "silent", "killed", "another", "before"):
            for state in ("hello", "want", "joined", "in"):
                with self.subTest(how=how, state=state):
                    old = j.helpers[2].qp or old
                    j.kill(2)
                    j.channels[2].close()
                    c, h, there, go = j.channel(2, back=True), j.helpers[2], threading.Event(), threading.Event()
                    j.channels[2] = c
                    if state == "hello":
                        h.window = hold(h.window, False)
                    elif state != "in":
                        h.ask = hold(h.ask, state == "joined")
                    got = queue.SimpleQueue()

                    def come():
                        try:
                            got.put(c.rejoin())
                        except channel.Lost as err:
                            got.put(err)
                    threading.Thread(target=come, daemon=True).start()
                    if state == "in":
                        self.assertEqual(got.get(timeout=10), j.channels[0].n)
                    else:
                        self.assertTrue(there.wait(10))
                        self.until(lambda: 2 in j.server.hub.peers)
                    if how == "before":
                        j.server.hears("evicted", ip, old, "it was silent")
                        go.set()
                        if state != "in":
                            self.assertEqual(got.get(timeout=10), j.channels[0].n)
                        self.assertEqual(j.each(step), [(True, [0, 1, 2])] * 3)
                        continue
                    if how == "evicted":
                        h.qp = h.qp or next(j.fabric.qps)
                        j.server.hears("evicted", ip, h.qp, "it was silent")
                    elif how == "silent":
                        with j.server.lock:
                            j.server.hub.peers[2].end(TimeoutError())
                            j.server.wake()
                    elif how == "killed":
                        j.kill(2)
                    else:  # a process of its rank comes, and ends
                        was = j.server.hub.peers[2]
                        next_one = j.channel(2, back=True)
                        self.until(lambda: j.server.hub.peers.get(2) is not was)
                        next_one.close()
                    go.set()
                    j.fabric.ports.pop(2, None)
                    for _ in range(2):
                        self.assertEqual(j.each(step, [0, 1]), [(True, [0, 1])] * 2)
                    if state != "in":
                        self.assertIsInstance(got.get(timeout=10), channel.Lost)
                    with self.assertRaises(channel.Lost):
                        c.barrier()
                    self.assertEqual([e[1:3] for e in j.channels[0].log if e[2] == 2][-1], ("lost", 2))

    def test_lag(self):
        """A rank that holds the source is out after the bound, and is told; one that reads each now and then is not."""
        for strict in (False, True):
            j = self.job(3, strict=strict, lag=0.5)
            j.each(lambda c: c.open())

            def run(c):
                if c.rank == 2:
                    time.sleep(0.3)
                    c.broadcast([memoryview(bytearray(12 * SLOT))], 0)
                    time.sleep(1.2)
                begin = time.monotonic()
                for size in (12, 100)[c.rank == 2:]:
                    c.broadcast([memoryview(bytearray(size * SLOT))], 0)
                return time.monotonic() - begin
            got = j.each(run)
            late = r"it has not read for (5\d\d|6\d\d|7\d\d|8\d\d) ms"
            for r in (0, 1, 2)[0 if strict else 2:]:
                self.assertIsInstance(got[r], channel.Lost)
                self.assertRegex(str(got[r]), late)
            if not strict:
                self.assertLess(max(got[:2]), 1.4)
                self.assertEqual(j.channels[0].members, [0, 1])

    def anew(self, j, killed, source, others):
        """A rank is killed in a broadcast: Lost at all others, once; then broadcasts and barriers go on, and versions say what each has."""
        def first(c):
            c.open()
            b = bytearray(data(1, 30 * SLOT) if c.rank == 0 else 30 * SLOT)
            c.broadcast([memoryview(b)], 0)
            c.barrier()
            return b == data(1, 30 * SLOT)
        self.assertEqual(j.each(first), [True] * 4)
        idle = others[-1]

        def during(c):
            if c.rank == killed:
                c.open()
                if killed == source:
                    c.tell(t="start", n=2, m=30, k=20)
                    time.sleep(0.2)
                else:
                    time.sleep(0.2)
                j.kill(c.rank)
                return "killed"
            if c.rank == idle:
                time.sleep(1)  # has not called when the group ends
            try:
                c.open()
                c.broadcast([memoryview(bytearray(data(2, 20 * SLOT)))], source)
            except channel.Lost as err:
                return str(err)
            return "no error"
        said = j.each(during)
        for text in (said[r] for r in others):
            self.assertIn("rank %d" % killed, text, said)
        lead, root = others[0], others[1]

        def after(c):
            versions = [c.have]
            for i in (1, 2):
                self.assertTrue(c.open())
                b = bytearray(data(i, 25 * SLOT) if c.rank == root else 25 * SLOT)
                c.broadcast([memoryview(b)], root)
                c.barrier()
                versions.append((c.have, c.ask(rank=c.rank)["version"], b == data(i, 25 * SLOT)))
            return versions, c.lead, c.members
        got = j.each(after, others)
        self.assertEqual(got, [([1, (2, 2, True), (3, 3, True)], lead, others)] * len(others))
        j.each(lambda c: c.close(), [killed])

        j.channels[killed] = j.channel(killed, back=True)  # which may lead later
        self.assertEqual(j.channels[killed].rejoin(), 3)
        late = bytearray(25 * SLOT)
        self.assertIn(j.channels[killed].fetch([memoryview(late)], 3), others)
        self.assertEqual(late, data(2, 25 * SLOT))

    def test_source_killed(self):
        self.anew(self.job(4, again=True), 1, 1, [0, 2, 3])

    def test_leader_killed(self):
        self.anew(self.job(4, again=True), 0, 1, [1, 2, 3])

    def test_leaders_killed(self):
        """One leader after the other, until one rank is alone; it goes on when another comes back."""
        j = self.job(4, again=True)

        def step(c):
            for _ in range(2):
                try:
                    c.open()
                    c.broadcast([memoryview(bytearray(100))], 3)
                    c.barrier()
                    return c.n
                except channel.Lost:
                    continue
            return None
        self.assertEqual(j.each(step), [1] * 4)
        for n in (0, 1):
            j.kill(n)
            self.assertEqual(j.each(step, range(n + 1, 4)), [n + 2] * (3 - n))
        j.kill(2)
        j.each(lambda c: c.close(), [0, 1, 2])
        alone = threading.Thread(target=step, args=(j.channels[3],))
        alone.start()
        while j.server.hub.lead != 3:
            time.sleep(0.01)
        j.channels[1] = j.channel(1, back=True)
        self.assertEqual(j.channels[1].rejoin(), 3)
        self.assertEqual(j.each(lambda c: (c.broadcast([memoryview(bytearray(100))], 3), c.barrier(), c.n)[2], [1]), [4])
        alone.join(10)
        self.assertFalse(alone.is_alive())

    def test_ranks_of_a_host(self):
        """Each address has each message once, from all roots. A rank that dies takes nothing from the others of its host, its
        address goes with the last one, and a new process is in beside the others."""
        j = self.job(6, again=True, hosts=[0, 0, 1, 1, 1, 2])
        self.assertEqual(j.each(lambda c: c.open()), [True] * 6)
        self.assertEqual(j.fabric.members, [2])

        def step(root):
            def run(c):
                b = bytearray(data(root, 30 * SLOT + 5) if c.rank == root else 30 * SLOT + 5)
                c.broadcast([memoryview(b)], root)
                c.barrier()
                return b == data(root, 30 * SLOT + 5)
            return run
        for root in range(6):
            self.assertEqual(j.each(step(root)), [True] * 6)
        self.assertEqual((j.fabric.copies, j.fabric.posts), (2 * 31 * 6, 31 * 6))
        for killed, left, removed in ((3, [0, 1, 2, 4, 5], []), (1, [0, 2, 4, 5], []), (2, [0, 4, 5], []), (4, [0, 5], ["127.0.0.2"])):
            threading.Timer(0.1, j.kill, (killed,)).start()
            for root in left[:2]:
                self.assertEqual(j.each(step(root), left), [True] * len(left))
            self.assertEqual((j.channels[0].members, j.removed), (left, removed))
            j.each(lambda c: c.close(), [killed])
        for r in (1, 4, 3):
            j.channels[r] = j.channel(r, back=True)
            self.assertEqual(j.channels[r].rejoin(), j.channels[0].n)
            left = sorted(left + [r])
            for root in (0, r):
                self.assertEqual(j.each(step(root), left), [True] * len(left))
        self.assertEqual((j.channels[0].members, j.fabric.members), ([0, 1, 3, 4, 5], [2]))

    def test_host_lost(self):
        """All ranks of an address are out together: the switch has removed it, its kernel is silent, or its helper has ended."""
        for how in ("evicted", "silent", "helper"):
            j = self.job(5, again=True, hosts=[0, 0, 1, 1, 2])
            j.each(lambda c: (c.open(), c.barrier()))
            if how == "evicted":
                j.server.hears("evicted", "127.0.0.2", j.helpers[2].qp, "it was silent")
            elif how == "silent":
                with j.server.lock:
                    j.server.hub.peers[3].end(TimeoutError())
                    j.server.wake()
            else:
                for r in (2, 3):
                    j.helpers[r].take({"event": "failed", "text": "the helper has ended", "helper": "ended"})
            for r in (2, 3):
                with self.assertRaises(channel.Lost):
                    j.channels[r].barrier()
            self.assertEqual(j.each(lambda c: (c.broadcast([memoryview(bytearray(9 * SLOT))], 4), c.barrier(), c.members)[2], [0, 1, 4]), [[0, 1, 4]] * 3)
            self.assertEqual(j.removed[-1:], ["127.0.0.2"])

    def test_source_of_a_host_killed(self):
        self.anew(self.job(4, again=True, hosts=[0, 1, 1, 2]), 1, 1, [0, 2, 3])

    def test_leader_of_a_host_killed(self):
        self.anew(self.job(4, again=True, hosts=[0, 0, 1, 1]), 0, 1, [1, 2, 3])

    def test_lag_of_a_host(self):
        """A rank that holds the source is out, and the others, whose address stays, take another window: nothing is written over what it may read."""
        j = self.job(4, again=True, lag=0.5, hosts=[0, 1, 1, 2])
        j.each(lambda c: c.open())
        old = j.channels[2].memory

        def run(c):
            b = memoryview(bytearray(data(7, 12 * SLOT)))
            if c.rank == 2:  # as if it read the first ring
                while 2 in j.channels[0].members:
                    time.sleep(0.01)
                time.sleep(0.5)
                return bytes(old) == data(7, 12 * SLOT)[:4 * SLOT]
            for n in range(3):
                try:
                    c.open()
                    c.broadcast([b], 1)
                    return n
                except channel.Lost as err:
                    self.assertRegex(str(err), "it has not read for")
            return None
        self.assertEqual(j.each(run), [1, 1, True, 1])
        self.assertEqual(j.removed, [])
        with self.assertRaisesRegex(channel.Lost, "it has not read for"):
            j.channels[2].barrier()

    def test_one_address(self):
        j = self.job(3, hosts=[0, 0, 0])
        self.assertEqual(j.each(lambda c: (c.open(), c.why_gloo)), [(False, "all ranks have the address 127.0.0.1: a group wants two")] * 3)
        j = self.job(3, hosts=[0, 1, 1], tensors=1 << 14)
        for made, why in j.each(lambda c: (c.open(), c.why_gloo)):
            self.assertFalse(made)
            self.assertRegex(why, "rank [12]: several ranks have this address")

    def test_helper_of_an_address(self):
        """Processes have one helper, which ends with the last one; those that begin while it ends have another one. Where it ends all hear of it."""
        program = [sys.executable, "-c", """if True:
            import selectors, socket
            listener, s = socket.socket(fileno=0), selectors.DefaultSelector()
            s.register(listener, selectors.EVENT_READ)
            left = 0
            while True:
                for key, _ in s.select():
                    if key.fileobj is listener:
                        c, _ = listener.accept()
                        c.send(b"{}")
                        s.register(c, selectors.EVENT_READ)
                        left += 1
                    elif not key.fileobj.recv(100):
                        s.unregister(key.fileobj)
                        key.fileobj.close()
                        left -= 1
                if not left:
                    break
            """]

        def each(f):
            got = queue.SimpleQueue()

            def run():
                try:
                    got.put(f())
                except RuntimeError as err:
                    got.put(err)
            threads = [threading.Thread(target=run) for _ in range(6)]
            for t in threads:
                t.start()
            return [got.get(timeout=20) for _ in threads]

        def come_and_go():
            for _ in range(5):
                h = helper.Helper(program)
                time.sleep(random.uniform(0, 0.03))
                h.close()
            return "well"
        self.assertEqual(each(come_and_go), ["well"] * 6)
        all_there = threading.Barrier(6)

        def killed():
            h, heard = helper.Helper(program), queue.SimpleQueue()
            h.groups[1] = heard.put
            all_there.wait(10)
            if h.process:
                h.process.kill()
            return heard.get(timeout=5)["text"].rpartition(": ")[2]
        self.assertEqual(sorted(each(killed)), ["another rank of this address had started it"] * 5 + ["exit code -9"])
        for err in each(lambda: helper.Helper([sys.executable, "-c", "import sys; sys.exit('no interface')"])):
            self.assertEqual(str(err), "the helper, gleam rank, has ended: no interface")
        with self.assertRaisesRegex(RuntimeError, r"name its file by --key-file \(GLEAM_KEY_FILE\)"):
            helper.Helper([sys.executable, "-c", "import sys; sys.exit('name its file by --key-file')"])

    def test_waits_end(self):
        """What waits for a helper that is stopped, for a broadcast that does not end, or for a rank that does not read, ends with an error."""
        helper.SLOW, slow = 1, helper.SLOW
        self.addCleanup(setattr, helper, "SLOW", slow)
        h = helper.Helper([sys.executable, "-c", "import socket, time; c, _ = socket.socket(fileno=0).accept(); c.send(b'{}'); time.sleep(60)"])
        self.addCleanup(h.close)
        self.addCleanup(h.process.kill)
        with self.assertRaisesRegex(RuntimeError, "has not answered for 1 s"):
            h.ask("leave", 1)
        with self.assertRaisesRegex(RuntimeError, "the helper, gleam rank: .*temporarily unavailable"):
            for n in range(100_000):
                h.post(1, n, 0, 0)
        j = self.job(3, again=True)
        j.each(lambda c: (c.open(), setattr(c, "timeout", 2)))
        b = [memoryview(bytearray(9 * SLOT))]
        source, _, late = j.each(lambda c: (lambda: c.broadcast(b, 0), lambda: c.tell(t="ate", m=2), lambda: (time.sleep(0.2), c.fetch(b, 1)))[c.rank]())
        self.assertRegex(str(source), "no end after 2 s, .*; rank 2 has read the least")
        self.assertRegex(str(late), "no member has broadcast 1 ")

    def test_no_store(self):
        """A leader and torch's Store are lost: nothing comes after."""
        j = self.job(3, again=True)
        j.each(lambda c: (c.open(), c.barrier()))
        j.meeting.store.lost = True
        j.kill(0)
        for err in j.each(lambda c: (c.open(), c.barrier()), [1, 2]):
            self.assertIsInstance(err, channel.Lost)
        for err in j.each(lambda c: (c.open(), c.barrier()), [1, 2]):
            self.assertIsInstance(err, channel.Lost)
            self.assertIn("without torch's Store", str(err))

    def test_address_taken(self):
        """Another job has the GroupIP: the group is made with another one."""
        for again in (True, False):
            j = self.job(3, again=again)
            j.fabric.taken = 3
            self.assertEqual(j.each(lambda c: (c.open(), c.barrier())[0]), [True] * 3)
            self.assertEqual(j.server.hub.number, 4)

    def test_strict(self):
        j = self.job(3, strict=True)

        def run(c):
            c.open()
            c.barrier()
            if c.rank == 2:
                j.kill(2)
                return None
            c.broadcast([memoryview(bytearray(100 * SLOT))], 0)
            return None
        for err in j.each(run)[:2]:
            self.assertIsInstance(err, channel.Lost)
            self.assertIn("rank 2 is lost", str(err))

    def test_leader_ends(self):
        """All that rank 0 has sent is taken from memory after its end."""
        j = self.job(2)

        def run(c):
            c.open()
            for i in range(3):
                b = bytearray(data(i, SLOT) if c.rank == 0 else SLOT)
                if c.rank == 1:
                    time.sleep(0.2)
                c.broadcast([memoryview(b)], 0)
                if b != data(i, SLOT):
                    return "differs"
            if c.rank == 0:
                c.close()
                return "ended"
            try:
                c.broadcast([memoryview(bytearray(1))], 0)
            except channel.Lost as err:
                return str(err)
            return "no error"
        got = j.each(run)
        self.assertEqual(got[0], "ended")
        self.assertRegex(got[1], "rank 0")

    def test_strangers(self):
        """Whatever a connection says, the hub goes on; without the token it hears nothing."""
        j = self.job(2)
        r = random.Random(5)
        words = [b"[" * 60000, b"{", b"}", b"[1]", b"null", b'{"t":"start","n":9,"m":1,"k":1}', b'{"t":"receive"}', b'{"t":"hello","token":"secret","rank":[],"ip":1,"keeper":1,"back":0}',
                 b'{"t":"hello","token":"guess","rank":1,"ip":"","keeper":[],"back":false}', b'{"t":"__init__","token":"secret"}', b'{"t":"hello","token":"secret","rank":7,"ip":"","keeper":[],"back":true}']
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", j.server.port)) as s:
                s.sendall(b"\n".join(r.choice(words) for _ in range(r.randint(1, 4))) + b"\n")
                if r.random() < 0.5:
                    s.settimeout(5)
                    with contextlib.suppress(OSError):  # the hub has closed it, or resets it
                        s.shutdown(socket.SHUT_WR)
                    with contextlib.suppress(ConnectionResetError):
                        while (got := s.recv(1000)) != b"":
                            self.assertNotIn(b"ranks", got)
        self.assertTrue(j.server.thread.is_alive())
        self.assertEqual(j.each(lambda c: c.open()), [True] * 2)

    def test_silent_strangers(self):
        """Connections that say nothing take neither the hub's place nor the keepers', however many there are, and end."""
        wait, door.HELLO = door.HELLO, 1.0
        self.addCleanup(setattr, door, "HELLO", wait)
        j = self.job(2)

        def strangers(at, begin=b""):
            for _ in range(4 * door.MANY):
                s = socket.create_connection(at, source_address=("127.0.0.77", 0))
                self.addCleanup(s.close)
                s.sendall(begin)
                yield s
        at_hub = list(strangers(("127.0.0.1", j.server.port)))
        at_keeper = list(strangers(j.channels[1].keeper.at, b"secr"))
        self.assertLessEqual(len(j.server.connections), 2 + door.MANY + 1)
        self.assertEqual(j.each(lambda c: c.open()), [True] * 2)
        want = data(1, 5000)
        got = j.each(lambda c: c.broadcast([memoryview(want if c.rank == 0 else bytearray(5000))], 0))
        self.assertEqual(got, [None] * 2)
        begin, into = time.monotonic(), bytearray(5000)
        keep.fetch(j.channels[1].keeper.at, "secret", 1, [memoryview(into)])
        self.assertLess(time.monotonic() - begin, door.HELLO)
        until = time.monotonic() + 5
        while len(j.server.connections) > 2 and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(len(j.server.connections), 2)  # also those that nobody displaces end
        for s in at_keeper:
            s.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(s.recv(1000), b"")

    def test_door(self):
        """The oldest of the address that has the most gives way, in the network that has the most, and nobody of another one."""
        d = door.Door()
        self.assertEqual([d.enter(n, "10.0.0.%d" % (n % 2)) for n in range(2)], [None] * 2)
        for n in range(2, door.MANY):
            self.assertIsNone(d.enter(n, "fd00::%x%%eth0" % n))
        self.assertEqual([d.enter(100 + n, "fd00::abcd") for n in range(3)], [2, 100, 101])
        d.leave(5)
        self.assertIsNone(d.enter(200, "10.0.0.9"))
        self.assertEqual((d.enter(201, "10.0.0.9"), d.late()), (3, []))

    def test_labels(self):
        j = self.job(2)

        def run(c):
            c.open()
            c.broadcast([memoryview(bytearray(10))], 0)
            if c.rank == 0:
                c.tell(t="label", n=1, label="step 7")
            c.barrier()
            return c.ask(label="step 7")["label"], c.ask(label="step 8")["label"]
        self.assertEqual(j.each(run), [(1, None)] * 2)

    def test_names(self):
        """The documented kinds of messages are those that are taken."""
        kinds = {n[3:] for n in dir(hub.Hub) if n.startswith("on_")}
        self.assertEqual(kinds, {"hello", "want", "in", "fail", "start", "held", "sent", "ate", "have", "bar", "label", "ask", "bye"})
        for k in kinds:
            self.assertRegex(hub.__doc__, r"\b%s\b" % k)
        json.dumps(sorted(kinds))


if __name__ == "__main__":
    unittest.main()
