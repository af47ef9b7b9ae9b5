package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

// Codes of what this command does with files of its own.
const (
	codeOutputExists   = "output-exists"
	codeOutputReplaced = "output-replaced"
	codeOutputFailed   = "output-not-written"
	codeTokenExposed   = "token-file-exposed"
)

// conclude is conclude for a workflow of these flags: the outcome is kept in files before it is
// printed. Where lines of JSON were asked for there are no sentences on stderr: a reader of those
// takes nothing else.
func (f *sourceFlags) conclude(sys *cli.System, o *source.Outcome) error {
	if f.progress == "json" {
		quiet := *sys
		quiet.Stderr = io.Discard
		sys = &quiet
	}
	for _, w := range f.warnings {
		o.Warn(w.Code, w.Message)
		fmt.Fprintf(sys.Stderr, "ecluse: warning: %s\n", visible.Text(w.Message))
	}
	kept, err := f.keep(o)
	if err != nil {
		fmt.Fprintf(sys.Stderr, "ecluse: %s\n", visible.Text(err.Error()))
	}
	ended := conclude(sys, o, kept...)
	if ended == nil && err != nil {
		return cli.Exit(cli.Failed, nil)
	}
	return ended
}

// keep writes the outcome to private files: beside the journal of a run that held one, and to
// --out. It returns their names.
func (f *sourceFlags) keep(o *source.Outcome) (kept []string, err error) {
	if dir := o.Journal(); dir != "" {
		name, beside := keepBeside(dir, o)
		if beside != nil {
			o.Warn(codeOutputFailed, "the outcome could not be kept beside the journal: "+unnamed(beside))
			err = beside
		} else {
			kept = append(kept, name)
		}
	}
	if f.out == "" {
		return kept, err
	}
	document, failed := o.Document()
	if failed == nil {
		failed = durable.Create(f.out, document)
	}
	if failed != nil {
		o.Warn(codeOutputFailed, "the outcome could not be written to --out: "+unnamed(failed))
		return kept, errors.Join(err, failed)
	}
	return append(kept, f.out), err
}

// unnamed is the cause of a failure without the path, which an outcome does not hold (S146).
func unnamed(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return "see the message on standard error"
}

// keepBeside writes an outcome next to the folder of its journal, under the first name that is
// free: DIR.outcome-TIME-WORKFLOW.json.
func keepBeside(dir string, o *source.Outcome) (string, error) {
	document, err := o.Document()
	if err != nil {
		return "", err
	}
	stem := filepath.Clean(dir) + ".outcome-" + time.Now().UTC().Format("20060102T150405Z") + "-" + o.Workflow
	name := stem + ".json"
	for n := 2; ; n++ {
		if err = durable.Create(name, document); !errors.Is(err, fs.ErrExist) || n > 1000 {
			return name, err
		}
		name = fmt.Sprintf("%s-%d.json", stem, n)
	}
}

// conclude prints an outcome, says on stderr what a person wants to know, and turns its status into
// the exit code. kept are the files that hold it: a standard output that nobody reads takes nothing
// away from a run.
func conclude(sys *cli.System, o *source.Outcome, kept ...string) error {
	document, lost := o.Document()
	if lost == nil {
		_, lost = sys.Stdout.Write(document)
	}
	if o.Message != "" {
		fmt.Fprintf(sys.Stderr, "ecluse: %s: %s\n", o.Status, visible.Text(o.Message))
		if o.Next != "" {
			fmt.Fprintf(sys.Stderr, "ecluse: %s\n", visible.Text(o.Next))
		}
	}
	code := statusCode(o.Status)
	switch {
	case code != cli.Done && o.Interrupted:
		fmt.Fprintln(sys.Stderr, "ecluse: the run was interrupted")
		code = cli.Interrupted
	case o.Code == codeOutputFailed:
		code = cli.Failed
	}
	if lost != nil {
		fmt.Fprintf(sys.Stderr, "ecluse: the outcome could not be printed: %v\n", lost)
		for _, name := range kept {
			fmt.Fprintf(sys.Stderr, "ecluse: the outcome is in %s\n", visible.Name(name))
		}
		if code == cli.Done && !cli.Closed(lost) {
			code = cli.Failed
		}
	}
	if code != cli.Done {
		return cli.Exit(code, nil)
	}
	return nil
}

// exists is the outcome of a command whose output file is there already.
func exists(workflow, path, what string) *source.Outcome {
	return source.Refused(workflow, codeOutputExists, visible.Quote(filepath.Base(path))+" exists"+what+" and is not overwritten: choose another name for --out")
}

// free refuses a file that is there already. It is asked before anything is sent; writing asks
// again.
func free(workflow, path string) *source.Outcome {
	if _, err := os.Lstat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return exists(workflow, path, "")
}

// replaceable refuses a file that a plan must not replace. An older plan may be replaced, but no
// approved one by one that is not, and nothing else.
func replaceable(workflow, path string, approved bool) *source.Outcome {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	before, err := readPlan(path)
	switch {
	case err != nil:
		return exists(workflow, path, ", is no plan of this tool")
	case before.Approval.Confirmed && !approved:
		return exists(workflow, path, ", is an approved plan")
	}
	return nil
}

func readPlan(path string) (*plan.Envelope, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > strictjson.MaxBytes {
		return nil, errors.New("no file that could be a plan")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return plan.Parse(data)
}

// writePlan writes a plan or an approval, and says in the outcome when it replaced another. They
// are for people and hold no secret; what must survive a crash is in the journal. On a failure
// there is nothing that the outcome could speak of.
func writePlan(sys *cli.System, path string, data []byte, approved bool, o *source.Outcome) *source.Outcome {
	err := durable.Create(path, data)
	if errors.Is(err, fs.ErrExist) {
		if refused := replaceable(o.Workflow, path, approved); refused != nil {
			return refused
		}
		if err = durable.Replace(path, data); err == nil {
			o.Warn(codeOutputReplaced, "the plan that was in "+visible.Quote(filepath.Base(path))+" before was replaced")
			fmt.Fprintf(sys.Stderr, "ecluse: warning: the plan that was in %s before was replaced\n", visible.Name(path))
		}
	}
	if err != nil {
		return source.Refused(o.Workflow, codeOutputFailed, err.Error())
	}
	return o
}

// writeDocument writes a file that must not be there yet.
func writeDocument(path string, data []byte) error {
	err := durable.Create(path, data)
	if errors.Is(err, fs.ErrExist) {
		return cli.Exit(cli.Refused, fmt.Errorf("%v; it is not overwritten: choose another name", err))
	}
	return err
}

// exposed warns of a token file that others than its owner can read.
func exposed(path string) []source.Warning {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []source.Warning{{Code: codeTokenExposed, Message: fmt.Sprintf("others can read the token file (mode %04o): make it private with chmod 600", info.Mode().Perm())}}
}
