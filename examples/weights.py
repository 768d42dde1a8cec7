#!/usr/bin/env python3
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""The weights of a model, from one host to N, each of which has them in numpy's memory.

    weights.py send IP PORT GROUP_IP RECEIVERS FILE
    weights.py receive IP SENDER_IP PORT [FILE]

IP is an address of this host's RDMA device; the receivers connect to the sender's PORT by
TCP to join. GLEAM_KEY has the 64 hexadecimal digits of key 1 in gleamd's configuration.
See README.md.
"""
import hashlib
import json
import os
import sys
import time

import numpy
import pygleam
import pygleam_verbs
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.pd import PD
from pyverbs.wr import SGE, RecvWR, SendWR

CHUNK = 256 << 10  # bytes of a message
DEPTH = 16         # messages in flight, and receives posted
TIMEOUT = 16       # of the queue pairs: 268 ms. 14 with RNICs
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "BOOL": "?"}


class Host:
    """A queue pair in a group, and its completions."""

    def __init__(self, ip, **group):
        self.device = pygleam_verbs.Device(ip)
        self.pd, self.cq = PD(self.device.context), CQ(self.device.context, 2 * DEPTH)
        self.qp = pygleam_verbs.QueuePair(self.device, self.pd, self.cq, DEPTH, TIMEOUT)
        self.group = pygleam.Group(key=bytes.fromhex(os.environ["GLEAM_KEY"]), key_id=1, **group)

    def join(self):
        self.group.join(self.qp.numbers, timeout=60)

    def connect(self):
        self.qp.connect(self.group)
        return self.group.wait(60).members

    def transfer(self, array, post):
        """Posts an array in chunks, at most DEPTH at a time, and waits for all completions."""
        region = pygleam_verbs.register(self.pd, array)  # its own memory: nothing is copied
        chunks = [SGE(region.buf + at, min(CHUNK, array.nbytes - at), region.lkey) for at in range(0, array.nbytes, CHUNK)]
        posted = done = 0
        while done < len(chunks):
            if posted < len(chunks) and posted - done < DEPTH:
                post(chunks[posted])
                posted += 1
                continue
            n, completions = self.cq.poll()
            done += n
            for c in completions or []:
                if c.status != e.IBV_WC_SUCCESS:
                    sys.exit("completion with status %d; `gleam group show` and `gleam events` at the switch say of which member" % c.status)
            if n == 0:
                time.sleep(0.0005)

    def send(self, array):
        self.transfer(array, lambda sge: self.qp.post_send(SendWR(num_sge=1, sg=[sge], opcode=e.IBV_WR_SEND, send_flags=e.IBV_SEND_SIGNALED)))

    def receive(self, array):
        self.transfer(array, lambda sge: self.qp.post_recv(RecvWR(num_sge=1, sg=[sge])))


def tensors(data):
    """The tensors of a safetensors file, as views of its bytes."""
    begin = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(data[8:begin].tobytes())
    return {name: data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]].view(DTYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def send(ip, port, group_ip, receivers, path):
    data = numpy.fromfile(path, numpy.uint8)
    flags = pygleam.OTHER_NETWORK if "OTHER_NETWORK" in os.environ else 0
    host = Host(ip, role=pygleam.MASTER, exchange="%s:%s" % (ip, port), group_ip=group_ip, members=int(receivers), flags=flags,
                policy=pygleam.EVICT, sender_timeout=TIMEOUT, dead_after_ms=800)  # a receiver that dies stops nobody
    host.join()
    host.connect()
    begin = time.monotonic()
    host.send(numpy.array([data.nbytes], "<u8"))
    host.send(data)  # waits while a receiver has no receive posted
    took = time.monotonic() - begin
    missing = 0
    while event := host.group.next_event():
        if event.kind == pygleam.EVICTED:
            print(event.text)
            missing += 1
    host.group.leave(10)
    print("%d of %s receivers have %d bytes after %.2f s, sha256 %s" % (int(receivers) - missing, receivers, data.nbytes, took, hashlib.sha256(data).hexdigest()))
    return missing


def receive(ip, sender, port, path=None):
    host = Host(ip, role=pygleam.MEMBER, exchange="%s:%s" % (sender, port), flags=pygleam.RECEIVE_ONLY)
    host.join()
    host.connect()
    size = numpy.zeros(1, "<u8")
    host.receive(size)
    data = numpy.empty(int(size[0]), numpy.uint8)
    host.receive(data)
    for name, t in tensors(data).items():
        print("%s %s %s" % (name, t.dtype, t.shape))
    print("%d bytes, sha256 %s" % (data.nbytes, hashlib.sha256(data).hexdigest()), flush=True)
    if path:
        data.tofile(path)
    while (event := host.group.next_event(60)) and event.kind not in (pygleam.ENDED, pygleam.EVICTED, pygleam.FAILED):
        pass  # a lost acknowledgement is repeated until the sender has all, and leaves
    return 0


if __name__ == "__main__":
    commands = {("send", 7): send, ("receive", 5): receive, ("receive", 6): receive}
    if (command := commands.get(("".join(sys.argv[1:2]), len(sys.argv)))) is None:
        sys.exit(__doc__)
    try:
        sys.exit(command(*sys.argv[2:]))
    except pygleam.Error as err:
        sys.exit(err.strerror)  # the cause, and what to do
