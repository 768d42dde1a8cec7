// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Allow lists the hosts that may send by a port; an empty list allows all.
type Allow struct {
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	MACs      []string       `json:"macs,omitempty"`
}

// XDPGeneric is the mode of a port whose driver has no XDP.
const XDPGeneric = "generic"

// PortOpen is the state of a port that has its interface.
const PortOpen = "open"

// Port is one port of the switch.
type Port struct {
	Name     string            `json:"name"`
	Ifindex  int               `json:"ifindex"`
	Driver   string            `json:"driver"` // the driver of the interface; empty if unknown
	MAC      string            `json:"mac"`
	MTU      int               `json:"mtu"`
	Up       bool              `json:"up"`
	Blocked  bool              `json:"blocked,omitempty"`   // block by the interface's bridge, as of spanning tree: it has a carrier, and is not up
	Unheard  string            `json:"unheard,omitempty"`   // why its frames do not come to gleamd
	State    string            `json:"state"`               // PortOpen; lost: its interface has vanished; opening; refused: one of its name cannot be opened
	Reason   string            `json:"reason,omitempty"`    // why it is refused
	Downs    uint64            `json:"downs"`               // times that it went down, since gleamd started
	LastDown *time.Time        `json:"last_down,omitempty"` // the time when the port went down last
	Reopened uint64            `json:"reopened"`            // times that the port was taken up again at an interface made anew
	XDPMode  string            `json:"xdp_mode"`            // native; XDPGeneric
	ZeroCopy bool              `json:"zero_copy"`           // true: AF_XDP works without copies
	Queues   int               `json:"queues"`              // queues to receive from
	VLAN     uint16            `json:"vlan,omitempty"`
	RxFrames uint64            `json:"rx_frames"` // taken from AF_XDP
	RxBytes  uint64            `json:"rx_bytes"`  // bytes of these frames
	TxFrames uint64            `json:"tx_frames"` // handed to the kernel
	TxBytes  uint64            `json:"tx_bytes"`  // bytes of these frames, on an Ethernet link
	Bridge   string            `json:"bridge"`    // its bridge's state of it, or none
	Allow    Allow             `json:"allow"`
	Rate     linkrate.Rate     `json:"rate"` // bit/s that group frames leave at; 0: no limit
	Egress   Egress            `json:"egress"`
	Worker   int               `json:"worker"`  // the worker that transmits, from 0
	Sockets  []Socket          `json:"sockets"` // the AF_XDP sockets, one for each queue
	XDP      map[string]uint64 `json:"xdp"`     // exits of the XDP program by reason

	Guard map[string]GuardDrop `json:"guard,omitempty"` // the last frames that the port guard has dropped, by reason

	Device *DeviceCounters `json:"device,omitempty"` // absent if the interface is gone

	FastPath *PortFastPath `json:"fast_path,omitempty"` // absent if fast_path is off
}

// GuardDrop is the last frame that the port guard has dropped for a reason.
type GuardDrop struct {
	MAC  string    `json:"mac"`  // its sender's
	Time time.Time `json:"time"` // time of the look that found it, a second later at most
}

// Socket is an AF_XDP socket of a port with the fill of its rings.
type Socket struct {
	Queue      int  `json:"queue"`
	Worker     int  `json:"worker"`     // the worker that receives from the socket
	RX         Ring `json:"rx"`         // received packets that wait for the worker
	Fill       Ring `json:"fill"`       // frames to receive into
	TX         Ring `json:"tx"`         // frames that wait for the kernel
	Completion Ring `json:"completion"` // sent frames that wait for the worker

	Kernel SocketCounters `json:"kernel"`
}

// Ring is the fill of a ring.
type Ring struct {
	Used int `json:"used"` // entries
	Size int `json:"size"`
}

// Egress is the queue of group frames in front of a port. Bytes are those on an
// Ethernet link. Frames that the kernel has yet to send are included.
type Egress struct {
	Bytes         int     `json:"bytes"`      // bytes that wait now
	Frames        int     `json:"frames"`     // frames that wait now
	MaxDepthBytes int     `json:"high_bytes"` // the most that have waited
	MaxBytes      int     `json:"max_bytes"`  // the most bytes that may wait to be handed to the kernel
	MaxFrames     int     `json:"max_frames"`
	Dropped       uint64  `json:"dropped"`   // copies and answers that found no room
	Deferred      uint64  `json:"deferred"`  // times that copies were left in a repair store, for want of room
	CEMarked      uint64  `json:"ce_marked"` // copies that got Congestion Experienced here
	ECNKMin       int     `json:"ecn_kmin"`  // bytes; up to here no frame is marked
	ECNKMax       int     `json:"ecn_kmax"`  // bytes; above, everything; 0: marking is off
	ECNPMax       float64 `json:"ecn_pmax"`  // share that is marked at ecn_kmax
}

// SetPort is a change of a port. Omitted fields stay.
type SetPort struct {
	Rate *linkrate.Rate `json:"rate,omitempty"` // bit/s; 0: no limit
}

// ReasonUnknownPort means that no port has this name: status 404.
const ReasonUnknownPort = "unknown_port"

// Validate returns the first error of s.
func (s *SetPort) Validate() error {
	if s.Rate == nil {
		return errors.New("nothing to change: give a rate")
	}
	if err := s.Rate.Validate(); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	return nil
}

// DecodeSetPort reads one SetPort as strictly as DecodeRegister reads, and
// validates it.
func DecodeSetPort(body io.Reader) (*SetPort, error) {
	s := new(SetPort)
	if err := decode(body, s, "change of a port"); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

func (h *handler) setPort(r *http.Request, name string) (any, error) {
	s, err := DecodeSetPort(r.Body)
	if errors.Is(err, errTooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "%s", err)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	describe(r, netip.Addr{}, "set port %s: rate %s", name, s.Rate)
	return nil, h.backend.SetPort(name, s)
}

// SetPort changes a port until the daemon ends. For an unknown port the error is an
// *Error with ReasonUnknownPort.
func (c *Client) SetPort(ctx context.Context, name string, s *SetPort) error {
	return c.call(ctx, "PATCH", "/v1/ports/"+url.PathEscape(name), s, nil)
}
