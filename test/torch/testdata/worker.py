# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of the tests: worker.py SCENE ARGUMENT... Each line that it prints is a word, and JSON."""
import datetime
import hashlib
import itertools
import json
import os
import random
import sys
import time

import torch
import torch.distributed as dist

import gleam_torch

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def say(word, *values):
    print(word, json.dumps(values), flush=True)


def digest(*tensors):
    h = hashlib.sha256()
    for t in tensors:
        h.update(gleam_torch.buffer(t.contiguous()))
    return h.hexdigest()


def sent():
    """The bytes that the interface has sent, frame headers included."""
    with open("/proc/self/net/dev", encoding="ascii") as f:
        return next(int(line.split(":")[1].split()[8]) for line in f if line.strip().startswith("eth0:"))


def random_tensor(count, seed, dtype=torch.float32):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed)).to(dtype)


def speed(backend, size):
    """One broadcast that makes the group, then one that is measured until a barrier after it."""
    dist.init_process_group(backend)
    small = torch.ones(1 << 18)
    dist.broadcast(small, 0)
    t = random_tensor(int(size) // 4, 7) if RANK == 0 else torch.zeros(int(size) // 4)
    dist.barrier()
    before, begin = sent(), time.monotonic()
    dist.broadcast(t, 0)
    dist.barrier()
    seconds = time.monotonic() - begin
    say("speed", seconds, sent() - before, digest(t))
    if backend == "gleam":
        say("summary", gleam_torch.summary())
    dist.barrier()


def kinds():
    """Shapes, types, roots, lists, tensors in the window, async, subgroups, objects; what other ranks have is the judge."""
    dist.init_process_group("gleam")
    strict = os.environ["GLEAM_POLICY"] == "strict"
    for seed, dtype in enumerate([torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]):
        want = random_tensor(1_100_001, seed).to(dtype)
        t = want.clone() if RANK == seed % WORLD else torch.zeros_like(want)
        dist.broadcast(t, seed % WORLD)
        say("equal", str(dtype), bool((t == want).all()))
    want = random_tensor(1 << 20, 20).reshape(1024, 1024)
    t = (want.clone() if RANK == 1 else torch.zeros(1024, 1024)).t()
    dist.broadcast(t, 1)
    say("equal", "transposed", bool((t.t() == want).all()))
    want = [random_tensor(n, 30 + n) for n in (1, 7, 0, 1000, 400_000, 3)]
    many = [w.clone() if RANK == 2 else torch.zeros_like(w) for w in want]
    gleam_torch.broadcast(many, 2)
    say("equal", "list", all(bool((a == b).all()) for a, b in zip(many, want)))
    for i in range(2):
        want = random_tensor(700_000, 50 + i).reshape(700, 1000)
        t = gleam_torch.empty(700, 1000)
        if RANK == 0:
            t.copy_(want)
        dist.broadcast(t, 0)
        say("equal", "in the window", bool((t == want).all()))
    want = [random_tensor(500_000, 60 + i) for i in range(6)]
    many = [w.clone() if RANK == i % 2 else torch.zeros_like(w) for i, w in enumerate(want)]
    jobs = [dist.broadcast(t, i % 2, async_op=True) for i, t in enumerate(many)]
    for j in jobs:
        j.wait()
    say("equal", "async", all(bool((a == b).all()) for a, b in zip(many, want)))
    say("version", gleam_torch.version(), gleam_torch.members())
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine, root = groups[RANK // 2], RANK // 2 * 2 + 1
    want = random_tensor(600_000, 70 + root)
    t = want.clone() if RANK == root else torch.zeros_like(want)
    dist.broadcast(t, root, group=mine)
    say("equal", "subgroup", bool((t == want).all()) and gleam_torch.members(mine) == [root - 1, root])
    if strict:
        t = torch.full((1000,), float(RANK))
        dist.all_reduce(t)
        objects = [{"a": RANK}] if RANK == 3 else [None]
        dist.broadcast_object_list(objects, 3)
        say("equal", "by Gloo", bool((t == 6).all()) and objects == [{"a": 3}])
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(600, 600))
        model(torch.full((4, 600), float(RANK))).sum().backward()
        grads = [torch.zeros(600, 600) for _ in range(WORLD)]
        dist.all_gather(grads, model.module.weight.grad)
        say("equal", "DistributedDataParallel", all(bool((g == grads[0]).all()) for g in grads))
    dist.barrier()
    say("summary", gleam_torch.summary())
    dist.barrier()


def roots(size):
    """A broadcast from each rank, and what this rank's host has sent meanwhile."""
    dist.init_process_group("gleam")
    for root in range(-1, WORLD):  # the first one makes the group
        t = random_tensor(int(size) // 4, root + 1) if RANK == max(root, 0) else torch.zeros(int(size) // 4)
        dist.barrier()
        before = sent()
        dist.barrier()
        dist.broadcast(t, max(root, 0))
        dist.barrier()
        say("from", root, digest(t), digest(random_tensor(int(size) // 4, root + 1)), sent() - before)
    dist.barrier()


def shards():
    """A group of each two and each three ranks, as replicas of shards are; broadcasts in all of them at once, from each member."""
    dist.init_process_group("gleam")
    ranks = [c for size in (2, 3) for c in itertools.combinations(range(WORLD), size)]
    mine = [(number, c, g) for number, (c, g) in enumerate((c, dist.new_group(c)) for c in ranks) if RANK in c]
    for turn in range(2):
        jobs = []
        for number, c, g in mine:
            want = random_tensor(400_000, 100 * number + turn)
            t = want.clone() if RANK == c[turn] else torch.zeros_like(want)
            jobs.append((dist.broadcast(t, c[turn], group=g, async_op=True), t, want, number))
        for job, t, want, number in jobs:
            job.wait()
            say("equal", "group %d" % number, bool((t == want).all()))
    dist.barrier()
    say("groups", [number for number, c, g in mine], all(gleam_torch.members(g) == list(c) for _, c, g in mine))
    while not os.path.exists(os.environ["STOP"]):
        time.sleep(0.02)
    dist.barrier()


def pattern(n, count):
    return torch.arange(count, dtype=torch.int32) * 2654435 + n


def updates(size, back):
    """Rank 0 broadcasts numbered updates until the file STOP is there; the others check each. back: of a new process."""
    count = int(size) // 4
    sets = [(torch.zeros(2, dtype=torch.int64), torch.zeros(count, dtype=torch.int32)) for _ in range(10)]  # more than a ring has: the source waits before it overwrites what one catches up with
    good = lambda n: int(sets[n % 10][0][0]) == n and bool((sets[n % 10][1] == pattern(n, count)).all())
    if int(back):
        sys.stdin.readline()  # a test has it wait here, with torch in its memory
    begin = time.monotonic()
    if int(back):
        n = 0
        try:
            n = gleam_torch.rejoin(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANK, WORLD)
            say("back", n, time.monotonic() - begin)
            rank = gleam_torch.catch_up(sets[n % 10], n)
            say("caught", n, rank, time.monotonic() - begin, good(n))
        except gleam_torch.Lost as err:
            say("lost", str(err), time.time())
            return
        except RuntimeError as err:
            say("uncaught", n, str(err))
    else:
        dist.init_process_group("gleam")
        say("there", os.getpid())
    over = False
    while not over:
        n = gleam_torch.version() + 1
        head, body = sets[n % 10]
        if RANK == 0:
            over = os.path.exists(os.environ["STOP"])
            head[0], head[1] = n, over
            body.copy_(pattern(n, count))
        begin = time.monotonic()
        try:
            gleam_torch.broadcast([head, body], 0)
        except gleam_torch.Lost as err:
            say("lost", str(err), time.time())
            return
        say("update", n, time.monotonic() - begin, good(n), gleam_torch.members())
        over = bool(head[1])
    dist.barrier()
    say("end", gleam_torch.version(), [e[1:3] for e in gleam_torch.events()])
    dist.barrier()


def errors(root):
    """Broadcasts without end, from a root; says when it becomes an error."""
    dist.init_process_group("gleam")
    t = torch.zeros(2 << 20)
    dist.broadcast(t, int(root))
    dist.barrier()
    say("there", os.getpid())
    try:
        while True:
            dist.broadcast(t, int(root))
            say("update", gleam_torch.version(), 0, True, [])
    except gleam_torch.Lost as err:
        say("lost", str(err), time.time())
    try:
        dist.barrier()
    except gleam_torch.Lost as err:
        say("barrier", str(err))


def late(size, back):
    """Broadcast 1 is kept, and then come updates from rank 0; a new process catches up with the first one, ahead of coming back."""
    count = int(size) // 4
    kept = torch.zeros(count, dtype=torch.int32)
    head, body = torch.zeros(2, dtype=torch.int64), torch.zeros(count, dtype=torch.int32)

    def before(newest):
        for _ in range(4):
            say("idle", newest)
            time.sleep(3)
            kept.zero_()
            say("begins")
            begin = time.monotonic()
            rank = gleam_torch.catch_up(kept, 1)
            say("caught", 1, rank, time.monotonic() - begin, bool((kept == pattern(1, count)).all()))
    if int(back):
        say("back", gleam_torch.rejoin(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANK, WORLD, before=before))
    else:
        dist.init_process_group("gleam")
        if RANK == 0:
            kept.copy_(pattern(1, count))
        dist.broadcast(kept, 0)
    while not head[1]:
        if RANK == 0:
            head[0], head[1] = gleam_torch.version() + 1, os.path.exists(os.environ["STOP"])
            body.copy_(pattern(int(head[0]), count))
        begin = time.monotonic()
        gleam_torch.broadcast([head, body], 0)
        say("update", gleam_torch.version(), time.monotonic() - begin, bool((body == pattern(int(head[0]), count)).all()), gleam_torch.members())
    dist.barrier()


def store():
    """torch's Store, as torchrun has it, in a process that lives on."""
    keep = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, True, wait_for_workers=False)
    say("there", keep.port)
    while not os.path.exists(os.environ["STOP"]):
        time.sleep(0.05)
    time.sleep(1)


def anew(root, size, back):
    """Broadcasts from root until it is Lost, and then from the last rank, until that one finds the file STOP."""
    count, root = int(size) // 4, int(root)
    if int(back):
        say("back", gleam_torch.rejoin(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANK, WORLD))
        root = WORLD - 1
    else:
        dist.init_process_group("gleam")
    head, body = torch.zeros(2, dtype=torch.int64), torch.zeros(count, dtype=torch.int32)
    times = 0
    while not head[1]:
        if RANK == root:
            head[0], head[1] = random.getrandbits(30), os.path.exists(os.environ["STOP"])
            body.copy_(pattern(int(head[0]), count))
        begin, had = time.monotonic(), gleam_torch.version()
        try:
            gleam_torch.broadcast([head, body], root)
        except gleam_torch.Lost as err:
            say("lost", str(err), time.time(), had == gleam_torch.version(), had)
            root, times = WORLD - 1, times + 1
            if times > 3:
                return
            continue
        seconds, n = time.monotonic() - begin, gleam_torch.version()
        say("update", n, seconds, bool((body == pattern(int(head[0]), count)).all()), gleam_torch.members(), n == had + 1 or n == had + 2, int(head[0]), root)
    dist.barrier()
    members = gleam_torch.members()
    say("end", [gleam_torch.version(r) for r in members], members)
    dist.barrier()


def gloo():
    """The same broadcasts by Gloo, whose timeout is 10 s."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    t = torch.zeros(2 << 20)
    dist.broadcast(t, 0)
    dist.barrier()
    say("there", os.getpid())
    n = 0
    try:
        while True:
            dist.broadcast(t, 0)
            dist.barrier()
            n += 1
    except RuntimeError as err:
        say("lost", str(err), time.time())
    try:
        dist.broadcast(t, 0)
        say("goes", n)
    except RuntimeError as err:
        say("afterwards", str(err), time.time())


def waits():
    """All but rank 3, which is killed, wait in an all_reduce."""
    dist.init_process_group("gleam")
    t = torch.zeros(10)
    dist.all_reduce(t)
    say("there", os.getpid())
    if RANK == 3:
        time.sleep(100)
    try:
        dist.all_reduce(t)
    except RuntimeError as err:
        say("lost", str(err), time.time())


{"speed": speed, "gloo": gloo, "kinds": kinds, "roots": roots, "shards": shards, "updates": updates, "errors": errors, "waits": waits, "store": store, "anew": anew, "late": late}[sys.argv[1]](*sys.argv[2:])
