package pgcatalog

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

func itoa(n int) string { return strconv.Itoa(n) }

var sortedRelations = func() []*relation {
	out := make([]*relation, 0, len(relations))
	for _, r := range relations {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *relation) int { return cmp.Compare(a.Schema+"."+a.Name, b.Schema+"."+b.Name) })
	return out
}()

// The OIDs of languages.
const (
	langInternal datum.OID = 12
	langSQL      datum.OID = 14
	langPLpgSQL  datum.OID = 13570
)

func languageOID(name string) datum.OID {
	switch name {
	case "plpgsql":
		return langPLpgSQL
	case "sql":
		return langSQL
	}
	return langInternal
}

func procs(env *Env, next func() *row, emit func() error) error {
	for _, f := range builtin.Funcs() {
		r := procRow(next(), f.OID, f.Name, catalog.PgCatalogOID, superuserOID, langInternal)
		r.char("prokind", byte(f.Kind)).bool("proisstrict", f.Strict).bool("proretset", f.RetSet).char("provolatile", byte(f.Volatility))
		args := make([]datum.Datum, len(f.Args))
		for i, a := range f.Args {
			args[i] = datum.Int(int64(a.OID))
		}
		r.int("pronargs", int64(len(args))).int("pronargdefaults", int64(f.Defaults)).oid("prorettype", f.Ret.OID)
		r.set("proargtypes", vector(datum.OIDVector, args)).str("prosrc", f.Name)
		if err := emit(); err != nil {
			return err
		}
	}
	for _, f := range env.Catalog.AllFuncs() {
		userProc(env, next(), f)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func procRow(r *row, oid datum.OID, name string, schema, owner, lang datum.OID) *row {
	r.oid("oid", oid).str("proname", name).oid("pronamespace", schema).oid("proowner", owner).oid("prolang", lang)
	r.set("procost", datum.Float(1)).set("prorows", datum.Float(0)).zeros("provariadic", "prosupport")
	return r.bools(false, "prosecdef", "proleakproof").char("proparallel", 'u')
}

func userProc(env *Env, r *row, f *catalog.Func) {
	procRow(r, f.OID, f.Name, env.namespace(f.Schema), env.ownerOID(f.Owner), languageOID(f.Language))
	r.char("prokind", f.Kind[0]).bool("proisstrict", f.Strict).bool("proretset", f.RetSet).char("provolatile", f.Volatility[0])
	r.bool("prosecdef", f.Definer).oid("prorettype", f.Ret.OID).str("prosrc", f.Body)
	var in, all, modes, names []datum.Datum
	defaults, out := 0, false
	for _, a := range f.Args {
		oid := datum.Int(int64(a.Type.OID))
		if a.Mode == catalog.In || a.Mode == catalog.InOut || a.Mode == catalog.Variadic {
			in = append(in, oid)
		}
		out = out || a.Mode != catalog.In
		all = append(all, oid)
		modes = append(modes, datum.Int(int64(a.Mode[0])))
		names = append(names, datum.Str(a.Name))
		if a.Default != "" {
			defaults++
		}
	}
	r.int("pronargs", int64(len(in))).int("pronargdefaults", int64(defaults)).set("proargtypes", vector(datum.OIDVector, in))
	if out {
		r.set("proallargtypes", datum.MakeArray(datum.OIDType, all)).set("proargmodes", datum.MakeArray(datum.Char, modes))
	}
	if len(names) > 0 {
		r.set("proargnames", datum.MakeArray(datum.Text, names))
	}
}

func aggregates(_ *Env, next func() *row, emit func() error) error {
	for _, f := range builtin.Funcs() {
		if f.Kind != builtin.Aggregate {
			continue
		}
		kind, direct := f.AggKind(), 0
		if kind != builtin.NormalAgg {
			direct = min(len(f.Args), 1)
			if f.Name == "mode" {
				direct = 0
			}
		}
		next().oid("aggfnoid", f.OID).char("aggkind", byte(kind)).int("aggnumdirectargs", int64(direct))
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func types(env *Env, next func() *row, emit func() error) error {
	for _, d := range datum.Builtins() {
		r := next().oid("oid", d.OID).str("typname", d.Name).oid("typnamespace", catalog.PgCatalogOID).oid("typowner", superuserOID)
		r.int("typlen", int64(d.Len)).bool("typbyval", d.Fixed).char("typtype", byte(d.Kind)).char("typcategory", d.Category)
		r.bool("typispreferred", d.Preferred).bool("typisdefined", true).char("typdelim", ',').char("typalign", 'i')
		r.char("typstorage", storage(datum.T(d))).bool("typnotnull", false).int("typtypmod", -1)
		r.zeros("typrelid", "typsubscript", "typelem", "typarray", "typmodin", "typmodout", "typanalyze", "typbasetype", "typndims")
		r.oid("typcollation", collationOf(datum.T(d)))
		r.set("typinput", procOID(d, "in")).set("typoutput", procOID(d, "out"))
		r.set("typreceive", procOID(d, "recv")).set("typsend", procOID(d, "send"))
		if d.Elem != nil {
			r.oid("typelem", d.Elem.OID)
		}
		if d.Array != nil {
			r.oid("typarray", d.Array.OID)
		}
		if err := emit(); err != nil {
			return err
		}
	}
	return userTypes(env, next, emit)
}

// codecOIDs are the functions behind the external forms of arrays.
var codecOIDs = map[string]datum.OID{"array_in": 750, "array_out": 751, "array_recv": 2400, "array_send": 2401}

// procOID is the OID of an input or output function of a type: those of arrays
// are shared, and drivers tell arrays by them.
func procOID(d *datum.Desc, what string) datum.Datum {
	name := d.Name + what
	if d.IsArray() {
		name = "array_" + what
	}
	if oid, ok := codecOIDs[name]; ok {
		return datum.Int(int64(oid))
	}
	for _, f := range builtin.LookupFuncs(name) {
		return datum.Int(int64(f.OID))
	}
	return datum.Int(0)
}

func operators(_ *Env, next func() *row, emit func() error) error {
	for _, o := range builtin.Operators() {
		r := next().oid("oid", o.OID).str("oprname", o.Name).oid("oprnamespace", catalog.PgCatalogOID).oid("oprowner", superuserOID)
		kind, left := byte('l'), datum.OID(0)
		if o.Left != nil {
			kind, left = 'b', o.Left.OID
		}
		r.char("oprkind", kind).oid("oprleft", left).oid("oprright", o.Right.OID).oid("oprresult", o.Func.Ret.OID).oid("oprcode", o.Func.OID)
		r.bools(false, "oprcanmerge", "oprcanhash").zeros("oprcom", "oprnegate", "oprrest", "oprjoin")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func casts(_ *Env, next func() *row, emit func() error) error {
	for i, c := range builtin.Casts() {
		r := next().oid("oid", datum.OID(10500+i)).oid("castsource", c.Source.OID).oid("casttarget", c.Target.OID)
		r.char("castcontext", byte(c.Context)).char("castmethod", byte(c.Method)).int("castfunc", 0)
		if c.Func != nil {
			r.oid("castfunc", c.Func.OID)
		}
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func accessMethods(_ *Env, next func() *row, emit func() error) error {
	next().oid("oid", heapOID).str("amname", "heap").int("amhandler", 3).char("amtype", 't')
	if err := emit(); err != nil {
		return err
	}
	next().oid("oid", btreeOID).str("amname", "btree").int("amhandler", 330).char("amtype", 'i')
	return emit()
}

func opclasses(_ *Env, next func() *row, emit func() error) error { return nil }

func languages(_ *Env, next func() *row, emit func() error) error {
	for _, l := range []struct {
		oid     datum.OID
		name    string
		trusted bool
	}{{langInternal, "internal", false}, {langSQL, "sql", true}, {langPLpgSQL, "plpgsql", true}} {
		next().oid("oid", l.oid).str("lanname", l.name).oid("lanowner", superuserOID).bool("lanispl", l.oid == langPLpgSQL).
			bool("lanpltrusted", l.trusted).zeros("lanplcallfoid", "laninline", "lanvalidator")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func collations(_ *Env, next func() *row, emit func() error) error {
	for i, name := range []string{"default", "C", "POSIX"} {
		oids := []datum.OID{collationOID, 950, 951}
		next().oid("oid", oids[i]).str("collname", name).oid("collnamespace", catalog.PgCatalogOID).oid("collowner", superuserOID).
			char("collprovider", 'c').bool("collisdeterministic", true).int("collencoding", -1).str("collcollate", "C").str("collctype", "C")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func databases(env *Env, next func() *row, emit func() error) error {
	next().oid("oid", databaseOID).str("datname", env.Database).oid("datdba", superuserOID).int("encoding", 6).char("datlocprovider", 'c').
		bool("datistemplate", false).bool("datallowconn", true).int("datconnlimit", -1).zeros("datfrozenxid", "datminmxid").
		oid("dattablespace", 1663).str("datcollate", "C").str("datctype", "C.UTF-8")
	return emit()
}

func tablespaces(_ *Env, next func() *row, emit func() error) error {
	next().oid("oid", 1663).str("spcname", "pg_default").oid("spcowner", superuserOID)
	return emit()
}

func roles(env *Env, next func() *row, emit func() error) error {
	one := func(oid datum.OID, name string, super bool) error {
		r := next().oid("oid", oid).str("rolname", name).bool("rolsuper", super).bools(true, "rolinherit", "rolcanlogin").
			bools(false, "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls").int("rolconnlimit", -1)
		if _, ok := r.rel.index["rolpassword"]; ok {
			r.str("rolpassword", "********")
		}
		return emit()
	}
	if err := one(superuserOID, catalog.SystemOwner, true); err != nil {
		return err
	}
	for _, u := range env.Users {
		if err := one(env.ownerOID(u), u, false); err != nil {
			return err
		}
	}
	return nil
}

func users(env *Env, next func() *row, emit func() error) error {
	for _, u := range env.Users {
		next().str("usename", u).oid("usesysid", env.ownerOID(u)).bools(false, "usecreatedb", "usesuper", "userepl", "usebypassrls").str("passwd", "********")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func settings(env *Env, next func() *row, emit func() error) error {
	for _, s := range env.Settings {
		next().str("name", s[0]).str("setting", s[1]).str("category", "Client Connection Defaults").str("context", "user").
			str("vartype", "string").str("source", "session").str("boot_val", s[1]).str("reset_val", s[1]).bool("pending_restart", false)
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}

func statements(env *Env, next func() *row, emit func() error) error {
	for _, s := range env.Statements {
		var params []datum.Datum
		for _, t := range s.Params {
			params = append(params, datum.Int(int64(t.OID)))
		}
		next().str("name", s.Name).str("statement", s.Text).set("parameter_types", datum.MakeArray(datum.RegType, params)).
			bool("from_sql", true).zeros("generic_plans", "custom_plans")
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}
