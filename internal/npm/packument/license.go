package packument

// license reads a version's "license": an SPDX expression, or the older {"type": …, "url": …}.
// Anything else is unknown, the empty string.
func (s *scan) license() (expression string) {
	switch s.Peek() {
	case '"':
		expression, _ = s.Text()
		return expression
	case '{':
		return s.licenseObject()
	}
	s.Skip()
	return ""
}

// licenseObject takes the type of the older form; given twice, it is unknown.
func (s *scan) licenseObject() (expression string) {
	seen := 0
	for open := s.Object(); open; {
		key, ok := s.Member()
		switch {
		case !ok:
			open = false
		case key == "type":
			seen++
			expression, _ = s.Text()
		default:
			s.Skip()
		}
	}
	if seen != 1 {
		return ""
	}
	return expression
}
