# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""Abstract classes with the methods of vLLM's engines and of checkpoint-engine's ParameterServer. UNRUN WITH THE
ORIGINALS: written from their interfaces, without their code. docs/ENGINES.md has the commits, and what differs."""
from abc import ABC, abstractmethod


class WeightTransferEngine(ABC):
    init_info_cls = update_info_cls = None

    def __init__(self, config, vllm_config, device, model):
        self.config, self.vllm_config, self.device, self.model = config, vllm_config, device, model

    @abstractmethod
    def init_transfer_engine(self, init_info): ...

    def start_weight_update(self): ...

    def update_weights(self, update_info):
        self.receive_weights(self.update_info_cls(**update_info))

    @abstractmethod
    def receive_weights(self, update_info): ...

    def finish_weight_update(self): ...

    def shutdown(self): ...


class TrainerWeightTransferEngine(ABC):
    def __init__(self, *, client, source=None, is_sender=True):
        self.client, self.source, self.is_sender = client, source, is_sender

    @classmethod
    @abstractmethod
    def trainer_init(cls, init_info, *, client, source=None): ...

    @abstractmethod
    def send_weights(self): ...


class ParameterServer(ABC):
    @abstractmethod
    def register_checkpoint(self, checkpoint_name, *, files=None, named_tensors=None): ...

    @abstractmethod
    def unregister_checkpoint(self, checkpoint_name): ...

    @abstractmethod
    def gather_metas(self, checkpoint_name): ...

    @abstractmethod
    def update(self, checkpoint_name, req_func, *, ranks=None): ...
