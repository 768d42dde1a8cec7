// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// number is an environment variable, or what it is without.
func number(t *testing.T, name string, without uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return without
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// storm is a device with writers, and what happens to it.
type storm struct {
	*Device
	t      *testing.T
	m      *model
	r      *rand.Rand
	client atomic.Pointer[Client]
	failed chan error // errors of the writers
}

// Replicas, links, the switch and the gateway are killed in random order, and come back, while writers write: what
// the device holds is what was acknowledged, and in the end all replicas hold the same.
func TestKills(t *testing.T) {
	kills := int(number(t, "GLEAM_KILLS", 3))
	seed := number(t, "GLEAM_SEED", uint64(time.Now().UnixNano()))
	for _, c := range []struct {
		name string
		Config
	}{
		{"memory", Config{Replicas: 3}},
		{"files", Config{Replicas: 3, Files: true}},
		{"slow", Config{Replicas: 3, Replica: []string{"-slow", "3ms"}}}, // so that what is received is not applied at once
		{"quorum", Config{Replicas: 3, Gateway: []string{"-quorum", "2"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Logf("GLEAM_SEED=%d", seed)
			s := &storm{Device: start(t, c.Config), t: t, r: rand.New(rand.NewPCG(seed, 1)), failed: make(chan error, workers)}
			s.dial()
			s.m = newModel(s.client.Load().Size)
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for w := range workers {
				writers.Go(func() {
					if err := s.m.work(w, seed, s.client.Load, stop); err != nil {
						s.failed <- err
					}
				})
			}
			for i := range kills {
				s.kill(i+1, c.Files, c.name == "quorum")
			}
			close(stop)
			writers.Wait()
			ok(t, s.lost())
			s.compare()
			t.Logf("%d kills: %d writes acknowledged, %d not, %d reads compared, the longest write took %v",
				kills, s.m.writes.Load(), s.m.unclear.Load(), s.m.reads.Load(), time.Duration(s.m.longest.Load()).Round(time.Millisecond))
			if s.m.writes.Load() < int64(kills) || s.m.reads.Load() == 0 {
				t.Error("the writers did next to nothing")
			}
		})
	}
}

func (s *storm) dial() {
	n, err := Dial(s.Socket)
	ok(s.t, err)
	if old := s.client.Swap(n); old != nil {
		_ = old.Close()
	}
}

// lost returns what a writer has found that the device must not hold.
func (s *storm) lost() error {
	select {
	case err := <-s.failed:
		return err
	default:
		return nil
	}
}

func (s *storm) doze(most time.Duration) { time.Sleep(time.Duration(s.r.Int64N(int64(most)))) }

// kill has one thing happen, or two, and waits until all are well again.
func (s *storm) kill(number int, files, quorum bool) {
	ctx := context.Background()
	i := 1 + s.r.IntN(3)
	h := s.Bed.Star.Hosts[i]
	what := s.r.IntN(10)
	began := time.Now()
	var text string
	switch {
	case what < 3:
		text = fmt.Sprintf("replica %d is killed", i)
		ok(s.t, s.KillReplica(i))
		s.doze(400 * time.Millisecond)
		if j := 1 + i%3; s.r.IntN(3) == 0 && !quorum {
			text += fmt.Sprintf(", and %d", j)
			ok(s.t, s.KillReplica(j))
			s.doze(400 * time.Millisecond)
			ok(s.t, s.StartReplica(j))
		}
		ok(s.t, s.StartReplica(i))
	case what == 3:
		text = fmt.Sprintf("replica %d stands still", i)
		ok(s.t, s.Replica(i).Signal(unix.SIGSTOP))
		s.doze(3 * time.Second)
		ok(s.t, s.Replica(i).Signal(unix.SIGCONT))
	case what == 4:
		text = fmt.Sprintf("the link of replica %d is down", i)
		ok(s.t, h.NS.SetDown(h.Interface))
		s.doze(3 * time.Second)
		ok(s.t, h.NS.SetUp(h.Interface))
	case what == 5:
		text = fmt.Sprintf("replica %d is killed while it is brought up to date", i)
		ok(s.t, s.KillReplica(i))
		ok(s.t, s.StartReplica(i))
		s.doze(800 * time.Millisecond)
		ok(s.t, s.KillReplica(i))
		ok(s.t, s.StartReplica(i))
	case what == 6:
		text = "the switch is killed"
		ok(s.t, s.Bed.Gleamd.Kill())
		s.doze(time.Second)
		ok(s.t, s.Bed.Gleamd.Start(ctx))
	case what == 7 && files:
		text = "all replicas are killed"
		for j := range 3 {
			ok(s.t, s.KillReplica(j+1))
			s.doze(20 * time.Millisecond)
		}
		for j := range 3 {
			ok(s.t, s.StartReplica(j+1))
		}
	case what == 7:
		text = "the switch is killed, and a replica"
		ok(s.t, s.Bed.Gleamd.Kill())
		ok(s.t, s.KillReplica(i))
		ok(s.t, s.Bed.Gleamd.Start(ctx))
		ok(s.t, s.StartReplica(i))
	default:
		text = "the gateway is killed"
		ok(s.t, s.Gateway().Signal(unix.SIGKILL))
		<-s.Gateway().Done()
		if files && s.r.IntN(2) == 0 {
			text += fmt.Sprintf(", and replica %d", i)
			ok(s.t, s.KillReplica(i))
			ok(s.t, s.StartReplica(i))
		}
		ok(s.t, s.StartGateway(ctx))
		s.dial()
	}
	// All writers get on, and all replicas have all.
	if err := s.AwaitCurrent(ctx); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	n := s.m.writes.Load()
	if err := Await(ctx, "writes to go on", func() (bool, error) { return s.m.writes.Load() > n+workers, s.lost() }); err != nil {
		s.t.Fatalf("kill %d, %s: %v", number, text, err)
	}
	s.t.Logf("%s; all is well after %v", text, time.Since(began).Round(time.Millisecond))
	s.doze(200 * time.Millisecond)
}

// compare compares the device with the model, and the replicas with each other.
func (s *storm) compare() {
	s.t.Helper()
	n := s.client.Load()
	ok(s.t, n.Do(Flush, 0, 0, 0, nil))
	all := make([]byte, n.Size)
	ok(s.t, n.Do(Read, 0, 0, len(all), all))
	if err := s.m.check(0, all); err != nil {
		s.t.Error(err)
	}
	for i := 1; i <= s.cfg.Replicas; i++ {
		f, err := s.Bytes(i)
		ok(s.t, err)
		b := make([]byte, n.Size)
		_, err = io.ReadFull(f, b)
		ok(s.t, err)
		_ = f.Close()
		for at := 0; at < len(b); at += sector {
			if !bytes.Equal(b[at:at+sector], all[at:at+sector]) {
				s.t.Errorf("replica %d differs in sector %d", i, at/sector)
				break
			}
		}
	}
}
