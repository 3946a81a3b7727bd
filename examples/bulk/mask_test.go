package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestMasks has the service quote the card number wherever it can.
func TestMasks(t *testing.T) {
	for name, input := range map[string]string{
		"in.csv":    "card\n" + canary + "\n4111 1111 1111 1111\n4111-1111-1111-1111\n\"" + canary + "\"x\n" + canary + canary + "\n",
		"in.ndjson": `{"card":"` + canary + `"}` + "\n{\"card\":" + canary + "}\n{\"card\":4111111111111111.0}\n{\"card\":" + canary + "\n",
		"in.txt":    canary + "\n" + canary + canary + "\n" + canary + "\x01\n",
	} {
		for _, fail := range []bool{false, true} {
			engine, vars := serve(t)
			engine.SetLookup(func(string) json.RawMessage {
				return json.RawMessage(`{"bin":"4111111111111111","error":"no card 4111-1111-1111-1111\u001b[2J\nfound",
					"data":{"card":{"pan_or_token":"4111111111111111","bin_min":"4111111111111111000","bin_max":"4111111111111111999","card_brand":"VISA"}}}`)
			})
			if fail {
				engine.Script(sandbox.Bins, sandbox.Fault{Status: 400, Body: `{"error":{"code":"4111111111111111","message":"no 4111111111111111"}}`})
			}
			dir := t.TempDir()
			out, path := filepath.Join(dir, "out"), filepath.Join(dir, "report.json")
			in := write(t, name, input)
			// Ended early, the state file keeps what it holds.
			engine.Script(sandbox.Bins, sandbox.Fault{}, sandbox.Fault{Status: 403})
			got := bulk(t, vars, "-in", in, "-out", out, "-report", path, "-ranges", "-columns", "card_brand,error")
			got.CheckMasked(t, "key-canary", "\x1b")
			for _, path := range []string{out + ".failed.csv", out + ".state", path} {
				program.Result{Stdout: read(t, path)}.CheckMasked(t, "key-canary", "\x1b")
			}
			if !fail && !strings.Contains(read(t, out), "no card 411111******1111 [2J found") {
				t.Errorf("output:\n%s", read(t, out))
			}
		}
	}
}
