package sql

import (
	"context"
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// preparedQuery is a planned query or call. It belongs to one catalog and one
// set of settings and is made again when they differ.
type preparedQuery struct {
	catalog *catalog.Catalog
	key     planKey // search_path and formats at plan time
	program *exec.Program
	call    *plan.ContractCall
	args    []*exec.ExprProgram // of the call
	virtual bool                // reads pg_catalog
	writes  bool                // may write schema private
}

// analyzeQuery plans a query or call for its parameters and columns.
func (s *Session) analyzeQuery(ctx context.Context, p *Prepared) error {
	w, err := s.openWork()
	if err != nil {
		return err
	}
	defer w.close()
	e := s.plans.entry(p)
	if e.fits(w.catalog, s.planKey()) {
		p.kind, p.params, p.columns, p.query = e.plan.kind, e.plan.params, e.plan.columns, e.plan.query
		return nil
	}
	if err := s.planQuery(p, w.catalog); err != nil {
		return err
	}
	e.keep(p)
	return nil
}

// resolveType finds a type by the names that the session sees.
func (s *Session) resolveType(tn *pg.TypeName) (datum.Type, error) {
	w, err := s.openWork()
	if err != nil {
		return datum.Type{}, err
	}
	defer w.close()
	t, _, err := plan.FindType(tn, w.catalog, s.path())
	return t, err
}

func (s *Session) planOptions(c *catalog.Catalog, p *Prepared) *plan.Options {
	o := &plan.Options{
		Catalog: c, SearchPath: s.path(), Virtual: pgcatalog.Find, Sequence: pgcatalog.SequenceRelation,
		Format: s.literalFormat(c), Script: p.Statement.Script,
	}
	for _, oid := range p.declared {
		t := datum.Type{}
		if d := c.TypeByOID(oid); d != nil && d != datum.Unknown {
			t = datum.T(d)
		}
		o.Params = append(o.Params, t)
	}
	return o
}

// literalFormat is how literals are read: with the session's settings and the
// clock for 'now' and its like.
func (s *Session) literalFormat(c *catalog.Catalog) *datum.Format {
	f := s.format
	f.Now = s.engine.now()
	s.useRegNames(&f, &pgcatalog.Env{Catalog: c, Database: Database})
	return &f
}

// planQuery plans p against a catalog.
func (s *Session) planQuery(p *Prepared, c *catalog.Catalog) error {
	q := &preparedQuery{catalog: c, key: s.planKey()}
	opts := s.planOptions(c, p)
	if call := p.Statement.Node.GetCallStmt(); call != nil {
		cc, err := plan.CallStatement(call, opts)
		if err != nil {
			return err
		}
		if !isContract(cc.Func) {
			return s.useLocalCall(p, q, cc)
		}
		return s.usePlan(p, q, cc)
	}
	pl, err := plan.Statement(p.Statement.Node, opts)
	if err != nil {
		return err
	}
	if pl.Writes && !pl.Local {
		return refuseWrite(p.Statement.Node, pl)
	}
	if cc := pl.AsCall(); cc != nil && isContract(cc.Func) {
		return s.usePlan(p, q, cc)
	}
	if f := pl.VolatileCall(); f != nil && !isLocal(f) {
		return refuseInside(f)
	}
	if q.program, err = exec.CompileLocal(pl); err != nil {
		return err
	}
	q.virtual = pl.ReadsVirtual()
	q.writes = pl.Writes || pl.CallsVolatile(isLocal)
	p.kind, p.params, p.columns, p.query = kindQuery, pl.Params, pl.Columns, q
	if p.columns == nil && !pl.Writes {
		p.columns = []plan.Column{}
	}
	return nil
}

// isContract tells that a call of f is a blockchain transaction.
func isContract(f *catalog.Func) bool {
	return f.Schema == catalog.Blockchain && (f.Volatility == "v" || f.Kind == catalog.Procedure)
}

func refuseInside(f *catalog.Func) error {
	return pgerr.New(pgerr.FeatureNotSupported, "volatile function %s cannot be called inside a larger query", f.Name).
		WithHint("A call of a contract is a blockchain transaction: write SELECT %s(...) as a statement of its own, or declare the function STABLE if it only reads.", f.Name)
}

// usePlan makes p a call.
func (s *Session) usePlan(p *Prepared, q *preparedQuery, cc *plan.ContractCall) error {
	if f := cc.VolatileArgument(); f != nil && !isLocal(f) {
		return refuseInside(f)
	}
	q.call = cc
	for _, a := range cc.Args {
		x, err := exec.CompileExpr(a, cc.Slots, cc.Subqueries, cc.CTEs)
		if err != nil {
			return err
		}
		q.args = append(q.args, x)
	}
	p.kind, p.params, p.columns, p.query = kindCall, cc.Params, cc.Columns, q
	return nil
}

// refuseWrite explains why a single INSERT, UPDATE or DELETE does not work.
func refuseWrite(n *pg.Node, pl *plan.Plan) error {
	verb, table := "change", "blockchain tables"
	if v := target(n); v != nil {
		table = fmt.Sprintf("table \"%s\"", v.Relname)
	}
	switch n.Node.(type) {
	case *pg.Node_InsertStmt:
		verb = "insert into"
	case *pg.Node_UpdateStmt:
		verb = "update"
	case *pg.Node_DeleteStmt:
		verb = "delete from"
	case *pg.Node_MergeStmt:
		verb = "merge into"
	}
	return pgerr.New(pgerr.InsufficientPrivilege, "cannot %s %s directly: rows in schema blockchain are changed by contracts only", verb, table).
		WithHint("Put the statement into a function, have it deployed (CREATE FUNCTION as admin, or create_deploytx), and call it with SELECT.")
}

func target(n *pg.Node) *pg.RangeVar {
	switch n := n.Node.(type) {
	case *pg.Node_InsertStmt:
		return n.InsertStmt.Relation
	case *pg.Node_UpdateStmt:
		return n.UpdateStmt.Relation
	case *pg.Node_DeleteStmt:
		return n.DeleteStmt.Relation
	case *pg.Node_MergeStmt:
		return n.MergeStmt.Relation
	}
	return nil
}

// snapshot is what the next statement reads: the pinned one of a transaction
// block, the height of tallystick.height, or the newest block.
func (s *Session) snapshot() (mvcc.Snapshot, error) {
	if s.block.pinned {
		return s.block.snapshot, nil
	}
	height := s.engine.store.Height()
	if h := s.settings.height; h >= 0 {
		if uint64(h) > height {
			return mvcc.Snapshot{}, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "block %d does not exist yet", h).
				WithHint("The newest block is %d; RESET tallystick.height reads it.", height)
		}
		height = uint64(h)
	}
	snap := mvcc.AsOf(height)
	if s.block.open {
		s.block.snapshot, s.block.pinned = snap, true
	}
	return snap, nil
}

// localEnv makes the environment of a local query.
func (s *Session) localEnv(ctx context.Context, w *work, virtual bool) (*exec.Env, error) {
	snap, txn, c := w.snap, w.txn, w.catalog
	env := &w.room
	*env = exec.Env{Txn: txn, Catalog: c, Functions: s.engine.functions, ReadOnly: true}
	if s.opts.Org != "" {
		env.Role = catalog.Role{Org: s.opts.Org, User: s.opts.User}
	}
	s.lendPrivate(env, w)
	env.Ctx.Format = &s.format
	env.Ctx.Height = snap.Height
	if s.engine.opts.BlockTime != nil {
		env.Ctx.BlockTime = s.engine.opts.BlockTime(snap.Height)
	}
	env.Ctx.Session = s.sessionInfo()
	if s.noticed == nil {
		s.noticed = s.notice
	}
	env.Ctx.Notice = s.noticed
	seen, info, err := s.introspect(c, txn, virtual)
	if err != nil {
		return nil, err
	}
	env.Virtual = seen
	env.Ctx.Catalog = info
	env.WorkMem, env.Temp = s.settings.workMem, s.engine.temp
	env.Interrupted = s.interrupted(ctx)
	return env, nil
}

// interrupted tells whether the statement that begins now has to end: it was
// canceled, or runs for longer than statement_timeout.
func (s *Session) interrupted(ctx context.Context) func() error {
	timeout := s.settings.timeout
	if timeout == 0 {
		return func() error { return interrupted(ctx) }
	}
	deadline := s.engine.now() + timeout
	return func() error {
		if err := interrupted(ctx); err != nil {
			return err
		}
		if s.engine.now() > deadline {
			return pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
		}
		return nil
	}
}

// interrupted is the error of a canceled statement, if it was.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if e, ok := pgerr.From(context.Cause(ctx)); ok {
		return e
	}
	return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
}

// ready begins a local transaction and makes sure that the plan fits.
func (s *Session) ready(ctx context.Context, p *Prepared) (*work, error) {
	w, err := s.openWork()
	if err != nil {
		return nil, err
	}
	if w.catalog != p.query.catalog || p.query.key != s.planKey() {
		err = s.replan(p, w.catalog)
	}
	if err == nil {
		w.record(p.query.writes)
		w.env, err = s.localEnv(ctx, w, p.query.virtual)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// replan plans again after the catalog changed; the shape that the client was
// told may not change.
func (s *Session) replan(p *Prepared, c *catalog.Catalog) error {
	next := &Prepared{Name: p.Name, Statement: p.Statement, declared: nil}
	for _, t := range p.params {
		next.declared = append(next.declared, t.OID)
	}
	if err := s.planQuery(next, c); err != nil {
		return err
	}
	if !sameColumns(p.columns, next.columns) || p.kind != next.kind {
		return pgerr.New(pgerr.FeatureNotSupported, "cached plan must not change result type")
	}
	p.query = next.query
	return nil
}

func sameColumns(a, b []plan.Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Type.Same(b[i].Type) {
			return false
		}
	}
	return true
}

// queryRows runs a program.
type queryRows struct {
	work    *work
	cursor  *exec.Cursor
	command string
	count   int64
	ended   bool
}

func (s *Session) runQuery(ctx context.Context, p *Prepared, args []datum.Datum) (rowSource, error) {
	if p.query.writes {
		return s.runWriter(ctx, p, args)
	}
	w, err := s.ready(ctx, p)
	if err != nil {
		return nil, err
	}
	cur, err := p.query.program.Open(w.env, args)
	if err != nil {
		w.close()
		return nil, err
	}
	return &queryRows{work: w, cursor: cur, command: p.query.program.Plan().Command}, nil
}

func (q *queryRows) next() ([]datum.Datum, error) {
	row, err := q.cursor.Next()
	if row != nil {
		q.count++
	}
	return row, err
}

func (q *queryRows) close() {
	if !q.ended {
		q.ended = true
		q.cursor.Close()
		q.work.close()
	}
}

func (q *queryRows) commandTag() string {
	if q.count == 1 && q.command == "SELECT" {
		return "SELECT 1" // look-ups by key, which are many
	}
	return fmt.Sprintf("%s %d", q.command, q.count)
}

// evaluate computes an argument of EXECUTE, an expression without columns.
func (s *Session) evaluate(ctx context.Context, n *pg.Node, i int, want datum.Type) (datum.Datum, error) {
	w, err := s.openWork()
	if err != nil {
		return datum.Null, err
	}
	defer w.close()
	opts := &plan.Options{Catalog: w.catalog, SearchPath: s.path(), Format: s.literalFormat(w.catalog)}
	ep, err := plan.Expression(n, want, opts)
	if pgerr.CodeOf(err) == pgerr.CannotCoerce {
		if ep, err = plan.Expression(n, datum.Type{}, opts); err == nil {
			return datum.Null, pgerr.New(pgerr.DatatypeMismatch, "parameter $%d of type %s cannot be coerced to the expected type %s",
				i+1, datum.FormatType(ep.Expr.Type()), datum.FormatType(want)).
				WithHint("You will need to rewrite or cast the expression.")
		}
	}
	if err != nil {
		return datum.Null, err
	}
	x, err := exec.CompileExpr(ep.Expr, ep.Slots, ep.Subqueries, ep.CTEs)
	if err != nil {
		return datum.Null, err
	}
	env, err := s.localEnv(ctx, w, false)
	if err != nil {
		return datum.Null, err
	}
	return x.Eval(env, nil)
}
