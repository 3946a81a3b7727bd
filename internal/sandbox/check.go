package sandbox

import (
	"encoding/json"
	"net/http"
	"strings"
)

// checkPost returns false and the answer when a request with a JSON body is not
// one.
func checkPost(r *http.Request) (answer, bool) {
	if r.Method != http.MethodPost {
		return methodNotAllowed(http.MethodPost), false
	}
	if mediaType(r) != "application/json" {
		return failure(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json"), false
	}
	return answer{}, true
}

func mediaType(r *http.Request) string {
	name, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(name))
}

func authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return scheme == "Bearer" && strings.TrimSpace(token) != ""
}

func failure(status int, code, message string) answer {
	type object struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	body, _ := json.Marshal(map[string]object{"error": {code, message, map[string]any{}}})
	return answer{status: status, contentType: "application/json", body: body}
}

func unauthorized(message string) answer {
	return failure(http.StatusUnauthorized, "unauthorized", message)
}

func methodNotAllowed(allow string) answer {
	a := failure(http.StatusMethodNotAllowed, "method_not_allowed", "the method must be "+allow)
	a.header = http.Header{"Allow": {allow}}
	return a
}
