//go:build unix

package outside

import (
	"bytes"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A gateway is a program that others wrote, with its defaults, before a service. In its
// configuration and its arguments, FRONT is its address, BACK the service's, and DIR a directory of
// its own.
type gateway struct {
	program, config string
	args            []string
}

var gateways = map[string]gateway{
	"Caddy": {"caddy", "{\n admin off\n auto_https off\n}\nhttp://FRONT {\n encode gzip\n reverse_proxy BACK\n}\n",
		[]string{"run", "--adapter", "caddyfile", "--config", "DIR/config"}},
	"Apache": {"apache2", `ServerRoot DIR
PidFile DIR/pid
Listen FRONT
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
ErrorLog DIR/errors
ServerName gateway.test
User nobody
Group nogroup
AddOutputFilterByType DEFLATE text/csv application/json text/html text/plain
ProxyPass / http://BACK/
`, []string{"-f", "DIR/config", "-DFOREGROUND"}},
	"Varnish": {"varnishd", "vcl 4.1;\nbackend default { .host = \"BACK_HOST\"; .port = \"BACK_PORT\"; }\n",
		[]string{"-j", "none", "-F", "-a", "FRONT", "-f", "DIR/config", "-n", "DIR/work", "-s", "malloc,64m"}},
	"Squid": {"squid", squid + "http_access allow all\n", []string{"-N", "-f", "DIR/config"}},
	"Squid with a login": {"squid", squid + `auth_param basic program /usr/lib/squid/basic_fake_auth
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
`, []string{"-N", "-f", "DIR/config"}},
}

const squid = "http_port FRONT\nacl SSL_ports port 1-65535\ncache deny all\npid_filename DIR/pid\naccess_log none\ncache_log DIR/log\ncache_effective_user nobody\n"

// start starts the gateway, and returns its address.
func (g gateway) start(t *testing.T, back string) (front string) {
	t.Helper()
	path := installed(t, g.program)
	dir, front := proxyDir(t), freeAddress(t)
	host, port, _ := net.SplitHostPort(back)
	fill := strings.NewReplacer("FRONT", front, "BACK_HOST", host, "BACK_PORT", port, "BACK", back, "DIR", dir).Replace
	// Some give up their rights, and still read and write here.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(fill(g.config)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := make([]string, len(g.args))
	for i, arg := range g.args {
		args[i] = fill(arg)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); <-ended })
	listens(t, g.program, "tcp", front, ended)
	return front
}

// TestGateways: through each gateway and no fault, every word is right, and nothing pauses.
func TestGateways(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	content, _ := contents()
	for _, name := range []string{"Caddy", "Apache", "Varnish"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := frameworks[0].run(t, content)
			service.meet("http://"+gateways[name].start(t, service.address), content)
		})
	}
	t.Run("Squid", func(t *testing.T) {
		t.Parallel()
		service := frameworks[0].run(t, content)
		proxy := gateways["Squid"].start(t, service.address)
		service.meet("http://"+service.address, content, through(proxy, nil))
	})
	t.Run("Squid with a login, to TLS", func(t *testing.T) {
		t.Parallel()
		service := frameworks[0].run(t, content)
		secure := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: service.address}))
		t.Cleanup(secure.Close)
		trusted := options.WithTLSConfig(&tls.Config{RootCAs: rootsOf(secure.Certificate())})
		proxy := gateways["Squid with a login"].start(t, secure.Listener.Addr().String())
		client, err := refunds.NewClient(secure.URL, options.For[refunds.Option]([]options.Option{trusted, through(proxy, nil)})...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Submit(t.Context(), "acct_1", &refunds.Refund{RefundID: "ok"}); refunds.ActionOf(err) != refunds.ActionFixSetup || len(service.recorded()) != 0 {
			t.Errorf("without a login: %v", err)
		}
		service.meet(secure.URL, content, trusted, through(proxy, url.UserPassword("user", "user")))
	})
}

func through(proxy string, user *url.Userinfo) options.Option {
	return options.WithProxy(http.ProxyURL(&url.URL{Scheme: "http", Host: proxy, User: user}))
}

func rootsOf(certificate *x509.Certificate) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return roots
}

// TestStorageWithSignedURLs: a service redirects downloads to a storage, whose addresses are signed
// and expire within a second. Whatever is cut, the file is whole: a resumed download gets a new
// address.
func TestStorageWithSignedURLs(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const secret = "shared"
	installed(t, "nginx")
	content, _ := contents()
	dir, storage := proxyDir(t), freeAddress(t)
	for name, text := range map[string][]byte{"result.csv": content} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	key, err := x509.MarshalPKCS8PrivateKey(certified.TLS.Certificates[0].PrivateKey)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "certificate"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o644)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	start(t, filepath.Join(dir, "socket"), fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  server { listen unix:%[1]s/socket; }
  server {
    listen %[2]s ssl; ssl_certificate %[1]s/certificate; ssl_certificate_key %[1]s/key; root %[1]s;
    location / {
      secure_link $arg_sig,$arg_until;
      secure_link_md5 "$secure_link_expires$uri %[3]s";
      if ($secure_link = "") { return 403; }
      if ($secure_link = "0") { return 410; }
    }
  }
}
`, dir, storage, secret), "nginx", "-p", dir, "-c")

	var cuts, signed atomic.Int64
	front := cutting(t, storage, 0.7, int64(len(content)), func() {
		cuts.Add(1)
		time.Sleep(1100 * time.Millisecond) // the address expires
	})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed.Add(1)
		until := strconv.FormatInt(time.Now().Unix()+1, 10)
		sum := md5.Sum([]byte(until + "/result.csv " + secret))
		http.Redirect(w, r, fmt.Sprintf("https://%s/result.csv?sig=%s&until=%s", front, base64.RawURLEncoding.EncodeToString(sum[:]), until), http.StatusFound)
	}))
	defer service.Close()
	for range 3 {
		path := filepath.Join(t.TempDir(), "result.csv")
		client := downloads(t, service.URL, updater.WithRedirectHosts(front), updater.WithTLSConfig(&tls.Config{RootCAs: rootsOf(certified.Certificate())}))
		if _, err := client.DownloadFile(t.Context(), "42", path, updater.FileOptions{}); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, content) {
			t.Errorf("%d bytes of %d", len(got), len(content))
		}
	}
	if cuts.Load() == 0 || signed.Load() <= 3 {
		t.Errorf("%d cuts, %d signed addresses", cuts.Load(), signed.Load())
	}
}
