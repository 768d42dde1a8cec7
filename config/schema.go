// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// config reads the whole file into c, which holds the defaults. It is false if
// the file is no mapping at all.
func (d *decoder) config(c *Config, root ast.Node) (ok bool) {
	return nil != d.mapping(value{node: root, line: lineOf(root)},
		field{"ports", func(v value) { d.ports(&c.Ports, v) }},
		field{"group_prefixes", func(v value) { d.prefixes(&c.GroupPrefixes, v) }},
		field{"envelope", func(v value) { d.envelope(&c.Envelope, v) }},
		field{"switch", func(v value) { d.switches(&c.Switch, v) }},
		field{"api", func(v value) {
			d.api(&c.API, v)
		}},
		field{"web", func(v value) { d.web(&c.Web, v) }},
		field{"metrics", func(v value) { d.metrics(&c.Metrics, v) }},
		field{"user", d.user(&c.User)},
		field{"limits", func(v value) {
			d.mapping(v,
				field{"groups", d.int(&c.Limits.Groups, 1, 1<<20)},
				field{"members_per_group", d.int(&c.Limits.MembersPerGroup, 2, 1<<16-1)},
				field{"source_timeout", d.duration(&c.Limits.SourceTimeout, 10*time.Millisecond, time.Hour)},
				field{"naks_per_port", d.int(&c.Limits.NAKsPerPort, 0, 1e9)},
				field{"envelopes_per_port", d.int(&c.Limits.EnvelopesPerPort, 0, 1e9)},
				field{"envelopes_per_address", d.int(&c.Limits.EnvelopesPerAddress, 0, 1e9)},
				field{"neighbours_per_port", d.int(&c.Limits.NeighboursPerPort, 0, 1e9)})
		}},
		field{"repair", func(v value) {
			d.mapping(v,
				field{"per_group", d.int(&c.Repair.GroupBytes, 0, 1<<30)},
				field{"total", d.int(&c.Repair.TotalBytes, 0, 1<<30)},
				field{"timeout", d.duration(&c.Repair.Timeout, 100*time.Microsecond, 10*time.Second)},
				field{"tries", d.int(&c.Repair.Tries, 1, 255)})
		}},
		field{"unconfirmed_moves", choice(d, &c.UnconfirmedMoves, MoveStay, MoveFollow, MoveEvict)},
		field{"psn_probe", d.duration(&c.PSNProbe, 0, time.Second)},
		field{"state", d.folder(&c.State)},
		field{"xdp", func(v value) {
			d.mapping(v,
				field{"mode", choice(d, &c.XDP.Mode, XDPAuto, XDPNative, XDPGeneric)},
				field{"zero_copy", choice(d, &c.XDP.ZeroCopy, ZeroCopyAuto, ZeroCopyNever, ZeroCopyAlways)},
				field{"ntuple", d.boolean(&c.XDP.NTuple)})
		}},
		field{"fast_path", choice(d, &c.FastPath, FastPathOff, FastPathAuto, FastPathRequire)},
		field{"fast_path_memory", d.int(&c.FastPathMemory, 1<<20, 1<<30)},
		field{"umem", func(v value) {
			d.mapping(v,
				field{"frames", d.power(&c.UMEM.Frames, 256, 1<<22)},
				// The kernel takes 2048 up to a page (net/xdp/xdp_umem.c:xdp_umem_reg).
				field{"frame_size", d.power(&c.UMEM.FrameSize, 2048, 4096)})
		}},
		field{"rings", func(v value) {
			d.mapping(v,
				field{"rx", d.power(&c.Rings.RX, 64, 1<<16)},
				field{"tx", d.power(&c.Rings.TX, 64, 1<<16)},
				field{"fill", d.power(&c.Rings.Fill, 64, 1<<16)},
				field{"completion", d.power(&c.Rings.Completion, 64, 1<<16)})
		}},
		field{"worker", func(v value) {
			d.mapping(v,
				field{"cpu", func(v value) { d.cpus(&c.Worker.CPUs, v) }},
				field{"spin", d.duration(&c.Worker.Spin, 0, 10*time.Millisecond)},
				field{"batch", d.int(&c.Worker.Batch, 1, 1024)})
		}},
		field{"log", func(v value) {
			d.mapping(v,
				field{"level", choice(d, &c.Log.Level, LogDebug, LogInfo, LogWarn, LogError)},
				field{"format", choice(d, &c.Log.Format, LogConsole, LogJSON)})
		}},
	)
}

// reloads says of every key, or of all keys below one, whether a reload (SIGHUP, gleam
// reload) applies a change; the reason is why a restart is needed. reference.yaml repeats
// it at each entry's key.
var reloads = []struct{ key, restart string }{
	{"ports", ""},
	{"group_prefixes", ""},
	{"envelope.udp_port", "the XDP programs are loaded with it"},
	{"envelope.insecure", "authentication is not switched on or off while groups are registered"},
	{"envelope.keys", ""},
	{"envelope.lease_max", ""},
	{"envelope.locate_timeout", ""},
	{"switch.id", "neighbours know this switch by it"},
	{"switch.keys", ""},
	{"switch.ports", "which ports exchange hellos is decided at start"},
	{"switch.hello_interval", "it is set at start"},
	{"switch.grace_period", "it is set at start"},
	{"api", "the sockets are made before privileges are given up"},
	{"api.certificate", ""},
	{"api.key", ""},
	{"api.ca", ""},
	{"api.operators", ""},
	{"web", "its socket is made before privileges are given up"},
	{"metrics", "its socket is made before privileges are given up"},
	{"user", "privileges are given up once"},
	{"limits", ""},
	{"repair", "its memory is divided at start"},
	{"unconfirmed_moves", "members are pinned, or not, from the start"},
	{"psn_probe", "the workers are made with it"},
	{"state", "the file is opened before privileges are given up"},
	{"xdp", "the XDP programs are loaded with it"},
	{"fast_path", "the XDP programs are loaded with it"},
	{"fast_path_memory", "its maps are made at start"},
	{"umem", "the memory is registered with all sockets"},
	{"rings", "the sockets are opened with them"},
	{"worker", "the workers are made with it"},
	{"log", "the log is opened at start"},
}

// sized are keys by which tables get their sizes: a reload lowers them, and raises them up to
// what they were at start.
var sized = []string{"limits.groups", "limits.members_per_group"}

const sizedReason = "tables have the sizes of the start: a reload may lower it, and raise it up to there"

// ports reads the list of interfaces.
func (d *decoder) ports(dst *[]Port, list value) {
	where := make(map[string]int)
	d.list(list, func(v value) {
		p := Port{Queue: DefaultQueue, XDP: PortXDP{Mode: XDPDefault}}
		var ecn value // read last: it depends on queue
		seen := d.mapping(v,
			field{"name", func(v value) {
				name, ok := d.str(v)
				switch {
				case !ok:
				case !validInterface(name):
					d.failAt(v, "not an interface name: want 1 to 15 bytes without white space, / or :")
				case where[name] > 0:
					d.failAt(v, "port is there already, in line %d", where[name])
				default:
					p.Name, where[name] = name, v.line
				}
			}},
			field{"queues", func(v value) { d.queues(&p.Queues, v) }},
			field{"vlan", d.int(&p.VLAN, 0, 4094)},
			field{"rate", func(v value) { d.rate(&p.Rate, v) }},
			field{"queue", d.int(&p.Queue, minQueue, maxQueue)},
			field{"ecn", func(v value) { ecn = v }},
			field{"allow", func(v value) { d.allow(&p.Allow, v) }},
			field{"xdp", func(v value) {
				d.mapping(v, field{"mode", choice(d, &p.XDP.Mode, XDPDefault, XDPAuto, XDPNative, XDPGeneric)})
			}},
		)
		p.ECN = defaultECN(p.Queue)
		if _, ok := seen["ecn"]; ok {
			d.ecn(&p.ECN, p.Queue, ecn)
		}
		if _, ok := seen["name"]; !ok && seen != nil {
			d.fail(v.line, v.key, "", "has no name; want the interface's")
		}
		*dst = append(*dst, p)
	})
}

// validInterface follows net/core/dev.c:dev_valid_name.
func validInterface(s string) bool {
	return s != "" && len(s) <= 15 && s != "." && s != ".." &&
		!strings.ContainsFunc(s, func(r rune) bool { return r == '/' || r == ':' || r <= ' ' || r == 0x7f })
}

// queues reads "all" or a list of queue numbers.
func (d *decoder) queues(dst *[]int, v value) {
	if n, ok := v.node.(*ast.StringNode); ok && n.Value == "all" {
		*dst = nil
		return
	}
	if n, ok := v.node.(*ast.SequenceNode); !ok || len(n.Values) == 0 {
		d.wrongKind(v, "all, or a list of RX queue numbers such as [0, 1]")
		return
	}
	d.list(v, func(v value) {
		i, ok := d.integer(v, 0, 4095)
		switch {
		case ok && slices.Contains(*dst, int(i)):
			d.failAt(v, "queue is there already")
		case ok:
			*dst = append(*dst, int(i))
		}
	})
	slices.Sort(*dst)
}

// maxWorkers bounds the workers: each pair of them has rings of its own.
const maxWorkers = 64

// cpus reads the CPU of the only worker, or one for each of several.
func (d *decoder) cpus(dst *[]int, v value) {
	if n, ok := v.node.(*ast.SequenceNode); ok {
		if len(n.Values) == 0 || len(n.Values) > maxWorkers {
			d.failAt(v, "has %d entries: want 1 to %d workers' CPUs", len(n.Values), maxWorkers)
			return
		}
		*dst = nil
		d.list(v, func(v value) { d.cpu(dst, v) })
		return
	}
	*dst = nil
	d.cpu(dst, v)
}

func (d *decoder) cpu(dst *[]int, v value) {
	i, ok := d.integer(v, -1, 8191)
	switch {
	case ok && i >= 0 && slices.Contains(*dst, int(i)):
		d.failAt(v, "CPU is another worker's already")
	case ok:
		*dst = append(*dst, int(i))
	}
}

// reservedPrefixes are address ranges that no group can have.
var reservedPrefixes = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("224.0.0.0/4"), multicastReason},
	{netip.MustParsePrefix("ff00::/8"), multicastReason},
	{netip.MustParsePrefix("127.0.0.0/8"), "hosts keep the loopback range to themselves"},
	{netip.MustParsePrefix("::1/128"), "hosts keep the loopback address to themselves"},
	{netip.MustParsePrefix("0.0.0.0/8"), "hosts drop packets from 0.0.0.0/8 as martians"},
	{netip.MustParsePrefix("::/128"), "hosts drop packets from the unspecified address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "hosts drop packets from the broadcast address as martians"},
}

const multicastReason = "multicast: members get packets from their GroupIP, and hosts drop packets from a multicast source address as martians; take a unicast prefix"

func (d *decoder) prefixes(dst *[]netip.Prefix, list value) {
	d.list(list, func(v value) {
		s, ok := d.str(v)
		if !ok {
			return
		}
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil && strings.Contains(s, "/"):
			d.failAt(v, "not a prefix; want one such as 10.77.254.0/24 or fd77::6c65:0/112")
			return
		case err != nil:
			d.failAt(v, "not a prefix; want one with its length, such as 10.77.254.0/24")
			return
		case p.Addr().Is4In6():
			d.failAt(v, "an IPv4 address in IPv6 form; write it as IPv4")
			return
		case p != p.Masked():
			d.failAt(v, "has bits set beyond its length; did you mean %s?", p.Masked())
			return
		}
		for _, no := range reservedPrefixes {
			if p.Overlaps(no.prefix) {
				d.failAt(v, "overlaps %s: %s", no.prefix, no.reason)
				return
			}
		}
		for _, q := range *dst {
			if p.Overlaps(q) {
				d.failAt(v, "overlaps %s, which is there already", q)
				return
			}
		}
		*dst = append(*dst, p)
	})
}

// roceUDPPort is taken by RoCEv2 itself (IBTA annex A17).
const roceUDPPort = 4791

func (d *decoder) envelope(e *Envelope, v value) {
	seen := d.mapping(v,
		field{"udp_port", func(v value) {
			i, ok := d.integer(v, 1, 1<<16-1)
			switch {
			case ok && i == roceUDPPort:
				d.failAt(v, "is the port of RoCEv2; take another")
			case ok:
				e.UDPPort = uint16(i)
			}
		}},
		field{"insecure", d.boolean(&e.Insecure)},
		field{"keys", func(v value) { d.keys(&e.Keys, v) }},
		field{"lease_max", d.duration(&e.LeaseMax, time.Second, 24*time.Hour)},
		field{"locate_timeout", d.duration(&e.LocateTimeout, 10*time.Millisecond, time.Minute)},
	)
	if keys, ok := seen["keys"]; ok && e.Insecure && len(e.Keys) > 0 {
		d.fail(keys.line, keys.key, "", "keys have no effect with insecure: true; leave one of both out")
	}
}

// socket reads the path of a Unix socket: sun_path has 108 bytes with its NUL.
func (d *decoder) socket(dst *string) func(value) {
	return func(v value) {
		s, ok := d.str(v)
		switch {
		case !ok:
		case !filepath.IsAbs(s) || strings.ContainsRune(s, 0):
			d.failAt(v, "want an absolute path")
		case len(s) > 107:
			d.failAt(v, "has %d bytes; a Unix socket's path has at most 107", len(s))
		default:
			*dst = s
		}
	}
}

// mode reads permission bits in octal, in quotes or not.
func (d *decoder) mode(dst *fs.FileMode) func(value) {
	return func(v value) {
		bits, err := strconv.ParseUint(strings.TrimPrefix(text(v.node), "0o"), 8, 32)
		if err != nil || bits == 0 || bits > 0o777 {
			d.failAt(v, "want permission bits in octal, such as \"0660\"")
			return
		}
		*dst = fs.FileMode(bits)
	}
}

// framesPerPort is the least share of the UMEM per port: a batch being received
// and one being sent.
const framesPerPort = 128

// check reports missing keys and contradictions between keys. line is the first line of
// the file. A key that was refused is not reported as missing, too.
func (d *decoder) check(c *Config, line int) {
	line = max(line, 1)
	if len(c.Ports) == 0 && !d.refused("ports") {
		d.fail(line, "ports", "", "want at least one port: - name: INTERFACE")
	}
	if len(c.GroupPrefixes) == 0 && !d.refused("group_prefixes") {
		d.fail(line, "group_prefixes", "", "want at least one prefix for GroupIPs, such as 10.77.254.0/24")
	}
	d.checkKeys(c, line)
	d.checkSwitch(c, line)
	if len(c.Envelope.Keys) == 0 && !c.Envelope.Insecure && !d.refused("envelope") {
		d.fail(line, "envelope.keys", "", "want at least one key, or insecure: true to accept envelopes from anybody")
	}
	if most := c.UMEM.Frames * c.UMEM.FrameSize / 8; c.Repair.TotalBytes > most && !d.refused("repair") {
		d.fail(line, "repair.total", strconv.Itoa(c.Repair.TotalBytes),
			fmt.Sprintf("more than an eighth of the UMEM, %d bytes: half is for receiving, a quarter for the ports' queues, an eighth to copy into", most))
	}
	if c.FastPath == FastPathRequire && !d.refused("fast_path") {
		switch {
		case len(c.Ports) > 0 && !slices.ContainsFunc(c.Ports, func(p Port) bool { return c.XDPModeOf(&p) != XDPGeneric }) && !d.refused("xdp") && !d.refused("ports"):
			d.fail(line, "fast_path", string(c.FastPath), "needs native XDP: with xdp.mode generic no group could take the fast path")
		case c.Repair.GroupBytes == 0 && !d.refused("repair"):
			d.fail(line, "fast_path", string(c.FastPath), "needs local repair: with repair.per_group 0 no group could take the fast path")
		}
	}
	if need := framesPerPort * len(c.Ports); c.UMEM.Frames < need && !d.refused("umem") {
		d.fail(line, "umem.frames", strconv.Itoa(c.UMEM.Frames),
			fmt.Sprintf("%d ports need at least %d frames", len(c.Ports), need))
	}
}

// refused reports whether something is wrong at key or below it.
func (d *decoder) refused(key string) bool {
	return slices.ContainsFunc(d.errs, func(e *Error) bool { return strings.HasPrefix(e.Key, key) })
}
