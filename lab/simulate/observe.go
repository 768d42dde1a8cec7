// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/spf13/cobra"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
)

// observation is what a run writes about ports while it goes on. A nil one writes nothing.
type observation struct {
	pcap    []string // PORT=FILE
	snap    int
	samples string // file
	ports   []string
	every   string

	interval topology.Time
	files    []io.Closer
	writers  []*bufio.Writer
	captures map[string]*pcapgo.NgWriter // writers by port
	table    *bufio.Writer
	taps     []sim.Tap
	names    []string      // the names of taps
	base     topology.Time // the time of the phase, in captures
	last     topology.Time // observed
	phase    string
	err      error
}

func (o *observation) add(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.pcap, "pcap", nil, "PORT=FILE: write the frames of a port as pcapng; PORT is a host, or SWITCH:NEIGHBOUR")
	f.IntVar(&o.snap, "snap-length", 8192, "most bytes of a frame in a capture; Wireshark calls truncated ones malformed")
	f.StringVar(&o.samples, "samples", "", "write rate and queue of ports as CSV into this file")
	f.StringSliceVar(&o.ports, "sample-ports", nil, "ports that are sampled, as in --pcap")
	f.StringVar(&o.every, "sample-every", "10us", "interval of the samples")
}

// open opens the files. It returns nil if nothing is to be observed.
func (o *observation) open(points int) (*observation, error) {
	switch {
	case len(o.pcap) == 0 && o.samples == "" && len(o.ports) == 0:
		return nil, nil
	case points > 1:
		return nil, cli.UsageErrorf("--pcap and --samples are of one point, and the file has %d: choose one by --set", points)
	case (o.samples == "") != (len(o.ports) == 0):
		return nil, cli.UsageErrorf("--samples FILE and --sample-ports PORT,... belong together")
	case o.snap < 64:
		return nil, cli.UsageErrorf("--snap-length %d: want 64 or more, the headers", o.snap)
	}
	var err error
	if o.interval, err = workload.ParseTime(o.every); err != nil || o.interval <= 0 {
		return nil, cli.UsageErrorf("--sample-every %q: want a time such as 10us", o.every)
	}
	if o.samples != "" {
		if o.table, err = o.create(o.samples); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(o.table, "phase,port,at_us,rate_gbit_s,queue_bytes,paused\n"); err != nil {
			return nil, err
		}
	}
	o.captures = map[string]*pcapgo.NgWriter{}
	for _, v := range o.pcap {
		port, name, ok := strings.Cut(v, "=")
		if !ok || port == "" || name == "" || o.captures[port] != nil {
			return nil, cli.UsageErrorf("--pcap %q: want PORT=FILE, each port once", v)
		}
		w, err := o.create(name)
		if err != nil {
			return nil, err
		}
		options := pcapgo.DefaultNgWriterOptions
		options.SectionInfo.Application = "gleam sim"
		o.captures[port], err = pcapgo.NewNgWriterInterface(w, pcapgo.NgInterface{
			Name: port, Comment: "simulated: the bytes of payloads are 0", LinkType: layers.LinkTypeEthernet, SnapLength: uint32(o.snap), TimestampResolution: 9,
		}, options)
		if err != nil {
			return nil, fmt.Errorf("simulate: --pcap %s: %w", name, err)
		}
	}
	return o, nil
}

func (o *observation) create(name string) (*bufio.Writer, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	w := bufio.NewWriter(f)
	o.files, o.writers = append(o.files, f), append(o.writers, w)
	return w, nil
}

// begin returns the taps for a phase.
func (o *observation) begin(phase string, t *topology.Topology) ([]sim.Tap, error) {
	if o == nil {
		return nil, nil
	}
	if o.phase, o.base = phase, o.base+o.last; o.last > 0 { // phases begin at whole milliseconds
		o.base += topology.Millisecond - o.base%topology.Millisecond
	}
	o.last, o.taps, o.names = 0, nil, nil
	var names []string
	for _, v := range o.pcap {
		port, _, _ := strings.Cut(v, "=")
		names = append(names, port)
	}
	for _, name := range append(names, o.ports...) {
		if slices.Contains(o.names, name) {
			continue
		}
		tap, err := tapOf(name, t)
		if err != nil {
			return nil, err
		}
		tap.Packets = o.captures[name] != nil
		if slices.Contains(o.ports, name) {
			tap.Every = o.interval
		}
		o.taps, o.names = append(o.taps, tap), append(o.names, name)
	}
	return o.taps, nil
}

// tapOf finds a port: that of a host, or that of a switch to a neighbour.
func tapOf(name string, t *topology.Topology) (sim.Tap, error) {
	at, to, toNeighbour := strings.Cut(name, ":")
	for n := range t.Hosts + t.Switches {
		node := topology.Node(n)
		if t.Name(node) != at {
			continue
		}
		if !toNeighbour && t.IsHost(node) {
			return sim.Tap{Node: node}, nil
		}
		for i, p := range t.Ports(node) {
			if t.Name(p.Peer) == to {
				return sim.Tap{Node: node, Port: int32(i)}, nil
			}
		}
		if !toNeighbour {
			return sim.Tap{}, cli.UsageErrorf("port %q: a switch has several; want %s:NEIGHBOUR, such as %s:%s", name, at, at, t.Name(t.Ports(node)[0].Peer))
		}
		return sim.Tap{}, cli.UsageErrorf("port %q: %s has no link to %q", name, at, to)
	}
	return sim.Tap{}, cli.UsageErrorf("port %q: no host and no switch has this name; `gleam sim topology FILE --yaml` lists them", name)
}

// write writes what has been observed before a time.
func (o *observation) write(s *sim.Simulation, until topology.Time) {
	if o == nil {
		return
	}
	s.Observed(until, func(x *sim.Observed) {
		o.last = max(o.last, x.At)
		var err error
		if x.Sample != nil {
			paused := 0
			if x.Sample.Paused {
				paused = 1
			}
			_, err = fmt.Fprintf(o.table, "%s,%s,%.6f,%.3f,%d,%d\n", o.phase, o.names[x.Tap], micro(x.At), float64(x.Sample.Bytes)*8/o.interval.Seconds()/1e9, x.Sample.Queue, paused)
		} else {
			at := time.Unix(0, int64((o.base+x.At)/topology.Nanosecond))
			data := slices.Clone(x.Frame[:min(len(x.Frame), o.snap)])
			err = o.captures[o.names[x.Tap]].WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(data), Length: len(x.Frame)}, data)
		}
		o.err = firstError(o.err, err)
	})
}

// close ends the files.
func (o *observation) close() error {
	if o == nil {
		return nil
	}
	err := o.err
	for _, w := range o.captures {
		err = errors.Join(err, w.Flush())
	}
	for i, w := range o.writers {
		err = errors.Join(err, w.Flush(), o.files[i].Close())
	}
	if err != nil {
		return fmt.Errorf("simulate: --pcap, --samples: %w", err)
	}
	return nil
}
