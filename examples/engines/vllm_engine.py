# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Weights from a trainer, rank 0, to workers of vLLM, by a group. UNRUN WITH vLLM: against interfaces.py alone.
A worker that dies is out; its new process is given init_info with back, and catches up with what the others have."""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import gleam_torch
from buckets import dtype_name, receive, send
from interfaces import TrainerWeightTransferEngine, WeightTransferEngine


@dataclass
class InitInfo:
    master_address: str
    master_port: int
    rank_offset: int  # of the workers' ranks; the trainer that sends is rank 0
    world_size: int
    bucket: int = 64 << 20  # bytes
    back: bool = False


@dataclass
class UpdateInfo:
    names: list
    dtype_names: list
    shapes: list
    first: int  # the number of the first bucket's broadcast
    bucket: int


class Engine(WeightTransferEngine):
    init_info_cls, update_info_cls = InitInfo, UpdateInfo

    def init_transfer_engine(self, init_info):
        i = init_info
        rank = i.rank_offset + self.vllm_config.parallel_config.rank
        self.group = gleam_torch.join(i.master_address, i.master_port, rank, i.world_size, i.back)

    def receive_weights(self, update_info):
        u = update_info
        for weights in receive(list(zip(u.names, u.dtype_names, u.shapes)), u.bucket, 0, u.first, self.group, self.device):
            self.model.load_weights(weights)


class Trainer(TrainerWeightTransferEngine):
    @classmethod
    def trainer_init(cls, init_info, *, client, source=None):
        made = cls(client=client, source=source)
        made.bucket = init_info.bucket
        with ThreadPoolExecutor(1) as beside:
            told = beside.submit(client.init_weight_transfer_engine, asdict(init_info))
            made.group = gleam_torch.join(init_info.master_address, init_info.master_port, 0, init_info.world_size)
            told.result()
        return made

    def send_weights(self):
        metas = [(m.name, dtype_name(m.dtype), list(m.shape)) for m in self.source.metadata()]
        names, dtypes, shapes = zip(*metas)
        self.client.start_weight_update()
        with ThreadPoolExecutor(1) as beside:
            info = UpdateInfo(names, dtypes, shapes, gleam_torch.version(group=self.group) + 1, self.bucket)
            told = beside.submit(self.client.update_weights, asdict(info))
            send(self.source, metas, self.bucket, 0, self.group)
            told.result()
        self.client.finish_weight_update()
