# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""gleam_torch: torch.distributed over multicast groups whose receivers may die and come back.

    import torch.distributed as dist, gleam_torch
    dist.init_process_group("gleam")
    dist.broadcast(weights, 0)

Settings are by environment: docs/TORCH.md has them, and what happens when a rank dies.
"""
import atexit
import collections
import ctypes
import hashlib
import ipaddress
import os
import random
import secrets
import socket
import struct
import threading
from datetime import timedelta

import torch
import torch.distributed as dist

from .channel import SLOT, Channel, Lost
from .helper import Helper
from .meet import Meeting
from .server import Server
from .work import Job

__all__ = ["Lost", "broadcast", "catch_up", "empty", "events", "join", "members", "rejoin", "set_version", "summary", "version"]

# From some 2.x on a backend is a subclass of BackendBase; before it replaces the process group.
Base = getattr(dist, "BackendBase", dist.ProcessGroup)
KEY = "gleam_torch/job"
open_groups, back = [], []
lock, owner = threading.Lock(), os.getpid()
the_helper = []


def setting(name, default=""):
    return os.environ.get("GLEAM_" + name, default)


def own_address():
    """The address of this rank's queue pairs, and of its connections to the other ranks."""
    if setting("ADDRESS"):
        return setting("ADDRESS")
    if setting("INTERFACE"):
        import fcntl
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            name = struct.pack("256s", setting("INTERFACE").encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(s, 0x8915, name)[20:24])  # SIOCGIFADDR
    at = socket.getaddrinfo(os.environ.get("MASTER_ADDR", "localhost"), 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(at[0], socket.SOCK_DGRAM) as s:
        s.connect(at[4])
        ip = s.getsockname()[0]
    if ipaddress.ip_address(ip).is_loopback:
        raise RuntimeError("the address of this rank is not known: GLEAM_ADDRESS or GLEAM_INTERFACE names it")
    return ip


def helper():
    """The helper of this process, which all its groups share."""
    with lock:
        if not the_helper:
            command = [setting("HELPER", "gleam"), "rank", "--address", own_address(), "--backend", setting("BACKEND", "soft"), "--qp-timeout", setting("QP_TIMEOUT", "15")]
            for name, flag in (("KEY_FILE", "--key-file"), ("KEY_ID", "--key-id"), ("DEVICE", "--device")):
                command += [flag, setting(name)] if setting(name) else []
            command += ["--insecure"] if setting("INSECURE") else []
            command += ["--other-network"] if setting("OTHER_NETWORK") else []
            the_helper.append(Helper(command))
        return the_helper[0]


def group_ip(store, token):
    """An address out of GLEAM_GROUPS: the job's first one by chance, and the next ones for its other groups."""
    store = store or dist.distributed_c10d._get_default_store()  # pylint: disable=protected-access
    job = store.compare_set(KEY, "", token)
    net = ipaddress.ip_network(setting("GROUPS", "10.77.254.0/24"))
    number = int.from_bytes(hashlib.sha256(job).digest()[:8], "big") + store.add(KEY + "/groups", 1)
    return str(net[1 + number % max(net.num_addresses - 2, 1)] if net.num_addresses > 1 else net[0])


def buffer(t):
    """The bytes of a contiguous tensor in host memory, writable."""
    n = t.numel() * t.element_size()
    return memoryview((ctypes.c_char * n).from_address(t.data_ptr())).cast("B") if n else memoryview(b"")


class Group(Base):
    """A process group: broadcasts and barriers by a Channel, all else by Gloo."""

    def __init__(self, store, rank, size, timeout, ranks, job=None, returned=False):
        super().__init__(rank, size)
        self.job = job  # the store of the job's GroupIPs, if it is not the default process group's
        self.meeting = back[0] if back else Meeting(store)
        self.store, self.my_rank, self.world, self.limit = store, rank, size, timeout
        self.ranks = list(ranks) or list(range(size))
        self.policy = setting("POLICY", "strict")
        if self.policy not in ("strict", "evict"):
            raise RuntimeError("GLEAM_POLICY is %r: want strict or evict" % self.policy)
        self.threshold = 0 if self.policy == "evict" else int(setting("THRESHOLD", str(1 << 20)))
        self.of_gloo, self.returned = None, returned or bool(back)
        self.ways = collections.Counter()  # (way, why): broadcasts, and with "bytes" their bytes
        self.mutex, self.made = threading.Lock(), None
        open_groups.append(self)

    # The channel and Gloo are made by the first collective that wants them.

    def channel(self):
        with self.mutex:
            if self.made is None:
                self.made = self.connect()
            return self.made

    def connect(self):
        ip, server, number = own_address(), None, self.meeting.latest() if self.returned else 1
        if self.my_rank == 0 and not self.returned:
            server, at, token = self.serve(secrets.token_hex(16))
            self.meeting.publish(1, at, token)
        at, token = self.meeting.wait(number, self.limit.total_seconds())

        def meet(c, number, turn):
            return self.meeting.next(number, turn, lambda n: self.serve(token, number=n << 16, lead=self.my_rank, expected={*c.members, self.my_rank} - set(c.gone)))
        settings = {"ip": ip, "group": lambda: group_ip(self.job, token), "dead_after": int(setting("DEAD_AFTER", "300")), "mtu": int(setting("MTU", "0")), "keep": int(setting("KEEP", "16")),
                    "rate": int(float(setting("CATCH_UP_RATE", "0")) * 1e6 / 8)}
        return Channel(self.my_rank, self.world, at, token, helper, self.policy == "strict", int(setting("WINDOW", "64")),
                       int(setting("TENSORS", "0")) << 20, settings, server, self.returned, self.limit.total_seconds(), meet, number)

    def serve(self, token, **hub):
        """A Hub in this process: (server, place, token)."""
        server = Server(own_address(), token, self.world, self.remove, int(setting("LAG", "0")) / 1000, again=self.policy == "evict", **hub)
        return server, (own_address(), server.port), token

    def remove(self, p, why=""):
        """Takes a peer's queue pair out of the group, unless it is lost and a new process, which may share it, is there. Rank 0's."""
        def run(qp=p.qp):
            c, done = self.made, True
            if c and c.helper and c.server and (why or not any(q.ip == p.ip for q in list(c.server.hub.peers.values()))):
                try:
                    c.helper.ask("remove", c.g, member=p.ip, qpn=qp)
                except RuntimeError:
                    done = False  # the switch has done it already, and says so
            if why:
                c.server.hears("removed", p, why, done)
        threading.Thread(target=run, daemon=True).start()

    def gloo(self):
        if self.returned:
            raise RuntimeError("a rank that has come back has broadcast and barrier: Gloo takes no rank back")
        with self.mutex:
            if self.of_gloo is None:
                self.of_gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", self.store), self.my_rank, self.world, timeout=self.limit)
        return self.of_gloo

    def watch(self):
        """Raises Lost if a rank of the group is lost, without which Gloo does not go on."""
        c = self.made
        if c:
            with c.changed:
                gone = [(r, why) for r, (kind, why) in c.gone.items() if kind == "lost"]
                if c.over or gone:
                    raise Lost(c.over or "rank %d is lost: %s; Gloo does not go on without it" % gone[0])

    def by_gloo(self, name, *args, **kwargs):
        self.later([], self.watch).wait()  # in the order of the calls
        return Job(inner=getattr(self.gloo(), name)(*args, **kwargs), group=self)

    def later(self, tensors, f):
        job = Job(tensors)

        def run():
            try:
                f()
                error = None
            except Exception as err:  # pylint: disable=broad-except
                error = err
            job.end(error)
        self.channel().work.put(run)
        return job

    def count(self, way, why, size):
        self.ways[way, why] += 1
        self.ways[way, why, "bytes"] += size

    def broadcast(self, tensors, opts=None, root=None):
        root = opts.rootRank if root is None else root
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        size = sum(t.numel() * t.element_size() for t in tensors)
        if size < self.threshold:
            self.count("Gloo", "smaller than GLEAM_THRESHOLD", size)
            return self.by_gloo("broadcast", tensors, opts) if opts else self.each_by_gloo(tensors, root)
        c = self.channel()

        def run():
            if not c.open():
                if self.policy == "evict":
                    raise RuntimeError("the group cannot be made: " + c.why_gloo)
                self.count("Gloo", c.why_gloo, size)
                self.each_by_gloo(tensors, root)
                return
            self.spread(c, tensors, root)
            self.count("group", "", size)
        return self.later(tensors, run)

    def each_by_gloo(self, tensors, root):
        for t in tensors:
            o = dist.BroadcastOptions()
            o.rootRank, o.rootTensor = root, 0
            job = Job(inner=self.gloo().broadcast([t], o), group=self)
            job.wait()
        return job

    def spread(self, c, tensors, root):
        """Broadcasts tensors as one, from or into their own memory where that is contiguous and the host's."""
        staged = [t if t.device.type == "cpu" and t.is_contiguous() else t.detach().contiguous().cpu() for t in tensors]
        buffers = [buffer(t) for t in staged]
        places = None
        if c.memory is not None:
            base = ctypes.addressof(ctypes.c_char.from_buffer(c.memory))
            inside = [t.data_ptr() - base for t in staged]
            if all(c.ring <= at < c.bytes for at in inside):
                places = inside
        owners = frozenset(t.data_ptr() for t in tensors)

        def unchanged():
            counts = [t._version for t in tensors]  # pylint: disable=protected-access
            return lambda: staged and counts == [t._version for t in tensors]  # pylint: disable=protected-access
        c.broadcast(buffers, root, places, owners, unchanged)
        if root != self.my_rank:
            for t, s in zip(tensors, staged):
                if t is not s:
                    with torch.no_grad():
                        t.copy_(s)

    def barrier(self, opts=None):  # pylint: disable=unused-argument
        c = self.channel()

        def run():
            if self.policy == "evict" and not c.open():
                raise RuntimeError("the group cannot be made: " + c.why_gloo)
            c.barrier()
        return self.later([], run)

    def close(self):
        with self.mutex:
            if self.made:
                self.made.close()
                self.made = False

    def getBackendName(self):
        return "gleam"


def delegate(name):
    def method(self, *args, **kwargs):
        return self.by_gloo(name, *args, **kwargs)
    method.__name__ = name
    return method


for _name in ("allreduce", "allreduce_coalesced", "reduce", "allgather", "_allgather_base", "allgather_coalesced", "gather", "scatter",
              "reduce_scatter", "_reduce_scatter_base", "alltoall", "alltoall_base", "send", "recv", "recv_anysource"):
    setattr(Group, _name, delegate(_name))


def create(options, _=None):
    """What torch.distributed calls for a new process group."""
    return Group(options.store, options.group_rank, options.group_size, options.timeout, options.global_ranks_in_group)


def of(group):
    pg = group or dist.distributed_c10d._get_default_group()  # pylint: disable=protected-access
    if not isinstance(pg, Group) and hasattr(pg, "_get_backend"):
        pg = pg._get_backend(torch.device("cpu"))  # pylint: disable=protected-access
    if not isinstance(pg, Group):
        raise RuntimeError("the process group's backend is not gleam")
    return pg


def broadcast(tensors, src, group=None, async_op=False):
    """Broadcasts a list of tensors, of any sizes, as one: small ones share messages, and the whole has one version."""
    pg = of(group)
    job = pg.broadcast(tensors, None, pg.ranks.index(src))
    return job if async_op else job.wait()


def members(group=None):
    """The ranks that are in the group now."""
    pg = of(group)
    return [pg.ranks[r] for r in pg.channel().members]


def version(rank=None, label=None, group=None):
    """The number of the last broadcast that a rank, this one if none is named, has in full; or the one that a label names."""
    pg = of(group)
    c = pg.channel()
    if rank is None and label is None:
        return c.have
    if label is not None:
        return c.ask(label=label)["label"]
    return c.ask(rank=pg.ranks.index(rank))["version"]


def set_version(label, group=None):
    """Names the last broadcast."""
    c = of(group).channel()
    c.tell(t="label", n=c.have, label=label)


def events(group=None):
    """What has happened to ranks: (time, "lost", "left" or "joined", rank, why)."""
    pg = of(group)
    return [(when, kind, pg.ranks[rank], why) for when, kind, rank, why in pg.channel().log]


def summary(group=None):
    """Which way broadcasts went, and why."""
    pg, text = of(group), []
    for key in sorted(k for k in pg.ways if len(k) == 2):
        text.append("%d broadcasts, %.1f MiB by %s%s" % (pg.ways[key], pg.ways[key + ("bytes",)] / 2**20, "the group" if key[0] == "group" else key[0], ": " + key[1] if key[1] else ""))
    return "; ".join(text) or "no broadcasts"


def empty(*shape, dtype=torch.float32, group=None):
    """A tensor in the window: its broadcasts are copied on no side. All ranks make the same ones in the same order, and
    a source waits until all have called broadcast. GLEAM_TENSORS says how many MiB there are for all of them."""
    c = of(group).channel()
    if not c.open():
        raise RuntimeError("the group cannot be made: " + c.why_gloo)
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    count = 1
    for n in shape:
        count *= n
    at = c.allot(max(count, 1) * torch.empty(0, dtype=dtype).element_size())
    return torch.frombuffer(c.memory, dtype=dtype, count=max(count, 1), offset=at)[:count].reshape(shape)


def places(store):
    """Where the process group of all ranks has its keys: in torch 1, and in torch 2."""
    return dist.PrefixStore("0", store), dist.PrefixStore("cpu/", dist.PrefixStore("0/", store))


def rejoin(host, port, rank, world, timeout=timedelta(minutes=30), before=None):
    """In a new process of a lost rank: init_process_group, and into the group of all ranks. The others go on meanwhile.
    Returns the number of the last broadcast without this rank; catch_up gets it. before(n) is called ahead of that, with
    the newest broadcast: a catch_up there holds nobody up, and one afterwards gets what has changed meanwhile."""
    os.environ.setdefault("MASTER_ADDR", host)
    tcp = dist.TCPStore(host, port, None, False, timeout)
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # torchrun's
        tcp = dist.PrefixStore("/worker/attempt_" + os.environ["TORCHELASTIC_RESTART_COUNT"], tcp)
    # The store of this rank alone, in which the others have come already. Torch 2 has other prefixes, and another key.
    mine = dist.PrefixStore("gleam_torch/%d/%d" % (rank, random.getrandbits(48)), tcp)
    for theirs in places(dist.PrefixStore("default_pg", tcp)):
        if Meeting(theirs).latest():
            back.append(Meeting(theirs))
            break
    else:
        raise RuntimeError("the ranks at %s:%d have no group" % (host, port))
    for number in "01":
        mine.add("store_based_barrier_key:" + number, world - 1)
    try:
        dist.init_process_group("gleam", store=mine, rank=rank, world_size=world, timeout=timeout)
    finally:
        back.clear()
    return of(None).channel().rejoin(before)


def join(host, port, rank, world, again=False, before=None, timeout=timedelta(minutes=30)):
    """A process group of its own, which needs no default one and leaves it alone; the functions here take it as group, those of
    torch.distributed do not. Rank 0 has the Store at port. again: in a new process of a lost rank, as by rejoin; before likewise."""
    os.environ.setdefault("MASTER_ADDR", host)
    # Without waiting: torch 1.13 would wait for all ranks with the interpreter's lock.
    store = dist.PrefixStore("gleam_torch/join", dist.TCPStore(host, port, world, rank == 0 and not again, timeout, wait_for_workers=False))
    if again and not Meeting(store).latest():
        raise RuntimeError("the ranks at %s:%d have no group" % (host, port))
    pg = Group(store, rank, world, timeout, [], store, again)
    if again:
        pg.channel().rejoin(before)
    return pg


def catch_up(tensors, n, group=None):
    """Fills tensors with broadcast n from a member that has kept it; returns that one's rank. It goes by TCP, beside the
    group; of what the tensors have already, MiB by MiB, nothing is sent."""
    pg = of(group)
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    staged = [t if t.device.type == "cpu" and t.is_contiguous() else torch.empty(t.shape, dtype=t.dtype) for t in tensors]
    rank = pg.channel().fetch([buffer(t) for t in staged], n)
    with torch.no_grad():
        for t, s in zip(tensors, staged):
            if t is not s:
                t.copy_(s)
    return pg.ranks[rank]


def end():
    if os.getpid() != owner:
        return  # a fork, which has no part in it
    for pg in open_groups:
        if setting("SUMMARY") and pg.my_rank == 0:
            print("gleam: " + summary(pg), flush=True)
        pg.close()
    for h in the_helper:
        h.close()


atexit.register(end)
if hasattr(dist, "BackendBase") or tuple(int(x) for x in torch.__version__.split(".")[:1]) >= (2,):
    dist.Backend.register_backend("gleam", create, extended_api=True, devices=["cpu"])
else:
    dist.Backend.register_backend("gleam", create, extended_api=True)
