// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package linkrate has the rates of links, and how they are written.
package linkrate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is a number of bits a second on an Ethernet link, with everything that a
// frame takes there: header, FCS, preamble and the gap to the next one. A port
// of 100mbit is as fast as a 100 Mbit/s interface.
type Rate int64

// None is no limit. Min and Max bound any other rate.
const (
	None Rate = 0
	Min  Rate = 10_000
	Max  Rate = 1_000_000_000_000
)

// units are how a rate ends, as with tc(8), the longest first.
var units = []struct {
	name string
	bits float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// Parse reads a rate such as 100mbit, 2.5gbit or none. The units are bit, kbit,
// mbit and gbit a second, each 1000 times the one before. The error says what is
// wanted and leaves it to the caller to name the place.
func Parse(s string) (Rate, error) {
	if s == "none" {
		return None, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.ToLower(s), u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" {
			break
		}
		r := Rate(math.Round(min(x*u.bits, 2*float64(Max))))
		if err := r.Validate(); err != nil || r == None {
			return None, fmt.Errorf("want %v to %v, or none", Min, Max)
		}
		return r, nil
	}
	return None, errors.New("want bits a second such as 100mbit or 2.5gbit, or none")
}

// Validate returns an error unless r is None or from Min to Max.
func (r Rate) Validate() error {
	if r != None && (r < Min || r > Max) {
		return fmt.Errorf("a rate of %d bit/s: want %d to %d, or 0 for none", int64(r), int64(Min), int64(Max))
	}
	return nil
}

// String returns r as Parse reads it, in the largest unit that it is a number
// with at most three decimals of.
func (r Rate) String() string {
	if r == None {
		return "none"
	}
	for _, u := range units {
		if x := float64(r) / u.bits; x >= 1 && math.Round(x*1000) == x*1000 {
			return strconv.FormatFloat(x, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(r), 10) + "bit"
}
