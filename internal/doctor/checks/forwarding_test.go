// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// What keeps hosts from each other is found: a chain that drops, of each family and form, where
// bridged frames pass it, or where the kernel routes; and a kernel that does not route.
func TestForwarding(t *testing.T) {
	labtest.Enter(t)
	labtest.Needs(t, "nft")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}))
	br, err := netlink.LinkByName("br0")
	must(err)
	for _, p := range []string{"1", "2"} {
		must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p" + p, MasterIndex: br.Attrs().Index}, PeerName: "h" + p}))
	}
	cfg := config.Default()
	cfg.Ports = []config.Port{{Name: "p1"}, {Name: "p2"}}
	sysctl := func(key, value string) {
		t.Helper()
		if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o644); os.IsNotExist(err) {
			t.Skip("this kernel has no br_netfilter")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	look := func(what string, want ...string) {
		t.Helper()
		s, err := readHostNetwork()
		must(err)
		o := &Outcome{}
		This().checkForwarding(o, cfg, s)
		for i, f := range o.Findings {
			if i < len(want) && strings.Contains(f.String(), want[i]) {
				continue
			}
			t.Errorf("%s: %s", what, f)
		}
		if len(o.Findings) != len(want) {
			t.Errorf("%s: %d findings, want %q", what, len(o.Findings), want)
		}
	}
	nft := func(rules string) {
		t.Helper()
		c := exec.Command("nft", "-f", "-")
		c.Stdin = strings.NewReader("flush ruleset\n" + rules)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const hook = "type filter hook forward priority filter; policy "
	const docker = "table ip filter { chain FORWARD { " + hook + "drop; }\n}\n"
	for _, key := range []string{"iptables", "ip6tables", "arptables"} {
		sysctl("net/bridge/bridge-nf-call-"+key, "0")
	}
	look("no firewall")
	nft(docker)
	look("a firewall for routed packets alone")
	sysctl("net/bridge/bridge-nf-call-iptables", "1")
	look("bridged ones pass it", "chain FORWARD of table filter (ip) has the policy drop, and frames between hosts pass it: net.bridge.bridge-nf-call-iptables is 1: sysctl -w net.bridge.bridge-nf-call-iptables=0")
	nft("table inet f { chain x { " + hook + "accept; ip saddr 192.0.2.1 drop; counter reject; }\n}\n")
	look("a last rule that rejects", "chain x of table f (inet) ends with a rule that drops everything")
	nft("table inet f { chain x { " + hook + "accept; ip saddr 192.0.2.1 drop; }\nchain in { type filter hook input priority filter; policy drop; }\n}\n")
	look("rules for some, and another hook")
	nft("table ip6 f { chain x { " + hook + "drop; }\n}\n")
	look("IPv6, which does not pass")
	sysctl("net/bridge/bridge-nf-call-ip6tables", "1")
	look("IPv6", "chain x of table f (ip6) has the policy drop")
	sysctl("net/bridge/bridge-nf-call-iptables", "0")
	sysctl("net/bridge/bridge-nf-call-ip6tables", "0")
	nft("table bridge f { chain x { " + hook + "drop; }\n}\n")
	look("a firewall of bridges", "chain x of table f (bridge) has the policy drop, and frames between hosts pass it: bridges pass them")

	nft(docker)
	for _, p := range []string{"p1", "p2"} {
		l, err := netlink.LinkByName(p)
		must(err)
		must(netlink.LinkSetNoMaster(l))
	}
	cfg.GroupPrefixes = nil
	look("routed ports", "chain FORWARD of table filter (ip) has the policy drop, and frames between hosts pass it: the kernel routes between the ports")
}
