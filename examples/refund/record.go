package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func readRecord(ctx context.Context, args []string, stdin io.Reader, stderr io.Writer, live bool) (*refunds.Refund, error) {
	switch {
	case len(args) > 1:
		return nil, target.Usage("refund: one file at most, and flags before it (-h helps)")
	case len(args) == 1:
		file, err := os.Open(args[0])
		if err != nil {
			return nil, target.Usage("refund: %v", err)
		}
		defer file.Close()
		stdin = file
	case !target.IsTerminal(stdin):
	case live:
		return nil, target.Usage("refund: no record given, neither as a file nor on standard input (-h helps)")
	default:
		fmt.Fprintln(stderr, "no record given: submitting a demo record")
		return demo(), nil
	}
	input, err := target.Read(ctx, stdin)
	if err != nil {
		return nil, err
	}
	return parse(input)
}

// parse is strict, because a misspelt member would be left out of the refund in
// silence.
func parse(input []byte) (*refunds.Refund, error) {
	record := new(refunds.Refund)
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	decoder.UseNumber() // a float64 would round the numbers in metadata
	err := decoder.Decode(record)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, target.Usage("refund: %s must be %s", cmp.Or(mismatch.Field, "the record"), wanted(mismatch.Type))
	}
	if err == io.EOF {
		return nil, target.Usage("refund: the record is empty")
	}
	if err != nil {
		return nil, target.Usage("refund: the record cannot be read: %v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, target.Usage("refund: more than one record, or text behind it")
	}
	return record, nil
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int64:
		return "an integer of at most 64 bits, without fraction, exponent and quotes"
	case reflect.String:
		return "a string"
	}
	return "an object"
}

func demo() *refunds.Refund {
	return &refunds.Refund{
		RefundID:      "demo-1",
		Amount:        new(int64(10150)),
		Currency:      "USD",
		Created:       time.Now().UTC().Format(time.RFC3339),
		TransactionID: "tx-demo-1",
		SVCCodes:      refunds.SVCCodes{SVCRefundStatus: "amount_too_high"},
	}
}

// arrange makes the sandbox misbehave.
func arrange(service *target.Target, fault string) error {
	faults := map[string]sandbox.Fault{
		"drop-before": {DropBefore: true},
		"drop-after":  {DropAfter: true},
		"503":         {Status: 503},
		"429":         {Status: 429, RetryAfter: 2 * time.Minute}, // too long for the client to wait
	}
	f, known := faults[fault]
	switch {
	case fault == "":
	case service.Live():
		return target.Usage("refund: -fault is for the sandbox only")
	case fault == "refuse":
		service.Close()
	case known:
		service.Engine.Script(sandbox.Refunds, f)
	default:
		return target.Usage("refund: no such fault (-h helps)")
	}
	return nil
}
