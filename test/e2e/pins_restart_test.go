// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Members of a group that outlives a restart of gleamd are pinned afterwards as before, and a
// stranger's gratuitous ARP moves none of them.
func TestPinsAfterRestart(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			d := newDaemon(t, 4)
			state := filepath.Join(d.dir, "state")
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(d.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			config := d.config + "state: " + state + "\n"
			reg := &api.Register{Group: group4, QPN: virtualQPN, PMTU: 1024, Policy: "strict"}
			for i, h := range d.star.Hosts[:3] {
				reg.Members = append(reg.Members, api.RegisterMember{IP: h.IPv4, QPN: api.QPN(0x100 + i)})
			}
			const all = "3 learnt, 3 neighbours"
			p := d.start(t, config, nil)
			client := d.ready(t, p)
			if err := client.Register(t.Context(), reg); err != nil {
				t.Fatalf("%v\n%s", err, p.Output())
			}
			until(t, all, func() bool { return pinned(t, d.star) == all })
			place := func(client *api.Client) string {
				g, err := client.Group(t.Context(), group4)
				if err != nil {
					t.Fatalf("%v\n%s", err, p.Output())
				}
				for _, m := range g.Members {
					if m.IP == d.star.Hosts[2].IPv4 {
						return m.Port + " " + m.MAC
					}
				}
				return "gone"
			}
			home := place(client)
			// The stranger: host 3 claims host 2's address.
			thief, victim := d.star.Hosts[3], d.star.Hosts[2]
			tap := newTap(t, thief)
			path := rocev2.Path{SrcMAC: rocev2.MAC(thief.MAC), DstMAC: rocev2.BroadcastMAC}
			b := make([]byte, 128)
			forged := b[:rocev2.BuildARP(b, &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: path.SrcMAC, SenderIP: victim.IPv4, TargetIP: victim.IPv4})]
			attack := func(client *api.Client, when string) {
				for range 200 {
					tap.send(forged)
					time.Sleep(10 * time.Millisecond)
					if at := place(client); at != home {
						t.Errorf("%s: a gratuitous ARP of %s has moved member %s from %s to %s", when, thief.Name, victim.IPv4, home, at)
						return
					}
				}
			}
			attack(client, "before the restart")
			if err := p.Signal(how); err != nil {
				t.Fatal(err)
			}
			_ = p.Wait()
			p = d.start(t, config, nil)
			client = d.ready(t, p)
			if at := place(client); at != home {
				t.Fatalf("after the restart the member is at %s", at)
			}
			time.Sleep(2 * time.Second)
			if got := pinned(t, d.star); got != all {
				t.Errorf("2 s after the restart the kernel's tables have pinned %s, want %s", got, all)
			}
			ping(t, d.star, victim) // the switch's kernel has an entry of the member, as it does when anything is sent there
			attack(client, "after the restart")
			if t.Failed() {
				t.Logf("gleamd says:\n%s", p.Output())
			}
		})
	}
}

// ping has the switch's kernel resolve a host.
func ping(t *testing.T, s *lab.Star, h lab.Host) {
	t.Helper()
	if err := s.Switch.Do(func() error {
		c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: h.IPv4.AsSlice(), Port: 9})
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("hello"))
		time.Sleep(100 * time.Millisecond)
		return errors.Join(err, c.Close())
	}); err != nil {
		t.Logf("resolve %s: %v", h.IPv4, err)
	}
}
