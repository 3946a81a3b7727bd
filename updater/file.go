package updater

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/transport"
)

// Conditions of [Client.DownloadFile] alone.
var (
	// ErrUnverified: the response has no length, chunks or digest, so nothing shows
	// whether the content is whole. Set [FileOptions.AcceptUnverified] to accept it.
	ErrUnverified = transport.NewCondition("unverified", "unverified end", false)
	// ErrRefused: [FileOptions.Check] refused the content, and it was removed. The error
	// wraps the one that Check returned; its text does not quote it.
	ErrRefused = transport.NewCondition("refused", "content refused", false)
)

// FileOptions configure [Client.DownloadFile]. The zero value fetches the content, hashes
// it, and refuses content that may be cut off.
type FileOptions struct {
	// Progress is called on the call's goroutine after each piece of up to 256 KiB is
	// written; the download waits for it. It is not called if nothing is fetched. Nil is
	// not called.
	Progress func(FileProgress)
	// Check decides whether the content may replace the file at the path. It is called
	// when the whole content is in its private file, with the header of the first
	// response of this call: if the call continues an earlier one, that is a 206, whose
	// Content-Length is that of the rest. If Check returns an error, the content is
	// removed, the path is left alone, and the call fails with [ErrRefused]. It is not
	// called for an unchanged file. Nil accepts any content.
	Check func(content *io.SectionReader, header http.Header) error
	// IfChanged fetches nothing if the file at the path is what the service has; the
	// result is then [File.Unchanged]. The call sends the ETag or Last-Modified of the
	// file, from a record that an earlier call with IfChanged left beside it: .NAME.json
	// for a path that ends in NAME.
	//
	// The record is used only for the same job, merchant and address, only if it has the
	// hash and the verification that the call asks for, and only while the file has its
	// recorded size and modification time and a mode that gives others nothing, such as
	// 0600. Otherwise, and if the service sent neither ETag nor Last-Modified or refuses
	// to be asked by them, everything is fetched. A call without IfChanged that replaces
	// the file removes the record.
	IfChanged bool
	// SkipHash leaves File.SHA256 empty, which saves the time of hashing. A digest from
	// the service is checked nevertheless.
	SkipHash bool
	// AcceptUnverified accepts content that may be cut off, because the response has no
	// length, chunks or digest. By default it fails with [ErrUnverified].
	AcceptUnverified bool
	// Wait waits for a job that is not ready, as [Client.DownloadWhenReady] does. The
	// zero value does not wait. The path is not locked meanwhile, so another download to
	// it can end the wait with [ErrBusy].
	Wait WaitOptions
}

// FileProgress is how far a download is.
type FileProgress struct {
	// Bytes is the number of bytes in the file, including those of an earlier call.
	Bytes int64
	// Total is the length of the content in bytes; -1 if the service did not announce
	// it.
	Total int64
	// Resumes is the number of requests of this call for the rest of a broken stream.
	Resumes int
}

// A File describes a downloaded result.
type File struct {
	// Size is the length of the content in bytes.
	Size int64
	// SHA256 is the hash of the whole content, 64 lower-case hexadecimal digits; "" with
	// SkipHash.
	SHA256 string
	// ContentType, ETag and LastModified are the response's header fields of these
	// names, as the service sent them; "" if there are none.
	ContentType, ETag, LastModified string
	// ContentEncoding is the Content-Encoding of the content, which you must decode; ""
	// for none. It is always "" without [WithEncodedContent].
	ContentEncoding string
	// RequestID is the request id of the last response, to quote to the service's
	// support; "" if it has none.
	RequestID string
	// Verified is true if the content is proven whole: the service sent its length,
	// chunks or a digest.
	Verified bool
	// Unchanged is true if nothing was fetched because the file at the path is what the
	// service has: see FileOptions.IfChanged. The other fields describe that file.
	Unchanged bool
	// Attempts is the number of requests sent, and Resumes the number of those that
	// fetched the rest of a broken stream.
	Attempts, Resumes int
	// ResumedBytes is the number of bytes reused from an earlier call: all but the last
	// one, which is fetched again.
	ResumedBytes int64
}

// Format prints the size, whatever the verb.
func (f File) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("file of %d bytes", f.Size))
}

// LogValue logs the size and the request id.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("size", f.Size), slog.String("request_id", transport.Loggable(f.RequestID)))
}

// DownloadFile downloads the result of a job, as [Client.Download] does, into a file of
// mode 0600 at path. It replaces the file at path atomically, once the whole content is on
// disk; a symbolic link itself is replaced. The directory must exist and must not be moved
// during the download. File names from the service are never used. Each call fetches the
// content, even if path already holds it, unless [FileOptions.IfChanged] is set. The
// program examples/download does this for many merchants.
//
// # Continuing
//
// The content is first written to a private file beside path: .NAME.part for a path
// that ends in NAME, with its metadata in .NAME.part.json. If the download fails, is
// canceled, or the process is killed, the next call for the same job, merchant and
// address continues there, provided the service confirms that the content is the same.
// Otherwise, or if the service refuses to continue but serves the whole content, it
// starts over. An outage or a throttle costs no progress: after 401, 407, 408, 429,
// 502, 503, 504, no response, or a Retry-After, the call fails and the files stay.
//
// The two files are kept only if the service sent a validator to continue with, even if
// the content is complete and cannot be moved to path. They hold card data: remove them
// if there will be no next call. They are reused only if owned by the current user with
// mode 0600. The longest NAME is 15 bytes shorter than the file system allows: usually
// 240 bytes. On Linux, nothing is continued after a restart of the machine. On other
// systems, a crash of the machine can leave a part that differs from what was sent.
//
// The same call starts over once if the content changes. It starts over up to
// WithMaxRetries times if the stream broke and cannot be resumed, or if the content does
// not match its digest.
//
// # Errors
//
// A second download to the same path, in this process or another, fails with [ErrBusy].
// Systems without flock, such as Windows, do not notice other processes. A path that
// cannot be replaced, such as a directory or a Linux mount point, is refused before
// anything is sent. A call that ends early returns when its writes are on disk.
//
// Every error is an [*Error]: those of Download and [Download.Read], [ErrUnverified],
// [ErrRefused], [ErrBusy], [ErrNotReady], or an error of the file system, such as
// fs.ErrPermission, fs.ErrNotExist, syscall.ENOSPC, syscall.EISDIR or syscall.EBUSY.
func (c *Client) DownloadFile(ctx context.Context, jobID, path string, o FileOptions, opts ...Option) (*File, error) {
	q, err := c.request(ctx, jobID, &o.Wait, opts)
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
		err = transport.WithCause(err, err)
	}
	return nil, q.failure(err)
}
