// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Limits bound the group table and the packets of a port.
type Limits struct {
	// A reload raises groups and members_per_group no further than they were at the start. Lowered
	// below what is registered they keep that, and refuse what is new.
	Groups          int `yaml:"groups" range:"1 1048576" default:"1024" reload:"sized"`
	MembersPerGroup int `yaml:"members_per_group" range:"2 65535" default:"1024" reload:"sized"`
	// A source that is silent for this time while another member waits to send, and
	// is inside a message or has data in flight, loses its turn: the group fails inside a
	// message, else receivers that lack its data are removed, if the policy allows.
	// It is at least the time after which the source fails by itself, where its timeout
	// and retries are declared.
	SourceTimeout       time.Duration `yaml:"source_timeout" range:"10ms 1h" default:"2s"`
	NAKsPerPort         int           `yaml:"naks_per_port" range:"0 1000000000" default:"100000"`       // NAK, RNR NAK and CNP
	EnvelopesPerPort    int           `yaml:"envelopes_per_port" range:"0 1000000000" default:"2000"`    // registration
	EnvelopesPerAddress int           `yaml:"envelopes_per_address" range:"0 1000000000" default:"1000"` // envelopes from one source address, before the port's own limit
	NeighboursPerPort   int           `yaml:"neighbours_per_port" range:"0 1000000000" default:"1000"`   // ARP requests and neighbour solicitations
}

// Repair is how groups repair losses from the switch's memory.
type Repair struct {
	GroupBytes int           `yaml:"per_group" range:"0 1073741824" default:"4194304"` // bytes that one group may retain, in whole frames; 0: off
	TotalBytes int           `yaml:"total" range:"0 1073741824" default:"0"`           // all groups together; 0 is the most there can be, an eighth of the UMEM
	Timeout    time.Duration `yaml:"timeout" range:"100us 10s" default:"4ms"`          // probe timeout of a receiver from which an ACK is expected, or its usual round trip if that is longer
	Tries      int           `yaml:"tries" range:"1 255" default:"4"`                  // times that the same packet is sent again, before the source has to
}

// RepairTotal returns Repair.Total with its default.
func (c *Config) RepairTotal() int {
	if c.Repair.TotalBytes == 0 {
		return c.UMEM.Frames * c.UMEM.FrameSize / 8
	}
	return c.Repair.TotalBytes
}

// XDP configures programs and sockets at the ports.
type XDP struct {
	// auto: native, else generic (logged); native; generic. The default of all ports, which
	// may have one of their own (ports, xdp).
	Mode XDPMode `yaml:"mode" choice:"auto, native, generic" default:"auto"`
	// auto: try, else copy (logged); never; always.
	ZeroCopy ZeroCopy `yaml:"zero_copy" choice:"auto, never, always" default:"auto"`
	// true: with several workers and queues, ntuple rules make the NIC (ethtool
	// -N) receive each group's packets by a queue of the worker that the group
	// belongs to, which saves the handoff. They are removed when gleamd ends. Where
	// a NIC has no such rules, or no room for one, that is logged.
	NTuple bool `yaml:"ntuple" default:"false"`
}

// XDPMode is where in the receive path the XDP program runs.
type XDPMode string

// XDP modes.
const (
	XDPDefault XDPMode = "default" // the mode of all ports, for a port
	XDPAuto    XDPMode = "auto"    // native, else generic
	XDPNative  XDPMode = "native"  // the driver; gleamd fails without it
	XDPGeneric XDPMode = "generic" // the stack: it works with every driver, slower
)

// XDPModeOf returns the mode that is configured for a port.
func (c *Config) XDPModeOf(p *Port) XDPMode {
	if p.XDP.Mode == "" || p.XDP.Mode == XDPDefault {
		return c.XDP.Mode
	}
	return p.XDP.Mode
}

// FastPath is whether groups take the fast path: XDP programs replicate their data, and
// store it for repair.
type FastPath string

// Fast path choices.
const (
	FastPathOff     FastPath = "off"     // no group does
	FastPathRequire FastPath = "require" // gleamd does not start where none could
)

// ZeroCopy is whether AF_XDP sockets share their memory with the hardware.
type ZeroCopy string

// Zero-copy choices.
const (
	ZeroCopyNever  ZeroCopy = "never"  // copy
	ZeroCopyAlways ZeroCopy = "always" // zero copy, or failure
)

// UMEM is the packet memory that all ports share.
type UMEM struct {
	Frames    int `yaml:"frames" kind:"power" range:"256 4194304" default:"16384"`  // power of two, at least 128 per port
	FrameSize int `yaml:"frame_size" kind:"power" range:"2048 4096" default:"4096"` // 2048 or 4096
}

// Rings are the entries of each AF_XDP ring, per queue.
type Rings struct {
	RX         int `yaml:"rx" kind:"power" range:"64 65536" default:"2048"`
	TX         int `yaml:"tx" kind:"power" range:"64 65536" default:"2048"`
	Fill       int `yaml:"fill" kind:"power" range:"64 65536" default:"2048"`
	Completion int `yaml:"completion" kind:"power" range:"64 65536" default:"2048"`
}

// Worker configures the goroutines that move the packets. One worker is made for each of CPUs; -1 is any CPU.
type Worker struct {
	// The CPU that the worker stays on; -1 means any. A list, such as [2, 3], makes
	// one worker for each of its entries: every group belongs to one of them, and
	// the RX queues of all ports are spread over them. What is bounded for a port
	// above (limits) is then bounded for a port and worker, and each worker's groups
	// share an equal part of repair.total; umem.frames should grow with them.
	// Workers poll only if each has a CPU to itself and one is left.
	CPUs  []int         `yaml:"cpu" kind:"cpus" range:"-1 8191" default:"-1"`
	Spin  time.Duration `yaml:"spin" range:"0s 10ms" default:"50us"` // busy polling before it sleeps, up to 16 times as long if packets come that often; 0 to 10ms
	Batch int           `yaml:"batch" range:"1 1024" default:"64"`   // packets at once, 1 to 1024
}

// Log configures gleamd's log on standard error.
type Log struct {
	Level  LogLevel  `yaml:"level" choice:"debug, info, warn, error" default:"info"` // debug, info, warn, error; lines "audit", with the author of each change, are written at any level
	Format LogFormat `yaml:"format" choice:"console, json" default:"console"`        // console, json
}

// LogLevel is the least severe level that is logged.
type LogLevel string

// LogInfo is the default level.
const LogInfo LogLevel = "info"

// LogFormat is the format of a log line.
type LogFormat string

// LogConsole is the format for people, and for the journal.
const LogConsole LogFormat = "console"
