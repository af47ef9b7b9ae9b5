package config_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

// block is the configuration that the spellings below spell.
const block = `listen: 127.0.0.1:4900
mounts:
  npm:
    private: https://npm.example.com/
    firstParty:
      - "@acme/*"
      - tool
rules:
  never:
    type: DenyByIdentity
    packages:
      - npm:x
      - npm:event-stream@3.3.6
    precedence: 900
serve:
  hold: 5s
  helpMessage: "see the wiki: #gate"
`

// flow is the same between braces.
const flow = `{listen: "127.0.0.1:4900", mounts: {npm: {private: "https://npm.example.com/", firstParty: ["@acme/*", tool]}},
 rules: {never: {type: DenyByIdentity, packages: [npm:x, npm:event-stream@3.3.6], precedence: 900}},
 serve: {hold: 5s, helpMessage: 'see the wiki: #gate'}}
`

// swap replaces a part of a text, which must be there.
func swap(text, old, replacement string) string {
	if !strings.Contains(text, old) {
		panic(fmt.Sprintf("no %q in %q", old, text))
	}
	return strings.ReplaceAll(text, old, replacement)
}

const (
	listed   = "    packages:\n      - npm:x\n      - npm:event-stream@3.3.6\n"
	helpful  = `helpMessage: "see the wiki: #gate"`
	listened = "listen: 127.0.0.1:4900"
	reserved = "serve:\n  hold: 5s\n  " + helpful + "\n"
)

// Spellings of one configuration: each means the same, or is refused with the line that is to be
// changed.
var spellings = []struct {
	name, text string
	line       int // of the refusal; 0 = means the same
}{
	{"block", block, 0},
	{"flow", flow, 0},
	{"flow on one line", swap(flow, "\n", ""), 0},
	{"flow with spaces", swap(swap(flow, "{", "{ "), "}", " }"), 0},
	{"flow with trailing commas", swap(swap(flow, "]", ",]"), "}", ",}"), 0},
	{"flow without spaces after commas", swap(flow, ", ", ","), 0},
	{"JSON", `{"listen":"127.0.0.1:4900","mounts":{"npm":{"private":"https://npm.example.com/","firstParty":["@acme/*","tool"]}},` +
		`"rules":{"never":{"type":"DenyByIdentity","packages":["npm:x","npm:event-stream@3.3.6"],"precedence":900}},"serve":{"hold":"5s","helpMessage":"see the wiki: #gate"}}`, 0},
	{"JSON over lines with tabs", "{\n\t\"listen\": \"127.0.0.1:4900\",\n\t\"mounts\": {\"npm\": {\"private\": \"https://npm.example.com/\", \"firstParty\": [\"@acme/*\", \"tool\"]}},\n" +
		"\t\"rules\": {\"never\": {\"type\": \"DenyByIdentity\",\n\t\t\"packages\": [\"npm:x\", \"npm:event-stream@3.3.6\"], \"precedence\": 900}},\n\t\"serve\": {\"hold\": \"5s\", \"helpMessage\": \"see the wiki: #gate\"}\n}\n", 0},
	{"a list in brackets", swap(block, listed, "    packages: [npm:x, npm:event-stream@3.3.6]\n"), 0},
	{"a list in brackets, quoted once", swap(block, listed, "    packages: ['npm:x', npm:event-stream@3.3.6]\n"), 0},
	{"a list in brackets over lines", swap(block, listed, "    packages: [\n      npm:x,\n      npm:event-stream@3.3.6,\n    ]\n"), 0},
	{"a list in brackets that begins on the next line", swap(block, listed, "    packages:\n      [npm:x, npm:event-stream@3.3.6]\n"), 0},
	{"a list without indentation", swap(block, listed, "    packages:\n    - npm:x\n    - npm:event-stream@3.3.6\n"), 0},
	{"a list with wide dashes", swap(block, "- npm", "-   npm"), 0},
	{"a list with items on the next lines", swap(block, "- npm", "-\n        npm"), 0},
	{"a list with quoted items", swap(block, "- npm:x", `- "npm:x"`), 0},
	{"a rule in braces", swap(block, "never:\n    type: DenyByIdentity\n"+listed+"    precedence: 900\n", "never: {type: DenyByIdentity, packages: [npm:x, npm:event-stream@3.3.6], precedence: 900}\n"), 0},
	{"a rule in braces over lines", swap(block, "never:\n    type: DenyByIdentity\n"+listed+"    precedence: 900\n", "never: {\n    type: DenyByIdentity,\n    packages: [npm:x, npm:event-stream@3.3.6],\n    precedence: 900\n  }\n"), 0},
	{"keys in double quotes", swap(block, "packages:", `"packages":`), 0},
	{"keys in single quotes", swap(block, "packages:", `'packages':`), 0},
	{"keys with a question mark", swap(block, "  hold: 5s", "  ? hold\n  : 5s"), 0},
	{"keys with spaces before the colon", swap(block, "hold: 5s", "hold : 5s"), 0},
	{"another order", reserved + swap(block, reserved, ""), 0},
	{"an address in quotes", swap(block, listened, `listen: "127.0.0.1:4900"`), 0},
	{"an address in single quotes", swap(block, listened, `listen: '127.0.0.1:4900'`), 0},
	{"an address with escapes", swap(block, listened, `listen: "127.0.0.1\x3a4900"`), 0},
	{"an address as a block", swap(block, listened, "listen: |-\n  127.0.0.1:4900"), 0},
	{"an address as a folded block", swap(block, listened, "listen: >-\n  127.0.0.1:4900"), 0},
	{"an address as a block with its indentation", swap(block, listened, "listen: |2-\n  127.0.0.1:4900"), 0},
	{"a value on the next line", swap(block, listened, "listen:\n  127.0.0.1:4900"), 0},
	{"a value after a comment", swap(block, listened, "listen: # where\n  127.0.0.1:4900"), 0},
	{"a number in quotes", swap(block, "precedence: 900", `precedence: "900"`), 0},
	{"the specific text sign", swap(block, "precedence: 900", `precedence: ! 900`), 0},
	{"a text folded between words", swap(block, helpful, "helpMessage: \"see the\n    wiki: #gate\""), 0},
	{"a text with an escaped line break", swap(block, helpful, "helpMessage: \"see the \\\n    wiki: #gate\""), 0},
	{"a text as a folded block", swap(block, helpful, "helpMessage: >-\n    see the\n    wiki: #gate"), 0},
	{"a text with escapes of Unicode", swap(block, helpful, `helpMessage: "see the wiki\u003a \u0023gate"`), 0},
	{"comments", "# a\n" + swap(block, ":\n", ": # b\n") + "# c", 0},
	{"comments between items", swap(block, "      - npm:event", "# a\n      # b\n      - npm:event"), 0},
	{"empty lines", swap(block, "\n", "\n\n"), 0},
	{"lines of spaces", swap(block, "\n", "\n   \n"), 0},
	{"lines of a tab", swap(block, "serve:", "\t\nserve:"), 0},
	{"spaces at the ends", swap(block, "\n", "  \n"), 0},
	{"tabs at the ends", swap(block, "\n", "\t\n"), 0},
	{"tabs after colons", swap(swap(block, ": ", ":\t"), "wiki:\t", "wiki: "), 0},
	{"deeper indentation", swap(block, "  ", "     "), 0},
	{"indentation by one", swap(block, "  ", " "), 0},
	{"everything indented", "  " + swap(strings.TrimSuffix(block, "\n"), "\n", "\n  "), 0},
	{"no line break at the end", strings.TrimSuffix(block, "\n"), 0},
	{"a byte order mark", "\ufeff" + block, 0},
	{"a byte order mark before flow", "\ufeff" + flow, 0},
	{"CRLF", swap(block, "\n", "\r\n"), 0},
	{"CRLF and a byte order mark", "\ufeff" + swap(block, "\n", "\r\n"), 0},
	{"CRLF in flow", swap(flow, "\n", "\r\n"), 0},
	{"CR", swap(block, "\n", "\r"), 0},
	{"the start of a document", "---\n" + block, 0},
	{"a comment before the start of a document", "# a\n---\n" + block, 0},
	{"the end of a document", block + "...\n", 0},
	{"start and end", "--- # a\n" + block + "...\n# b\n", 0},
	{"flow after the start", "--- " + flow, 0},
	{"empty groups beside", block + "log: {}\ncache:\negress: {\n}\n", 0},
	{"an empty list beside", block + "egress: {allowHTTP: []}\n", 0},
	{"an empty text beside", block + "telemetry: {otlp: \"\"}\n", 0},
	{"the default rule, untouched", swap(block, "rules:\n", "rules:\n  min-age: {}\n"), 0},

	{"a version directive", "%YAML 1.2\n---\n" + block, 1},
	{"a tag", swap(block, "precedence: 900", "precedence: !!int 900"), 14},
	{"a tag of a group", swap(block, "  npm:", "  npm: !!map"), 3},
	{"a tag of a key", swap(block, "serve:", "!!str serve:"), 15},
	{"an anchor", swap(block, "type: Deny", "type: &a Deny"), 10},
	{"an anchor and its alias", swap(swap(block, "hold: 5s", "hold: &a 5s"), helpful, "helpMessage: *a"), 16},
	{"an alias of nothing", swap(block, "hold: 5s", "hold: *hunter2"), 16},
	{"an anchored group", swap(block, "  npm:", "  npm: &npm"), 3},
	{"a merge key", swap(block, "  hold:", "  <<: {wait: 1s}\n  hold:"), 16},
	{"a merge key of an anchor", "log: &log {level: info}\n" + swap(block, "  hold:", "  <<: *log\n  hold:"), 1},
	{"a list as a key", block + "[a, b]: c\n", 18},
	{"a key twice", block + "listen: 127.0.0.1:4900\n", 18},
	{"a group twice", block + "serve: {wait: 1s}\n", 18},
	{"a key twice in quotes", block + "'listen': 127.0.0.1:4900\n", 18},
	{"a key twice in a rule", swap(block, "precedence: 900", "precedence: 900\n    type: DenyByIdentity"), 15},
	{"a second document", block + "---\nlisten: 127.0.0.1:4900\n", 18},
	{"a tab as indentation", swap(block, "  hold", "\thold"), 16},
	{"a tab after the indentation", swap(block, "  hold", "  \thold"), 16},
	{"a tab at the beginning", "\t" + block, 1},
	{"a group that is not indented", swap(block, "  hold", "hold"), 17},
	{"a missing space after the colon", swap(block, "hold: 5s", "hold:5s"), 17},
	{"a colon too many", swap(block, "hold: 5s", "hold: 5s: 6s"), 16},
	{"a colon in flow", swap(flow, "hold: 5s", "hold: 5s: 6s"), 3},
	{"a comma too many", swap(flow, "npm:x, ", "npm:x,, "), 2},
	{"a bracket too few", swap(flow, "3.3.6]", "3.3.6"), 2},
	{"a brace too few", strings.TrimSuffix(flow, "}\n"), 3},
	{"a brace too many", swap(flow, "}}\n", "}}}\n"), 3},
	{"a quote too few", swap(block, "#gate\"", "#gate"), 17},
	{"an at sign", swap(block, `"@acme/*"`, "@acme/*"), 6},
	{"an asterisk", swap(block, `"@acme/*"`, "*"), 6},
	{"a grave accent", swap(block, "hold: 5s", "hold: `5s`"), 16},
	{"a mapping in a list", swap(block, "- npm:x", "- npm: x"), 12},
	{"a mapping in a list in brackets", swap(flow, "npm:x,", "npm: x,"), 2},
	{"a list in a list", swap(block, "- npm:x", "- [npm:x]"), 12},
	{"nothing in a list", swap(block, "- npm:x", "-"), 12},
	{"no value", swap(block, "hold: 5s", "hold:"), 16},
	{"a null", swap(block, "hold: 5s", "hold: ~"), 16},
	{"a null in words", swap(block, "hold: 5s", "hold: null"), 16},
	{"a group for a value", swap(block, "hold: 5s", "hold: {}"), 16},
	{"a list for a value", swap(block, "hold: 5s", "hold: [5s]"), 16},
	{"a group for a list", swap(block, listed, "    packages: {}\n"), 11},
	{"a value for a list", swap(block, listed, "    packages: npm:x\n"), 11},
	{"a value for a group", block + "log: info\n", 18},
	{"a list for a group", block + "log: []\n", 18},
	{"a text block that keeps its line break", swap(block, listened, "listen: |\n  127.0.0.1:4900"), 1},
	{"another encoding", "\xff\xfel\x00i\x00", 1},
	{"a byte of another encoding", swap(block, "wiki", "w\xefki"), 17},
	{"a control character", swap(block, "5s", "5s\x00"), 16},
	{"an escaped control character", swap(block, "wiki", `w\x07iki`), 17},
	{"a byte order mark within", swap(block, "serve:", "\ufeffserve:"), 15},
	{"an invisible line break", swap(block, "wiki", "wi\u2028ki"), 17},
	{"an old line break", swap(block, "hold: 5s", "hold: 5s\u0085"), 16},
	{"a dot in a key", block + "log.level: info\n", 18},
	{"another letter case", swap(block, "hold:", "Hold:"), 16},
	{"a rule of one word", swap(block, "rules:", "rules:\n  strict: on"), 9},
	{"an empty rule", swap(block, "rules:", "rules:\n  strict: {}"), 9},
	{"an unknown empty group", block + "rulez: {}\n", 18},
	{"an unknown empty group below", swap(block, "  npm:", "  npmm: {}\n  npm:"), 3},
	{"an unknown empty list", block + "rulez: []\n", 18},
	{"an unknown group of nothing", block + "rulez:\n", 18},
	{"deep", block + "log: " + strings.Repeat("[", 1000) + "\n", 18},
	{"aliases of aliases", block + "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", 18},
}

// A file is read as it was meant, or refused with the line that is to be changed; it is never
// misread.
func TestSpellings(t *testing.T) {
	want := load(t, with(block))
	same := 0
	for _, s := range spellings {
		t.Run(s.name, func(t *testing.T) {
			got, err := config.Load(t.Context(), with(s.text))
			if s.line > 0 {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("\n  %s:%d: ", fileName, s.line)) {
					t.Errorf("want a problem on line %d, got %v, in\n%s", s.line, err, s.text)
				}
				if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Count(err.Error(), "\n") > 4) {
					t.Errorf("the report shows what it should not, or drowns it: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v, in\n%s", err, s.text)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Config{}), cmp.Exporter(func(reflect.Type) bool { return true }), samePattern); diff != "" {
				t.Errorf("%s\nin\n%s", diff, s.text)
			}
			if diff := cmp.Diff(values(want), values(got)); diff != "" {
				t.Errorf("%s\nin\n%s", diff, s.text)
			}
		})
		if s.line == 0 {
			same++
		}
	}
	if same < 60 {
		t.Errorf("%d spellings of the same configuration; 60 are wanted", same)
	}
}

// values is what the settings say, without the places where they say it, and without what says
// nothing.
func values(c *config.Config) map[string]string {
	out := map[string]string{}
	for _, s := range c.Settings() {
		out[s.Key] = s.Value
	}
	return out
}

// What cannot be meant refuses the start: an empty group under a name that nothing has, and a rule
// that says nothing.
func TestEmptyGroups(t *testing.T) {
	for _, c := range []struct{ file, key, problem string }{
		{"rulez: {}", "rulez", "unknown key; did you mean rules?"},
		{"mounts: {npmm: {}}", "mounts.npmm", "unknown key; did you mean mounts.npm?"},
		{"rules: {never: {}}", "rules.never", "has no type"},
		{"mounts: {npm: {mirrors: {}}}", "mounts.npm.mirrors", "did you mean mounts.npm.mirror?"},
		{"rules: {No Way: {}}", "rules.No Way", "a rule's name"},
		{"rules: {min-age: {agee: {}}}", "rules.min-age.agee", "did you mean age?"},
		{"rules: {min-age: {age: {}}}", "rules.min-age.age", "is a setting, not a group"},
		{"serve: {hold: {}}", "serve.hold", "is a setting, not a group"},
		{"egress: {allowHTTP: {}}", "egress.allowHTTP", "is a setting, not a group"},
		{"cooldown: {shared: {}}", "cooldown.shared", "is a setting, not a group"},
		{"{}", "", ""},
		{"serve: {}\nmounts: {npm: {mirror: {}}}\nrules: {}", "", ""},
	} {
		t.Run(c.file, func(t *testing.T) { expect(t, with(c.file), c.key, c.problem) })
	}
}

// samePattern compares patterns by what they say: the functions in them cannot be compared.
var samePattern = cmp.Comparer(func(a, b policy.Pattern) bool { return a.String() == b.String() })
