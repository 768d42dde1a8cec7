# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed waits for."""
import collections
import threading
import time

import torch
from torch.distributed import Work  # pylint: disable=no-name-in-module

# C++ may still have a Work that Python has dropped. More of them would hold the heap apart: with the glibc of Debian 12
# a program whose tensors are new ones in each step grows by those of a step for each Work.
works = collections.deque(maxlen=64)


class Job(Work):
    """A Work that a group's thread does, or that Gloo does while the group's ranks are watched."""

    def __init__(self, tensors=(), inner=None, group=None):
        super().__init__()
        self.tensors, self.inner, self.group = list(tensors), inner, group
        self.lock, self.ended, self.error, self.future = threading.Lock(), threading.Event(), None, None
        works.append(self)

    def end(self, error=None):
        with self.lock:
            self.error = error
            self.ended.set()
            self.settle()

    def settle(self):
        if self.future is not None and self.ended.is_set():
            if self.error is None:
                self.future.set_result(self.tensors)
            else:
                self.future.set_exception(self.error)

    def is_completed(self):
        return self.inner.is_completed() if self.inner else self.ended.is_set()

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        return self.inner.exception() if self.inner else self.error

    def wait(self, timeout=None):
        limit = timeout.total_seconds() if timeout else 0
        deadline = time.monotonic() + limit if limit > 0 else None
        pause = 1e-5
        while self.inner and not self.inner.is_completed():
            self.group.watch()
            if deadline and time.monotonic() > deadline:
                raise RuntimeError("no end after %s" % timeout)
            time.sleep(pause)
            pause = min(2 * pause, 2e-3)
        if self.inner:
            try:
                return self.inner.wait()
            except RuntimeError:
                with self.group.made.changed:  # Gloo notices a death at about the time at which rank 0 does
                    self.group.made.changed.wait_for(lambda: self.group.made.cause(), 1)
                self.group.watch()
                raise
        if not self.ended.wait(limit or None):
            raise RuntimeError("no end after %s" % timeout)
        if self.error:
            raise self.error
        return True

    def synchronize(self):
        self.wait()

    def result(self):
        return self.inner.result() if self.inner else self.tensors

    def get_future(self):
        if self.inner:
            return self.inner.get_future()
        with self.lock:
            if self.future is None:
                self.future = torch.futures.Future()
                self.settle()
            return self.future

    def source_rank(self):
        return -1
