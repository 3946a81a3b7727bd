package updater

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/carddata/carddata-go/internal/transport"
)

// A fileDownload brings a result into a partial file, and that to its path.
type fileDownload struct {
	request *request
	path    string
	options *FileOptions
	partial *partial // nil while the job is waited for
	known   metadata // of the file at the path
}

// run downloads the content, and begins anew where that is safe and may help.
func (d *fileDownload) run(ctx context.Context) (*File, error) {
	for restarts := 0; ; restarts++ {
		file, err := d.once(ctx, restarts)
		if err == nil || ctx.Err() != nil || !d.mayRestart(err, restarts) {
			return file, err
		}
	}
}

func (d *fileDownload) mayRestart(err error, restarts int) bool {
	failed, isFailure := err.(*Error)
	switch {
	case isFailure && failed.RetryAfter > maxWait:
		return false // the caller is to hear of it
	case errors.Is(err, ErrNotReady):
		return false
	case errors.Is(err, ErrChanged):
		return restarts == 0
	case errors.Is(err, ErrNotResumable), errors.Is(err, ErrDigestMismatch), restarts > 0 && isBreak(err):
		return restarts < d.request.settings.MaxRetries
	}
	return false
}

// once downloads the content, from what an earlier call has left if it is not
// begun anew.
func (d *fileDownload) once(ctx context.Context, restarts int) (*File, error) {
	r, err := d.options.Wait.wait(ctx, d.request, func() (*resumer, error) { return d.begin(ctx, restarts) })
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.unchanged {
		return d.file(r, d.known), nil
	}
	if !r.isVerifiable() && !d.options.AcceptUnverified {
		return nil, r.failure(transport.NewError("the service does not mark the end of the content", ErrUnverified))
	}
	if err := d.partial.begin(d.request.resource(), r.version, r.offset); err != nil {
		return nil, err
	}
	file, err := d.fetch(ctx, r)
	// Not by errors.Is, which also finds the error of another call that ended the context.
	failed, isFailure := err.(*Error)
	if r.overrun || isFailure && slices.Contains([]string{"changed", "not_resumable", "digest_mismatch", "refused"}, failed.Condition()) {
		d.partial.tainted = true
	}
	return file, err
}

// begin takes the partial file and requests the content, or what is missing of it.
// A job may be waited for for hours, so that what fails holds nothing meanwhile.
func (d *fileDownload) begin(ctx context.Context, restarts int) (r *resumer, err error) {
	if d.partial == nil {
		if d.partial, err = openPartial(d.path); err != nil {
			return nil, err
		}
	}
	w := want{retry: restarts}
	if restarts == 0 {
		w.version, w.offset = d.partial.resumePoint(d.request.resource())
		if d.options.IfChanged && w.offset == 0 {
			d.known = d.partial.current(d.request.resource())
			// It has to be what this call would have fetched.
			if (d.known.Verified || d.options.AcceptUnverified) && (d.known.SHA256 != "" || d.options.SkipHash) {
				w.unless = d.known.Version
			}
		}
	}
	r, err = d.request.open(ctx, w)
	_, condition := w.unless.condition()
	if (w.offset > 0 || condition != "") && ctx.Err() == nil && d.isRefused(err) {
		// Or every later call would fail alike, for as long as there is what it asks by.
		r, err = d.request.open(ctx, want{})
	}
	if err != nil {
		d.release()
	}
	return r, err
}

// isRefused tells whether the response may be to the range or the condition of a request.
// A credential, a throttle, an outage or a job that is not ready concern a plain request
// as well, and what is left of an earlier call must outlast them.
func (d *fileDownload) isRefused(err error) bool {
	failed, isFailure := err.(*Error)
	if !isFailure || failed.RetryAfter > 0 || slices.Contains([]int{0, 401, 407, 408, 429, 502, 503, 504}, failed.StatusCode) {
		return false
	}
	// Of these statuses, which are no refusals by themselves, the caller knows.
	notReady := d.options.Wait.NotReady
	return failed.StatusCode >= http.StatusPartialContent || notReady == nil || !notReady(failed)
}

// release gives the partial file up, and leaves what a later call can build upon.
func (d *fileDownload) release() {
	if d.partial == nil {
		return
	}
	d.partial.discardOrKeep()
	d.partial.close()
	d.partial = nil
}

// pieces are for files alone: a caller's writer could keep what it must not.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// fetch brings the content into the partial file, which is hashed and synced while it
// grows, and to its path.
func (d *fileDownload) fetch(ctx context.Context, r *resumer) (*File, error) {
	wanted := []digests{r.version.Digests, r.sent}
	if !d.options.SkipHash {
		wanted = append(wanted, digests{sha256Name: ""})
	}
	hashing, from, size := newHashes(wanted...), r.offset, r.offset
	working, cancel := context.WithCancel(ctx)
	syncer, hasher := d.partial.followSync(working, from), hashing.follow(working, d.partial.file)
	defer func() {
		cancel()
		syncer.wait()
		hasher.wait()
	}()
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	write := func(piece []byte) (int, error) {
		if _, err := d.partial.file.WriteAt(piece, size); err != nil {
			return 0, fileError("the file cannot be written", err)
		}
		size += int64(len(piece))
		syncer.grow(size)
		hasher.grow(size)
		if d.options.Progress != nil {
			d.options.Progress(FileProgress{Bytes: size, Total: r.version.Length, Resumes: d.request.resumes})
		}
		return len(piece), nil
	}
	if _, err := io.CopyBuffer(writerFunc(write), fullReader{r}, piece[:]); err != nil {
		return nil, err
	}
	// The disk works while the hash is completed.
	if err := errors.Join(syncer.wait(), d.partial.sync()); err != nil {
		return nil, fileError("the file cannot be completed", err)
	}
	if err := hasher.wait(); err != nil {
		return nil, err
	}
	return d.finish(r, hashing.sums(), from, size)
}

type writerFunc func(piece []byte) (int, error)

func (f writerFunc) Write(piece []byte) (int, error) { return f(piece) }

// finish checks the content and gives it its path.
func (d *fileDownload) finish(r *resumer, sums digests, from, size int64) (*File, error) {
	if err := r.check(sums); err != io.EOF {
		return nil, err
	}
	if d.options.Check != nil {
		if err := d.options.Check(io.NewSectionReader(d.partial.file, 0, size), r.header()); err != nil {
			return nil, r.failure(transport.WithCause(transport.NewError("FileOptions.Check refused the content", ErrRefused, err), err))
		}
	}
	m := metadata{
		Resource: d.request.resource(), Version: r.version,
		Size: size, Verified: r.isVerifiable(), SHA256: sums[sha256Name],
	}
	f := d.file(r, m)
	f.ResumedBytes = from
	return f, d.partial.commit(m, d.options.IfChanged)
}

// file describes the file at the path.
func (d *fileDownload) file(r *resumer, m metadata) *File {
	q, v, hash := d.request, m.Version, m.SHA256
	if d.options.SkipHash {
		hash = ""
	}
	return &File{
		Size: m.Size, SHA256: hash, Verified: m.Verified, Unchanged: r.unchanged,
		ContentType: v.ContentType, ContentEncoding: v.ContentEncoding, ETag: v.ETag, LastModified: v.LastModified,
		RequestID: q.requestID, Attempts: q.attempts, Resumes: q.resumes,
	}
}

// A follower works behind a file that grows, in a goroutine of its own.
type follower struct {
	to   chan int64   // how far the file is; the latest alone counts
	wait func() error // returns once the work is done on all that the file has grown to
}

// follow calls work whenever the file has grown, until it fails.
func follow(work func(to int64) error) *follower {
	f := &follower{to: make(chan int64, 1)}
	ended := make(chan error, 1)
	go func() {
		var err error
		for to := range f.to {
			if err == nil {
				err = work(to)
			}
		}
		ended <- err
	}()
	f.wait = sync.OnceValue(func() error {
		close(f.to)
		return <-ended
	})
	return f
}

// grow is not called by two goroutines at once.
func (f *follower) grow(to int64) {
	select {
	case <-f.to:
	default:
	}
	f.to <- to
}
