package updater

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/fault"
)

// FileOptions configure [Client.DownloadFile].
type FileOptions struct {
	// Progress, if not nil, is called after each piece of up to 256 KiB. The download waits for it.
	Progress func(FileProgress)
	// Check may refuse the whole content before it replaces the file at the path. After its error the
	// content is removed, and the error of the call matches it. header is that of the first response. It
	// is not called for an unchanged file. Nil accepts any content.
	Check func(content *io.SectionReader, header http.Header) error
	// IfChanged fetches nothing if the service still has the content of the file at the path: see
	// [File.Unchanged]. Set it on every call: each leaves the ETag or Last-Modified in .NAME.part.json for
	// the next one. The content is fetched all the same for another job, merchant or
	// address, if the file was changed, or if the service sends nothing to ask by.
	IfChanged bool
	// AcceptUnverified accepts content that may be cut off, because the response has neither length nor
	// chunks. By default it fails with [ErrUnverified].
	AcceptUnverified bool
}

// FileProgress is how far a download is.
type FileProgress struct {
	Bytes   int64 // in the file, including those of an earlier call
	Total   int64 // length of the content; -1 if it is not known
	Resumes int   // requests for the rest of a broken stream
}

// A File describes a downloaded result.
type File struct {
	Size                            int64  // length of the content in bytes
	SHA256                          string // of the whole content: 64 lower-case hexadecimal digits
	ContentType, ETag, LastModified string // headers of the first response
	RequestID                       string // of the last response, for the service's support

	// Verified is that of [Download].
	Verified bool
	// Unchanged is true if [FileOptions.IfChanged] fetched nothing. Size, hash, headers and Verified are
	// then those of the earlier call.
	Unchanged bool

	Attempts     int   // requests
	Resumes      int   // those for the rest of a broken stream
	ResumedBytes int64 // bytes kept from an earlier call: all but its last one
}

// Format prints the size, under any verb.
func (f File) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, fmt.Sprintf("file of %d bytes", f.Size))
}

// LogValue logs the size, the hash, the counts and the request id.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("size", f.Size), slog.String("sha_256", f.SHA256), slog.Bool("unchanged", f.Unchanged),
		slog.Int("attempts", f.Attempts), slog.Int("resumes", f.Resumes), slog.Int64("resumed_bytes", f.ResumedBytes),
		slog.String("request_id", fault.Loggable(f.RequestID)))
}

// DownloadFile downloads the result of a job, as [Client.Download] does, into a file of mode 0600. Once
// the whole content is on disk, it replaces the file or symbolic link at path atomically. The directory
// must exist.
//
// # Continuing
//
// The content is first written to .NAME.part, where NAME is the end of path, with its metadata in
// .NAME.part.json. If the call fails or its process is killed, the next call for the same job, merchant
// and address continues there, if the service confirms that the content is the same. A kill costs up to
// 256 KiB. For this the service must send an ETag or Last-Modified, and the current user must own both
// files with mode 0600.
//
// The part holds card data. Remove the two files if there will be no next call, as after [ErrNotFound],
// and after a crash of the machine, which can leave wrong bytes in them.
//
// A call starts over up to WithMaxRetries times if the content changes or cannot be resumed. If the service refuses to continue a part, or the question of IfChanged, as by a 400
// or 500, the call asks once more for the whole, and loses the part if it gets that.
//
// # Errors
//
// Every error is an [*Error]. errors.Is also finds errors of the file system. If the last step fails, the
// sync of the directory, the file is at its path, but a crash of the machine may bring the old one back.
//
//   - syscall.EISDIR: the path is a directory. Nothing was sent.
//   - syscall.EBUSY: the path cannot be replaced, such as a single file that a container mounts. The next
//     call fetches one byte.
//   - [ErrBusy]: another download to the path is under way. Systems without flock, such as Windows, do not
//     notice other processes.
func (c *Client) DownloadFile(ctx context.Context, jobID, path string, o FileOptions, opts ...CallOption) (*File, error) {
	q, err := c.request(ctx, jobID, opts)
	if err != nil {
		return nil, err
	}
	d := &fileDownload{request: q, path: path, options: &o}
	defer d.release()
	file, err := d.run(ctx)
	if err == nil {
		return file, nil
	}
	if failed, ok := err.(*Error); ok {
		return nil, failed
	}
	if ctx.Err() == nil && !errors.Is(err, ErrInvalidArgument) && !errors.Is(err, ErrBusy) { // the file system
		err = fault.WithCause(err, err)
	}
	return nil, q.failure(err)
}

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
	if !r.framed && !d.options.AcceptUnverified {
		return nil, r.failure(fault.NewError("the service does not mark the end of the content", ErrUnverified))
	}
	if err := d.partial.begin(r.version, r.offset); err != nil {
		return nil, err
	}
	file, err := d.fetch(ctx, r)
	// Not errors.Is, which also finds the error of another call that ended the context.
	_, isFailure := err.(*Error)
	if isFailure && classify(err) == again {
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

// fetch writes the content to the partial file, hashes it, and gives it its path.
func (d *fileDownload) fetch(ctx context.Context, r *resumer) (*File, error) {
	piece := make([]byte, pieceSize)
	from := r.offset
	hash := sha256.New()
	if err := d.partial.read(ctx, hash, from, piece); err != nil {
		return nil, err
	}
	size := from
	write := func(piece []byte) (int, error) {
		if _, err := d.partial.file.WriteAt(piece, size); err != nil {
			return 0, fileError("the file cannot be written", err)
		}
		hash.Write(piece)
		size += int64(len(piece))
		if d.options.Progress != nil {
			d.options.Progress(FileProgress{Bytes: size, Total: r.version.Length, Resumes: d.request.resumes})
		}
		return len(piece), nil
	}
	if _, err := io.CopyBuffer(writerFunc(write), fullReader{r}, piece); err != nil {
		return nil, err
	}
	if err := d.partial.sync(); err != nil {
		return nil, err
	}
	if d.options.Check != nil {
		if err := d.options.Check(io.NewSectionReader(d.partial.file, 0, size), r.header()); err != nil {
			d.partial.useless = true
			return nil, r.failure(fault.WithCause(fault.NewError("FileOptions.Check refused the content", errRefused, err), err))
		}
	}
	m := metadata{Version: r.version, Size: size, Verified: r.framed, SHA256: hex.EncodeToString(hash.Sum(nil))}
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
