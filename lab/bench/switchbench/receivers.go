// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"

	"github.com/gleam-rdma/gleam/rocev2"
)

// receivers acknowledge data from user space, each by a socket that stays open: to close a packet
// socket takes some 30 ms, since the kernel waits for an RCU grace period.
type receivers struct {
	testbed *testbed
	sockets []*packetTap
	paths   [][]rocev2.Path // paths by socket and group
}

// openReceivers opens the receivers, where ACKs are read; elsewhere there are none.
func (s *testbed) openReceivers() (*receivers, error) {
	r := &receivers{testbed: s}
	if !s.method.feedback {
		return r, nil
	}
	for i := 1; i <= s.benchCase.legs; i++ {
		var paths []rocev2.Path
		for k := range s.groups() {
			path, err := s.ackPath(i, k)
			if err != nil {
				return nil, errors.Join(err, r.close())
			}
			paths = append(paths, path)
		}
		t, err := openSender(s.star.Hosts[i])
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.sockets, r.paths = append(r.sockets, t), append(r.paths, paths)
	}
	return r, nil
}

func (r *receivers) close() (err error) {
	for _, t := range r.sockets {
		err = errors.Join(err, t.Close())
	}
	return err
}

// acknowledge has every receiver acknowledge its last PSN of each group.
func (r *receivers) acknowledge() error {
	for i, t := range r.sockets {
		for k := range r.paths[i] {
			last, err := lastAt(r.testbed.sinks.arrived, sinkIndex(i+1, k))
			if err != nil {
				return err
			}
			if last == psnNone {
				continue
			}
			ack, err := buildAck(&r.paths[i][k], rocev2.PSN(last))
			if err != nil {
				return err
			}
			if err := t.send(ack); err != nil {
				return err
			}
		}
	}
	return nil
}

// acknowledgeAll has every receiver acknowledge its last PSN, where ACKs are read: no packet is
// unacknowledged between two runs.
func (s *testbed) acknowledgeAll() error {
	r, err := s.openReceivers()
	if err != nil {
		return err
	}
	return errors.Join(r.acknowledge(), r.close())
}

// ackPath is the path of acknowledgements of host i in a group.
func (s *testbed) ackPath(i, group int) (rocev2.Path, error) {
	mac, err := s.portMAC(i)
	h := s.star.Hosts[i]
	return rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: mac, Src: h.IPv4, Dst: groupAt(group), SrcPort: 0xC001}, err
}

// buildAck builds an acknowledgement.
func buildAck(path *rocev2.Path, psn rocev2.PSN) ([]byte, error) {
	return build(path, &rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, PSN: psn, Syndrome: rocev2.SyndromeACK}, nil)
}
