package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/pki"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	// maxConnections bounds the connections to a server: some for each member of
	// a large network.
	maxConnections = 1024
	// maxStreams bounds the calls of one connection at a time.
	maxStreams = 128
	// handshakeTimeout is how long a connection may take to say who it is.
	handshakeTimeout = 10 * time.Second
	// recheck is how often the identity behind a stream is looked at again.
	recheck = time.Second

	keepaliveTime    = 5 * time.Second
	keepaliveTimeout = 5 * time.Second
)

// ServerOptions say what a server answers with.
type ServerOptions struct {
	Verifier *pki.Verifier
	Pair     *pki.KeyPair
	// Submit hands a transaction to the ordering service: it is that of
	// ordering.Service. Nil at a node, which is no orderer.
	Submit func(ctx context.Context, tx *block.Tx) error
	// Forward takes a transaction that another node has accepted, and must not
	// wait. Nil at an orderer.
	Forward func(tx *block.Tx)
	// Deliver gives blocks, as ordering.Service does.
	Deliver func(ctx context.Context, from block.Height, f func(*block.Block) error) error
	Status  func() Status
	Logger  *slog.Logger
}

// Server answers other members of the network.
type Server struct {
	opts ServerOptions
	grpc *grpc.Server
}

// meshServer is what gRPC wants to know the type of a handler by.
type meshServer interface{ mesh() }

func (*Server) mesh() {}

// NewServer makes a server.
func NewServer(opts ServerOptions) (*Server, error) {
	if opts.Verifier == nil || opts.Pair == nil || opts.Deliver == nil || opts.Status == nil {
		return nil, errors.New("peer: verifier, key pair, Deliver and Status are needed")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &Server{opts: opts}
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(opts.Verifier.Server(opts.Pair))),
		grpc.ForceServerCodec(codec{}),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxResponseBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
	)
	s.grpc.RegisterService(s.description(), s)
	return s, nil
}

// Serve accepts connections until the listener fails or Close is called, which
// gives nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(netutil.LimitListener(l, maxConnections))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Close ends all connections.
func (s *Server) Close() error {
	s.grpc.Stop()
	return nil
}

type unary func(ctx context.Context, in *frame) (*frame, error)

func (s *Server) description() *grpc.ServiceDesc {
	method := func(name string, f unary, roles ...identity.Role) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (out any, err error) {
			defer s.contain(name, &err)
			if err := s.admit(ctx, roles...); err != nil {
				return nil, err
			}
			in := &frame{}
			if err := decode(in); err != nil {
				return nil, err
			}
			return f(ctx, in)
		}}
	}
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*meshServer)(nil),
		Methods: []grpc.MethodDesc{
			method(methodSubmit, s.submit, identity.Node),
			method(methodForward, s.forward, identity.Node),
			method(methodStatus, s.status),
		},
		Streams: []grpc.StreamDesc{{StreamName: methodDeliver, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) (err error) {
				defer s.contain(methodDeliver, &err)
				return s.deliver(stream)
			}}},
	}
}

// contain turns a panic into an error of one call.
func (s *Server) contain(method string, err *error) {
	if p := recover(); p != nil {
		s.opts.Logger.Error("panic in a call of another member", "method", method, "panic", fmt.Sprint(p))
		*err = status.Error(codes.Internal, "internal error")
	}
}

// admit checks who calls, at every call: keys may have been revoked since the
// connection was made.
func (s *Server) admit(ctx context.Context, roles ...identity.Role) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return status.Error(codes.Unauthenticated, "no peer")
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return status.Error(codes.Unauthenticated, "no TLS")
	}
	if _, err := s.opts.Verifier.Check(info.State.PeerCertificates, roles...); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

// submit hands transactions to the ordering service. The answer has a part for
// each: empty if it was accepted. While there is no room it waits, which is how the
// sender is slowed down.
func (s *Server) submit(ctx context.Context, in *frame) (*frame, error) {
	if s.opts.Submit == nil {
		return nil, status.Error(codes.Unimplemented, "this is no orderer")
	}
	// What does not fit in time is answered before the sender gives up on this
	// orderer: being full is no failure.
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*2/3)
		defer cancel()
	}
	out := &frame{make([][]byte, len(in.data))}
	for i, raw := range in.data {
		tx, err := block.DecodeTx(raw)
		if err != nil {
			out.data[i] = encodeRefusal(pgerr.New(pgerr.InvalidBinaryRepresentation, "malformed transaction").WithDetail("%v", err))
			continue
		}
		if err := s.opts.Submit(ctx, tx); err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				return nil, status.Error(codes.Unavailable, err.Error())
			}
			out.data[i] = encodeRefusal(e)
		}
	}
	return out, nil
}

func (s *Server) forward(_ context.Context, in *frame) (*frame, error) {
	if s.opts.Forward == nil {
		return nil, status.Error(codes.Unimplemented, "this is no node")
	}
	for _, raw := range in.data {
		tx, err := block.DecodeTx(raw)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		s.opts.Forward(tx)
	}
	return &frame{}, nil
}

func (s *Server) status(context.Context, *frame) (*frame, error) {
	b, err := json.Marshal(s.opts.Status())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &frame{[][]byte{b}}, nil
}

// deliver sends blocks as they become durable.
func (s *Server) deliver(stream grpc.ServerStream) error {
	ctx := stream.Context()
	roles := []identity.Role{identity.Node, identity.Orderer}
	if err := s.admit(ctx, roles...); err != nil {
		return err
	}
	in := &frame{}
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	from, err := in.height()
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	checked := time.Now()
	err = s.opts.Deliver(ctx, from, func(b *block.Block) error {
		if time.Since(checked) > recheck {
			if err := s.admit(ctx, roles...); err != nil {
				return err
			}
			checked = time.Now()
		}
		return stream.SendMsg(&frame{[][]byte{b.Encode()}})
	})
	if _, ok := status.FromError(err); ok || err == nil {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}
