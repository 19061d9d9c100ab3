package pgcatalog

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

func infoTables(env *Env, next func() *row, emit func() error) error {
	return eachClass(env, func(c *class) error {
		kind := "BASE TABLE"
		if c.kind == 'v' {
			kind = "VIEW"
		}
		next().str("table_catalog", env.Database).str("table_schema", c.schema).str("table_name", c.name).str("table_type", kind).
			yes("is_insertable_into", false).yes("is_typed", false)
		return emit()
	})
}

func infoColumns(env *Env, next func() *row, emit func() error) error {
	return eachClass(env, func(c *class) error {
		for i := range c.cols {
			col := &c.cols[i]
			if col.dropped || c.kind == 'c' {
				continue
			}
			infoColumn(env, next(), c, i, col)
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	})
}

func infoColumn(env *Env, r *row, c *class, i int, col *column) {
	r.str("table_catalog", env.Database).str("table_schema", c.schema).str("table_name", c.name).str("column_name", col.name)
	r.int("ordinal_position", int64(i+1)).yes("is_nullable", !col.notNull)
	typ := col.typ.Root()
	name := datum.FormatType(datum.T(typ.Desc))
	switch {
	case typ.IsArray():
		name = "ARRAY"
	case typ.OID >= catalog.FirstPrivateOID:
		name = "USER-DEFINED"
	}
	if col.typ.Kind == datum.Domain {
		r.str("domain_catalog", env.Database).str("domain_schema", env.typeSchema(col.typ.Desc)).str("domain_name", col.typ.Name)
	}
	r.str("data_type", name).str("udt_catalog", env.Database).str("udt_schema", env.typeSchema(typ.Desc)).str("udt_name", typ.Name)
	r.str("dtd_identifier", itoa(i+1)).yes("is_self_referencing", false).yes("is_identity", false).yes("is_updatable", false)
	r.yes("identity_cycle", false)
	switch {
	case col.gen:
		r.str("is_generated", "ALWAYS").str("generation_expression", col.def)
	default:
		r.str("is_generated", "NEVER")
		if col.def != "" {
			r.str("column_default", col.def)
		}
	}
	typeDetails(r, typ)
}

// typeDetails sets length, precision and scale.
func typeDetails(r *row, t datum.Type) {
	switch t.Desc {
	case datum.VarChar, datum.BpChar:
		if t.Mod >= 4 {
			r.int("character_maximum_length", int64(t.Mod-4)).int("character_octet_length", int64(t.Mod-4)*4)
		}
	case datum.Text:
		r.int("character_octet_length", 1<<30)
	case datum.Int2:
		r.int("numeric_precision", 16).int("numeric_precision_radix", 2).int("numeric_scale", 0)
	case datum.Int4:
		r.int("numeric_precision", 32).int("numeric_precision_radix", 2).int("numeric_scale", 0)
	case datum.Int8:
		r.int("numeric_precision", 64).int("numeric_precision_radix", 2).int("numeric_scale", 0)
	case datum.Float4:
		r.int("numeric_precision", 24).int("numeric_precision_radix", 2)
	case datum.Float8:
		r.int("numeric_precision", 53).int("numeric_precision_radix", 2)
	case datum.Numeric:
		r.int("numeric_precision_radix", 10)
		if t.Mod >= 4 {
			r.int("numeric_precision", int64((t.Mod-4)>>16)).int("numeric_scale", int64((t.Mod-4)&0x7ff))
		}
	case datum.Date:
		r.int("datetime_precision", 0)
	case datum.Time, datum.TimeTZ, datum.Timestamp, datum.TimestampTZ, datum.Interval:
		r.int("datetime_precision", 6)
	}
}

func infoSchemata(env *Env, next func() *row, emit func() error) error {
	for _, s := range env.Catalog.Schemas() {
		next().str("catalog_name", env.Database).str("schema_name", s.Name).str("schema_owner", s.Owner)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func infoViews(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		if t.Kind != catalog.View {
			continue
		}
		next().str("table_catalog", env.Database).str("table_schema", t.Schema).str("table_name", t.Name).
			str("view_definition", t.Query).str("check_option", "NONE").yes("is_updatable", false).yes("is_insertable_into", false)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

// specificName is how information_schema tells overloaded functions apart.
func specificName(f *catalog.Func) string { return f.Name + "_" + itoa(int(f.OID)) }

func infoRoutines(env *Env, next func() *row, emit func() error) error {
	for _, f := range env.Catalog.AllFuncs() {
		kind := "FUNCTION"
		if f.Kind == catalog.Procedure {
			kind = "PROCEDURE"
		}
		next().str("specific_catalog", env.Database).str("specific_schema", f.Schema).str("specific_name", specificName(f)).
			str("routine_catalog", env.Database).str("routine_schema", f.Schema).str("routine_name", f.Name).str("routine_type", kind).
			str("data_type", datum.FormatType(f.Ret)).str("routine_body", "EXTERNAL").str("routine_definition", f.Body).
			yes("is_deterministic", f.Volatility == "i")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func infoParameters(env *Env, next func() *row, emit func() error) error {
	modes := map[catalog.ArgMode]string{catalog.In: "IN", catalog.Out: "OUT", catalog.InOut: "INOUT", catalog.Variadic: "IN", catalog.TableArg: "OUT"}
	for _, f := range env.Catalog.AllFuncs() {
		for i, a := range f.Args {
			r := next().str("specific_catalog", env.Database).str("specific_schema", f.Schema).str("specific_name", specificName(f)).
				int("ordinal_position", int64(i+1)).str("parameter_mode", modes[a.Mode]).str("data_type", datum.FormatType(a.Type)).
				str("udt_name", a.Type.Name)
			if a.Name != "" {
				r.str("parameter_name", a.Name)
			}
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

func infoTableConstraints(env *Env, next func() *row, emit func() error) error {
	kinds := map[byte]string{'p': "PRIMARY KEY", 'u': "UNIQUE", 'c': "CHECK", 'f': "FOREIGN KEY"}
	return eachConstraint(env, func(c *constraint) error {
		next().str("constraint_catalog", env.Database).str("constraint_schema", c.table.Schema).str("constraint_name", c.name).
			str("table_catalog", env.Database).str("table_schema", c.table.Schema).str("table_name", c.table.Name).
			str("constraint_type", kinds[c.kind]).yes("is_deferrable", false).yes("initially_deferred", false).yes("enforced", true)
		return emit()
	})
}

func infoKeyColumns(env *Env, next func() *row, emit func() error) error {
	return eachConstraint(env, func(c *constraint) error {
		for i, col := range c.columns {
			r := next().str("constraint_catalog", env.Database).str("constraint_schema", c.table.Schema).str("constraint_name", c.name).
				str("table_catalog", env.Database).str("table_schema", c.table.Schema).str("table_name", c.table.Name).
				str("column_name", c.table.Columns[col].Name).int("ordinal_position", int64(i+1))
			if c.fk != nil {
				r.int("position_in_unique_constraint", int64(i+1))
			}
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	})
}

// infoConstraintColumns names the columns that a constraint uses: for a foreign
// key those that it refers to.
func infoConstraintColumns(env *Env, next func() *row, emit func() error) error {
	return eachConstraint(env, func(c *constraint) error {
		t, cols := c.table, c.columns
		if c.fk != nil {
			ref, ok := env.Catalog.Table(c.fk.RefSchema, c.fk.RefTable)
			if !ok {
				return nil
			}
			t, cols = ref, c.fk.RefColumns
		}
		for _, col := range cols {
			next().str("table_catalog", env.Database).str("table_schema", t.Schema).str("table_name", t.Name).
				str("column_name", t.Columns[col].Name).str("constraint_catalog", env.Database).
				str("constraint_schema", c.table.Schema).str("constraint_name", c.name)
			if err := emit(); err != nil {
				return err
			}
		}
		return nil
	})
}

func infoReferential(env *Env, next func() *row, emit func() error) error {
	rules := map[string]string{"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
	return eachConstraint(env, func(c *constraint) error {
		if c.fk == nil {
			return nil
		}
		r := next().str("constraint_catalog", env.Database).str("constraint_schema", c.table.Schema).str("constraint_name", c.name).
			str("match_option", "NONE").str("update_rule", rules[c.fk.OnUpdate]).str("delete_rule", rules[c.fk.OnDelete])
		if ref, ok := env.Catalog.Table(c.fk.RefSchema, c.fk.RefTable); ok {
			for _, u := range tableConstraints(ref) {
				if u.index != nil && sameColumns(u.columns, c.fk.RefColumns) {
					r.str("unique_constraint_catalog", env.Database).str("unique_constraint_schema", ref.Schema).str("unique_constraint_name", u.name)
				}
			}
		}
		return emit()
	})
}

func sameColumns(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		found := false
		for _, y := range b {
			found = found || x == y
		}
		if !found {
			return false
		}
	}
	return true
}

func infoChecks(env *Env, next func() *row, emit func() error) error {
	return eachConstraint(env, func(c *constraint) error {
		if c.check == nil {
			return nil
		}
		next().str("constraint_catalog", env.Database).str("constraint_schema", c.table.Schema).str("constraint_name", c.name).
			str("check_clause", "("+c.check.Expr+")")
		return emit()
	})
}

func infoCatalog(env *Env, next func() *row, emit func() error) error {
	next().str("catalog_name", env.Database)
	return emit()
}
