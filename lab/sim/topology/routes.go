// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package topology

// Routes are the shortest paths of a topology, at a time at which some links may be down.
// They do not change, and may be read by several goroutines.
type Routes struct {
	t *Topology
	// leaf is the number of each host's switch among those with hosts; nil if the
	// structure has the next hops.
	leaf []int32
	hops []int32   // the index in sets, by leaf number and switch; 0 for no way
	sets [][]int32 // each set of ports once
	down func(link int32) bool
}

// Routes returns the routes without the links for which down reports true; nil stands for
// none.
func (t *Topology) Routes(down func(link int32) bool) *Routes {
	r := &Routes{t: t, down: down}
	if down == nil && t.shape.nextHops(Node(t.Hosts), 0) != nil {
		return r
	}
	r.table()
	return r
}

// NextHops returns the ports of a switch on all shortest paths to a host, in ascending
// order. The slice is shared. It is empty if there is no path.
func (r *Routes) NextHops(sw, dst Node) []int32 {
	if r.leaf == nil {
		return r.t.shape.nextHops(sw, dst)
	}
	if at := r.t.ports[r.t.first[dst]]; at.Peer == sw {
		if r.isDown(at.Link) {
			return nil
		}
		return r.sets[1+at.PeerPort] // the sets of one port come first
	}
	return r.sets[r.hops[int(r.leaf[dst])*r.t.Switches+int(sw)-r.t.Hosts]]
}

func (r *Routes) isDown(link int32) bool { return r.down != nil && r.down(link) }

// table computes the next hops of all switches to each switch with hosts.
func (r *Routes) table() {
	t := r.t
	r.leaf = make([]int32, t.Hosts)
	number := make(map[Node]int32)
	var leaves []Node
	for h := range r.leaf {
		leaf := t.Leaf(Node(h))
		n, ok := number[leaf]
		if !ok {
			n = int32(len(leaves))
			number[leaf], leaves = n, append(leaves, leaf)
		}
		r.leaf[h] = n
	}
	most := 0
	for sw := t.Hosts; sw < t.nodes(); sw++ {
		most = max(most, len(t.Ports(Node(sw))))
	}
	r.sets = append(r.sets, nil)
	known := map[string]int32{"": 0}
	for p := range int32(most) {
		r.sets = append(r.sets, []int32{p})
		known[setKey(r.sets[p+1])] = p + 1
	}
	r.hops = make([]int32, len(leaves)*t.Switches)
	distance := make([]int32, t.Switches)
	var queue []Node
	var ports []int32
	for n, leaf := range leaves {
		queue = r.distances(leaf, distance, queue[:0])
		for i := range t.Switches {
			sw := Node(t.Hosts + i)
			ports = ports[:0]
			for p, at := range t.Ports(sw) {
				if !t.IsHost(at.Peer) && distance[i] > 0 && distance[int(at.Peer)-t.Hosts] == distance[i]-1 && !r.isDown(at.Link) {
					ports = append(ports, int32(p))
				}
			}
			key := setKey(ports)
			set, ok := known[key]
			if !ok {
				set = int32(len(r.sets))
				known[key] = set
				r.sets = append(r.sets, append([]int32(nil), ports...))
			}
			r.hops[n*t.Switches+i] = set
		}
	}
}

// distances fills the number of links from each switch to one of them, -1 if there is no
// path, and returns the switches that have one.
func (r *Routes) distances(to Node, distance []int32, queue []Node) []Node {
	for i := range distance {
		distance[i] = -1
	}
	distance[int(to)-r.t.Hosts] = 0
	queue = append(queue, to)
	for i := 0; i < len(queue); i++ {
		from := int(queue[i]) - r.t.Hosts
		for _, at := range r.t.Ports(queue[i]) {
			if r.t.IsHost(at.Peer) || r.isDown(at.Link) {
				continue
			}
			if peer := int(at.Peer) - r.t.Hosts; distance[peer] < 0 {
				distance[peer] = distance[from] + 1
				queue = append(queue, at.Peer)
			}
		}
	}
	return queue
}

// setKey is a set of ports as the key of a map.
func setKey(ports []int32) string {
	b := make([]byte, 0, 4*len(ports))
	for _, p := range ports {
		b = append(b, byte(p), byte(p>>8), byte(p>>16), byte(p>>24))
	}
	return string(b)
}
