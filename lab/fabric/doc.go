// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package fabric makes networks of several switches in a lab: leaf-spine, fat-tree, or as
// a YAML file describes them. Every switch is a network namespace that routes IPv4 and
// IPv6, with all shortest paths (ECMP): by static routes, or by FRR's daemons with BGP
// unnumbered or OSPF. Hosts of a switch are on its bridge.
//
// FRR's daemons of a switch are in a process namespace of their own with a supervisor as
// its first process, and in a mount namespace with a /run of their own. So the end of the
// supervisor is the end of the daemons, and they leave no file.
//
// A file has nodes, and links with MTU, loss, rate and delay. Frames are counted on each link outside of the switches:
// a packet socket sees neither what XDP takes nor what AF_XDP sends.
package fabric
