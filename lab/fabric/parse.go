// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/config/yamlpanic"
)

// file is a topology as a YAML file has it.
type file struct {
	Switches []string   `yaml:"switches"`
	Hosts    []string   `yaml:"hosts"`
	Links    []fileLink `yaml:"links"`
}

type fileLink struct {
	A     string `yaml:"a"`
	B     string `yaml:"b"`
	MTU   int    `yaml:"mtu"`
	Loss  string `yaml:"loss"`
	Rate  string `yaml:"rate"`
	Delay string `yaml:"delay"`
}

// Parse reads a topology:
//
//	switches: [l1, l2, s1]
//	hosts: [h1, h2]
//	links:
//	  - {a: l1, b: s1, mtu: 4200, loss: 0.5%, rate: 1gbit, delay: 100us}
//	  - {a: l2, b: s1}
//	  - {a: l1, b: h1}
//	  - {a: l2, b: h2}
//
// The topology is valid. Unknown keys are errors.
func Parse(text []byte) (*Topology, error) {
	var f file
	if err := unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	t := &Topology{Switches: f.Switches, Hosts: f.Hosts}
	for _, l := range f.Links {
		link, err := l.read()
		if err != nil {
			return nil, fmt.Errorf("topology: link %s-%s: %w", l.A, l.B, err)
		}
		t.Links = append(t.Links, link)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

func unmarshal(text []byte, f *file) (err error) {
	defer yamlpanic.Recover(&err)
	return yaml.UnmarshalWithOptions([]byte(yamlpanic.Text(text)), f, yaml.Strict())
}

func (f fileLink) read() (l Link, err error) {
	l = Link{A: f.A, B: f.B, MTU: f.MTU}
	if f.Loss != "" {
		if l.Loss, err = readPart(f.Loss); err != nil {
			return l, fmt.Errorf("loss %q: want a number such as 0.01 or 1%%", f.Loss)
		}
	}
	if f.Rate != "" {
		if l.Rate, err = linkrate.Parse(f.Rate); err != nil {
			return l, fmt.Errorf("rate %q: %w", f.Rate, err)
		}
	}
	if f.Delay != "" {
		if l.Delay, err = time.ParseDuration(f.Delay); err != nil {
			return l, fmt.Errorf("delay %q: want a duration such as 100us", f.Delay)
		}
	}
	return l, nil
}

// readPart reads a number, or one with a percent sign.
func readPart(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	return x, err
}
