// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// In the switch's namespace.
const (
	metricsAddress    = "127.0.0.1:9477"
	prometheusAddress = "127.0.0.1:9090"
)

// live is a lab with gleamd, Prometheus beside it, and a group with data.
type live struct {
	t      *testing.T
	bed    *testbed.Testbed
	client *http.Client // the client in the switch's namespace
	group  netip.Addr
	hosts  []*testbed.Host
}

func newLive(t *testing.T) *live {
	t.Helper()
	bed := bedtest.Star(t, testbed.Config{
		Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: 4}, More: "metrics: {listen: " + metricsAddress + ", socket: true}\n",
	})
	dial := func(_ context.Context, network, address string) (c net.Conn, err error) {
		return c, bed.Star.Switch.Do(func() error { c, err = net.Dial(network, address); return err })
	}
	return &live{t: t, bed: bed, group: netip.MustParseAddr("10.77.254.1"), client: &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: 10 * time.Second}}
}

// get returns the body of a page in the switch's namespace.
func (l *live) get(address string) ([]byte, error) {
	r, err := l.client.Get("http://" + address)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != 200 {
		err = fmt.Errorf("%s: %s: %s", address, r.Status, text)
	}
	return text, err
}

// startPrometheus runs Prometheus with the rules of contrib, each second.
func (l *live) startPrometheus() {
	l.t.Helper()
	dir := l.t.TempDir()
	rules, err := filepath.Abs("../../../contrib/prometheus/gleam.rules.yml")
	if err != nil {
		l.t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	config := strings.NewReplacer("15s", "1s", "gleam.rules.yml", rules, "127.0.0.1:9477", metricsAddress).Replace(read(l.t, "contrib/prometheus/prometheus.yml"))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		l.t.Fatal(err)
	}
	p, err := l.bed.Star.Switch.Start(exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+prometheusAddress))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = p.Signal(syscall.SIGTERM)
		_ = p.Wait()
		if l.t.Failed() {
			l.t.Log(p.Output())
		}
	})
	l.until("Prometheus is ready", func() error { _, err := l.get(prometheusAddress + "/-/ready"); return err })
}

// until waits for a condition.
func (l *live) until(what string, holds func() error) {
	l.t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	l.t.Fatalf("%s: not within 30 s: %v", what, err)
}

// result is an answer of Prometheus.
type result struct {
	Metric map[string]string
	Value  [2]any
}

// query evaluates an expression now.
func (l *live) query(expression string) (list []result, err error) {
	text, err := l.get(prometheusAddress + "/api/v1/query?query=" + url.QueryEscape(expression))
	var answer struct{ Data struct{ Result []result } }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer.Data.Result, err
}

// waitFor waits until an expression has a result, and returns it.
func (l *live) waitFor(expression string) (list []result) {
	l.t.Helper()
	l.until(expression, func() (err error) {
		if list, err = l.query(expression); err == nil && len(list) == 0 {
			err = fmt.Errorf("no result")
		}
		return err
	})
	return list
}

// join makes a group of all hosts that goes on without a member that is silent.
func (l *live) join() *endpoint.Group {
	l.t.Helper()
	l.hosts = bedtest.Open(l.t, l.bed.Star.Hosts, testbed.Endpoints{Key: l.bed.Key, Answer: true, Deadline: 20 * time.Second, Memory: 32 << 10})
	c := endpoint.MasterConfig{GroupIP: l.group, Policy: mcast.Evict, PathMTU: 1024, WindowBase: 0x5000_0000_0000}
	groups, err := testbed.Join(l.t.Context(), c, l.hosts)
	if err != nil {
		l.t.Fatal(err)
	}
	return groups[0]
}

// send writes messages to the group until the test ends. An error ends it.
func (l *live) send(g *endpoint.Group) (failed <-chan error) {
	end := make(chan error, 1)
	ctx, stop := context.WithCancel(l.t.Context())
	done := make(chan struct{})
	l.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		if err := testbed.Repeat(ctx, g, l.hosts[0].Memory); err != nil {
			end <- err
		}
	}()
	return end
}

// expressions returns those of the dashboard, with its variables replaced.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "contrib/grafana/gleam.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			list = append(list, strings.NewReplacer("$instance", ".*", "$__rate_interval", "10s").Replace(x.Expr))
		}
	}
	return list
}

// A real Prometheus scrapes a real switch. Data flows; a member is killed, and is evicted: the
// alert fires, the group's live members are one fewer, and the source goes on. promtool has
// nothing to say about the metrics, and every expression of the dashboard can be evaluated.
func TestPrometheus(t *testing.T) {
	labtest.Require(t)
	labtest.Part(t, "metrics")
	labtest.Needs(t, "prometheus", "promtool")
	begin := time.Now()
	if text, err := exec.Command("promtool", "test", "rules", "../../../contrib/prometheus/gleam.rules.test.yml").CombinedOutput(); err != nil {
		t.Fatalf("promtool test rules: %v\n%s", err, text)
	}
	l := newLive(t)
	l.startPrometheus()
	failed := l.send(l.join())
	l.waitFor(fmt.Sprintf(`rate(gleam_group_data_received_bytes_total{group="%s"}[5s]) > 0`, l.group))
	l.waitFor(`rate(gleam_ack_delay_seconds_count[5s]) > 0`)
	l.waitFor(`rate(gleam_worker_busy_seconds_total[5s]) > 0 and rate(gleam_worker_busy_seconds_total[5s]) <= 1.1`)
	l.waitFor(`gleam_registration_duration_seconds_count == 1`)
	l.waitFor(`gleam_registration_install_seconds_count == 1 and gleam_registration_install_seconds_sum > 0 and gleam_answer_stored_seconds_count > 0`)
	l.waitFor(fmt.Sprintf(`gleam_group_live_members{group="%s"} == 4`, l.group))
	if fired, err := l.query(`ALERTS{alertstate="firing", severity!="info"}`); err != nil || len(fired) > 0 {
		t.Errorf("alerts of a healthy switch: %v, %v", fired, err)
	}

	_ = l.hosts[3].Close()
	fired := l.waitFor(`ALERTS{alertname="GleamMemberEvicted", alertstate="firing"}`)
	if fired[0].Metric["instance"] != metricsAddress {
		t.Errorf("the alert is of %v", fired[0].Metric)
	}
	l.waitFor(fmt.Sprintf(`gleam_group_live_members{group="%s"} == 3`, l.group))
	l.waitFor(`gleam_events_total{kind="evicted"} == 1`)
	l.waitFor(fmt.Sprintf(`rate(gleam_group_data_received_bytes_total{group="%s"}[3s]) > 0`, l.group))
	select {
	case err := <-failed:
		t.Errorf("the source did not go on: %v", err)
	default:
	}

	text, err := l.get(metricsAddress + Path)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, said)
	}
	unix := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", l.bed.Socket()) }}}
	r, err := unix.Get("http://switch" + Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if body, _ := io.ReadAll(r.Body); !bytes.Contains(body, []byte("\ngleam_groups 1\n")) {
		t.Errorf("at the API's socket: %s\n%s", r.Status, body)
	}
	for _, x := range expressions(t) {
		if _, err := l.query(x); err != nil {
			t.Errorf("the dashboard's %s: %v", x, err)
		}
	}
	t.Logf("%d bytes a scrape, %v in all", len(text), time.Since(begin).Round(time.Second))
}
