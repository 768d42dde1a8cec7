// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Command prisoner enters the sandbox and then does what its argument says.
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/confine/sandbox"
)

func main() {
	uid, _ := strconv.Atoi(os.Args[2])
	if err := sandbox.Enter(sandbox.Limits{UID: uid, GID: uid, Capabilities: []int{unix.CAP_NET_ADMIN}}); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	var err error
	switch os.Args[1] {
	case "nothing":
	case "exec":
		err = unix.Exec("/bin/true", []string{"true"}, nil)
	case "fork":
		_, err = os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	case "packets":
		_, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "file":
		_, err = os.ReadFile(os.Args[3])
	case "root":
		err = unix.Setuid(0)
	case "namespace":
		err = unix.Unshare(unix.CLONE_NEWNET)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(4)
	}
}
