package plan

import (
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/visible"
)

// Words says what an envelope's plan will do, for the person who approves it.
func (e *Envelope) Words() string {
	var b strings.Builder
	switch {
	case e.File != nil:
		e.File.words(&b)
	case e.Continue != nil:
		e.Continue.words(&b)
	default:
		e.Resolve.words(&b)
	}
	fmt.Fprintf(&b, "\nFingerprint: %s\n", e.Fingerprint())
	return b.String()
}

func (p *Plan) words(b *strings.Builder) {
	switch p.Action {
	case ActionUpdate:
		fmt.Fprintf(b, "Change the definition of the File knowledge source %s at %s,\nbut only while it still has the ETag %s. No file is sent.\n",
			visible.Quote(p.Source.Name), visible.Name(p.Endpoint), visible.Text(*p.Source.ETag))
	default:
		fmt.Fprintf(b, "Create the File knowledge source %s at %s, where it does not exist now,\nand upload %s, one after the other.\n",
			visible.Quote(p.Source.Name), visible.Name(p.Endpoint), count(len(p.Files.Records), "file"))
	}
	fmt.Fprintf(b, "\n  API version  %s, tier %s\n  Owner        %s\n", p.APIVersion, p.ServiceTier, visible.Name(p.Owner))
	if p.Network != nil {
		fmt.Fprintf(b, "  Network      declared %s; nothing is changed\n", p.Network.Mode)
	}
	if p.RBAC != nil {
		fmt.Fprintf(b, "  Role         relies on %s of %s; nothing is assigned\n", visible.Quote(p.RBAC.Role), visible.Name(p.RBAC.Principal))
	}
	fmt.Fprintf(b, "  Folder       %s\n\n", visible.Name(p.Files.LocalRoot))
	var total int64
	for i, f := range p.Files.Records {
		total += f.Size
		if i < 20 {
			fmt.Fprintf(b, "  %3d  %10d bytes  %s  %s\n", i+1, f.Size, f.SHA256[:12], visible.Name(f.Path))
		}
	}
	if n := len(p.Files.Records); n > 20 {
		fmt.Fprintf(b, "  … and %d more\n", n-20)
	}
	fmt.Fprintf(b, "  in all %d bytes\n\nA file whose outcome is unknown is never sent again. If the service asks to wait longer than 30 seconds the run stops\nand reports until when; ecluse source resume continues from there.\n", total)
}

func (c *Continuation) words(b *strings.Builder) {
	fmt.Fprintf(b, "Continue the File knowledge source %s at %s: upload %s that %s never attempted.\n",
		visible.Quote(c.SourceName), visible.Name(c.Endpoint), count(len(c.Eligible), "file"), wasWere(len(c.Eligible)))
	fmt.Fprintf(b, "Nothing else is written. The journal is %s.\n", visible.Name(c.Journal))
	if c.LocalRoot != "" {
		fmt.Fprintf(b, "The files are taken from %s, where they must be exactly those that were approved.\n", visible.Name(c.LocalRoot))
	}
	b.WriteString("\n")
	for i, f := range c.Eligible {
		if i == 20 {
			fmt.Fprintf(b, "  … and %d more\n", len(c.Eligible)-20)
			break
		}
		fmt.Fprintf(b, "  %3d  %s\n", f.Ordinal+1, visible.Name(f.Path))
	}
	b.WriteString("\nAn approval does not shorten a server's restriction.\n")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
