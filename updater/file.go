package updater

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrUnverified: the service does not mark the end of the content, so that a
// part cannot be told from the whole. [FileOptions.AcceptUnverified] accepts it.
var ErrUnverified = errors.New("unverified end")

// FileOptions adjust [Client.DownloadFile]. The zero value is good.
type FileOptions struct {
	// Progress is called after every piece of up to 256 KiB, by one goroutine at a
	// time, and holds the download up until it returns. If it panics, so does the call.
	Progress func(FileProgress)
	// Parallel is how many ranges of the content are fetched at once, which is
	// faster where each connection is slow. It is done only if the service gives a
	// strong ETag and serves ranges, and else one stream is read. What an interrupted
	// call has of ranges that are not whole, mostly of 16 MiB, is fetched again. Zero
	// and 1 are one stream, and 64 is the most.
	Parallel int
	// SkipHash leaves File.SHA256 out.
	SkipHash bool
	// AcceptUnverified takes a content whose end the service does not mark, although
	// it may be cut off, instead of [ErrUnverified].
	AcceptUnverified bool
	// Wait waits for the job, as [Client.DownloadWhenReady] does. The zero value does
	// not wait. Nothing is held meanwhile, neither the path nor a file: what others do
	// at the path counts, and can end the waiting with [ErrBusy].
	Wait WaitOptions
}

// FileProgress is how far a download is.
type FileProgress struct {
	Bytes   int64 // in the file, those of an earlier call included
	Total   int64 // -1: not announced
	Resumes int   // of broken streams, in this call
}

// A File is a downloaded result.
type File struct {
	// Size is the content's length in bytes.
	Size int64
	// SHA256 is the hash of the whole content in hexadecimal; "" with SkipHash.
	SHA256 string
	// ContentType, ETag and LastModified are what the service said of the content;
	// "" if it did not.
	ContentType, ETag, LastModified string
	// RequestID is of the last answer, to quote to the service's support.
	RequestID string
	// Verified tells that the service marked the end of the content.
	Verified bool
	// Attempts is how many requests it took, and Resumes how many of them asked for
	// the rest of a broken stream.
	Attempts, Resumes int
	// ResumedBytes is how much of what an earlier call had left was built upon: of one
	// stream all but the last byte, which is asked for again.
	ResumedBytes int64
}

// Format prints the size, whatever the verb.
func (f File) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("file of %d bytes", f.Size))
}

// LogValue logs the size and the request id.
func (f File) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("size", f.Size), slog.String("request_id", transport.Printable(f.RequestID)))
}

// DownloadFile downloads the result of a job, as [Client.Download] does, into a
// file of mode 0600 at path. What was at path stays untouched until the whole
// content is on disk, and then is replaced at once; a symbolic link is replaced
// itself. The directory must exist, and path lead to it until the end. A name that
// the service sends is never used. Each call fetches the content: also one for a path
// that already holds it fetches all of it again.
//
// The content gathers in a private file beside it, .NAME.part for a path that ends
// in NAME, with a note of what it is in .NAME.part.json. If the download fails, is
// canceled or the process is killed, the next call for the same job, merchant and
// address continues from there, if the service confirms that the content is still
// the same, and otherwise begins anew. The two files stay only if the service
// gave something to continue by; remove them if there is to be no next call, as
// they hold card data. They are trusted if they are private to this user: whoever
// may write them may write the path. A name may have 15 bytes less than the file
// system allows, which is mostly 240. After a restart of the machine, which Linux tells, nothing is
// continued; elsewhere a crash of the machine can leave a part that differs from
// what was sent. A parallel download continues behind the last range before which
// nothing is missing.
//
// A second download to the same path fails with [ErrBusy] while one is under way,
// in this process or another; on systems without flock, such as Windows, other
// processes are not noticed. A call that ends early returns when the disk has taken
// what it was given.
//
// Every error is an [*Error]. Beyond those of Download and [Download.Read] it is
// [ErrUnverified], or one of the file system, of which errors.Is finds
// fs.ErrPermission, fs.ErrNotExist, syscall.ENOSPC, syscall.EISDIR and their like.
// If the content changes during the download, it is begun anew, once.
func (c *Client) DownloadFile(ctx context.Context, jobID, path string, o FileOptions, opts ...Option) (*File, error) {
	fail := func(err error) (*File, error) {
		return nil, &Error{Operation: operation, Err: err}
	}
	s, err := c.source(ctx, jobID, opts)
	if err == nil && (o.Parallel < 0 || o.Parallel > maxParallel) {
		err = transport.Invalid("FileOptions.Parallel is not 0 to %d", maxParallel)
	}
	if err == nil {
		err = o.Wait.check()
	}
	if err != nil {
		return fail(err)
	}
	t := &transfer{source: s, path: path, options: &o}
	defer t.release()
	file, err := t.run(ctx, true)
	if errors.Is(err, ErrChanged) {
		file, err = t.run(ctx, false)
	}
	if err == nil {
		return file, nil
	}
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, &Error{Operation: operation, RequestID: t.requestID, Attempts: t.attempts, Err: err}
	}
	failed.Attempts = t.attempts
	return nil, failed
}
