// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/certs"
)

const treeGroup = "10.77.254.1"

// fakeFabric is switches of a group's tree: 1 and 3 are leaves, 2 is the spine between them.
type fakeFabric struct {
	t        *testing.T
	ca       *certs.Authority
	backends map[int]*growing
	address  map[int]string
	socket   string // the socket of switch 1
	files    []string
}

// growing is a backend whose group's counters and PSNs grow with each answer.
type growing struct {
	*apitest.Backend
	step int
}

func (g *growing) Group(ip netip.Addr) (*api.Group, error) {
	x, err := g.Backend.Group(ip)
	if err != nil {
		return nil, err
	}
	g.step++
	n := api.PSN(g.step-1) * 1000
	x.Counters.DataIn, x.Counters.Copies = uint64(n), uint64(2*n)
	x.AckPSN, x.NextPSN = 0xfffff0+n, (0xfffff0+n+11)&0xffffff
	x.AckPSN &= 0xffffff
	for i := range x.Members {
		x.Members[i].AckPSN = x.AckPSN
	}
	if x.Tree != nil {
		tree := *x.Tree
		tree.Legs = append([]api.TreeLeg{}, tree.Legs...)
		for i := range tree.Legs {
			tree.Legs[i].AckPSN = x.AckPSN
		}
		x.Tree = &tree
	}
	return x, nil
}

func id(n int) string { return fmt.Sprintf("%016x", n) }

func newFakeFabric(t *testing.T) *fakeFabric {
	t.Helper()
	f := &fakeFabric{t: t, ca: certs.New(t), backends: make(map[int]*growing), address: make(map[int]string)}
	certificate, key := f.ca.Issue(certs.Want{Name: "reader", Client: true})
	f.files = []string{"--certificate", certificate, "--key", key, "--ca", f.ca.File}
	for n := 1; n <= 3; n++ {
		f.backends[n] = &growing{Backend: &apitest.Backend{}}
		if n > 1 {
			f.address[n] = f.listen(f.backends[n])
		}
	}
	member := func(last int, at string, role string) api.Member {
		return api.Member{IP: netip.AddrFrom4([4]byte{10, 77, 0, byte(last)}), QPN: 17, Port: "p1", Switch: at, Role: role, Live: true}
	}
	leg := func(to, levels, members int, source bool) api.TreeLeg {
		return api.TreeLeg{Switch: id(to), Port: fmt.Sprintf("p%d", to), State: api.LinkUp, API: f.address[to], Levels: levels, Members: members, Live: members, Source: source}
	}
	group := func(at int, parent string, legs ...api.TreeLeg) api.Group {
		sw := func(n, here int) string {
			if n == here {
				return ""
			}
			return id(2)
		}
		if at == 2 {
			sw = func(n, _ int) string { return id(n) }
		}
		return api.Group{IP: netip.MustParseAddr(treeGroup), PMTU: 1024, Policy: "strict", Origin: "envelope", State: "running", Epoch: 7, Source: netip.MustParseAddr("10.77.0.1"),
			Members: []api.Member{member(1, sw(1, at), "source"), member(2, sw(1, at), "receiver"), member(3, sw(3, at), "receiver"), member(4, sw(3, at), "receiver")},
			Repair:  &api.Repair{Copies: uint64(at), NAKs: 1},
			Tree:    &api.Tree{Switch: id(at), Attempt: "1-1", Parent: parent, Legs: legs, Token: &api.TreeToken{State: "Sending"}},
		}
	}
	f.backends[1].GroupList = []api.Group{group(1, "", leg(2, 2, 2, false))}
	f.backends[2].GroupList = []api.Group{group(2, id(1), leg(1, 1, 2, true), leg(3, 1, 2, false))}
	f.backends[3].GroupList = []api.Group{group(3, id(2), leg(2, 2, 2, true))}
	for n := range f.backends {
		f.backends[n].Switches.Switch = id(n)
	}
	f.socket = serve(t, f.backends[1])
	return f
}

// listen serves a backend over TCP.
func (f *fakeFabric) listen(b api.Backend) string {
	f.t.Helper()
	r, err := api.NewRemote(f.ca.Files(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1")}), nil, func(string, net.Addr, error, uint64) {})
	if err != nil {
		f.t.Fatal(err)
	}
	ln, err := api.ListenTCP(f.t.Context(), "api.listen", netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, ln, b, api.Version{Version: "v1"}) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	return ln.Addr().String()
}

// tree runs gleam group tree.
func (f *fakeFabric) tree(args ...string) (stdout, stderr string, code int) {
	f.t.Helper()
	return run(f.t, f.socket, append(append([]string{"group", "tree", treeGroup}, f.files...), args...)...)
}

// The tree has the source at the top, each switch and member once, and what is known of each.
func TestGroupTree(t *testing.T) {
	f := newFakeFabric(t)
	out, msg, code := f.tree("--interval", "0")
	want := `group 10.77.254.1: 3 of 3 switches answer
└─ 10.77.0.1 (source)
   └─ 0000000000000001  root  running, epoch 7  acked 0xfffff0, 10 in flight  0 packets in, 0 B, 0 out  1 NAKs and RNR NAKs answered, 1 packets repaired  token Sending
      ├─ 10.77.0.2  port p1, acked 0xfffff0, 0 behind
      └─ [port p2, 2 of 2 members live, acked 0xfffff0, 0 behind]  0000000000000002  running, epoch 7  acked 0xfffff0, 10 in flight  0 packets in, 0 B, 0 out  1 NAKs and RNR NAKs answered, 2 packets repaired  token Sending
         └─ [port p3, 2 of 2 members live, acked 0xfffff0, 0 behind]  0000000000000003  running, epoch 7  acked 0xfffff0, 10 in flight  0 packets in, 0 B, 0 out  1 NAKs and RNR NAKs answered, 3 packets repaired  token Sending
            ├─ 10.77.0.3  port p1, acked 0xfffff0, 0 behind
            └─ 10.77.0.4  port p1, acked 0xfffff0, 0 behind
`
	if out != want || msg != "" || code != 0 {
		t.Errorf("exit %d %s\n%s\nwant\n%s", code, msg, out, want)
	}
	// It is the same tree from any of its switches.
	other, _, code := run(t, "none", append([]string{"group", "tree", treeGroup, "--interval", "0", "--address", f.address[3], "--switch", id(1) + "=" + f.listen(f.backends[1])}, f.files...)...)
	shape := func(s string) (names []string) {
		for line := range strings.Lines(s) {
			for _, w := range strings.Fields(line) {
				if strings.HasPrefix(w, "10.77.0.") || len(w) == 16 && strings.HasPrefix(w, "000000") {
					names = append(names, fmt.Sprint(strings.Index(line, w) > 0, w))
					break
				}
			}
		}
		return names
	}
	if code != 0 || fmt.Sprint(shape(other)) != fmt.Sprint(shape(want)) {
		t.Errorf("from the other end: exit %d\n%s", code, other)
	}
}

// Rates are those between two answers, over the end of the PSNs.
func TestGroupTreeRates(t *testing.T) {
	f := newFakeFabric(t)
	out, msg, code := f.tree("--interval", "10ms", "-o", "json")
	var x struct {
		Root     string
		Switches []struct {
			Switch string
			Rates  struct{ Seconds, Data_in float64 }
		}
		Hops []struct {
			From, To, Member string
			Ack_PSN          api.PSN
			Rate             float64 `json:"packets_per_second"`
			Bytes            float64 `json:"bytes_per_second"`
		}
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil || code != 0 {
		t.Fatalf("exit %d %s %v\n%s", code, msg, err, out)
	}
	if len(x.Switches) != 3 || len(x.Hops) != 5 || x.Root != id(1) {
		t.Fatalf("%+v", x)
	}
	for _, s := range x.Switches {
		if r := s.Rates; r.Seconds < 0.01 || r.Data_in < 999/r.Seconds || r.Data_in > 1001/r.Seconds {
			t.Errorf("%s: %+v", s.Switch, r)
		}
	}
	for _, h := range x.Hops {
		if h.Rate <= 0 || h.Bytes != 1024*h.Rate || h.Ack_PSN != 1000-16 {
			t.Errorf("%+v", h)
		}
	}
}

// A switch that does not answer, or is another one, is in the tree with the reason, and the
// command is done.
func TestGroupTreeWithoutAnAnswer(t *testing.T) {
	f := newFakeFabric(t)
	for _, tt := range []struct {
		name   string
		change func()
		args   []string
		says   string
	}{
		{"wrong certificate", nil, []string{"--certificate", f.ca.File}, "DOES NOT ANSWER: switch " + f.address[2] + ": "},
		{"no files", nil, []string{"--key", "/nowhere"}, "/nowhere: no such file or directory: name the files by --certificate, --key and --ca"},
		{"nobody there", nil, []string{"--switch", id(2) + "=127.0.0.1:1"}, "DOES NOT ANSWER: nobody answers on switch 127.0.0.1:1"},
		{"another switch", nil, []string{"--switch", id(2) + "=" + f.address[3]}, "answers another switch, with " + id(3)},
		{"it has no API", func() { f.backends[1].GroupList[0].Tree.Legs[0].API = "" }, nil,
			"it has not said where its API over TCP is (api.listen and api.advertise there): name it by --switch " + id(2) + "=ADDRESS:PORT"},
	} {
		if tt.change != nil {
			tt.change()
		}
		out, msg, code := f.tree(append(tt.args, "--interval", "0")...)
		if code != 0 || !strings.Contains(out, tt.says) || !strings.Contains(out, "10.77.0.2") || strings.Contains(out, "10.77.0.3") {
			t.Errorf("%s: exit %d %s\n%s", tt.name, code, msg, out)
		}
		svg, _, code := f.tree(append(tt.args, "--interval", "0", "-o", "svg")...)
		if code != 0 || !strings.Contains(svg, "does not answer") {
			t.Errorf("%s: exit %d\n%s", tt.name, code, svg)
		}
	}
	if _, msg, code := f.tree("--switch", "1=2"); code != cli.ExitUsage || !strings.Contains(msg, "want ID=HOST:PORT") {
		t.Errorf("exit %d %s", code, msg)
	}
	if _, msg, code := run(t, f.socket, "group", "tree", "10.77.254.99"); code != cli.ExitFailed || !strings.Contains(msg, "no group 10.77.254.99") {
		t.Errorf("exit %d %s", code, msg)
	}
}

// A switch that is not in the tree finds it by its neighbours.
func TestGroupTreeIsFound(t *testing.T) {
	f := newFakeFabric(t)
	b := &apitest.Backend{Switches: api.Topology{Switch: id(9), Neighbours: []api.NeighbourSwitch{{Switch: id(2), State: api.LinkUp, API: f.address[2]}}}}
	f.backends[2].GroupList[0].Tree.Legs[0].API = f.listen(f.backends[1])
	out, msg, code := run(t, serve(t, b), append([]string{"group", "tree", treeGroup, "--interval", "0"}, f.files...)...)
	if code != 0 || !strings.Contains(out, "3 of 3 switches answer") {
		t.Errorf("exit %d %s\n%s", code, msg, out)
	}
}

// With --all, gleam topology shows the links of every switch, and why one does not answer.
func TestWholeTopology(t *testing.T) {
	f := newFakeFabric(t)
	neighbour := func(n int, port, at string) api.NeighbourSwitch {
		return api.NeighbourSwitch{Port: port, Switch: id(n), State: api.LinkUp, API: at}
	}
	link := func(port string) api.Link { return api.Link{Port: port, State: api.LinkUp, MTU: 1500} }
	for n, x := range map[int]api.Topology{
		1: {Links: []api.Link{link("a")}, Neighbours: []api.NeighbourSwitch{neighbour(2, "a", f.address[2])}},
		2: {Links: []api.Link{link("b"), link("c"), {Port: "d\x1b[2J", State: api.LinkDown, Reason: "silent"}},
			Neighbours: []api.NeighbourSwitch{neighbour(1, "b", ""), neighbour(3, "c", f.address[3]), neighbour(7, "x", "")}},
		3: {Links: []api.Link{link("e")}, Neighbours: []api.NeighbourSwitch{neighbour(2, "e", f.address[2])}},
	} {
		x.Switch = id(n)
		f.backends[n].Switches = x
	}
	out, msg, code := run(t, f.socket, append([]string{"topology", "--all"}, f.files...)...)
	var rows []string
	for line := range strings.Lines(out) {
		if w := strings.Fields(line); len(w) > 5 && w[0] != "SWITCH" {
			rows = append(rows, strings.Join([]string{w[0][15:], w[2], w[3], w[4][max(0, len(w[4])-1):]}, " "))
		}
	}
	if got := strings.Join(rows, ", "); code != 0 || got != "1 a up 2, 2 b up 1, 2 c up 3, 2 d�[2J down -, 3 e up 2, 7 - - -" {
		t.Errorf("exit %d %s: %s\n%s", code, msg, got, out)
	}
	if !strings.Contains(out, "does not answer: it has not said where its API over TCP is") {
		t.Errorf("%s", out)
	}
	if _, msg, code := run(t, "/nowhere", "topology", "--all"); code != cli.ExitFailed || !strings.Contains(msg, "/nowhere does not exist") {
		t.Errorf("exit %d %s", code, msg)
	}
}

// The pictures have everything, as XML that no answer breaks; GLEAM_PICTURE is where to look
// at one.
func TestGroupTreePictures(t *testing.T) {
	f := newFakeFabric(t)
	f.backends[3].GroupList[0].Members[3].Live = false
	f.backends[1].GroupList[0].Members[1].Port = "<\x1b[31m&\""
	svg, _, code := f.tree("--interval", "10ms", "-o", "svg")
	if path := os.Getenv("GLEAM_PICTURE"); path != "" {
		if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("exit %d: %v\n%s", code, err, svg)
		}
	}
	dot, _, _ := f.tree("--interval", "0", "-o", "dot")
	for name, s := range map[string]string{"svg": svg, "dot": dot} {
		for _, want := range []string{id(1), id(2), id(3), "10.77.0.1", "10.77.0.2", "10.77.0.3", "10.77.0.4", "NOT LIVE", "(root)"} {
			if !strings.Contains(s, want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if bytes.ContainsRune([]byte(s), 0x1b) {
			t.Errorf("%s has an escape sequence of a switch", name)
		}
	}
	if n := strings.Count(svg, "marker-end"); n != 5 { // one of six is broken
		t.Errorf("%d arrows, want 5", n)
	}
	if !strings.Contains(dot, `<�[31m&\"`) {
		t.Errorf("dot: %s", dot)
	}
}
