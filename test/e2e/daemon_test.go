// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/labtest/ownership"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// daemon is gleamd as its own process in the switch of a star.
type daemon struct {
	star   *lab.Star
	dir    string // writable for all users
	config string
	file   string // the configuration file that start has written last
}

func newDaemon(t *testing.T, hosts int) *daemon {
	t.Helper()
	d := &daemon{star: labtest.Star(t, lab.StarConfig{Hosts: hosts}), dir: t.TempDir()}
	for _, dir := range []string{d.dir, filepath.Dir(d.dir)} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	d.config = d.star.Config() + "envelope: {insecure: true}\numem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n" +
		"api: {socket: " + d.dir + "/gleamd.sock}\n"
	return d
}

// start runs gleamd with a configuration.
func (d *daemon) start(t *testing.T, config string, as *syscall.Credential) *lab.Process {
	t.Helper()
	f, err := os.CreateTemp(d.dir, "*.yaml")
	if err == nil {
		_, err = f.WriteString(labtest.WithFastPath(config, true))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	d.file = f.Name()
	ownership.ForGleamd(t, d.file, as)
	c := exec.Command(programs.Path(t, "gleamd"), "--config", d.file)
	if as != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	p, err := d.star.Switch.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ready waits until gleamd answers.
func (d *daemon) ready(t *testing.T, p *lab.Process) *api.Client {
	t.Helper()
	client := api.Dial(d.dir + "/gleamd.sock")
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := client.WaitReady(ctx); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	return client
}

// If gleamd cannot start, one line names the cause and the remedy, and the exit code is
// 1.
func TestDaemonRefusesToStart(t *testing.T) {
	d := newDaemon(t, 2)
	first := d.start(t, d.config, nil)
	client := d.ready(t, first)
	other := strings.ReplaceAll(d.config, "gleamd.sock", "other.sock")
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	for _, c := range []struct {
		name, config string
		as           *syscall.Credential
		says         []string
	}{
		{"second one with the same socket", d.config, nil, []string{"gleamd.sock", "api.socket"}},
		{"second one on the same ports", other, nil, []string{"p1", "gleamd"}},
		{"missing interface", strings.Replace(other, "name: p1\n", "name: p9\n", 1), nil, []string{"port p9", "no interface of this name", "p1 p2"}},
		{"no capability", other, nobody, []string{"CAP_"}},
		{"file of an unknown key", other + "colour: green\n", nil, []string{".yaml:", "colour"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := d.start(t, c.config, c.as)
			var exit *exec.ExitError
			if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("%v, want exit code 1", err)
			}
			out := p.Output()
			lines := strings.Split(strings.TrimSpace(out), "\n")
			for _, s := range c.says {
				if !strings.Contains(lines[len(lines)-1], s) {
					t.Errorf("want %q in the last line of\n%s", s, out)
				}
			}
			if strings.Contains(out, "goroutine ") {
				t.Errorf("it panics:\n%s", out)
			}
		})
	}
	if _, err := client.Stats(t.Context()); err != nil {
		t.Errorf("the first one is disturbed: %v", err)
	}
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// register makes a group of all hosts, by the API, whose queue pairs have that many bytes of
// memory each.
func (d *daemon) register(t *testing.T, client *api.Client, memory int) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), star: d.star, group: group4, c: rigConfig{pathMTU: 1024, memory: memory, policy: "strict"}}
	for i, h := range d.star.Hosts {
		x := &rigHost{Host: h, ip: h.IPv4}
		if err := h.NS.Do(func() (err error) { x.dev, err = soft.Open(soft.Config{Interface: h.Interface}); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.dev.Close() })
		r.equip(i, x)
		r.hosts = append(r.hosts, x)
	}
	r.connect()
	if err := client.Register(t.Context(), r.registration()); err != nil {
		t.Fatal(err)
	}
	r.fill(0)
	return r
}

// gleamd is killed in the middle of a transfer. The ports forward like any other
// interface at once; a second gleamd takes them, and a new group works.
func TestDaemonKilled(t *testing.T) {
	d := newDaemon(t, 2)
	p := d.start(t, d.config, nil)
	client := d.ready(t, p)
	r := d.register(t, client, 8<<20)
	r.post(0, 100_000)
	until(t, "the transfer begins", func() bool {
		s, err := client.Stats(t.Context())
		return err == nil && s.Rx > 100
	})
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	for _, port := range d.star.Ports {
		l, err := d.star.Switch.Handle().LinkByName(port)
		if err != nil {
			t.Fatal(err)
		}
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			t.Errorf("%s still has an XDP program", port)
		}
	}
	data := bytes.Repeat([]byte("unicast"), 50_000)
	if got := overTCP(t, d.star.Hosts[0], d.star.Hosts[1], d.star.Hosts[1].IPv4, data); !bytes.Equal(got, data) {
		t.Error("TCP does not pass after gleamd was killed")
	}

	client = d.ready(t, d.start(t, d.config, nil))
	o := r.another(otherGroup, 0, 1)
	o.connect()
	if err := client.Register(t.Context(), o.registration()); err != nil {
		t.Fatal(err)
	}
	o.fill(0)
	n := o.post(0, 100_000)
	for got := 0; got < n; {
		var wc [16]endpoint.Completion
		k, err := o.hosts[0].qp.Poll(t.Context(), wc[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range wc[:k] {
			if c.Err() != nil {
				t.Fatal(c.Err())
			}
		}
		got += k
	}
	o.same(0)
}
