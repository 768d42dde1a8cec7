// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// parse reads the flags and checks the whole as the daemon will. Errors name
// flag, field and offending text. R_Keys that are well formed are in none.
func (f *registerFlags) parse() (*api.Register, error) {
	r, err := f.common()
	if err != nil {
		return nil, err
	}
	for i, text := range f.members {
		m, err := parseMember(text)
		if err != nil {
			return nil, fmt.Errorf("--member %s: %w", nth(i, text), err)
		}
		r.Members = append(r.Members, m)
	}
	if err := r.Validate(); err != nil {
		return nil, f.inFlags(err)
	}
	return r, nil
}

// common reads the flags that are not about members.
func (f *registerFlags) common() (*api.Register, error) {
	if f.group == "" {
		return nil, errors.New("--group is missing: give the group's IP address")
	}
	r := &api.Register{Policy: f.policy, Replace: f.replace}
	var err error
	if r.Group, err = netip.ParseAddr(f.group); err != nil {
		return nil, fmt.Errorf("--group: %q is not an IP address", f.group)
	}
	var n uint64
	if n, err = parseNumber(f.qpn, 32); err != nil {
		return nil, fmt.Errorf("--qpn: %w", err)
	}
	r.QPN = api.QPN(n)
	if n, err = parseNumber(f.pmtu, 31); err != nil {
		return nil, fmt.Errorf("--pmtu: %w", err)
	}
	r.PMTU = int(n)
	if err := f.parsePolicy(r); err != nil {
		return nil, err
	}
	if f.window != "" {
		fields, err := parseFields(f.window, windowKeys, nil)
		if err != nil {
			return nil, fmt.Errorf("--window: %w", err)
		}
		if r.Window, err = fields.window(); err != nil {
			return nil, fmt.Errorf("--window: %w", err)
		}
	}
	return r, nil
}

// parsePolicy reads the flags that go with the policy.
func (f *registerFlags) parsePolicy(r *api.Register) error {
	for _, x := range []struct {
		flag, text string
		to         *int
	}{{"dead-after", f.deadAfter, &r.DeadAfterMS}, {"lag-time", f.lagTime, &r.LagMS}} {
		switch x.text {
		case "":
			continue
		case "never":
			*x.to = -1
			if x.flag == "lag-time" {
				*x.to = 0
			}
			continue
		}
		d, err := time.ParseDuration(x.text)
		if err != nil || d < time.Millisecond || d%time.Millisecond != 0 {
			return fmt.Errorf("--%s: %q is not a time in whole milliseconds, such as 100ms, nor never", x.flag, x.text)
		}
		*x.to = int(d / time.Millisecond)
	}
	switch f.repair {
	case "on":
	case "off":
		r.NoRepair = true
	default:
		return fmt.Errorf("--repair: %q is neither on nor off", f.repair)
	}
	var n [3]uint64
	for i, x := range []struct{ flag, text string }{{"lag-psns", f.lagPSNs}, {"sender-timeout", f.timeout}, {"sender-retries", f.retries}} {
		bits := 31
		if i > 0 {
			bits = 8
		}
		var err error
		if n[i], err = parseNumber(x.text, bits); err != nil {
			return fmt.Errorf("--%s: %w", x.flag, err)
		}
	}
	r.LagPSNs, r.SenderTimeout, r.SenderRetries = int(n[0]), uint8(n[1]), uint8(n[2])
	return nil
}

// inFlags translates an error of Register.Validate to the words of the command line.
func (f *registerFlags) inFlags(err error) error {
	var fe *api.FieldError
	if !errors.As(err, &fe) {
		return err
	}
	field := strings.ReplaceAll(strings.TrimPrefix(fe.Field, "window."), "_", "-")
	switch {
	case fe.Member >= 0 && fe.Field == "window":
		return fmt.Errorf("--member %s: va, len, rkey: %s", nth(fe.Member, f.members[fe.Member]), fe.Problem)
	case fe.Member >= 0:
		return fmt.Errorf("--member %s: %s: %s", nth(fe.Member, f.members[fe.Member]), field, fe.Problem)
	case strings.HasPrefix(fe.Field, "window."):
		return fmt.Errorf("--window: %s: %s", field, fe.Problem)
	case fe.Field == "members" || fe.Field == "listeners":
		return fmt.Errorf("--member: %s", fe.Problem)
	case fe.Field == "path_mtu":
		field = "pmtu"
	case fe.Field == "dead_after_ms":
		field = "dead-after"
	case fe.Field == "wait_ms":
		field = "wait"
	case fe.Field == "lag_ms":
		field = "lag-time"
	}
	return fmt.Errorf("--%s: %s", field, fe.Problem)
}

// nth names the i-th --member, with its ip=… if it has one: not the whole text,
// which has the R_Key in it.
func nth(i int, text string) string {
	for part := range strings.SplitSeq(text, ",") {
		if strings.HasPrefix(strings.TrimSpace(part), "ip=") {
			return fmt.Sprintf("%d (%s)", i+1, strings.TrimSpace(part))
		}
	}
	return fmt.Sprint(i + 1)
}

var (
	windowKeys = []string{"va", "len", "rkey"}
	memberKeys = []string{"ip", "qpn", "sq-psn", "rq-psn"}
)

func parseMember(text string) (m api.RegisterMember, err error) {
	text, m.ReceiveOnly = cutReceiveOnly(text)
	fields, err := parseFields(text, memberKeys, windowKeys)
	if err != nil {
		return m, err
	}
	if m.IP, err = netip.ParseAddr(fields["ip"]); err != nil {
		return m, fmt.Errorf("ip: %q is not an IP address", fields["ip"])
	}
	for _, f := range []struct {
		key string
		to  *uint32
	}{{"qpn", (*uint32)(&m.QPN)}, {"sq-psn", (*uint32)(&m.SQPSN)}, {"rq-psn", (*uint32)(&m.RQPSN)}} {
		n, err := fields.number(f.key, 32)
		if err != nil {
			return m, err
		}
		*f.to = uint32(n)
	}
	if _, has := fields["va"]; has {
		m.Window, err = fields.window()
	}
	return m, err
}

// cutReceiveOnly takes the word receive-only out of text.
func cutReceiveOnly(text string) (rest string, found bool) {
	parts := strings.Split(text, ",")
	rest = strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "receive-only" }), ",")
	return rest, len(rest) < len(text)
}

// fields are the parts of key=value,key=value.
type fields map[string]string

// parseFields splits text. All keys of required must be there; those of
// optional all or none.
func parseFields(text string, required, optional []string) (fields, error) {
	f := make(fields)
	known := slices.Concat(required, optional)
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key=value", part)
		}
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%q: no such key; there are %s", key, strings.Join(known, ", "))
		}
		if _, dup := f[key]; dup {
			return nil, fmt.Errorf("%s: given twice", key)
		}
		f[key] = value
	}
	if k := f.missing(required); k != "" {
		return nil, fmt.Errorf("%s: missing; %s are required", k, strings.Join(required, ", "))
	}
	if len(f) > len(required) {
		if k := f.missing(optional); k != "" {
			return nil, fmt.Errorf("%s: missing; a window has all of %s", k, strings.Join(optional, ", "))
		}
	}
	return f, nil
}

// missing returns the first of keys that f lacks; "" if it has all.
func (f fields) missing(keys []string) string {
	for _, k := range keys {
		if _, ok := f[k]; !ok {
			return k
		}
	}
	return ""
}

func (f fields) number(key string, bits int) (uint64, error) {
	n, err := parseNumber(f[key], bits)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return n, nil
}

func (f fields) window() (*api.Window, error) {
	va, err := f.number("va", 64)
	if err != nil {
		return nil, err
	}
	length, err := f.number("len", 64)
	if err != nil {
		return nil, err
	}
	rkey, err := f.number("rkey", 32)
	if err != nil {
		return nil, err
	}
	return &api.Window{VA: va, Len: length, RKey: uint32(rkey)}, nil
}

// parseNumber reads decimal, or hexadecimal after 0x. A leading 0 alone does
// not mean octal.
func parseNumber(text string, bits int) (uint64, error) {
	digits, base := text, 10
	if len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X") {
		digits, base = text[2:], 16
	}
	n, err := strconv.ParseUint(digits, base, bits)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is too large for %d bits", text, bits)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a number (decimal, or hexadecimal after 0x)", text)
	}
	return n, nil
}
