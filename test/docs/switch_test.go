// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/tools/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// root is the module's, from this folder.
const root = "../.."

// commandTimeout bounds each wait. Building takes longest, where nothing is cached;
// everything else takes some seconds at most.
const commandTimeout = 5 * time.Minute

// machine is a switch and three hosts, in network namespaces, with a view of the
// file system of their own: files that are written to /etc, /usr/local, /run and the
// module exist for the test only.
type machine struct {
	t      *testing.T
	module string
	places map[string]*lab.Namespace
	holder *lab.Process // of the mount namespace
	dir    string       // for the files of the hosts
	stays  []*lab.Process
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	l := labtest.New(t)
	for _, tool := range []string{"bash", "find", "ip", "make", "mount", "nsenter", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			labtest.Unavailable(t, "README's commands need %v", err)
		}
	}
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, module: module, places: make(map[string]*lab.Namespace), dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sw, err := l.Namespace("switch")
	must(err)
	m.places["switch"] = sw
	for i := 1; i <= 3; i++ {
		h, err := l.Namespace(fmt.Sprintf("h%d", i))
		must(err)
		// Interfaces as the kernel makes them, checksum offload included.
		must(lab.Veth(lab.End{NS: sw, Name: fmt.Sprintf("eth%d", i)}, lab.End{NS: h, Name: "eth0"}, 0))
		must(h.AddAddr("eth0", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), 16)))
		must(h.WaitUp(10 * time.Second))
		m.places[fmt.Sprintf("host %d", i)] = h
	}
	t.Cleanup(func() {
		for _, p := range m.stays {
			if t.Failed() {
				t.Logf("in its own terminal:\n%s", p.Output())
			}
		}
	})
	m.mount(sw)
	return m
}

// mount makes the mount namespace: overlays whose upper halves are in memory.
func (m *machine) mount(sw *lab.Namespace) {
	m.t.Helper()
	script := "set -e; mount --make-rprivate /; mount -t tmpfs tmpfs '" + m.dir + "'; cd '" + m.dir + "'; mkdir host\n"
	for i, dir := range []string{"/etc", "/usr/local", m.module} {
		script += fmt.Sprintf("mkdir u%d w%d; mount -t overlay overlay -o 'lowerdir=%s,upperdir=u%d,workdir=w%d' '%s'\n", i, i, dir, i, i, dir)
	}
	script += "rm -rf '" + m.module + "/bin'; mount -t tmpfs tmpfs /run; echo mounted; exec sleep 1000\n"
	c := exec.Command("sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	var err error
	if m.holder, err = sw.Start(c); err != nil {
		m.t.Fatal(err)
	}
	if !m.waitFor(m.holder, "mounted") {
		labtest.Unavailable(m.t, "no overlay file system here: %v", m.holder.Wait())
	}
}

// waitFor waits until p has written text; false if it ends before.
func (m *machine) waitFor(p *lab.Process, text string) bool {
	m.t.Helper()
	for end := time.Now().Add(commandTimeout); time.Now().Before(end); {
		if strings.Contains(p.Output(), text) {
			return true
		}
		select {
		case <-p.Done():
			return strings.Contains(p.Output(), text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	m.t.Fatalf("it has not said %q:\n%s", text, p.Output())
	return false
}

// environment is that of root after a login, with Go.
func environment(t *testing.T) []string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + filepath.Dir(goTool)}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains([]string{"HOME", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOPATH", "GOTOOLCHAIN", "TMPDIR"}, name) {
			env = append(env, v)
		}
	}
	return env
}

// start types commands at a place.
func (m *machine) start(where, commands string) *lab.Process {
	m.t.Helper()
	dir := m.module
	if where != "switch" {
		dir = filepath.Join(m.dir, "host") // the same files at all hosts
	}
	c := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", m.holder.PID()), "--",
		"bash", "-euc", "cd '"+dir+"'\n"+commands)
	c.Env = environment(m.t)
	p, err := m.places[where].Start(c)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

// run types commands that end, and returns their output.
func (m *machine) run(where, commands string) string {
	m.t.Helper()
	p := m.start(where, commands)
	select {
	case <-p.Done():
	case <-time.After(commandTimeout):
		m.t.Fatalf("at %s, this does not end:\n%s\n%s", where, commands, p.Output())
	}
	if err := p.Wait(); err != nil {
		m.t.Fatalf("at %s:\n%s%v", where, commands, err)
	}
	return p.Output()
}

// TestRunItAsASwitch follows README's instructions.
func TestRunItAsASwitch(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	bs, err := blocks(string(text), "Run it as a switch")
	if err != nil {
		t.Fatalf("README.md: %v", err)
	}
	m := newMachine(t)
	said := "" // by all commands, in order
	copied := false
	for _, b := range bs {
		t.Logf("README.md:%d", b.line)
		for _, where := range b.places {
			if where != "switch" && !copied { // "copy bin/gleam and gleam.key to them"
				m.run("switch", "cp /etc/gleam/gleam.key '"+filepath.Join(m.dir, "host")+"'")
				copied = true
			}
			if b.says == "" {
				said += m.run(where, b.commands)
				continue
			}
			p := m.start(where, b.commands)
			if !m.waitFor(p, b.says) {
				t.Fatalf("README.md:%d: at %s: %v", b.line, where, p.Wait())
			}
			m.stays = append(m.stays, p)
		}
	}
	if len(m.stays) != 3 {
		t.Fatalf("%d commands stay, want gleamd and two receivers", len(m.stays))
	}
	gleamd, receivers := m.stays[0], m.stays[1:]
	for _, p := range receivers {
		select {
		case <-p.Done():
		case <-time.After(commandTimeout):
			t.Fatalf("a receiver does not end:\n%s", p.Output())
		}
		if err := p.Wait(); err != nil || !strings.Contains(p.Output(), "100 messages of 65536 bytes") || !strings.Contains(p.Output(), "verified") {
			t.Errorf("a receiver: %v\n%s", err, p.Output())
		}
	}
	expect(t, said,
		"/etc/gleam/gleamd.yaml: ok\n",                      // --check, with no warning
		"eth1 +[0-9]+ .* up .*\neth2 .* up .*\neth3 .* up ", // port list
		"verified, seed 1", "65536 +100 .* all\n",           // perf
		"10.77.254.2", "10.77.0.1 .* eth1 ", "10.77.0.2 .* eth2 ", // group show
		"registered +10.77.254.1 ", "ended +10.77.254.1 ", "ended +10.77.254.2 ", // events
		"data packets in +[0-9]{4}", "partial checksum +[1-9]", // stats; a busy machine sees retransmissions
	)
	if strings.Contains(said, "warning") || strings.Contains(gleamd.Output(), "WARN") {
		t.Errorf("there are warnings:\n%s\n%s", said, gleamd.Output())
	}
	if err := gleamd.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	m.install(t)
}

// install checks the effects of make install that README's instructions do not show.
func (m *machine) install(t *testing.T) {
	said := m.run("switch", `echo '# mine' >> /etc/gleam/gleamd.yaml
make install
tail -n 1 /etc/gleam/gleamd.yaml
cmp internal/config/reference.yaml /etc/gleam/reference.yaml
make install DESTDIR=/run/package PREFIX=/usr
find /run/package -type f | sort
grep ExecStart= /run/package/usr/lib/systemd/system/gleamd.service
`)
	expect(t, said, "stays as it is", "\n# mine\n",
		"/run/package/etc/gleam/gleamd.yaml\n/run/package/etc/gleam/reference.yaml\n/run/package/usr/bin/gleam\n/run/package/usr/bin/gleamd\n"+
			"/run/package/usr/lib/systemd/system/gleamd.service\n/run/package/usr/lib/sysusers.d/gleam.conf\nExecStart=/usr/bin/gleamd\n")
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		if said := m.run("switch", "systemd-analyze verify /usr/local/lib/systemd/system/gleamd.service"); strings.Contains(said, "gleamd") {
			t.Errorf("the unit: %s", said)
		}
	}
	said = m.run("switch", "make uninstall >/dev/null; ls /etc/gleam; ! command -v gleamd gleam; find /usr/local -name 'gleamd*'")
	if said != "gleam.key\ngleamd.yaml\n" {
		t.Errorf("after make uninstall:\n%s", said)
	}
	said = m.run("switch", "rm -r bin; ! make install")
	expect(t, said, "there is no bin/gleamd yet; type: make build")
}
