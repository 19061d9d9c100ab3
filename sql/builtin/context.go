package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// Ctx is everything a function may see besides its arguments.
type Ctx struct {
	// Format is how text forms are written and read; contracts have
	// datum.ContractFormat.
	Format *datum.Format
	// Tx describes the blockchain transaction; nil in local queries.
	Tx *TxInfo
	// Height and BlockTime name the snapshot that is read: block_height() and
	// block_timestamp() (timestamptz, microseconds since 2000-01-01).
	Height    uint64
	BlockTime int64
	// Session is what a local query may know of its connection; nil in a
	// contract.
	Session *SessionInfo
	// Budget counts steps; nil means unlimited.
	Budget *Budget
	// Notice delivers RAISE NOTICE and the like; nil drops them.
	Notice func(severity string, e *pgerr.Error)
	// Catalog answers the pg_get_* and *_is_visible functions; nil in a
	// contract.
	Catalog CatalogInfo
	// Sequences are those of schema private; nil in a contract.
	Sequences *Sequences
}

// Sequences is what nextval() and its like do. Their effects are outside of
// transactions. oid is that of the sequence.
type Sequences struct {
	Next func(oid datum.OID) (int64, error)
	// Current and Last answer for the session: 55000 before its first Next.
	Current func(oid datum.OID) (int64, error)
	Last    func() (int64, error)
	// Set makes value the last one (called) or the next one.
	Set func(oid datum.OID, value int64, called bool) error
}

// CatalogInfo is the catalog as the system information functions see it. All
// answers are for the snapshot of the query; ok is false where PostgreSQL
// returns null.
type CatalogInfo struct {
	// Text answers pg_get_expr, pg_get_indexdef, pg_get_constraintdef,
	// pg_get_functiondef, pg_get_viewdef, pg_get_function_arguments,
	// pg_get_function_identity_arguments, pg_get_function_result,
	// pg_get_triggerdef, pg_get_userbyid, obj_description, col_description,
	// shobj_description, pg_relation_size and its like (as a decimal number), by
	// name and integer arguments (booleans as 0 and 1).
	Text func(function string, args ...int64) (s string, ok bool)
	// Visible answers pg_table_is_visible and its like.
	Visible func(function string, oid datum.OID) (visible, ok bool)
	// Privilege answers has_table_privilege and its like, and pg_has_role. User
	// and object are names or decimal OIDs, as the call gave them; a column is
	// named by table, a zero byte, and its name or number.
	Privilege func(function string, user, object, privilege string) (bool, error)
	// Named answers functions that take names, by name and arguments as text
	// (OIDs as decimal numbers): pg_get_serial_sequence, acldefault,
	// pg_index_column_has_property. The result is a text form. May be nil.
	Named func(function string, args ...string) (s string, ok bool)
}

// TxInfo is the signed part of a transaction that contracts may read.
type TxInfo struct {
	ID        [32]byte
	User, Org string
	Time      int64 // the signed time, timestamptz
	// Signed is the canonical bytes of the transaction, with its signature. Only
	// system contracts look at them.
	Signed []byte
	// Draws counts the calls of tx_uuid() and tx_random() so far.
	Draws uint64
}

// SessionInfo is the connection of a local query.
type SessionInfo struct {
	User, SessionUser, Database string
	SearchPath                  []string // as current_schemas(false) reports it
	PID                         int32
	StatementTime               int64 // statement_timestamp(), timestamptz
	TxTime                      int64 // now(), timestamptz
	Clock                       func() int64
	// Setting answers current_setting; SetSetting set_config.
	Setting       func(name string) (string, bool)
	SetSetting    func(name, value string, local bool) error
	ServerVersion string // what version() answers
	ClientAddr    string // "" for a local socket
	StartTime     int64  // pg_postmaster_start_time()
	// TxID is what txid_current() answers; 0 where local transactions have none.
	TxID int64
	// Notify queues a notification, Channels lists what the session listens to;
	// nil where there is no LISTEN.
	Notify   func(channel, payload string) error
	Channels func() []string
}

// Budget is the step budget of one transaction. Steps count evaluated rows and
// calls, never time, so that running out is the same on every node.
type Budget struct {
	Left int64
}

// Spend takes n steps; when none are left it answers 54000, which no exception
// handler catches.
func (b *Budget) Spend(n int64) error {
	if b == nil {
		return nil
	}
	b.Left -= n
	if b.Left < 0 {
		return pgerr.New(pgerr.ProgramLimitExceeded, "transaction exceeds its limit of execution steps").
			WithHint("Split the work into several transactions, or raise max_steps through governance.")
	}
	return nil
}
