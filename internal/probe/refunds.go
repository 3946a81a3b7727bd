package probe

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

func refundPoints(seen facts) []Point {
	return []Point{requiredPoint(seen), duplicatePoint(seen), responsePoint(seen), credentialPoint(seen)}
}

// namedIn are the refund members that the body of a refusal names. Some are also words
// that errors are made of: those count in quotes, behind a dot or a slash, or where they
// are said to be missing, and never as the body's own members.
func namedIn(body []byte) (names []string) {
	text := strings.ReplaceAll(strings.ToLower(string(body)), "_", "")
	for _, m := range refundMembers {
		word := strings.ReplaceAll(m.name[strings.LastIndexByte(m.name, '.')+1:], "_", "")
		pattern := `(^|[^a-z0-9])` + word + `($|[^a-z0-9])`
		if slices.Contains([]string{"created", "network", "type", "bin", "status", "reason", "description", "metadata"}, word) {
			pattern = `[./\[]` + word + `($|[^a-z0-9])|['"\x60]` + word + `(['\x60]|\\"|"\s*[^:\s])|[^a-z0-9]` +
				word + `.? (is |must be )?(missing|required)|(missing|required)( [a-z]+)?:? ` + word + `($|[^a-z0-9])`
		}
		if regexp.MustCompile(pattern).MatchString(text) {
			names = append(names, m.name)
		}
	}
	return names
}

// named are the members that the refusals of minimal refunds named.
func named(seen facts) (names []string) {
	for id, fact := range seen {
		if strings.HasPrefix(id, "refund-minimal-") {
			names = append(names, fact.Named...)
		}
	}
	return unique(names)
}

// requiredPoint is certain only if the members that were named suffice.
func requiredPoint(seen facts) Point {
	for n := 1; n <= minimalRefunds; n++ {
		if fact := seen[fmt.Sprintf("refund-minimal-%d", n)]; fact != nil && fact.Status/100 == 2 {
			return answer(n, orNone(named(seen))...)
		}
	}
	return Point{State: NotAnswerable}
}

func duplicatePoint(seen facts) Point {
	first, second := seen["refund-full"], seen["refund-duplicate"]
	switch {
	case !first.said() || !second.said() || first.Status/100 != 2:
		return Point{State: NotAnswerable}
	case second.Status/100 == 2 && second.Status == first.Status && second.Body == first.Body:
		return answer(1, "same response")
	case second.Status/100 == 2:
		return answer(1, "another response")
	case second.Status/100 == 4:
		return answer(1, fmt.Sprintf("refused %d", second.Status))
	}
	return Point{State: NotAnswerable}
}

func responsePoint(seen facts) Point {
	fact := seen["refund-full"]
	if !fact.said() || fact.Status/100 != 2 {
		return Point{State: NotAnswerable}
	}
	words := []string{fmt.Sprint(fact.Status), fact.MediaType, fact.Shape, ""}
	return answer(1, words[:slices.Index(words, "")]...) // what a response lacks ends the list
}

func credentialPoint(seen facts) Point {
	t := tally{}
	for id, fact := range seen {
		switch {
		case !strings.HasPrefix(id, "refund-"):
		case fact.Status/100 == 2:
			t["accepted without"]++
		case fact.Status == http.StatusUnauthorized || fact.Status == http.StatusForbidden:
			t[fmt.Sprintf("refused %d", fact.Status)]++
		}
	}
	return t.point()
}
