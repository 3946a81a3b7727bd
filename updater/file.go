package updater

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/fault"
)

// Conditions of [Client.DownloadFile] alone.
var (
	// ErrUnverified: the response has no length, chunks or digest to show that the content
	// is whole. [FileOptions.AcceptUnverified] accepts it.
	ErrUnverified = fault.NewCondition("unverified", "unverified end", false)
	// ErrRefused: [FileOptions.Check] refused the content, and it was removed. The error of
	// Check matches too, but is not quoted.
	ErrRefused = fault.NewCondition("refused", "content refused", false)
	// ErrNotSynced: the new file is at its path, whole, but its directory was not synced:
	// after a crash of the machine the old file may be there again. DownloadFile returns no File
	// beside it: the next call, with IfChanged, returns it and need not fetch it again.
	ErrNotSynced = fault.NewCondition("not_synced", "not synced", true)
)

// FileOptions configure [Client.DownloadFile].
type FileOptions struct {
	// Progress is called after each piece of up to 256 KiB is written. The download waits for
	// it. Nil is not called.
	Progress func(FileProgress)
	// Check may refuse the whole content before it replaces the file at the path: if it
	// returns an error, the content is removed and the call fails with [ErrRefused]. header is
	// that of the first response, a 206 if the call continues an earlier one. Check is not
	// called for an unchanged file. Nil accepts any content.
	Check func(content *io.SectionReader, header http.Header) error
	// IfChanged fetches nothing if the service still has the content of the file at the
	// path: see [File.Unchanged]. Set it on the first call too: it leaves the ETag or
	// Last-Modified beside the file, in .NAME.part.json, and the next call sends it. Remove that
	// with the file.
	//
	// The content is fetched all the same for another job, merchant or address, if the file was
	// changed or moved or has another mode than 0600, or if the service refuses the question, or
	// sends neither an ETag nor a Last-Modified at least a second old (a minute, if it sends no
	// Date).
	IfChanged bool
	// AcceptUnverified accepts content that may be cut off, because the response has no
	// length, chunks or digest. By default it fails with [ErrUnverified].
	AcceptUnverified bool
}

// FileProgress is how far a download is.
type FileProgress struct {
	// Bytes counts the bytes in the file, including those of an earlier call.
	Bytes int64
	// Total is the length of the content in bytes; -1 if it is not known.
	Total int64
	// Resumes counts the requests for the rest of a broken stream.
	Resumes int
}

// A File describes a downloaded result.
type File struct {
	// Size is the length of the content in bytes.
	Size int64
	// SHA256 is the hash of the whole content: 64 lower-case hexadecimal digits.
	SHA256 string
	// ContentType, ETag and LastModified are those of [Download].
	ContentType, ETag, LastModified string
	// RequestID is the request id of the last response; "" if it has none.
	RequestID string
	// Verified is true if the service's length, chunks or digest mark the end of the content: see
	// [Download]. If the service sends Last-Modified alone, it is also true for a continued download
	// of a file that was replaced by one of the same length, within a second or behind a server that
	// keeps metadata for some (Tomcat's default servlet: five): only a digest or
	// [FileOptions.Check] notices.
	Verified bool
	// Unchanged is true if [FileOptions.IfChanged] fetched nothing. Size, hash, headers and
	// Verified are then those that the earlier call recorded. It does not say that you have
	// processed the file: record that yourself, for example by SHA256.
	Unchanged bool
	// Attempts counts the requests, and Resumes those for the rest of a broken stream.
	Attempts, Resumes int
	// ResumedBytes counts the bytes kept from an earlier call: all but its last one, which is
	// fetched again.
	ResumedBytes int64
}

// Format prints the size, under any verb.
func (f File) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, fmt.Sprintf("file of %d bytes", f.Size))
}

// LogValue logs the size and the request id.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("size", f.Size), slog.String("request_id", fault.Loggable(f.RequestID)))
}

// DownloadFile downloads the result of a job, as [Client.Download] does, into a file of
// mode 0600. Once the whole content is on disk, it replaces the file or symbolic link at path
// atomically. An empty body, or any JSON but the error object, is content, too: refuse it with
// [FileOptions.Check]. The directory must exist. Each call fetches the content, unless
// [FileOptions.IfChanged] is set.
//
// # Continuing
//
// The content is first written beside path: for a path that ends in NAME, to .NAME.part, with
// its metadata in .NAME.part.json. If the call fails or its process is killed, the next call
// for the same job, merchant and address continues there, if the service confirms that the
// content is the same. A kill costs up to 256 KiB.
//
// The part holds card data: remove the two files if there will be no next call, as after
// [ErrNotFound]. They are kept only if the service sent an ETag or Last-Modified to continue
// with, and used only if the current user owns them with mode 0600. NAME has at most 244 bytes
// on most file systems. A crash of the machine can leave wrong bytes in a part, which only a
// digest of the service shows: remove the two files then.
//
// A call starts over up to WithMaxRetries times if the content changes, does not match its
// digest, or the stream cannot be resumed. If the service refuses the request for the rest of a
// part, or with IfChanged, the call asks once more for the whole, and so loses the part if it gets
// that. It does not ask after 401, 407, 408, 429, 502, 503, 504, without a response, or if the job is
// not ready.
//
// # Errors
//
// Every error is an [*Error]. errors.Is also finds errors of the file system, such as
// fs.ErrPermission or syscall.ENOSPC. A path that is a directory fails before anything is sent
// (syscall.EISDIR). One that cannot be replaced in the end, such as a single file that a
// container mounts (syscall.EBUSY), does not cost the content: the next call fetches one byte.
//
// A second download to the same path fails with [ErrBusy], also after it has waited for its
// job: the path is not locked meanwhile. Systems without flock, such as Windows, do not notice
// other processes.
func (c *Client) DownloadFile(ctx context.Context, jobID, path string, o FileOptions, opts ...Option) (*File, error) {
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
