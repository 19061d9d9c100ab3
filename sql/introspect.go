package sql

import (
	"slices"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgcatalog"
)

// introspected is kept between queries: most do not look into pg_catalog, and
// for them it depends on the catalog and the search path alone.
type introspected struct {
	catalog *catalog.Catalog
	version int // of the settings
	env     *pgcatalog.Env
	info    builtin.CatalogInfo
}

// introspect returns what pg_catalog and the functions over it see in one
// query, and makes reg* values use its names.
func (s *Session) introspect(c *catalog.Catalog, txn *mvcc.Txn, virtual bool) (*pgcatalog.Env, builtin.CatalogInfo, error) {
	if k := &s.seen; !virtual && k.catalog == c && k.version == s.settings.version {
		return k.env, k.info, nil
	}
	env, err := s.introspection(c, txn, virtual)
	if err != nil {
		return nil, builtin.CatalogInfo{}, err
	}
	info := env.Info(s.path())
	s.useRegNames(&s.format, env)
	s.seen = introspected{}
	if !virtual {
		s.seen = introspected{c, s.settings.version, env, info}
	}
	return env, info, nil
}

// introspection makes what pg_catalog and the functions over it see in one
// query. The users are read only for a query that looks into pg_catalog.
func (s *Session) introspection(c *catalog.Catalog, txn *mvcc.Txn, wantUsers bool) (*pgcatalog.Env, error) {
	env := &pgcatalog.Env{Catalog: c, Database: Database, User: s.opts.User, Settings: nil, Path: s.path()}
	if p := s.engine.private; p != nil {
		env.SequenceState = p.sequences.peek
	}
	if !wantUsers {
		return env, nil
	}
	env.Settings = s.Settings()
	for _, p := range s.prepared {
		if p.Name != "" {
			env.Statements = append(env.Statements, pgcatalog.Statement{Name: p.Name, Text: p.Statement.Text, Params: p.params})
		}
	}
	slices.SortFunc(env.Statements, func(a, b pgcatalog.Statement) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	users, err := userNames(txn)
	env.Users = users
	return env, err
}

// userNames lists the users of the network in key order.
func userNames(txn *mvcc.Txn) ([]string, error) {
	layout, err := catalog.NewLayout(catalog.Certs)
	if err != nil {
		return nil, err
	}
	slots := make([]int, len(catalog.Certs.Columns))
	for i := range slots {
		slots[i] = -1
	}
	slots[catalog.Certs.Column("username")] = 0
	dec := layout.Decoder(slots)
	it := txn.Scan(prefixSpan(layout.IndexPrefix(0)), false, mvcc.ReadUnrecorded)
	defer it.Close()
	var names []string
	row := make([]datum.Datum, 1)
	for it.Next() {
		if err := dec.Decode(it.Value(), row); err != nil {
			return nil, err
		}
		if name := string(append([]byte(nil), row[0].Str()...)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, it.Err()
}

// useRegNames lets reg* values of the session be read and written with the
// names of one catalog.
func (s *Session) useRegNames(f *datum.Format, env *pgcatalog.Env) {
	path := s.path()
	f.TypeByOID = env.Catalog.TypeByOID
	f.RegName = func(t *datum.Desc, oid datum.OID) string { return env.RegName(t, oid, path) }
	f.RegOID = func(t *datum.Desc, name string) (datum.OID, error) { return env.RegOID(t, name, path) }
}
