package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/pki"
)

// Remote is a member of the network to connect to.
type Remote struct {
	User    identity.UserID
	Role    identity.Role
	Address string // host:port
}

// reconnect waits between attempts: the library adds jitter.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 3 * time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// remote is a connection to another member, made when it is needed and again when
// it is lost.
type remote struct {
	Remote
	conn *grpc.ClientConn

	mu      sync.Mutex
	avoid   time.Time // it failed or misbehaved: asked last until then
	height  block.Height
	lastErr error
}

// dial prepares a connection; nothing is sent yet.
func dial(r Remote, verifier *pki.Verifier, pair *pki.KeyPair) (*remote, error) {
	conn, err := grpc.NewClient("passthrough:///"+r.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(verifier.Client(pair, r.User, r.Role))),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(maxResponseBytes), grpc.MaxCallSendMsgSize(maxRequestBytes)),
		grpc.WithConnectParams(reconnect),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, fmt.Errorf("peer: %s at %s: %w", r.User, r.Address, err)
	}
	return &remote{Remote: r, conn: conn}, nil
}

// blame notes that a member failed.
func (r *remote) blame(err error, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.avoid, r.lastErr = time.Now().Add(d), err
}

// avoided reports whether the member is to be asked last.
func (r *remote) avoided(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.avoid)
}

// claimed is the height that the member last told.
func (r *remote) claimed() block.Height {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.height
}

// submit hands over transactions and returns a result for each.
func (r *remote) submit(ctx context.Context, txs []*block.Tx) ([]error, error) {
	out := &frame{}
	if err := r.conn.Invoke(ctx, path(methodSubmit), txFrame(txs), out); err != nil {
		return nil, err
	}
	if len(out.data) != len(txs) {
		return nil, fmt.Errorf("peer: %s answered %d transactions with %d results", r.User, len(txs), len(out.data))
	}
	results := make([]error, len(txs))
	for i, b := range out.data {
		results[i] = decodeRefusal(b)
	}
	return results, nil
}

func (r *remote) forward(ctx context.Context, txs []*block.Tx) error {
	return r.conn.Invoke(ctx, path(methodForward), txFrame(txs), &frame{})
}

func (r *remote) status(ctx context.Context) (Status, error) {
	out := &frame{}
	if err := r.conn.Invoke(ctx, path(methodStatus), &frame{}, out); err != nil {
		return Status{}, err
	}
	if len(out.data) != 1 || len(out.data[0]) > statusBytes {
		return Status{}, errors.New("peer: a status that makes no sense")
	}
	var s Status
	if err := json.Unmarshal(out.data[0], &s); err != nil {
		return s, fmt.Errorf("peer: a status that makes no sense: %w", err)
	}
	r.mu.Lock()
	r.height = s.Height
	r.mu.Unlock()
	return s, nil
}

// blocks calls f with the blocks from a height on until it fails.
func (r *remote) blocks(ctx context.Context, from block.Height, f func(*block.Block) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.conn.NewStream(ctx, &deliverStream, path(methodDeliver))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(heightFrame(from)); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		in := &frame{}
		if err := stream.RecvMsg(in); err != nil {
			return err
		}
		if len(in.data) != 1 {
			return errors.New("peer: a message without a block")
		}
		b, err := block.DecodeBlock(in.data[0])
		if err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// AskStatus connects to a member, asks for its status and disconnects.
func AskStatus(ctx context.Context, r Remote, verifier *pki.Verifier, pair *pki.KeyPair) (Status, error) {
	c, err := dial(r, verifier, pair)
	if err != nil {
		return Status{}, err
	}
	defer c.conn.Close()
	return c.status(ctx)
}
