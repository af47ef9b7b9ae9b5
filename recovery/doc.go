// Package recovery reads from a throttling HTTP service with one delay and one deadline.
//
// A [Sequence] spans everything that belongs together: the reads that determine the state of one
// resource, or all pages of one listing. However many requests it makes, it waits at most once,
// after an answer 429, for at most [MaxDelay]; and it ends at most [MaxBudget] after it was made,
// sends, bodies and the wait included. A server's wait is never shortened: what does not fit is a
// [*Stop].
//
//	seq := recovery.New(recovery.Options{})
//	page, err := recovery.Read(ctx, seq, recovery.ReadOptions{}, func(ctx context.Context, a recovery.Attempt) (Page, recovery.Outcome, error) {
//		// one request, never more
//	})
//
// [Get] does this for a plain http.RoundTripper. [Sequence.Wait] is for a write that was answered
// 429: wait first, then read back. Nothing in this package ever repeats a write.
//
// Seconds count from the answer, dates against the wall clock at the moment of the decision; a
// missing or malformed field stands for one second and leaves a warning (RFC 9110 section 10.2.3,
// RFC 6585 section 4). All arithmetic is on whole nanoseconds.
//
// The clocks, the sleeper and the observer of waits can be replaced in code ([Clock], [Options])
// and nowhere else. A Sequence is for one goroutine at a time.
//
// # Stability
//
// The names and codes here, and what they mean, stay as they are within a major version; so do the
// limits, which are part of the promise to the server. New options and codes may be added; programs
// should not rely on the text of an error or a warning.
package recovery
