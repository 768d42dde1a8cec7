// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// asSwitch is the section whose commands install a switch, in short in README and at length in docs/OPERATING.md.
const asSwitch = "Run it as a switch"

// TestRunItAsASwitch follows the instructions of both.
func TestRunItAsASwitch(t *testing.T) {
	perf := []string{"verified, seed 1", "65536 +100 .* all\n"}
	for name, want := range map[string][]string{
		"README.md": perf,
		"docs/OPERATING.md": append([]string{
			"/etc/gleam/gleamd.yaml: ok\n",                      // --check, with no warning
			"eth1 +[0-9]+ .* up .*\neth2 .* up .*\neth3 .* up ", // port list
			"10.77.254.2", "10.77.0.1 .* eth1 ", "10.77.0.2 .* eth2 ", // group show
			"registered +10.77.254.1 ", "ended +10.77.254.1 ", "ended +10.77.254.2 ", // events
			"data packets in +[0-9]{4}", "partial checksum +[1-9]", // stats; a busy machine sees retransmissions
		}, perf...),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			said := m.runAsSwitch(t, name)
			expect(t, said, want...)
			if name != "README.md" {
				m.checkInstall(t)
			}
		})
	}
}

// runAsSwitch types the section of a document, ends the switch, and returns what all commands have said, in order.
func (m *machine) runAsSwitch(t *testing.T, name string) (said string) {
	bs, err := blocks(documents(t)[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, b := range bs {
		if b.kind != typedHere || b.section != asSwitch {
			continue
		}
		t.Logf("%s:%d", name, b.line)
		for _, where := range b.places {
			if b.says == "" {
				said += m.run(where, b.text)
				continue
			}
			m.stay(where, b.text, b.says)
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
	if strings.Contains(said, "warning") || strings.Contains(gleamd.Output(), "WARN") {
		t.Errorf("there are warnings:\n%s\n%s", said, gleamd.Output())
	}
	if err := gleamd.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	return said
}

// checkInstall checks the effects of make install that the instructions do not show.
func (m *machine) checkInstall(t *testing.T) {
	said := m.run("switch", `echo '# mine' >> /etc/gleam/gleamd.yaml
make install
tail -n 1 /etc/gleam/gleamd.yaml
cmp config/reference.yaml /etc/gleam/reference.yaml
make install DESTDIR=/run/package PREFIX=/usr
find /run/package -type f | sort
grep ExecStart= /run/package/usr/lib/systemd/system/gleamd.service
`)
	expect(t, said, "stays as it is", "\n# mine\n",
		"/run/package/etc/gleam/gleamd.yaml\n/run/package/etc/gleam/reference.yaml\n/run/package/usr/bin/gleam\n/run/package/usr/bin/gleam-lab\n/run/package/usr/bin/gleamd\n"+
			"/run/package/usr/lib/systemd/system/gleamd.service\n/run/package/usr/lib/sysusers.d/gleam.conf\nExecStart=/usr/bin/gleamd\n")
	if labtest.Has(t, "systemd-analyze") {
		if said := m.run("switch", "systemd-analyze verify /usr/local/lib/systemd/system/gleamd.service"); strings.Contains(said, "gleamd") {
			t.Errorf("the unit: %s", said)
		}
	}
	said = m.run("switch", "make uninstall >/dev/null; ls /etc/gleam; ! command -v gleamd gleam gleam-lab; find /usr/local -name 'gleamd*'")
	if said != "gleam.key\ngleamd.yaml\n" {
		t.Errorf("after make uninstall:\n%s", said)
	}
	said = m.run("switch", "rm -r bin; ! make install")
	expect(t, said, "there is no bin/gleamd yet; type: make build")
}
