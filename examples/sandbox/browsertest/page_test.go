package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	wide, high           = 1360, 860
	phoneWide, phoneHigh = 360, 740
)

// row is a JavaScript expression for the row of a request.
func row(number int) string {
	return fmt.Sprintf(`document.querySelector('.row[data-number="%d"]')`, number)
}

func TestRequestsAppear(t *testing.T) {
	b := openTab(t, wide, high)
	b.wait(`!$("empty").hidden && $("empty").innerText.includes("curl ` + b.url + `/bins/multiple")`)
	b.lookup("4111111111111111", "45717360", "tok_secret", "999999")
	b.wait(row(1) + `?.innerText.includes("411111******1111, 45717360, **** and 1 more")`)
	b.wait(row(1) + `.innerText.includes("200") && $("empty").hidden`)
	b.download()
	b.wait(row(2) + `?.innerText.includes("job 42")`)
	b.do(chromedp.Click(chromedp.CSS(`.row[data-number="1"]`)))
	b.wait(`$("detail").open && $("content").innerText.includes("First Example Bank") && !$("content").innerText.includes("tok_")`)
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.Click(chromedp.CSS("#reset")))
	b.wait(`!$("empty").hidden && !document.querySelector(".row") && !$("detail").open`)
}

func TestDuplicateTurnsRed(t *testing.T) {
	b := openTab(t, wide, high)
	b.do(chromedp.Click(chromedp.CSS("#drop_after_accept")))
	b.wait(`$("rules").textContent.includes("Drop after accept")`)
	if status, _ := b.refund("r-1"); status != 0 {
		t.Errorf("got %d, want no response", status)
	}
	b.refund("r-1")
	b.wait(row(2) + `?.innerText.includes("duplicate of #1")`)
	background := evaluate[[]int](b, `getComputedStyle(`+row(2)+`).backgroundColor.match(/\d+/g).map(Number)`)
	if red, green, blue := background[0], background[1], background[2]; red < green+10 || red < blue+10 {
		t.Errorf("the background is %v", background)
	}
	b.wait(`!` + row(1) + `.classList.contains("duplicate")`)
	b.do(chromedp.Click(chromedp.CSS(`#tiles li:nth-child(5) button`))) // the filter
	b.wait(`document.querySelectorAll("#list li:not([hidden])").length === 1`)
}

// TestKeyboard uses no pointer at all.
func TestKeyboard(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.refund("r-2")
	b.wait(row(2))
	press := func(key, until string) {
		t.Helper()
		for range 40 {
			b.do(chromedp.KeyEvent(key))
			if evaluate[bool](b, until) {
				return
			}
		}
		b.wait(until)
	}
	focused := func(e string) string { return `document.activeElement === ` + e }

	press(kb.Tab, focused(row(2)))
	press(kb.ArrowDown, focused(row(1)))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`$("detail").open && $("title").innerText === "Request #1" && $("content").innerText.includes('"refund_id": "r-1"')`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`!$("detail").open && ` + focused(row(1)))

	press(kb.Tab, focused(`$("amount")`))
	b.do(chromedp.KeyEvent(kb.ArrowUp)) // the next 2
	press(kb.Tab, focused(`$("rate_limited")`))
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`$("rules").textContent.includes("the next 2 requests") && $("say").textContent.includes("in force")`)
	if status, header := b.lookup("411111"); status != http.StatusTooManyRequests || header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v", status, header)
	}
	b.wait(row(3) + `?.innerText.includes("429") && $("rules").textContent.includes("the next request")`)
	press(kb.Tab, `document.activeElement.textContent.startsWith("Off")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`$("rules").textContent.includes("None")`)
	if status, _ := b.lookup("411111"); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
}

func TestFaultsOfAPercentage(t *testing.T) {
	b := openTab(t, wide, high)
	b.do(
		chromedp.SetValue(chromedp.CSS("#scope"), "percent"),
		chromedp.Evaluate[chromedp.Void](`$("scope").dispatchEvent(new Event("change"))`),
		chromedp.SetValue(chromedp.CSS("#amount"), "100"),
		chromedp.SetValue(chromedp.CSS("#area"), "updater"),
		chromedp.Click(chromedp.CSS("#server_error")),
	)
	b.wait(`$("rules").textContent.includes("100 % of downloads")`)
	for range 2 {
		if status, _ := b.download(); status != http.StatusServiceUnavailable {
			t.Errorf("download: %d", status)
		}
	}
	if status, _ := b.lookup("411111"); status != http.StatusOK {
		t.Errorf("lookup: %d", status)
	}
	b.wait(row(2) + `?.innerText.includes("attempt 2 of #1")`)
}

func TestReconnects(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.wait(row(1))
	evaluate[chromedp.Void](b, `source.close(), link("reconnecting"), connect()`)
	b.refund("r-2")
	b.wait(row(2) + ` && $("link").textContent !== "" && document.querySelectorAll(".row").length === 2`)
}

func TestPhoneHasNoHorizontalScroll(t *testing.T) {
	b := openTab(t, phoneWide, phoneHigh)
	const fits = `document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll("body *")]
		.every(e => e.closest(".unseen") || !e.checkVisibility() || e.getBoundingClientRect().right <= innerWidth + 0.5)`
	b.wait(fits)
	fill(b)
	b.wait(fits)
	evaluate[chromedp.Void](b, `$("panel").open = true`)
	b.wait(fits)
	b.do(chromedp.Click(chromedp.CSS(`.row.duplicate`)))
	b.wait(`$("detail").open && $("content").innerText.includes("Response")`)
	b.wait(`$("detail").scrollWidth <= innerWidth && ` + fits)
}

// TestOtherPages shows that a web page elsewhere can neither drive the sandbox
// nor read what it knows, not even under a name that it makes resolve here.
func TestOtherPages(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<link rel="icon" href="data:,">elsewhere`)
	}))
	defer elsewhere.Close()
	rebound := strings.Replace(b.url, "127.0.0.1", "rebound.example", 1)

	other := openTab(t, wide, high)
	other.do(chromedp.Navigate(elsewhere.URL))
	got := evaluate[[]string](other, `Promise.all([
		["GET", "/sandbox/requests", {}],
		["POST", "/sandbox/reset", {mode: "no-cors"}],
		["POST", "/sandbox/faults", {body: '{"fault": "slow", "next": 1}', headers: {"Content-Type": "application/json"}}],
		["GET", "/updater/inquiries/jobs/42/download", {mode: "no-cors"}],
		["POST", "/v1/acct/refunds", {mode: "no-cors", body: "{}"}],
	].map(([method, path, more]) => fetch("`+b.url+`" + path, {method, ...more}).then(r => r.text()).then(text => "read: " + text, () => "refused")))`)
	for i, text := range got {
		if text != "refused" && text != "read: " {
			t.Errorf("request %d: %s", i, text)
		}
	}
	other.do(chromedp.Navigate(rebound))
	if body := evaluate[string](other, `document.body.innerText`); !strings.Contains(body, "forbidden") {
		t.Errorf("under another name: %s", body)
	}
	other.mu.Lock()
	other.errors = nil // the browser says that it was refused
	other.mu.Unlock()

	b.wait(`Object.values(state.areas).reduce((n, a) => n + a.requests, 0) === 1 && state.faults.length === 0`)
	if count := evaluate[int](b, `fetch("/sandbox/requests").then(r => r.json()).then(r => r.requests.length)`); count != 1 {
		t.Errorf("%d requests in the record, want 1", count)
	}
}

// TestDuplicateStaysInSight sends more requests after a duplicate than are drawn.
func TestDuplicateStaysInSight(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.refund("r-1")
	const more = 350
	for i := range more {
		b.refund(fmt.Sprintf("other-%d", i))
	}
	b.wait(row(more+2) + ` && !` + row(2) + ` && document.querySelectorAll(".row").length === 300 && $("more").innerText.includes("300 of 352")`)
	b.do(chromedp.Click(chromedp.CSS(`#tiles li:nth-child(5) button`)))
	b.wait(`document.querySelectorAll(".row").length === 1 && ` + row(2) + `.innerText.includes("duplicate of #1") && $("kept").innerText === "1 match"`)
	b.refund("last")
	b.wait(`entries.has(353) && document.querySelectorAll(".row").length === 1`)
	b.do(chromedp.Click(chromedp.CSS(`#tiles li:nth-child(5) button`)), chromedp.SendKeys(chromedp.CSS("#search"), "OTHER-7"))
	b.wait(`document.querySelectorAll(".row").length === 11`) // 7 and 70 to 79
	b.refund("other-777")
	b.wait(row(354) + ` && document.querySelectorAll(".row").length === 12`)
}

func TestSearchLooksIntoBodies(t *testing.T) {
	b := openTab(t, wide, high)
	b.lookup("411111")
	b.lookup("45717360")
	b.wait(row(2))
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "dankort"))
	b.wait(row(2) + ` && !` + row(1))
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), " nowhere"))
	b.wait(`!$("none").hidden && !` + row(2))
}

// TestWhatTheContractRefused shows it in the list, behind the filter and in the
// details, with what the library makes of the response.
func TestWhatTheContractRefused(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.send(http.MethodPost, "/v1/acct/refunds", `{"refund_id": "r-2", "amount": "it's 12", "orderId": "o"}`)
	b.wait(row(2) + `?.innerText.includes("amount is a string where the interface has an integer")`)
	b.do(chromedp.Click(chromedp.CSS(`#tiles li:nth-child(6) button`)))
	b.wait(`document.querySelectorAll(".row").length === 1`)
	b.do(chromedp.Click(chromedp.CSS(`.row[data-number="2"]`)))
	b.wait(`$("detail").open && $("content").innerText.includes("orderId is not a member of the interface")`)
	b.wait(`$("content").innerText.includes("rejected: bad request")`)

	command := evaluate[string](b, `$("curl").dataset.command`)
	out, err := exec.Command("bash", "-c", strings.Replace(command, "curl ", "curl -s ", 1)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "amount is a string") {
		t.Errorf("%s: %s, %v", command, out, err)
	}
	b.wait(row(3) + `?.innerText.includes("r-2")`)
}

func TestScriptedFaultsAreShown(t *testing.T) {
	b := openTab(t, wide, high)
	evaluate[bool](b, `fetch("/sandbox/faults", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"next": 2, "status": 418}'}).then(r => r.ok)`)
	b.wait(`$("rules").textContent.includes("Scripted, the next 2 requests")`)
	b.refund("r-1")
	b.wait(row(1) + `?.innerText.includes("scripted") && ` + row(1) + `.innerText.includes("418")`)
	b.do(chromedp.Click(chromedp.CSS("#rules button")))
	b.wait(`$("rules").textContent.includes("None")`)
	b.do(chromedp.Click(chromedp.CSS("#job_not_ready")))
	b.wait(`$("rules").textContent.includes("Job not ready, the next download")`)
	if status, _ := b.download(); status != http.StatusConflict {
		t.Errorf("download: %d", status)
	}
}
