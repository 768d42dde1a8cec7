# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints from the ranks that own parts of them to all, by a group; or by catch_up to the ranks that are named. UNRUN
WITH checkpoint-engine: against interfaces.py alone. A rank that dies is out; with back its new process catches up."""
import json

import torch.distributed as dist

import gleam_torch
from buckets import buckets, dtype_name, receive, send
from interfaces import ParameterServer


class Server(ParameterServer):
    """owners: the ranks that register parts."""

    def __init__(self, host, port, *, rank, world_size, owners=(0,), bucket=64 << 20, back=False):
        self.group = gleam_torch.join(host, port, rank, world_size, back)
        self.store = dist.PrefixStore("gleam_engines", dist.TCPStore(host, port, None, False))
        self.rank, self.owners, self.bucket, self.pool, self.metas = rank, owners, bucket, {}, {}

    def register_checkpoint(self, checkpoint_name, *, files=None, named_tensors=None):
        if files:
            raise NotImplementedError("files: load them, and register the tensors")
        self.pool[checkpoint_name] = named_tensors

    def unregister_checkpoint(self, checkpoint_name):
        if self.pool.pop(checkpoint_name, None) is not None:
            self.store.delete_key("%s/%d" % (checkpoint_name, self.rank))

    def gather_metas(self, checkpoint_name):
        """Waits for the owners alone, by torch's Store: Gloo has no all_gather_object after a loss."""
        if checkpoint_name in self.pool:
            metas = [(name, dtype_name(t.dtype), list(t.shape)) for name, t in self.pool[checkpoint_name].items()]
            self.store.set("%s/%d" % (checkpoint_name, self.rank), json.dumps([gleam_torch.version(group=self.group) + 1, metas]))
        self.metas[checkpoint_name] = [json.loads(self.store.get("%s/%d" % (checkpoint_name, owner))) for owner in self.owners]

    def update(self, checkpoint_name, req_func, *, ranks=None):
        """Has req_func load each bucket. ranks: those that get what an update of all has had already, without the others."""
        if ranks and self.rank not in ranks:
            return
        n = self.metas[checkpoint_name][0][0]
        for owner, (_, metas) in zip(self.owners, self.metas[checkpoint_name]):
            if owner == self.rank:
                own = list(self.pool[checkpoint_name].items())
                if not ranks:
                    send(own, metas, self.bucket, owner, self.group)
                req_func(own)
            else:
                for weights in receive(metas, self.bucket, owner, n, self.group):
                    req_func(weights)
            n += len(list(buckets(metas, self.bucket)))
