package browsertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestProbePage holds the page that examples/probe writes to the rules of axe-core and
// of contrast, in both color schemes.
func TestProbePage(t *testing.T) {
	if browser == nil {
		t.Skip("Chromium is not installed (on Debian: apt-get install chromium)")
	}
	engine := sandbox.New()
	if err := engine.SetProfile(&sandbox.Profile{Version: sandbox.ProfileVersion, Points: map[string][]string{"service.idle": {"closed after 1 s"}}}); err != nil {
		t.Fatal(err)
	}
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	page := filepath.Join(t.TempDir(), "page.html")
	cmd := exec.Command("go", "run", "-C", "../../probe", ".", "-read", "-rate", "1000", "-ledger", filepath.Join(t.TempDir(), "ledger"), "-html", page)
	cmd.Env = append(os.Environ(), "CARDDATA_BIN_URL="+server.URL(), "CARDDATA_API_KEY=key", "CARDDATA_REFUND_URL="+server.URL())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, size := range map[string][2]int64{"probe": {wide, high}, "probe-phone": {phoneWide, phoneHigh}} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				b := openTab(t, size[0], size[1], &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
				b.do(chromedp.Navigate("file://" + page))
				b.wait(`document.title.includes("Card Data Service")`)
				b.look(name+"-"+scheme, 60)
				if evaluate[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
					t.Error("the page is wider than its window")
				}
			})
		}
	}
}
