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
	paths   []rocev2.Path
}

// openReceivers opens the receivers, where ACKs are read; elsewhere there are none.
func (s *testbed) openReceivers() (*receivers, error) {
	r := &receivers{testbed: s}
	if !s.method.feedback {
		return r, nil
	}
	for i := 1; i <= s.benchCase.legs; i++ {
		path, err := s.ackPath(i)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		t, err := openSender(s.star.Hosts[i])
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.sockets, r.paths = append(r.sockets, t), append(r.paths, path)
	}
	return r, nil
}

func (r *receivers) close() (err error) {
	for _, t := range r.sockets {
		err = errors.Join(err, t.Close())
	}
	return err
}

// acknowledge has every receiver acknowledge its last PSN.
func (r *receivers) acknowledge() error {
	for k, t := range r.sockets {
		last, err := lastAt(r.testbed.sinks.arrived, k+1)
		if err != nil {
			return err
		}
		if last == psnNone {
			continue
		}
		ack, err := buildAck(&r.paths[k], rocev2.PSN(last))
		if err != nil {
			return err
		}
		if err := t.send(ack); err != nil {
			return err
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

// ackPath is the path of acknowledgements of host i.
func (s *testbed) ackPath(i int) (rocev2.Path, error) {
	mac, err := s.portMAC(i)
	h := s.star.Hosts[i]
	return rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: mac, Src: h.IPv4, Dst: groupIP, SrcPort: 0xC001}, err
}

// buildAck builds an acknowledgement.
func buildAck(path *rocev2.Path, psn rocev2.PSN) ([]byte, error) {
	return build(path, &rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, PSN: psn, Syndrome: rocev2.SyndromeACK}, nil)
}
