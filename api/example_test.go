// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gleam-rdma/gleam/api"
)

// A program lists the groups of the switch on its own machine whose ACK waits for a member.
func ExampleDial() {
	client := api.Dial(api.DefaultSocket)
	defer client.Close()
	groups, err := client.Groups(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		if g.WaitsFor.IsValid() {
			fmt.Println(g.IP, "waits for", g.WaitsFor, "after PSN", g.AckPSN)
		}
	}
}

// A program reads the counters of a switch that is elsewhere.
func ExampleDialTLS() {
	files, err := api.LoadCertificates("me.crt", "me.key", "api-ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	client, err := api.DialTLS("10.255.0.1:4798", files)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	stats, err := client.Stats(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Groups, "groups, lost packets by reason:", stats.Drops)
}
