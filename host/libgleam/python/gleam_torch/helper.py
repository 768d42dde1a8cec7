# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The process that has the queue pairs: `gleam rank`, whose documentation has the messages
(internal/cli/rank). It ends with this process, and leaves the groups at once."""
import itertools
import json
import mmap
import os
import socket
import subprocess
import tempfile
import threading

POST = 1 << 40  # a post's ID is its message's number, and this


class Helper:
    """A helper, started with its command line. An error is a RuntimeError with its text."""

    def __init__(self, command):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stderr = tempfile.TemporaryFile()
        self.answers, self.changed, self.groups = {}, threading.Condition(), {}
        self.ids, self.numbers, self.ended = itertools.count(1), itertools.count(1), ""
        os.register_at_fork(after_in_child=self.sock.close)  # else a child of a killed process would hold it up
        try:
            self.process = subprocess.Popen(command, stdin=theirs, stdout=self.stderr, stderr=self.stderr, start_new_session=True)
        except OSError as err:
            self.sock.close()
            raise RuntimeError("start %s: %s" % (command[0], err)) from err
        finally:
            theirs.close()
        self.thread = threading.Thread(target=self.run, daemon=True, name="gleam-helper")
        self.thread.start()

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
        self.process.wait()
        self.stderr.seek(0)
        text = self.stderr.read().decode(errors="replace").strip() or "exit code %d" % self.process.returncode
        with self.changed:
            self.ended = "the helper, gleam rank, has ended: " + text
            self.changed.notify_all()
        for take in list(self.groups.values()):
            take({"event": "failed", "text": self.ended})

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
            self.changed.wait_for(lambda: number in self.answers or self.ended)
            if number not in self.answers:
                raise RuntimeError(self.ended)
            answer, fds = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer, fds

    def window(self, size, master, take):
        """Memory for a group; take gets what happens in it. Returns number, memory, and where members join."""
        g = next(self.numbers)
        self.groups[g] = take
        answer, fds = self.ask("window", g, bytes=size, master=master)
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
        self.sock.shutdown(socket.SHUT_RDWR)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.thread.join(5)
