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
	request    *request
	path       string
	options    *FileOptions
	partial    *partial // nil while the job is waited for
	known      metadata // of the file at the path
	version    version
	begun      bool // what the partial file held before is given up, or built upon
	maxRetries int
	hasher     *hasher
	syncer     *syncer

	bytes     int64 // in the file
	unsynced  int64 // of them
	attempts  int   // of the streams that have ended
	resumes   int
	requestID string
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
	failed, isFailure := errors.AsType[*Error](err)
	switch {
	case isFailure && failed.RetryAfter > maxWait:
		return false // the caller is to hear of it
	case errors.Is(err, ErrChanged):
		return restarts == 0
	case errors.Is(err, ErrNotResumable), errors.Is(err, ErrDigestMismatch), restarts > 0 && isBreak(err):
		return restarts < d.maxRetries
	}
	return false
}

// once downloads the content, from what an earlier call has left if it is not
// begun anew.
func (d *fileDownload) once(ctx context.Context, restarts int) (*File, error) {
	r, err := d.options.Wait.wait(ctx, d.request, func() (*resumer, error) { return d.begin(ctx, restarts) })
	if err != nil {
		if failed, ok := errors.AsType[*Error](err); ok {
			d.attempts += failed.Attempts
		}
		return nil, err
	}
	defer r.Close()
	defer d.count(r)
	d.maxRetries = r.settings.MaxRetries
	if r.unchanged {
		d.count(r)
		return d.file(r, d.known), nil
	}
	d.version, d.bytes, d.unsynced = r.version, r.offset, 0
	if !r.isVerifiable() && !d.options.AcceptUnverified {
		return nil, r.failure(transport.NewError("the service does not mark the end of the content", ErrUnverified))
	}
	from := r.offset
	d.begun = true
	if err := d.partial.begin(d.request.resource(), r.version, from); err != nil {
		return nil, err
	}
	d.syncer = startSyncer(d.partial.file)
	defer d.syncStarted()
	d.hasher = nil
	own := digests{SHA256: "wanted"}
	if d.options.SkipHash {
		own = digests{}
	}
	if wanted := newHashes(own, r.version.Digests, r.sent); wanted != nil {
		d.hasher = startHasher(d.partial.file, wanted)
		defer d.hasher.stop()
	}
	file, err := d.fetch(ctx, r, from)
	// Not by errors.Is, which also finds the error of another call that ended the context.
	failed, isFailure := err.(*Error)
	if r.overrun || isFailure && slices.Contains([]string{"changed", "not_resumable", "digest_mismatch", "refused"}, failed.Condition()) {
		d.partial.tainted = true
	}
	return file, err
}

// begin takes the partial file and requests the content, or what is missing of it.
// A job may be waited for for hours, so that what fails holds nothing meanwhile.
func (d *fileDownload) begin(ctx context.Context, restarts int) (*resumer, error) {
	if d.partial == nil {
		p, err := openPartial(d.path)
		if err != nil {
			return nil, err
		}
		d.partial = p
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
	r, err := d.open(ctx, w)
	if err != nil {
		d.release()
	}
	return r, err
}

// release gives the partial file up, and leaves what a later call can build upon.
func (d *fileDownload) release() {
	if d.partial == nil {
		return
	}
	d.partial.discardOrKeep(!d.begun || d.version.Validator != "")
	d.partial.close()
	d.partial = nil
}

// open requests content, or its beginning if what was to be continued is gone.
func (d *fileDownload) open(ctx context.Context, w want) (*resumer, error) {
	r, err := d.request.open(ctx, w)
	failed, _ := errors.AsType[*Error](err)
	if err == nil || w.offset == 0 || failed.StatusCode != http.StatusPartialContent && !errors.Is(err, ErrChanged) {
		return r, err
	}
	attempts := failed.Attempts
	r, err = d.request.open(ctx, want{})
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.Attempts += attempts
		return nil, err
	}
	r.attempts += attempts
	return r, nil
}

// pieces are for files alone: a caller's writer could keep what it must not.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// fetch brings the content into the partial file, and to its path.
func (d *fileDownload) fetch(ctx context.Context, r *resumer, from int64) (*File, error) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	err := fill(r, piece[:], func(piece []byte) error {
		if _, err := d.partial.file.WriteAt(piece, d.bytes); err != nil {
			return fileError("the file cannot be written", err)
		}
		d.wrote(len(piece))
		d.count(r)
		if d.options.Progress != nil {
			d.options.Progress(FileProgress{Bytes: d.bytes, Total: d.version.Length, Resumes: d.resumes})
		}
		return nil
	})
	d.count(r)
	if err != nil {
		return nil, err
	}
	return d.finish(ctx, r, from)
}

// wrote counts what was written, and has it synced and hashed.
func (d *fileDownload) wrote(n int) {
	d.bytes += int64(n)
	d.unsynced += int64(n)
	if d.unsynced >= syncEvery && d.syncer.begin() {
		d.unsynced = 0
	}
	if d.hasher != nil {
		d.hasher.grow(d.bytes)
	}
}

// syncStarted waits for the syncs that were begun.
func (d *fileDownload) syncStarted() error {
	err := d.syncer.stop()
	if err != nil {
		d.partial.tainted = true
	}
	return err
}

// count takes over what a stream has taken since it was last counted.
func (d *fileDownload) count(r *resumer) {
	d.attempts += r.attempts
	d.resumes += r.resumes
	r.attempts, r.resumes = 0, 0
	d.requestID = r.requestID
}

// finish checks the content and gives it its path.
func (d *fileDownload) finish(ctx context.Context, r *resumer, from int64) (*File, error) {
	if d.version.Length >= 0 && d.bytes != d.version.Length {
		return nil, r.failure(transport.NewError("the file is not as long as announced", transport.ErrBadResponse))
	}
	// The disk works while the hash is completed.
	err := d.syncStarted()
	if err == nil {
		err = d.partial.sync()
	}
	if err != nil {
		return nil, fileError("the file cannot be completed", err)
	}
	m := metadata{Version: r.version, Size: d.bytes, Verified: r.isVerifiable()}
	if d.hasher != nil {
		sums, err := d.hasher.finish(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.check(sums); err != io.EOF {
			return nil, err
		}
		m.SHA256 = sums.SHA256
	}
	if d.options.Check != nil {
		if err := d.options.Check(io.NewSectionReader(d.partial.file, 0, d.bytes), r.header()); err != nil {
			return nil, r.failure(transport.NewError("FileOptions.Check refused the content", ErrRefused, err))
		}
	}
	f := d.file(r, m)
	f.ResumedBytes = from
	record := &m
	if !d.options.IfChanged {
		record = nil
	}
	return f, d.partial.commit(d.bytes, d.request.resource(), record)
}

// file describes the file at the path.
func (d *fileDownload) file(r *resumer, m metadata) *File {
	v, hash := m.Version, m.SHA256
	if d.options.SkipHash {
		hash = ""
	}
	return &File{
		Size: m.Size, SHA256: hash, Verified: m.Verified, Unchanged: r.unchanged,
		ContentType: v.ContentType, ContentEncoding: v.ContentEncoding, ETag: v.ETag, LastModified: v.LastModified,
		RequestID: d.requestID, Attempts: d.attempts, Resumes: d.resumes,
	}
}
