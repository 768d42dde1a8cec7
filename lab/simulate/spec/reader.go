// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/config/yamlpanic"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// reader reads the values of a file. An error has the line of the key that it is about.
type reader struct {
	name string
	tree *ast.File
	errs config.Errors
}

// decode reads YAML into a structure; keys that it does not have are errors.
func decode(name string, text []byte, into any) (*reader, error) {
	r := &reader{name: name}
	if err := unmarshal(name, text, into, yaml.Strict()); err != nil {
		return nil, err
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, config.Errors{located(name, err)}
	}
	r.tree = tree
	return r, nil
}

// unmarshal reads YAML; an error has its line, as far as the library knows it.
func unmarshal(name string, text []byte, into any, options ...yaml.DecodeOption) (err error) {
	defer func() {
		if err != nil {
			err = config.Errors{located(name, err)}
		}
	}()
	defer yamlpanic.Recover(&err)
	return yaml.UnmarshalWithOptions([]byte(yamlpanic.Text(text)), into, options...)
}

// located takes the line and the message of an error of the library, without its excerpt.
func located(name string, err error) *config.Error {
	e := &config.Error{File: name, Reason: strings.SplitN(err.Error(), "\n", 2)[0]}
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		e.Line, e.Text, e.Reason = y.GetToken().Position.Line, y.GetToken().Value, y.GetMessage()
	}
	return e
}

// fail notes an error at a key such as "topology.rate" or "phases[0].name".
func (r *reader) fail(key, value, format string, args ...any) {
	r.errs = append(r.errs, &config.Error{File: r.name, Line: r.line(key), Key: key, Text: value, Reason: fmt.Sprintf(format, args...)})
}

// line returns the line of a key, or of the nearest one above it that is in the file.
func (r *reader) line(key string) int {
	for key != "" {
		if p, err := yaml.PathString("$." + key); err == nil {
			if n, err := p.FilterFile(r.tree); err == nil && n != nil && n.GetToken() != nil {
				return n.GetToken().Position.Line
			}
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// err returns all errors.
func (r *reader) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	return r.errs
}

// The readers of values note an error and return 0 for what is no such value.

func (r *reader) integer(key, s string, least, most int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		r.fail(key, s, "want a number from %d to %d", least, most)
	}
	return n
}

func (r *reader) count(key, s string, most int) int { return int(r.integer(key, s, 1, int64(most))) }

// part reads a probability or a share: a number, or one with a percent sign.
func (r *reader) part(key, s string) float64 {
	number, percent := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		r.fail(key, s, "want a number from 0 to 1, or 0%% to 100%%")
		return 0
	}
	return x
}

func (r *reader) rate(key, s string) int64 {
	x, err := linkrate.Parse(s)
	if err != nil || x == linkrate.None {
		r.fail(key, s, "want a rate such as 200gbit")
	}
	return int64(x)
}

func (r *reader) time(key, s string) topology.Time {
	t, err := workload.ParseTime(s)
	if err != nil {
		r.fail(key, s, "want a time such as 1.5us")
	}
	return t
}

// duration reads a time of the hosts and switches, which have nanoseconds.
func (r *reader) duration(key, s string) time.Duration {
	return time.Duration(r.time(key, s) / topology.Nanosecond)
}

func (r *reader) bytes(key, s string) int64 {
	n, err := workload.ParseBytes(s)
	if err != nil {
		r.fail(key, s, "want a size such as 64KiB or 63.5MB")
	}
	return n
}

// oneOf reads one of several words and returns its number.
func (r *reader) oneOf(key, s string, words ...string) int {
	for i, w := range words {
		if s == w {
			return i
		}
	}
	r.fail(key, s, "want one of %s", strings.Join(words, ", "))
	return 0
}
