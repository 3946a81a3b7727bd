package probe

import (
	"fmt"
	"net/http"
)

func downloadPoints(seen facts) []Point {
	return []Point{
		refusalPoint(seen["download-missing"], true), refusalPoint(seen["download-pending"], true),
		contentPoint(seen["download-content"]), resumePoint(seen),
	}
}

// refusalPoint is the status and code of a refusal. A 2xx is none, but it is what
// the service said.
func refusalPoint(fact *Fact, code bool) Point {
	switch {
	case !fact.said() || code && fact.Code == "*":
		return Point{State: NotAnswerable}
	case fact.Code == "" || !code:
		return answer(1, fmt.Sprint(fact.Status))
	}
	return answer(1, fmt.Sprintf("%d %s", fact.Status, fact.Code))
}

func contentPoint(fact *Fact) Point {
	if fact == nil || fact.Status != http.StatusOK || fact.Content == "" {
		return Point{State: NotAnswerable}
	}
	length := "no length"
	if fact.Length {
		length = "length announced"
	}
	return answer(1, fact.Content, length)
}

func resumePoint(seen facts) Point {
	content, part, condition := seen["download-content"], seen["download-range"], seen["download-if-range"]
	if content == nil || part == nil || content.Status != http.StatusOK {
		return Point{State: NotAnswerable}
	}
	switch part.Status {
	case http.StatusPartialContent:
	case http.StatusOK:
		return answer(1, "no ranges", content.Validator)
	default:
		return Point{State: NotAnswerable}
	}
	switch {
	case condition == nil:
	case condition.Status == http.StatusOK:
		return answer(1, "ranges", content.Validator, "If-Range heeded")
	case condition.Status == http.StatusPartialContent:
		return answer(1, "ranges", content.Validator, "ignored")
	}
	return Point{State: NotAnswerable}
}
