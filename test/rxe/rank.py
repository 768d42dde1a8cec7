# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of the case about torch.distributed: rank.py [back]. It takes updates, first from each rank in turn and then from
rank 0, and prints what it has of each. Rank 0 reads words, and sends each with an update: after "source" the next one is from
rank 1, which dies in it, and after "end" there is none. Without torch it has a stand-in."""
import hashlib
import json
import os
import select
import signal
import sys

try:
    import torch
except ImportError:
    import notorch  # noqa: F401  pylint: disable=unused-import
    import torch
import torch.distributed as dist

import gleam_torch

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SIZES = [(1,), (4096, 5), (1 << 20,), ((1 << 20) + 1, 7), (70001,), ((5 << 20) + 1, 3)]
UPDATE = ((1 << 20) + 5, 1000)
WORD = 16


def say(*values):
    print(json.dumps(values), flush=True)


def memory(sizes):
    """Bytes, and tensors that are the same memory."""
    b = [bytearray(n) for n in (WORD, *sizes)]
    return b, [torch.frombuffer(x, dtype=torch.uint8) for x in b]


def digest(buffers):
    h = hashlib.sha256()
    for b in buffers:
        h.update(b)
    return h.hexdigest()


def update(root, sizes):
    """One broadcast, and its word."""
    b, tensors = memory(sizes)
    if RANK == root:
        word = os.read(0, WORD).strip() if RANK == 0 and select.select([0], [], [], 0)[0] else b"again"
        for x, n in zip(b, (WORD, *sizes)):
            x[:] = os.urandom(n)
        b[0][:] = word.ljust(WORD, b"\0")
    gleam_torch.broadcast(tensors, root)
    say("update", gleam_torch.version(), digest(b), gleam_torch.members())
    return b[0].rstrip(b"\0")


def die_at(number):
    """Has this process end with its helper, by SIGKILL, at a post."""
    posts, post = [], gleam_torch.Helper.post

    def count(helper, *args):
        posts.append(args)
        if len(posts) == number:
            for pid in (helper.process.pid, os.getpid()):
                os.kill(pid, signal.SIGKILL)
        post(helper, *args)
    gleam_torch.Helper.post = count


def take():
    """Updates until the last one."""
    root = 0
    while True:
        if root == RANK == 1:
            die_at(2)
        try:
            word = update(root, UPDATE)
            dist.barrier()
        except gleam_torch.Lost as err:
            say("lost", str(err))
            root = 0
            continue
        if word == b"end":
            return
        root = 1 if word == b"source" else 0


say("torch", torch.__version__)
if sys.argv[1:] == ["back"]:
    n = gleam_torch.rejoin(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), RANK, WORLD)
    b, tensors = memory(UPDATE)
    giver = gleam_torch.catch_up(tensors, n)
    say("helper", gleam_torch.the_helper[0].process.pid)
    say("caught", n, digest(b), giver)
else:
    dist.init_process_group("gleam")
    for i, sizes in enumerate(SIZES):
        update(i % WORLD, sizes)
        if i == 0:
            say("helper", gleam_torch.the_helper[0].process.pid)
take()
say("events", gleam_torch.events())
