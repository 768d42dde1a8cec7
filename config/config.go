// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration file of gleamd.
//
// The file is YAML and strict: an unknown or repeated key, a value of the wrong
// type or out of range is an error that names file, line, key and the offending
// text, and all errors of a file are reported together. reference.yaml lists
// every key with its default. Secrets are never part of an error, nor of any
// printed or marshalled form of a Config.
package config

import (
	"io/fs"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Config is a valid and complete configuration: Parse has filled in defaults for
// missing keys.
type Config struct {
	Ports            []Port         `yaml:"ports"`
	GroupPrefixes    []netip.Prefix `yaml:"group_prefixes"` // unicast, masked, disjoint
	Envelope         Envelope       `yaml:"envelope"`
	Switch           Switch         `yaml:"switch"`
	API              API            `yaml:"api"`
	Web              Web            `yaml:"web"`
	Metrics          Metrics        `yaml:"metrics"`
	User             string         `yaml:"user"` // that gleamd runs as once it has its ports: name, number or UserAuto
	Limits           Limits         `yaml:"limits"`
	Repair           Repair         `yaml:"repair"`
	UnconfirmedMoves MovePolicy     `yaml:"unconfirmed_moves"`
	PSNProbe         time.Duration  `yaml:"psn_probe"` // first wait for a member's answer to a keepalive probe; 0: no probes
	State            string         `yaml:"state"`     // folder in which groups are kept over a restart; "": nowhere
	XDP              XDP            `yaml:"xdp"`
	FastPath         FastPath       `yaml:"fast_path"`
	FastPathMemory   int            `yaml:"fast_path_memory"` // bytes of all rings of the fast path
	UMEM             UMEM           `yaml:"umem"`
	Rings            Rings          `yaml:"rings"`
	Worker           Worker         `yaml:"worker"`
	Log              Log            `yaml:"log"`
}

// MovePolicy is the policy for a member that is seen elsewhere than where it is pinned,
// and does not confirm its move by an authenticated envelope from there.
type MovePolicy string

// Choices for moves that are not confirmed.
const (
	MoveStay   MovePolicy = "stay"   // the member stays where it was
	MoveFollow MovePolicy = "follow" // members are not pinned, and get no inquiries: the kernel's location counts
	MoveEvict  MovePolicy = "evict"  // it is evicted if it does not answer from its old location either
)

// Port is an interface that the switch serves.
type Port struct {
	Name   string        `yaml:"name"`
	Queues []int         `yaml:"queues"` // RX queues to bind, ascending; nil means all
	VLAN   int           `yaml:"vlan"`   // VID of the tag that group frames leave with; 0 means none
	Rate   linkrate.Rate `yaml:"rate"`   // at which group frames leave; none means as fast as the interface takes them
	Queue  int           `yaml:"queue"`  // bytes that may wait to leave
	ECN    ECN           `yaml:"ecn"`
	Allow  Allow         `yaml:"allow"`
	XDP    PortXDP       `yaml:"xdp"`
}

// PortXDP configures the XDP program of a port.
type PortXDP struct {
	Mode XDPMode `yaml:"mode"` // XDPDefault: that of Config.XDP
}

// ECN has the queue depths from which on a port marks Congestion Experienced. The zero
// value is off.
type ECN struct {
	KMin int     `yaml:"kmin"` // bytes; up to here no frame is marked
	KMax int     `yaml:"kmax"` // bytes; above, everything
	PMax float64 `yaml:"pmax"` // share that is marked at kmax, 0 to 1
}

// DefaultQueue is the length of a port's queue, in bytes.
const DefaultQueue = 256 << 10

// defaultECN returns the thresholds of a queue of that many bytes: some frames are
// marked from an eighth on, and all above half, well before frames are dropped.
func defaultECN(queue int) ECN {
	return ECN{KMin: queue / 8, KMax: queue / 2, PMax: 0.2}
}

// HasOwnECN reports whether the port marks by other thresholds than those that follow from its
// queue.
func (p *Port) HasOwnECN() bool { return p.ECN != ECN{} && p.ECN != defaultECN(p.Queue) }

// Envelope configures group registration from the wire.
type Envelope struct {
	UDPPort       uint16        `yaml:"udp_port"`
	Insecure      bool          `yaml:"insecure"` // accept unauthenticated envelopes; then Keys is empty
	Keys          []Key         `yaml:"keys"`
	LeaseMax      time.Duration `yaml:"lease_max"`      // longest lease granted
	LocateTimeout time.Duration `yaml:"locate_timeout"` // for the location of a registration's members
}

// Key authenticates envelopes. Its ID travels with the envelope.
type Key struct {
	ID         uint16 `yaml:"id"`          // not 0, which on the wire means unauthenticated
	SecretFile string `yaml:"secret_file"` // where Secret was read from; "" if it stood in the file
	Secret     Secret `yaml:"secret"`
	// Bounds of registrations under the key; 0 means no bound.
	MaxGroups  int           `yaml:"max_groups"`
	MaxMembers int           `yaml:"max_members"` // of all its groups together
	LeaseMax   time.Duration `yaml:"lease_max"`
	// Rights of the key. Prefixes are within group_prefixes.
	Roles    []Role         `yaml:"roles"`    // none: master and member
	Prefixes []netip.Prefix `yaml:"prefixes"` // of its groups' addresses; none: all
}

// Role is a kind of request that a key may be used for.
type Role string

// Roles of keys.
const (
	RoleMaster      Role = "master"       // register, renew, delete; remove members
	RoleMember      Role = "member"       // leave
	RoleReceiveOnly Role = "receive-only" // as member; a group that is registered under the key has one sender, the master's host
)

// UserAuto is the user gleam if there is one, else one without a name.
const UserAuto = "auto"

// API configures the Unix socket that gleam talks to, and the API over TCP.
type API struct {
	Socket string      `yaml:"socket"`
	Mode   fs.FileMode `yaml:"mode"`  // permission bits of the socket
	Group  string      `yaml:"group"` // group of users that the socket belongs to, if there is such a group; they may change groups
	// ReadGroup is a group of users who may read. "" means all users that Mode lets
	// connect.
	ReadGroup string `yaml:"read_group"`
	// Listen is the address of the API over TCP, by TLS with certificates of both ends; not
	// valid: there is none. Advertise is where neighbour switches say that it is.
	Listen    netip.AddrPort `yaml:"listen"`
	Advertise netip.AddrPort `yaml:"advertise"`
	// What it proves itself by, and the authorities for clients' certificates.
	Certificate *identity.File `yaml:"certificate"`
	Key         *identity.File `yaml:"key"`
	CA          *identity.File `yaml:"ca"`
	// Operators are the common names of certificates whose holders may change groups and
	// ports. All others may read.
	Operators []string `yaml:"operators"`
}

// Identity returns the files of the API over TCP.
func (a *API) Identity() *identity.Files {
	return &identity.Files{Certificate: a.Certificate, Key: a.Key, CA: a.CA}
}

// Limits bound the group table and the packets of a port.
type Limits struct {
	Groups          int `yaml:"groups"`
	MembersPerGroup int `yaml:"members_per_group"`
	// SourceTimeout is the time for which a source may be silent while another member
	// waits.
	SourceTimeout time.Duration `yaml:"source_timeout"`
	// The most packets a second that are taken from one port; 0 means no limit.
	NAKsPerPort      int `yaml:"naks_per_port"`      // NAK, RNR NAK and CNP
	EnvelopesPerPort int `yaml:"envelopes_per_port"` // registration
	// EnvelopesPerAddress is the most of them from one source address.
	EnvelopesPerAddress int `yaml:"envelopes_per_address"`

	NeighboursPerPort int `yaml:"neighbours_per_port"` // ARP requests and neighbour solicitations
}

// Repair is how groups repair losses from the switch's memory.
type Repair struct {
	GroupBytes int           `yaml:"per_group"` // bytes of packet memory that one group may retain; 0: no local repair
	TotalBytes int           `yaml:"total"`     // and all together; 0 means an eighth of the UMEM, which is the most
	Timeout    time.Duration `yaml:"timeout"`   // shortest probe timeout
	Tries      int           `yaml:"tries"`     // times that the same packet is sent again, before the source has to
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
	Mode     XDPMode  `yaml:"mode"`
	ZeroCopy ZeroCopy `yaml:"zero_copy"`
	NTuple   bool     `yaml:"ntuple"` // NICs put a group's packets into a queue of its worker
}

// XDPMode is where in the receive path the XDP program runs.
type XDPMode string

// XDP modes.
const (
	XDPDefault XDPMode = "default" // of a port: that of all
	XDPAuto    XDPMode = "auto"    // native, else generic
	XDPNative  XDPMode = "native"  // in the driver, or fail
	XDPGeneric XDPMode = "generic" // in the stack: works with every driver, slower
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
	FastPathAuto    FastPath = "auto"    // those that can do
	FastPathRequire FastPath = "require" // gleamd does not start where none could
)

// ZeroCopy is whether AF_XDP sockets share their memory with the hardware.
type ZeroCopy string

// Zero-copy choices.
const (
	ZeroCopyAuto   ZeroCopy = "auto"   // try, else copy
	ZeroCopyNever  ZeroCopy = "never"  // copy
	ZeroCopyAlways ZeroCopy = "always" // or fail
)

// UMEM is the packet memory that all ports share.
type UMEM struct {
	Frames    int `yaml:"frames"`     // power of two
	FrameSize int `yaml:"frame_size"` // bytes, 2048 or 4096
}

// Rings are the entries of each AF_XDP ring, per queue; powers of two.
type Rings struct {
	RX         int `yaml:"rx"`
	TX         int `yaml:"tx"`
	Fill       int `yaml:"fill"`
	Completion int `yaml:"completion"`
}

// Worker configures the goroutines that move the packets.
type Worker struct {
	CPUs  []int         `yaml:"cpu"`   // one worker for each, and the number of the CPU that it stays on; -1 means any
	Spin  time.Duration `yaml:"spin"`  // busy polling before sleeping in poll
	Batch int           `yaml:"batch"` // packets taken from a ring at once
}

// Log configures gleamd's log on standard error.
type Log struct {
	Level  LogLevel  `yaml:"level"`
	Format LogFormat `yaml:"format"`
}

// LogLevel is the least severe level that is logged.
type LogLevel string

// Log levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogFormat is the format of a log line.
type LogFormat string

// Log formats.
const (
	LogConsole LogFormat = "console"
	LogJSON    LogFormat = "json"
)

// Default returns the configuration of a file with the required keys only. The required
// keys are empty: ports, group_prefixes and (unless insecure) keys.
func Default() *Config {
	return &Config{
		Envelope:         Envelope{UDPPort: 4797, LeaseMax: 10 * time.Minute, LocateTimeout: 2 * time.Second},
		Switch:           Switch{HelloInterval: 100 * time.Millisecond, GracePeriod: 3 * time.Second},
		API:              API{Socket: "/run/gleam/gleamd.sock", Mode: 0o660, Group: "gleam"},
		Metrics:          Metrics{Groups: 50},
		User:             UserAuto,
		Limits:           Limits{Groups: 1024, MembersPerGroup: 1024, SourceTimeout: 2 * time.Second, NAKsPerPort: 100_000, EnvelopesPerPort: 2000, EnvelopesPerAddress: 500, NeighboursPerPort: 1000},
		Repair:           Repair{GroupBytes: 4 << 20, Timeout: 4 * time.Millisecond, Tries: 4},
		PSNProbe:         2 * time.Millisecond,
		UnconfirmedMoves: MoveStay,
		XDP:              XDP{Mode: XDPAuto, ZeroCopy: ZeroCopyAuto},
		FastPath:         FastPathOff,
		FastPathMemory:   32 << 20,
		UMEM:             UMEM{Frames: 16384, FrameSize: 4096},
		Rings:            Rings{RX: 2048, TX: 2048, Fill: 2048, Completion: 2048},
		Worker:           Worker{CPUs: []int{-1}, Spin: 50 * time.Microsecond, Batch: 64},
		Log:              Log{Level: LogInfo, Format: LogConsole},
	}
}
