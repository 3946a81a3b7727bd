package faults

import (
	"io"
	"time"

	"github.com/carddata/carddata-go/updater"
)

// downloads are calls of Download by several callers, each of a job of its own.
type downloads []downloadCaller

type downloadCaller struct {
	patience
	reads int // bytes at a time
}

func drawDownloads(c chance, callers int) workload {
	list := make(downloads, callers)
	for i := range list {
		list[i] = downloadCaller{drawPatience(c), pick(c, 100, 4<<10, 64<<10)}
		// A download without a deadline lasts as long as the service sends.
		if list[i].deadline == 0 {
			list[i].deadline = 10 * time.Minute
		}
	}
	return list
}

func (d downloads) play(w *world) {
	client := w.downloadClient()
	together(d, func(i int, caller downloadCaller) { caller.call(w, client, name("download", i), name("job", i)) })
}

func (d downloadCaller) call(w *world, client *updater.Client, name, job string) error {
	ctx, c, stop := w.call(name, d.patience, 0)
	defer stop()
	var content []byte
	var attempts int
	var err error
	if !c.guard(func() {
		content, attempts, err = read(d.reads, func() (*updater.Download, error) { return client.Download(ctx, job) })
	}) {
		return errThrown
	}
	c.returned(err, attempts)
	switch {
	case err == nil && !isContent(job, content):
		w.violate(wrongBytes, "%s: %d bytes that are no version of the content", c, len(content))
	case err == nil:
		w.count("download complete")
	default:
		w.count("download failed")
		checkError[*updater.Error](c, err)
		if content == nil {
			c.gaveUp(err, false)
		}
	}
	return err
}

// read takes a download in.
func read(size int, open func() (*updater.Download, error)) (content []byte, attempts int, _ error) {
	d, err := open()
	if err != nil {
		return nil, attemptsOf(err), err
	}
	defer d.Close()
	part := make([]byte, size)
	for {
		n, err := d.Read(part)
		content = append(content, part[:n]...)
		switch {
		case err == io.EOF:
			return content, d.Attempts, nil
		case err != nil:
			return content, attemptsOf(err), err
		}
	}
}
