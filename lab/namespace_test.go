// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

func threadNS(t *testing.T) string {
	t.Helper()
	ns, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// TestDoStaysInside runs Do from many goroutines at once: none may see another's
// namespace, in fn or after it.
func TestDoStaysInside(t *testing.T) {
	l := labtest.New(t)
	home := threadNS(t)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		n, err := l.Namespace(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 50 {
					var st unix.Stat_t
					err := n.Do(func() error { return unix.Stat("/proc/thread-self/ns/net", &st) })
					if err != nil || st.Ino != n.Inode() {
						t.Errorf("in %s: inode %d, want %d: %v", name, st.Ino, n.Inode(), err)
					}
					if got, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || got != home {
						t.Errorf("after Do: in %s, want %s: %v", got, home, err)
					}
				}
			}()
		}
	}
	wg.Wait()
}

func TestDoReturnsErrorsAndPanics(t *testing.T) {
	n, err := labtest.New(t).Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if err := n.Do(func() error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if r := recover(); r != boom {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = n.Do(func() error { panic(boom) })
		t.Error("panic got lost")
	}()
	home := threadNS(t)
	for range 100 { // would sooner or later hit a thread left behind
		if got := threadNS(t); got != home {
			t.Fatalf("thread in %s", got)
		}
	}
}

func TestStartRunsInside(t *testing.T) {
	n, err := labtest.New(t).Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	cmd := exec.Command("sh", "-c", "readlink /proc/self/ns/net; echo oops >&2; exit 3")
	cmd.Stdout = &copied
	p, err := n.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "oops") {
		t.Errorf("Wait: %v", err)
	}
	var inside string
	if err := n.Do(func() (err error) { inside, err = os.Readlink("/proc/thread-self/ns/net"); return err }); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(copied.String()) != inside || !strings.Contains(p.Output(), inside) {
		t.Errorf("ran in %q, want %q; Output %q", copied.String(), inside, p.Output())
	}
	if err := p.Stop(0); err != nil {
		t.Errorf("Stop of an ended process: %v", err)
	}
	if _, err := n.Start(exec.Command("/none/such")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start of nothing: %v", err)
	}
}

func TestStop(t *testing.T) {
	n, err := labtest.New(t).Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	// The loop makes the shell outlive its sleeps; it ignores SIGTERM.
	p, err := n.Start(exec.Command("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the trap is set", func() bool { return strings.Contains(p.Output(), "deaf") })
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("Stop returned before the end")
	}
	if alive(p.PID()) {
		t.Error("a deaf process survived Stop")
	}
}

// TestPathForChildren: another process can enter by Path.
func TestPathForChildren(t *testing.T) {
	n, err := labtest.New(t).Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	again, err := lab.OpenNamespace(n.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Inode() != n.Inode() {
		t.Errorf("Path leads to %d, want %d", again.Inode(), n.Inode())
	}
}

func TestSysctl(t *testing.T) {
	n, err := labtest.New(t).Namespace("a")
	if err != nil {
		t.Fatal(err)
	}
	const path = "/proc/sys/net/ipv4/ip_forward"
	outside, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"1", "0"} {
		if err := n.Sysctl("net.ipv4.ip_forward", v); err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := n.Do(func() (err error) { got, err = os.ReadFile(path); return err }); err != nil || strings.TrimSpace(string(got)) != v {
			t.Errorf("ip_forward is %s: %v", got, err)
		}
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, outside) {
		t.Error("the sysctl changed outside of the namespace")
	}
	for _, key := range []string{"kernel.none", "net/../kernel/none", "net.ipv4.none"} {
		if err := n.Sysctl(key, "x"); err == nil || key != "net.ipv4.none" && !strings.Contains(err.Error(), "only net.*") {
			t.Errorf("sysctl %s: %v", key, err)
		}
	}
}

// TestTXChecksumFeature checks the checksum of a frame at the far end of a veth:
// unfinished with the offload, complete without.
func TestTXChecksumFeature(t *testing.T) {
	l := labtest.New(t)
	for _, on := range []bool{true, false} {
		name := map[bool]string{true: "on", false: "off"}[on]
		a, err := l.Namespace("a" + name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Namespace("b" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := lab.Veth(lab.End{NS: a, Name: "v"}, lab.End{NS: b, Name: "v"}, 0); err != nil {
			t.Fatal(err)
		}
		if err := a.SetFeature("v", lab.TXChecksum, on); err != nil {
			t.Fatal(err)
		}
		if err := a.SetFeature("none", lab.TXChecksum, on); err == nil {
			t.Error("feature of an interface that is not there")
		}
		if got := farChecksumGood(t, a, b); got == on {
			t.Errorf("TX checksum offload %s: checksum at the far end is good: %t", name, got)
		}
	}
}

// farChecksumGood sends a UDP broadcast from a and verifies the checksum of the
// raw frame at b.
func farChecksumGood(t *testing.T, a, b *lab.Namespace) bool {
	t.Helper()
	if err := a.AddAddr("v", netip.MustParsePrefix("192.0.2.1/24")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.WaitUp(5*time.Second), b.WaitUp(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	var raw, udp int
	err := errors.Join(
		b.Do(func() (err error) {
			proto := int(htons(unix.ETH_P_IP))
			raw, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
			return err
		}),
		a.Do(func() (err error) {
			if udp, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return unix.SetsockoptInt(udp, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(raw)
	defer unix.Close(udp)
	if err := unix.SetsockoptTimeval(raw, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		t.Fatal(err)
	}
	to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 255}}
	if err := unix.Sendto(udp, []byte("checksum"), 0, to); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	n, _, err := unix.Recvfrom(raw, buf, 0)
	if err != nil || n < 36 || buf[9] != unix.IPPROTO_UDP {
		t.Fatalf("got %d bytes, %x: %v", n, buf[:max(n, 0)], err)
	}
	p := buf[:n]
	// RFC 768: ones' complement sum over pseudo header and datagram is ffff.
	sum := uint32(unix.IPPROTO_UDP) + uint32(n-20)
	for i := 12; i < n; i += 2 {
		sum += uint32(p[i]) << 8
		if i+1 < n {
			sum += uint32(p[i+1])
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return sum == 0xffff
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
