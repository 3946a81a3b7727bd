package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ProfileVersion is the version of the profiles that this package reads.
const ProfileVersion = 1

// A Profile says how one service decides what the interface leaves open. It holds
// no secret, no identifier and no card number. A point that it does not have is
// not known, and is decided as by a sandbox without a profile.
//
//	{"version": 1, "points": {
//	  "lookup.order": ["changed"],
//	  "lookup.echo": ["prefix 6"],
//	  "download.missing": ["404 job_not_found"]
//	}}
//
// The points and what they may be are:
//
//	lookup.order         kept, or changed
//	lookup.items         one per card, fewer, or more
//	lookup.duplicates    kept, or merged
//	lookup.echo          whole, prefix N, or absent
//	lookup.unknown       error item, null data, left out, or status N
//	lookup.nulls         none, or the members of items with data that are null somewhere
//	lookup.enhanced      no difference, or the members that differ; then
//	                     default like true, like false, or like neither
//	lookup.bounds        0: N, 51: N
//	lookup.unauthorized  N, the status of a token that ends in "-broken"
//	lookup.error         documented object, message, code, other, or empty
//	download.missing     N, or N and the code
//	download.pending     the same, of [PendingJobID]
//	download.content     csv, ndjson, json, or other; then length announced, or no length
//	download.resume      ranges, or no ranges; strong validator, date, or no validator;
//	                     If-Range heeded, or ignored
//	refund.required      none, or the members
//	refund.duplicate     refused N, same response, or another response
//	refund.response      the status, the media type, and the JSON with the name of its type
//	                     in place of each value; without a body the status alone
//	refund.credential    accepted without, or refused N
//	service.request_id   none, or the header
//	service.quota        none, or the headers
//	service.idle         closed after N s, or open after N s
//
// Members are named as the interface names them: bin, data and error of an item,
// and those of a card without the words data.card, such as bank.phone.
type Profile struct {
	Version int                 `json:"version"`
	Points  map[string][]string `json:"points"`
}

// PendingJobID is a job that a sandbox with a profile has, and whose result is
// not ready.
const PendingJobID = "43"

// brokenToken is how a token ends that a sandbox with a profile refuses.
const brokenToken = "-broken"

// ParseProfile reads a profile, and refuses points and words that it does not
// know, so that a misspelled one does not pass unnoticed.
func ParseProfile(data []byte) (*Profile, error) {
	var p Profile
	if err := decode(data, &p); err != nil {
		return nil, errors.New("profile: not the JSON of a profile")
	}
	if p.Version != ProfileVersion {
		return nil, fmt.Errorf("profile: version %d; only %d is known", p.Version, ProfileVersion)
	}
	if _, err := p.habits(); err != nil {
		return nil, err
	}
	return &p, nil
}

// Habits are a profile as the sandbox follows it. The zero value of each is that
// of a sandbox without a profile.
type habits struct {
	order, items, duplicates string
	echo                     string
	echoDigits               int
	unknown                  string
	unknownStatus            int
	nulls                    []string // nil: as the data set has them
	enhanced                 []string // nil: as the data set has them
	enhancedDefault          string   // "true", "false" or "neither"
	noCards, manyCards       int
	unauthorized             int
	errorForm                []string
	missing, pending         status
	content                  string
	noLength                 bool
	ranges, validator        string
	ignoreIfRange            bool
	required                 []string
	duplicate                string
	duplicateStatus          int
	receipt                  *receipt
	credential               int
	requestID                string
	quota                    []string
	idle                     int
}

type status struct {
	status int
	code   string
}

type receipt struct {
	status    int
	mediaType string
	shape     json.RawMessage
}

func (p *Profile) habits() (*habits, error) {
	h := &habits{enhancedDefault: "false"}
	for point, words := range p.Points {
		read, known := points[point]
		if !known {
			return nil, fmt.Errorf("profile: %q is not a point", printable(point))
		}
		if len(words) == 0 || !read(h, words) {
			return nil, fmt.Errorf("profile: %s cannot be read: %q", point, printable(strings.Join(words, ", ")))
		}
	}
	return h, nil
}

// points reads what is said about each point, and tells whether it could.
var points = map[string]func(h *habits, words []string) bool{
	"lookup.order": func(h *habits, words []string) bool {
		return choice(&h.order, words, "kept", "changed")
	},
	"lookup.items": func(h *habits, words []string) bool {
		return choice(&h.items, words, "one per card", "fewer", "more")
	},
	"lookup.duplicates": func(h *habits, words []string) bool {
		return choice(&h.duplicates, words, "kept", "merged")
	},
	"lookup.echo": func(h *habits, words []string) bool {
		if numbered(words, "prefix ", &h.echoDigits) {
			h.echo = "prefix"
			return h.echoDigits > 0
		}
		return choice(&h.echo, words, "whole", "absent")
	},
	"lookup.unknown": func(h *habits, words []string) bool {
		if numbered(words, "status ", &h.unknownStatus) {
			h.unknown = "status"
			return isStatus(h.unknownStatus)
		}
		return choice(&h.unknown, words, "error item", "null data", "left out")
	},
	"lookup.nulls": func(h *habits, words []string) bool {
		return names(&h.nulls, words, "none")
	},
	"lookup.enhanced": func(h *habits, words []string) bool {
		last := strings.TrimPrefix(words[len(words)-1], "default ")
		if value, ok := strings.CutPrefix(last, "like "); ok {
			words = words[:len(words)-1]
			if !slices.Contains([]string{"true", "false", "neither"}, value) {
				return false
			}
			h.enhancedDefault = value
		}
		return names(&h.enhanced, words, "no difference")
	},
	"lookup.bounds": func(h *habits, words []string) bool {
		n, _ := fmt.Sscanf(strings.Join(words, ", "), "0: %d, 51: %d", &h.noCards, &h.manyCards)
		return n == 2 && isStatus(h.noCards) && isStatus(h.manyCards)
	},
	"lookup.unauthorized": func(h *habits, words []string) bool {
		return numbered(words, "", &h.unauthorized) && isStatus(h.unauthorized)
	},
	"lookup.error": func(h *habits, words []string) bool {
		h.errorForm = words
		return !slices.ContainsFunc(words, func(word string) bool {
			return !slices.Contains([]string{"documented object", "message", "code", "other", "empty"}, word)
		})
	},
	"download.missing": func(h *habits, words []string) bool { return h.missing.read(words) },
	"download.pending": func(h *habits, words []string) bool { return h.pending.read(words) },
	"download.content": func(h *habits, words []string) bool {
		for _, word := range words {
			switch word {
			case "csv", "ndjson", "json", "other":
				h.content = word
			case "length announced", "no length":
				h.noLength = word == "no length"
			default:
				return false
			}
		}
		return true
	},
	"download.resume": func(h *habits, words []string) bool {
		for _, word := range words {
			switch word {
			case "ranges", "no ranges":
				h.ranges = word
			case "strong validator", "date", "no validator":
				h.validator = word
			case "If-Range heeded", "If-Range ignored", "ignored":
				h.ignoreIfRange = word != "If-Range heeded"
			default:
				return false
			}
		}
		return true
	},
	"refund.required": func(h *habits, words []string) bool {
		return names(&h.required, words, "none")
	},
	"refund.duplicate": func(h *habits, words []string) bool {
		if numbered(words, "refused ", &h.duplicateStatus) {
			h.duplicate = "refused"
			return isStatus(h.duplicateStatus)
		}
		return choice(&h.duplicate, words, "same response", "another response")
	},
	"refund.response": func(h *habits, words []string) bool {
		r := &receipt{}
		if !numbered(words[:1], "", &r.status) || !isStatus(r.status) || len(words) > 3 {
			return false
		}
		if len(words) > 1 {
			r.mediaType = words[1]
		}
		if len(words) > 2 && words[2] != "" {
			r.shape = json.RawMessage(words[2])
		}
		h.receipt = r
		return (r.shape == nil || json.Valid(r.shape)) && !strings.ContainsAny(r.mediaType, "\r\n")
	},
	"refund.credential": func(h *habits, words []string) bool {
		if numbered(words, "refused ", &h.credential) {
			return isStatus(h.credential)
		}
		return slices.Equal(words, []string{"accepted without"})
	},
	"service.request_id": func(h *habits, words []string) bool {
		var headers []string
		if !names(&headers, words, "none") || len(headers) > 1 {
			return false
		}
		h.requestID = strings.Join(headers, "")
		return true
	},
	"service.quota": func(h *habits, words []string) bool {
		return names(&h.quota, words, "none")
	},
	"service.idle": func(h *habits, words []string) bool {
		seconds := 0
		word, ok := strings.CutSuffix(strings.Join(words, ""), " s")
		if ok && numbered([]string{word}, "closed after ", &seconds) {
			h.idle = seconds
			return seconds > 0
		}
		return ok && numbered([]string{word}, "open after ", &seconds)
	},
}

func (s *status) read(words []string) bool {
	number, code, _ := strings.Cut(words[0], " ")
	if len(words) != 1 || !numbered([]string{number}, "", &s.status) || !isStatus(s.status) {
		return false
	}
	s.code = code
	return true
}

func choice(to *string, words []string, known ...string) bool {
	*to = words[0]
	return len(words) == 1 && slices.Contains(known, words[0])
}

var harmless = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// names reads names of members or headers, or the word for none of them, which
// leaves an empty list.
func names(to *[]string, words []string, none string) bool {
	*to = []string{}
	if slices.Equal(words, []string{none}) {
		return true
	}
	*to = words
	return !slices.ContainsFunc(words, func(word string) bool { return !harmless.MatchString(word) })
}

func numbered(words []string, prefix string, to *int) bool {
	digits, ok := strings.CutPrefix(words[0], prefix)
	if !ok || len(words) != 1 {
		return false
	}
	n, err := strconv.Atoi(digits)
	*to = n
	return err == nil && n >= 0
}

func isStatus(n int) bool { return n >= http.StatusOK && n <= 599 }

// printable keeps a message short and on one line.
func printable(s string) string {
	const longest = 80
	return s[:min(len(s), longest)]
}
