// Package redisclient connects to Redis in a way that a request path can depend
// on: every command ends by its context, and soon.
package redisclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// New returns a client of the Redis at a URL, which is of a form that [Options]
// takes. It connects when it is used.
func New(url string) (redis.UniversalClient, error) {
	o, err := Options(url)
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(o), nil
}

// Options returns go-redis' options for a URL, for what a URL cannot say, such as
// a certificate of the client's own: change them, and make the client with
// [redis.NewUniversalClient].
//
//	redis://user:password@host:6379/0             one Redis; rediss:// over TLS
//	unix:///run/redis/redis.sock                  one Redis
//	redis://:password@a:6379?addr=b:6379          a Cluster, by some of its nodes
//	redis://:password@a:26379?addr=b:26379&master_name=m&sentinel_password=p
//	                                              behind Sentinel
//	rediss://host:6379?ca_file=/etc/redis/ca.pem  with a CA of one's own
func Options(address string) (*redis.UniversalOptions, error) {
	// The errors of net/url and go-redis may quote a password.
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL of a Redis")
	}
	query := u.Query()
	take := func(name string) []string {
		values := query[name]
		query.Del(name)
		return values
	}
	last := func(name string) string {
		values := take(name)
		if len(values) == 0 {
			return ""
		}
		return values[len(values)-1]
	}
	o := &redis.UniversalOptions{
		Addrs:            take("addr"),
		MasterName:       last("master_name"),
		SentinelUsername: last("sentinel_username"),
		SentinelPassword: last("sentinel_password"),
	}
	ca := last("ca_file")
	u.RawQuery = query.Encode()
	one, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errors.New("not a URL of a Redis")
	}
	o.Addrs = append([]string{one.Addr}, o.Addrs...)
	o.Username, o.Password, o.DB = one.Username, one.Password, one.DB
	o.ClientName, o.PoolSize = one.ClientName, one.PoolSize
	if o.TLSConfig, err = tlsConfig(one.TLSConfig, ca); err != nil {
		return nil, err
	}
	// By default a deadline is ignored until a command has waited 5 seconds.
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = time.Second, time.Second
	o.DialTimeout, o.PoolTimeout = time.Second, time.Second
	// By default a refused connection is tried 20 times.
	o.DialerRetries, o.MaxRetries = 1, 1
	o.MinIdleConns = 1
	// Beyond Redis 7; tried in vain with each connection.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// tlsConfig has each node checked by its own name, and not by that of the first.
func tlsConfig(c *tls.Config, ca string) (*tls.Config, error) {
	if c == nil && ca != "" {
		return nil, errors.New("ca_file needs rediss://")
	}
	if c == nil {
		return nil, nil
	}
	c.ServerName = ""
	if ca == "" {
		return c, nil
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("ca_file holds no certificate")
	}
	return c, nil
}

// Refusal says why a Redis that is there cannot be used, in one word or two of its
// own such as WRONGPASS, and nothing when none is there.
func Refusal(err error) string {
	if said, ok := errors.AsType[redis.Error](err); ok {
		word := said.Error()
		for i, r := range word {
			if (r < 'A' || r > 'Z') && r != '_' {
				word = word[:i]
				break
			}
		}
		if word == "" {
			word = "an error"
		}
		switch word {
		case "WRONGPASS", "NOAUTH":
			return "the password is missing or wrong (" + word + ")"
		case "NOPERM":
			return "the user may not do this (" + word + ")"
		}
		return "it says " + word
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is of a CA that is not known here; ca_file names one"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS: use redis://"
	}
	return ""
}

// Silence keeps go-redis from writing addresses and connection failures to the
// standard error of the whole process. They reach the caller as errors anyway.
func Silence() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
