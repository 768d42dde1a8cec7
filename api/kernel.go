// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "net/http"

// Kernel is what the kernel has of what gleamd uses.
type Kernel struct {
	Release    string          `json:"release"`
	Features   []KernelFeature `json:"features"`
	Interfaces []XDPInterface  `json:"interfaces,omitempty"` // ports, or all Ethernet interfaces where no gleamd runs; absent before Linux 6.3, which does not say
	Degraded   []Degradation   `json:"degraded"`             // what gleamd does without, or less well
}

// States of a feature.
const (
	FeaturePresent = "present"
	FeatureAbsent  = "absent"
	FeatureUnknown = "unknown" // the kernel does not say, or not to this user
)

// KernelFeature is a part of the kernel that gleamd uses.
type KernelFeature struct {
	Name     string `json:"name"`
	State    string `json:"state"`            // FeaturePresent; absent; unknown
	Detail   string `json:"detail,omitempty"` // its setting, or why it is absent or unknown
	Use      string `json:"use"`              // what gleamd uses it for
	Required bool   `json:"required"`         // gleamd does not start without it
}

// XDPInterface is what the driver of an interface has for XDP.
type XDPInterface struct {
	Name        string `json:"name"`
	Driver      string `json:"driver"`       // empty if unknown
	Native      bool   `json:"native"`       // XDP in the driver; else gleamd uses generic XDP
	ZeroCopy    bool   `json:"zero_copy"`    // AF_XDP without copies
	MultiBuffer bool   `json:"multi_buffer"` // native XDP of packets in several buffers
	Redirect    bool   `json:"redirect"`     // true: the interface takes frames that XDP redirects to it now
}

// Degradation is something that gleamd does without, or less well, because of this machine.
type Degradation struct {
	Feature string `json:"feature,omitempty"` // the feature that is absent
	Port    string `json:"port,omitempty"`    // the port concerned
	Text    string `json:"text"`
	Cost    string `json:"cost"` // what comes of it
}

func (h *handler) kernel(*http.Request, string) (any, error) { return h.backend.Kernel() }
