package npmserving

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// documents returns what stands at the top of each document. Only the syntax tree is used: values
// are never built, since the library then compares each key of a mapping with every other one, and
// lock files have mappings of many thousands.
func documents(data []byte) (all []map[string]*yaml.Node, err error) {
	docs, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil {
		var doc yaml.Node
		if err = docs.Load(&doc); err != nil {
			break
		}
		for _, top := range doc.Content {
			var names map[string]*yaml.Node
			names, err = members(top)
			all = append(all, names)
		}
	}
	if errors.Is(err, io.EOF) {
		return all, nil
	}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Mark.Line > 0 {
		return nil, fmt.Errorf("line %d: %s", e.Mark.Line, e.Message)
	}
	return nil, err
}

// members returns what a mapping holds, by name; nothing holds nothing.
func members(mapping *yaml.Node) (map[string]*yaml.Node, error) {
	switch {
	case mapping == nil, mapping.Kind == yaml.ScalarNode && mapping.ShortTag() == "!!null":
		return nil, nil
	case mapping.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: expected a mapping", mapping.Line)
	}
	all := make(map[string]*yaml.Node, len(mapping.Content)/2)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if all[key.Value] != nil {
			return nil, fmt.Errorf("line %d: duplicate key %.80q", key.Line, key.Value)
		}
		all[key.Value] = mapping.Content[i+1]
	}
	return all, nil
}
