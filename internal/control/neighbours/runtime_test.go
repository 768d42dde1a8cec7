// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// Secrets of the tests.
const (
	secretA = "hex:8f4be1a60c7d395214d3fa887ce02b9156af3e70c9d8421b6d05b7f2903a6ec4"
	secretB = "hex:1f0e9d8c7b6a5948372615f4e3d2c1b00918273645546372819aabbccddeef01"
)

// Intervals of hellos: patience is for tests of adjacencies that stay up, which a busy machine
// ends within a shorter hold time.
const (
	interval = 50 * time.Millisecond
	patience = 400 * time.Millisecond
)

// box is a switch in a namespace: its hellos without its data plane.
type box struct {
	t  *testing.T
	ns *lab.Namespace
	*Runtime
	table Table
	start time.Time
	stop  func() // ends the switch at once, as kill -9 does
	mu    sync.Mutex
	log   []string
}

// section is the section of a switch of the configuration.
func section(t *testing.T, id int, keys string) *config.Switch {
	t.Helper()
	return sectionWith(t, id, keys, interval)
}

func sectionWith(t *testing.T, id int, keys string, interval time.Duration) *config.Switch {
	t.Helper()
	cfg, err := config.Parse("test", fmt.Appendf(nil, "ports: [{name: p}]\ngroup_prefixes: [10.99.0.0/24]\nenvelope: {insecure: true}\n"+
		"switch: {id: '%016x', keys: %s, hello_interval: %v}\n", id, keys, interval))
	if err != nil {
		t.Fatal(err)
	}
	return &cfg.Switch
}

func keyed(secret string) string { return "[{id: 1, secret: " + secret + "}]" }

// open starts the hellos of a switch at interfaces of a namespace.
func open(t *testing.T, ns *lab.Namespace, cfg *config.Switch, interfaces ...string) *box {
	t.Helper()
	b := &box{t: t, ns: ns, start: time.Now()}
	err := ns.Do(func() error {
		var ports []Port
		for i, name := range interfaces {
			if name == "" { // a port that may be added
				ports = append(ports, Port{Index: i})
				continue
			}
			at, err := net.InterfaceByName(name)
			if err != nil {
				return err
			}
			ports = append(ports, Port{Index: i, Name: name, Ifindex: at.Index, MAC: rocev2.MAC(at.HardwareAddr), MTU: at.MTU, Up: true})
		}
		var err error
		b.Runtime, err = Open(cfg, netip.AddrPort{}, ports, func() time.Duration { return time.Since(b.start) }, b.notify)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx)
	}()
	b.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

func (b *box) notify(warn bool, msg string, kv ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprint(warn, " ", msg, " ", kv))
}

// says reports whether the operator was told a text.
func (b *box) says(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.log, "\n"), text)
}

// at returns the neighbour of a port, as the table has it now.
func (b *box) at(port int) (Adjacency, bool) {
	b.table.Update(time.Since(b.start), b.Links())
	return b.table.At(port)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// adjacent waits until a port has a neighbour, and returns it.
func (b *box) adjacent(port int) (a Adjacency) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("port %d of %v has a neighbour: %+v", port, b.ID(), b.Links()), func() (up bool) {
		a, up = b.at(port)
		return up
	})
	return a
}

// pair is two namespaces with a link.
func pair(t *testing.T) (a, b *lab.Namespace) {
	t.Helper()
	l := labtest.New(t)
	var err error
	if a, err = l.Namespace("a"); err == nil {
		b, err = l.Namespace("b")
	}
	if err == nil {
		err = lab.Veth(lab.End{NS: a, Name: "p1"}, lab.End{NS: b, Name: "p1"}, 0)
	}
	if err = errors.Join(err, a.WaitUp(10*time.Second), b.WaitUp(10*time.Second)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// Two switches know each other, with one session at both ends. One that is killed is down
// within the hold time, with the reason; started again it has its number and another session.
func TestTwoSwitches(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "p1")
	b := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	x, y := a.adjacent(0), b.adjacent(0)
	eventually(t, "one session", func() bool { x, _ = a.at(0); y, _ = b.at(0); return x.Session == y.Session && x.Session != 0 })
	if x.ID != 2 || y.ID != 1 || x.MTU != 1500 || x.MAC != b.links[0].MAC || x.Hold != hello.Multiplier*interval {
		t.Errorf("a has %+v, b has %+v", x, y)
	}
	select {
	case <-a.Bell:
	default:
		t.Error("an adjacency has come up, and the bell has not rung")
	}
	b.stop()
	killed := time.Now()
	eventually(t, "a's neighbour is down", func() bool { _, up := a.at(0); return !up })
	if d := time.Since(killed); d > hello.Multiplier*interval+time.Second {
		labtest.Watch().Timing(t, "down after %v, the hold time is %v", d, hello.Multiplier*interval)
	}
	if gone, _ := a.table.Find(x.Number); gone.Up || gone.Reason != hello.Silent {
		t.Errorf("the killed one: %+v", gone)
	}
	again := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	z := a.adjacent(0)
	eventually(t, "one session again", func() bool { z, _ = a.at(0); y, _ = again.at(0); return z.Session == y.Session && z.Session != 0 })
	if z.Number != x.Number || z.Session == x.Session {
		t.Errorf("after the restart %+v, before %+v", z, x)
	}
}

// A switch with another secret is never up, and both operators can see why.
func TestWrongKey(t *testing.T) {
	nsA, nsB := pair(t)
	for keys, want := range map[string]hello.Drop{keyed(secretB): hello.BadMAC, strings.Replace(keyed(secretA), "id: 1", "id: 2", 1): hello.UnknownKey} {
		a := open(t, nsA, section(t, 1, keyed(secretA)), "p1")
		b := open(t, nsB, section(t, 2, keys), "p1")
		for _, x := range []*box{a, b} {
			eventually(t, "hellos are dropped", func() bool { return x.Links()[0].Drops[want] > 5 })
			l := x.Links()[0]
			if _, up := x.at(0); up || l.State != hello.Down || l.LastDrop.Drop != want || !x.says(want.Text()) {
				t.Errorf("%+v, log %v", l, x.log)
			}
			if n := strings.Count(strings.Join(x.log, "\n"), "no effect"); n != 1 {
				t.Errorf("the operator was told %d times", n)
			}
		}
		a.stop()
		b.stop()
	}
}

// Keys are replaced while both run, one switch after the other.
func TestKeysOfRunningSwitches(t *testing.T) {
	nsA, nsB := pair(t)
	first, both := keyed(secretA), "[{id: 1, secret: "+secretA+"}, {id: 2, secret: "+secretB+"}]"
	second, newOne := "[{id: 2, secret: "+secretB+"}, {id: 1, secret: "+secretA+"}]", "[{id: 2, secret: "+secretB+"}]"
	a, b := open(t, nsA, sectionWith(t, 1, first, patience), "p1"), open(t, nsB, sectionWith(t, 2, first, patience), "p1")
	a.adjacent(0)
	b.adjacent(0)
	eventually(t, "one session", func() bool { x, _ := a.at(0); y, _ := b.at(0); return x.Session == y.Session })
	before, _ := a.at(0)
	for _, step := range []struct {
		x    *box
		keys string
	}{{a, both}, {b, both}, {a, second}, {b, second}, {a, newOne}, {b, newOne}} {
		if err := step.x.SetKeys(section(t, 1, step.keys)); err != nil {
			t.Fatal(err)
		}
		n := step.x.Links()[0].Sent
		eventually(t, "hellos under the keys", func() bool { return step.x.Links()[0].Sent > n+1 })
	}
	if x, up := a.at(0); !up || x.Session != before.Session {
		t.Errorf("after all: %+v, before %+v", x, before)
	}
}

// attacker sends any frame at an interface, and hears all.
type attacker struct{ fd int }

func newAttacker(t *testing.T, ns *lab.Namespace, name string) (x attacker) {
	t.Helper()
	err := ns.Do(func() error {
		at, err := net.InterfaceByName(name)
		if err == nil {
			x.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(bigEndian(unix.ETH_P_ALL)))
		}
		if err == nil {
			err = unix.Bind(x.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: at.Index})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(x.fd) })
	return x
}

// record returns the next n hellos.
func (x attacker) record(t *testing.T, n int) (frames [][]byte) {
	t.Helper()
	b := make([]byte, 2048)
	for len(frames) < n {
		m, err := unix.Read(x.fd, b)
		if err != nil {
			t.Fatal(err)
		}
		if m > headerLen && hello.EtherType == int(b[typeAt])<<8|int(b[typeAt+1]) {
			frames = append(frames, append([]byte(nil), b[:m]...))
		}
	}
	return frames
}

// A host that sends the recorded hellos of a switch by another port, from any MAC address and
// at any rate, becomes no neighbour, ends no adjacency, and is counted. A flood of its own
// leaves the adjacency of others alone.
func TestReplaysFromAnotherPort(t *testing.T) {
	nsA, nsB := pair(t)
	l := labtest.New(t)
	host, err := l.Namespace("host")
	if err == nil {
		err = lab.Veth(lab.End{NS: nsA, Name: "p2"}, lab.End{NS: host, Name: "eth0"}, 0)
	}
	if err = errors.Join(err, nsA.WaitUp(10*time.Second), host.WaitUp(10*time.Second)); err != nil {
		t.Fatal(err)
	}
	a := open(t, nsA, sectionWith(t, 1, keyed(secretA), patience), "p1", "p2")
	b := open(t, nsB, sectionWith(t, 2, keyed(secretA), patience), "p1")
	tap := newAttacker(t, nsB, "p1")
	a.adjacent(0)
	b.adjacent(0)
	eventually(t, "one session", func() bool { x, _ := a.at(0); y, _ := b.at(0); return x.Session == y.Session })
	before, _ := a.at(0)
	frames := tap.record(t, 10) // of both switches
	x := newAttacker(t, host, "eth0")
	send := func(f []byte) {
		if _, err := unix.Write(x.fd, f); err != nil && !errors.Is(err, unix.ENOBUFS) {
			t.Fatal(err)
		}
	}
	for i := range 4000 {
		f := append([]byte(nil), frames[i%len(frames)]...)
		switch i / len(frames) % 3 {
		case 1:
			f[sourceAt+5] ^= 0x55 // from another address than the sender's
		case 2:
			f[len(f)-1] ^= 1
		}
		send(f)
		if l := a.Links()[1]; l.State == hello.Up {
			t.Fatal("a host is a neighbour by replayed hellos")
		}
	}
	for range 20_000 { // faster than they are taken
		send(frames[0])
	}
	drops := a.Links()[1].Drops
	if drops[hello.WrongMAC] == 0 || drops[hello.BadMAC] == 0 || drops[hello.Replayed]+drops[hello.Reflected] == 0 {
		t.Errorf("counted: %v", drops)
	}
	if n := a.Links()[1].Received; n > maxHellos+uint64(time.Since(a.start).Seconds()*maxHellos) {
		t.Errorf("%d hellos were taken in %v", n, time.Since(a.start))
	}
	n := a.Links()[0].Received
	eventually(t, "hellos of the neighbour", func() bool { return a.Links()[0].Received > n+3 })
	if after, up := a.at(0); !up || after.Session != before.Session || a.Links()[0].Drops != ([hello.NumDrops]uint64{}) {
		t.Errorf("the neighbour: %+v, before %+v; drops %v", after, before, a.Links()[0].Drops)
	}
	if l := a.Links()[1]; l.State == hello.Up {
		t.Errorf("the host's port: %+v", l)
	}
}

// Frames with a VLAN tag are no hellos: a bridge forwards them.
func TestTaggedHellos(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "p1")
	x := newAttacker(t, nsB, "p1")
	f := x.record(t, 1)[0]
	tagged := append(append(append([]byte(nil), f[:typeAt]...), 0x81, 0, 0, 5), f[typeAt:]...)
	elsewhere := append([]byte(nil), f...)
	elsewhere[5] = 0x0D
	for _, b := range [][]byte{tagged, elsewhere, f} {
		if _, err := unix.Write(x.fd, b); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "its own hello comes back", func() bool { return a.Links()[0].Drops[hello.Reflected] > 0 })
	if l := a.Links()[0]; l.Received != 1 {
		t.Errorf("%d hellos were taken, want the one to the right address without a tag: %v", l.Received, l.Drops)
	}
}

// An interface that goes down takes the adjacency with it, at this end when the control loop
// says so; up again, the next session begins.
func TestLinkGoesDown(t *testing.T) {
	nsA, nsB := pair(t)
	a := open(t, nsA, section(t, 1, keyed(secretA)), "p1")
	b := open(t, nsB, section(t, 2, keyed(secretA)), "p1")
	first := a.adjacent(0)
	b.adjacent(0)
	if err := nsA.SetDown("p1"); err != nil {
		t.Fatal(err)
	}
	a.SetLink(0, false, 1500)
	if _, up := a.at(0); up {
		t.Error("up without a link")
	}
	if gone, _ := a.table.Find(first.Number); gone.Reason != hello.LinkDown {
		t.Errorf("%+v", gone)
	}
	eventually(t, "the other end is silent", func() bool { _, up := b.at(0); return !up })
	if err := errors.Join(nsA.SetUp("p1"), nsA.WaitUp(10*time.Second)); err != nil {
		t.Fatal(err)
	}
	a.SetLink(0, true, 1400)
	next := a.adjacent(0)
	if next.Session == first.Session || next.Number != first.Number {
		t.Errorf("%+v, before %+v", next, first)
	}
	eventually(t, "the other end knows the MTU", func() bool { y, up := b.at(0); return up && y.MTU == 1400 })
}

// The identity of a switch is that of the machine, if none is configured.
func TestSwitchID(t *testing.T) {
	defer func(was string) { machineIDFile = was }(machineIDFile)
	machineIDFile = t.TempDir() + "/machine-id"
	if _, err := ID(&config.Switch{}); err == nil || !strings.Contains(err.Error(), "set switch.id") {
		t.Errorf("no file: %v", err)
	}
	ids := make(map[hello.SwitchID]bool)
	for _, text := range []string{"0123456789abcdef0123456789abcdef\n", "1123456789abcdef0123456789abcdef\n", "0123456789abcdef0123456789abcdef"} {
		if err := os.WriteFile(machineIDFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := ID(&config.Switch{})
		if err != nil || strings.Contains(text, fmt.Sprintf("%x", uint64(id))) {
			t.Errorf("%v, %v", id, err)
		}
		ids[id] = true
	}
	if len(ids) != 2 {
		t.Errorf("IDs %v of two machines", ids)
	}
	if err := os.WriteFile(machineIDFile, []byte("uninitialized\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ID(&config.Switch{}); err == nil || !strings.Contains(err.Error(), "set switch.id") {
		t.Errorf("not set up: %v", err)
	}
	if id, err := ID(&config.Switch{ID: 7}); id != 7 || err != nil {
		t.Errorf("configured: %v, %v", id, err)
	}
}
