# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Weights as broadcasts of buckets, whose small tensors share messages. UNRUN WITH vLLM AND checkpoint-engine.
metas describe weights: (name, name of the dtype, shape) of each tensor; all ranks have the same ones."""
import torch

import gleam_torch


def dtype_name(dtype):
    return str(dtype).split(".")[1]


def buckets(metas, limit):
    """Cuts metas into lists of at most limit bytes, or of one tensor."""
    bucket, size = [], 0
    for meta in metas:
        n = torch.Size(meta[2]).numel() * torch.empty(0, dtype=getattr(torch, meta[1])).element_size()
        if bucket and size + n > limit:
            yield bucket
            bucket, size = [], 0
        bucket.append(meta)
        size += n
    if bucket:
        yield bucket


def send(weights, metas, limit, src, group):
    weights = iter(weights)
    for bucket in buckets(metas, limit):
        gleam_torch.broadcast([next(weights)[1].detach() for _ in bucket], src, group)


def receive(metas, limit, src, first, group, device="cpu"):
    """Yields each bucket as (name, tensor)s. The first one is broadcast number first. Those that this rank has had, or that were
    before it came back, are from a member that has kept them; the others come by the group, and have to be read there."""
    for n, bucket in enumerate(buckets(metas, limit), first):
        tensors = [torch.empty(shape, dtype=getattr(torch, dtype), device=device) for _, dtype, shape in bucket]
        if n <= gleam_torch.version(group=group):
            gleam_torch.catch_up(tensors, n, group)
        else:
            gleam_torch.broadcast(tensors, src, group)
        yield [(meta[0], t) for meta, t in zip(bucket, tensors)]
