package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// secretWords are names, reduced to letters and digits, under which people put secrets (S145).
const secretWords = " key apikey adminkey querykey accesskey accountkey primarykey secondarykey storagekey sharedkey privatekey masterkey encryptionkeysecret " +
	"token accesstoken refreshtoken idtoken bearertoken authtoken bearer authorization auth " +
	"password passwd pwd passphrase secret clientsecret applicationsecret appsecret secretkey " +
	"sas sastoken sasurl sasuri sharedaccesssignature signature credential credentials connectionstring cookie "

// SecretName reports whether a field of this name may hold a secret.
func SecretName(name string) bool {
	letters := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, name)
	return letters != "" && strings.Contains(secretWords, " "+letters+" ")
}

// refuseSecrets walks a document and refuses the first field, in the order of names, that has a
// secret's name and a value (S145). A connection string may be one ResourceId component: it names
// an account and opens nothing.
func refuseSecrets(path string, node any) error {
	switch v := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			field := name
			if path != "" {
				field = path + "." + name
			}
			if SecretName(name) && holdsSecret(name, v[name]) {
				return refuse(CodeSecret, field, "may contain a secret; secrets do not belong in a request or plan (use --auth or --token-file)")
			}
			if err := refuseSecrets(field, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := refuseSecrets(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func holdsSecret(name string, value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case map[string]any:
		return false // its members are looked at one by one
	case []any:
		return len(v) > 0
	case string:
		if v == "" {
			return false
		}
		return !strings.EqualFold(strings.NewReplacer("_", "", "-", "").Replace(name), "connectionstring") || !onlyResourceID(v)
	}
	return true
}

func onlyResourceID(s string) bool {
	return regexp.MustCompile(`^ResourceId=/subscriptions/[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)+/?;?$`).MatchString(s)
}
