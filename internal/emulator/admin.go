package emulator

import (
	"encoding/json"
	"net/http"
)

// admin serves the calls of the emulator itself. They need no token and are not recorded.
func (e *Emulator) admin(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "PUT /emulator/script":
		rules, err := ParseScript(r.Body)
		if err == nil {
			err = e.SetScript(rules)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]string{"code": "InvalidScript", "message": err.Error()}})
			return
		}
		writeJSON(w, http.StatusOK, map[string]int{"rules": len(rules)})
	case "GET /emulator/requests":
		writeJSON(w, http.StatusOK, e.Requests())
	case "GET /emulator/state":
		writeJSON(w, http.StatusOK, e.State())
	case "DELETE /emulator/state":
		e.Reset()
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": map[string]string{
			"code":    "NotFound",
			"message": "the emulator has PUT /emulator/script, GET /emulator/requests, GET and DELETE /emulator/state",
		}})
	}
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value) // the client left: nothing to do about it
}
