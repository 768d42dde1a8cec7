// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// gleamdWith runs gleamd with that number of workers: the first on the CPU for the
// method's own thread, the others on any CPU. With one group the workers share
// the ports alone: each transmits for its own.
func gleamdWith(workers int) func(*testbed) error {
	return func(s *testbed) error {
		cpus := fmt.Sprint(s.cpu)
		if workers > 1 {
			cpus = "[" + cpus + strings.Repeat(", -1", workers-1) + "]"
		}
		return openGleamd(s, "fast_path: off\nworker: {cpu: "+cpus+"}\n")
	}
}

// openFastGleamd runs gleamd with one worker and the fast path.
func openFastGleamd(s *testbed) error {
	return openGleamd(s, fmt.Sprintf("worker: {cpu: %d}\nfast_path: require\n", s.cpu))
}

// openGleamd runs gleamd's engine in the switch's namespace, with its default
// configuration but for the given keys, and registers the groups.
func openGleamd(s *testbed, keys string) error {
	// The receivers of the benchmark are no queue pairs: they answer no probe.
	text := s.star.Config() + "envelope: {insecure: true}\npsn_probe: 0s\n" + keys
	cfg, err := config.Parse("benchmark", []byte(text))
	if err != nil {
		return err
	}
	warnings := make(chan string, 16)
	notify := func(warn bool, msg string, kv ...any) {
		if warn {
			select {
			case warnings <- fmt.Sprint(msg, " ", kv):
			default:
			}
		}
	}
	e, err := lab.In(s.star.Switch, func() (*control.Engine, error) { return control.Open(cfg, notify) })
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.star.Switch.Do(func() error { return e.Run(ctx) }) }()
	s.onClose(func() error {
		stop()
		return errors.Join(<-ended, e.Close())
	})
	s.engine = e
	register := func(next rocev2.PSN) error {
		for k := range s.groups() {
			if err := e.Register(registration(s, k, next)); err != nil {
				return err
			}
		}
		return nil
	}
	err = register(0)
	// The generator sends no packet twice. A real source would resend a packet that the
	// switch never had: without that a receiver whose cursor is there gets no more.
	s.renew = func() error {
		next, err := s.gen.next()
		if err != nil {
			return err
		}
		if err := register(next); err != nil {
			return err
		}
		for k := range s.groups() { // the windows begin there
			if err := s.sinks.setLast(sinkIndex(0, k), lastValue{PSN: uint32(next.Prev())}); err != nil {
				return err
			}
		}
		return nil
	}
	s.fast = func() (n uint64, err error) {
		ports, err := e.Ports()
		for i := range ports {
			n += ports[i].XDP[bpf.FastRoCEv2.String()]
		}
		return n, err
	}
	for len(warnings) > 0 {
		s.notes = append(s.notes, <-warnings)
	}
	if err != nil && s.benchCase.jumbo() {
		return &unservableError{err.Error()} // this gleamd takes one buffer per frame only
	}
	return err
}

// unservableError is the reason for which a method cannot serve a case.
type unservableError struct{ reason string }

func (e *unservableError) Error() string { return e.reason }

// registration is that of group k, whose source sends next.
func registration(s *testbed, k int, next rocev2.PSN) *api.Register {
	r := &api.Register{Group: groupAt(k), QPN: api.QPN(virtualQPN), PMTU: 256, Policy: api.PolicyStrict, Replace: true}
	for r.PMTU < s.benchCase.payload {
		r.PMTU *= 2
	}
	for i, h := range s.star.Hosts {
		r.Members = append(r.Members, api.RegisterMember{
			IP: h.IPv4, QPN: api.QPN(memberQPN) + api.QPN(i+k*groupQPNs), SQPSN: api.PSN(next), RQPSN: api.PSN(next.Add(int32(rqPSN * i))),
		})
	}
	return r
}
