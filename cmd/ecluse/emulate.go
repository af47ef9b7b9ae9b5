package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/emulator"
)

func newEmulate(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "emulate",
		Short: "Emulate a service on this machine, for tests and for trying things without an account",
	}
	cli.ExitCodes(c, cli.Done, cli.Usage)
	c.AddCommand(newEmulateSearch(sys))
	return c
}

func newEmulateSearch(sys *cli.System) *cobra.Command {
	var listen, script, tier string
	var maxFiles int
	c := &cobra.Command{
		Use:   "search",
		Short: "Emulate an Azure AI Search service that a script can make throttle, stall and lie",
		Long: "Emulate an Azure AI Search service: knowledge sources, files, knowledge bases and what they generate, in the\n" +
			"versions " + emulator.VersionPreview + " and " + emulator.VersionGA + ". Any bearer token is accepted. All state is lost on exit.\n\n" +
			"Control endpoints on the same port: PUT /emulator/script replaces the script, GET /emulator/requests lists every request,\n" +
			"GET /emulator/state shows what is stored, DELETE /emulator/state deletes everything. A script is a list of rules:\n\n" +
			`  [{"match": {"method": "POST", "path": "/files$", "nth": 1},` + "\n" +
			`    "act": {"status": 429, "headers": {"Retry-After": "5"}}}]`,
		Example: "  ecluse emulate search --listen 127.0.0.1:8910 --script throttle.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rules, err := readScript(script)
			if err != nil {
				return &cli.ExitError{Code: cli.Refused, Err: err}
			}
			e, err := emulator.New(emulator.Options{Tier: tier, MaxFiles: maxFiles, Script: rules})
			if err != nil {
				return &cli.ExitError{Code: cli.Refused, Err: err}
			}
			return serveEmulator(sys, listen, e)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8910", "address to listen on; port 0 picks a free one")
	c.Flags().StringVar(&script, "script", "", "script `file` to start with")
	c.Flags().StringVar(&tier, "tier", "basic", "service tier, which determines the limits: free, basic, s1, s2, s3, s3hd, l1, l2, serverless")
	c.Flags().IntVar(&maxFiles, "max-files", 0, "maximum files per knowledge source (default: what the API version allows)")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func readScript(path string) ([]emulator.Rule, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("script: %v", err)
	}
	defer file.Close()
	rules, err := emulator.ParseScript(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %v", path, err)
	}
	return rules, nil
}

// serveEmulator listens until the system's context ends, then lets requests in flight finish for a
// moment.
func serveEmulator(sys *cli.System, address string, handler http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(sys.Context, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %v", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(sys.Stdout, "emulating an Azure AI Search service on http://%s\n", listener.Addr())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %v", err)
	case <-sys.Context.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(sys.Context), 2*time.Second)
	defer cancel()
	if server.Shutdown(drain) != nil {
		_ = server.Close() // a scripted delay may outlast any patience
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %v", err)
	}
	return nil
}
