package browsertest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("screenshots", "", "directory for screenshots; page.png is page-light.png with the colors that pngquant leaves")

// fill sends a bit of everything.
func fill(b *tab) {
	b.Helper()
	b.lookup("45717360", "411111")
	b.download()
	b.send("POST", "/bin/multiple", "{}")
	b.refund("rf_20417")
	b.fault(`{"fault": "rate_limited", "area": "bins", "next": 1, "retry_after": 2}`)
	b.lookup("4111111111111111", "5555555555554444", "378282246310005", "tok_17", "999999")
	b.lookup("4111111111111111", "5555555555554444", "378282246310005", "tok_17", "999999")
	b.send("POST", "/bins/multiple", `{"cards": []}`)
	b.fault(`{"fault": "truncated", "area": "updater", "next": 1}`)
	b.download()
	b.download()
	b.fault(`{"fault": "server_error", "area": "refunds", "next": 1}`)
	b.refund("rf_20418")
	b.fault(`{"fault": "drop_after_accept", "area": "refunds", "next": 1}`)
	b.refund("rf_20418")
	b.refund("rf_20418")
	b.refund("rf_20419")
	b.fault(`{"fault": "slow", "area": "updater", "percent": 20}`)
	b.fault(`{"fault": "drop_after_accept", "area": "refunds", "next": 3}`)
	b.wait(row(13) + `?.innerText.includes("200") && $("rules").textContent.includes("20 %")`)
}

// fits is a JavaScript expression: nothing is wider than the window.
const fits = `Math.max(document.documentElement.scrollWidth, $("detail").scrollWidth) <= innerWidth &&
	[...document.querySelectorAll("body *")].every(e =>
		e.closest(".unseen") || !e.checkVisibility() || e.getBoundingClientRect().right <= innerWidth + 0.5)`

// TestLooks opens the page in both color schemes, on a desktop and on a phone. Nothing may
// be wider than the window. axe-core checks accessibility, with the contrast of WCAG 2.2.
func TestLooks(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		for name, size := range map[string][2]int64{"page": {wide, high}, "phone": {phoneWide, phoneHigh}} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				b := openTab(t, size[0], size[1],
					&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme},
					&emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
				b.look(name + "-empty-" + scheme)
				fill(b)
				b.look(name + "-" + scheme)
				evaluate[chromedp.Void](b, `$("panel").open = true`)
				b.wait(fits)
				b.click(".row.duplicate")
				b.wait(`$("detail").open && $("content").innerText.includes("Response")`)
				b.look(name + "-detail-" + scheme)
			})
		}
	}
}

// look keeps a picture with -screenshots, and runs axe-core if AXE_CORE names its script.
func (b *tab) look(name string) {
	b.Helper()
	b.wait(fits)
	if *shots != "" {
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	path := os.Getenv("AXE_CORE")
	if path == "" {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			b.Fatal("AXE_CORE is not set (npm install axe-core; AXE_CORE=node_modules/axe-core/axe.min.js)")
		}
		return
	}
	script, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	evaluate[bool](b, string(script)+"\n;true")
	found := evaluate[struct {
		Passes     int
		Violations []string
	}](b, `axe.run().then(r => ({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" "))}))`)
	if len(found.Violations) > 0 || found.Passes < 15 {
		b.Errorf("%s: %d rules of axe-core kept; not kept: %q", name, found.Passes, found.Violations)
	}
}
