// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/certs"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const apiPort = 4798

// apiFabric is a leaf-spine whose gleamds have their APIs on TCP too.
type apiFabric struct {
	*Fabric
	t      *testing.T
	ca     *certs.Authority
	gleam  string // the program
	reader []string
}

func newAPIFabric(t *testing.T, c FabricConfig) *apiFabric {
	t.Helper()
	labtest.Require(t)
	x := &apiFabric{t: t, ca: certs.NewFor(t, user), gleam: filepath.Join(t.TempDir(), "gleam")}
	if err := labtest.Build(x.gleam, "../../cmd/gleam"); err != nil {
		t.Fatal(err)
	}
	c.Dir, c.Gleamd, c.FastPath = t.TempDir(), gleamd(t), labtest.FastPath()
	c.API = func(s *fabric.Switch) string {
		certificate, key := x.ca.Issue(certs.Want{Name: s.Name, Server: s.IPv4})
		return fmt.Sprintf("  listen: %q\n  certificate: %s\n  key: %s\n  ca: %s\n", netip.AddrPortFrom(s.IPv4, apiPort), certificate, key, x.ca.File)
	}
	var err error
	if x.Fabric, err = BuildFabric(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	certificate, key := x.ca.Issue(certs.Want{Name: "reader", Client: true})
	x.reader = []string{"--certificate", certificate, "--key", key, "--ca", x.ca.File}
	return x
}

// run types gleam at a spine, or at a host that asks a leaf over TCP.
func (x *apiFabric) run(at string, args ...string) (string, error) {
	s := x.Switch(at)
	ns, to := s.NS, []string{"--socket", SocketIn(filepath.Join(x.dir, at))}
	if len(s.Hosts) > 0 {
		ns, to = x.Hosts[0].NS, []string{"--address", netip.AddrPortFrom(s.IPv4, apiPort).String()}
	}
	p, err := ns.Start(exec.Command(x.gleam, append(append(to, x.reader...), args...)...))
	if err != nil {
		return "", err
	}
	err = p.Wait()
	return p.Output(), err
}

// sending has a member send its memory again and again until the returned function is called.
func sending(t *testing.T, g *endpoint.Group, mr endpoint.MR) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Repeat(ctx, g, mr) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestGroupTree: four gleamds in a leaf-spine with six members; from each leaf, gleam draws
// the tree with the right legs, rates and acknowledged PSNs.
func TestGroupTree(t *testing.T) {
	x := newAPIFabric(t, FabricConfig{Fabric: fabric.Config{Topology: fabric.LeafSpine(3, 1, 2)}})
	group := fabric.GroupsIPv4.Addr().Next()
	groups, memories := join(t, x.Fabric, len(x.Hosts), group, 1<<20)
	stop := sending(t, groups[0], memories[0])
	defer stop()
	want := map[string]string{} // hops by their ends
	id := func(name string) string {
		for _, s := range x.Switches {
			if s.Name == name {
				top, err := x.Gleamds[name].Client.Topology(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return top.Switch
			}
		}
		return ""
	}
	source := x.Hosts[0].Switch.Name
	want[id(source)+" "+id("s1")] = ""
	for _, s := range x.Switches {
		if len(s.Hosts) > 0 && s.Name != source {
			want[id("s1")+" "+id(s.Name)] = ""
		}
		for _, h := range s.Hosts {
			if h != x.Hosts[0] {
				want[id(s.Name)+" "+h.IPv4.String()] = ""
			}
		}
	}
	for _, at := range []string{"l1", "l3", "s1"} {
		out, err := x.run(at, "group", "tree", group.String(), "-o", "json")
		var tree struct {
			Source   netip.Addr
			Switches []struct{ Switch, Error string }
			Hops     []struct {
				From, To, Member string
				Rate             float64 `json:"packets_per_second"`
				Live             bool
			}
		}
		if err := json.Unmarshal([]byte(out), &tree); err != nil {
			t.Fatalf("%s: %v\n%s", at, err, out)
		}
		if err != nil || len(tree.Switches) != 4 || tree.Source != x.Hosts[0].IPv4 || len(tree.Hops) != len(want) {
			t.Errorf("%s: %v, %d switches, %d hops, want %d\n%s", at, err, len(tree.Switches), len(tree.Hops), len(want), out)
		}
		for _, h := range tree.Hops {
			if _, ok := want[h.From+" "+h.To+h.Member]; !ok || h.Rate <= 0 || !h.Live {
				t.Errorf("%s: %+v", at, h)
			}
		}
	}
	for _, format := range []string{"table", "svg", "dot"} {
		out, err := x.run("l2", "group", "tree", group.String(), "-o", format)
		if err != nil || !strings.Contains(out, x.Hosts[5].IPv4.String()) {
			t.Errorf("%s: %v\n%s", format, err, out)
		}
		if format != "svg" {
			t.Logf("\n%s", out)
		}
	}
	// A switch whose API does not answer: here, since its port has another name.
	out, err := x.run("l1", "group", "tree", group.String(), "--interval", "0", "--switch", id("s1")+"="+netip.AddrPortFrom(x.Switch("s1").IPv4, apiPort+1).String())
	if err != nil || !strings.Contains(out, "DOES NOT ANSWER: nobody answers on switch ") || !strings.Contains(out, "1 of 2 switches answer") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAPIRefusesStrangers: a gleamd that has given up its privileges lets nobody in over TCP
// without a certificate that counts, whatever they try; a reload takes new certificates.
func TestAPIRefusesStrangers(t *testing.T) {
	x := newAPIFabric(t, FabricConfig{Fabric: fabric.Config{Topology: chain()}})
	s := x.Switch("l1")
	at := netip.AddrPortFrom(s.IPv4, apiPort).String()
	dial := func(ns *lab.Namespace) net.Conn {
		var c net.Conn
		if err := ns.Do(func() (err error) { c, err = net.Dial("tcp", at); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
	host := x.Hosts[2].NS // a host, behind the other switch
	get := func(f *identity.Files, change func(*tls.Config)) (string, error) {
		c, err := f.Client(s.IPv4.String())
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(c)
		}
		conn := tls.Client(dial(host), c)
		if _, err := io.WriteString(conn, "GET /v1/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			return "", err
		}
		b, err := io.ReadAll(conn)
		return string(b), err
	}
	good := certs.Want{Name: "ann", Client: true}
	ours, other := x.ca.Files(good), certs.New(t).Files(good)
	if out, err := get(ours, nil); err != nil || !strings.HasPrefix(out, "HTTP/1.1 200 ") {
		t.Fatalf("a client with a certificate: %q, %v", out, err)
	}
	for name, tt := range map[string]func() (string, error){
		"another authority": func() (string, error) {
			return get(&identity.Files{Certificate: other.Certificate, Key: other.Key, CA: ours.CA}, nil)
		},
		"no certificate": func() (string, error) { return get(ours, func(c *tls.Config) { c.Certificates = nil }) },
		"expired": func() (string, error) {
			return get(x.ca.Files(certs.Want{Name: "late", Client: true, Until: time.Now().Add(-time.Minute)}), nil)
		},
		"a switch's": func() (string, error) { return get(x.ca.Files(certs.Want{Name: "thief", Server: s.IPv4}), nil) },
		"TLS 1.2": func() (string, error) {
			return get(ours, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 })
		},
	} {
		if out, err := tt(); err == nil || out != "" {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
	plain := dial(host)
	if _, err := io.WriteString(plain, "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Error(err)
	}
	if b, _ := io.ReadAll(plain); strings.Contains(string(b), "200") {
		t.Errorf("a client without TLS got %q", b)
	}
	begin := time.Now()
	for range 76 { // 64 at once; then they end
		dial(host)
	}
	stats := func() *api.RemoteStats {
		st, err := x.Gleamds["l1"].Client.Stats(t.Context())
		if err != nil || st.Remote == nil {
			t.Fatal(st, err)
		}
		return st.Remote
	}
	want := map[string]uint64{api.RefusedCertificate: 3, api.RefusedNoCertificate: 1, api.RefusedHandshake: 1, api.RefusedPlaintext: 1, api.RefusedBusy: 12, api.RefusedTimeout: 64}
	for fmt.Sprint(stats().Refused) != fmt.Sprint(want) {
		if time.Sleep(50 * time.Millisecond); time.Since(begin) > 20*time.Second {
			t.Fatalf("refused: %v, want %v", stats().Refused, want)
		}
	}
	t.Logf("slow clients were gone after %v", time.Since(begin).Round(100*time.Millisecond))
	if n := strings.Count(x.Gleamds["l1"].Process.Output(), "a connection to the API over TCP is refused"); n != len(want) {
		t.Errorf("%d lines of log, want one for each of %d causes\n%s", n, len(want), x.Gleamds["l1"].Process.Output())
	}
	x.ca.Issue(certs.Want{Name: "l1", Server: s.IPv6})
	if _, err := x.Gleamds["l1"].Client.Reload(t.Context(), api.Reload{}); err != nil {
		t.Fatal(err)
	}
	if _, err := get(ours, nil); err == nil || !strings.Contains(err.Error(), s.IPv6.String()) {
		t.Errorf("after a reload the certificate is not the new one: %v", err)
	}
}
