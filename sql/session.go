package sql

import (
	"context"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// SessionOptions is what a connection brings along.
type SessionOptions struct {
	User, Database string
	// Network is the id of the network in hexadecimal: SHOW tallystick.network.
	Network string
	// Org is the user's organization; empty: nothing that was granted is asked for.
	Org             string
	ApplicationName string
	ClientAddr      string
	PID             int32
	// Notice receives NOTICE, WARNING and so on, in order.
	Notice func(severity string, e *pgerr.Error)
	// Parameter is told when a reported setting changes (ParameterStatus).
	Parameter func(name, value string)
	// Submit carries out a call; nil refuses calls with 25006.
	Submit func(ctx context.Context, call *Call) (*Outcome, error)
	// Hold executes a call inside a transaction block, on the state as of a
	// height, and keeps it until the block's end. Nil if calls cannot wait: then
	// they commit at once, with a warning.
	Hold func(ctx context.Context, call *Call, height uint64) (*Held, error)
	// Envelope hands over the bytes of a transaction that the client signed; the
	// one row of the outcome is the result's canonical bytes. Nil refuses it.
	Envelope func(ctx context.Context, raw []byte) (*Outcome, error)
	// Script carries out DDL that an admin typed; nil refuses it with 42501.
	Script func(ctx context.Context, ddl string) (*Outcome, error)
	// Wake is told, by any goroutine, that TakeNotifications has something after
	// it had nothing. It must not wait.
	Wake func()
	// InsertRows, if not nil, carries out COPY FROM into tables of every schema.
	InsertRows InsertRows
}

// Call is a statement that is a blockchain transaction.
type Call struct {
	Schema, Name string
	ArgTypes     []datum.Type
	Args         []datum.Datum
	// Columns is the shape of the rows that the function gives.
	Columns []plan.Column
}

// Outcome is what became of a submitted transaction that committed.
type Outcome struct {
	// Rows is the result of the call, in the types of Call.Columns.
	Rows [][]datum.Datum
	// Height is the block of the transaction.
	Height uint64
}

// Held is a call that was executed and is not submitted yet.
type Held struct {
	Rows [][]datum.Datum // its result
	// Commit submits it and waits: nil means that it committed with this result.
	Commit func(ctx context.Context) error
}

// Session is one connection. It is not safe for concurrent use.
type Session struct {
	engine   *Engine
	opts     SessionOptions
	settings settings
	format   datum.Format
	prepared map[string]*Prepared
	block    txBlock
	seen     introspected
	info     builtin.SessionInfo
	noticed  func(severity string, e *pgerr.Error) // notice as a value, made once
	plans    planCache
	cursors  map[string]*cursor
	channels []string // that it listens to, in order
	notes    []note   // of the transaction that is open
	inbox    inbox
	// insertRows carries out COPY into schema private; nil refuses it.
	insertRows InsertRows

	sequences sessionSequences
	temp      sessionTemp
	implicit  implicitBlock
}

// txBlock is the state of a transaction block (BEGIN ... COMMIT).
type txBlock struct {
	open, failed bool
	called       bool // a call was made in it
	held         *Held
	heldAfter    int // savepoints that are older than the call held
	snapshot     mvcc.Snapshot
	pinned       bool // snapshot is set
	start        int64
	savepoints   []savepoint
	saved        []savedSetting // what SET changed, oldest first
	private      *localTxn      // nil before the first statement
	readOnly     bool
}

// savepoint is a SAVEPOINT: its name, how much SET had changed before, and the
// state of the private transaction.
type savepoint struct {
	name    string
	saved   int
	private localMark
}

// NewSession opens a session.
func (e *Engine) NewSession(opts SessionOptions) *Session {
	s := &Session{engine: e, opts: opts, prepared: map[string]*Prepared{}}
	s.settings.init(s)
	if e.private != nil {
		s.insertRows = s.insertLocal
	}
	return s
}

// Close ends the session.
func (s *Session) Close() {
	s.prepared = nil
	s.closeCursors(func(*cursor) bool { return true })
	s.unlistenAll()
	s.block.private.drop()
	s.block = txBlock{}
	s.implicit.private.drop()
	s.implicit = implicitBlock{}
	// What cannot be dropped now goes when the store is opened again.
	_ = s.dropTemporary()
}

// User returns the name that the session was opened for.
func (s *Session) User() string { return s.opts.User }

// Format is how values of this session are written and read.
func (s *Session) Format() *datum.Format {
	s.format.Now = s.engine.now()
	return &s.format
}

// TxStatus is what ReadyForQuery reports: I idle, T in a transaction block, E
// in a failed one.
func (s *Session) TxStatus() byte {
	switch {
	case !s.block.open:
		return 'I'
	case s.block.failed:
		return 'E'
	}
	return 'T'
}

// Fail tells the session that a statement failed: an open transaction block
// accepts nothing but its end from now on.
func (s *Session) Fail(error) {
	if s.block.open {
		s.block.failed = true
	}
}

// Split parses a script of the simple query protocol.
func (s *Session) Split(query string) ([]parse.Statement, error) {
	if e := s.plans.find(query); e != nil {
		return e.statements, nil
	}
	list, err := parse.Statements(query)
	if err == nil {
		s.plans.add(query, list)
	}
	return list, err
}

// Prepared is a statement that was analyzed: its parameters and its result.
type Prepared struct {
	Name      string
	Statement parse.Statement
	declared  []datum.OID
	params    []datum.Type
	columns   []plan.Column
	kind      statementKind
	query     *preparedQuery // a query or call; nil for other statements
	// run carries out a statement of kindRun.
	run  func(ctx context.Context, args []datum.Datum) (rowSource, error)
	copy *Copy // of a COPY
}

// Params returns the types of the parameters.
func (p *Prepared) Params() []datum.Type { return p.params }

// Columns describes the rows of the result; nil if there are none.
func (p *Prepared) Columns() []plan.Column { return p.columns }

// Prepare analyzes a statement and keeps it under a name; the empty name is
// the unnamed statement, which the next one replaces. params are the declared
// types of $1, ...; 0 = to be inferred. A statement without any text gives nil.
func (s *Session) Prepare(ctx context.Context, name string, st parse.Statement, params []datum.OID) (*Prepared, error) {
	if _, ok := s.prepared[name]; ok && name != "" {
		return nil, pgerr.New(pgerr.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", name)
	}
	p := &Prepared{Name: name, Statement: st, declared: params}
	if err := s.analyze(ctx, p); err != nil {
		return nil, err
	}
	s.prepared[name] = p
	return p, nil
}

// Statement finds a prepared statement: 26000 if there is none.
func (s *Session) Statement(name string) (*Prepared, error) {
	p, ok := s.prepared[name]
	if !ok {
		if name == "" {
			return nil, pgerr.New(pgerr.InvalidSQLStatementName, "unnamed prepared statement does not exist")
		}
		return nil, pgerr.New(pgerr.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", name)
	}
	return p, nil
}

// Deallocate forgets a prepared statement, if there is one.
func (s *Session) Deallocate(name string) { delete(s.prepared, name) }

// Portal is a prepared statement with its arguments, while it runs.
type Portal struct {
	session  *Session
	prepared *Prepared
	args     []datum.Datum
	source   rowSource
	tag      string
	done     bool
}

// rowSource gives the rows of a portal: a running query, or rows at hand.
type rowSource interface {
	next() ([]datum.Datum, error)
	close()
}

// Bind makes a portal. Nothing runs before the first Next.
func (s *Session) Bind(_ context.Context, p *Prepared, args []datum.Datum) (*Portal, error) {
	if len(args) != len(p.params) {
		return nil, pgerr.New(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement \"%s\" requires %d", len(args), p.Name, len(p.params))
	}
	if err := s.halted(p); err != nil {
		return nil, err
	}
	return &Portal{session: s, prepared: p, args: args}, nil
}

// Columns describes the rows of the portal.
func (pt *Portal) Columns() []plan.Column { return pt.prepared.columns }

// Next runs the statement up to its next row; nil marks the end. The row is
// valid until the next call.
func (pt *Portal) Next(ctx context.Context) ([]datum.Datum, error) {
	if pt.done {
		return nil, nil
	}
	if pt.source == nil {
		if err := pt.start(ctx); err != nil {
			pt.done = true
			return nil, err
		}
	}
	row, err := pt.source.next()
	if err != nil || row == nil {
		pt.finish(err)
		return nil, err
	}
	return row, nil
}

// Start runs what has to be done before the first row of a statement that is not
// a query, so that its errors come before the description of its rows, as in
// PostgreSQL. Next does it otherwise.
func (pt *Portal) Start(ctx context.Context) error {
	if k := pt.prepared.kind; k != kindRun && k != kindUtility || pt.done || pt.source != nil {
		return nil
	}
	err := pt.start(ctx)
	pt.done = err != nil
	return err
}

// Tag is the command tag, once Next has returned nil.
func (pt *Portal) Tag() string { return pt.tag }

// Close ends the portal, finished or not.
func (pt *Portal) Close() { pt.finish(nil) }

func (pt *Portal) finish(err error) {
	if pt.source != nil {
		if t, ok := pt.source.(tagger); ok && err == nil {
			pt.tag = t.commandTag()
		}
		pt.source.close()
		pt.source = nil
	}
	if !pt.done {
		pt.done = true
		pt.session.statementEnded(err)
	}
}

// tagger is a source whose tag depends on what it gave.
type tagger interface{ commandTag() string }

// rows is a source of rows at hand.
type rows struct {
	list [][]datum.Datum
	tag  string
}

func (r *rows) next() ([]datum.Datum, error) {
	if len(r.list) == 0 {
		return nil, nil
	}
	row := r.list[0]
	r.list = r.list[1:]
	return row, nil
}

func (r *rows) close()             {}
func (r *rows) commandTag() string { return r.tag }

// done is a source of a statement without rows.
func done(tag string) *rows { return &rows{tag: tag} }

func (s *Session) notice(severity string, e *pgerr.Error) {
	if s.opts.Notice != nil {
		s.opts.Notice(severity, e)
	}
}

// sessionInfo is what functions may know of the session. It is one value, brought
// up to date by every statement.
func (s *Session) sessionInfo() *builtin.SessionInfo {
	i := &s.info
	if i.Clock == nil {
		*i = builtin.SessionInfo{
			User: s.opts.User, SessionUser: s.opts.User, Database: Database, PID: s.opts.PID,
			Clock: s.engine.now, Setting: s.settings.get, SetSetting: s.setSetting,
			ServerVersion: Version, ClientAddr: s.opts.ClientAddr, StartTime: s.engine.opts.StartTime,
			Notify: s.notifyFunc, Channels: s.listening,
		}
	}
	i.SearchPath = s.settings.searchPath()
	i.StatementTime = s.engine.now()
	i.TxTime = i.StatementTime
	if s.block.open {
		i.TxTime = s.block.start
	}
	return i
}

func (e *Engine) now() int64 {
	if e.opts.Clock == nil {
		return 0
	}
	return e.opts.Clock()
}
