package bins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// syntheticAnswer is a response of 50 cards, in the order of the documentation.
func syntheticAnswer() []byte {
	items := make([]string, MaxCards)
	for i := range items {
		items[i] = string(sandbox.SyntheticCard(fmt.Sprintf("4%09d", i*37)))
	}
	return []byte(`{"cards":[` + strings.Join(items, ",") + `]}`)
}

// forms returns a response in the forms in which services write JSON.
func forms(t testing.TB, answer []byte) map[string][]byte {
	t.Helper()
	var generic any
	var indented bytes.Buffer
	if err := json.Unmarshal(answer, &generic); err != nil {
		t.Fatal(err)
	}
	alphabetical, err := json.Marshal(generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&indented, answer, "", "  "); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"documented": answer, "alphabetical": alphabetical, "indented": indented.Bytes()}
}

// encodingJSON decodes a response as encoding/json does.
func encodingJSON(body []byte) (*LookupResponse, error) {
	resp := new(LookupResponse)
	var raw struct{ Cards []json.RawMessage }
	if err := errors.Join(json.Unmarshal(body, resp), json.Unmarshal(body, &raw)); err != nil {
		return nil, err
	}
	for i := range resp.Cards {
		r := &resp.Cards[i]
		r.Raw = raw.Cards[i]
		if r.hasCard() && string(r.Data.Card.NetworkFees) == "null" {
			r.Data.Card.NetworkFees = nil
		}
	}
	return resp, nil
}

// agrees reads a response. It fails if encoding/json finds that something else is JSON, or reads
// documented types in another way.
func agrees(t *testing.T, body []byte) *LookupResponse {
	t.Helper()
	got, err := decode(body, true, MaxCards)
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	want, wantErr := encodingJSON(body)
	isObject := json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
	refused := err != nil && (strings.Contains(err.Error(), tooMany) || strings.Contains(err.Error(), "cards has"))
	switch {
	case err == nil && !isObject, isObject && err != nil && !refused:
		t.Fatalf("%q\nis decoded as %#v, %v, and an object: %v", body, got, err, isObject)
	case err == nil && wantErr == nil && !repeatsName(json.NewDecoder(bytes.NewReader(body))) && !reflect.DeepEqual(got, want):
		t.Fatalf("%q\nis decoded as %#v\nand by encoding/json as %#v", body, got, want)
	}
	return got
}

// repeatsName reports whether an object of the next value has two names that differ in case at
// most.
func repeatsName(d *json.Decoder) (repeats bool) {
	opening, err := d.Token()
	if opening != json.Delim('{') && opening != json.Delim('[') {
		return false
	}
	var names []string
	for err == nil && d.More() {
		if opening == json.Delim('{') {
			var name json.Token
			if name, err = d.Token(); err != nil {
				break
			}
			isName := func(other string) bool { return strings.EqualFold(other, name.(string)) }
			repeats = repeats || slices.ContainsFunc(names, isName)
			names = append(names, name.(string))
		}
		repeats = repeatsName(d) || repeats
	}
	d.Token()
	return repeats
}

func mustScan(t *testing.T, body []byte) {
	t.Helper()
	if agrees(t, body) == nil {
		t.Errorf("%s is not read", body)
	}
}

func scan(body []byte, keepRaw bool) (*LookupResponse, bool) {
	s := scanner{body: body, keepRaw: keepRaw, expected: MaxCards}
	return s.response()
}

func TestAnswersAreScannedInEveryForm(t *testing.T) {
	for form, body := range forms(t, syntheticAnswer()) {
		t.Run(form, func(t *testing.T) { mustScan(t, body) })
	}
	for _, body := range []string{
		`{}`, `{"cards":null}`, `{"cards":[]}`, ` { "cards" : [ null , { } ] , "page" : [ { "of" : -1.5e+3 } ] } `,
		`{"cards":[{"bin":"\u0041\u0026\/\"\\\n","error":"\u00e9","since":"\t"}]}`,
		`{"cards":[{"bin":"\t\ud83d\ude00","error":"\ud83d"},{"error":"` + "\xff" + `","notes":{"a\u00e9":{"":"\b"}},"bin":"` + "\x80" + `"}]}`,
		`{"cards":[{"data":null},{"data":{"card":null}},{"data":{"card":{"additional_card_brands":[null,{}]}}}]}`,
		`{"cards":[{"data":{"card":{"prepaid":"","bin_length":"8","svc_bin_length":-1,"number":{"length":0},"networkfees":null}}}]}`,
		`{"CARDS":[{"BIN":"1"}]}`, `{"card\u0073":[{}]}`, `{"card\u017f":[{}]}`, "{\"card\u017f\":[{\"\u0062in\":\"1\"}]}",
		`{"cards":[{"data":{"card":{"bin_length":-9223372036854775808,"svc_bin_length":8.0,"prepaid":"true"}}}]}`,
	} {
		mustScan(t, []byte(body))
	}
}

func TestScannerLeavesWhatIsNoJSON(t *testing.T) {
	for _, body := range []string{
		``, `null`, `{`, `{}x`, `{"cards":[}`, `{"cards":[],}`, `{"cards":[{"bin":"","bin":]}`, `{"cards":[{"bin":0x1}]}`,
		"{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":01}`, `{"a":truth}`, `{"cards":[{"data":{"card":{"bin_length":007,"prepaid":tru}}}]}`,
		`{"cards":[{"data":{"card":{"bin_length":+7}}}]}`, `{"cards":[{"data":{"card":{"prepaid":tru}}}]}`,
		`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		`{"cards":[{"bin":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}]}`,
	} {
		if got, ok := scan([]byte(body), false); ok {
			t.Errorf("%s: %#v", body, got)
		}
	}
}

// An item and all its strings take few allocations.
func TestItemIsInFewPieces(t *testing.T) {
	body := syntheticAnswer()
	if n := testing.AllocsPerRun(10, func() { scan(body, false) }); n > 10*MaxCards {
		t.Errorf("%v allocations for %d cards", n, MaxCards)
	}
}

func TestKeptItemDoesNotKeepTheAnswer(t *testing.T) {
	body := bytes.Replace(syntheticAnswer(), []byte("["), []byte(`[{"error":"`+strings.Repeat("long", 1000)+`"},`), 1)
	answer := weak.Make(&body[0])
	resp, ok := scan(body, true)
	if !ok {
		t.Fatal("not scanned")
	}
	other, text := weak.Make(resp.Cards[2].Data.Card), weak.Make(unsafe.StringData(resp.Cards[2].Data.Card.CardBrand))
	kept := resp.Cards[1]
	resp, body = nil, nil
	runtime.GC()
	if answer.Value() != nil || other.Value() != nil || text.Value() != nil {
		t.Error("an item keeps the answer, or another item, in memory")
	}
	runtime.KeepAlive(kept)
}

// Responses are damaged at random. Those that encoding/json can still read are read as it does.
func TestDamagedAnswers(t *testing.T) {
	const tokens = `"\{}[]:,0-.eE tfn` + "\n\x00\xff\u017f"
	random := rand.New(rand.NewPCG(1, 2))
	var bodies [][]byte
	for _, item := range []string{"411111", "45717360", "424242"} {
		for _, body := range forms(t, fmt.Appendf(nil, `{"cards":[%s]}`, sandbox.SyntheticCard(item))) {
			bodies = append(bodies, body)
		}
	}
	scanned := 0
	for range 4_000 {
		body := bytes.Clone(bodies[random.IntN(len(bodies))])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(body))
			switch random.IntN(3) {
			case 0:
				body[at] = tokens[random.IntN(len(tokens))]
			case 1:
				body = append(body[:at], body[min(len(body), at+1+random.IntN(40)):]...)
			default:
				from := random.IntN(len(body))
				body = append(body[:at:at], body[from:min(len(body), from+random.IntN(80))]...)
			}
			if len(body) == 0 {
				break
			}
		}
		if agrees(t, body) != nil {
			scanned++
		}
	}
	if scanned < 200 {
		t.Errorf("%d of the damaged answers were scanned", scanned)
	}
}
