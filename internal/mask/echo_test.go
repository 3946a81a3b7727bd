package mask

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestHolds(t *testing.T) {
	for _, own := range []string{"SeCrEt-ApiKey-One", "AcCess-ToKen-Two", "MerchANT-3", "AccOUNT-Four4", "Job-ABC-77", "key+with/signs=="} {
		for _, form := range []string{
			own, strings.ToLower(own), strings.ToUpper(own), strings.NewReplacer("-", "", "+", "", "/", "").Replace(own), strings.ReplaceAll(own, "-", "_"),
			strings.TrimRight(own, "="), "job_" + own + "_missing", "x." + strings.ToLower(own), "application/vnd." + strings.ToLower(own) + "+json",
			hex.EncodeToString([]byte(own)), strings.ToUpper(hex.EncodeToString([]byte(own))),
			base64.StdEncoding.EncodeToString([]byte(own)), base64.RawURLEncoding.EncodeToString([]byte("u:" + own)),
			strings.ToLower(base64.StdEncoding.EncodeToString([]byte(own + ":"))), base64.StdEncoding.EncodeToString([]byte(own+":")) + ".sig", "req_" + base64.URLEncoding.EncodeToString([]byte("user:"+own+"?")),
		} {
			if !Holds(form, own) {
				t.Errorf("%s is not seen to hold %s", form, own)
			}
		}
	}
	for _, tc := range []struct {
		name, own string
		holds     bool
	}{
		{"42", "42", true}, {"job_42_missing", "42", true}, {"X-Quota-42", "42", true}, {"job42missing", "42", true}, {"X-4-2", "42", true},
		{"job_142_missing", "42", false}, {"421", "42", false},
		{"job_ab7_missing", "AB-7", true}, {"job.AB-7", "ab7", true}, {"lab7", "AB-7", false}, {"ab77", "AB-7", false},
		{"X-Quota-M", "m", true}, {"merchant_missing", "m", false},
		{"job_not_found", "", false}, {"job_not_found", "--", false}, {"job_not_found", "Job-ABC-77", false}, {"unknown_bin", "SeCrEt-ApiKey-One", false},
	} {
		if Holds(tc.name, tc.own) != tc.holds {
			t.Errorf("%s holds %q: %v", tc.name, tc.own, !tc.holds)
		}
	}
}
