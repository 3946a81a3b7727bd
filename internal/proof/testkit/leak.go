package testkit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// Printed returns v in the forms in which a program would log it: every verb of
// fmt, alone and inside structs, where fmt cannot call its methods, and slog.
func Printed(v any) map[string]string {
	forms := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%20s", "%-3v"} {
		forms[verb] = fmt.Sprintf(verb, v)
		forms[verb+" in a slice"] = fmt.Sprintf(verb, []any{v})
		forms[verb+" in a field"] = fmt.Sprintf(verb, struct{ Field any }{v})
	}
	text, json := new(bytes.Buffer), new(bytes.Buffer)
	// The time's digits may hold what is looked for.
	timeless := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	slog.New(slog.NewTextHandler(text, timeless)).Info("", "value", v)
	slog.New(slog.NewJSONHandler(json, timeless)).Info("", "value", v)
	forms["slog text"], forms["slog JSON"] = text.String(), json.String()
	return forms
}

// NoLeak fails the test when a printed form of v holds a secret, as it is or
// encoded as fmt and encoding/json print bytes.
func NoLeak(t testing.TB, v any, secrets ...string) {
	t.Helper()
	for name, form := range Printed(v) {
		NoSecret(t, name, form, secrets...)
	}
}

// NoSecret fails the test when text, which name describes, holds a secret.
func NoSecret(t testing.TB, name, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for _, encoded := range Encodings(secret) {
			if strings.Contains(text, encoded) {
				t.Errorf("%s prints %q: %s", name, secret, text)
			}
		}
	}
}

// Encodings are the forms in which a text holds a secret.
func Encodings(secret string) []string {
	numbers := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
	literal := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(secret)), "[]byte{"), "}")
	forms := []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), numbers, literal}
	if quoted := strings.Trim(fmt.Sprintf("%q", secret), `"`); quoted != secret {
		forms = append(forms, quoted)
	}
	// Inside a longer text, base64 has one of three alignments, and shares its first and last
	// characters with the neighbours.
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		forms = append(forms, encoded[(shift*8+5)/6:(shift+len(secret))*8/6])
	}
	return forms
}

// NoLeakUnderAnyVerb is NoLeak also for the verbs under which fmt calls no method of
// v and prints its fields.
func NoLeakUnderAnyVerb(t testing.TB, v any, secrets ...string) {
	t.Helper()
	NoLeak(t, v, secrets...)
	for _, verb := range []string{"%w", "%p", "%!"} {
		for _, holder := range []any{v, []any{v}, struct{ field any }{v}} {
			NoSecret(t, verb, fmt.Sprintf(verb, holder), secrets...)
		}
	}
}
