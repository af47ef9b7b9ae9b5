package cooldownfile

import "github.com/ecluse-gate/ecluse/cooldown"

var (
	npm   = cooldown.Authority{Host: "registry.example", Port: 443}
	files = cooldown.Authority{Host: "files.example", Port: 8443}
)
