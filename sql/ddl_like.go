package sql

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// The bits of TableLikeClause.options (parsenodes.h).
const (
	likeConstraints = 1 << 2
	likeDefaults    = 1 << 3
	likeGenerated   = 1 << 4
	likeIdentity    = 1 << 5
	likeIndexes     = 1 << 6
)

// like copies the columns of another table, and what INCLUDING asks for. As in
// PostgreSQL, NOT NULL always comes along and foreign keys and triggers never.
func (def *tableDef) like(n *pg.TableLikeClause) error {
	src, err := def.d.seeTable(n.Relation)
	if err != nil {
		return err
	}
	t := def.table
	at := map[int]int{} // position in src -> in t
	for i := range src.Columns {
		col := src.Columns[i]
		if col.Dropped {
			continue
		}
		if t.Column(col.Name) >= 0 {
			return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", col.Name)
		}
		identity := col.Identity
		col.Identity = ""
		if n.Options&likeDefaults == 0 {
			col.Default = ""
		}
		if n.Options&likeDefaults == 0 || identity != "" {
			col.Sequence = 0
		}
		if n.Options&likeGenerated == 0 {
			col.Generated = ""
		}
		col.Missing = nil
		at[i] = len(t.Columns)
		t.Columns = append(t.Columns, col)
		if n.Options&likeIdentity != 0 && identity != "" {
			t.Columns[at[i]].Identity = identity
			if err := def.ownSequence(col.Name, nil); err != nil {
				return err
			}
		}
	}
	if len(t.Columns) > maxColumns {
		return pgerr.New(pgerr.TooManyColumns, "tables can have at most %d columns", maxColumns)
	}
	if n.Options&likeConstraints != 0 {
		for _, k := range src.Checks {
			if k.Name, err = def.constraintName("", k.Name); err != nil {
				return err
			}
			if err := def.d.oids(&k.OID); err != nil {
				return err
			}
			t.Checks = append(t.Checks, k)
		}
	}
	if n.Options&likeIndexes == 0 {
		return nil
	}
	for i := range src.Indexes {
		if src.Indexes[i].Hidden {
			continue
		}
		if err := def.likeIndex(src, &src.Indexes[i], at); err != nil {
			return err
		}
	}
	return nil
}

// likeIndex copies an index or key under the name that a new one would get.
func (def *tableDef) likeIndex(src *catalog.Table, idx *catalog.Index, at map[int]int) error {
	next := catalog.Index{Unique: idx.Unique, Primary: idx.Primary, Constraint: idx.Constraint, Predicate: idx.Predicate}
	parts := []string{def.table.Name}
	for _, k := range idx.Keys {
		if k.Column < 0 {
			node, err := parse.Expression(k.Expr)
			if err != nil {
				return err
			}
			parts = append(parts, plan.IndexColumnName(node))
		} else {
			parts = append(parts, src.Columns[k.Column].Name)
			k.Column = at[k.Column]
		}
		next.Keys = append(next.Keys, k)
	}
	for _, c := range idx.Include {
		parts = append(parts, src.Columns[c].Name)
		next.Include = append(next.Include, at[c])
	}
	switch {
	case idx.Primary:
		parts = []string{def.table.Name, "pkey"}
	case idx.Constraint:
		parts = append(parts, "key")
	default:
		parts = append(parts, "idx")
	}
	var err error
	if next.Name, err = def.constraintName("", parts...); err != nil {
		return err
	}
	if err := def.d.oids(&next.OID); err != nil {
		return err
	}
	def.keys = append(def.keys, next)
	return nil
}
