package updater

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/carddata/carddata-go/internal/transport"
)

// A transfer brings a result into a partial file.
type transfer struct {
	source  *source
	path    string
	partial *partial // nil while the job is waited for
	options *FileOptions
	version version
	begun   bool // what the partial file held before is given up, or built upon
	hash    *follower
	flusher *flusher

	mu        sync.Mutex
	bytes     int64 // in the file
	unflushed int64 // of them
	attempts  int   // of the streams that have ended
	resumes   int
	requestID string
}

// run downloads the content once, from what an earlier call has left if that is
// wanted.
func (t *transfer) run(ctx context.Context, resume bool) (*File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := t.options.Wait.wait(ctx, func() (*content, error) { return t.begin(ctx, resume) })
	if err != nil {
		if failed, ok := errors.AsType[*Error](err); ok {
			t.attempts += failed.Attempts
		}
		return nil, err
	}
	defer c.Close()
	t.version, t.bytes = c.version, c.pos
	if !c.framed && !t.options.AcceptUnverified {
		t.count(c)
		return nil, c.failure(transport.Reason("the service does not mark the end of the content", ErrUnverified))
	}
	from := c.pos
	parallel := c.end >= 0 && c.end < c.version.Length
	whole := int64(-1)
	if parallel {
		whole = from
	}
	t.begun = true
	if err := t.partial.begin(t.source.resource(), c.version, from, whole); err != nil {
		t.count(c)
		return nil, err
	}
	t.flusher = flush(t.partial.file)
	defer t.flush()
	if !t.options.SkipHash {
		t.hash = follow(t.partial.file)
		defer t.hash.stop()
	}
	if parallel {
		err = t.parallel(ctx, cancel, c)
	} else {
		err = t.sequential(c)
	}
	if err != nil {
		return nil, err
	}
	return t.finish(ctx, c, from)
}

// begin takes the partial file and requests the content, or what is missing of it.
// A job may be waited for for hours, so that what fails holds nothing meanwhile.
func (t *transfer) begin(ctx context.Context, resume bool) (*content, error) {
	if t.partial == nil {
		p, err := openPartial(t.path)
		if err != nil {
			return nil, err
		}
		t.partial = p
	}
	var kept version
	var from int64
	if resume {
		kept, from = t.partial.kept(t.source.resource())
	}
	c, err := t.open(ctx, kept, from)
	if err != nil {
		t.release()
	}
	return c, err
}

// release gives the partial file up, and leaves what a later call can build upon.
func (t *transfer) release() {
	if t.partial == nil {
		return
	}
	t.partial.leave(!t.begun || t.version.Validator != "")
	t.partial.close()
	t.partial = nil
}

// open requests the content from an offset on, or its beginning if what was to
// be continued is gone.
func (t *transfer) open(ctx context.Context, kept version, from int64) (*content, error) {
	end := int64(-1)
	if t.options.Parallel > 1 && (from == 0 || kept.strongETag()) {
		end = from + probeSize
	}
	c, err := t.source.open(ctx, from, end, kept)
	failed, _ := errors.AsType[*Error](err)
	switch {
	case err == nil && (c.end < 0 || c.end == c.version.Length || c.version.strongETag()):
		return c, nil
	case err == nil:
		// Without a strong ETag the parts could be of two versions.
		c.Close()
	case from == 0 && end < 0, failed.StatusCode != http.StatusPartialContent && !errors.Is(err, ErrChanged):
		return nil, err
	}
	attempts := 0
	if err == nil {
		attempts = c.attempts
	} else {
		attempts = failed.Attempts
	}
	c, err = t.source.open(ctx, 0, -1, version{})
	if failed, ok := errors.AsType[*Error](err); ok {
		failed.Attempts += attempts
		return nil, err
	}
	c.attempts += attempts
	return c, nil
}

// pieces are for files alone: a caller's writer could keep what it must not.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

func (t *transfer) sequential(c *content) error {
	defer t.count(c)
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	err := fill(c, piece[:], func(piece []byte) error {
		if err := t.write(piece, t.bytes); err != nil {
			return err
		}
		t.wrote(len(piece))
		t.grown(t.bytes)
		t.report(c)
		return nil
	})
	if c.excess {
		t.partial.doubtful = true
	}
	return err
}

func (t *transfer) write(piece []byte, at int64) error {
	if _, err := t.partial.file.WriteAt(piece, at); err != nil {
		return fileError("the file cannot be written", err)
	}
	return nil
}

// wrote counts what was written.
func (t *transfer) wrote(n int) {
	t.bytes += int64(n)
	t.unflushed += int64(n)
	if t.unflushed >= flushEvery && t.flusher.begin() {
		t.unflushed = 0
	}
}

// flush waits for what was begun to be flushed.
func (t *transfer) flush() error {
	err := t.flusher.stop()
	if err != nil {
		t.partial.doubtful = true
	}
	return err
}

// grown tells the hash how far the file is without a gap.
func (t *transfer) grown(to int64) {
	if t.hash != nil {
		t.hash.grow(to)
	}
}

func (t *transfer) report(c *content) {
	t.count(c)
	if t.options.Progress != nil {
		t.options.Progress(FileProgress{Bytes: t.bytes, Total: t.version.Length, Resumes: t.resumes})
	}
}

// count takes over what a stream has taken since it was last counted.
func (t *transfer) count(c *content) {
	t.attempts += c.attempts
	t.resumes += c.resumes
	c.attempts, c.resumes = 0, 0
	t.requestID = c.requestID
}

func (t *transfer) finish(ctx context.Context, c *content, from int64) (*File, error) {
	if t.version.Length >= 0 && t.bytes != t.version.Length {
		return nil, c.failure(transport.Reason("the file is not as long as announced", transport.ErrBadResponse))
	}
	f := &File{
		Size: t.bytes, ContentType: t.version.ContentType, ETag: t.version.ETag, LastModified: t.version.LastModified,
		RequestID: t.requestID, Verified: c.framed, Attempts: t.attempts, Resumes: t.resumes, ResumedBytes: from,
	}
	// The disk works while the hash is completed.
	err := t.flush()
	if err == nil {
		err = t.partial.sync()
	}
	if err != nil {
		return nil, fileError("the file cannot be completed", err)
	}
	if t.hash != nil {
		sum, err := t.hash.sum(ctx)
		if err != nil {
			return nil, err
		}
		f.SHA256 = sum
	}
	return f, t.partial.commit(f.Size)
}
