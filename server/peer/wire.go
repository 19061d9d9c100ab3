package peer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	serviceName   = "tallystick.Mesh"
	methodSubmit  = "Submit"
	methodForward = "Forward"
	methodDeliver = "Deliver"
	methodStatus  = "Status"

	dataField = 1

	// maxBatchTxs and maxBatchBytes bound the transactions of one message; a
	// single one may be larger.
	maxBatchTxs   = 256
	maxBatchBytes = 1 << 20
	// maxRequestBytes is the longest message to a server: a batch, or one
	// transaction.
	maxRequestBytes = maxBatchBytes + block.MaxTxBytes + 16*maxBatchTxs
	// maxResponseBytes is the longest message from a server: one block.
	maxResponseBytes = block.MaxBlockBytes + 64
)

// frame is the one kind of message.
type frame struct{ data [][]byte }

// codec writes and reads frames as protobuf does. It takes the name of protobuf's
// own, so that other implementations can talk to this one.
type codec struct{}

// Name implements encoding.Codec.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("peer: a %T is no frame", v)
	}
	n := 0
	for _, d := range f.data {
		n += protowire.SizeTag(dataField) + protowire.SizeBytes(len(d))
	}
	b := make([]byte, 0, n)
	for _, d := range f.data {
		b = protowire.AppendTag(b, dataField, protowire.BytesType)
		b = protowire.AppendBytes(b, d)
	}
	return b, nil
}

// Unmarshal implements encoding.Codec. The frame keeps b. Unknown fields are
// skipped, as in protobuf.
func (codec) Unmarshal(b []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("peer: a %T is no frame", v)
	}
	f.data = nil
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("peer: malformed message: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if number != dataField || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return fmt.Errorf("peer: malformed message: %w", protowire.ParseError(n))
			}
			b = b[n:]
			continue
		}
		d, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return fmt.Errorf("peer: malformed message: %w", protowire.ParseError(n))
		}
		if len(f.data) == maxBatchTxs {
			return fmt.Errorf("peer: a message of more than %d parts", maxBatchTxs)
		}
		f.data = append(f.data, d)
		b = b[n:]
	}
	return nil
}

var deliverStream = grpc.StreamDesc{StreamName: methodDeliver, ServerStreams: true}

func path(method string) string { return "/" + serviceName + "/" + method }

// heightFrame asks for blocks from a height on.
func heightFrame(h block.Height) *frame {
	return &frame{[][]byte{binary.BigEndian.AppendUint64(nil, h)}}
}

func (f *frame) height() (block.Height, error) {
	if len(f.data) != 1 || len(f.data[0]) != 8 {
		return 0, errors.New("peer: a height has 8 bytes")
	}
	return binary.BigEndian.Uint64(f.data[0]), nil
}

// txFrame carries transactions.
func txFrame(txs []*block.Tx) *frame {
	f := &frame{make([][]byte, len(txs))}
	for i, tx := range txs {
		f.data[i] = tx.Encode()
	}
	return f
}

// refusal is a *pgerr.Error on its way: why a transaction was not accepted.
type refusal struct {
	Code, Message, Detail, Hint string
}

// encodeRefusal is empty for a transaction that was accepted.
func encodeRefusal(e *pgerr.Error) []byte {
	if e == nil {
		return nil
	}
	b, err := json.Marshal(refusal{string(e.Code), e.Message, e.Detail, e.Hint})
	if err != nil {
		panic(fmt.Sprintf("peer: encoding a refusal: %v", err)) // strings have an encoding
	}
	return b
}

// decodeRefusal returns nil for a transaction that was accepted.
func decodeRefusal(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var r refusal
	if err := json.Unmarshal(b, &r); err != nil || len(r.Code) != 5 {
		return fmt.Errorf("peer: a refusal that makes no sense: %.100q", b)
	}
	e := pgerr.New(pgerr.Code(r.Code), "%s", r.Message)
	e.Detail, e.Hint = r.Detail, r.Hint
	return e
}

// Status is what a process of the network tells about itself.
type Status struct {
	Org      string       `json:"org"`
	Name     string       `json:"name"`
	Role     string       `json:"role"`
	Network  string       `json:"network"`
	Height   block.Height `json:"height"`
	Hash     string       `json:"hash"` // of the last block
	State    string       `json:"state_hash,omitempty"`
	Waiting  int          `json:"waiting"`
	Protocol string       `json:"protocol,omitempty"`
	Version  string       `json:"version,omitempty"`
	// Leader is who leads the orderers, as far as this one knows.
	Leader string `json:"leader,omitempty"`
}

// statusBytes bounds a status.
const statusBytes = 1 << 16
