package updater

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"

	"github.com/carddata/carddata-go/internal/fault"
)

// A fileDownload brings a result into a partial file, and that to its path.
type fileDownload struct {
	request *request
	path    string
	options *FileOptions
	partial *partial // nil while waiting for the job
	known   metadata // of the file at the path
}

// run downloads the content, and starts over where that is safe and may help.
func (d *fileDownload) run(ctx context.Context) (*File, error) {
	for restarts := 0; ; restarts++ {
		file, err := d.once(ctx, restarts)
		if err == nil || ctx.Err() != nil || classify(err) != again || restarts >= d.request.settings.MaxRetries {
			return file, err
		}
	}
}

// once downloads the content. It continues the partial file of an earlier call, unless the
// download restarts.
func (d *fileDownload) once(ctx context.Context, restarts int) (*File, error) {
	r, err := d.request.await(ctx, func() (*resumer, error) { return d.begin(ctx, restarts) })
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.unchanged {
		return d.file(r, d.known), nil
	}
	if !r.isVerifiable() && !d.options.AcceptUnverified {
		return nil, r.failure(fault.NewError("the service does not mark the end of the content", ErrUnverified))
	}
	if err := d.partial.begin(r.version, r.offset); err != nil {
		return nil, err
	}
	file, err := d.fetch(ctx, r)
	// Not errors.Is, which also finds the error of another call that ended the context.
	failed, isFailure := err.(*Error)
	if isFailure && (classify(err) == again || failed.Condition() == "refused") {
		d.partial.useless = true
	}
	return file, err
}

// begin takes the partial file and requests the content, or its missing rest. The job may
// take hours, so a failed request holds no file or lock meanwhile.
func (d *fileDownload) begin(ctx context.Context, restarts int) (r *resumer, err error) {
	if d.partial == nil {
		if d.partial, err = openPartial(d.path, d.request.resource()); err != nil {
			return nil, err
		}
	}
	w := want{retry: restarts}
	if restarts == 0 {
		w.version, w.offset = d.partial.resumePoint()
		if d.options.IfChanged && w.offset == 0 {
			d.known = d.partial.current()
			// It must be the content that this call would have fetched.
			if d.known.Verified || d.options.AcceptUnverified {
				w.unless = d.known.Version
			}
		}
	}
	r, err = d.request.open(ctx, w)
	_, condition := w.unless.condition()
	if err != nil && (w.offset > 0 || condition != "") && (classify(err) == again || refusesSpecial(err)) {
		// Otherwise every later call would fail the same way until the partial file is
		// removed.
		r, err = d.request.open(ctx, want{})
	}
	if err != nil {
		d.release()
	}
	return r, err
}

// release gives up the partial file, and keeps it if a later call can resume it.
func (d *fileDownload) release() {
	if d.partial == nil {
		return
	}
	d.partial.close()
	d.partial = nil
}

// pieces are for files only: a caller's writer could keep a piece too long.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// fetch writes the content to the partial file, hashes it, and gives it its path.
func (d *fileDownload) fetch(ctx context.Context, r *resumer) (*File, error) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	from := r.offset
	r.hash = sha256.New()
	if err := d.partial.read(ctx, r.hash, from, piece[:]); err != nil {
		return nil, err
	}
	size := from
	write := func(piece []byte) (int, error) {
		if _, err := d.partial.file.WriteAt(piece, size); err != nil {
			return 0, fileError("the file cannot be written", err)
		}
		size += int64(len(piece))
		if d.options.Progress != nil {
			d.options.Progress(FileProgress{Bytes: size, Total: r.version.Length, Resumes: d.request.resumes})
		}
		return len(piece), nil
	}
	if _, err := io.CopyBuffer(writerFunc(write), fullReader{r}, piece[:]); err != nil {
		return nil, err
	}
	if err := d.partial.sync(); err != nil {
		return nil, err
	}
	if d.options.Check != nil {
		if err := d.options.Check(io.NewSectionReader(d.partial.file, 0, size), r.header()); err != nil {
			return nil, r.failure(fault.WithCause(fault.NewError("FileOptions.Check refused the content", ErrRefused, err), err))
		}
	}
	m := metadata{Version: r.version, Size: size, Verified: r.isVerifiable(), SHA256: r.sum()}
	f := d.file(r, m)
	f.ResumedBytes = from
	return f, d.partial.commit(m, d.options.IfChanged)
}

type writerFunc func(piece []byte) (int, error)

func (f writerFunc) Write(piece []byte) (int, error) { return f(piece) }

// file describes the file at the path.
func (d *fileDownload) file(r *resumer, m metadata) *File {
	q, v := d.request, m.Version
	return &File{
		Size: m.Size, SHA256: m.SHA256, Verified: m.Verified, Unchanged: r.unchanged,
		ContentType: v.ContentType, ETag: v.ETag, LastModified: v.LastModified,
		RequestID: q.requestID, Attempts: q.attempts, Resumes: q.resumes,
	}
}
