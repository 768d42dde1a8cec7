// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// The catalog has a row for each metric, in the order of docs/METRICS.md: its name, its meaning, how
// it is read, and its labels beside those of its subject.
func init() {
	begin("Switch", "Totals of the whole switch.")

	samples.gauge("build_info", "1, with gleamd's version, the commit of its source and the version of Go.", func(a adder, s *sample) {
		a.put(1, s.config.Version.Version, s.config.Version.Commit, s.config.Version.Go)
	}, "version", "commit", "goversion")
	samples.gauge("start_time_seconds", "When gleamd started, in seconds since 1970.", func(a adder, s *sample) { a.put(float64(s.config.Version.Started.UnixMilli()) / 1000) })
	totals.gauge("restart_epoch", "A number that is another one, and higher, after each start of gleamd.", func(a adder, s *api.Stats) { a.count(s.Epoch) })
	samples.gauge("sample_failed", "1 if the switch did not answer: other metrics are missing then.", func(a adder, s *sample) { a.flag(s.err != nil) })
	totals.gauge("groups", "Registered groups.", func(a adder, s *api.Stats) { a.put(float64(s.Groups)) })
	answers.gauge("group_series_limit", "The most groups that have metrics of their own (metrics.groups in the configuration).", func(a adder, s *sample) { a.put(float64(s.config.Groups)) })
	answers.gauge("groups_left_out", "Groups without metrics of their own: more are registered than the limit.", func(a adder, s *sample) { a.put(float64(s.leftOut)) })
	totals.counter("data_received_packets_total", "Data packets of sources.", func(a adder, s *api.Stats) { a.count(s.Rx) })
	totals.counter("data_received_bytes_total", "Payload of the data packets that were forwarded.", func(a adder, s *api.Stats) { a.count(s.RxBytes) })
	totals.counter("copies_sent_total", "Copies of data packets, to receivers or neighbour switches.", func(a adder, s *api.Stats) { a.count(s.Copies) })
	totals.counter("copies_resent_total", "Copies from packet memory, of those sent: repairs, and packets that were held.", func(a adder, s *api.Stats) { a.count(s.Resent) })
	totals.counter("copies_ce_marked_total", "Copies that got Congestion Experienced at an egress queue here.", func(a adder, s *api.Stats) { a.count(s.CEMarked) })
	totals.counter("feedback_received_total", "ACK, NAK, RNR NAK and CNP packets of receivers.", func(a adder, s *api.Stats) { a.count(s.FeedbackIn) })
	totals.counter("feedback_sent_total", "Feedback packets to sources.", func(a adder, s *api.Stats) { a.count(s.FeedbackOut) })
	totals.counter("psn_probes_sent_total", "Probes of receivers' packet numbers.", func(a adder, s *api.Stats) { a.count(s.PSNProbes) })
	totals.counter("neighbour_answers_total", "ARP, neighbour discovery and echo answers, and announcements.", func(a adder, s *api.Stats) { a.count(s.Neighbour) })
	totals.counter("envelopes_received_total", "Envelopes that were passed to the control plane.", func(a adder, s *api.Stats) { a.count(s.EnvelopeIn) })
	totals.counter("envelopes_sent_total", "Envelopes sent.", func(a adder, s *api.Stats) { a.count(s.EnvelopeOut) })
	answers.counter("dropped_packets_total", "Packets that were lost here, or come from a mistake or an attack, by reason (docs/COUNTERS.md).", func(a adder, s *sample) { a.each(s.stats.Drops, s.config.Drops) }, "reason")
	answers.counter("unneeded_packets_total", "Packets that the protocol has no further use for, as on any healthy switch, by reason (docs/COUNTERS.md).", func(a adder, s *sample) { a.each(s.stats.Normal, s.config.Unneeded) }, "reason")
	totals.gauge("umem_frames", "Frames of packet memory.", func(a adder, s *api.Stats) { a.put(float64(s.Frames)) })
	totals.gauge("umem_frames_free", "Frames of packet memory that are free.", func(a adder, s *api.Stats) { a.put(float64(s.FramesFree)) })
	totals.counter("events_total", "Events of groups, members, neighbours and users, by kind (`gleam events`).", func(a adder, s *api.Stats) { a.each(s.Events, api.EventKinds) }, "kind")
	totals.counter("registrations_total", "Registrations and updates of groups, by outcome: accepted, unchanged, or the reason of the rejection.", func(a adder, s *api.Stats) {
		a.each(s.Registrations, []string{api.OutcomeAccepted, api.OutcomeUnchanged})
	}, "outcome")
	totals.counter("moves_total", "Members that were seen elsewhere, by outcome: confirmed, or unconfirmed.", func(a adder, s *api.Stats) {
		a.each(map[string]uint64{"confirmed": s.Moves.Confirmed, "unconfirmed": s.Moves.Unconfirmed}, nil)
	}, "outcome")

	begin("Times", "Histograms, of all groups together. Buckets have fixed bounds.")

	totals.histogram("registration_duration_seconds", "Time from a registration's first message, or the operator's request, until the group is installed.", func(a adder, s *api.Stats) { a.histogram(&s.Times.Registration) })
	totals.histogram("registration_install_seconds", "Part of the time of a registration in which the group is set up at its worker.", func(a adder, s *api.Stats) { a.histogram(&s.Times.Install) })
	totals.histogram("answer_stored_seconds", "Time from an answer to a host or a switch that promises something until it leaves, which is when the state file has it.", func(a adder, s *api.Stats) { a.histogram(&s.Times.Stored) })
	totals.histogram("ack_delay_seconds", "Time from a packet's way out to the receivers until the source is sent the group's ACK of it. One packet of each group at a time is measured.", func(a adder, s *api.Stats) { a.histogram(&s.Times.ACK) })
	totals.histogram("stall_duration_seconds", "Time for which a group's ACK did not advance although packets were outstanding, if it was a second or more. It is counted when the stall ends.", func(a adder, s *api.Stats) { a.histogram(&s.Times.Stall) })

	begin("Workers and control loop", "What is neither busy nor asleep of a worker's time is spent polling for packets.")

	workers.counter("worker_run_seconds_total", "Time since the worker started.", func(a adder, w *api.Worker) { a.put(w.Seconds) })
	workers.counter("worker_busy_seconds_total", "Time in batches with packets, or with work of the control plane. Its rate is the busy share.", func(a adder, w *api.Worker) { a.put(w.Busy) })
	workers.counter("worker_asleep_seconds_total", "Time asleep.", func(a adder, w *api.Worker) { a.put(w.Asleep) })
	workers.counter("worker_paused_seconds_total", "Time for which the worker was due and did not run: other programs had its CPU.", func(a adder, w *api.Worker) { a.put(w.Paused) })
	workers.counter("worker_batches_total", "Batches with packets.", func(a adder, w *api.Worker) { a.count(w.Batches) })
	workers.counter("worker_packets_total", "Packets in these batches.", func(a adder, w *api.Worker) { a.count(w.Packets) })
	workers.gauge("worker_groups", "Groups that belong to the worker.", func(a adder, w *api.Worker) { a.put(float64(w.Groups)) })
	workers.gauge("worker_handoff_entries", "Packets from other workers that wait for this one.", func(a adder, w *api.Worker) { a.put(float64(w.Handoff.Used)) })
	workers.gauge("worker_handoff_size", "Entries of the rings of these packets.", func(a adder, w *api.Worker) { a.put(float64(w.Handoff.Size)) })
	queues.gauge("control_queue_entries", "Envelopes that wait for the control loop, by queue: renewals, requests, relays.", func(a adder, r *api.Ring) { a.put(float64(r.Used)) })
	queues.gauge("control_queue_size", "Entries of the queue.", func(a adder, r *api.Ring) { a.put(float64(r.Size)) })
	totals.counter("control_iterations_total", "Iterations of the control loop.", func(a adder, s *api.Stats) { a.count(s.Control.Iterations) })
	totals.gauge("control_longest_iteration_seconds", "The longest iteration so far.", func(a adder, s *api.Stats) { a.put(s.Control.LongestIteration) })
	totals.counter("control_lookups_total", "Lookups of members' locations and ports in the kernel.", func(a adder, s *api.Stats) { a.count(s.Control.Lookups) })
	totals.gauge("control_hosts", "Hosts whose locations are known, or being looked up.", func(a adder, s *api.Stats) { a.put(float64(s.Control.Hosts)) })
	totals.counter("control_resyncs_total", "Times that netlink messages were lost, so that everything was looked up again.", func(a adder, s *api.Stats) { a.count(s.Control.Resyncs) })
	stateFiles.counter("state_file_writes_total", "Writes of the state file; only with the key `state`.", func(a adder, f *api.StateFile) { a.count(f.Writes) })
	stateFiles.counter("state_file_errors_total", "Writes of the state file that have failed.", func(a adder, f *api.StateFile) { a.count(f.Errors) })
	stateFiles.gauge("state_file_failing", "1 if the last write has failed: no members are taken, and what waits for the file is not answered.", func(a adder, f *api.StateFile) { a.flag(f.Failing != "") })

	begin("Ports", "")

	ports.gauge("port_info", "1, with what the port is: its driver, the mode of its XDP program (native or generic), and of AF_XDP (copy or zero-copy).", func(a adder, p *api.Port) { a.put(1, p.Driver, p.XDPMode, copyMode(p)) }, "driver", "xdp", "af_xdp")
	ports.gauge("port_up", "1 if the port can send: its interface exists, is up, and has carrier.", func(a adder, p *api.Port) { a.flag(p.Up) })
	ports.gauge("port_blocked", "1 if the port is not up for its bridge alone, which forwards nothing there (spanning tree).", func(a adder, p *api.Port) { a.flag(p.Blocked) })
	ports.gauge("port_unheard", "1 if the port is attached, and its frames do not come to gleamd.", func(a adder, p *api.Port) { a.flag(p.Unheard != "") })
	ports.counter("port_down_total", "Times that the port went down.", func(a adder, p *api.Port) { a.count(p.Downs) })
	ports.counter("port_reopened_total", "Times that the port was taken up again at an interface made anew.", func(a adder, p *api.Port) { a.count(p.Reopened) })
	ports.counter("port_received_frames_total", "Frames taken from AF_XDP.", func(a adder, p *api.Port) { a.count(p.RxFrames) })
	ports.counter("port_received_bytes_total", "Their bytes on an Ethernet link.", func(a adder, p *api.Port) { a.count(p.RxBytes) })
	ports.counter("port_sent_frames_total", "Frames handed to the kernel.", func(a adder, p *api.Port) { a.count(p.TxFrames) })
	ports.counter("port_sent_bytes_total", "Their bytes on an Ethernet link.", func(a adder, p *api.Port) { a.count(p.TxBytes) })
	ports.counter("port_xdp_exits_total", "Frames that left the XDP program, by the reason (docs/COUNTERS.md).", func(a adder, p *api.Port) { a.each(p.XDP, nil) }, "reason")
	fastPorts.counter("port_fast_path_sent_total", "Copies of XDP that the driver took; only with fast_path.", func(a adder, f *api.PortFastPath) { a.count(f.Sent) })
	fastPorts.counter("port_fast_path_lost_total", "Copies of XDP that the driver did not take; only with fast_path.", func(a adder, f *api.PortFastPath) { a.count(f.Lost) })
	ports.gauge("port_egress_bytes", "Bytes that wait to leave, with those that the kernel has yet to send.", func(a adder, p *api.Port) { a.put(float64(p.Egress.Bytes)) })
	ports.gauge("port_egress_frames", "Frames that wait to leave.", func(a adder, p *api.Port) { a.put(float64(p.Egress.Frames)) })
	ports.gauge("port_egress_limit_bytes", "The most bytes that may wait.", func(a adder, p *api.Port) { a.put(float64(p.Egress.MaxBytes)) })
	ports.gauge("port_egress_highest_bytes", "The most bytes that have waited.", func(a adder, p *api.Port) { a.put(float64(p.Egress.MaxDepthBytes)) })
	ports.counter("port_egress_dropped_total", "Copies and answers that found no room.", func(a adder, p *api.Port) { a.count(p.Egress.Dropped) })
	ports.counter("port_egress_deferred_total", "Times that copies were left in a repair store for want of room.", func(a adder, p *api.Port) { a.count(p.Egress.Deferred) })
	ports.counter("port_egress_ce_marked_total", "Copies that got Congestion Experienced.", func(a adder, p *api.Port) { a.count(p.Egress.CEMarked) })
	ports.gauge("port_rate_bytes_per_second", "The rate that group frames leave at, on an Ethernet link; absent without a limit.", func(a adder, p *api.Port) {
		if p.Rate > 0 {
			a.put(float64(p.Rate) / 8)
		}
	})

	devices.counter("device_received_packets_total", "All packets that the interface received, by the kernel's count.", func(a adder, d *api.DeviceCounters) { a.count(d.RXPackets) })
	devices.counter("device_sent_packets_total", "All packets that the interface sent.", func(a adder, d *api.DeviceCounters) { a.count(d.TXPackets) })
	devices.counter("device_received_bytes_total", "Their bytes.", func(a adder, d *api.DeviceCounters) { a.count(d.RXBytes) })
	devices.counter("device_sent_bytes_total", "Their bytes.", func(a adder, d *api.DeviceCounters) { a.count(d.TXBytes) })
	devices.counter("device_errors_total", "Errors of the interface, by direction: receive or send.", func(a adder, d *api.DeviceCounters) {
		a.each(map[string]uint64{"receive": d.RXErrors, "send": d.TXErrors}, nil)
	}, "direction")
	devices.counter("device_dropped_packets_total", "Packets that the kernel or the driver dropped, by direction: receive or send.", func(a adder, d *api.DeviceCounters) {
		a.each(map[string]uint64{"receive": d.RXDropped, "send": d.TXDropped}, nil)
	}, "direction")
	devices.counter("device_missed_packets_total", "Packets for which the NIC had no buffer.", func(a adder, d *api.DeviceCounters) { a.count(d.RXMissed) })
	devices.counter("device_overruns_total", "Receive overruns.", func(a adder, d *api.DeviceCounters) { a.count(d.RXOverruns) })

	begin("AF_XDP sockets", "Each port has one for each of its receive queues. They begin at 0 again when the interface is made anew.")

	rings.gauge("socket_ring_entries", "Entries of a ring in use, by ring: rx, fill, tx, completion.", func(a adder, r *api.Ring) { a.put(float64(r.Used)) })
	rings.gauge("socket_ring_size", "Entries of the ring.", func(a adder, r *api.Ring) { a.put(float64(r.Size)) })
	sockets.counter("socket_dropped_packets_total", "Packets that the kernel lost at the socket (XDP_STATISTICS), by reason: rx_ring_full, the worker was late; fill_ring_empty, there was no frame to receive into; other, too long for a frame, or another reason.", func(a adder, k *api.Socket) {
		a.each(map[string]uint64{"rx_ring_full": k.Kernel.RXRingFull, "fill_ring_empty": k.Kernel.FillEmpty, "other": k.Kernel.RXDropped}, nil)
	}, "reason")
	sockets.counter("socket_invalid_descriptors_total", "Entries of a ring that the kernel refused: a mistake in gleamd.", func(a adder, k *api.Socket) {
		a.each(map[string]uint64{"fill": k.Kernel.RXInvalid, "tx": k.Kernel.TXInvalid}, nil)
	}, "ring")
	sockets.counter("socket_tx_ring_empty_total", "Times that the kernel looked for a packet to send, and found none.", func(a adder, k *api.Socket) { a.count(k.Kernel.TXRingEmpty) })

	begin("Groups", "Of `metrics.groups` groups at most: those that stall first, then those with most traffic. Counters begin at 0 when a group is registered.")

	groups.gauge("group_info", "1, with the group's policy, its origin (envelope, rdma-cm or api), its master's address and its worker.", func(a adder, g *api.Group) { a.put(1, g.Policy, g.Origin, g.Master, strconv.Itoa(g.Worker)) }, "policy", "origin", "master", "worker")
	groups.gauge("group_state", "1 for the state that the group is in, else 0: idle, running, failed.", func(a adder, g *api.Group) {
		for _, state := range [...]string{"idle", "running", "failed"} {
			a.flag(g.State == state, state)
		}
	}, "state")
	groups.counter("group_data_received_packets_total", "Data packets of its sources.", func(a adder, g *api.Group) { a.count(g.Counters.DataIn) })
	groups.counter("group_data_repeated_packets_total", "Packets that its sources have sent again, of the data packets.", func(a adder, g *api.Group) { a.count(g.Counters.Repeated) })
	groups.counter("group_data_received_bytes_total", "Payload of the data packets that were forwarded.", func(a adder, g *api.Group) { a.count(g.Counters.DataBytes) })
	groups.counter("group_payload_bytes_total", "Payload without repetitions of the sources: its rate is the goodput.", func(a adder, g *api.Group) { a.count(g.Counters.GoodBytes) })
	groups.counter("group_copies_sent_total", "Copies.", func(a adder, g *api.Group) { a.count(g.Counters.Copies) })
	groups.counter("group_feedback_received_total", "ACK, NAK, RNR NAK and CNP packets of its receivers.", func(a adder, g *api.Group) { a.count(g.Counters.FeedbackIn) })
	groups.counter("group_feedback_sent_total", "Feedback packets to its sources.", func(a adder, g *api.Group) { a.count(g.Counters.FeedbackOut) })
	repairs.counter("group_repair_copies_total", "Copies that repaired losses; only with local repair.", func(a adder, r *api.Repair) { a.count(r.Copies) })
	repairs.counter("group_repair_naks_total", "NAKs and RNR NAKs withheld from the source; only with local repair.", func(a adder, r *api.Repair) { a.count(r.NAKs) })
	repairs.counter("group_probes_sent_total", "Probes to silent receivers; only with local repair.", func(a adder, r *api.Repair) { a.count(r.Probes) })
	repairs.counter("group_not_retained_packets_total", "Packets for which packet memory had no room; only with local repair.", func(a adder, r *api.Repair) { a.count(r.NotRetained) })
	repairs.gauge("group_retained_bytes", "Packet memory that has unacknowledged data; only with local repair.", func(a adder, r *api.Repair) { a.put(float64(r.Bytes)) })
	groups.counter("group_dropped_packets_total", "As gleam_dropped_packets_total, as far as the group's state was the reason.", func(a adder, g *api.Group) { a.each(g.Drops, nil) }, "reason")
	groups.gauge("group_members", "Members.", func(a adder, g *api.Group) { a.put(float64(len(g.Members))) })
	groups.gauge("group_live_members", "Members that have not left, and were not evicted.", func(a adder, g *api.Group) {
		live, _ := liveMembers(g)
		a.put(float64(live))
	})
	groups.gauge("group_unacknowledged_packets", "Packets that were forwarded and are not acknowledged.", func(a adder, g *api.Group) { a.put(float64(g.Unacknowledged())) })
	groups.gauge("group_highest_lag_packets", "Packets by which the last live member is behind.", func(a adder, g *api.Group) {
		_, lag := liveMembers(g)
		a.put(float64(lag))
	})
	groups.gauge("group_stalled_seconds", "Time for which its ACK has not advanced although packets are outstanding; 0 below a second.", func(a adder, g *api.Group) { a.put(g.StallSeconds) })
	groups.gauge("group_waits_for", "1, with the member whose ACK the group waits for, and its port; absent if it waits for none.", func(a adder, g *api.Group) {
		if g.WaitsFor.IsValid() && g.Unacknowledged() > 0 {
			a.put(1, g.WaitsFor.String(), watch.PortOf(g, g.WaitsFor))
		}
	}, "member", "port")
	groups.gauge("group_slowed_by", "1, with the member that costs the group most time now, and the cause: loss, not ready (RNR), no answer, slow link, path. Absent if there is none.", func(a adder, g *api.Group) {
		if g.SlowedBy.IsValid() {
			a.put(1, g.SlowedBy.String(), watch.PortOf(g, g.SlowedBy), g.SlowCause)
		}
	}, "member", "port", "cause")
	groups.gauge("group_fast_path", "1 if XDP programs replicate its data; only with fast_path.", func(a adder, g *api.Group) {
		if f := g.FastPath; f != nil {
			a.flag(f.Way == api.WayFast)
		}
	})

	begin("Members", "What receivers cost their groups, of 16 members of each group with series at most: those that slow it down first, then those that it has waited for longest. Members behind one neighbour switch have one series, under the address of one of them.")

	groups.gauge("group_members_left_out", "Receivers of the group without series of their own.", func(a adder, g *api.Group) {
		_, leftOut := watch.Costliest(g, memberSeries)
		a.put(float64(leftOut))
	})
	members.gauge("member_slow", "1, with a member that costs its group time now, and the cause: loss, not ready (RNR), no answer, slow link, path. Absent for the others.", func(a adder, m *api.Member) {
		if m.Slow != "" {
			a.put(1, m.Port, m.Slow)
		}
	}, "port", "cause")
	members.counter("member_waited_seconds_total", "Time for which the group's ACK waited for the member beyond the others.", func(a adder, m *api.Member) { a.put(m.Cost.Waited) })
	members.counter("member_naks_total", "Sequence NAKs that it has sent: packets to it were lost.", func(a adder, m *api.Member) { a.count(m.Cost.NAKs) })
	members.counter("member_rnr_naks_total", "RNR NAKs that it has sent: it had no receive posted.", func(a adder, m *api.Member) { a.count(m.Cost.RNRNAKs) })
	members.counter("member_repaired_packets_total", "Packets that were sent to it again from packet memory.", func(a adder, m *api.Member) { a.count(m.Cost.Repaired) })
	members.counter("member_probes_total", "Probes to it after its acknowledgement was overdue.", func(a adder, m *api.Member) { a.count(m.Cost.Probes) })
	members.gauge("member_round_trip_median_seconds", "Round trip from a packet's way out until its acknowledgement: the median. Absent until it is measured.", func(a adder, m *api.Member) {
		if m.Cost.RTTp50 > 0 {
			a.put(m.Cost.RTTp50)
		}
	})
	members.gauge("member_round_trip_p99_seconds", "The round trip that one of a hundred exceeds.", func(a adder, m *api.Member) {
		if m.Cost.RTTp50 > 0 {
			a.put(m.Cost.RTTp99)
		}
	})
	members.gauge("member_lag_packets", "Packets by which it is behind.", func(a adder, m *api.Member) { a.put(float64(m.Lag)) })
}
