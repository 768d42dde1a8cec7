// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrors appends lines to a minimal file, or replaces all of it, and wants
// exactly one error.
func TestErrors(t *testing.T) {
	port := func(s string) string { return strings.Replace(minimal, "{name: p1}", s, 1) }
	prefix := func(s string) string { return strings.Replace(minimal, "10.77.254.0/24", s, 1) }
	env := func(s string) string { return strings.Replace(minimal, "{insecure: true}", s, 1) }
	for _, tt := range []struct{ name, file, want string }{
		{"unknown key", minimal + "prots: 1\n", `f:4: "prots": unknown key; want one of ports, group_prefixes,`},
		{"unknown nested key", minimal + "rings:\n  rx: 64\n  xr: 64\n", `f:6: rings: "xr": unknown key; want one of rx, tx, fill, completion`},
		{"unknown key in list", port("{name: p1, que: 1}"), `f:1: ports[0]: "que": unknown key; want one of name, queues`},
		{"repeated key", minimal + "log:\n  level: info\n  level: info\n", `f:6: log: "level": key is there already, in line 5`},
		{"repeated in flow", minimal + "log: {level: info, level: info}\n", `f:4: log: "level": key is there already, in line 4`},
		{"second document", minimal + "---\nlog: {}\n", `f:5: a second YAML document; want one`},
		{"not YAML", minimal + "log: [\n", `f:4: "log: [": not valid YAML: `},
		{"tab", minimal + "log:\n\tlevel: info\n", `f:5: "level: info": not valid YAML: `},
		{"a list", "- 1\n", `f:1: is a list; want a mapping`},
		{"a word", "hello\n", `f:1: "hello": is a string; want a mapping`},
		{"anchor", minimal + "log: &a {level: info}\n", `f:4: log: "&": is YAML's anchor; want a mapping`},

		{"switch id short", minimal + "switch: {id: abc}\n", `f:4: switch.id: "abc": want auto, or 16 hexadecimal digits in quotes, not all 0`},
		{"switch id 0", minimal + "switch: {id: '0000000000000000'}\n", `f:4: switch.id: "0000000000000000": want auto, or 16`},
		{"switch id no hex", minimal + "switch: {id: 000000000000000g}\n", `f:4: switch.id: "000000000000000g": want auto, or 16`},
		{"switch id a list", minimal + "switch: {id: [1]}\n", `f:4: switch.id: want auto, or 16`},
		{"switch key without id", minimal + "switch: {keys: [{secret: hex:" + goodHex + "}]}\n", `f:4: switch.keys[0]: has no id`},
		{"switch key without secret", minimal + "switch: {keys: [{id: 1}]}\n", `f:4: switch.keys[0]: want either secret or secret_file`},
		{"switch key twice", minimal + "switch: {keys: [{id: 1, secret: hex:" + goodHex + "}, {id: 1, secret: hex:" + otherHex + "}]}\n", `f:4: switch.keys[1].id: "1": key id is there already, in line 4`},
		{"switch key with a role", minimal + "switch: {keys: [{id: 1, secret: hex:" + goodHex + ", roles: [master]}]}\n", `f:4: switch.keys[0]: unknown key; want one of id, secret_file, secret`},
		{"switch key of hosts", env("{keys: [{id: 3, secret: hex:"+goodHex+"}]}") + "switch: {keys: [{id: 1, secret: hex:" + goodHex + "}]}\n", `f:1: switch.keys[0]: is the secret of key 3 of envelope.keys: hosts that have it could pass for switches`},
		{"switch ports unknown", minimal + "switch: {ports: [p2]}\n", `f:1: switch.ports: "p2": is none of ports`},
		{"switch port twice", minimal + "switch: {ports: [p1, p1]}\n", `f:4: switch.ports[1]: "p1": port is there already`},
		{"hello interval 5ms", minimal + "switch: {hello_interval: 5ms}\n", `f:4: switch.hello_interval: "5ms": want a duration from 10ms to 10s`},
		{"hello interval fraction", minimal + "switch: {hello_interval: 10500us}\n", `f:4: switch.hello_interval: "10500us": want whole milliseconds`},

		{"user a list", minimal + "user: [gleam]\n", `f:4: user: want auto, or the name or the number of a user`},
		{"user with a space", minimal + "user: a b\n", `f:4: user: "a b": want auto, or the name or the number of a user`},
		{"user negative", minimal + "user: -1\n", `f:4: user: "-1": want auto`},

		{"ports missing", minimal[strings.Index(minimal, "\n")+1:], `f:1: ports: want at least one port`},
		{"ports empty", port(""), `f:1: ports: want at least one port`},
		{"ports a word", strings.Replace(minimal, "[{name: p1}]", "p1", 1), `f:1: ports: "p1": is a string; want a list`},
		{"port a word", port("p1"), `f:1: ports[0]: "p1": is a string; want a mapping`},
		{"port without name", port("{queues: all}"), `f:1: ports[0]: has no name`},
		{"port a number", port("{name: 1}"), `f:1: ports[0].name: "1": is a number; want a string (put it in quotes)`},
		{"port name too long", port("{name: abcdefghijklmnop}"), `f:1: ports[0].name: "abcdefghijklmnop": not an interface name`},
		{"port name with slash", port("{name: a/b}"), `f:1: ports[0].name: "a/b": not an interface name`},
		{"queues a word", port("{name: p1, queues: some}"), `f:1: ports[0].queues: "some": is a string; want all, or a list`},
		{"queues empty", port("{name: p1, queues: []}"), `f:1: ports[0].queues: is a list; want all, or a list`},
		{"queue twice", port("{name: p1, queues: [1, 1]}"), `f:1: ports[0].queues[1]: "1": queue is there already`},
		{"queue negative", port("{name: p1, queues: [-1]}"), `f:1: ports[0].queues[0]: "-1": want a number from 0 to 4095`},

		{"rate without unit", port("{name: p1, rate: 100}"), `f:1: ports[0].rate: "100": is a number; want a rate with its unit, such as 100mbit, or none`},
		{"rate in bytes", port("{name: p1, rate: 100mbps}"), `f:1: ports[0].rate: "100mbps": want bits a second such as 100mbit or 2.5gbit, or none`},
		{"rate 0", port("{name: p1, rate: 0mbit}"), `f:1: ports[0].rate: "0mbit": want 10kbit to 1000gbit, or none`},
		{"small queue", port("{name: p1, queue: 100}"), `f:1: ports[0].queue: "100": want a number from 4096 to 1073741824`},
		{"ecn on", port("{name: p1, ecn: true}"), `f:1: ports[0].ecn: "true": is true or false; want off, or a mapping of kmin, kmax and pmax`},
		{"ecn unknown key", port("{name: p1, ecn: {min: 1}}"), `f:1: ports[0].ecn: "min": unknown key; want one of kmin, kmax, pmax`},
		{"pmax above 1", port("{name: p1, ecn: {pmax: 1.1}}"), `f:1: ports[0].ecn.pmax: "1.1": want a number from 0 to 1`},
		{"pmax a word", port("{name: p1, ecn: {pmax: high}}"), `f:1: ports[0].ecn.pmax: "high": is a string; want a number from 0 to 1`},
		{"pmax nan", port("{name: p1, ecn: {pmax: .nan}}"), `want a number from 0 to 1`},
		{"kmin above kmax", port("{name: p1, ecn: {kmin: 140000}}"), `f:1: ports[0].ecn.kmin: "140000": is above kmax, 131072`},
		{"kmax beyond queue", port("{name: p1, queue: 5000, ecn: {kmax: 5000}}"), `f:1: ports[0].ecn.kmax: "5000": is not below queue, 5000: frames would be dropped before all are marked`},

		{"repair without end", minimal + "repair: {tries: 0}\n", `f:4: repair.tries: "0": want a number from 1 to 255`},
		{"repair at once", minimal + "repair: {timeout: 1us}\n", `f:4: repair.timeout: "1us": want a duration from 100µs to 10s`},
		{"repair keeps too much", minimal + "umem: {frames: 1024, frame_size: 2048}\nrepair: {total: 262145}\n", `f:1: repair.total: "262145": more than an eighth of the UMEM, 262144 bytes`},

		{"fast path a word", minimal + "fast_path: 'yes'\n", `f:4: fast_path: "yes": want one of off, auto, require`},
		{"fast path in generic mode", minimal + "fast_path: require\nxdp: {mode: generic}\n", `f:1: fast_path: "require": needs native XDP`},
		{"fast path without repair", minimal + "fast_path: require\nrepair: {per_group: 0}\n", `f:1: fast_path: "require": needs local repair`},
		{"fast path without memory", minimal + "fast_path_memory: 1000\n", `f:4: fast_path_memory: "1000": want a number from 1048576 to 1073741824`},

		{"allow nobody", port("{name: p1, allow: {addresses: []}}"), `f:1: ports[0].allow.addresses: an empty list would let nobody send`},
		{"allow a word", port("{name: p1, allow: {addresses: some}}"), `want all, or a list of addresses and prefixes`},
		{"allow no address", port("{name: p1, allow: {addresses: [10.0.0]}}"), `f:1: ports[0].allow.addresses[0]: "10.0.0": not an address or prefix`},
		{"allow an address with a zone", port("{name: p1, allow: {addresses: ['fe80::1%eth0']}}"), `not an address or prefix`},
		{"allow with host bits", port("{name: p1, allow: {addresses: [10.0.0.1/24]}}"), `did you mean 10.0.0.0/24?`},
		{"allow twice", port("{name: p1, allow: {addresses: [10.0.0.1, 10.0.0.1/32]}}"), `f:1: ports[0].allow.addresses[1]: "10.0.0.1/32": is there already`},
		{"allow mapped", port("{name: p1, allow: {addresses: ['::ffff:10.0.0.1']}}"), `write it as IPv4`},
		{"allow no MAC", port("{name: p1, allow: {macs: ['02:00']}}"), `f:1: ports[0].allow.macs[0]: "02:00": not a MAC address`},
		{"allow an unknown key", port("{name: p1, allow: {mac: all}}"), `"mac": unknown key; want one of addresses, macs`},
		{"prefix missing", "ports: [{name: p1}]\nenvelope: {insecure: true}\n", `f:1: group_prefixes: want at least one prefix`},
		{"prefix class D", prefix("239.0.0.0/24"), `f:2: group_prefixes[0]: "239.0.0.0/24": overlaps 224.0.0.0/4: multicast: `},
		{"prefix ff00", prefix("'ff05::/64'"), `f:2: group_prefixes[0]: "ff05::/64": overlaps ff00::/8: multicast: `},
		{"prefix of all", prefix("0.0.0.0/0"), `f:2: group_prefixes[0]: "0.0.0.0/0": overlaps 224.0.0.0/4`},
		{"prefix loopback", prefix("127.1.0.0/16"), `overlaps 127.0.0.0/8: hosts keep`},
		{"prefix broadcast", prefix("255.255.255.255/32"), `overlaps 255.255.255.255/32: hosts drop`},
		{"prefix an address", prefix("10.77.254.1"), `f:2: group_prefixes[0]: "10.77.254.1": not a prefix; want one with its length`},
		{"prefix a word", prefix("x/y"), `f:2: group_prefixes[0]: "x/y": not a prefix; want one such as`},
		{"prefix mapped", prefix("'::ffff:10.0.0.0/120'"), `an IPv4 address in IPv6 form`},
		{"prefixes overlap", prefix("10.1.0.0/16, 10.1.2.0/24"), `f:2: group_prefixes[1]: "10.1.2.0/24": overlaps 10.1.0.0/16, which is there already`},

		{"no keys", env("{}"), `f:1: envelope.keys: want at least one key, or insecure: true`},
		{"keys and insecure", env("{insecure: true, keys: [{id: 1, secret: hex:" + goodHex + "}]}"), `f:3: envelope.keys: keys have no effect with insecure: true`},
		{"insecure a word", env("{insecure: maybe}"), `f:3: envelope.insecure: "maybe": is a string; want true or false`},
		{"port 0", env("{insecure: true, udp_port: 0}"), `f:3: envelope.udp_port: "0": want a number from 1 to 65535`},
		{"port of RoCEv2", env("{insecure: true, udp_port: 4791}"), `f:3: envelope.udp_port: "4791": is the port of RoCEv2`},
		{"port too big", env("{insecure: true, udp_port: 99999999999999999999}"), `f:3: envelope.udp_port: "99999999999999999999": `},
		{"key without id", env("{keys: [{secret: hex:" + goodHex + "}]}"), `f:3: envelope.keys[0]: has no id`},
		{"key without secret", env("{keys: [{id: 1}]}"), `f:3: envelope.keys[0]: want either secret or secret_file`},
		{"secret twice", env("{keys: [{id: 1, secret: hex:" + goodHex + "}, {id: 2, secret: hex:" + otherHex + "}, {id: 3, secret: hex:" + goodHex + "}]}"), `f:3: envelope.keys[2]: is the secret of key 1`},
		{"key id twice", env("{keys: [{id: 1, secret: hex:" + goodHex + "}, {id: 1, secret: hex:" + goodHex + "}]}"), `f:3: envelope.keys[1].id: "1": key id is there already, in line 3`},
		{"key id 0", env("{keys: [{id: 0, secret: hex:" + goodHex + "}]}"), `f:3: envelope.keys[0].id: "0": want a number from 1 to 65535`},
		{"duration a number", env("{insecure: true, lease_max: 600}"), `f:3: envelope.lease_max: "600": is a number; want a duration with its unit`},
		{"duration a word", env("{insecure: true, lease_max: long}"), `f:3: envelope.lease_max: "long": want a duration such as`},
		{"duration too long", env("{insecure: true, lease_max: 48h}"), `f:3: envelope.lease_max: "48h": want a duration from 1s to 24h0m0s`},

		{"relative socket", minimal + "api: {socket: s}\n", `f:4: api.socket: "s": want an absolute path`},
		{"long socket", minimal + "api: {socket: /" + strings.Repeat("a", 107) + "}\n", `has 108 bytes; a Unix socket's path has at most 107`},
		{"mode without read_group", minimal + "api: {read_group: adm, mode: '0660'}\n", `f:4: api.mode: "0660": keeps the members of read_group from the socket`},
		{"mode not octal", minimal + "api: {mode: '0680'}\n", `f:4: api.mode: "0680": want permission bits in octal`},
		{"mode too big", minimal + "api: {mode: '07777'}\n", `want permission bits in octal`},
		{"no groups", minimal + "limits: {groups: 0}\n", `f:4: limits.groups: "0": want a number from 1 to 1048576`},
		{"fraction", minimal + "limits: {groups: 1.5}\n", `f:4: limits.groups: "1.5": is a number with a fraction; want a number`},
		{"null", minimal + "limits: {groups: }\n", `f:4: limits.groups: `},
		{"xdp mode", minimal + "xdp: {mode: offload}\n", `f:4: xdp.mode: "offload": want one of auto, native, generic`},
		{"frame size", minimal + "umem: {frame_size: 8192}\n", `f:4: umem.frame_size: "8192": want a number from 2048 to 4096`},
		{"ring", minimal + "rings: {tx: 65}\n", `f:4: rings.tx: "65": want a power of two from 64 to 65536`},
		{"few frames", port("{name: a}, {name: b}, {name: c}") + "umem: {frames: 256}\n", `f:1: umem.frames: "256": 3 ports need at least 384 frames`},
		{"worker", minimal + "worker: {cpu: -2}\n", `f:4: worker.cpu: "-2": want a number from -1 to 8191`},
		{"no workers", minimal + "worker: {cpu: []}\n", `f:4: worker.cpu: has 0 entries: want 1 to 64 workers' CPUs`},
		{"workers on one CPU", minimal + "worker: {cpu: [2, -1, -1, 2]}\n", `f:4: worker.cpu[3]: "2": CPU is another worker's already`},
		{"no such CPU", minimal + "worker: {cpu: [0, 9000]}\n", `f:4: worker.cpu[1]: "9000": want a number from -1 to 8191`},
		{"too long", minimal + strings.Repeat("#\n", fileMax/2), `f: file has `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse("f", []byte(tt.file))
			if err == nil {
				t.Fatalf("accepted:\n%s\n%+v", tt.file, c)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%v\nwant it to hold\n%s", err, tt.want)
			}
			if errs := err.(Errors); len(errs) != 1 {
				t.Errorf("got %d errors, want 1:\n%v", len(errs), err)
			}
		})
	}
}

// Members of read_group reach the socket, whose file is another group's.
func TestReadGroupReachesTheSocket(t *testing.T) {
	c, err := Parse("f", []byte(minimal+"api: {read_group: adm}\n"))
	if err != nil || c.API.Mode != 0o666 || c.API.Group != "gleam" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestMinimal(t *testing.T) {
	for _, file := range []string{minimal, minimal + "log:\n", "# comment\n---\n" + minimal, strings.ReplaceAll(minimal, "\n", "\r\n")} {
		if _, err := Parse("f", []byte(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
	if _, err := Parse("f", nil); err == nil || len(err.(Errors)) != 3 {
		t.Errorf("empty file: got %v, want the three required keys", err)
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	for name, f := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // "" means accepted
	}{
		"plain":   {goodHex + "\n", 0o600, ""},
		"prefix":  {" hex:" + goodHex, 0o640, ""},
		"open":    {goodHex, 0o604, "may be read or changed by others (mode 0604); run: chmod 0600 "},
		"short":   {goodHex[2:], 0o600, "secret has 31 bytes; want 32 to 256"},
		"long":    {strings.Repeat("00", 257), 0o600, "secret has 257 bytes"},
		"big":     {strings.Repeat("00", 3000), 0o600, "has 6000 bytes; want at most 4096"},
		"text":    {"correct horse battery", 0o600, "not an even number of hexadecimal digits"},
		"missing": {"", 0, "cannot read the secret: no such file or directory; if no machine has it yet, make it: (umask 077; openssl rand -hex 32 > " + filepath.Join(dir, "missing") + ")"},
		"folder":  {"", os.ModeDir, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			switch {
			case f.mode == os.ModeDir:
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			case f.mode != 0:
				if err := os.WriteFile(path, []byte(f.content), f.mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, f.mode); err != nil { // whatever the umask
					t.Fatal(err)
				}
			}
			file := strings.Replace(minimal, "{insecure: true}", "{keys: [{id: 1, secret_file: "+name+"}]}", 1)
			c, err := Parse(filepath.Join(dir, "gleamd.yaml"), []byte(file))
			if f.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := c.Envelope.Keys[0].Secret.Bytes(); fmt.Sprintf("%x", got) != goodHex {
					t.Errorf("secret is %x", got)
				}
				return
			}
			want := `gleamd.yaml:3: envelope.keys[0].secret_file: "` + name + `": ` + f.want
			if err == nil || !strings.Contains(err.Error(), want[:len(want)-len(f.want)]) || !strings.Contains(err.Error(), f.want) {
				t.Errorf("got  %v\nwant it to hold %s", err, want)
			}
		})
	}
}
