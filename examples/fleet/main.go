// Fleet compares ways to keep many replicas within one quota.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/examples/fleet/quota"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
	"github.com/carddata/carddata-go/examples/internal/target"
)

const usage = `usage: fleet [-quick] [-out DIR]

Runs replicas, each a process of its own, against a sandbox that sends 429
above its quota, and compares three limiters: each replica the whole quota, each
its part of it, and one quota shared through Redis. It takes some 20 seconds.

  -quick    takes some 5 seconds
  -out DIR  writes fleet.json and fleet.svg into DIR

REDIS_URL names the Redis: redis://, rediss:// or unix://, with addr=HOST:PORT for
the other nodes of a Cluster, with master_name for Sentinel, and with ca_file for a
CA of your own. Where none responds, the program starts a redis-server of its own.
`

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	if len(args) == 1 && args[0] == workerArgument {
		if err := work(ctx, os.Stdin, stdout); err != nil {
			return target.Fail(ctx, stderr, err)
		}
		return 0
	}
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "")
	out := flags.String("out", "", "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if flags.NArg() > 0 {
		return target.Fail(ctx, stderr, target.Usage("fleet: no arguments besides flags (-h helps)"))
	}
	length := trial{warmUp: time.Second, measured: 5 * time.Second}
	if *quick {
		length = trial{warmUp: 200 * time.Millisecond, measured: time.Second}
	}
	redisclient.Silence()
	if err := compare(ctx, length, *out, stdout, stderr, env); err != nil {
		return target.Fail(ctx, stderr, fmt.Errorf("fleet: %w", err))
	}
	return 0
}

func compare(ctx context.Context, length trial, out string, stdout, stderr io.Writer, env func(string) (string, bool)) error {
	address, closeRedis, err := openRedis(ctx, stderr, env)
	if err != nil {
		return err
	}
	defer closeRedis()
	service, err := startService()
	if err != nil {
		return err
	}
	defer service.close()
	fmt.Fprintf(stderr, "sandbox %s with a quota of %d requests a second\n", service.url, quotaLimit)
	remove, err := prime(ctx, address)
	if err != nil {
		return err
	}
	defer remove()
	r := &report{Quota: quotaLimit, Replicas: callers}
	for i, s := range strategies {
		fmt.Fprintf(stderr, "%d replicas, %s\n", len(callers), s.Name)
		result, err := try(ctx, i, length, service, address)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, result)
	}
	if err := r.print(stdout); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	return r.write(out, stdout)
}

// prime uses the quota for the first time, which takes a second, so that no
// strategy is measured by it. Remove leaves Redis as it was.
func prime(ctx context.Context, address string) (remove func(), err error) {
	client, err := redisclient.New(address)
	if err != nil {
		return nil, err
	}
	limiter, err := quota.New(client, quotaName, quotaLimit, limiterBurst)
	if err == nil {
		err = limiter.Wait(ctx)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return func() {
		client.Del(context.WithoutCancel(ctx), "quota:"+quotaName)
		client.Close()
	}, nil
}

func (r *report) write(dir string, stdout io.Writer) error {
	text, err := r.json()
	if err != nil {
		return err
	}
	var chart bytes.Buffer
	if err := r.draw(&chart); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"fleet.json": text, "fleet.svg": chart.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "written to %s: fleet.json, fleet.svg\n", target.Path(dir))
	return err
}
