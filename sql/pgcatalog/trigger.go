package pgcatalog

import (
	"strings"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// triggerType is pg_trigger.tgtype.
func triggerType(x *catalog.Trigger) int64 {
	v := int64(0)
	if x.Row {
		v |= 1
	}
	if x.Before {
		v |= 2
	}
	for _, e := range x.Events {
		v |= map[string]int64{"INSERT": 4, "DELETE": 8, "UPDATE": 16}[e]
	}
	return v
}

func triggers(env *Env, next func() *row, emit func() error) error {
	for _, t := range env.Catalog.Tables() {
		for i := range t.Triggers {
			x := &t.Triggers[i]
			enabled := byte('O')
			if x.Disabled {
				enabled = 'D'
			}
			var attrs []datum.Datum
			for _, c := range x.Columns {
				attrs = append(attrs, datum.Int(int64(c+1)))
			}
			args := ""
			for _, a := range x.Args {
				args += a + "\x00"
			}
			r := next().oid("oid", x.OID).oid("tgrelid", t.OID).str("tgname", x.Name).oid("tgfoid", x.FuncOID)
			r.int("tgtype", triggerType(x)).char("tgenabled", enabled).bools(false, "tgisinternal", "tgdeferrable", "tginitdeferred")
			r.zeros("tgparentid", "tgconstrrelid", "tgconstrindid", "tgconstraint").int("tgnargs", int64(len(x.Args)))
			r.set("tgattr", vector(datum.Int2Vector, attrs)).set("tgargs", datum.Bytes([]byte(args)))
			if x.When != "" {
				r.str("tgqual", x.When)
			}
			if err := emit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// triggerDef is pg_get_triggerdef.
func (env *Env) triggerDef(oid datum.OID, pretty bool, path []string) (string, bool) {
	for _, t := range env.Catalog.Tables() {
		for i := range t.Triggers {
			if x := &t.Triggers[i]; x.OID == oid {
				return env.triggerText(t, x, pretty, path), true
			}
		}
	}
	return "", false
}

func (env *Env) triggerText(t *catalog.Table, x *catalog.Trigger, pretty bool, path []string) string {
	var b strings.Builder
	b.WriteString("CREATE TRIGGER " + datum.QuoteIdent(x.Name))
	if x.Before {
		b.WriteString(" BEFORE ")
	} else {
		b.WriteString(" AFTER ")
	}
	for i, e := range x.Events {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(e)
		if e == "UPDATE" && len(x.Columns) > 0 {
			b.WriteString(" OF " + columnList(t, x.Columns))
		}
	}
	b.WriteString(" ON ")
	if visible, _ := env.visible(t.OID, path); !pretty || !visible {
		b.WriteString(datum.QuoteIdent(t.Schema) + ".")
	}
	b.WriteString(datum.QuoteIdent(t.Name) + " FOR EACH ")
	if x.Row {
		b.WriteString("ROW ")
	} else {
		b.WriteString("STATEMENT ")
	}
	if x.When != "" {
		b.WriteString("WHEN ((" + x.When + ")) ")
	}
	b.WriteString("EXECUTE FUNCTION ")
	if f, ok := env.Catalog.FuncByOID(x.FuncOID); ok {
		if visible, _ := env.visible(f.OID, path); !visible {
			b.WriteString(datum.QuoteIdent(f.Schema) + ".")
		}
		b.WriteString(datum.QuoteIdent(f.Name))
	}
	b.WriteString("(")
	for i, a := range x.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", "''") + "'")
	}
	b.WriteString(")")
	return b.String()
}
