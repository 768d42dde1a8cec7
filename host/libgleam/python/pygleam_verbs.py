# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
"""pygleam_verbs: the application's part of joining, for programs on pyverbs: a device by
its IP address, and the states of a queue pair.

    device = pygleam_verbs.Device("10.0.0.2")
    pd, cq = PD(device.context), CQ(device.context, 64)
    qp = pygleam_verbs.QueuePair(device, pd, cq, depth=64)     # in INIT
    with pygleam.Group(...) as g:
        g.join(qp.numbers, timeout=60)                         # or export
        ...                                                    # post receives
        qp.connect(g)                                          # to RTR and RTS; g.connected()
        window = g.wait(60)

The attributes are those of docs/APPLICATIONS.md.
"""
import ipaddress
import secrets

import pygleam
import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr


class Device:
    """The RDMA device that has an IPv4 or IPv6 address as a GID of RoCE v2: its context,
    and port and index of the GID."""

    def __init__(self, ip):
        self.ip = ipaddress.ip_address(ip)
        want = (ipaddress.IPv6Address("::ffff:" + ip) if self.ip.version == 4 else self.ip)
        for d in get_device_list():
            context = Context(name=d.name.decode())
            for gid in context.query_gid_table(256):
                if gid.gid_type == e.IBV_GID_TYPE_ROCE_V2 and ipaddress.IPv6Address(gid.gid_str()) == want:
                    self.context, self.port, self.gid_index = context, gid.port_num, gid.gid_index
                    return
            context.close()
        raise pygleam.Error(19, "no RDMA device has a GID of RoCE v2 for " + ip)


def register(pd, array, access=e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE):
    """A memory region that is the array's own memory, which has to outlive it. Nothing is copied."""
    return MR(pd, array.nbytes, access, address=array.ctypes.data)


class QueuePair(QP):
    """A reliable connected queue pair in INIT, with random first PSNs: numbers is what
    Group.join() and Group.export() take."""

    def __init__(self, device, pd, cq, depth, timeout=14):
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth)
        attr = QPAttr(port_num=device.port)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        super().__init__(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap), attr)
        self.device, self.timeout = device, timeout
        self.numbers = pygleam.QP(str(device.ip), self.qp_num, secrets.randbits(24), secrets.randbits(24))

    def connect(self, group):
        """To RTR and RTS toward the group, and Group.connected(), also with what failed:
        Group.wait() then says so, at all members. Receives for the first messages are to
        be posted before."""
        peer = group.peer()
        attr = QPAttr(port_num=self.device.port)
        attr.path_mtu, attr.dest_qp_num = peer.path_mtu, peer.qp_num
        attr.rq_psn, attr.sq_psn = self.numbers.rq_psn, self.numbers.sq_psn
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, self.timeout, 7, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 0
        route = GlobalRoute(dgid=GID(ipaddress.IPv6Address(peer.gid).exploded), sgid_index=self.device.gid_index, hop_limit=64)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=self.device.port)
        try:
            self.to_rtr(attr)
            self.to_rts(attr)
        except PyverbsError as err:
            group.connected("modify the queue pair toward %s: %s" % (peer.ip, err))
        else:
            group.connected()
