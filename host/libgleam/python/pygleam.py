# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""pygleam: join an RDMA multicast group with a queue pair of your own, from Python.

The functions are those of gleam.h; failures are exceptions. The queue pair is the
program's, of pyverbs for example:

    with pygleam.Group(role=pygleam.MEMBER, exchange="10.0.0.1:7100", key=key, key_id=1) as g:
        peer = g.join(qp, pygleam.memory(array, rkey))     # numpy arrays too: nothing is copied
        ...                                                # modify the queue pair to RTR and RTS
        g.connected()
        window = g.wait(60)

Times are seconds; None waits for ever.
"""
import collections
import ctypes
import ipaddress
import os

MASTER, MEMBER = 1, 2
STRICT, EVICT, QUORUM = 0, 1, 2
INSECURE, NO_REPAIR, OTHER_NETWORK, RECEIVE_ONLY, THREAD, NO_THREAD, TARGETS = 1, 2, 4, 8, 16, 32, 64
JOINED, LEFT, EVICTED, FAILED, ENDED, UPDATED, UPDATE_FAILED, STALLED, RESUMED = range(1, 10)
BLOB_MAX = 160

QP = collections.namedtuple("QP", "ip qp_num sq_psn rq_psn")
Memory = collections.namedtuple("Memory", "addr length rkey owner")
Peer = collections.namedtuple("Peer", "ip qp_num path_mtu_bytes path_mtu gid")
Window = collections.namedtuple("Window", "addr length rkey members")
Event = collections.namedtuple("Event", "kind psn member text")


class Error(OSError):
    """A call that failed: errno, and the cause and what to do about it."""


class _Attr(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32), ("role", ctypes.c_uint32), ("exchange", ctypes.c_char_p), ("key", ctypes.c_char_p),
        ("key_len", ctypes.c_uint32), ("key_id", ctypes.c_uint16), ("port", ctypes.c_uint16), ("flags", ctypes.c_uint32),
        ("register_timeout_ms", ctypes.c_uint32), ("members", ctypes.c_uint32), ("group_ip", ctypes.c_char_p),
        ("virtual_qpn", ctypes.c_uint32), ("path_mtu", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("quorum", ctypes.c_uint32),
        ("dead_after_ms", ctypes.c_uint32), ("lag_psns", ctypes.c_uint32), ("lag_ms", ctypes.c_uint32),
        ("sender_timeout", ctypes.c_uint32), ("sender_retries", ctypes.c_uint32), ("lease_ms", ctypes.c_uint32),
        ("ready_timeout_ms", ctypes.c_uint32), ("window_base", ctypes.c_uint64), ("window_len", ctypes.c_uint64),
    ]


class _QP(ctypes.Structure):
    _fields_ = [("gid", ctypes.c_uint8 * 16), ("qp_num", ctypes.c_uint32), ("sq_psn", ctypes.c_uint32), ("rq_psn", ctypes.c_uint32)]


class _MR(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_uint64), ("length", ctypes.c_uint64), ("rkey", ctypes.c_uint32)]


class _Peer(ctypes.Structure):
    _fields_ = [("gid", ctypes.c_uint8 * 16), ("ip", ctypes.c_char * 48), ("qp_num", ctypes.c_uint32),
                ("path_mtu_bytes", ctypes.c_uint32), ("path_mtu", ctypes.c_uint32)]


class _Window(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_uint64), ("length", ctypes.c_uint64), ("rkey", ctypes.c_uint32), ("members", ctypes.c_uint32)]


class _Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("psn", ctypes.c_uint32), ("member", ctypes.c_char * 48), ("text", ctypes.c_char * 512)]


def _load():
    lib = ctypes.CDLL(os.environ.get("PYGLEAM_LIBRARY", "libgleam.so.1"))
    lib.gleam_create.restype = ctypes.c_void_p
    lib.gleam_error.restype = ctypes.c_char_p
    lib.gleam_version.restype = ctypes.c_char_p
    for name in ("join", "export", "import", "describe", "peer", "connected", "wait", "window", "progress", "next_event", "fd", "update", "remove",
                 "leave", "destroy"):
        getattr(lib, "gleam_" + name).restype = ctypes.c_int
    return lib


_lib = _load()


def version():
    """The release of the library."""
    return _lib.gleam_version().decode()


def _failure(code):
    return Error(-code, _lib.gleam_error().decode(errors="replace"))


def _check(code):
    if code < 0:
        raise _failure(code)
    return code


def _ms(seconds):
    return -1 if seconds is None else int(seconds * 1000)


def memory(buffer, rkey, addr=None):
    """The memory of a writable buffer, such as a bytearray, an mmap or a numpy array, as
    WRITEs to the group find it. Nothing is copied. addr is the iova, if it is another."""
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous:
        raise ValueError("the buffer has to be writable and contiguous: WRITEs of others land in it")
    if view.nbytes == 0:
        raise ValueError("the buffer is empty")
    array = (ctypes.c_char * view.nbytes).from_buffer(buffer)
    return Memory(ctypes.addressof(array) if addr is None else addr, view.nbytes, rkey, array)


def _gid(ip):
    a = ipaddress.ip_address(ip)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


class Group:
    """A participation in one group. The parameters are the fields of struct gleam_attr."""

    def __init__(self, role, key=None, key_id=0, exchange=None, group_ip=None, flags=0, **fields):
        attr = _Attr(size=ctypes.sizeof(_Attr), role=role, key=key, key_len=len(key or b""), key_id=key_id, flags=flags,
                     exchange=exchange.encode() if exchange else None, group_ip=group_ip.encode() if group_ip else None, **fields)
        self._g, self._memory = None, None
        g = _lib.gleam_create(ctypes.byref(attr))
        if not g:
            raise _failure(-22)
        self._g = ctypes.c_void_p(g)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_g", None):
            self.close()

    def close(self):
        """Leaves, if that is not done, and frees the group."""
        g, self._g = self._g, None
        if g:
            _lib.gleam_destroy(g)

    def _numbers(self, qp, mem):
        self._memory = mem  # its buffer stays
        c = _QP((ctypes.c_uint8 * 16)(*_gid(qp.ip)), qp.qp_num, qp.sq_psn, qp.rq_psn)
        return ctypes.byref(c), ctypes.byref(_MR(mem.addr, mem.length, mem.rkey)) if mem else None

    def join(self, qp, mem=None, timeout=None):
        """Begins to join by the exchange, and returns what to connect to."""
        peer = _Peer()
        _check(_lib.gleam_join(self._g, *self._numbers(qp, mem), ctypes.byref(peer), _ms(timeout)))
        return self._peer(peer)

    def export(self, qp, mem=None):
        """Begins to join by blobs, and returns this host's, for the master."""
        b = ctypes.create_string_buffer(BLOB_MAX)
        return b.raw[:_check(_lib.gleam_export(self._g, *self._numbers(qp, mem), b, ctypes.c_size_t(BLOB_MAX)))]

    def import_(self, blob):
        """Takes a member's blob at the master, the group's at a member."""
        _check(getattr(_lib, "gleam_import")(self._g, bytes(blob), ctypes.c_size_t(len(blob))))

    def describe(self):
        """The group's blob, at the master."""
        b = ctypes.create_string_buffer(BLOB_MAX)
        return b.raw[:_check(_lib.gleam_describe(self._g, b, ctypes.c_size_t(BLOB_MAX)))]

    @staticmethod
    def _peer(p):
        return Peer(p.ip.decode(), p.qp_num, p.path_mtu_bytes, p.path_mtu, bytes(p.gid))

    def peer(self):
        """What to connect to."""
        p = _Peer()
        _check(_lib.gleam_peer(self._g, ctypes.byref(p)))
        return self._peer(p)

    def connected(self, failure=None):
        """Says that the queue pair is in RTS, or why not."""
        _check(_lib.gleam_connected(self._g, failure.encode() if failure else None))

    def wait(self, timeout=None):
        """Waits until the group is registered; the window is what WRITEs address."""
        w = _Window()
        _check(_lib.gleam_wait(self._g, ctypes.byref(w), _ms(timeout)))
        return Window(w.addr, w.length, w.rkey, w.members)

    def next_event(self, timeout=0):
        """The next event, None if there is none in time."""
        e = _Event()
        if not _check(_lib.gleam_next_event(self._g, ctypes.byref(e), _ms(timeout))):
            return None
        return Event(e.kind, e.psn, e.member.decode(), e.text.decode(errors="replace"))

    def progress(self):
        """Does what is due; whether an event waits."""
        return bool(_check(_lib.gleam_progress(self._g)))

    def fileno(self):
        """A descriptor to poll, for select and asyncio."""
        return _check(_lib.gleam_fd(self._g))

    def update(self, timeout=None):
        """At the master: the members that were imported since join."""
        _check(_lib.gleam_update(self._g, _ms(timeout)))

    def remove(self, ip, timeout=None):
        """At the master: removes a member."""
        _check(_lib.gleam_remove(self._g, ip.encode(), _ms(timeout)))

    def leave(self, timeout=None):
        """Leaves the group; the master deletes it."""
        _check(_lib.gleam_leave(self._g, _ms(timeout)))
