// Package signin gives tokens from a file or from the ways of signing in that azidentity knows. It
// stores and prints none.
package signin

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// File reads a token from a regular file of at most 32 KiB each time it is asked; white space
// around it is dropped.
func File(path string) search.TokenSource { return tokenFile(path) }

type tokenFile string

func (path tokenFile) Token(context.Context, string) (search.Token, error) {
	bad := func(reason string) (search.Token, error) {
		return search.Token{}, &search.Error{Code: search.CodeAuthenticationFailed, Err: search.Reason(reason)}
	}
	info, err := os.Stat(string(path))
	if err != nil || !info.Mode().IsRegular() || info.Size() > search.MaxTokenBytes {
		return bad("the token file cannot be read, is no regular file, or is larger than 32 KiB")
	}
	file, err := os.Open(string(path))
	if err != nil {
		return bad("the token file cannot be opened")
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, search.MaxTokenBytes+1))
	if err != nil {
		return bad("the token file cannot be read")
	}
	return search.NewToken(strings.TrimSpace(string(data)), time.Time{}), nil
}

// Credential names a way of signing in.
type Credential string

// The credentials (contract: --auth).
const (
	CredentialCLI         Credential = "cli"
	CredentialEnvironment Credential = "env"
	CredentialWorkload    Credential = "workload"
	CredentialManaged     Credential = "managed"
)

// New makes a token source from azidentity. Nothing is asked for yet, but a credential whose
// settings are missing fails at once with azure-authentication-failed. The SDK's own retries are
// off.
func New(credential Credential) (search.TokenSource, error) {
	options := azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}
	var found azcore.TokenCredential
	var err error
	switch credential {
	case CredentialCLI:
		found, err = azidentity.NewAzureCLICredential(nil)
	case CredentialEnvironment:
		found, err = azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options})
	case CredentialWorkload:
		found, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	case CredentialManaged:
		found, err = azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options})
	default:
		return nil, &search.Error{Code: search.CodeAuthenticationFailed, Err: search.Reason("use cli, env, workload or managed")}
	}
	if err != nil {
		return nil, &search.Error{Code: search.CodeAuthenticationFailed, Err: search.Reason("the settings are incomplete: " + err.Error())}
	}
	return &azureTokens{credential: found, cli: credential == CredentialCLI}, nil
}

type azureTokens struct {
	credential azcore.TokenCredential
	cli        bool
}

func (a *azureTokens) Token(ctx context.Context, audience string) (search.Token, error) {
	if a.cli {
		if _, err := exec.LookPath("az"); err != nil {
			return search.Token{}, &search.Error{Code: search.CodeCLIUnavailable, Err: search.Reason("the Azure CLI (az) is not on the path")}
		}
	}
	scope := strings.TrimSuffix(audience, "/") + "/.default"
	got, err := a.credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		refused := errors.Join(search.Reason("the credential was refused or is not signed in"), err)
		return search.Token{}, &search.Error{Code: search.CodeAuthenticationFailed, Err: refused}
	}
	return search.NewToken(got.Token, got.ExpiresOn), nil
}
