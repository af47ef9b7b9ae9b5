package obs

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics holds every metric of the gate (contract: "Logs and metrics"). Package names, versions
// and URLs are never labels. All methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	publicRequests *prometheus.CounterVec
	refusals       *prometheus.CounterVec
	entries        *prometheus.CounterVec
	decisions      *prometheus.CounterVec
	denials        *prometheus.CounterVec
	divergence     *prometheus.CounterVec
	overlaps       *prometheus.GaugeVec
	degraded       *prometheus.CounterVec
	anomalies      *prometheus.CounterVec
	dropped        *prometheus.CounterVec
	stale          *prometheus.CounterVec
	advisories     *prometheus.CounterVec
	mirrorJobs     *prometheus.CounterVec
	mirrorLost     prometheus.Counter
	storeFailing   *prometheus.GaugeVec
	storeDamaged   *prometheus.CounterVec
	descriptors    descriptors
	duration       *prometheus.HistogramVec

	mu      sync.Mutex        // guards refused
	refused map[string]uint64 // by host: the sum of refusals over their kinds
}

// NewMetrics returns the metrics in a registry of their own.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:       prometheus.NewRegistry(),
		refused:        map[string]uint64{},
		publicRequests: counter("ecluse_public_requests_total", "Requests sent to public upstreams, by outcome.", "host", "kind", "outcome"),
		refusals:       counter("ecluse_cooldown_refusals_total", "Client requests that were refused during a cooldown, or answered incompletely or from a cached copy.", "host", "kind"),
		entries:        counter("ecluse_cooldown_entries_total", "Cooldowns entered, including failed probes.", "host", "hint"),
		decisions:      counter("ecluse_decisions_total", "Decisions about client requests.", "ecosystem", "kind", "decision"),
		denials:        counter("ecluse_rule_denials_total", "Versions denied, by rule.", "rule"),
		divergence:     counter("ecluse_merge_divergence_total", "Versions whose digest differs between the private and the public upstream.", "ecosystem"),
		overlaps: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ecluse_overlap_names", Help: "Names of the private registry that are served from both registries (merge), or hide the public one (shadow).",
		}, []string{"ecosystem", "overlap"}),
		degraded:   counter("ecluse_degraded_listings_total", "Listings served incomplete or from a stale copy.", "ecosystem", "reason"),
		anomalies:  counter("ecluse_relay_anomalies_total", "Artifact requests that the upstream did not answer with the artifact.", "ecosystem", "kind", "reason"),
		dropped:    counter("ecluse_dropped_versions_total", "Listing entries dropped as unusable.", "ecosystem"),
		advisories: counter("ecluse_advisory_reads_total", "Advisory refreshes by result.", "ecosystem", "result"),
		stale:      counter("ecluse_stale_upstream_total", "Upstream documents older than the cached one, by the upstream's own serial.", "ecosystem"),
		mirrorJobs: counter("ecluse_mirror_jobs_total", "Mirror job attempts by result.", "result"),
		mirrorLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ecluse_mirror_offers_lost_total", Help: "Files served to clients that could not be queued for mirroring.",
		}),
		storeFailing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ecluse_store_failing", Help: "1 while a store in the data folder cannot keep or read; serving goes on without it.",
		}, []string{"store"}),
		storeDamaged: counter("ecluse_store_damaged_total", "Kept data that was not what had been written, and was dropped.", "store"),
		descriptors: descriptors{exhausted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ecluse_descriptors_exhausted", Help: "1 while the process is out of file descriptors.",
		})},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ecluse_http_request_duration_seconds", Help: "Request duration in seconds, including the body.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30, 120},
		}, []string{"route", "code"}),
	}
	m.registry.MustRegister(m.publicRequests, m.refusals, m.entries, m.decisions, m.denials, m.divergence, m.overlaps, m.degraded,
		m.anomalies, m.dropped, m.stale, m.advisories, m.mirrorJobs, m.mirrorLost, m.storeFailing, m.storeDamaged, m.descriptors.exhausted, m.duration, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gatherer gives the metrics for exposition.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// PublicRequest counts one request really sent (R80, R81). Host is "host:port".
func (m *Metrics) PublicRequest(host, kind, outcome string) {
	m.publicRequests.WithLabelValues(host, kind, outcome).Inc()
}

// Refusal counts one client request that a cooldown had refused, or served incomplete or from a
// retained copy (R80, R82).
func (m *Metrics) Refusal(host, kind string) {
	m.refusals.WithLabelValues(host, kind).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[host]++
}

// Refused is how often Refusal counted for a host, for the status API and the status page.
func (m *Metrics) Refused(host string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[host]
}

// CooldownEntered counts one entry to a cooldown.
func (m *Metrics) CooldownEntered(host, hint string) { m.entries.WithLabelValues(host, hint).Inc() }

// Decision counts one serve decision: kind listing, artifact, companion or publish; decision admit,
// deny or unavailable.
func (m *Metrics) Decision(ecosystem, kind, decision string) {
	m.decisions.WithLabelValues(ecosystem, kind, decision).Inc()
}

// Denial counts one denial by the named rule.
func (m *Metrics) Denial(rule string) { m.denials.WithLabelValues(rule).Inc() }

// Divergence counts versions that two upstreams hold with different integrity.
func (m *Metrics) Divergence(ecosystem string, n int) {
	m.divergence.WithLabelValues(ecosystem).Add(float64(n))
}

// Overlap shows how many names of the private registry are served from both, or hide the public
// one: overlap merge or shadow.
func (m *Metrics) Overlap(ecosystem, overlap string, names int) {
	m.overlaps.WithLabelValues(ecosystem, overlap).Set(float64(names))
}

// Degraded counts one incomplete or retained listing: reason cooldown, retained, private or
// upstream.
func (m *Metrics) Degraded(ecosystem, reason string) {
	m.degraded.WithLabelValues(ecosystem, reason).Inc()
}

// RelayAnomaly counts one artifact relay that did not succeed (R53): reason throttled, status,
// integrity or cut.
func (m *Metrics) RelayAnomaly(ecosystem, kind, reason string) {
	m.anomalies.WithLabelValues(ecosystem, kind, reason).Inc()
}

// Dropped counts listing entries that could not be used.
func (m *Metrics) Dropped(ecosystem string, n int) {
	m.dropped.WithLabelValues(ecosystem).Add(float64(n))
}

// AdvisoryRead counts one look at the source of advisories.
func (m *Metrics) AdvisoryRead(ecosystem string, ok bool) {
	m.advisories.WithLabelValues(ecosystem, map[bool]string{true: "ok", false: "failed"}[ok]).Inc()
}

// StaleUpstream counts one document that was older than the kept one (C22).
func (m *Metrics) StaleUpstream(ecosystem string) { m.stale.WithLabelValues(ecosystem).Inc() }

// MirrorJob counts one run of a mirror job: result published, present, dropped, failed or snoozed.
func (m *Metrics) MirrorJob(result string) { m.mirrorJobs.WithLabelValues(result).Inc() }

// MirrorLost counts one file that no mirror job was made of.
func (m *Metrics) MirrorLost() { m.mirrorLost.Inc() }

// Request observes one answered request.
func (m *Metrics) Request(route string, code int, d time.Duration) {
	m.duration.WithLabelValues(route, strconv.Itoa(code)).Observe(d.Seconds())
}

// AuthorityState is one authority's cooldown as the gauges show it.
type AuthorityState struct {
	Host      string // "host:port"
	State     float64
	Remaining time.Duration
}

// WatchCooldown exposes the state gauges; read is called at each exposition and must not change any
// state (tc-072).
func (m *Metrics) WatchCooldown(read func() []AuthorityState) {
	m.registry.MustRegister(cooldownCollector{read})
}

type cooldownCollector struct{ read func() []AuthorityState }

func (cooldownCollector) descs() (state, remaining *prometheus.Desc) {
	return prometheus.NewDesc("ecluse_cooldown_state", "State of the authority: 0 open, 1 cooling, 2 probing, 3 due.", []string{"host"}, nil),
		prometheus.NewDesc("ecluse_cooldown_remaining_seconds", "Seconds until the cooldown ends.", []string{"host"}, nil)
}

func (c cooldownCollector) Describe(ch chan<- *prometheus.Desc) {
	state, remaining := c.descs()
	ch <- state
	ch <- remaining
}

func (c cooldownCollector) Collect(ch chan<- prometheus.Metric) {
	state, remaining := c.descs()
	for _, s := range c.read() {
		ch <- prometheus.MustNewConstMetric(state, prometheus.GaugeValue, s.State, s.Host)
		ch <- prometheus.MustNewConstMetric(remaining, prometheus.GaugeValue, s.Remaining.Seconds(), s.Host)
	}
}
