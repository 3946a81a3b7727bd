package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	eventPause = 50 * time.Millisecond // in which changes gather
	heartbeat  = 15 * time.Second
	sendLimit  = 10 * time.Second // for a reader that stopped reading
)

// events sends all requests as the event "snapshot" and then those that are new
// or changed as the event "update". A slow reader misses steps in between, and
// nothing is queued for it.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	setHeader(w, "text/event-stream")
	control := http.NewResponseController(w)
	event, last := "snapshot", 0
	for {
		list, change, changed := c.since(last)
		last = change
		data, err := json.Marshal(list)
		if err != nil || !send(w, control, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, data)) {
			return
		}
		event = "update"
		for waiting := true; waiting; {
			select {
			case <-changed:
				waiting = false
			case <-time.After(heartbeat):
				if !send(w, control, []byte(":\n\n")) {
					return
				}
			case <-r.Context().Done():
				return
			}
		}
		select {
		case <-time.After(eventPause):
		case <-r.Context().Done():
			return
		}
	}
}

func send(w http.ResponseWriter, control *http.ResponseController, data []byte) bool {
	control.SetWriteDeadline(time.Now().Add(sendLimit))
	_, err := w.Write(data)
	return err == nil && control.Flush() == nil
}
