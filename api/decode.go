// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxRequest bounds a request's body: 4096 members with windows, generously.
const maxRequest = 1 << 20

// maxObjects bounds the objects of a body in memory: a Register, its window, its
// members and theirs. An empty member has 3 bytes in JSON and 64 here.
const maxObjects = 2 + 2*MaxMembers

// errTooLarge is the error of DecodeRegister for a body over maxRequest.
var errTooLarge = fmt.Errorf("request is larger than %d bytes", maxRequest)

// DecodeRegister reads one Register as strict JSON: unknown fields, a second value and
// more than 1 MiB are refused. The returned Register has its defaults filled in and
// passes Validate.
func DecodeRegister(body io.Reader) (*Register, error) {
	r := new(Register)
	if err := decode(body, r, "registration"); err != nil {
		return nil, err
	}
	r.Default()
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// DecodeAddMember reads one AddMember as strictly. Validate and the daemon check
// whether it fits its group.
func DecodeAddMember(body io.Reader) (*AddMember, error) {
	m := new(AddMember)
	if err := decode(body, m, "member"); err != nil {
		return nil, err
	}
	return m, nil
}

func decode(body io.Reader, v any, what string) error {
	in := &io.LimitedReader{R: body, N: maxRequest + 1}
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if in.N <= 0 {
		return errTooLarge
	}
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return fmt.Errorf("request has %d JSON objects: a %s has %d at most", n, what, maxObjects)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more == nil {
			err = errors.New("something follows the JSON object")
		} else if more != io.EOF {
			err = more
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("request has no body; a %s as JSON is expected", what)
	case err != nil:
		return fmt.Errorf("request is not a %s: %w", what, err)
	}
	return nil
}
