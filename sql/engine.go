package sql

import (
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// ServerVersion is what clients are told; PostgreSQL 15 is the reference.
const ServerVersion = "15.0"

// Version is what version() answers: clients read the number after "PostgreSQL".
const Version = "PostgreSQL " + ServerVersion + " (Tallystick)"

// Database is the name of the one database.
const Database = "tallystick"

// Engine answers the statements of all sessions of a node.
type Engine struct {
	store     *mvcc.Store
	catalogs  catalog.Cache
	functions *exec.Functions
	private   *Private // nil: there is no schema private
	opts      EngineOptions
	temp      *exec.TempFiles // nil: what exceeds work_mem stays in memory
	hub       hub
}

// EngineOptions is what the layers above lend to the engine.
type EngineOptions struct {
	// BlockTime is the timestamp (timestamptz) of a block; nil = 0.
	BlockTime func(height uint64) int64
	// StartTime is pg_postmaster_start_time() and Clock the clock of sessions
	// (timestamptz); contracts never see them.
	StartTime int64
	Clock     func() int64
	// Private is schema private; nil = none.
	Private *Private
	// Halted is why this node must not be believed, an error for clients; nil as long
	// as nothing is known against it. See tallystick.forensics.
	Halted func() error
	// ValidateFunction checks the body of a function that is being created.
	ValidateFunction func(f *catalog.Func, c *catalog.Catalog) error
}

// NewEngine makes an engine over a store; functions runs user-defined ones.
func NewEngine(store *mvcc.Store, functions *exec.Functions, opts EngineOptions) *Engine {
	return &Engine{store: store, functions: functions, private: opts.Private, opts: opts}
}

// UseTempFiles tells where local queries keep what exceeds work_mem, before the
// first session is opened.
func (e *Engine) UseTempFiles(t *exec.TempFiles) { e.temp = t }

// Catalog returns the catalog at the snapshot of txn.
func (e *Engine) Catalog(txn *mvcc.Txn) (*catalog.Catalog, error) { return e.catalogs.At(txn) }

// SearchPath is the default search path.
var SearchPath = []string{catalog.Blockchain, catalog.Private}

// ContractEnv makes the environment of one blockchain transaction over txn:
// no session, no setting, no clock. The caller fills in limits and budget.
func (e *Engine) ContractEnv(txn *mvcc.Txn, xid uint64, c *catalog.Catalog, tx *builtin.TxInfo) *exec.Env {
	env := &exec.Env{Txn: txn, XID: xid, Catalog: c, Functions: e.functions}
	env.Ctx.Format = &datum.ContractFormat
	env.Ctx.Tx = tx
	if tx != nil && tx.Org != "" {
		env.Role = catalog.Role{Org: tx.Org, User: tx.User}
	}
	return env
}
