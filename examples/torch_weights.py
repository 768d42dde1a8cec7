#!/usr/bin/env python3
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Weights that rank 0 changes once a second, at all other ranks. See README.md.

    torch_weights.py          each rank, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    torch_weights.py back     a rank that was killed, in a new process
"""
import os
import sys
import time

import torch
import torch.distributed as dist

import gleam_torch

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
weights = torch.zeros(1 << 20)
if sys.argv[1:] == ["back"]:
    gleam_torch.rejoin(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), rank, world)
else:
    dist.init_process_group("gleam")
while True:
    if rank == 0:
        time.sleep(1)
        weights += 1
    dist.broadcast(weights, 0)
    print("rank", rank, "weights", float(weights[0]), "members", gleam_torch.members(), flush=True)
