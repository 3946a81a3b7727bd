package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		var out strings.Builder
		p := newProgress(&out, 2)
		stop := p.show()
		one, two := p.of(0), p.of(1)
		time.Sleep(time.Second)
		one(updater.FileProgress{Bytes: 10 * mib, Total: 40 * mib}) // kept by an earlier run
		time.Sleep(4*time.Second + time.Millisecond)
		one(updater.FileProgress{Bytes: 30 * mib, Total: 40 * mib, Resumes: 2})
		time.Sleep(2 * time.Second)
		two(updater.FileProgress{Bytes: 0, Total: 20 * mib})
		two(updater.FileProgress{Bytes: 10 * mib, Total: 20 * mib, Resumes: 1})
		p.finish(0)
		time.Sleep(3 * time.Second)
		if got, want := p.now().amount(), "40 MiB of 60 MiB"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		stop()
		const want = "10 MiB, 0 of 2 files\n40 MiB of 60 MiB, 3.3 MiB/s, 6s left, resumed 3×, 1 of 2 files\n"
		if out.String() != want {
			t.Errorf("shown:\n%swant:\n%s", &out, want)
		}
	})
}

func TestProgressOfUnknownSize(t *testing.T) {
	p := newProgress(io.Discard, 1)
	p.of(0)(updater.FileProgress{Bytes: 512, Total: -1})
	if got := strings.Join(p.now().facts(), ", "); got != "512 B" || p.now().share() != -1 {
		t.Errorf("%s", got)
	}
}
