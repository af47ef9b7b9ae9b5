package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/emulator"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/signin"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

func newSource(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "source",
		Short: "Create a knowledge source under an approved plan, and prove what was done",
		Long: "Creates an Azure AI Search File knowledge source and uploads its files: plan, approve, apply, verify, resume.\n" +
			"Nothing is written without an approved plan, no write with an unknown outcome is repeated, and a wait that the\n" +
			"service asked for binds every later run too. Each command prints one JSON document; see docs/source.md.",
	}
	cli.ExitCodes(c, cli.Done, cli.Usage)
	c.AddCommand(newSourcePlan(sys), newSourceApprove(sys), newSourceApply(sys), newSourceVerify(sys), newSourceResume(sys),
		newSourceLater("recheck", "Check whether a Blob source is ready (not in this version)", sys),
		newSourceLater("cleanup", "Plan the removal of what a run created (not in this version)", sys))
	return c
}

// newSourceLater is a command that the contract has and this version does not.
func newSourceLater(name, short string, sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return conclude(sys, source.Refused(name, "not-supported", "ecluse source "+name+" is not supported by this version"))
		},
	}
	cli.ExitCodes(c, cli.Done, cli.Refused, cli.Usage)
	return c
}

// sourceFlags are those that every command which talks to the service has.
type sourceFlags struct {
	tokenFile, auth, caFile, progress string
	emulator                          bool
	// out is the private file of the outcome, "" for none; see addOut.
	out      string
	warnings []source.Warning
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`file` with the bearer token, read again when a new one is needed")
	c.Flags().StringVar(&f.auth, "auth", "", "how to sign in: cli, env, workload or managed (default cli)")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM certificates to trust instead of the system's")
	c.Flags().StringVar(&f.progress, "progress", "auto", "progress on stderr: auto, bar, json or none")
	c.Flags().BoolVar(&f.emulator, "emulator", false, "allow a loopback endpoint; without --token-file or --auth a fixed token is used")
	c.MarkFlagsMutuallyExclusive("token-file", "auth")
}

// addOut adds --out to a command whose outcome is all that it puts out.
func (f *sourceFlags) addOut(c *cobra.Command) {
	c.Flags().StringVar(&f.out, "out", "", "private `file` for the outcome, beside printing it; must not exist")
}

// run is the RunE of a command that works with the tool of these flags.
func (f *sourceFlags) run(sys *cli.System, do func(*cobra.Command, *source.Tool, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		tool, err := f.tool(c, sys)
		if err != nil {
			return err
		}
		if refused := free(c.Name(), f.out); refused != nil {
			return conclude(sys, refused)
		}
		if f.tokenFile != "" {
			f.warnings = exposed(f.tokenFile)
		}
		return do(c, tool, args)
	}
}

// tool makes the tool of these flags. Nothing is read or asked for but the CA file.
func (f *sourceFlags) tool(c *cobra.Command, sys *cli.System) (*source.Tool, error) {
	tokens, err := f.tokens()
	if err != nil {
		return nil, &usageError{cmd: c, err: err}
	}
	report, err := newReport(f.progress, sys.Stderr)
	if err != nil {
		return nil, &usageError{cmd: c, err: err}
	}
	var roots *x509.CertPool
	if f.caFile != "" {
		if roots, err = search.RootsFromFile(f.caFile); err != nil {
			return nil, &usageError{cmd: c, err: err}
		}
	}
	return source.New(source.Options{
		Emulator: f.emulator,
		Report:   report,
		Connect: func(service search.Service, recorder search.Recorder) (*search.Client, error) {
			source, err := tokens()
			if err != nil {
				return nil, err
			}
			return search.New(search.Options{Service: service, Tokens: source, Transport: search.NewTransport(roots), Recorder: recorder})
		},
	}), nil
}

// tokens says where tokens come from; the source itself is made when a service is to be talked to,
// and not before.
func (f *sourceFlags) tokens() (func() (search.TokenSource, error), error) {
	fixed := func(s search.TokenSource) func() (search.TokenSource, error) {
		return func() (search.TokenSource, error) { return s, nil }
	}
	switch {
	case f.tokenFile != "":
		return fixed(signin.File(f.tokenFile)), nil
	case f.auth == "" && f.emulator:
		return fixed(search.FixedToken(emulator.Token)), nil
	case f.auth == "":
		return func() (search.TokenSource, error) { return signin.New(signin.CredentialCLI) }, nil
	}
	switch how := signin.Credential(f.auth); how {
	case signin.CredentialCLI, signin.CredentialEnvironment, signin.CredentialWorkload, signin.CredentialManaged:
		return func() (search.TokenSource, error) { return signin.New(how) }, nil
	}
	return nil, fmt.Errorf("--auth %q: use cli, env, workload or managed", f.auth)
}

// statusCode is the exit code of an outcome's status.
func statusCode(status string) cli.Code {
	switch status {
	case source.StatusPlanned, source.StatusReused, source.StatusCompleted, source.StatusSkipped:
		return cli.Done
	case source.StatusBlocked:
		return cli.Refused
	case source.StatusPartial:
		return cli.Partial
	case source.StatusWaiting:
		return cli.Waiting
	}
	return cli.Failed
}

// readDocument reads a JSON document of at most the size that the tool accepts.
func readDocument(c *cobra.Command, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &usageError{cmd: c, err: fmt.Errorf("read %s: %v", path, errors.Unwrap(err))}
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, strictjson.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %v", path, err)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// absolute lets people name a folder as they like; the tool itself wants absolute paths.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func require(c *cobra.Command, names ...string) {
	for _, name := range names {
		_ = c.MarkFlagRequired(name) // the flag exists
	}
}
