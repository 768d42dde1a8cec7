# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of the test of examples/engines: engines.py ENGINE BACK. Rank 0 announces each update in a file of the folder
of STOP, as a control plane would; weights of an update are known from its number."""
import json
import os
import sys
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/engines"))
import gleam_torch  # pylint: disable=wrong-import-position
import parameter_server  # pylint: disable=wrong-import-position
import vllm_engine  # pylint: disable=wrong-import-position

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HOST, PORT = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
DIR = os.path.dirname(os.environ["STOP"])
BUCKET = 128 << 10
caught = [0]  # tensors that have come by catch_up
by_catch_up = gleam_torch.catch_up


def catch_up(tensors, n, group=None):
    caught[0] += len(tensors)
    return by_catch_up(tensors, n, group)


gleam_torch.catch_up = catch_up


def say(word, *values):
    print(word, json.dumps(values), flush=True)


def weights(n):
    """A small model: many small tensors of all kinds, and some that fill a bucket."""
    g = torch.Generator().manual_seed(n)
    for layer in range(8):
        for i, dtype in enumerate((torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool)):
            yield "layers.%d.%d" % (layer, i), (100 * torch.randn(layer + 1, 50 + 7 * i, generator=g)).to(dtype)
        yield "layers.%d.weight" % layer, torch.randn(200, 401, generator=g).to(torch.bfloat16)
    yield "scale", torch.tensor(float(n))
    yield "head", torch.randn(64, 1000, generator=g)


class Model:
    """What has load_weights, as vLLM's models have."""

    def __init__(self):
        self.weights = {name: torch.zeros_like(t) for name, t in weights(0)}

    def load_weights(self, some):
        for name, t in some:
            self.weights[name].copy_(t)

    def check(self, n, group):
        good = all(t.dtype == self.weights[name].dtype and torch.equal(t, self.weights[name]) for name, t in weights(n))
        say("update", n, good, gleam_torch.members(group), caught[0], gleam_torch.version(group=group), len(self.weights))
        caught[0] = 0


def announce(n, **what):
    with open("%s/%d.new" % (DIR, n), "w", encoding="ascii") as f:
        json.dump(what, f)
    os.rename("%s/%d.new" % (DIR, n), "%s/%d.json" % (DIR, n))


def announced(n):
    """What update n is; None where there is none yet."""
    try:
        with open("%s/%d.json" % (DIR, n), encoding="ascii") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def newest():
    return max((int(f[:-5]) for f in os.listdir(DIR) if f.endswith(".json") and f != "0.json"), default=1)


def whole():
    """The newest update that is over at rank 0."""
    n = newest()
    while newest() == n:
        time.sleep(0.01)
    return n


def until(f, *args):
    while (value := f(*args)) is None:
        time.sleep(0.01)
    return value


class Source:
    """vLLM's WeightSource."""
    n = 1

    def metadata(self):
        return [SimpleNamespace(name=name, dtype=t.dtype, shape=tuple(t.shape)) for name, t in weights(0)]

    def __iter__(self):
        return weights(self.n)


class Client:
    """vLLM's VLLMWeightSyncClient, as far as a file goes."""
    n, last = 1, False

    def init_weight_transfer_engine(self, init_info):
        announce(0, **init_info)

    def start_weight_update(self):
        pass

    def update_weights(self, update_info):
        announce(self.n, info=update_info, last=self.last)

    def finish_weight_update(self, weight_version=None):
        pass


def vllm(back):
    if RANK == 0:
        source, client, n = Source(), Client(), 0
        trainer = vllm_engine.Trainer.trainer_init(vllm_engine.InitInfo(HOST, PORT, 1, WORLD, BUCKET), client=client, source=source)
        while not client.last:
            n += 1
            source.n, client.n, client.last = n, n, os.path.exists(os.environ["STOP"])
            trainer.send_weights()
            say("update", n, True, gleam_torch.members(trainer.group), 0, gleam_torch.version(group=trainer.group), len(source.metadata()))
            time.sleep(0.4)
        return trainer.group
    model = Model()
    engine = vllm_engine.Engine(None, SimpleNamespace(parallel_config=SimpleNamespace(rank=RANK - 1)), "cpu", model)
    info = vllm_engine.InitInfo(**until(announced, 0))
    n, info.back = whole() if back else 1, back
    engine.init_transfer_engine(info)
    last = False
    while not last:
        what = until(announced, n)
        engine.start_weight_update()
        engine.update_weights(what["info"])
        engine.finish_weight_update()
        model.check(n, engine.group)
        n, last = n + 1, what["last"]
    return engine.group


def checkpoint(back):
    """Ranks 0 and 1 own a part each; one that is back has its first checkpoint by the way of single ranks."""
    owners, model, n = (0, 1), Model(), whole() if back else 1
    server = parameter_server.Server(HOST, PORT, rank=RANK, world_size=WORLD, owners=owners, bucket=BUCKET, back=back)
    if back:
        server.gather_metas("update-%d" % n)
        server.update("update-%d" % n, model.load_weights, ranks=[RANK])
        model.check(n, server.group)
        n += 1
    last = False
    while not last:
        if RANK == 0:
            announce(n, last=os.path.exists(os.environ["STOP"]))
            time.sleep(0.4)
        last = until(announced, n)["last"]
        if RANK in owners:
            server.register_checkpoint("update-%d" % n, named_tensors=dict(list(weights(n))[RANK::len(owners)]))
            server.unregister_checkpoint("update-%d" % (n - 100))
        server.gather_metas("update-%d" % n)
        server.update("update-%d" % n, model.load_weights)
        model.check(n, server.group)
        n += 1
    return server.group


# A default process group of another kind, as workers of vLLM have, is in nobody's way.
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
{"vllm": vllm, "checkpoint": checkpoint}[sys.argv[1]](sys.argv[2] == "1").barrier().wait()
