package raft

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	hraft "github.com/hashicorp/raft"
)

const (
	logName = "log" // directory of the log; snapshots are beside it

	keptSnapshots = 2
	cachedEntries = 128 // in memory, for followers that are up to date
	// maxAppendEntries is how many entries go to a follower, and to the disk, at
	// once.
	maxAppendEntries = 32
	rpcTimeout       = 10 * time.Second // to transfer them
	// maxRPCsInFlight is far more than the pipeline has entries. With the library's
	// default of 2 a leader that meets a newer term can wait for ever for a
	// response that nobody reads, and then never shuts down; this many slots
	// cannot fill up before it notices.
	maxRPCsInFlight = 130
	maxIdleConns    = 3
)

// startRaft opens log and snapshots and starts the library.
func (o *Orderer) startRaft() error {
	dir := filepath.Join(o.opts.Dir, logName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	logger := newLogger(o.log)
	logs, err := openLog(vfs.Default, dir, o.log, o.stop)
	if err != nil {
		return fmt.Errorf("raft: opening the log in %s: %w", dir, err)
	}
	o.onClose(logs)
	snapshots, err := hraft.NewFileSnapshotStoreWithLogger(o.opts.Dir, keptSnapshots, logger)
	if err != nil {
		return fmt.Errorf("raft: opening snapshots in %s: %w", o.opts.Dir, err)
	}
	from, err := o.lastSnapshot(snapshots)
	if err != nil {
		return err
	}
	m, err := newMachine(o, from)
	if err != nil {
		return err
	}
	cache, err := hraft.NewLogCache(cachedEntries, logs)
	if err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	o.entries = cache
	transport := hraft.NewNetworkTransportWithConfig(&hraft.NetworkTransportConfig{
		Stream: o.mux, MaxPool: maxIdleConns, MaxRPCsInFlight: maxRPCsInFlight, Timeout: rpcTimeout, Logger: logger,
	})
	conf := o.libraryConfig(logger)
	if err := o.bootstrap(conf, cache, logs, snapshots, transport); err != nil {
		return err
	}
	if o.raft, err = hraft.NewRaft(conf, m, cache, logs, snapshots, transport); err != nil {
		return fmt.Errorf("raft: starting: %w", err)
	}
	return nil
}

func (o *Orderer) libraryConfig(logger hclog.Logger) *hraft.Config {
	conf := hraft.DefaultConfig()
	conf.LocalID = o.id
	conf.HeartbeatTimeout = o.opts.ElectionTimeout
	conf.ElectionTimeout = o.opts.ElectionTimeout
	conf.LeaderLeaseTimeout = o.opts.ElectionTimeout / 2
	conf.CommitTimeout = o.opts.CommitInterval
	conf.MaxAppendEntries = maxAppendEntries
	conf.BatchApplyCh = true // entries that come during one sync share the next
	conf.SnapshotThreshold = o.opts.SnapshotEntries
	conf.TrailingLogs = o.opts.TrailingEntries
	conf.SnapshotInterval = o.opts.SnapshotCheck
	conf.ShutdownOnRemove = false // it may be admitted again
	// The machine resumes by itself: it needs other orderers when the store is
	// behind the snapshot.
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	conf.Logger = logger
	return conf
}

// bootstrap writes the first configuration unless there is a state.
func (o *Orderer) bootstrap(conf *hraft.Config, logs hraft.LogStore, stable hraft.StableStore, snapshots hraft.SnapshotStore, transport hraft.Transport) error {
	if len(o.opts.Bootstrap) == 0 {
		return nil
	}
	exists, err := hraft.HasExistingState(logs, stable, snapshots)
	if err != nil {
		return fmt.Errorf("raft: reading the log: %w", err)
	}
	if exists {
		return nil
	}
	var c hraft.Configuration
	for _, p := range o.opts.Bootstrap {
		c.Servers = append(c.Servers, hraft.Server{ID: serverID(p.Key), Address: hraft.ServerAddress(p.Address)})
	}
	if err := hraft.BootstrapCluster(conf, logs, stable, snapshots, transport, c); err != nil {
		return fmt.Errorf("raft: writing the first configuration: %w", err)
	}
	return nil
}

// newLogger passes what the library logs on to slog.
func newLogger(to *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(sink{to.With("component", "raft")})
	return l
}

// sink receives the library's messages.
type sink struct{ to *slog.Logger }

var levels = map[hclog.Level]slog.Level{
	hclog.Trace: slog.LevelDebug - 4,
	hclog.Debug: slog.LevelDebug,
	// What the library finds worth telling is of interest when something is wrong.
	hclog.Info:  slog.LevelDebug,
	hclog.Warn:  slog.LevelWarn,
	hclog.Error: slog.LevelError,
}

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	ctx, at := context.Background(), levels[level]
	if !s.to.Enabled(ctx, at) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.to.Log(ctx, at, strings.TrimSpace(name+" "+msg), args...)
}
