// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
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

	"github.com/gleam-rdma/gleam/lab"
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
	holder *lab.Process // the holder of the mount namespace
	dir    string       // the folder for the files of the hosts
	stays  []*lab.Process
	limit  time.Duration // the limit of a block that ends
	cloned bool          // commands at this machine are typed in a clone of the sources
	filled int           // lines that were written into the document
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	l := labtest.New(t)
	labtest.Needs(t, "bash", "find", "ip", "make", "mount", "nsenter", "openssl")
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, limit: commandTimeout, module: module, places: make(map[string]*lab.Namespace), dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sw, err := l.Namespace("switch")
	must(err)
	m.places["switch"] = sw
	alone, err := l.Namespace("machine")
	must(err)
	m.places["this machine"] = alone
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

// mount makes the mount namespace: overlays whose upper halves are in memory. An overlay does not have
// what is mounted below its folder, as Go may be.
func (m *machine) mount(sw *lab.Namespace) {
	m.t.Helper()
	goroot := filepath.Dir(filepath.Dir(lookGo(m.t)))
	script := "set -e; mount --make-rprivate /; mount -t tmpfs tmpfs '" + m.dir + "'; cd '" + m.dir + "'; mkdir host go; mount --bind '" + goroot + "' go\n"
	for i, dir := range []string{"/etc", "/usr/local", m.module} {
		script += fmt.Sprintf("mkdir u%d w%d; mount -t overlay overlay -o 'lowerdir=%s,upperdir=u%d,workdir=w%d' '%s'\n", i, i, dir, i, i, dir)
	}
	script += "[ -x '" + goroot + "/bin/go' ] || mount --bind go '" + goroot + "'\n"
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

// folder is where commands are typed that are not the switch's: the same at all hosts.
func (m *machine) folder() string { return filepath.Join(m.dir, "host") }

// lookGo returns the path of the go command.
func lookGo(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is that of root after a login, with Go.
func environment(t *testing.T) []string {
	t.Helper()
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + filepath.Dir(lookGo(t))}
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
	if where != "switch" && !m.cloned {
		dir = m.folder()
	}
	c := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", m.holder.PID()), "--",
		"bash", "-euc", "cd '"+dir+"'; sudo() { \"$@\"; }\n"+commands) // root needs no sudo
	c.Env = environment(m.t)
	p, err := m.places[where].Start(c)
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

// run types commands that end, and returns their output. The exit code is to be that
// of the last one, 0 if none else is said.
func (m *machine) run(where, commands string, code ...int) string {
	m.t.Helper()
	p := m.start(where, commands)
	select {
	case <-p.Done():
	case <-time.After(m.limit):
		m.t.Fatalf("at %s, this does not end:\n%s\n%s", where, commands, p.Output())
	}
	var exit *exec.ExitError
	got, err := 0, p.Wait()
	if errors.As(err, &exit) {
		got, err = exit.ExitCode(), nil
	}
	if len(code) == 0 {
		code = []int{0}
	}
	if err != nil || !slices.Contains(code, got) {
		m.t.Fatalf("at %s:\n%s%v\nexit code %d\n%s", where, commands, err, got, p.Output())
	}
	return p.Output()
}

// programsBuilt are those that documents take for installed.
var programsBuilt = labtest.Programs{Packages: []string{"../../cmd/gleamd", "../../cmd/gleam", "../../cmd/gleam-lab"}}

func TestMain(m *testing.M) { os.Exit(programsBuilt.Run(m)) }

// install installs the programs, and a key for the hosts.
func (m *machine) install() {
	m.t.Helper()
	m.run("switch", "mkdir bin; cp '"+programsBuilt.Dir(m.t)+"/'* bin/; make install >/dev/null; (umask 077; openssl rand -hex 32 > /etc/gleam/gleam.key)\n"+
		"cp /etc/gleam/gleam.key '"+m.folder()+"'")
}

// serve makes the switch what docs/OPERATING.md has made of it, with a group under traffic:
// 10.77.254.1, of all hosts, for as long as the test runs.
func (m *machine) serve() {
	m.t.Helper()
	m.install()
	m.run("switch", `ip link add br0 type bridge
ip link set br0 up
for port in eth1 eth2 eth3; do ip link set $port master br0 up; done
ip address add 10.77.255.254/16 dev br0`)
	m.stay("switch", "gleamd", "gleamd is ready")
	for _, h := range []string{"host 2", "host 3"} {
		m.stay(h, "gleam perf write-bw --listen --key-file gleam.key", "waiting for the sender")
	}
	p := m.start("host 1", "gleam perf write-bw --group 10.77.254.1 --key-file gleam.key --rate 2mbit -D 1000 10.77.0.2 10.77.0.3")
	m.stays = append(m.stays, p)
	m.run("switch", "until gleam group show 10.77.254.1 2>/dev/null | grep -q running; do sleep 0.05; done")
}

// stay types commands that run on, and waits until they say that they are ready.
func (m *machine) stay(where, commands, says string) *lab.Process {
	m.t.Helper()
	p := m.start(where, commands)
	if !m.waitFor(p, says) {
		m.t.Fatalf("at %s: %v\n%s\n%s", where, p.Wait(), commands, p.Output())
	}
	m.stays = append(m.stays, p)
	return p
}
