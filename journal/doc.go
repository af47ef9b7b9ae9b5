// Package journal keeps evidence in a private folder, so that a program that writes to a throttling
// service can be killed at any moment and the next run still knows what was sent, what was
// answered, and how long the server asked to wait.
//
// A journal is a folder of small JSON files, called entries. An entry is created once and never
// changed, and has at most 1 MiB. Every entry has the same closed wrapper:
//
//	{"chain":{…},"integrity":"sha256:…","kind":"…","payload":{…},"schema_version":"1.0"}
//
// where integrity is the SHA-256 of the payload's canonical form (RFC 8785), and chain the entry's
// place among all entries: its number, and the digest of everything before it. That is a plain
// hash: it detects accidents, not forgery. A file beside the folder, its name with ".head", names
// the last entry, so that an older copy in the folder's place shows too. A journal whose head is
// missing may be any copy; it is unresolved until [Journal.Withdraw]. Entries of a version that
// wrote no chain are accepted, and bound by the first new entry.
//
// Four kinds of files exist. The caller's own entries are described by a [Layout]: their names, how
// many there may be, and what each says ([Facts]). The package does not know what they mean. A
// [Restriction] (backoff-0000.json and so on, at most [MaxRestrictions]) records a throttled
// answer; each names the digest of the one before it. A transfer (transfer-0000.json and so on)
// says that the journal was exported, imported, or goes on here. And there is at most one pending
// marker (pending-request.json), the only file that is ever removed: it is created before a request
// is sent and removed when the request's outcome is on the disk.
//
// # Use
//
//	j, err := journal.Create(dir, layout, founding, journal.Options{})   // or journal.Open(dir, layout, journal.Options{})
//	x, err := j.Begin(now, journal.Request{Method: "PUT", URL: url})     // refuses while a restriction holds; writes the marker
//	// send the request
//	r, err := x.Restrict(journal.FromReport(report, requestID))          // 429: the restriction first, then the marker goes
//	_, err = j.Append("result-0000.json", result)                        // otherwise: what was learnt …
//	err = x.Done()                                                       // … then the marker goes
//
// An entry or restriction that carries the marker's nonce finishes the exchange: when a crash
// leaves the marker behind it, [Open] recognises that and removes the marker. A marker that nothing
// finishes makes the journal unresolved, and only an operator's explicit record ([Journal.Resolve])
// resolves it: no clock, no later read and no new approval does. An operator can also end a
// restriction that cannot be meant ([Record.Contestable]); nothing else shortens a wait.
//
// # Time
//
// The package never reads a clock and never sleeps: now is an argument. Records hold whole Unix
// seconds in UTC; the receipt is rounded down and the end of a restriction up, so that rounding
// never shortens a wait.
//
// # Concurrency
//
// A Journal is for one goroutine at a time. Its folder is locked by the operating system: a second
// writer, in this or another process, is refused at once. [Read] and [Inspect] share a lock among
// readers and write nothing.
//
// # Failure
//
// The first failure to write or remove is latched: [Journal.Begin] returns it ever after, so that
// no request is sent whose outcome could not be recorded. Errors are of type [*Error], and
// errors.Is finds their [Code]. The folder has rules of its own (absolute path, mode 0700, no link
// and nothing writable by others above it): package journaltest finds folders that keep them.
//
// # Stability
//
// The names, codes and reasons of this package, and the files that it writes, stay as they are
// within a major version: what one version wrote, a later one reads. New fields, codes and reasons
// may be added; programs should not rely on the text of an error.
package journal
