// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

const (
	sshd      = "/usr/sbin/sshd"
	sshPort   = 18522
	sshdStart = 10 * time.Second
)

// scp copies by OpenSSH's scp from the first host to the others, each of which runs an
// sshd with keys of this run.
type scp struct {
	hosts []lab.Host // the sender's first
	dirs  []string   // the folders of the receivers
	key   string     // file of the sender's key
}

// startSCP starts the servers; they end with the lab.
func startSCP(ctx context.Context, dir string, hosts []lab.Host, dirs []string) (*scp, error) {
	for _, p := range []string{sshd, "scp", "ssh-keygen"} {
		if _, err := exec.LookPath(p); err != nil {
			return nil, fmt.Errorf("--scp: %w: apt-get install openssh-server openssh-client", err)
		}
	}
	s := &scp{hosts: hosts, dirs: dirs, key: filepath.Join(dir, "ssh-key")}
	hostKey := filepath.Join(dir, "ssh-host-key")
	for _, f := range []string{s.key, hostKey} {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w\n%s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd gives up its privileges
		return nil, err
	}
	for _, h := range hosts[1:] {
		p, err := h.NS.Start(exec.Command(sshd, "-D", "-e", "-f", os.DevNull, "-h", hostKey, "-o", "ListenAddress="+s.at(h), "-o", "PidFile=none", "-o", "UsePAM=no",
			"-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "AuthorizedKeysFile="+s.key+".pub", "-o", "Subsystem=sftp internal-sftp"))
		if err != nil {
			return nil, err
		}
		if err := awaitPort(ctx, h, s.at(h)); err != nil {
			return nil, fmt.Errorf("sshd of %s: %w\n%s", h.Name, err, p.Output())
		}
	}
	return s, nil
}

func (s *scp) at(h lab.Host) string { return netip.AddrPortFrom(h.IPv4, sshPort).String() }

// awaitPort waits until a host's port takes connections.
func awaitPort(ctx context.Context, h lab.Host, at string) error {
	ctx, cancel := context.WithTimeout(ctx, sshdStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := h.NS.Do(func() error {
			c, err := net.Dial("tcp", at)
			if err != nil {
				return err
			}
			return c.Close()
		})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// copy copies the file to hosts at the same time. Each copy is flushed to disk, as those
// by other ways are.
func (s *scp) copy(ctx context.Context, file string, to []int) error {
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for i, r := range to {
		all.Go(func() { errs[i] = s.one(ctx, file, r) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *scp) one(ctx context.Context, file string, r int) error {
	target := filepath.Join(s.dirs[r-1], fileName)
	c := exec.Command("scp", "-q", "-B", "-P", fmt.Sprint(sshPort), "-i", s.key, "-F", os.DevNull, "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile="+os.DevNull, "-o", "LogLevel=ERROR", file, fmt.Sprintf("root@%s:%s", s.hosts[r].IPv4, target))
	p, err := s.hosts[0].NS.Start(c)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		err = p.Wait()
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), p.Stop(time.Second))
	}
	if err != nil {
		return fmt.Errorf("scp to %s: %w\n%s", s.hosts[r].Name, err, p.Output())
	}
	f, err := os.Open(target)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
