# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Who is in a group, and how far each is. The leader, rank 0 of the group at first, has the Hub; every
rank, the leader too, has a connection to it, which ends with the rank's process. Messages are lines
of JSON; "t" is their kind. Data goes by the group alone.

Ranks with one address are one member of the group, with one queue pair and one window.

With policy evict a group that ends is made anew, under a higher number, which is "e" of what the
ranks say: over {why, number} has each of them begin with it. Where the leader is lost, the next one
makes a Hub with a higher number, to which the others say hello.

A broadcast has a number n, from 1, and k messages from number m on. To the Hub:

    hello {token, rank, ip, keeper, back, n}   the first line; back: of a lost rank's new process; n: the last broadcast in full
    want {ok, why, at, n}   the group is wanted; at (the leader): where the helper has members join
    in {qp}, fail {why, taken}   the helper has joined, by that queue pair, or has not; taken: another group has the address
    start {n, m, k}         the source asks to begin; the answer is go {n}
    held {m}                the source waits for ranks that have not read all before m, which they have in memory
    sent {m}                the source has completions of all messages before m
    ate {m}, have {n}       the rank has read all before m; has all of broadcast n
    bar {n, j}              the rank is at barrier j after broadcast n; the answer, when all are, is the same
    label {n, label}, ask {id, rank, label, n}, bye {}

From it, beside the answers: join {at, members}, gloo {why}, ready {n, m} (the rank is in from
broadcast n on, which begins with m), credit {ate, sent}, members {ranks, lead, event}, over {why,
number} (0: nothing comes after), again {number} (that is the number of the group that is being made, or is there).
"""
import time

GATHER = 4.0  # seconds for the ranks that live to find a Hub after one that is lost
TELL = 0.25  # seconds for the cause, where the switch has said before that the group has failed
TRIES = 16  # GroupIPs
OF_A_GROUP = ("want", "in", "fail", "start", "held", "sent", "ate", "bar")  # what counts for the group of its number alone

# What a Peer is to the Hub: it does not count yet; it counts; it counts until it is removed; nothing that it says counts any more.
COMING, IN, LEAVING, OUT = "coming", "in", "leaving", "out"


class Peer:
    """A connection to the Hub, and its rank after hello."""

    def __init__(self):
        self.rank = self.ip = self.keeper = self.want = self.qp = None  # qp: its address's queue pair, when its helper has joined
        self.state, self.entry, self.ate, self.version, self.moved = COMING, 1, 0, 0, 0.0  # moved: when ate became more

    def send(self, **m):
        raise NotImplementedError


class Hub:
    """The decisions, without sockets. remove(p) takes a peer's queue pair out of the group, and returns at once; with a
    reason it calls removed afterwards."""

    def __init__(self, size, remove, lag=0, clock=time.time, again=False, number=1, lead=0, expected=None):
        self.size, self.remove, self.lag, self.clock = size, remove, lag, clock  # lag: seconds; 0 is never
        self.held_at = 0.0  # since when source waits until all have read what is before message held
        self.peers, self.seen = {}, set()  # by rank; ranks that have said hello
        self.again, self.number, self.lead = again, number, lead
        self.expected = set(range(size)) if expected is None else set(expected)  # those that the group waits for
        self.gather_until = None if expected is None else self.clock() + GATHER
        self.was_made = expected is not None  # after that there is no way back to Gloo
        self.tries, self.labels, self.over, self.gone = 0, {}, "", False  # gone: the Hub ends with its leader
        self.fresh()

    def fresh(self):
        """Begins with the group of a number."""
        self.state = "gather"  # then joining, and made or gloo
        self.at, self.failing = None, None  # failing: (when, what to do then)
        self.began = self.started = self.next = self.sent = self.ate = self.held = 0  # broadcasts, before this group the first; messages
        self.source = self.root = None  # the rank of a broadcast under way; of the last one
        self.barriers, self.evictions = {}, set()  # evictions: (address, queue pair); one may come ahead of its in
        for p in self.peers.values():
            p.state, p.want, p.qp, p.entry, p.ate = IN, None, None, 1, 0

    def anew(self, why, quiet=False):
        """Has the group made once more, under the next number; with quiet nobody has used this one."""
        self.number += 1
        for p in list(self.peers.values()):
            if p.state == COMING:
                self.lose(p, "lost", "the group has ended before it was in: " + why)
        self.expected = set(self.peers)
        self.fresh()
        if quiet:
            self.tell(t="again", number=self.number)
        else:
            self.tell(t="over", number=self.number, why=why)

    def ready(self):
        return [p for p in self.peers.values() if p.state != COMING]

    def tell(self, **m):
        for p in list(self.peers.values()):
            p.send(**m)

    def end(self, why):
        if not self.over:
            self.over = why
            self.tell(t="over", number=0, why=why)

    def receive(self, p, m):
        """Takes a message; a wrong one raises an exception, and the caller closes p."""
        if p.rank is None and m["t"] != "hello":
            raise ValueError("no hello")
        if p.state != OUT and (m["t"] not in OF_A_GROUP or m["e"] == self.number):
            getattr(self, "on_" + m["t"])(p, m)

    def on_hello(self, p, m):
        rank = m["rank"]
        if p.rank is not None or type(rank) is not int or not 0 <= rank < self.size:
            raise ValueError("rank")
        old = self.peers.get(rank)
        if m["back"]:
            fits = rank != self.lead and (self.was_made or rank in self.seen) and (self.state == "made" or self.was_made and self.state == "gather")
        else:
            fits = self.state == "gather" and rank not in self.seen
        if self.over or not fits:
            p.send(t="over", number=0, why=self.over or "rank %d cannot %s" % (rank, "come back" if m["back"] else "join twice"))
            return
        if old:
            self.lose(old, "lost", "another process has taken its place")
        p.rank, p.ip, p.keeper, p.version = rank, m["ip"], m["keeper"], m.get("n", 0)
        p.state = COMING if m["back"] and self.state == "made" else IN
        self.peers[rank] = p
        self.seen.add(rank)
        if self.was_made and m["e"] != self.number:
            p.send(t="again", number=self.number)
        if p.state == IN and m["back"]:
            self.changed("joined", p)
        elif p.state == IN and not self.was_made or self.complete():
            self.changed(None)

    def complete(self):
        return self.expected <= self.seen

    def on_want(self, p, m):
        p.want = m
        if self.state == "made" and p.state == COMING:
            if m["ok"]:
                p.send(t="join", at=self.at, members=0)
            else:
                self.lose(p, "lost", m["why"])
            return
        self.at = m.get("at") or self.at
        if self.was_made and not m["ok"]:
            self.lose(p, "lost", m["why"])
        elif self.was_made:
            p.version = m["n"]
        self.begin()

    def begin(self):
        """Has all make the group, if all are there and want it."""
        if self.state != "gather" or not self.complete() or not self.peers or any(q.want is None for q in self.ready()):
            return
        why = next(("rank %d: %s" % (q.rank, q.want["why"]) for q in self.ready() if not q.want["ok"]), "")
        if why:
            self.by_gloo(why)
            return
        members = len({q.ip for q in self.peers.values()}) - 1  # ranks of one address are one member
        if members:  # one alone makes no group: it waits for those that come back
            self.state = "joining"
            self.tell(t="join", at=self.at, members=members)
        elif len(self.peers) > 1 and not self.was_made:
            self.by_gloo("all ranks have the address %s: a group wants two" % next(iter(self.peers.values())).ip)

    def by_gloo(self, why):
        if self.state != "made":
            self.state = "gloo"
            self.tell(t="gloo", why=why)

    def on_fail(self, p, m):
        if self.state == "made":
            self.lose(p, "lost", m["why"], True)
        elif m.get("taken") and self.tries < TRIES:
            self.tries += 1
            self.anew(m["why"], True)
        elif p.rank == self.lead:
            self.give_up(p, m["why"])
        elif not self.failing:  # the leader may know better
            self.failing = self.clock() + 1, lambda: self.give_up(p, m["why"])

    def give_up(self, p, why):
        if self.was_made:
            self.lose(p, "lost", why)
        else:
            self.by_gloo("rank %d: %s" % (p.rank, why))

    def failed(self, number, why):
        """The leader's helper says that the group has ended; who is lost is heard about at the same time."""
        if self.again and number == self.number and self.state == "made" and not self.failing:
            self.failing = self.clock() + TELL, lambda: self.anew(why)

    def on_in(self, p, m):
        p.qp = m["qp"]
        if (p.ip, p.qp) in self.evictions:
            self.lose(p, "lost", "the switch has removed it before it was in", True)
        elif self.state == "made":
            # What begins after this is received whole: its source is told to go after this.
            p.state, p.entry, p.ate, p.version = IN, self.started + 1, self.next, self.started
            p.send(t="credit", ate=self.ate, sent=self.sent)
            p.send(t="ready", n=p.entry, m=p.ate)
            self.changed("joined", p)
        elif self.state == "joining" and all(q.qp for q in self.ready()):
            self.state, self.was_made, self.tries, self.failing = "made", True, 0, None
            self.began = self.started = max(q.version for q in self.ready())
            self.tell(t="ready", n=self.started + 1, m=0)

    def on_start(self, p, m):
        self.started, self.next, self.source, self.root = m["n"], m["m"] + m["k"], p.rank, p.rank
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

    def tick(self):
        """What is done when time has passed: also takes out who has held the source for longer than lag."""
        if self.failing and self.clock() > self.failing[0]:
            then, self.failing = self.failing[1], None
            then()
        if self.gather_until and (self.complete() or self.clock() > self.gather_until):
            self.gather_until, missing = None, self.expected - self.seen
            self.expected -= missing
            for rank in missing:
                self.tell(t="members", lead=self.lead, ranks=sorted(q.rank for q in self.ready()), event=[self.clock(), "lost", rank, "it has not come to the group's number %d" % self.number])
            self.changed(None)
            self.begin()
        for p in self.ready():
            since = self.clock() - max(self.held_at, p.moved)
            if self.lag and p.ate < self.held and p.rank != self.source and since >= self.lag and p.state == IN:
                why = "it has not read for %d ms" % (1000 * since)
                if p.rank == self.lead or self.beside(p):
                    self.lose(p, "lost", why)
                else:  # nothing is written over what it may still read: the source goes on when it is out
                    p.state = LEAVING
                    self.remove(p, why)

    def removed(self, p, why, done):
        """p, which was LEAVING, is out; where that was not done, the switch says so if it has done it already."""
        if p.state == LEAVING:
            p.state = IN
            if done:
                self.lose(p, "lost", why)

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
        p.send(t="told", id=m["id"], version=q and q.version, newest=max((r.version for r in self.ready()), default=0), label=self.labels.get(m.get("label")), keepers=keepers, root=self.root,
               coming=any(max(r.version, self.began) < m.get("n", 0) <= self.started and r.entry <= m["n"] and r is not p for r in self.ready()), least=min(self.ready(), key=lambda r: r.ate, default=p).rank)

    def beside(self, p):
        """Whether another rank has the address of p, and so the same queue pair and window."""
        return any(q.ip == p.ip and q is not p for q in self.peers.values())

    def on_bye(self, p, m):
        self.lose(p, "left", "", True)

    def lose(self, p, kind, why, ended=False):
        """Takes a rank out: its connection has ended, the switch has evicted it, or it leaves. ended: it reads its window no
        more, as its process has ended, or its address is out."""
        if self.peers.get(p.rank) is not p:
            return
        del self.peers[p.rank]
        was, p.state = p.state, OUT
        shared = self.beside(p)
        if p.qp and self.state == "made" and p.rank != self.lead and not shared:
            self.remove(p)
        if kind == "lost":
            p.send(t="over", number=0, why="this rank is out of the group: " + why)
        if was == COMING:
            return
        self.expected.discard(p.rank)
        end = self.anew if self.again else self.end
        if p.rank == self.lead:  # another one leads after it, unless it has left
            if kind == "lost" and self.again:
                self.gone = True
            else:
                self.end("rank %d, which leads the group, %s" % (p.rank, "is lost: " + why if why else "has left"))
        elif self.source == p.rank:
            end("rank %d, the source of broadcast %d, is lost: %s" % (p.rank, self.started, why))
        elif shared and not ended and self.state == "made":  # the others' address stays, and with it what writes to its window: they take another one
            end("rank %d, which shares its address, is lost: %s" % (p.rank, why))
        elif kind == "lost" and not self.was_made and self.state in ("gather", "joining"):
            self.end("rank %d is lost before the group was made: %s" % (p.rank, why))
        elif self.was_made and self.state == "joining":
            self.anew(why, True)
        if self.gone:
            return
        self.changed(kind, p, why)
        self.begin()
        self.credit()
        self.release()

    def evicted(self, ip, qp, why):
        """A queue pair is out, and all ranks that share it. A new process of the address has another one."""
        self.evictions.add((ip, qp))
        for p in list(self.peers.values()):
            if (p.ip, p.qp) == (ip, qp):
                self.lose(p, "lost", why, True)

    def changed(self, kind, p=None, why=""):
        event = [self.clock(), kind, p.rank, why] if kind else None
        self.tell(t="members", lead=self.lead, ranks=sorted(q.rank for q in self.ready()), event=event)
