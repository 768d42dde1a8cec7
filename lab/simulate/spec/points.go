// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Sweep is a file: points, of which each is one simulation.
type Sweep struct {
	name string
	text string
	vars []variable
}

// variable is a name that stands in the file as ${name}, and its values.
type variable struct {
	name   string
	values []string
}

// Point is a simulation: a file with a value for each variable.
type Point struct {
	Vars    []Var  // variables in the order of the file
	Address string // hash of the effective configuration

	file      file
	effective []byte
	dir       string // the folder that paths in the file are relative to
	reader    *reader
	seed      uint64
	clos      topology.Clos // unless the topology is a file
	cfg       sim.Config    // the configuration without network and program
	inexact   bool          // the file's trains.inexact
}

// Var is a variable's value at a point.
type Var struct{ Name, Value string }

// maxPoints bounds the product of a sweep's values.
const maxPoints = 100_000

// Parse reads a file. name is for errors, and for the folder of other files.
func Parse(name string, text []byte) (*Sweep, error) {
	s := &Sweep{name: name, text: string(text)}
	var head struct {
		Sweep yaml.MapSlice `yaml:"sweep"`
	}
	if err := unmarshal(name, text, &head); err != nil {
		return nil, err
	}
	points := 1
	for _, item := range head.Sweep {
		v := variable{name: fmt.Sprint(item.Key)}
		list, ok := item.Value.([]any)
		if !ok || len(list) == 0 || !validVariable.MatchString(v.name) {
			return nil, s.fail("sweep", v.name, "want a name of letters, and a list of values")
		}
		for _, x := range list {
			v.values = append(v.values, fmt.Sprint(x))
		}
		if points *= len(v.values); points > maxPoints {
			return nil, s.fail("sweep", v.name, "more than %d points", maxPoints)
		}
		s.vars = append(s.vars, v)
	}
	for i, line := range strings.Split(s.text, "\n") {
		for _, use := range variableUse.FindAllStringSubmatch(line, -1) {
			if !slices.ContainsFunc(s.vars, func(v variable) bool { return v.name == use[1] }) {
				return nil, config.Errors{{File: name, Line: i + 1, Text: use[0], Reason: "no such variable in sweep"}}
			}
		}
	}
	return s, nil
}

var (
	validVariable = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	variableUse   = regexp.MustCompile(`\$\{([^}\n]*)\}`) // a use within a line
)

func (s *Sweep) fail(key, text, format string, args ...any) error {
	line := 0
	for i, l := range strings.Split(s.text, "\n") {
		if strings.HasPrefix(l, key+":") {
			line = i + 1
		}
	}
	return config.Errors{{File: s.name, Line: line, Key: key, Text: text, Reason: fmt.Sprintf(format, args...)}}
}

// Set leaves one value of a variable, which need not be one of the file's.
func (s *Sweep) Set(name, value string) error {
	for i := range s.vars {
		if s.vars[i].name == name {
			s.vars[i].values = []string{value}
			return nil
		}
	}
	return fmt.Errorf("%s: no variable %q in sweep", s.name, name)
}

// Points returns all combinations of values; the last variable changes first. Each one's
// configuration is valid.
func (s *Sweep) Points() ([]*Point, error) {
	total := 1
	for _, v := range s.vars {
		total *= len(v.values)
	}
	var points []*Point
	for i := range total {
		vars := make([]Var, len(s.vars))
		rest := i
		for j := len(s.vars) - 1; j >= 0; j-- {
			v := s.vars[j]
			vars[j] = Var{v.name, v.values[rest%len(v.values)]}
			rest /= len(v.values)
		}
		p, err := s.point(vars)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// point puts the values into the text, line by line, so that lines in errors stay those of
// the file.
func (s *Sweep) point(vars []Var) (*Point, error) {
	text := variableUse.ReplaceAllStringFunc(s.text, func(use string) string {
		name := variableUse.FindStringSubmatch(use)[1]
		return vars[slices.IndexFunc(vars, func(v Var) bool { return v.Name == name })].Value
	})
	var f file
	r, err := decode(s.name, []byte(text), &f)
	if err != nil {
		return nil, err
	}
	p := &Point{Vars: vars, file: f, dir: filepath.Dir(s.name), reader: r}
	p.file.setDefaults()
	p.file.Sweep = nil // a point has none
	if p.check(); r.err() != nil {
		return nil, r.err()
	}
	if p.effective, err = yaml.Marshal(&p.file); err != nil {
		return nil, fmt.Errorf("%s: print the effective configuration: %w", s.name, err)
	}
	addressed, err := yaml.Marshal(p.file.addressed())
	if err != nil {
		return nil, fmt.Errorf("%s: print what is addressed: %w", s.name, err)
	}
	sum := sha256.Sum256(append([]byte(fmt.Sprintf("results %d\n", version)), addressed...))
	p.Address = hex.EncodeToString(sum[:10])
	return p, nil
}

// version is of what a configuration means. A change of it makes all results anew.
const version = 1

// Effective returns the whole configuration of the point with all defaults, as a file.
func (p *Point) Effective() []byte { return p.effective }

// Name returns the name of the file's study.
func (p *Point) Name() string { return p.file.Name }

// Names returns the names of the variables.
func (p *Point) Names() (names []string) {
	for _, v := range p.Vars {
		names = append(names, v.Name)
	}
	return names
}

// String returns the values of the variables.
func (p *Point) String() string {
	parts := make([]string, len(p.Vars))
	for i, v := range p.Vars {
		parts[i] = v.Name + "=" + v.Value
	}
	return strings.Join(parts, " ")
}
