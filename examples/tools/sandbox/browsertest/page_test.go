package browsertest

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	wide, high           = 1360, 860
	phoneWide, phoneHigh = 360, 740

	duplicatesOnly = "#tiles li:nth-child(5) button"
	refusedOnly    = "#tiles li:nth-child(6) button"
)

// row is a JavaScript expression for the row of a request.
func row(number int) string {
	return fmt.Sprintf(`document.querySelector('.row[data-number="%d"]')`, number)
}

// TestRequests looks at the rows and the details of requests as they arrive.
func TestRequests(t *testing.T) {
	b := openTab(t, wide, high)
	b.wait(`!$("empty").hidden && $("empty").innerText.includes("curl ` + b.url + `/bins/multiple")`)
	b.lookup("4111111111111111", "45717360", "tok_secret", "999999")
	b.download()
	b.click("#drop_after_accept")
	b.wait(`$("rules").textContent.includes("Drop after accept")`)
	if status, _ := b.refund("r-1"); status != 0 {
		t.Errorf("got %d, want no response", status)
	}
	b.refund("r-1")
	b.send(http.MethodPost, "/v1/acct/refunds", `{"refund_id": "r-2", "amount": "it's 12", "orderId": "o"}`)
	for i, texts := range [][]string{
		{"411111******1111, 45717360, **** and 1 more", "200"},
		{"job 42", "200"},
		{"r-1", "dropped after accept", "cut"},
		{"r-1", "duplicate of #3", "200"},
		{"r-2", "amount is a string where the interface has an integer", "400"},
	} {
		for _, text := range texts {
			b.wait(row(i+1) + `?.innerText.includes("` + text + `")`)
		}
	}
	background := evaluate[[]int](b, `getComputedStyle(`+row(4)+`).backgroundColor.match(/\d+/g).map(Number)`)
	if red, green, blue := background[0], background[1], background[2]; red < green+10 || red < blue+10 {
		t.Errorf("the background of a duplicate is %v", background)
	}

	b.click(`.row[data-number="1"]`)
	b.wait(`$("detail").open && $("content").innerText.includes("First Example Bank") && !$("content").innerText.includes("tok_")`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.click(refusedOnly)
	b.wait(`document.querySelectorAll(".row").length === 1`)
	b.click(`.row[data-number="5"]`)
	b.wait(`$("detail").open && $("content").innerText.includes("orderId is not a member of the interface")`)
	b.wait(`$("content").innerText.includes("rejected: bad request")`)
	command := evaluate[string](b, `$("curl").dataset.command`)
	out, err := exec.Command("bash", "-c", strings.Replace(command, "curl ", "curl -s ", 1)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "amount is a string") {
		t.Errorf("%s: %s, %v", command, out, err)
	}
	b.wait(row(6) + `?.innerText.includes("r-2")`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.click("#reset")
	b.wait(`!$("empty").hidden && !document.querySelector(".row") && !$("detail").open`)
}

// TestKeyboard does everything with the keyboard.
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

// TestFaults switches faults on for a percentage of an area, and off again.
func TestFaults(t *testing.T) {
	b := openTab(t, wide, high)
	b.fault(`{"next": 2, "status": 418}`)
	b.wait(`$("rules").textContent.includes("Scripted, the next 2 requests")`)
	b.click("#rules button") // off
	b.wait(`$("rules").textContent.includes("None")`)
	b.do(
		chromedp.SetValue(chromedp.CSS("#scope"), "percent"),
		chromedp.Evaluate[chromedp.Void](`$("scope").dispatchEvent(new Event("change"))`),
		chromedp.SetValue(chromedp.CSS("#amount"), "100"),
		chromedp.SetValue(chromedp.CSS("#area"), "refunds"),
		chromedp.Click(chromedp.CSS("#server_error")),
	)
	b.wait(`$("rules").textContent.includes("100 % of refunds")`)
	for range 2 {
		if status, _ := b.refund("r-2"); status != http.StatusServiceUnavailable {
			t.Errorf("refund: %d", status)
		}
	}
	b.wait(row(2) + `?.innerText.includes("attempt 2 of #1")`)
}

func TestReconnects(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.wait(row(1))
	evaluate[chromedp.Void](b, `source.close(), link("reconnecting"), connect()`)
	b.refund("r-2")
	b.wait(row(2) + ` && $("link").textContent === "live" && document.querySelectorAll(".row").length === 2`)
}

// TestManyRequests filters and searches more requests than are drawn.
func TestManyRequests(t *testing.T) {
	b := openTab(t, wide, high)
	b.refund("r-1")
	b.refund("r-1")
	const more = 350
	for i := range more {
		b.refund(fmt.Sprintf("other-%d", i))
	}
	b.wait(row(more+2) + ` && !` + row(2) + ` && document.querySelectorAll(".row").length === 300 && $("more").innerText.includes("300 of 352")`)
	b.click(duplicatesOnly)
	b.wait(`document.querySelectorAll(".row").length === 1 && ` + row(2) + `.innerText.includes("duplicate of #1") && $("kept").innerText === "1 match"`)
	b.lookup("45717360")
	b.wait(`entries.has(353) && document.querySelectorAll(".row").length === 1`)
	b.click(duplicatesOnly)
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "OTHER-7"))
	b.wait(`document.querySelectorAll(".row").length === 11`) // 7 and 70 to 79
	b.refund("other-777")
	b.wait(row(354) + ` && document.querySelectorAll(".row").length === 12`)
	evaluate[string](b, `$("search").value = ""`)
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "dankort")) // in a response
	b.wait(row(353) + ` && document.querySelectorAll(".row").length === 1`)
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), " nowhere"))
	b.wait(`!$("none").hidden && !document.querySelector(".row")`)
}
