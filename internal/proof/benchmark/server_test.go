package benchmark

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	distance     = 30 * time.Millisecond // a round trip to the distant address
	downloadSize = 256 << 20
)

// A server runs in a process of its own: its work does not count as the client's.
type server struct {
	Plain   string // URL without TLS
	TLS     string
	Distant string // TLS, a round trip of distance away

	stdin io.Closer
	cmd   *exec.Cmd
}

func startServer() (*server, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serves+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{stdin: stdin, cmd: cmd}
	if err := json.NewDecoder(stdout).Decode(s); err != nil {
		s.close()
		return nil, fmt.Errorf("server: %w", err)
	}
	return s, nil
}

func (s *server) close() {
	s.stdin.Close()
	s.cmd.Wait()
}

// serve serves until standard input ends.
func serve() error {
	mux := http.NewServeMux()
	mux.HandleFunc("/bins/multiple", tinyLookup)
	mux.HandleFunc("/v1/bins/multiple", tinyLookup) // stripe-go
	mux.HandleFunc("/v1/{account}/refunds", acceptRefund)
	mux.HandleFunc("/updater/", sendResult)
	plain := httptest.NewServer(mux)
	defer plain.Close()
	encrypted := httptest.NewUnstartedServer(mux)
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that a client gave up
	encrypted.StartTLS()
	defer encrypted.Close()
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go relay(away, encrypted.Listener.Addr().String())
	err = json.NewEncoder(os.Stdout).Encode(server{Plain: plain.URL, TLS: encrypted.URL, Distant: "https://" + away.Addr().String()})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func tinyLookup(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"cards":[{"bin":"400000","data":null,"error":"unknown"}]}`)
}

func acceptRefund(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"status":"accepted"}`)
}

func sendResult(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(downloadSize))
	piece := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	for sent := 0; sent < downloadSize; sent += len(piece) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// relay passes connections on to a server that is distance away: the connection takes one
// round trip, and each byte half of one.
func relay(from net.Listener, to string) {
	for {
		here, err := from.Accept()
		if err != nil {
			return
		}
		go func() {
			defer here.Close()
			time.Sleep(distance)
			there, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer there.Close()
			go delay(there, here)
			delay(here, there)
		}()
	}
}

func delay(to, from net.Conn) {
	type piece struct {
		due   time.Time
		bytes []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{time.Now().Add(distance / 2), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	to.Close()
	for range pieces { // so that the reader ends
	}
}
