package journal

import (
	"maps"
	"slices"
)

// typeTransfer is transfer-0000.json and so on: where the journal may be used.
const typeTransfer = "transfer"

// The actions of a transfer.
const (
	actionExport   = "export"   // it goes on in another folder; nothing more is done in this one
	actionImport   = "import"   // this is that other folder
	actionWithdraw = "withdraw" // no other copy is used: it goes on in this folder
)

// transfer is the payload of a transfer.
type transfer struct {
	Version    string `json:"version"`
	PlanDigest string `json:"plan_digest"`
	Action     string `json:"action"`
	// Export is the digest of the export that an import or withdrawal settles. It is null in an
	// export, and in the withdrawal of a copy that was never exported.
	Export *string `json:"export"`

	number       int
	name, digest string
}

func (t transfer) fault(l *Layout, name, planDigest string) *Error {
	bad := func(field, why string) *Error { return l.fault(CodeInvalid, name, field, "%s", why) }
	switch {
	case t.Version != version:
		return bad("version", `must be "1.0"`)
	case t.PlanDigest != planDigest:
		return bad("plan_digest", "is not the digest of this journal's plan")
	case !slices.Contains([]string{actionExport, actionImport, actionWithdraw}, t.Action):
		return bad("action", "must be export, import or withdraw")
	}
	return nil
}

func (l *Layout) placeTransfer(r *Record, e Entry) error {
	var t transfer
	if err := e.Decode(&t); err != nil {
		return l.foreign(e.Name, err)
	}
	if f := t.fault(l, e.Name, r.planDigest); f != nil {
		return f
	}
	t.number, t.name, t.digest = e.Number, e.Name, e.Digest
	at, _ := slices.BinarySearchFunc(r.transfers, t, func(a, b transfer) int { return a.number - b.number })
	r.transfers = slices.Insert(r.transfers, at, t)
	return nil
}

// moves checks the transfers against each other.
func (r *Record) moves() (all []*Error) {
	var open *string // the export that is not settled yet
	for i, t := range r.transfers {
		switch settles := t.Action != actionExport; {
		case t.number != i:
			return append(all, r.invalid(t.name, "", "there is a gap in the numbering before it"))
		case (t.Export == nil) != (!settles || open == nil), t.Export != nil && *t.Export != *open:
			all = append(all, r.invalid(t.name, "export", "is not the digest of the export that it settles"))
		case !settles && open != nil:
			all = append(all, r.invalid(t.name, "action", "exports a journal that is exported already"))
		case t.Action == actionImport && open == nil:
			all = append(all, r.invalid(t.name, "action", "imports a journal that was not exported"))
		}
		open = nil
		if t.Action == actionExport {
			open = &r.transfers[i].digest
		}
	}
	return all
}

// Exported reports whether the journal was exported, and neither imported nor the export withdrawn:
// it goes on in another folder, and nothing more can be written in this one.
func (r *Record) Exported() bool {
	return len(r.transfers) > 0 && r.transfers[len(r.transfers)-1].Action == actionExport
}

// Displaced reports whether the folder may not be the place where the journal goes on: it was
// exported, or what was kept beside the folder is missing, as with a copy that was put back. Such a
// journal is unresolved with [ReasonMoved]; see [Journal.Withdraw].
func (r *Record) Displaced() bool { return r.displaced || r.Exported() }

// settling is the transfer that settles an export, if there is one.
func (r *Record) settling(action string) transfer {
	t := transfer{Version: version, PlanDigest: r.planDigest, Action: action}
	if r.Exported() {
		t.Export = &r.transfers[len(r.transfers)-1].digest
	}
	return t
}

// Full reports whether the journal has [MaxRestrictions]: no further request may begin.
func (r *Record) Full() bool { return r.events() >= MaxRestrictions }

// events is how many of the entries there are that only MaxRestrictions bounds.
func (r *Record) events() int { return len(r.restrictions) + len(r.transfers) }

// Export records that the journal goes on in another folder, and returns all its files for
// [Files.Restore]. From then on the journal is unresolved with [ReasonMoved], and nothing can be
// written, until [Journal.Withdraw]. An exported journal can be exported again, with the same
// result. What is pending or unresolved does not matter: moving a journal does not change that. A
// full journal is not marked: nothing can be done with it anywhere.
func (j *Journal) Export() (Files, error) {
	if j.latched != nil {
		return nil, j.latched
	}
	r := j.record
	if r.displaced {
		return nil, j.layout.blocked(r.moved())
	}
	switch {
	case r.Exported() || r.Full():
	case r.events()+1 >= MaxRestrictions: // the import would have no room
		return nil, j.layout.full()
	default:
		if _, err := j.write(Numbered(typeTransfer, len(r.transfers)), r.settling(actionExport)); err != nil {
			return nil, err
		}
	}
	kept := keeping{j.dir, Files{}}
	if _, faults := load(kept, j.layout); len(faults) > 0 {
		return nil, faults[0]
	}
	return kept.files, nil
}

// Withdraw records the caller's statement that no other copy of the journal is used and that none
// is newer: the journal goes on in this folder. It is for a journal that is [Record.Displaced], and
// refuses any other.
func (j *Journal) Withdraw() error {
	r := j.record
	switch {
	case j.latched != nil:
		return j.latched
	case !r.Displaced():
		return j.layout.fault(CodeInvalid, "", "", "the journal is not exported, and what is kept beside its folder is there: there is nothing to withdraw")
	case !r.Exported() && r.Full():
		return j.layout.full()
	}
	if _, err := j.write(Numbered(typeTransfer, len(r.transfers)), r.settling(actionWithdraw)); err != nil {
		return err
	}
	return j.tidy()
}

// imported adds the record of an import to the files of an exported journal.
func (f Files) imported(l *Layout, r *Record, canHead bool) (Files, error) {
	k := r.nextLink(nil)
	k.Head = &canHead
	name := Numbered(typeTransfer, len(r.transfers))
	e, data, err := l.seal(name, r.settling(actionImport), &k)
	if err == nil {
		err = l.place(r, e)
	}
	if err != nil {
		return nil, err
	}
	files := maps.Clone(f)
	files[name] = data
	return files, nil
}
