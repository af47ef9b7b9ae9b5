package wire

import (
	"encoding/json"
	"errors"

	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// File is one file record of a knowledge source.
type File struct {
	// ID is the service's id, "" where absent; see SafeID.
	ID   string
	Name string
	// Bytes is the size of the file, -1 where absent.
	Bytes int64
	// Failed means that errorMessage is there and not null. Its text is the service's and stays in
	// Fields.
	Failed   bool
	Metadata map[string]string
	// Fields are those of the eight fields of the inventory digest (S64) that are present, as they
	// came.
	Fields map[string]any
}

// SafeID reports whether a file id may be stored and sent: the form of a safe request id (S36,
// S67).
func SafeID(id string) bool { return requestid.Safe(id) }

// inventoryFields are the fields of S64.
func inventoryFields() []string {
	return []string{"fileId", "fileName", "prefix", "metadata", "parsingMode", "extractionMode", "fileSizeBytes", "errorMessage"}
}

// ParseFile reads one record. A field of the wrong type is an error, an absent one is not; nil is
// no record.
func ParseFile(record map[string]any) (File, error) {
	if record == nil {
		return File{}, errors.New("there is no record")
	}
	file := File{Bytes: -1, Fields: map[string]any{}}
	for _, name := range inventoryFields() {
		value, given := record[name]
		if !given {
			continue
		}
		file.Fields[name] = value
		if err := file.set(name, value); err != nil {
			return File{}, err
		}
	}
	return file, nil
}

func (f *File) set(name string, value any) error {
	if value == nil {
		return nil
	}
	text, isText := value.(string)
	switch name {
	case "fileId":
		f.ID = text
	case "fileName":
		f.Name = text
	case "fileSizeBytes":
		n, ok := whole(value)
		if !ok || n < 0 {
			return errors.New("fileSizeBytes is not a size")
		}
		f.Bytes = n
		return nil
	case "errorMessage":
		f.Failed = true
	case "metadata":
		return f.setMetadata(value)
	}
	if !isText {
		return errors.New(name + " is not a string")
	}
	return nil
}

func (f *File) setMetadata(value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("metadata is not an object")
	}
	f.Metadata = make(map[string]string, len(object))
	for key, entry := range object {
		text, ok := entry.(string)
		if !ok {
			return errors.New("metadata is not a map of strings")
		}
		f.Metadata[key] = text
	}
	return nil
}

// Capacity is the room for files in a file source (since 2026-10-01).
type Capacity struct {
	MaxFiles, RemainingFiles, MaxFileBytes int64
}

// ParseCapacity reads the capacity of a source's status, whole or not at all.
func ParseCapacity(record map[string]any) (*Capacity, error) {
	var c Capacity
	for name, into := range map[string]*int64{
		"maxFileCount": &c.MaxFiles, "remainingFileCount": &c.RemainingFiles, "maxFileSizeBytes": &c.MaxFileBytes,
	} {
		n, ok := whole(record[name])
		if !ok || n < 0 {
			return nil, errors.New("fileCapacity is not three integers")
		}
		*into = n
	}
	return &c, nil
}

// whole reads a JSON number that is a whole number.
func whole(value any) (int64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := number.Int64()
	return n, err == nil
}
