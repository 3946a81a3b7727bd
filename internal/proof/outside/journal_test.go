package outside

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// A journal is a service on bare TCP. It writes a refund down when it has read its last byte,
// before it responds. So a response can be wrong, and the journal cannot.
type journal struct {
	address string
	behave  func() behavior

	mu      sync.Mutex
	refunds map[string]int // times received, by refund_id
}

// A behavior is what a journal does with one request.
type behavior int

const (
	accepts        behavior = iota
	hangsUp                 // after it has read the request
	hangsUpAtOnce           // before it reads the body
	fails                   // with a 503, and keeps the refund
	losesHalfOfOne          // response: the connection ends in the middle of it
)

func newJournal(t *testing.T, behave func() behavior) *journal {
	t.Helper()
	j := &journal{behave: behave, refunds: map[string]int{}}
	j.address = testkit.Listen(t, j.serve)
	return j
}

func (j *journal) serve(c net.Conn) {
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		does := j.behave()
		if does == hangsUpAtOnce {
			c.(*net.TCPConn).SetLinger(0)
			return
		}
		var body struct {
			RefundID string `json:"refund_id"`
		}
		text, err := io.ReadAll(req.Body)
		if err != nil || json.Unmarshal(text, &body) != nil {
			return
		}
		j.mu.Lock()
		j.refunds[body.RefundID]++
		j.mu.Unlock()
		switch does {
		case accepts:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		case fails:
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		case losesHalfOfOne:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
			return
		case hangsUp:
			return
		}
	}
}

// usually accepts, and does everything else now and then.
func usually() func() behavior {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(3, 4))
	return func() behavior {
		mu.Lock()
		defer mu.Unlock()
		if n := chance.IntN(100); n < int(losesHalfOfOne) {
			return behavior(1 + n)
		}
		return accepts
	}
}

func always() behavior { return accepts }

// received is how often the journals have a refund.
func received(id string, journals ...*journal) (n int) {
	for _, j := range journals {
		j.mu.Lock()
		n += j.refunds[id]
		j.mu.Unlock()
	}
	return n
}
