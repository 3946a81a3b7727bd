package main

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/updater"
)

func TestTerminal(t *testing.T) {
	screen, terminal := openTerminal(t)
	cmd := program.Command(t, nil, binary)
	cmd.Stdout = terminal
	wait := program.Start(t, cmd)
	terminal.Close()
	// Reading a terminal that its last program has left ends with EIO.
	shown, _ := io.ReadAll(screen)
	got := wait()
	got.Stdout = strings.ReplaceAll(string(shown), "\r\n", "\n")
	const want = `old_number,new_number,new_expiry,result
411111******1111,424242******4242,2031-07,number_changed
555555******4444,,2030-11,expiry_changed
378282*****0005,,,unchanged
601111******1117,,,account_closed
`
	if got.Code != 0 || got.Stdout != want {
		t.Errorf("%+v", got)
	}
	got.CheckMasked(t)
}

func TestBar(t *testing.T) {
	screen, terminal := openTerminal(t)
	p := newProgress(terminal, 1)
	stop := p.show()
	p.of(0)(updater.FileProgress{Bytes: 0, Total: 64 << 20})
	p.of(0)(updater.FileProgress{Bytes: 17 << 20, Total: 64 << 20, Resumes: 7})
	line := regexp.MustCompile(` 26% \[=+ +\] 17 MiB of 64 MiB, .*, resumed 7×`)
	shown, piece := "", make([]byte, 4096)
	for reads := 0; !line.MatchString(shown); reads++ {
		n, err := screen.Read(piece) // the bar is drawn every 200 ms
		if err != nil || reads == 50 {
			t.Fatalf("%v, shown: %q", err, shown)
		}
		shown += string(piece[:n])
	}
	stop()
	terminal.Close()
	rest, _ := io.ReadAll(screen)
	if !strings.HasSuffix(string(rest), "\r\x1b[J") {
		t.Errorf("the bar stays behind: %q", rest)
	}
}

func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	var locked, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(argument)))
		if errno != 0 {
			t.Skipf("no pseudo-terminal here: %v", errno)
		}
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	return screen, terminal
}
