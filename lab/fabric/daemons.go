// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// frrFolder is where Debian's package frr has the daemons.
const frrFolder = "/usr/lib/frr"

// FRRInstalled returns nil if FRR's daemons are installed.
func FRRInstalled() error {
	for _, d := range []string{"zebra", "bfdd", "bgpd", "ospfd", "ospf6d"} {
		if _, err := os.Stat(filepath.Join(frrFolder, d)); err != nil {
			return fmt.Errorf("FRR's daemons are not installed (Debian's package frr): %w", err)
		}
	}
	return nil
}

// supervisor begins the script of a switch's first process. Its end, however it comes, is
// the end of all processes in its process namespace. It ends with an error if a daemon
// ends by itself.
const supervisor = `set -eu
mount -t tmpfs -o mode=755,size=64m tmpfs /run
mkdir /run/frr
end() {
	trap '' TERM USR1
	kill -s TERM -- -1 2>/dev/null || :
	wait || :
	exit "$1"
}
trap 'end 0' TERM INT
trap 'end 1' USR1
start() {
	( "$@" && status=0 || status=$?; echo "$1 has ended with status $status"; kill -s USR1 1 ) &
}
`

// script returns the supervisor of daemons. It writes "ready" when they listen.
func script(daemons []daemon) string {
	var b strings.Builder
	b.WriteString(supervisor)
	for _, d := range daemons {
		fmt.Fprintf(&b, "cat > /run/frr/%s.conf <<'END'\n%sEND\n", d.name, d.config)
	}
	b.WriteString("chown -R frr:frr /run/frr\n")
	for _, d := range daemons {
		fmt.Fprintf(&b, "start %s/%s -f /run/frr/%s.conf -P 0 --log stdout --log-level warnings %s\n", frrFolder, d.name, d.name, d.args)
		fmt.Fprintf(&b, "until [ -S /run/frr/%s.vty ]; do sleep 0.01; done\n", d.name)
		if d.name == "zebra" {
			b.WriteString("until [ -S /run/frr/zserv.api ]; do sleep 0.01; done\n")
		}
	}
	b.WriteString("echo ready\nwait\n")
	return b.String()
}

// frrTimeout bounds the start of FRR's daemons of all switches.
const frrTimeout = 30 * time.Second

// startFRR starts the daemons of all switches, and waits until they listen.
func (f *Fabric) startFRR() error {
	for _, s := range f.Switches {
		cmd := exec.Command("/bin/sh", "-c", script(f.daemonsOf(s)))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		var err error
		if s.daemons, err = s.NS.Start(cmd); err != nil {
			return fmt.Errorf("FRR of switch %s: %w", s.Name, err)
		}
	}
	deadline := time.Now().Add(frrTimeout)
	for _, s := range f.Switches {
		for !strings.Contains(s.daemons.Output(), "ready\n") {
			select {
			case <-s.daemons.Done():
				return fmt.Errorf("FRR of switch %s: %w", s.Name, errors.Join(s.daemons.Wait(), errors.New(s.daemons.Output())))
			case <-time.After(5 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("FRR of switch %s has not started after %v; its output: %s", s.Name, frrTimeout, s.daemons.Output())
			}
		}
	}
	return nil
}

// daemonsEnded returns an error if FRR's daemons of a switch have ended.
func (f *Fabric) daemonsEnded() error {
	for _, s := range f.Switches {
		if s.daemons == nil {
			continue
		}
		select {
		case <-s.daemons.Done():
			return fmt.Errorf("FRR of switch %s has ended: %w", s.Name, errors.Join(s.daemons.Wait(), errors.New(s.daemons.Output())))
		default:
		}
	}
	return nil
}

// Show returns the output of a command of FRR's shell at s, such as "show bgp summary".
func (s *Switch) Show(command string) (string, error) {
	if s.daemons == nil {
		return "", fmt.Errorf("switch %s has static routes, and no FRR", s.Name)
	}
	out, err := exec.Command("nsenter", "--target", strconv.Itoa(s.daemons.PID()), "--mount", "--net", "vtysh", "-c", command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("FRR of switch %s: %s: %w: %s", s.Name, command, err, out)
	}
	return string(out), nil
}
