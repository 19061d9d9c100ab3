package exec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// TempFiles is where local queries keep what exceeds work_mem. All queries of a
// node share it. Contracts never write here: their memory has a hard bound.
type TempFiles struct {
	dir   string
	limit int64 // bytes of all files together; 0 = none
	used  atomic.Int64
}

// OpenTempFiles makes the directory, or empties it: files do not outlive the
// process, and a directory that holds some is what a crash left. limit bounds
// the bytes of all files together; 0 is no limit.
func OpenTempFiles(dir string, limit int64) (*TempFiles, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("exec: temporary files: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("exec: temporary files: %w", err)
	}
	return &TempFiles{dir: dir, limit: limit}, nil
}

// Used is how many bytes the files hold now.
func (t *TempFiles) Used() int64 { return t.used.Load() }

// tempFile is rows on disk, appended and read in pieces. The file has no name
// any more: it is gone when it is closed, or the process ends.
type tempFile struct {
	of   *TempFiles
	f    *os.File
	w    *bufio.Writer
	size int64
	buf  []byte
}

func (t *TempFiles) create() (*tempFile, error) {
	f, err := os.CreateTemp(t.dir, "query-*")
	if err != nil {
		return nil, tempError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(tempError(err), f.Close())
	}
	return &tempFile{of: t, f: f, w: bufio.NewWriterSize(f, 128<<10)}, nil
}

// tempError makes 53100 of a full disk; other errors are faults of the node.
func tempError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return pgerr.New(pgerr.DiskFull, "could not write to a temporary file: no space left on device").
			WithHint("Free disk space, or raise work_mem so that less is written.")
	}
	return fmt.Errorf("exec: temporary file: %w", err)
}

// errShortTemp is a file that lost its end.
var errShortTemp = errors.New("exec: temporary file: rows are missing")

// write appends a row.
func (t *tempFile) write(row []datum.Datum) error {
	b := t.buf[:0]
	for _, d := range row {
		switch {
		case d.IsNull():
			b = append(b, 0)
		case d.Inline():
			v := d.Int()
			b = binary.AppendUvarint(append(b, 1), uint64(v<<1)^uint64(v>>63))
		default:
			p := d.Bytes()
			b = append(binary.AppendUvarint(append(b, 2), uint64(len(p))), p...)
		}
	}
	t.buf = b
	if used := t.of.used.Add(int64(len(b))); t.of.limit > 0 && used > t.of.limit {
		t.of.used.Add(int64(-len(b)))
		return pgerr.New(pgerr.ConfigurationLimitExceeded, "temporary file size exceeds temp_file_limit (%dkB)", t.of.limit>>10).
			WithHint("Let the query sort, join or group fewer rows, or raise work_mem or the limit.")
	}
	t.size += int64(len(b))
	if _, err := t.w.Write(b); err != nil {
		return tempError(err)
	}
	return nil
}

func (t *tempFile) flush() error {
	if err := t.w.Flush(); err != nil {
		return tempError(err)
	}
	return nil
}

func (t *tempFile) close() {
	if t != nil && t.f != nil {
		t.of.used.Add(-t.size)
		_ = t.f.Close() // nothing in it is wanted any more
		t.f = nil
	}
}

// tempReader reads rows from a piece of a file. What it returns stays valid.
type tempReader struct {
	r     *bufio.Reader
	arena datum.Arena
	long  []byte
}

// reader reads what was flushed between two places.
func (t *tempFile) reader(from, to int64, room int) *tempReader {
	return &tempReader{r: bufio.NewReaderSize(io.NewSectionReader(t.f, from, to-from), room)}
}

// read fills a row; false at the end of the piece.
func (r *tempReader) read(row []datum.Datum) (bool, error) {
	for i := range row {
		tag, err := r.r.ReadByte()
		if err == io.EOF && i == 0 {
			return false, nil
		}
		if err != nil {
			return false, tempError(err)
		}
		if tag == 0 {
			row[i] = datum.Null
			continue
		}
		u, err := binary.ReadUvarint(r.r)
		if err != nil {
			return false, tempError(err)
		}
		if tag == 1 {
			row[i] = datum.Int(int64(u>>1) ^ -int64(u&1))
			continue
		}
		if cap(r.long) < int(u) {
			r.long = make([]byte, u)
		}
		r.long = r.long[:u]
		if _, err := io.ReadFull(r.r, r.long); err != nil {
			return false, tempError(err)
		}
		row[i] = datum.Bytes(r.arena.Copy(r.long))
	}
	return true, nil
}

// spills tells that nodes go to disk when they hold more than work_mem.
func (f *frame) spills() bool {
	return f.env.Temp != nil && f.env.WorkMem > 0 && f.env.Ctx.Tx == nil
}

// full tells that so many bytes are to go to disk.
func (f *frame) full(bytes int64) bool { return bytes > f.env.WorkMem && f.spills() }
