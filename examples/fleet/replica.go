package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// workerArgument has the program be a replica.
const workerArgument = "-replica"

// A replica is a process of its own.
type replica struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr bytes.Buffer
}

// startReplica returns when the replica is ready.
func startReplica(ctx context.Context, t task) (*replica, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &replica{cmd: exec.CommandContext(ctx, program, workerArgument)}
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = json.NewDecoder(out)
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	var ready string
	if err := errors.Join(json.NewEncoder(r.in).Encode(t), r.out.Decode(&ready)); err != nil {
		return nil, r.failed(err)
	}
	return r, nil
}

func (r *replica) tell(signal string) error { return json.NewEncoder(r.in).Encode(signal) }

// finish returns what the replica did, and ends it.
func (r *replica) finish() (*outcome, error) {
	var o outcome
	if err := r.out.Decode(&o); err != nil {
		return nil, r.failed(err)
	}
	r.in.Close()
	if err := r.cmd.Wait(); err != nil {
		return nil, r.failed(err)
	}
	return &o, nil
}

func (r *replica) failed(err error) error {
	r.kill()
	return fmt.Errorf("a replica failed: %w\n%s", err, &r.stderr)
}

func (r *replica) kill() {
	r.in.Close()
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

// A trial is how long a strategy is tried.
type trial struct {
	warmUp, measured time.Duration
}

// callers are the goroutines of each replica: the load of a fleet is never even.
var callers = []int{40, 2, 1, 1}

// try runs a fleet with a strategy.
func try(ctx context.Context, number int, length trial, s *service, redis string) (*result, error) {
	var fleet []*replica
	defer func() {
		for _, r := range fleet {
			r.kill()
		}
	}()
	for _, n := range callers {
		r, err := startReplica(ctx, task{Strategy: number, Replicas: len(callers), Callers: n, Service: s.url, Redis: redis})
		if err != nil {
			return nil, err
		}
		fleet = append(fleet, r)
	}
	tell := func(signal string) error {
		var errs []error
		for _, r := range fleet {
			errs = append(errs, r.tell(signal))
		}
		return errors.Join(errs...)
	}
	s.reset()
	if err := tell("begin"); err != nil {
		return nil, err
	}
	if err := pause(ctx, length.warmUp); err != nil {
		return nil, err
	}
	began, before := time.Now(), s.counted()
	if err := pause(ctx, length.measured); err != nil {
		return nil, err
	}
	after, took := s.counted(), time.Since(began)
	if err := tell("end"); err != nil {
		return nil, err
	}
	var outcomes []*outcome
	for _, r := range fleet {
		o, err := r.finish()
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	fleet = nil
	return newResult(strategies[number].Name, after.since(before), took, outcomes), nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
