// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration file of gleamd.
//
// The file is YAML and strict: an unknown or repeated key, a value of the wrong
// type or out of range is an error that names file, line, key and the offending
// text, and all errors of a file are reported together. Secrets are never part of
// an error, nor of any printed or marshalled form of a Config. So the tree of the YAML library's
// parser is read here: its decoder stops at the first error, and its excerpts would print secrets.
//
// A key is one row: a field of Config, or of a section below it. The field's comment is its
// text in reference.yaml, which TestReference makes of the rows. Its tags are
//
//	yaml      the name of the key
//	range     the least and the greatest value of a number or duration
//	choice    the words that it may be
//	kind      a form that its type does not tell (values.go)
//	unique    what no other value of the same list may be
//	default   the value in a file without the key, in YAML
//	required  in place of default: the value that reference.yaml shows
//	example   in place of default: the value that reference.yaml shows in a comment
//	reload    a reload applies a change; sized: up to the size at the start
//	restart   the reason for which a change needs a restart
//
// What has neither reload nor restart is as its section. Method check of a section compares its
// keys with each other.
package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/parser"
)

// Config is a valid and complete configuration: Parse has filled in defaults for
// missing keys. The values all, auto and none, where they are no words of a choice, and off
// for ECN are the zero value of a field.
type Config struct {
	// The interfaces the switch serves. Required. Group traffic is taken from them;
	// all other traffic stays with the kernel, so they may be ports of a bridge. A reload adds up
	// to 16 ports to those of the start; it removes one with members behind it by --force alone.
	// A port whose interface is deleted and made anew is taken up again by itself.
	Ports []Port `yaml:"ports" required:"- name: p2" reload:"applied"`

	// The addresses that groups may have. Required; prefixes do not overlap. The
	// switch answers ARP and neighbour solicitations for all of them. Unicast only:
	// members get packets *from* their GroupIP, and hosts drop packets from a
	// multicast source address. A reload refuses to remove a prefix that groups are
	// in, unless by force (gleam reload --force): they end.
	GroupPrefixes []netip.Prefix `yaml:"group_prefixes" required:"- 10.77.254.0/24\n- fd77::6c65:0/112" reload:"applied"`

	// Registration of groups from the wire.
	Envelope Envelope `yaml:"envelope"`

	// This switch among other gleamd switches, for groups whose members are behind several of
	// them. Without keys it sends no hellos and hears none, and is the only switch of its groups.
	Switch Switch `yaml:"switch"`

	// The socket that the gleam command talks to. Root, the user that gleamd runs as and the
	// members of group may change groups and ports, as the kernel names the caller;
	// all other users that can connect may read. mode is the socket's permission bits, in octal:
	// "0666" lets every user read. If read_group is set only its members may read, of users
	// without the right to change, and mode is "0666". A group that does not exist has no members.
	API API `yaml:"api" restart:"the sockets are made before privileges are given up"`

	// A page for browsers that shows groups, members, ports and events as they change
	// (docs/WEB.md). It changes nothing. Without listen there is none.
	Web Web `yaml:"web" restart:"its socket is made before privileges are given up"`

	// Metrics for Prometheus (docs/METRICS.md), at http://LISTEN/metrics. Without listen and
	// socket there are none.
	Metrics Metrics `yaml:"metrics" restart:"its socket is made before privileges are given up"`

	// The user that gleamd becomes once it has its ports, by name or by number; never
	// root. auto: gleam if there is a user of this name, else a number that no user has
	// (61797). It keeps CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, can gain none, and most
	// system calls are forbidden to it; without all that it does not start. Keys and configuration are
	// read before, as root. gleamd may be started as this user, too, which then has to be
	// able to read them (chgrp gleam FILE; chmod 640 FILE), with the capabilities that the
	// error names: contrib/systemd/gleamd-unprivileged.conf does that for the service.
	User string `yaml:"user" kind:"user" default:"auto" restart:"privileges are given up once"`

	// Size of the group table, how long a source may keep others waiting, and how many
	// packets a second are taken from one port of those with which a host could bother
	// others; 0 means no limit.
	Limits Limits `yaml:"limits" reload:"applied"`

	// Losses between the switch and a receiver are repaired from the switch's memory:
	// it retains unacknowledged packets, and resends those that a receiver lacks to that
	// receiver alone. Without room for a packet the source repairs its loss. A
	// group can be registered without repair.
	Repair Repair `yaml:"repair" restart:"its memory is divided at start"`

	// A member is pinned where it was registered: port, MAC address and VLAN. If frames in
	// its name come from elsewhere, it gets an inquiry there by an authenticated envelope, and
	// moves if it answers from there. This is the policy for a member that does not, since
	// the frames were forged, or since it has no program that answers envelopes (a group
	// that was registered by hand):
	//   stay    it stays where it was, with a warning. `gleam group move-member` moves it.
	//   follow  for trusted networks: members are not pinned, the kernel's forwarding
	//           database and neighbour table have their locations, at registration too, where
	//           else each member has to confirm. One forged frame moves a member.
	//   evict   it is evicted if it does not answer from its old location either. Under the
	//           policy strict, which evicts no member, it stays.
	UnconfirmedMoves MovePolicy `yaml:"unconfirmed_moves" choice:"stay, follow, evict" default:"stay" restart:"members are pinned, or not, from the start"`

	// Before a new member gets data, a packet without effect has it show which PSN it
	// expects. A message waits for that; a member with other numbers than it was
	// registered with never counts. This is the first wait for an answer, doubled each
	// time. 0s switches the check off: a member with wrong numbers may then acknowledge
	// messages that it did not get. Use 0s only where receivers are test programs that
	// answer no duplicate, and no RC queue pairs.
	PSNProbe time.Duration `yaml:"psn_probe" range:"0s 1s" default:"2ms" restart:"the workers are made with it"`

	// The folder in which gleamd keeps its groups over a restart, by SIGTERM, kill -9 or loss of
	// power: transfers go on, without any host having to do something. It is made at the start if
	// it is missing. It has mode 0700, belongs to root or the user above, and has nothing else in it. Without this key a restart ends all
	// groups. Before the data of a new source is forwarded the folder has the positions of its
	// members, so where sources change often take one on a fast disk; one in memory (below
	// /run) is good for all but loss of power. Registrations, Leaves and connections are answered
	// when the folder has them. While it cannot be written groups go on, and no members are
	// taken. Groups with psn_probe 0s are not kept.
	State string `yaml:"state" kind:"folder" example:"/var/lib/gleam" restart:"the file is opened before privileges are given up"`

	// How the XDP program and the AF_XDP sockets attach.
	XDP XDP `yaml:"xdp" restart:"the XDP programs are loaded with it"`

	// The fast path: XDP programs replicate the data of groups that flow without loss or
	// change, and store it for repair. Everything else is left to the workers.
	//   off      no group takes it.
	//   auto     those that can do: with local repair, and ports that run
	//            XDP natively, without a rate.
	//   require  as auto, and gleamd does not start if it cannot load the programs; it refuses
	//            groups that could never take it: without local repair, for example.
	FastPath FastPath `yaml:"fast_path" choice:"off, auto, require" default:"auto" restart:"the XDP programs are loaded with it"`

	// Memory that stores the packets of all groups on the fast path together, in bytes. They share it by
	// need: 32 KiB to 2 MiB each, 64 KiB to 4 MiB with a path MTU of 2048 or 4096. A group that finds no
	// room stays with the workers until one without data gives up its part. It is allocated at
	// start, unless fast_path is off.
	FastPathMemory int `yaml:"fast_path_memory" range:"1048576 1073741824" default:"33554432" restart:"its maps are made at start"` // 1 MiB to 1 GiB

	// Packet memory, shared by all ports and locked into RAM: frames × frame_size
	// bytes. A frame holds 256 bytes of headroom and a packet, or a part
	// of one: at ports whose MTU is larger than that, packets take several frames each.
	// With 4096 that is so from an MTU of 3507 on, with 2048 from 1771 on.
	UMEM UMEM `yaml:"umem" restart:"the memory is registered with all sockets"`

	// Entries of the AF_XDP rings of each queue: powers of two, 64 to 65536.
	Rings Rings `yaml:"rings" restart:"the sockets are opened with them"`

	// The workers that move the packets.
	Worker Worker `yaml:"worker" restart:"the workers are made with it"`

	// What gleamd writes to standard error. As a service of systemd, console writes to the journal
	// by its own protocol: each field of an entry is one of the journal's, in capitals, such as
	// GROUP, MEMBER and PORT, and GLEAM_MESSAGE is the text without its fields.
	Log Log `yaml:"log" restart:"the log is opened at start"`
}

// UserAuto is the user gleam if there is one, else one without a name.
const UserAuto = "auto"

// MovePolicy is the policy for a member that is seen elsewhere than where it is pinned,
// and does not confirm its move by an authenticated envelope from there.
type MovePolicy string

// Choices for moves that are not confirmed.
const (
	MoveFollow MovePolicy = "follow" // members are not pinned, and get no inquiries: the kernel's location counts
	MoveEvict  MovePolicy = "evict"  // a member that does not answer from its old location either is evicted
)

// Default returns the configuration of a file with the required keys only. The required
// keys are empty: ports, group_prefixes and (unless insecure) keys.
func Default() *Config {
	c := *defaults()
	c.Worker.CPUs = slices.Clone(c.Worker.CPUs)
	return &c
}

// defaults parses the defaults once: that takes a millisecond.
var defaults = sync.OnceValue(func() *Config {
	c := new(Config)
	setDefaults(reflect.ValueOf(c).Elem())
	return c
})

// setDefaults gives the keys of a section their defaults.
func setDefaults(section reflect.Value) {
	d := new(decoder)
	for i := range section.NumField() {
		at, row := section.Field(i), section.Type().Field(i)
		if isSection(row.Type) {
			setDefaults(at)
			continue
		}
		if text := row.Tag.Get("default"); text != "" {
			file, err := parser.ParseBytes([]byte(text), 0)
			if err != nil {
				panic(err)
			}
			d.read(at, row.Tag, value{node: file.Docs[0].Body, key: row.Name})
		}
	}
	if len(d.errs) > 0 {
		panic(d.errs)
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
