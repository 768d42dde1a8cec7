// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

var write = flag.Bool("write", false, "TestDocument writes docs/METRICS.md")

// full is a switch that has everything that a metric may be about.
func full() *apitest.Backend {
	b := apitest.Switch()
	b.GroupList[1].StallSeconds = 2.5
	return b
}

func config() Config {
	return Config{Groups: 10, Version: api.Version{Version: "v1", Commit: "0123456789ab", Go: "go1", Started: time.Unix(1000, 0)}, Drops: []string{"no_location"}, Unneeded: []string{"stale_feedback"}}
}

// Every metric has a series in what is gathered of a switch that has everything, with the labels
// of the catalog, and the linter of promtool has no objection.
func TestEveryMetricIsServed(t *testing.T) {
	c := &collector{backend: full(), config: config()}
	text := c.collect().text()
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	// Prometheus' own encoder writes the same bytes.
	var again bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if _, err := expfmt.MetricFamilyToText(&again, families[name]); err != nil {
			t.Fatal(err)
		}
	}
	if again.String() != string(text) {
		t.Errorf("Prometheus' encoder writes\n%s\nfor\n%s", &again, text)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "} ")
		if !strings.HasPrefix(line, "#") && strings.Contains(line, "{") && seen[name] {
			t.Errorf("two series %s", name)
		}
		seen[name] = true
	}
	for _, m := range All() {
		if families[m.Name] == nil {
			t.Errorf("%s has no series", m.Name)
		}
		if !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "|\n") {
			t.Errorf("%s: help is not a sentence for a table: %q", m.Name, m.Help)
		}
	}
}

// noMetrics are counters of the API that no metric has, with the reason.
var noMetrics = map[string]string{
	"Group.Epoch":           "a number of the registration",
	"FastPath.Packets":      "of data_in, and only gleam group show tells them apart",
	"FastPath.Copies":       "of copies, and only gleam group show tells them apart",
	"FastPath.ACKs":         "of feedback_in, and only gleam group show tells them apart",
	"FastPath.Answers":      "of feedback_out, and only gleam group show tells them apart",
	"FastPath.Grants":       "for who looks at one group",
	"FastPath.Revokes":      "for who looks at one group",
	"Moves.Inquiries":       "each ends as confirmed or unconfirmed",
	"Moves.Stray":           "an answer that changes nothing",
	"Stats.EnvelopePartial": "of envelope_in, and no fault",
}

// Each counter of the API has a row in the catalog, or a reason to have none.
func TestEveryCounterHasAMetric(t *testing.T) {
	b := full()
	text := func() string { return string((&collector{backend: b, config: config()}).collect().text()) }
	before, counters := text(), make(map[string]bool)
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					walk(v.Type().Name()+"."+f.Name, v.Field(i))
				}
			}
		case reflect.Uint64:
			was := v.Uint()
			v.SetUint(was + 1e9)
			counters[path] = counters[path] || text() != before
			v.SetUint(was)
		}
	}
	walk("", reflect.ValueOf(&b.PortList))
	walk("", reflect.ValueOf(&b.GroupList))
	walk("", reflect.ValueOf(b.Totals))
	for _, path := range slices.Sorted(maps.Keys(counters)) {
		if none := noMetrics[path] != ""; counters[path] == none {
			t.Errorf("%s has a metric: %v; listed as having none: %v", path, counters[path], none)
		}
	}
	if len(counters) < 50 {
		t.Errorf("%d counters", len(counters))
	}
}

// Values of labels are escaped, as Prometheus reads them, and values beyond numbers are written.
func TestEscapes(t *testing.T) {
	o := make(out)
	m := All()[slices.IndexFunc(All(), func(m *Metric) bool { return m.Name == "gleam_port_up" })]
	o.put(m, math.Inf(1), "a\\b\"c\nd\xff")
	o.put(m, math.NaN(), "a")
	if got, want := string(o.text()), "gleam_port_up{port=\"a\"} NaN\ngleam_port_up{port=\"a\\\\b\\\"c\\nd\uFFFD\"} +Inf\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// stuck is a switch that answers when it is told to.
type stuck struct {
	*apitest.Backend
	once   sync.Once
	asked  chan struct{} // closed by the first question
	answer chan struct{}
}

func (s *stuck) BusiestGroups(n int) ([]api.Group, int, error) {
	s.once.Do(func() { close(s.asked) })
	<-s.answer
	return s.Backend.BusiestGroups(n)
}

// While a switch does not answer, more scrapes than maxScrapes are refused, and later ones are served.
func TestScrapesAtOneTime(t *testing.T) {
	b := &stuck{Backend: full(), asked: make(chan struct{}), answer: make(chan struct{})}
	h := Handler(b, config())
	get := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
		return w.Code
	}
	codes := make(chan int)
	for range maxScrapes + 1 {
		go func() { codes <- get() }()
	}
	<-b.asked
	if code := <-codes; code != 503 { // the others wait for the switch
		t.Errorf("one scrape too many: status %d", code)
	}
	close(b.answer)
	for range maxScrapes {
		if code := <-codes; code != 200 {
			t.Errorf("a scrape that waited: status %d", code)
		}
	}
	if code := get(); code != 200 {
		t.Errorf("a scrape after them: status %d", code)
	}
}

// A scraper that takes gzip gets it.
func TestCompressed(t *testing.T) {
	r := httptest.NewRequest("GET", Path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	Handler(full(), config()).ServeHTTP(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != scrape(t, full(), config()) || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%v: %d bytes", err, len(text))
	}
}

// scrape returns the text of a scrape.
func scrape(t *testing.T, b Backend, c Config) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(b, c).ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// Values are those of the API's types, in base units; reasons and kinds have a series before
// they occur; only the member that the ACK waits for is named.
func TestValues(t *testing.T) {
	text := scrape(t, full(), config())
	for _, want := range []string{
		`gleam_build_info{commit="0123456789ab",goversion="go1",version="v1"} 1`,
		`gleam_start_time_seconds 1000`,
		`gleam_data_received_bytes_total 1.024e+06`,
		`gleam_dropped_packets_total{reason="unknown_group"} 2`,
		`gleam_dropped_packets_total{reason="no_location"} 0`,
		`gleam_unneeded_packets_total{reason="stale_feedback"} 0`,
		`gleam_events_total{kind="evicted"} 1`,
		`gleam_events_total{kind="failed"} 0`,
		`gleam_registrations_total{outcome="table_full"} 1`,
		`gleam_registration_duration_seconds_bucket{le="0.01"} 2`,
		`gleam_registration_install_seconds_count 2`,
		`gleam_answer_stored_seconds_bucket{le="0.001"} 4`,
		`gleam_ack_delay_seconds_bucket{le="+Inf"} 105`,
		`gleam_ack_delay_seconds_bucket{le="0.001"} 103`,
		`gleam_ack_delay_seconds_sum 0.061`,
		`gleam_worker_busy_seconds_total{worker="0"} 465.6`,
		`gleam_socket_dropped_packets_total{port="p1",queue="0",reason="rx_ring_full"} 17`,
		`gleam_device_missed_packets_total{port="p1"} 9`,
		`gleam_port_rate_bytes_per_second{port="p2"} 1.25e+07`,
		`gleam_group_waits_for{group="10.77.254.1",member="10.77.0.3",port="p2"} 1`,
		`gleam_group_slowed_by{cause="loss",group="10.77.254.1",member="10.77.0.3",port="p2"} 1`,
		`gleam_group_data_repeated_packets_total{group="10.77.254.1"} 4`,
		`gleam_group_payload_bytes_total{group="10.77.254.1"} 1.019904e+06`,
		`gleam_group_members_left_out{group="10.77.254.1"} 0`,
		`gleam_member_slow{cause="loss",group="10.77.254.1",member="10.77.0.3",port="p2"} 1`,
		`gleam_member_waited_seconds_total{group="10.77.254.1",member="10.77.0.3"} 3.254`,
		`gleam_member_naks_total{group="10.77.254.1",member="10.77.0.3"} 12`,
		`gleam_member_rnr_naks_total{group="10.77.254.1",member="10.77.0.3"} 2`,
		`gleam_member_repaired_packets_total{group="10.77.254.1",member="10.77.0.3"} 96`,
		`gleam_member_probes_total{group="10.77.254.1",member="10.77.0.3"} 1`,
		`gleam_member_round_trip_median_seconds{group="10.77.254.1",member="10.77.0.2"} 0.000212`,
		`gleam_member_round_trip_p99_seconds{group="10.77.254.1",member="10.77.0.2"} 0.00185`,
		`gleam_member_lag_packets{group="10.77.254.1",member="10.77.0.3"} 17`,
		`gleam_port_down_total{port="p1"} 0`,
		`gleam_group_live_members{group="10.77.254.1"} 3`,
		`gleam_group_highest_lag_packets{group="10.77.254.1"} 17`,
		`gleam_group_stalled_seconds{group="fd77::6c65:1"} 2.5`,
		`gleam_group_state{group="10.77.254.1",state="running"} 1`,
		`gleam_groups_left_out 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(text, "gleam_group_waits_for{"); n != 1 {
		t.Errorf("%d members are waited for, want that of the group with outstanding packets", n)
	}
	if n := strings.Count(text, "gleam_member_slow{"); n != 1 {
		t.Errorf("%d members are slow, want one", n)
	}
}

// Members with series are bounded, those that cost most have them, and the others are counted.
func TestMembersAreBounded(t *testing.T) {
	b := full()
	g := &b.GroupList[0]
	for i := range 100 {
		g.Members = append(g.Members, api.Member{IP: netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), Cost: &api.Cost{Waited: float64(i)}})
	}
	text := scrape(t, b, config())
	if n := strings.Count(text, "\ngleam_member_naks_total{"); n != memberSeries {
		t.Errorf("%d members have series, want %d", n, memberSeries)
	}
	for _, want := range []string{
		`gleam_group_members_left_out{group="10.77.254.1"} 86`,
		`gleam_member_waited_seconds_total{group="10.77.254.1",member="10.9.0.99"} 99`,
		`gleam_member_slow{cause="loss",group="10.77.254.1",member="10.77.0.3",port="p2"} 1`, // though others have been waited for longer
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}

// Series are bounded: those of groups by the configuration, and the bound is said.
func TestGroupsAreBounded(t *testing.T) {
	b := full()
	for i := range 100 {
		b.GroupList = append(b.GroupList, api.Group{IP: netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), State: "idle"})
	}
	for _, groups := range []int{0, 3} {
		c := config()
		c.Groups = groups
		text := scrape(t, b, c)
		if n := strings.Count(text, "\ngleam_group_members{"); n != groups {
			t.Errorf("%d groups have series, want %d", n, groups)
		}
		for _, want := range []string{fmt.Sprintf("\ngleam_group_series_limit %d\n", groups), fmt.Sprintf("\ngleam_groups_left_out %d\n", 102-groups)} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q", want)
			}
		}
	}
}

// slow counts what it is asked, and takes its time.
type slow struct {
	*apitest.Backend
	asked int
	takes time.Duration
}

func (s *slow) BusiestGroups(n int) ([]api.Group, int, error) {
	s.asked++
	end := time.Now().Add(s.takes)
	for time.Now().Before(end) {
	}
	return s.Backend.BusiestGroups(n)
}

// Scrapes one after the other cost the switch one answer; one that took long is used longer.
func TestScrapesAreBounded(t *testing.T) {
	b := &slow{Backend: full(), takes: 100 * time.Millisecond}
	c := &collector{backend: b, config: config()}
	first := c.take()
	if age := time.Until(c.until); age < share*b.takes-50*time.Millisecond {
		t.Errorf("an answer that took %v is used for %v", b.takes, age)
	}
	if c.take() != first || b.asked != 1 {
		t.Errorf("the switch was asked %d times", b.asked)
	}
	c.until = time.Now()
	if c.take() == first || b.asked != 2 {
		t.Errorf("an old answer is used, %d questions", b.asked)
	}
}

// A switch that does not answer is said so; what needs no answer is there.
func TestNoAnswer(t *testing.T) {
	b := full()
	b.Fail = errors.New("the switch has stopped")
	text := scrape(t, b, config())
	if !strings.Contains(text, "\ngleam_sample_failed 1\n") || !strings.Contains(text, "gleam_build_info{") || strings.Contains(text, "gleam_groups ") || strings.Contains(text, "gleam_group_members{") {
		t.Errorf("without an answer:\n%s", text)
	}
}

// Other paths are not there.
func TestOtherPath(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(full(), config()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 404 || !strings.Contains(w.Body.String(), Path) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/METRICS.md is what the catalog says.
func TestDocument(t *testing.T) {
	if *write {
		if err := os.WriteFile("../../../docs/METRICS.md", []byte(document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, "docs/METRICS.md") != document() {
		t.Error("docs/METRICS.md is not what the code says: go test ./internal/observe/metrics -run TestDocument -write")
	}
}

// Every metric that is named in contrib and in documents exists.
func TestNamedMetricsExist(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range All() {
		known[m.Name] = true
		if m.Type == "histogram" {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				known[m.Name+part] = true
			}
		}
	}
	name := regexp.MustCompile(`\bgleam_[a-z_]+\b`)
	for _, path := range []string{"contrib/prometheus/gleam.rules.yml", "contrib/prometheus/gleam.rules.test.yml", "contrib/grafana/gleam.json", "docs/METRICS.md"} {
		named := make(map[string]bool)
		for _, n := range name.FindAllString(read(t, path), -1) {
			named[n] = true
		}
		if len(named) < 10 {
			t.Errorf("%s names %d metrics", path, len(named))
		}
		for _, n := range slices.Sorted(maps.Keys(named)) {
			if !known[n] {
				t.Errorf("%s names %s, which does not exist", path, n)
			}
		}
	}
}

// BenchmarkScrape is what a scrape of 50 groups takes beside the switch's own answers.
func BenchmarkScrape(b *testing.B) {
	s := full()
	for i := range 48 {
		g := s.GroupList[0]
		g.IP = netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})
		s.GroupList = append(s.GroupList, g)
	}
	c := &collector{backend: s, config: Config{Groups: 50}}
	for b.Loop() {
		c.until = time.Time{}
		c.collect().text()
	}
}
