package sql

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sessionTemp is what a session has of temporary objects: they lie in the private
// store, in a schema of the session's own, and go when it ends. What a crash
// leaves behind goes at the next start.
type sessionTemp struct {
	schema string // "" before the first temporary object
	// base is the catalog that view was made of.
	base, view *catalog.Catalog
}

// catalog is a merged catalog as the session sees it.
func (t *sessionTemp) catalog(c *catalog.Catalog) *catalog.Catalog {
	if t.schema == "" {
		return c
	}
	if t.base != c {
		t.base, t.view = c, c.WithTemp(t.schema)
	}
	return t.view
}

// path is where the session looks names up: temporary objects come first, unless
// the setting puts them elsewhere.
func (s *Session) path() []string {
	path := s.settings.searchPath()
	if s.temp.schema == "" {
		return path
	}
	for _, name := range path {
		if name == catalog.Temp {
			return path
		}
	}
	return append([]string{catalog.Temp}, path...)
}

// planKey changes whenever plans made before may not fit any more.
type planKey struct {
	settings int    // their version
	temp     string // schema of the temporary objects
}

func (s *Session) planKey() planKey { return planKey{s.settings.version, s.temp.schema} }

// tempSchema is the schema for a new temporary object, which comes to be with the
// first one.
func (d *definer) tempSchema() (string, error) {
	if d.local == nil {
		return "", pgerr.New(pgerr.FeatureNotSupported, "temporary objects are no part of a deployment").
			WithHint("They belong to a session: define them with a statement by itself.")
	}
	s := d.local.session
	if s.temp.schema == "" {
		s.temp.schema = catalog.TempSchema(strconv.FormatUint(s.engine.private.sessions.Add(1), 10))
		d.editor.UseTemp(s.temp.schema)
		d.local.path = s.path()
	}
	if _, ok := d.catalog().Schema(s.temp.schema); ok {
		return s.temp.schema, nil
	}
	oid, err := d.editor.NextOID()
	if err != nil {
		return "", err
	}
	return s.temp.schema, d.editor.PutSchema(&catalog.Schema{OID: oid, Name: s.temp.schema, Owner: d.owner})
}

// placeOf is where a new relation goes: schemaOf, or the session's own schema for
// a temporary one.
func (d *definer) placeOf(v *pg.RangeVar) (string, error) {
	switch {
	case v.Schemaname == catalog.Temp || d.local != nil && v.Schemaname != "" && v.Schemaname == d.local.session.temp.schema:
	case v.Relpersistence != "t":
		return d.schemaOf(v.Schemaname)
	case v.Schemaname != "":
		if _, err := d.schemaOf(v.Schemaname); err != nil {
			return "", err
		}
		return "", pgerr.New(pgerr.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema")
	}
	return d.tempSchema()
}

// onCommit reads ON COMMIT of CREATE TABLE.
func onCommit(a pg.OnCommitAction, t *catalog.Table) error {
	switch a {
	case pg.OnCommitAction_ONCOMMIT_DELETE_ROWS:
		t.OnCommit = catalog.DeleteRows
	case pg.OnCommitAction_ONCOMMIT_DROP:
		t.OnCommit = catalog.DropTable
	case pg.OnCommitAction_ONCOMMIT_PRESERVE_ROWS:
	default:
		return nil
	}
	if !t.Temporary() {
		return pgerr.New(pgerr.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	return nil
}

// temporaryReference refuses a foreign key between a temporary table and another.
func temporaryReference(t, ref *catalog.Table) error {
	switch {
	case t.Temporary() && !ref.Temporary():
		return pgerr.New(pgerr.InvalidTableDefinition, "constraints on temporary tables may reference only temporary tables")
	case !t.Temporary() && ref.Temporary():
		return pgerr.New(pgerr.InvalidTableDefinition, "constraints on permanent tables may reference only permanent tables")
	}
	return nil
}

// commitPrivate makes a private transaction durable, after what ON COMMIT asks
// for.
func (s *Session) commitPrivate(l *localTxn) error {
	if l == nil {
		return nil
	}
	if s.temp.schema != "" && l.wrote() {
		if err := s.applyOnCommit(l); err != nil {
			return err
		}
	}
	return s.engine.private.commit(l.txn)
}

// applyOnCommit empties or drops the temporary tables that were made to be.
func (s *Session) applyOnCommit(l *localTxn) error {
	own := l.own
	if own == nil {
		var err error
		if own, err = s.engine.private.catalogs.At(l.txn); err != nil {
			return err
		}
	}
	for _, t := range own.Tables() {
		if t.Schema != s.temp.schema || t.OnCommit == "" {
			continue
		}
		if err := s.endTemporary(l, t.OID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) endTemporary(l *localTxn, oid catalog.OID) error {
	txn := s.engine.store.Begin(mvcc.AsOf(s.engine.store.Height()), 0)
	defer func() { _ = txn.Close() }() // its reads are over
	txn.Forget()
	chain, err := s.engine.catalogs.At(txn)
	if err != nil {
		return err
	}
	c, err := s.engine.private.catalogOf(l, chain)
	if err != nil {
		return err
	}
	t, ok := c.TableByOID(oid)
	if !ok {
		return nil // gone with another one
	}
	env := &exec.Env{Txn: txn, Catalog: c, Functions: s.engine.functions, ReadOnly: true, Private: l.txn, RowID: s.engine.private.nextRowID}
	env.Ctx.Format = &s.format
	d := &definer{engine: s.engine, env: env, owner: s.opts.User,
		editor: catalog.NewPrivateEditor(l.txn, chain, c, s.engine.private.nextOID),
		local:  &localDefiner{session: s, path: s.path()}}
	if t.OnCommit == catalog.DeleteRows {
		return d.deleteRows(t)
	}
	if err := d.removeTable(t, pg.DropBehavior_DROP_CASCADE); err != nil {
		return err
	}
	if own := d.editor.Private(); own != nil {
		l.own, l.merged = own, nil
	}
	return nil
}

// dropTemporary ends the temporary objects of the session.
func (s *Session) dropTemporary() error {
	if s.temp.schema == "" {
		return nil
	}
	schema := s.temp.schema
	s.temp = sessionTemp{}
	return s.engine.private.eraseTemp(func(name string) bool { return name == schema })
}

// eraseTemp drops temporary objects whose sessions have ended. Others may define
// private objects at the same time; it is tried again then.
func (p *Private) eraseTemp(which func(schema string) bool) error {
	p.closing.Lock()
	defer p.closing.Unlock()
	for n := 1; !p.closed; n++ {
		err := p.eraseTempOnce(which)
		if err == nil || n == maxAttempts || pgerr.CodeOf(err) != pgerr.SerializationFailure {
			return err
		}
	}
	return nil
}

func (p *Private) eraseTempOnce(which func(schema string) bool) error {
	txn := p.begin()
	defer func() { _ = txn.Close() }() // its reads are over
	own, err := p.catalogs.At(txn)
	if err != nil {
		return err
	}
	if err := catalog.EraseTemp(txn, own, which); err != nil {
		return err
	}
	return p.commit(txn)
}

// placeOfView is placeOf a view, which is temporary if it reads a temporary
// relation.
func (d *definer) placeOfView(n *pg.ViewStmt, st parse.Statement) (string, error) {
	if n.View.Relpersistence == "t" || d.local == nil || n.View.Schemaname == catalog.Temp {
		return d.placeOf(n.View)
	}
	for _, v := range rangeVars(n.Query) {
		if t, err := d.seeTable(v); err == nil && t.Temporary() {
			d.say(pgerr.SuccessfulCompletion, "view \"%s\" will be a temporary view", n.View.Relname)
			return d.tempSchema()
		}
	}
	return d.placeOf(n.View)
}

// rangeVars are the relations that a statement names, those of WITH among them.
func rangeVars(node *pg.Node) []*pg.RangeVar {
	var list []*pg.RangeVar
	see := func(p protopath.Values) error {
		m, ok := p.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		if v, ok := m.Interface().(*pg.RangeVar); ok {
			list = append(list, v)
		}
		return nil
	}
	// The callback never fails.
	_ = protorange.Range(proto.Message(node).ProtoReflect(), see)
	return list
}
