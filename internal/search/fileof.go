package search

// FileOf reads a file record from the document of an answer, for a Recorder that keeps what an upload's answer proved. false when it is none.
func FileOf(document map[string]any) (File, bool) {
	if document == nil {
		return File{}, false
	}
	file, err := parseFile(document)
	return file, err == nil
}
