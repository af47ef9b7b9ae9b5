package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// What this program journals: a run that sends notes to some service, one write after the other.
type run struct {
	Service string `json:"service"`
}

type note struct {
	Text  string `json:"text"`
	Nonce string `json:"nonce"`
}

var notes = &journal.Layout{
	Kind: "notes",
	Types: []journal.Type{
		{Name: "run"},
		{Name: "note", Max: 100, Dense: true, Facts: func(e journal.Entry) (journal.Facts, error) {
			var n note
			err := e.Decode(&n)
			return journal.Facts{Nonce: n.Nonce}, err
		}},
	},
}

// Two writes are recorded, the third is throttled for a minute. The next process knows it from the
// folder alone.
func Example() {
	root, err := journaltest.Root()
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	dir := filepath.Join(root, "notes")
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

	j, err := journal.Create(dir, notes, run{Service: "https://notes.example"}, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	request := journal.Request{Method: "POST", URL: "https://notes.example/notes"}
	for i, answer := range []int{201, 201, 429} {
		x, err := j.Begin(now, request)
		if err != nil {
			log.Fatal(err)
		}
		// Here the request is sent. It is never sent again, whatever happens next.
		if answer == 429 {
			header := retryafter.Parse([]string{"60"}, now)
			_, err = x.Restrict(journal.FromReport(header, "7f3c"))
		} else if _, err = j.Append(journal.Numbered("note", i), note{Text: "hello", Nonce: x.Nonce()}); err == nil {
			err = x.Done()
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	_, err = j.Begin(now.Add(time.Second), request)
	if blocked, ok := errors.AsType[*journal.Error](err); ok && errors.Is(err, journal.CodeWaiting) {
		fmt.Println(*blocked.Status.SecondsRemaining, "seconds to wait")
	}
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}

	r, err := journal.Read(dir, notes)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(r.Entries("note")), "notes,", len(r.Restrictions()), "restriction")
	for _, later := range []time.Duration{20 * time.Second, 60 * time.Second, -time.Hour} {
		status, _ := json.Marshal(r.Status(now.Add(later), ""))
		fmt.Println(string(status))
	}
	// Output:
	// 59 seconds to wait
	// 2 notes, 1 restriction
	// {"status":"waiting","not_before_utc":1796126460,"seconds_remaining":40}
	// {"status":"elapsed","not_before_utc":1796126460,"seconds_remaining":0}
	// {"status":"unresolved","reason":"clock-before-last-receipt"}
}
