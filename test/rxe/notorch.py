# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""As much of torch 1.13 as gleam_torch asks for with policy evict, on a machine without torch: process
groups, tensors of bytes, and a Store of all processes, in the file that STORE names."""
import contextlib
import ctypes
import datetime
import fcntl
import json
import os
import sys
import types


class Store:
    def __init__(self, *_):
        self.file = open(os.environ["STORE"], "a+", encoding="ascii")  # pylint: disable=consider-using-with

    @contextlib.contextmanager
    def values(self):
        with open(self.file.name, "r+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            text = f.read()
            values = json.loads(text or "{}")
            yield values
            if json.dumps(values) != text:
                f.seek(0)
                f.truncate()
                json.dump(values, f)

    def add(self, key, n):
        with self.values() as v:
            if n:
                v[key] = v.get(key, 0) + n
            return v.get(key, 0)

    def set(self, key, value):
        with self.values() as v:
            v[key] = value

    def get(self, key):
        with self.values() as v:
            return v[key].encode()

    def compare_set(self, key, expected, desired):
        with self.values() as v:
            if v.get(key, "") == expected:
                v[key] = desired
            return v[key].encode()


class PrefixStore:
    def __init__(self, prefix, store):
        for name in ("add", "set", "get", "compare_set"):
            setattr(self, name, lambda key, *args, f=getattr(store, name): f(prefix + "/" + key, *args))


class Tensor:
    """The bytes of a bytearray."""
    device, _version = types.SimpleNamespace(type="cpu"), 0

    def __init__(self, memory, dtype):
        self.memory, self.dtype = (ctypes.c_char * len(memory)).from_buffer(memory), dtype

    def numel(self):
        return len(self.memory)

    def element_size(self):
        return 1

    def is_contiguous(self):
        return True

    def data_ptr(self):
        return ctypes.addressof(self.memory)


class ProcessGroup:
    def __init__(self, rank, size):
        pass


class Work:
    pass


backends, default = {}, types.SimpleNamespace(store=None, group=None)


def init_process_group(backend, store=None, rank=None, world_size=None, timeout=datetime.timedelta(minutes=30)):
    rank, world_size = (int(os.environ[name]) if n is None else n for n, name in ((rank, "RANK"), (world_size, "WORLD_SIZE")))
    default.store = PrefixStore("default_pg", store or Store())
    default.group = backends[backend](types.SimpleNamespace(store=PrefixStore("0", default.store), group_rank=rank, group_size=world_size, timeout=timeout, global_ranks_in_group=[], group_id=""))


distributed = types.ModuleType("torch.distributed")
vars(distributed).update(
    ProcessGroup=ProcessGroup, Work=Work, PrefixStore=PrefixStore, TCPStore=Store, init_process_group=init_process_group, barrier=lambda: default.group.barrier().wait(),
    Backend=types.SimpleNamespace(register_backend=lambda name, make, extended_api: backends.update({name: make})),
    distributed_c10d=types.SimpleNamespace(_get_default_store=lambda: default.store, _get_default_group=lambda: default.group))
torch = types.ModuleType("torch")
vars(torch).update(Tensor=Tensor, no_grad=contextlib.nullcontext, frombuffer=Tensor, uint8="uint8", float32="float32", distributed=distributed, __version__="1.13, a stand-in")
sys.modules.update({"torch": torch, "torch.distributed": distributed})
