package mask

import "testing"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"card 4111111111111111 declined": "card 411111******1111 declined",
		"4111 1111-1111 1111":            "411111******1111",
		"id=378282246310005;":            "id=378282*****0005;",
		"４１１１１１１１１１１１１１１１ and ٤١١١١١١١١١١١١١١١": "**** and ****",
		"ref 12345678901, 45717360": "ref 12345678901, 45717360",
		"127.0.0.1:8080 2026/11/21": "127.0.0.1:8080 2026/11/21",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is masked as %q", text, got)
		}
	}
}

func TestIdentifier(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "411111": "411111", "45717360": "45717360", "457173601": "457173***", "4111111111111111": "411111******1111",
		"tok_1": "****", "４１１１１１": "****", "4111 1111": "****",
	} {
		if got := Identifier(id); got != want {
			t.Errorf("%q is masked as %q", id, got)
		}
	}
}
