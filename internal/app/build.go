package app

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/cooldownfile"
	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/overlap"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/server"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// BuildOptions are a checked configuration and what the process lends to it.
type BuildOptions struct {
	Context context.Context //nolint:containedctx // bounds Build alone
	Config  *config.Config
	// Ecosystems are all that there are; the configuration must have been read with the same.
	Ecosystems serving.Ecosystems
	Logger     *slog.Logger
	Tracer     trace.Tracer
	RootCAs    *x509.CertPool // nil: the system's
	Version    string
	// Dial replaces the network in tests; nil means the network.
	Dial upstream.DialFunc
	// Around gives, for tests of failing disks, what stands in for the steps of the store that it
	// is called with; nil means the disk.
	Around func(store string) durable.Around
}

func (o BuildOptions) around(store string) durable.Around {
	if o.Around == nil {
		return nil
	}
	return o.Around(store)
}

// Build makes the whole gate from a configuration: one cooldown table for the process, one way out,
// and the mounts (R29).
func Build(o BuildOptions) (*App, error) {
	rules, err := policy.New(o.Config.Rules, o.Ecosystems.Known())
	if err != nil {
		return nil, err
	}
	b := &builder{BuildOptions: o, rules: rules, metrics: obs.NewMetrics(), own: newKeyring(o.Config)}
	b.names = overlap.Open(o.Config.DataDir, o.Logger, b.metrics)
	b.openTable(time.Now())
	b.memory = documents.NewMemory(int64(o.Config.Cache.MaxBytes))
	b.room = newRoom(o.Config.Cache, o.Logger)
	b.client = upstream.New(upstream.Options{
		Table: b.table, Metrics: b.metrics, Logger: o.Logger, Tracer: o.Tracer, UserAgent: "ecluse/" + o.Version,
		RootCAs: o.RootCAs, Hold: o.Config.Serve.Hold, Budgets: budgets(o.Config.Budgets), Dial: o.Dial, Egress: egress(o.Config.Egress),
		Proxy: o.Config.Egress.Proxies.Func(),
	})
	a, err := b.app()
	if err != nil {
		b.close()
		return nil, err
	}
	b.metrics.WatchCooldown(b.gauges)
	return a, nil
}

// openTable makes the table, and hands it what is kept of cooldowns in the data folder, so that the
// status shows it from the start.
func (b *builder) openTable(now time.Time) {
	if b.Config.DataDir == "" {
		b.table = cooldown.New(cooldown.Options{})
		return
	}
	b.kept = cooldownfile.New(b.Config.DataDir, b.Logger)
	b.table = cooldown.New(cooldown.Options{Memory: b.kept})
	b.kept.Recall(now, b.table, true)
}

// app makes the mounts and what stands in front of them.
func (b *builder) app() (*App, error) {
	b.openDisk()
	var mounts serving.Mounts
	for _, e := range b.Ecosystems {
		g, err := b.mount(e.Protocol)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, serving.Mount{Ecosystem: e, Gate: g})
	}
	lanes, err := b.lanes(mounts)
	if err != nil {
		return nil, err
	}
	rules, err := b.rulebook(b.Context, mounts)
	if err != nil {
		return nil, err
	}
	queue := &queue{}
	serve := b.Config.Serve
	return &App{
		server: server.New(server.Options{
			Mounts: mounts, Metrics: b.metrics, Logger: b.Logger, Tracer: b.Tracer,
			PublicURL: b.publicURL(), Access: b.own.access(b.Config), MaxInFlight: serve.MaxInFlight, Wait: serve.Wait,
			TrustedProxies: serve.TrustedProxies, SpoolDir: b.Config.DataDir,
		}),
		admin: admin.New(admin.Options{
			Mounts: mounts, Documents: b.memory, Table: b.table, Metrics: b.metrics, Logger: b.Logger,
			Rules: rules.inForce, Advisories: rules.advisories, Queue: queue.read, Version: b.Version,
			Listen: b.Config.Admin, Token: b.Config.AdminToken.Reveal(), Overlaps: b.names.Entries, Credential: b.own.private,
		}),
		mounts: mounts, documents: b.memory, room: b.room, metrics: b.metrics, logger: b.Logger,
		rules: rules, lanes: lanes, queue: queue, started: b.Config, own: b.own, guards: guardsOf(b.Config),
		close: func() {
			b.close()
			rules.close()
		},
	}, nil
}

func (b *builder) publicURL() string {
	if b.Config.PublicURL == nil {
		return ""
	}
	return strings.TrimSuffix(b.Config.PublicURL.String(), "/")
}

// gauges are the authorities' states for the metrics.
func (b *builder) gauges() []obs.AuthorityState {
	var out []obs.AuthorityState
	now := time.Now()
	b.table.Recall(now)
	for _, st := range b.table.Snapshot(now) {
		value := map[cooldown.Phase]float64{cooldown.PhaseOpen: 0, cooldown.PhaseCooling: 1, cooldown.PhaseProbing: 2, cooldown.PhaseDue: 3}[st.Phase]
		out = append(out, obs.AuthorityState{Host: st.Authority.String(), State: value, Remaining: st.Remaining})
	}
	return out
}

// builder holds what all mounts share.
type builder struct {
	BuildOptions
	rules   *policy.Set
	metrics *obs.Metrics
	table   *cooldown.Table
	kept    *cooldownfile.File // nil: cooldowns end with the process
	client  *upstream.Client
	store   *cache.Files // nil: files are not kept
	memory  *documents.Memory
	room    *quota.Budget
	archive *documents.Archive // nil: documents are not kept over a start
	names   *overlap.Book
	own     *keyring
}

// openDisk opens what is kept on disk. A disk that fails, or a folder that another gate uses, stops
// nothing: it is said, and tried again.
func (b *builder) openDisk() {
	c, dir := b.Config, b.Config.DataDir
	if most := int64(c.Artifacts.MaxBytes); most > 0 {
		b.store = cache.OpenFiles(cache.FilesOptions{
			Path: filepath.Join(dir, "artifacts"), MaxBytes: most, Proof: integrity.OfFileName, Report: b.metrics.Store("artifacts", b.Logger),
			Around: b.around("artifacts"),
		})
	}
	if most := int64(c.Cache.DiskBytes); most > 0 {
		b.archive = documents.OpenArchive(documents.ArchiveOptions{
			Path: filepath.Join(dir, "documents"), MaxBytes: most, Report: b.metrics.Store("documents", b.Logger),
			Around: b.around("documents"),
		})
	}
}

// close ends what runs in the background and gives back what is open.
func (b *builder) close() {
	b.client.Close()
	b.memory.Close()
	b.names.Close()
	if b.archive != nil {
		b.archive.Close()
	}
	if b.store != nil {
		_ = b.store.Close() // nothing is written any more
	}
	if b.kept != nil {
		b.kept.Close()
	}
}

// mount builds one mount, whose index and files are authorities of their own (R30); files may lie
// with the index as well. Nil when the mount is off.
func (b *builder) mount(e gate.Ecosystem) (*gate.Gate, error) {
	m := b.Config.Mount(e.Name)
	if !m.Enabled {
		return nil, nil
	}
	public, err := b.client.Public(m.Public, spelling(m.ScopedPath.Public))
	if err != nil {
		return nil, err
	}
	private, err := b.private(m.Private, spelling(m.ScopedPath.Private))
	if err != nil {
		return nil, err
	}
	files := []*upstream.Public{public}
	for _, u := range m.Files {
		f, err := b.client.Public(u, upstream.Encoded)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	publish, err := b.publishTarget(m.Publish.URL)
	if err != nil {
		return nil, err
	}
	return b.gate(gate.Options{
		Publish:   publish,
		Ecosystem: e, Public: public, Files: files, Private: private,
		DegradePrivate: m.PrivateFailure == config.Degrade, JudgePrivate: m.PrivateRules == config.AllRules, FirstParty: m.FirstParty,
		Names: b.names.Mount(overlap.Options{Ecosystem: e.Name, Shadow: m.Overlap == config.Shadow}),
	}), nil
}

func (b *builder) private(u *url.URL, s upstream.Spelling) (*upstream.Private, error) {
	if u == nil {
		return nil, nil
	}
	return b.client.Private(u, s)
}

// gate fills in what all mounts share.
func (b *builder) gate(o gate.Options) *gate.Gate {
	c := b.Config.Cache
	o.Policy, o.TTL, o.MaxStale, o.Memory, o.Archive = b.rules, c.TTL, c.MaxStale, b.memory, b.archive
	o.MinPublic, o.MinTrusted = b.Config.Integrity.MinPublic, b.Config.Integrity.MinTrusted
	o.MaxDocument, o.Room = int64(c.MaxDocument), b.room
	o.Metrics, o.Logger, o.Store = b.metrics, b.Logger, b.store
	return gate.New(o)
}

func egress(c config.Egress) upstream.Egress {
	e := upstream.Egress{Internal: c.AllowInternal, Blocked: c.BlockedRanges}
	for _, text := range c.AllowHTTP {
		if a, err := cooldown.ParseAuthority(text, 80); err == nil { // the configuration is checked
			e.Internal = append(e.Internal, a)
		}
	}
	return e
}

func spelling(word string) upstream.Spelling { return upstream.Spelling(word == config.PathLiteral) }

func budgets(from map[cooldown.Authority]config.Budget) map[cooldown.Authority]upstream.Budget {
	out := make(map[cooldown.Authority]upstream.Budget, len(from))
	for a, b := range from {
		out[a] = upstream.Budget{Rate: b.Rate, Burst: b.Burst}
	}
	return out
}
