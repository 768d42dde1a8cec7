# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The process that has the queue pairs: `gleam rank`, whose documentation has the messages
(internal/cli/rank). The processes of a user that have one address have one, which the first of them
starts, under an abstract name: those of one network namespace find it. It leaves the groups of a
process that ends, and ends with the last one."""
import hashlib
import itertools
import json
import mmap
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

POST = 1 << 40  # a post's ID is its message's number, and this
TRIES = 200  # connections to helpers that end at once, as those of others do whose last process has just ended
AGAIN = 0.02  # seconds between them
SLOW = 60  # seconds for the helper to take a request, and to answer it, which takes 30 at most


def seqpacket():
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Helper:
    """The helper with a command line, started if there is none. An error is a RuntimeError with its text."""

    def __init__(self, command):
        self.stderr, self.process, self.closing = tempfile.TemporaryFile(), None, False
        self.answers, self.changed, self.groups = {}, threading.Condition(), {}
        self.ids, self.numbers, self.ended = itertools.count(1), itertools.count(1), ""
        name = b"\0gleam-rank-" + hashlib.sha256(repr((os.geteuid(), command)).encode()).hexdigest().encode()
        for _ in range(TRIES):
            self.sock = seqpacket()
            if self.connect(name, command):
                break
            self.sock.close()
            if self.process:
                raise RuntimeError(self.last_words())
            time.sleep(AGAIN)
        else:
            raise RuntimeError("the helper of this address ends each time")
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SLOW, 0))
        os.register_at_fork(after_in_child=self.sock.close)  # else a child of a killed process would hold it up
        self.thread = threading.Thread(target=self.run, daemon=True, name="gleam-helper")
        self.thread.start()

    def connect(self, name, command):
        """Connects to the helper of the name, or starts it. Returns whether it serves."""
        with seqpacket() as listener:
            try:
                listener.bind(name)
                listener.listen(1024)
                here = True
            except OSError:
                here = False  # another process has
            try:
                self.sock.connect(name)  # ahead of the start: it ends where nobody is there
                if here:
                    self.process = subprocess.Popen(command, stdin=listener, stdout=self.stderr, stderr=self.stderr, start_new_session=True)
            except ConnectionRefusedError:
                return False  # it has just ended, or does not listen yet
            except OSError as err:
                self.sock.close()
                raise RuntimeError("start %s: %s" % (command[0], err)) from err
        if struct.unpack("iII", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] != os.geteuid():
            raise RuntimeError("another user has the name of this address's helper")
        try:
            return self.sock.recv(16) != b""
        except OSError:
            return False

    def last_words(self):
        text = "another rank of this address had started it"
        if self.process:
            self.process.wait()
            self.stderr.seek(0)
            text = self.stderr.read().decode(errors="replace").strip() or "exit code %d" % self.process.returncode
            for flag, variable in (("--key-file", "GLEAM_KEY_FILE"), ("--insecure", "GLEAM_INSECURE=1")):
                text = text.replace(flag, "%s (%s)" % (flag, variable))
        return "the helper, gleam rank, has ended: " + text

    def run(self):
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 1)
            except OSError:
                data = b""
            if not data:
                break
            m = json.loads(data)
            if m.get("re", 0) >= POST:
                self.groups[m["g"]]({"event": "failed", "text": m["error"]})
            elif "re" in m:
                with self.changed:
                    self.answers[m["re"]] = (m, fds)
                    self.changed.notify_all()
            elif m["g"] in self.groups:
                self.groups[m["g"]](m)
        with self.changed:
            self.ended = "closed" if self.closing else self.last_words()
            self.changed.notify_all()
        for take in [] if self.closing else list(self.groups.values()):
            take({"event": "failed", "text": self.ended, "helper": "ended"})

    def send(self, **m):
        try:
            self.sock.send(json.dumps(m).encode())
        except OSError as err:
            raise RuntimeError(self.ended or "the helper, gleam rank: %s" % err) from err

    def ask(self, op, g, **m):
        """Sends a request and waits for its answer."""
        number = next(self.ids)
        self.send(op=op, id=number, g=g, **m)
        with self.changed:
            self.changed.wait_for(lambda: number in self.answers or self.ended, SLOW)
            if number not in self.answers:
                raise RuntimeError(self.ended or "the helper, gleam rank, has not answered for %d s" % SLOW)
            answer, fds = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer, fds

    def window(self, name, size, master, alone, take):
        """Memory for a group, the same for all processes of this address that name it alike, which alone refuses; take gets
        what happens in it. Returns number, memory, and where members join."""
        g = next(self.numbers)
        self.groups[g] = take
        answer, fds = self.ask("window", g, name=name, bytes=size, master=master, alone=alone)
        try:
            return g, mmap.mmap(fds[0], size), answer.get("at")
        finally:
            os.close(fds[0])

    def post(self, g, number, offset, length):
        self.send(op="post", id=POST + number, g=g, offset=offset, len=length, imm=number & 0xffffffff)

    def leave(self, g):
        try:
            self.ask("leave", g)
        except RuntimeError:
            pass  # it has ended, and with it the group

    def close(self):
        self.closing = True
        self.sock.shutdown(socket.SHUT_WR)  # it leaves the groups of this process, and closes its end
        self.thread.join(5)
        if self.thread.is_alive() and self.process:
            self.process.kill()
