// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
)

// The host that creates a group waits for three members, and then writes to the memory of
// all of them at once.
func ExampleMaster() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, err := soft.Open(soft.Config{Interface: "eth0"})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	ln, err := net.Listen("tcp", ":7000")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()

	key := []byte("a secret of 32 bytes or more, from a file")
	group, err := endpoint.Master(ctx, endpoint.MasterConfig{
		Local: endpoint.Local{
			Device:     dev,
			HostConfig: endpoint.HostConfig{Auth: endpoint.Auth{Keys: endpoint.Keys{1: key}, Send: 1}},
		},
		Listener: ln, Members: 3,
		GroupIP: netip.MustParseAddr("10.77.254.1"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()

	data := []byte("to all of you")
	mr, err := dev.RegisterMemory(data, 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	window := group.Info().Window
	_, err = group.QP().PostSend(endpoint.SendWR{
		ID: 1, Op: endpoint.Write, Local: endpoint.Segment{MR: mr, Len: len(data)},
		RemoteAddr: window.Base, RKey: window.RKey,
	})
	if err != nil {
		log.Fatal(err)
	}
	done := make([]endpoint.Completion, 1)
	if _, err := group.QP().Poll(ctx, done); err != nil {
		log.Fatal(err)
	}
	if err := done[0].Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("all members have it")
}

// A member offers 1 MiB of memory, and follows the events of the group.
func ExampleMember() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, err := soft.Open(soft.Config{Interface: "eth0"})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	mr, err := dev.RegisterMemory(make([]byte, 1<<20), 0, endpoint.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	key := []byte("a secret of 32 bytes or more, from a file")
	group, err := endpoint.Member(ctx, endpoint.MemberConfig{
		Local: endpoint.Local{
			Device: dev, Memory: mr,
			HostConfig: endpoint.HostConfig{Auth: endpoint.Auth{Keys: endpoint.Keys{1: key}, Send: 1}},
		},
		Master: "10.77.0.1:7000",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	for {
		switch e := <-group.Events(); e.Kind {
		case endpoint.Joined:
			fmt.Println("joined")
		default:
			fmt.Println("out of the group:", e.Kind, e.Reason)
			return
		}
	}
}

// The error of failed work names the usual cause.
func ExampleCompletion_Err() {
	c := endpoint.Completion{ID: 7, Status: endpoint.RNRRetryExceeded, QPN: 0x4711}
	fmt.Println(c.Err())
	// Output: QP 0x4711: work request 7: RNR retry counter exceeded (status 13): a receiver has no receive posted
}
