package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

const (
	maxDepth = 32
	maxNodes = 100_000
)

// ParseDocument reads one JSON object: valid UTF-8, no name twice in one object, bounded depth and
// size, nothing after it. Numbers stay as they were written (json.Number).
func ParseDocument(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("not JSON in UTF-8")
	}
	p := documentParser{decoder: json.NewDecoder(bytes.NewReader(data))}
	p.decoder.UseNumber()
	value, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data after the document")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return object, nil
}

type documentParser struct {
	decoder *json.Decoder
	nodes   int
}

func (p *documentParser) value(depth int) (any, error) {
	if p.nodes++; depth > maxDepth || p.nodes > maxNodes {
		return nil, errors.New("nested too deeply, or too many values")
	}
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return p.object(depth)
	case json.Delim('['):
		list := []any{}
		for p.decoder.More() {
			entry, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, entry)
		}
		_, err = p.decoder.Token()
		return list, err
	}
	return token, nil
}

func (p *documentParser) object(depth int) (any, error) {
	object := map[string]any{}
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a name is not a string")
		}
		if _, twice := object[name]; twice {
			return nil, errors.New("a name appears twice")
		}
		if object[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := p.decoder.Token()
	return object, err
}
