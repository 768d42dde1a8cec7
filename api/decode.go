// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxRequest bounds a request's body: 4096 members with windows, generously.
const maxRequest = 1 << 20

// errTooLarge is what DecodeRegister says of a body over maxRequest.
var errTooLarge = fmt.Errorf("request is larger than %d bytes", maxRequest)

// DecodeRegister reads one Register as strict JSON: unknown fields, a second
// value and more than 1 MiB are refused. What it returns has its defaults
// filled in and passes Validate.
func DecodeRegister(body io.Reader) (*Register, error) {
	in := &io.LimitedReader{R: body, N: maxRequest + 1}
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	r := new(Register)
	err := d.Decode(r)
	if err == nil {
		if _, more := d.Token(); more == nil {
			err = errors.New("something follows the JSON object")
		} else if more != io.EOF {
			err = more
		}
	}
	switch {
	case in.N <= 0:
		return nil, errTooLarge
	case errors.Is(err, io.EOF):
		return nil, errors.New("request has no body; a registration as JSON is expected")
	case err != nil:
		return nil, fmt.Errorf("request is not a registration: %w", err)
	}
	r.Default()
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}
