package redisclient_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/examples/fleet/bincache"
	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/examples/fleet/quota"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// port returns a loopback port that nothing listens on.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func connect(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// use takes the quota and the cache through a Redis.
func use(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for client.Set(ctx, "ready", 1, time.Minute).Err() != nil { // a Cluster agrees, Sentinel looks around
		if ctx.Err() != nil {
			t.Fatal(client.Set(t.Context(), "ready", 1, time.Minute).Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
	limiter, err := quota.New(client, "test", 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := limiter.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cache := bincache.New(client)
	values, keys := make(map[string][]byte), []string{"missing"}
	for i := range 50 {
		keys = append(keys, fmt.Sprint("key:", i))
		values[keys[i+1]] = []byte{byte(i)}
	}
	if err := cache.Set(ctx, values, time.Minute); err != nil {
		t.Fatal(err)
	}
	found, err := cache.Get(ctx, keys)
	if err != nil || len(found) != 50 || found["key:7"][0] != 7 {
		t.Errorf("%d values, %v", len(found), err)
	}
}

func TestPassword(t *testing.T) {
	server := redistest.Start(t)
	if err := redistest.Connect(t, server).ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	for password, refusal := range map[string]string{"": "the password is missing or wrong (NOAUTH)", "wrong": "the password is missing or wrong (WRONGPASS)", "right": ""} {
		o, err := redisclient.Options(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		o.Password = password
		client := redis.NewUniversalClient(o)
		defer client.Close()
		if err := client.Ping(t.Context()).Err(); redisclient.Refusal(err) != refusal || (err == nil) != (refusal == "") {
			t.Errorf("%q: %q (%v)", password, redisclient.Refusal(err), err)
		}
	}
	err := redistest.Unused(t).Ping(t.Context()).Err()
	if refusal := redisclient.Refusal(err); err == nil || refusal != "" {
		t.Errorf("nothing there: %q (%v)", refusal, err)
	}
}

// TestOwnCA speaks TLS with a server whose certificate only ca_file vouches for.
func TestOwnCA(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca, at := filepath.Join(dir, "cert.pem"), port(t)
	redistest.Start(t, "--tls-port", at, "--bind", "127.0.0.1", "--tls-cert-file", ca, "--tls-key-file", filepath.Join(dir, "key.pem"), "--tls-auth-clients", "no")

	use(t, connect(t, "rediss://127.0.0.1:"+at+"?ca_file="+ca))
	err = connect(t, "rediss://127.0.0.1:"+at).Ping(t.Context()).Err()
	if refusal := redisclient.Refusal(err); !strings.Contains(refusal, "ca_file names one") {
		t.Errorf("without the CA: %q (%v)", refusal, err)
	}
}

func TestCluster(t *testing.T) {
	var addrs []string
	var nodes []redis.UniversalClient
	for range 2 {
		at := port(t)
		s := redistest.Start(t, "--port", at, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", port(t), "--cluster-node-timeout", "2000")
		addrs = append(addrs, "127.0.0.1:"+at)
		nodes = append(nodes, redistest.Connect(t, s))
	}
	first := connect(t, "redis://"+addrs[0])
	ctx := t.Context()
	info := nodes[1].Do(ctx, "CONFIG", "GET", "cluster-port").Val()
	bus := fmt.Sprint(info.(map[any]any)["cluster-port"])
	_, at, _ := strings.Cut(addrs[1], ":")
	for _, err := range []error{
		nodes[0].Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 8191).Err(),
		nodes[1].Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 8192, 16383).Err(),
		nodes[1].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", 2).Err(),
		nodes[0].Do(ctx, "CLUSTER", "MEET", "127.0.0.1", at, bus).Err(),
		first.Ping(ctx).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster := connect(t, "redis://"+addrs[0]+"?addr="+addrs[1])
	use(t, cluster)
	for i, node := range nodes {
		if keys := node.DBSize(ctx).Val(); keys == 0 {
			t.Errorf("node %d has no key", i)
		}
	}
}

func TestSentinel(t *testing.T) {
	at := port(t)
	server := redistest.Start(t, "--port", at, "--bind", "127.0.0.1")
	if err := redistest.Connect(t, server).ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(conf, []byte("sentinel monitor m 127.0.0.1 "+at+" 1\nsentinel auth-pass m right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := port(t)
	redistest.StartSentinel(t, conf, sentinel)
	use(t, connect(t, "redis://:right@127.0.0.1:"+sentinel+"?master_name=m"))
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"", "http://:secret@host", "redis://:sec%ret@host", "redis://:secret@host?what=1", "redis://:secret@host?ca_file=x", "rediss://:secret@host?ca_file=/nonexistent"} {
		if _, err := redisclient.Options(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	o, err := redisclient.Options("rediss://u:p@a:1/0?addr=b:2&addr=c:3&master_name=m&sentinel_username=su&sentinel_password=sp")
	if err != nil || strings.Join(o.Addrs, " ") != "a:1 b:2 c:3" || o.MasterName != "m" || o.Username != "u" || o.Password != "p" ||
		o.SentinelUsername != "su" || o.SentinelPassword != "sp" || o.TLSConfig.ServerName != "" || !o.ContextTimeoutEnabled {
		t.Errorf("%+v, %v", o, err)
	}
}
