//go:build unix

package outside

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// Each records a refund, and answers with the status that the refund_id begins with: that of another
// service, or one about the response.
var passingOn = []framework{
	{"Express with axios", []string{"node", "-e", "require('express'); require('axios')"}, []string{"node", "testdata/express_axios_app.js", "PORT"}, nil},
	{"Fastify with axios", []string{"node", "-e", "require('fastify'); require('axios')"}, []string{"node", "testdata/fastify_axios_app.js", "PORT"}, nil},
	{"Rack", []string{"ruby", "-e", "require 'rack'; require 'webrick'"}, []string{"ruby", "testdata/rack_app.rb", "PORT"}, nil},
}

// TestPassedOn: a service that has recorded a refund gets it once, whatever it answers. No client can
// see that another 4xx than these is not the service's own.
func TestPassedOn(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, f := range passingOn {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t, nil).passesOn(400, 401, 403, 404, 406, 409, 416, 421, 422, 424, 425, 429, 499, 500, 502, 503, 504)
		})
	}
}

// TestRails: an action that has recorded a refund, and cannot write JSON, answers 406.
func TestRails(t *testing.T) {
	if os.Getenv("CI_RAILS") == "" {
		t.Skip("without CI_RAILS, as .ci/nightly has it")
	}
	rails := framework{"Rails", []string{"ruby", "-e", "require 'action_controller/railtie'; require 'webrick'"}, []string{"ruby", "testdata/rails_app.rb", "PORT"}, nil}
	rails.run(t, nil).passesOn(406)
}

// passesOn submits refunds that the service answers with the statuses, among others that it accepts.
func (r *running) passesOn(statuses ...int) {
	t := r.t
	t.Helper()
	client, err := refunds.NewClient("http://"+r.address, refunds.WithTokenSource(refunds.StaticToken("token")))
	if err != nil {
		t.Fatal(err)
	}
	want := func(status int, err error) {
		t.Helper()
		mayBeItsOwn := slices.Contains([]int{400, 401, 403, 404, 409, 422}, status)
		switch action := refunds.ActionOf(err); {
		case status == 201 && action != refunds.ActionDone, status != 201 && !mayBeItsOwn && action != refunds.ActionFindOut,
			mayBeItsOwn && (action == refunds.ActionDone || action == refunds.ActionResubmit):
			t.Errorf("%d: %v: %v", status, action, err)
		}
	}
	n := 0
	id := func(status int) string {
		n++
		return fmt.Sprintf("%d_%d", status, n)
	}
	// Failures in a row would be an outage.
	good := func(yield func(int) bool) {
		for range 4 {
			if !yield(201) {
				return
			}
		}
	}
	for _, status := range statuses {
		for one := range good {
			_, err := client.Submit(t.Context(), "acct_1", &refunds.Refund{RefundID: id(one)})
			want(one, err)
		}
		_, err := client.Submit(t.Context(), "acct_1", &refunds.Refund{RefundID: id(status)})
		want(status, err)
	}
	input := refunds.Items("acct_1", func(yield func(*refunds.Refund) bool) {
		for _, status := range slices.Concat(statuses, statuses) {
			for one := range good {
				if !yield(&refunds.Refund{RefundID: id(one)}) {
					return
				}
			}
			if !yield(&refunds.Refund{RefundID: id(status)}) {
				return
			}
		}
	})
	for s, err := range client.SubmitAll(t.Context(), input, refunds.BulkOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		var status int
		fmt.Sscanf(s.RefundID, "%d_", &status)
		want(status, s.Err)
	}
	recorded := r.recorded()
	for id, times := range recorded {
		if times != 1 {
			t.Errorf("%s was recorded %d times", id, times)
		}
	}
	if len(recorded) != n {
		t.Errorf("%d of %d recorded", len(recorded), n)
	}
}
