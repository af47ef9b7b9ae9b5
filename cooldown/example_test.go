package cooldown_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// A whole cooldown, over times that are given.
func Example() {
	table := cooldown.New(cooldown.Options{})
	registry, _ := cooldown.ParseAuthority("https://registry.example", 0)
	now := time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)

	permit, _ := table.Ask(context.Background(), now, registry)
	entered := permit.Finish(now, 429, retryafter.Parse([]string{"30"}, now))
	fmt.Println(entered.Kind, entered.Delay, entered.Hint)

	_, refusal := table.Ask(context.Background(), now.Add(10*time.Second), registry)
	fmt.Println(refusal)

	probe, _ := table.Ask(context.Background(), now.Add(30*time.Second), registry)
	_, refusal = table.Ask(context.Background(), now.Add(30*time.Second), registry)
	fmt.Println(probe.Probe(), refusal.Probing, refusal.RetryAfterSeconds())

	recovered := probe.Finish(now.Add(31*time.Second), 200, retryafter.Report{})
	fmt.Println(recovered.Kind)
	// Output:
	// entered 30s seconds
	// registry.example:443 is throttled; try again in 20 s
	// true true 1
	// recovered
}
