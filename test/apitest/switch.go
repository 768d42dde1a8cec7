// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Switch returns a backend with typical state: an IPv4 group whose transfer one member
// delays, across the wrap of the PSN; an idle IPv6 group; two ports, one of them with
// more drops than the other.
func Switch() *Backend {
	ip := netip.MustParseAddr
	psn, at := api.PSN(0xFFFFF0), time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	return &Backend{
		GroupList: []api.Group{{
			IP: ip("10.77.254.1"), QPN: 0x1000, PMTU: 1024, Policy: "strict", Origin: "envelope", Epoch: 3,
			Master: "10.77.0.1:4797", LeaseLeft: 41.6, State: "running", Source: ip("10.77.0.1"),
			AckPSN: 0xFFFFFE, NextPSN: 0x10, WaitsFor: ip("10.77.0.3"),
			Members: []api.Member{
				{IP: ip("10.77.0.1"), QPN: 0x11, Port: "p1", MAC: "02:00:00:00:00:01", Role: "source", Live: true},
				{IP: ip("10.77.0.2"), QPN: 0x12, Port: "p2", MAC: "02:00:00:00:00:02", Role: "receiver", Live: true, AckPSN: 0xF, Window: true,
					Cost: &api.Cost{RTTp50: 0.000_212, RTTp99: 0.001_85}},
				{IP: ip("10.77.0.3"), QPN: 0xABCDEF, Port: "p2", MAC: "02:00:00:00:00:03", VLAN: 42, Role: "receiver", Live: true, AckPSN: 0xFFFFFE, Lag: 17, Pending: "NAK 0x60", Window: true, Slow: "loss",
					Cost: &api.Cost{NAKs: 12, RNRNAKs: 2, Repaired: 96, Probes: 1, RTTp50: 0.000_230, RTTp99: 0.0143, Waited: 3.254}},
				{IP: ip("10.77.0.4"), QPN: 0x14, Role: "receiver", AckPSN: 0xFFFFF0, Lag: 31},
			},
			Former: []api.FormerMember{
				{IP: ip("10.77.0.5"), QPN: 0x15, PSN: &psn, Reason: "evicted: silent", Time: at},
				{IP: ip("10.77.0.6"), QPN: 0x16, Reason: "left", Time: at.Add(time.Second)},
			},
			Repair:   &api.Repair{Bytes: 256 << 10, MaxRetainedBytes: 1 << 20, LimitBytes: 4 << 20, NAKs: 3, Copies: 96, Probes: 1},
			SlowedBy: ip("10.77.0.3"), SlowCause: "loss",
			Counters: api.Counters{DataIn: 1000, DataBytes: 1_024_000, Repeated: 4, GoodBytes: 1_019_904, Copies: 2990, FeedbackIn: 640, FeedbackOut: 213},
			FastPath: &api.FastPath{Way: api.WayFast, Since: at, Packets: 961, Copies: 2880, Grants: 3, Revokes: 2, Ring: 1024, Left: map[string]uint64{"slow": 36, "behind": 3}},
		}, {
			IP: ip("fd77::6c65:1"), QPN: 0xABCDE, PMTU: 4096, Policy: "evict", DeadAfterMS: 100, LagPSNs: 64, Origin: "api", Epoch: 1, State: "idle",
			Normal: map[string]uint64{"no_source": 2}, Drops: map[string]uint64{"wrong_qpn": 12, "psn_out_of_range": 4},
			FastPath: &api.FastPath{Way: api.WayNever, Word: "repair", Reason: "no local repair", Remedy: "register it with local repair"},
			Members: []api.Member{
				{IP: ip("fd77::1"), QPN: 0x11, Port: "p1", MAC: "02:00:00:00:00:01", Role: "receiver", Live: true,
					Diagnosis: "wrong sq-psn: packets seen at PSN 0x000400, expected 0x000000 by registration"},
				{IP: ip("fd77::2"), QPN: 0x12, Port: "p2", MAC: "02:00:00:00:00:02", Role: "receiver", Live: true},
			},
		}},
		GoneList: []api.Group{{
			IP: ip("10.77.254.7"), QPN: 0x676c6d, PMTU: 1024, Policy: "strict", Origin: "api", Epoch: 1, State: "running", Source: ip("10.77.0.1"),
			Members: []api.Member{}, Ended: &api.Ended{Reason: "replaced by a newer epoch", Time: at},
		}, {
			IP: ip("10.77.254.7"), QPN: 0x676c6d, PMTU: 1024, Policy: "strict", DeadAfterMS: 100, Origin: "envelope", Epoch: 2,
			Master: "10.77.0.1:4797", State: "failed", Failure: "because of 10.77.0.2 qpn 0x12: silent", Source: ip("10.77.0.1"), AckPSN: 7, NextPSN: 12,
			Members: []api.Member{
				{IP: ip("10.77.0.1"), QPN: 0x11, Port: "p1", MAC: "02:00:00:00:00:01", Role: "source", Live: true},
				{IP: ip("10.77.0.2"), QPN: 0x12, Port: "p2", MAC: "02:00:00:00:00:02", Role: "receiver", Live: true, AckPSN: 7, Lag: 4},
			},
			Ended: &api.Ended{Reason: "deleted", Time: at.Add(time.Minute)},
		}},
		EventList: []api.Event{
			{Seq: 1, Time: at, Kind: api.EventRegistered, Group: ip("10.77.254.1"), Reason: "epoch 3, 6 members"},
			{Seq: 2, Time: at.Add(time.Millisecond), Kind: api.EventEvicted, Group: ip("10.77.254.1"), Member: ip("10.77.0.5"), QPN: 0x15, PSN: &psn, Reason: "silent"},
		},
		PortList: []api.Port{
			{Name: "p1", Ifindex: 3, Driver: "mlx5_core", Worker: 0, Sockets: []api.Socket{
				{Queue: 0, Worker: 0, RX: api.Ring{Used: 3, Size: 2048}, Fill: api.Ring{Used: 2016, Size: 2048}, TX: api.Ring{Size: 2048}, Completion: api.Ring{Used: 64, Size: 2048},
					Kernel: api.SocketCounters{RXRingFull: 17, FillEmpty: 2, TXRingEmpty: 900}},
				{Queue: 1, Worker: 1, RX: api.Ring{Size: 2048}, Fill: api.Ring{Used: 2048, Size: 2048}, TX: api.Ring{Size: 2048}, Completion: api.Ring{Size: 2048}},
			}, MAC: "02:00:00:00:aa:01", MTU: 1500, Up: true, XDPMode: "native", ZeroCopy: true, Queues: 2, RxFrames: 1640, RxBytes: 1_150_000, TxFrames: 213, TxBytes: 18_100,
				Device:   &api.DeviceCounters{RXPackets: 1652, TXPackets: 213, RXBytes: 1_111_000, TXBytes: 13_000, RXDropped: 4, RXMissed: 9},
				Egress:   api.Egress{MaxBytes: 262144, MaxFrames: 1024, MaxDepthBytes: 1538, ECNKMin: 32768, ECNKMax: 131072, ECNPMax: 0.2},
				XDP:      map[string]uint64{"redirect": 1640, "pass_other": 12, "pass_short": 0},
				FastPath: &api.PortFastPath{Used: true, Sent: 2880}},
			{Name: "p2", Ifindex: 14, Worker: 1, Sockets: []api.Socket{
				{Queue: 0, Worker: 1, RX: api.Ring{Size: 512}, Fill: api.Ring{Used: 480, Size: 512}, TX: api.Ring{Used: 12, Size: 512}, Completion: api.Ring{Used: 1, Size: 512}},
			}, MAC: "02:00:00:00:aa:02", MTU: 9000, XDPMode: "generic", Queues: 1, VLAN: 42, RxFrames: 7, RxBytes: 616, TxFrames: 2990, TxBytes: 3_300_000,
				Rate: 100_000_000, Egress: api.Egress{Bytes: 3076, Frames: 2, MaxBytes: 65536, MaxFrames: 1024, MaxDepthBytes: 65100, Dropped: 31, Deferred: 5, CEMarked: 207},
				XDP:      map[string]uint64{},
				FastPath: &api.PortFastPath{Reason: "the veth's peer takes no redirected frames: turn on GRO at the interface's peer (ethtool -K PEER gro on)", Sent: 40, Lost: 64}},
		},
		Switches: api.Topology{
			Switch: "00000000000000aa",
			Links: []api.Link{
				{Port: "p1", MAC: "02:00:00:00:aa:01", MTU: 1500, State: api.LinkUp, Sent: 4100, Received: 4096},
				{Port: "p2", MAC: "02:00:00:00:aa:02", MTU: 9000, State: api.LinkDown, Reason: "no neighbour is heard", Sent: 4100, Received: 12, NotSent: 3,
					Drops: map[string]uint64{"hello_bad_mac": 11, "hello_unknown_key": 1}, LastDrop: "a hello with a wrong HMAC", LastDropMAC: "02:00:00:00:cc:01", LastDropAge: 2.2},
			},
			Neighbours: []api.NeighbourSwitch{
				{Number: 1, Port: "p1", Switch: "00000000000000bb", State: api.LinkUp, MAC: "02:00:00:00:bb:01", MTU: 1500, Session: "0123456789abcdef", Age: 410.5, Hold: 0.3},
				{Number: 2, Port: "p2", Switch: "00000000000000cc", State: api.LinkDown, Reason: "no neighbour is heard", MAC: "02:00:00:00:cc:01", MTU: 9000, Session: "fedcba9876543210", Age: 62, Hold: 0.3},
			},
			NextHops: []api.NextHop{
				{Gateway: ip("10.1.0.2"), Port: "p1", MAC: "02:00:00:00:bb:01", Switch: "00000000000000bb", Hosts: 3},
				{Gateway: ip("fe80::cc"), Hosts: 1, Reason: "fe80::cc on p2: neighbour is being resolved"},
			},
		},
		Machine: &api.Kernel{
			Release: "6.1.0-13-amd64",
			Features: []api.KernelFeature{
				{Name: "af_xdp", State: api.FeaturePresent, Use: "takes packets of groups to the workers", Required: true},
				{Name: "bpf_jit", State: api.FeatureUnknown, Detail: "it is not seen here", Use: "runs XDP programs as machine code"},
				{Name: "huge_pages", State: api.FeatureAbsent, Detail: "never", Use: "packet memory in transparent huge pages"},
			},
			Interfaces: []api.XDPInterface{{Name: "p1", Driver: "ice", Native: true, ZeroCopy: true, Redirect: true}, {Name: "p2", Driver: "e1000"}},
			Degraded: []api.Degradation{
				{Feature: "huge_pages", Text: "the kernel lacks huge_pages (never)", Cost: "the worker misses the TLB more often"},
				{Port: "p2", Text: "XDP runs in generic mode (driver e1000)", Cost: "fewer packets a second"},
			},
		},
		Totals: &api.Stats{
			Uptime: 3725.4, Groups: 2, Rx: 1000, RxBytes: 1_024_000, Copies: 2990, Resent: 96, PSNProbes: 4, CEMarked: 207, FeedbackIn: 640, FeedbackOut: 213, Neighbour: 4,
			EnvelopeIn: 6, EnvelopePartial: 4, EnvelopeOut: 5, FramesFree: 16000, Frames: 16384,
			Epoch: 1772366400000, Events: map[string]uint64{api.EventRegistered: 1, api.EventEvicted: 1}, Registrations: map[string]uint64{api.OutcomeAccepted: 2, "table_full": 1},
			Workers: []api.Worker{
				{Worker: 0, CPU: 2, Seconds: 3725, Busy: 465.6, Asleep: 2980, Paused: 0.012, Batches: 210, Packets: 1640, Groups: 1, Handoff: api.Ring{Used: 1, Size: 2048}},
				{Worker: 1, CPU: -1, Seconds: 3725, Busy: 1.5, Asleep: 3720, Batches: 7, Packets: 7, Groups: 1, Handoff: api.Ring{Size: 2048}},
			},
			Queues: api.Queues{Renewals: api.Ring{Size: 128}, Requests: api.Ring{Used: 2, Size: 256}, Relays: api.Ring{Size: 256}},
			Times: api.Times{
				Registration: api.Histogram{Bounds: []float64{0.001, 0.01}, Counts: []uint64{1, 1, 0}, Sum: 0.0032},
				Install:      api.Histogram{Bounds: []float64{0.00001, 0.001}, Counts: []uint64{0, 2, 0}, Sum: 0.0004},
				Stored:       api.Histogram{Bounds: []float64{0.00001, 0.001}, Counts: []uint64{1, 3, 1}, Sum: 0.012},
				ACK:          api.Histogram{Bounds: []float64{0.00001, 0.001}, Counts: []uint64{3, 100, 2}, Sum: 0.061},
				Stall:        api.Histogram{Bounds: []float64{1, 10}, Counts: []uint64{0, 1, 0}, Sum: 2.5},
			},
			Control: api.Control{Iterations: 5120, LongestIteration: 0.00125, Lookups: 96, Hosts: 3, Resyncs: 1, NotWatched: []string{"links"}, State: &api.StateFile{Writes: 41, Errors: 2, Waiting: true, Failing: "state file /var/lib/gleam/groups cannot be written: no space left on device"}},
			Normal:  map[string]uint64{"feedback_stale": 40, "duplicate_data": 3}, Drops: map[string]uint64{"unknown_group": 2},
		},
	}
}
