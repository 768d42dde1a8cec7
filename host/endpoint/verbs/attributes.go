// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// pathMTUCode is enum ibv_mtu.
func pathMTUCode(bytes int) (uint32, error) {
	if code := rocev2.PathMTUCode(bytes); code != 0 {
		return code, nil
	}
	return 0, fmt.Errorf("path MTU %d: want %s", bytes, rocev2.PathMTUText)
}

// completeQP fills in defaults and checks cfg against what the verbs can say
// and what the device can do.
func completeQP(cfg *endpoint.QPConfig, workRequests, completions int) error {
	setDefault(&cfg.MaxSend, 128)
	setDefault(&cfg.MaxRecv, 128)
	setDefault(&cfg.Timeout, 14)
	setDefault(&cfg.RetryCount, 7)
	setDefault(&cfg.RNRRetry, 7)
	setDefault(&cfg.MinRNRTimer, 640*time.Microsecond)
	setDefault(&cfg.HopLimit, 64)
	switch {
	case cfg.Timeout > 31:
		return fmt.Errorf("timeout code %d: want 1 to 31 (4.096 µs * 2^code)", cfg.Timeout)
	case cfg.RetryCount > 7:
		return fmt.Errorf("retry count %d: want 1 to 7", cfg.RetryCount)
	case cfg.RNRRetry > 7:
		return fmt.Errorf("RNR retry count %d: want 1 to 7", cfg.RNRRetry)
	case cfg.MinRNRTimer < 0 || cfg.MinRNRTimer > maxRNRTimer:
		return fmt.Errorf("RNR timer of %v: want at most %v", cfg.MinRNRTimer, maxRNRTimer)
	case cfg.SQPSN > rocev2.PSNMask || cfg.RQPSN > rocev2.PSNMask:
		return fmt.Errorf("PSNs 0x%x, 0x%x: want 24 bits", uint32(cfg.SQPSN), uint32(cfg.RQPSN))
	case cfg.MaxSend < 1 || cfg.MaxRecv < 1 || cfg.MaxSend > workRequests || cfg.MaxRecv > workRequests:
		return fmt.Errorf("queues of %d sends and %d receives: want 1 to %d", cfg.MaxSend, cfg.MaxRecv, workRequests)
	case cfg.MaxSend+cfg.MaxRecv > completions:
		return fmt.Errorf("%d sends and %d receives: the device's completion queues hold %d", cfg.MaxSend, cfg.MaxRecv, completions)
	}
	return nil
}

// maxRNRTimer is the longest that there is a code for.
const maxRNRTimer = 655360 * time.Microsecond

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// checkRemote finds what the device would refuse, or worse accept.
func checkRemote(local netip.Addr, to endpoint.Remote, active int) error {
	if !to.IP.IsValid() || to.IP.BitLen() != local.BitLen() {
		return fmt.Errorf("%s is not of the same family as the queue pair's own address %s", to.IP, local)
	}
	if to.IP.IsMulticast() || to.IP.IsUnspecified() {
		return fmt.Errorf("%s is not a unicast address: a group has one, too", to.IP)
	}
	if !to.QPN.Valid() {
		return fmt.Errorf("QPN 0x%x: want 0x10 to 0xfffffe", uint32(to.QPN))
	}
	if to.RQPSN > rocev2.PSNMask {
		return fmt.Errorf("PSN 0x%x: want 24 bits", uint32(to.RQPSN))
	}
	if _, err := pathMTUCode(to.PathMTU); err != nil {
		return err
	}
	if to.PathMTU > active {
		return fmt.Errorf("path MTU %d is above the port's active MTU %d: raise the interface's MTU to %d or more (ip link set mtu)", to.PathMTU, active, to.PathMTU+linkRoom)
	}
	return nil
}

// linkRoom is what Linux reckons headers to need beside the payload
// (rxe_param.h, RXE_MAX_HDR_LENGTH).
const linkRoom = 80
