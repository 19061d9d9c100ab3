package system

import (
	"maps"
	"slices"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// functionsOf has the functions of a catalog by name and argument types.
func functionsOf(cat *catalog.Catalog) map[string]*catalog.Func {
	m := map[string]*catalog.Func{}
	for _, f := range cat.AllFuncs() {
		if f.Schema == catalog.Blockchain && f.Language != catalog.SystemLanguage {
			m[f.Schema+"."+f.Name+"("+f.Signature()+")"] = f
		}
	}
	return m
}

// recordVersions writes down which functions a script has created, replaced and
// dropped, with what changed in them. before are those that were there.
func (c *call) recordVersions(before map[string]*catalog.Func) error {
	after := functionsOf(c.env.Catalog)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, now := before[name], after[name]
		var err error
		switch {
		case now == nil:
			err = c.recordVersion(name, "dropped", datum.Null)
		case old == nil:
			err = c.recordVersion(name, "created", datum.Str(now.Source))
		case old.OID != now.OID || old.Version != now.Version:
			err = c.recordVersion(name, "replaced", datum.Str(now.Source))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) recordVersion(name, action string, definition datum.Datum) error {
	version, before := int64(1), ""
	err := versions.each(c.env, true, func(row []datum.Datum) bool {
		version = row[versionNumber].Int() + 1
		if d := row[versionDefinition]; !d.IsNull() {
			before = d.Str()
		}
		return false
	}, datum.Str(name))
	if err != nil {
		return err
	}
	after := ""
	if !definition.IsNull() {
		after = definition.Str()
	}
	return versions.insert(c.env, []datum.Datum{
		datum.Str(name), datum.Int(version), c.args[0], c.height(), datum.Str(action), definition, datum.Str(unifiedDiff(before, after)),
	})
}
