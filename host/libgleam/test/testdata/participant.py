# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""A member of a group in Python: participant.py numpy|array IP QPN KEYHEX MASTER."""
import select
import sys

import pygleam

kind, ip, qpn, key, master = sys.argv[1:]
if kind == "numpy":
    import numpy
    array = numpy.zeros(1 << 18, dtype=numpy.uint32)
else:  # a buffer of the standard library
    import array as arrays
    array = arrays.array("I", bytes(1 << 20))
region = pygleam.memory(array, rkey=7)
region.owner[4] = b"\x2a"  # as a WRITE of the network would: the array shows it
print("memory", type(array).__name__, region.length, array[1], flush=True)
for bad, why in ((b"read only", "writable"), (bytearray(), "empty")):
    try:
        pygleam.memory(bad, 1)
    except ValueError as e:
        print("refused", why in str(e), flush=True)
try:
    pygleam.Group(pygleam.MASTER, key=b"short", key_id=1, exchange=master, group_ip="10.77.254.1", members=1)
except pygleam.Error as e:
    print("refused", e, flush=True)
with pygleam.Group(pygleam.MEMBER, key=bytes.fromhex(key), key_id=1, exchange=master) as g:
    peer = g.join(pygleam.QP(ip, int(qpn, 0), 1, 2), region, timeout=20)
    print("peer", peer.ip, hex(peer.qp_num), flush=True)
    g.connected()
    print("registered", g.wait(20).members, pygleam.version() != "", flush=True)
    select.select([g], [], [], 20)
    print("event", g.next_event(), flush=True)
    g.leave(10)
    print("gone", flush=True)
