package sql

import (
	"context"
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// localTxn is a transaction on schema private: that of a transaction block, or
// of one statement.
type localTxn struct {
	txn *mvcc.Txn
	// own are the private objects as the transaction's own definitions left them;
	// nil if it defined nothing.
	own *catalog.Catalog
	// merged is own beside chain, kept between statements.
	merged, chain *catalog.Catalog
}

// localMark is the state of a private transaction at a savepoint.
type localMark struct {
	mark int
	own  *catalog.Catalog
}

func (l *localTxn) savepoint() localMark {
	if l == nil {
		return localMark{}
	}
	return localMark{mark: l.txn.Savepoint(), own: l.own}
}

func (l *localTxn) rollbackTo(m localMark) {
	if l != nil {
		l.txn.RollbackTo(m.mark)
		l.own, l.merged = m.own, nil
	}
}

// drop ends the transaction without a commit, or after it.
func (l *localTxn) drop() {
	if l != nil {
		// What a closing iterator may report concerns reads that are over.
		_ = l.txn.Close()
	}
}

// wrote tells that the transaction has something to commit.
func (l *localTxn) wrote() bool { return l != nil && l.txn.Writes() > 0 }

// work is what one statement works with: a snapshot of the replicated store, a
// transaction on the private one, and the catalog of both.
type work struct {
	session *Session
	snap    mvcc.Snapshot
	txn     *mvcc.Txn
	chain   *catalog.Catalog
	local   *localTxn // nil without schema private
	catalog *catalog.Catalog
	env     *exec.Env
	room    exec.Env // what env points to
}

// openWork begins what a statement needs, or takes what its block has.
func (s *Session) openWork() (*work, error) {
	snap, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	w := &work{session: s, snap: snap, txn: s.engine.store.Begin(snap, 0)}
	w.txn.Forget()
	if w.chain, err = s.engine.catalogs.At(w.txn); err == nil {
		w.catalog = w.chain
		if s.engine.private != nil {
			w.local = s.localTxn()
			if w.catalog, err = s.engine.private.catalogOf(w.local, w.chain); err == nil {
				w.catalog = s.temp.catalog(w.catalog)
			}
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// localTxn is the private transaction of the block, or a new one.
func (s *Session) localTxn() *localTxn {
	if !s.block.open {
		if s.implicit.private != nil {
			return s.implicit.private
		}
		l := &localTxn{txn: s.engine.private.begin()}
		if s.implicit.on {
			s.implicit.private = l
		}
		return l
	}
	if s.block.private == nil {
		s.block.private = &localTxn{txn: s.engine.private.begin()}
	}
	return s.block.private
}

// catalogOf is the catalog that a transaction sees.
func (p *Private) catalogOf(l *localTxn, chain *catalog.Catalog) (*catalog.Catalog, error) {
	if l.own == nil {
		own, err := p.catalogs.At(l.txn)
		if err != nil {
			return nil, err
		}
		return p.catalogs.Merged(chain, own)
	}
	if l.merged == nil || l.chain != chain {
		merged, err := catalog.Merge(chain, l.own)
		if err != nil {
			return nil, err
		}
		l.merged, l.chain = merged, chain
	}
	return l.merged, nil
}

// record decides whether reads of private tables are recorded: not those of a
// statement by itself that only reads.
func (w *work) record(writes bool) {
	if w.local != nil && w.session.alone() && !writes {
		w.local.txn.Forget()
	}
}

// commit makes durable what a statement by itself did; in a block COMMIT does.
func (w *work) commit() error {
	if w.session.block.held != nil && w.local.wrote() {
		return pgerr.New(pgerr.ActiveSQLTransaction, "a transaction block that has called a contract cannot write schema private").
			WithHint("The contract commits on the blockchain, the block on this node: end the block first.")
	}
	if w.local == nil || !w.session.alone() {
		return nil
	}
	return w.session.commitPrivate(w.local)
}

func (w *work) close() {
	// What a closing iterator may report concerns reads that are over.
	_ = w.txn.Close()
	if w.local != w.session.block.private && w.local != w.session.implicit.private {
		w.local.drop()
	}
}

// readOnly tells that the transaction must not write.
func (s *Session) readOnly() bool {
	if s.block.open {
		return s.block.readOnly
	}
	return s.settings.on("default_transaction_read_only")
}

// lendPrivate puts schema private into the environment of a statement.
func (s *Session) lendPrivate(env *exec.Env, w *work) {
	if w.local == nil {
		return
	}
	env.Private, env.RowID = w.local.txn, s.engine.private.nextRowID
	env.PrivateReadOnly = s.readOnly()
	env.Ctx.Sequences = s.sequenceFunctions(w.catalog, env.PrivateReadOnly)
}

// isLocal tells that a function is of this node alone.
func isLocal(f *catalog.Func) bool { return f.Local() }

// maxAttempts bounds how often a statement by itself is tried again after it met
// others; a transaction block is for its client to repeat.
const maxAttempts = 50

// attempts runs one statement until its commit is not refused with 40001. Those
// that were refused take turns, so that they do not refuse one another.
func (s *Session) attempts(ctx context.Context, run func() (*work, rowSource, error)) (rowSource, error) {
	for n := 1; ; n++ {
		if n == 2 {
			select {
			case s.engine.private.turn <- struct{}{}:
				defer func() { <-s.engine.private.turn }()
			case <-ctx.Done():
				return nil, interrupted(ctx)
			}
		}
		w, src, err := run()
		if w == nil {
			return nil, err
		}
		if err != nil {
			w.close()
			return nil, err
		}
		err = w.commit()
		w.close()
		if err == nil {
			return src, nil
		}
		if !s.alone() || n == maxAttempts || pgerr.CodeOf(err) != pgerr.SerializationFailure {
			return nil, err
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
	}
}

// runWriter runs a statement that may write schema private to its end, commits
// it unless a block is open, and then shows its rows.
func (s *Session) runWriter(ctx context.Context, p *Prepared, args []datum.Datum) (rowSource, error) {
	return s.attempts(ctx, func() (*work, rowSource, error) {
		w, err := s.ready(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		cur, err := p.query.program.Open(w.env, args)
		if err != nil {
			return w, nil, err
		}
		defer cur.Close()
		out := &rows{}
		for {
			row, err := cur.Next()
			if err != nil {
				return w, nil, err
			}
			if row == nil {
				break
			}
			out.list = append(out.list, append([]datum.Datum(nil), row...))
		}
		out.tag = commandTag(p.query.program.Plan().Command, cur.RowsAffected())
		return w, out, nil
	})
}

// commandTag is how many rows a command concerned; INSERT still names an OID.
func commandTag(command string, n int64) string {
	if command == "INSERT" {
		command = "INSERT 0"
	}
	return fmt.Sprintf("%s %d", command, n)
}

// useLocalCall makes p a CALL of a procedure of schema private.
func (s *Session) useLocalCall(p *Prepared, q *preparedQuery, cc *plan.ContractCall) error {
	if err := s.usePlan(p, q, cc); err != nil {
		return err
	}
	p.kind, q.writes = kindLocalCall, true
	return nil
}

// runLocalCall carries out CALL of a procedure of schema private.
func (s *Session) runLocalCall(ctx context.Context, p *Prepared, args []datum.Datum) (rowSource, error) {
	return s.attempts(ctx, func() (*work, rowSource, error) {
		w, err := s.ready(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		out := &rows{tag: "CALL"}
		vals := make([]datum.Datum, len(p.query.args))
		for i, x := range p.query.args {
			if vals[i], err = x.Eval(w.env, args); err != nil {
				return w, nil, err
			}
		}
		f := p.query.call.Func
		if len(f.OutArgs()) == 0 {
			_, err = s.engine.functions.Call(w.env, f, vals)
			return w, out, err
		}
		err = s.engine.functions.CallSet(w.env, f, vals, func(row []datum.Datum) error {
			out.list = append(out.list, append([]datum.Datum(nil), row...))
			return nil
		})
		return w, out, err
	})
}

// mayCall refuses a call of a contract where it cannot be undone, or what it
// stands beside cannot.
func (s *Session) mayCall(p *Prepared) error {
	if s.readOnly() {
		return pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute %s() in a read-only transaction", p.query.call.Func.Name)
	}
	if s.block.private.wrote() || s.implicit.private.wrote() {
		return pgerr.New(pgerr.ActiveSQLTransaction, "a transaction block that has written schema private cannot call a contract").
			WithHint("The contract commits on the blockchain, the block on this node: end the block first.")
	}
	return nil
}

// runDo carries out DO: an anonymous function of schema private.
func (s *Session) runDo(ctx context.Context, n *pg.DoStmt) (rowSource, error) {
	if s.engine.private == nil {
		return nil, pgerr.NotBuilt("DO without schema private is not supported")
	}
	f := &catalog.Func{Schema: catalog.Private, Name: "inline_code_block", Kind: catalog.Function, Volatility: "v",
		Language: "plpgsql", RetOID: datum.Void.OID, RetMod: -1, Ret: datum.T(datum.Void), Owner: s.opts.User}
	for _, a := range n.Args {
		switch d := a.GetDefElem(); d.Defname {
		case "language":
			f.Language = strings.ToLower(d.Arg.GetString_().Sval)
		case "as":
			f.Body = d.Arg.GetString_().Sval
		}
	}
	if f.Language != "plpgsql" {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "language \"%s\" does not support inline code execution", f.Language)
	}
	return s.attempts(ctx, func() (*work, rowSource, error) {
		w, err := s.openWork()
		if err != nil {
			return nil, nil, err
		}
		if w.env, err = s.localEnv(ctx, w, false); err == nil {
			_, err = s.engine.functions.Call(w.env, f, nil)
		}
		return w, done("DO"), err
	})
}

// setTransaction applies the options of BEGIN and SET TRANSACTION. All levels
// of isolation are accepted: every transaction is serializable.
func (s *Session) setTransaction(options []*pg.Node) error {
	for _, o := range options {
		d := o.GetDefElem()
		c := d.GetArg().GetAConst()
		switch d.GetDefname() {
		case "transaction_isolation":
			if err := s.setSetting("transaction_isolation", c.GetSval().GetSval(), true); err != nil {
				return err
			}
		case "transaction_read_only":
			if err := s.setSetting("transaction_read_only", fmt.Sprint(c.GetIval().GetIval() != 0), true); err != nil {
				return err
			}
		}
	}
	return nil
}

// setCharacteristics is SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (s *Session) setCharacteristics(n *pg.VariableSetStmt) error {
	switch n.Name {
	case "TRANSACTION":
		if !s.block.open {
			s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks"))
			return nil
		}
		return s.setTransaction(n.Args)
	case "SESSION CHARACTERISTICS":
		for _, o := range n.Args {
			d := o.GetDefElem()
			c := d.GetArg().GetAConst()
			var err error
			switch d.GetDefname() {
			case "transaction_isolation":
				err = s.setSetting("default_transaction_isolation", c.GetSval().GetSval(), false)
			case "transaction_read_only":
				err = s.setSetting("default_transaction_read_only", fmt.Sprint(c.GetIval().GetIval() != 0), false)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// runVacuum is VACUUM and ANALYZE: there is nothing to clean, for old versions
// are history, and no plan depends on statistics.
func (s *Session) runVacuum(n *pg.VacuumStmt) (rowSource, error) {
	tag := "ANALYZE"
	if n.IsVacuumcmd {
		tag = "VACUUM"
		if s.block.open {
			return nil, pgerr.New(pgerr.ActiveSQLTransaction, "VACUUM cannot run inside a transaction block")
		}
	}
	var list []*pg.RangeVar
	for _, r := range n.Rels {
		if v := r.GetVacuumRelation().GetRelation(); v != nil {
			list = append(list, v)
		}
	}
	return done(tag), s.mustExist(list)
}

// runLock is LOCK TABLE: no transaction waits for another; one that meets what
// another committed ends with 40001, with and without locks.
func (s *Session) runLock(n *pg.LockStmt) (rowSource, error) {
	if !s.block.open {
		return nil, pgerr.New(pgerr.NoActiveSQLTransaction, "LOCK TABLE can only be used in transaction blocks")
	}
	var list []*pg.RangeVar
	for _, r := range n.Relations {
		list = append(list, r.GetRangeVar())
	}
	return done("LOCK TABLE"), s.mustExist(list)
}

// mustExist answers 42P01 for the first relation that there is not.
func (s *Session) mustExist(list []*pg.RangeVar) error {
	w, err := s.openWork()
	if err != nil {
		return err
	}
	defer w.close()
	p := placer{session: s, catalog: w.catalog}
	for _, v := range list {
		found := false
		for _, schema := range p.schemas(v.Schemaname) {
			_, ok := w.catalog.Table(schema, v.Relname)
			found = found || ok || pgcatalog.Find(schema, v.Relname) != nil
		}
		if !found {
			name := v.Relname
			if v.Schemaname != "" {
				name = v.Schemaname + "." + name
			}
			return pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", name)
		}
	}
	return nil
}

// insertLocal carries out COPY FROM into a table of schema private: its rows
// come only once, so that a conflict is for the client to repeat.
func (s *Session) insertLocal(ctx context.Context, t *catalog.Table, columns []int, next func() ([]datum.Datum, error)) (n int64, err error) {
	if s.readOnly() {
		return 0, pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute COPY FROM in a read-only transaction")
	}
	w, err := s.openWork()
	if err != nil {
		return 0, err
	}
	defer w.close()
	w.record(true)
	if w.env, err = s.localEnv(ctx, w, false); err != nil {
		return 0, err
	}
	prog, err := s.insertProgram(w.catalog, t, columns)
	if err != nil {
		return 0, err
	}
	for {
		row, err := next()
		if err != nil {
			return n, err
		}
		if row == nil {
			return n, w.commit()
		}
		if _, err := prog.Run(w.env, row); err != nil {
			return n, err
		}
		n++
	}
}

// insertProgram is an INSERT of one row, whose values are parameters.
func (s *Session) insertProgram(c *catalog.Catalog, t *catalog.Table, columns []int) (*exec.Program, error) {
	text := "INSERT INTO " + quoteQualified(t)
	p := &Prepared{}
	if len(columns) == 0 {
		text += " DEFAULT VALUES"
	} else {
		names, values := make([]string, len(columns)), make([]string, len(columns))
		for i, col := range columns {
			names[i], values[i] = datum.QuoteIdent(t.Columns[col].Name), fmt.Sprintf("$%d", i+1)
			p.declared = append(p.declared, t.Columns[col].TypeOID)
		}
		text += " (" + strings.Join(names, ", ") + ") OVERRIDING SYSTEM VALUE VALUES (" + strings.Join(values, ", ") + ")"
	}
	var err error
	if p.Statement, err = parse.One(text); err != nil {
		return nil, err
	}
	pl, err := plan.Statement(p.Statement.Node, s.planOptions(c, p))
	if err != nil {
		return nil, err
	}
	return exec.Compile(pl)
}
