# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank's connection to the Hub of a group, and to the one after it where that is lost."""
import json
import select
import socket
import time

from . import server


class Link:
    """The part of a Channel that hears the Hub."""

    def connect(self, at, back=False):
        sock = socket.create_connection(at, 30)
        sock.settimeout(None)
        server.alive(sock)
        with self.lock:
            old, self.sock, self.at = self.sock, sock, at
        if old:
            old.close()
        self.tell(t="hello", token=self.token, rank=self.rank, ip=self.settings["ip"], keeper=self.keeper.at, back=back, n=self.have)

    def tell(self, **m):
        self.put(json.dumps(dict(m, e=self.number)).encode() + b"\n")

    def put(self, data):
        try:
            with self.lock:
                self.sock.sendall(data)
        except OSError:
            pass  # listen says so

    def listen(self):
        while True:
            cause = "closed"
            try:
                self.hear()
            except OSError as err:
                cause = str(err)
            with self.changed:
                self.out_at = 1e-9  # nobody says more
                why = "the connection to rank %d of the group has ended (%s): its process, or this rank's place in the group, is lost" % (self.lead, cause)
                self.final = self.final or self.closing or self.strict or not self.meet or self.server is not None
                if self.final:
                    self.out = self.out or why
                else:
                    self.over = self.over or why
                self.changed.notify_all()
            if self.final or not self.follow():
                return

    def hear(self):
        """Takes what the Hub says until the connection's end, and sends empty lines, as it does: where nobody acknowledges one, the host is gone."""
        data, ping, poll = b"", time.monotonic(), select.poll()
        poll.register(self.sock, select.POLLIN)
        while True:
            readable = poll.poll(1000 * server.PING)
            if time.monotonic() > ping + server.PING:
                ping = time.monotonic()
                self.put(b"\n")
            if not readable:
                continue
            more = self.sock.recv(1 << 16)
            if not more:
                return
            *lines, data = (data + more).split(b"\n")
            for line in filter(None, lines):
                m = json.loads(line)
                with self.changed:
                    getattr(self, "on_" + m["t"])(m)
                    self.changed.notify_all()

    def follow(self):
        """Finds the Hub after one that is lost, or has it here. Returns whether there is one."""
        lost, number = "", self.hubs
        if server.answers(self.at):
            lost = "this rank is out of the group: rank %d, which leads it, lives" % self.lead
        while not lost:
            with self.changed:
                self.gone.setdefault(self.lead, ("lost", self.over))
                order = sorted({self.rank, *self.members} - set(self.gone))
            try:
                number, at, here = self.meet(self, number, order.index(self.rank))
            except (OSError, RuntimeError) as err:
                lost = "%s; without torch's Store the group is not made anew: %s" % (self.over, err)
                break
            self.server = here
            try:
                self.connect(at)
            except OSError:
                continue  # that one is lost as well
            with self.changed:
                self.hubs = number
                self.changed.notify_all()
            return True
        with self.changed:
            self.final, self.over = True, lost
            self.changed.notify_all()
        return False

    def on_again(self, m):
        self.next = m["number"]

    def on_join(self, m):
        self.joining = m

    def on_gloo(self, m):
        self.why_gloo = m["why"]

    def on_ready(self, m):
        self.entry, self.n, self.m, self.read = m["n"], m["n"] - 1, m["m"], m["m"]
        for r in set(range(self.size)) - set(self.members):
            self.gone.setdefault(r, ("lost", "before this rank was in"))

    def on_credit(self, m):
        self.ate, self.sent = m["ate"], m["sent"]

    def on_go(self, m):
        self.go = m["n"]

    def on_members(self, m):
        self.members, self.lead = m["ranks"], m["lead"]
        if m["event"]:
            when, kind, rank, why = m["event"]
            self.log.append((when, kind, rank, why))
            if kind == "joined":
                self.gone.pop(rank, None)
                if rank == self.rank:  # which has not heard of those before
                    self.gone.update((r, ("lost", "before this rank was in")) for r in range(self.size) if r not in self.members)
            else:
                self.gone[rank] = (kind, why)

    def on_bar(self, m):
        self.released.add((m["n"], m["j"]))

    def on_told(self, m):
        self.told[m["id"]] = m

    def on_over(self, m):
        self.over, self.next = self.over or m["why"], m["number"]
        self.final = not self.next
