package mask

import (
	"strings"
	"testing"
)

func TestEchoes(t *testing.T) {
	const least = 6
	for _, own := range []string{"SeCrEt-ApiKey-One", "AcCess-ToKen-Two", "MerchANT-3", "AccOUNT-Four4", "Job-ABC-77", "key+with/signs=="} {
		for _, said := range []string{
			own, strings.ToLower(own), strings.ToUpper(own), strings.NewReplacer("-", "", "+", "", "/", "").Replace(own), strings.ReplaceAll(own, "-", "_"),
			strings.TrimRight(own, "="), "job_" + own + "_missing", "x." + strings.ToLower(own), "application/vnd." + strings.ToLower(own) + "+json",
		} {
			if !Echoes(said)(own, least) {
				t.Errorf("%s is not seen to repeat %s", said, own)
			}
		}
	}
	for _, test := range []struct {
		said, own string
		want      bool
	}{
		{"42", "42", true}, {"4-2", "42", true}, {"job_42_missing", "42", false}, {"", "", false},
		{"job_not_found", "", false}, {"job_not_found", "--", false}, {"job_not_found", "Job-ABC-77", false}, {"unknown_bin", "SeCrEt-ApiKey-One", false},
	} {
		if Echoes(test.said)(test.own, least) != test.want {
			t.Errorf("%s repeats %q: %v", test.said, test.own, !test.want)
		}
	}
}
