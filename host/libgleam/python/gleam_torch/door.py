# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Connections whose other end has not shown the token yet: anybody can make them, as many as they like, and say nothing."""
import collections
import hmac
import socket
import threading
import time

MANY = 64  # connections
HELLO = 5.0  # seconds for the token to come
MAX_HELLO = 4096  # bytes until it has come


def same(a, b):
    """Whether two tokens are equal, in a time that tells nothing of them."""
    return isinstance(a, str) and hmac.compare_digest(a.encode(), b.encode())


def network(host):
    """What a host can choose its addresses from: an IPv4 address, or the first 64 bits of an IPv6 address."""
    host = host.partition("%")[0]
    return socket.inet_pton(socket.AF_INET6, host)[:8] if ":" in host else host


class Door:
    """Those that wait, in the order in which they have come."""

    def __init__(self):
        self.waiting, self.lock = {}, threading.Lock()  # by connection: (network, address, time)

    def enter(self, c, host):
        """Takes c in; returns the one that gives way to it, None where there is room: the oldest of the address that has
        the most, in the network that has the most, as hosts of one link of IPv6 are in one."""
        with self.lock:
            self.waiting[c] = network(host), host, time.monotonic()
            if len(self.waiting) <= MANY:
                return None
            networks = collections.Counter(n for n, _, _ in self.waiting.values())
            hosts = collections.Counter(h for _, h, _ in self.waiting.values())
            out = max(self.waiting, key=lambda c: (networks[self.waiting[c][0]], hosts[self.waiting[c][1]]))  # the first of several
            del self.waiting[out]
            return out

    def leave(self, c):
        with self.lock:
            self.waiting.pop(c, None)

    def late(self):
        """Those that have waited for too long."""
        with self.lock:
            return [c for c, (_, _, since) in self.waiting.items() if time.monotonic() > since + HELLO]
