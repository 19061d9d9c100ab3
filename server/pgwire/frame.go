package pgwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	// smallMessage is PQ_SMALL_MESSAGE_LIMIT: the bound for messages that hold
	// names and numbers only.
	smallMessage = 10_000
	// startupMessage is MAX_STARTUP_PACKET_LENGTH.
	startupMessage = 10_000
	// readBuffer is the size of the read buffer; a message that fits is not
	// copied.
	readBuffer = 16 << 10
	// readStep is by how much the buffer of a larger message grows before more
	// bytes must have arrived.
	readStep = 64 << 10
)

// reader takes messages from a connection.
type reader struct {
	br       *bufio.Reader
	max      int
	consumed int    // bytes of the previous message still in br
	large    []byte // body of a message that does not fit into br
	bytes    int64  // bytes of messages read
	// passwords: a message with a password is expected.
	passwords bool
}

func newReader(r io.Reader, max int) *reader {
	return &reader{br: bufio.NewReaderSize(r, readBuffer), max: max}
}

// limit returns the largest body of a message of type typ, -1 if there is no
// such message (SocketBackend in postgres.c).
func (r *reader) limit(typ byte) int {
	switch typ {
	case 'Q', 'P', 'B', 'F', 'd':
		return r.max
	case 'X', 'C', 'D', 'E', 'H', 'S', 'c', 'f':
		return smallMessage
	case 'p':
		if r.passwords {
			return smallMessage
		}
	}
	return -1
}

// next returns a message; body is valid until the following call. A
// *pgerr.Error means that the stream cannot be followed any more, any other
// error that it broke off.
func (r *reader) next() (typ byte, body []byte, err error) {
	r.release()
	header, err := r.br.Peek(1)
	if err != nil {
		return 0, nil, err
	}
	typ = header[0]
	limit := r.limit(typ)
	if limit < 0 {
		return typ, nil, pgerr.New(pgerr.ProtocolViolation, "invalid frontend message type %d", typ)
	}
	header, err = r.br.Peek(5)
	if err != nil {
		return typ, nil, unexpected(err)
	}
	n := int(int32(binary.BigEndian.Uint32(header[1:]))) - 4
	if n < 0 {
		return typ, nil, pgerr.New(pgerr.ProtocolViolation, "invalid message length")
	}
	if n > limit {
		if limit == smallMessage {
			return typ, nil, pgerr.New(pgerr.ProtocolViolation, "invalid message length")
		}
		return typ, nil, pgerr.New(pgerr.ProgramLimitExceeded, "message of %d bytes exceeds the limit of %d bytes", n, limit)
	}
	r.bytes += int64(n) + 5
	body, err = r.body(n)
	return typ, body, err
}

// wait returns when the first byte of a message is there.
func (r *reader) wait() error {
	r.release()
	_, err := r.br.Peek(1)
	return err
}

func (r *reader) body(n int) ([]byte, error) {
	if n+5 <= readBuffer {
		b, err := r.br.Peek(n + 5)
		if err != nil {
			return nil, unexpected(err)
		}
		r.consumed = n + 5
		return b[5:], nil
	}
	if _, err := r.br.Discard(5); err != nil {
		return nil, unexpected(err)
	}
	buf := r.large[:0]
	for len(buf) < n {
		start := len(buf)
		step := min(n-start, max(readStep, start))
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r.br, buf[start:]); err != nil {
			return nil, unexpected(err)
		}
	}
	r.large = buf
	return buf, nil
}

// release gives up the previous message. Large buffers are not kept: most
// connections are idle most of the time.
func (r *reader) release() {
	if r.consumed > 0 {
		_, _ = r.br.Discard(r.consumed) // these bytes are buffered: it cannot fail
		r.consumed = 0
	}
	if cap(r.large) > 4*readStep {
		r.large = nil
	}
}

// startup returns the body of a startup packet, which has no type. A length
// out of bounds means that whoever is there speaks another protocol: there is
// no answer it would understand.
func (r *reader) startup() ([]byte, error) {
	r.release()
	header, err := r.br.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(header))) - 4
	if n < 4 || n > startupMessage {
		return nil, errBadStartup
	}
	b, err := r.br.Peek(n + 4)
	if err != nil {
		return nil, unexpected(err)
	}
	r.consumed = n + 4
	return b[4:], nil
}

var errBadStartup = errors.New("invalid length of startup packet")

// buffered reports whether bytes after the previous message have arrived.
func (r *reader) buffered() bool {
	r.release()
	return r.br.Buffered() > 0
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
