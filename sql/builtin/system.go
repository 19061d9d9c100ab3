package builtin

import (
	"crypto/rand"
	"encoding/binary"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sessionEval lifts a function over the connection.
func sessionEval(function string, f func(s *SessionInfo) (datum.Datum, error)) Eval {
	return func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		s, err := session(c, function)
		if err != nil {
			return datum.Null, err
		}
		return f(s)
	}
}

func sessionText(function string, f func(s *SessionInfo) string) Eval {
	return sessionEval(function, func(s *SessionInfo) (datum.Datum, error) { return datum.Str(f(s)), nil })
}

func currentSchema(s *SessionInfo) (datum.Datum, error) {
	if len(s.SearchPath) == 0 {
		return datum.Null, nil
	}
	return datum.Str(s.SearchPath[0]), nil
}

// currentSchemas lists the search path; pg_catalog is searched first unless the
// path names it.
func currentSchemas(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := session(c, "current_schemas()")
	if err != nil {
		return datum.Null, err
	}
	var names []datum.Datum
	explicit := false
	for _, n := range s.SearchPath {
		names = append(names, datum.Str(n))
		explicit = explicit || n == "pg_catalog"
	}
	if a[0].Bool() && !explicit {
		names = append([]datum.Datum{datum.Str("pg_catalog")}, names...)
	}
	return datum.MakeArray(datum.Name, names), nil
}

func currentSetting(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := session(c, "current_setting()")
	if err != nil {
		return datum.Null, err
	}
	if s.Setting != nil {
		if v, ok := s.Setting(a[0].Str()); ok {
			return datum.Str(v), nil
		}
	}
	if len(a) == 2 && a[1].Bool() {
		return datum.Null, nil
	}
	return datum.Null, pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", a[0].Str())
}

func setConfig(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := session(c, "set_config()")
	if err != nil {
		return datum.Null, err
	}
	if a[0].IsNull() {
		return datum.Null, pgerr.New(pgerr.NullValueNotAllowed, "SET requires parameter name")
	}
	if s.SetSetting == nil {
		return datum.Null, pgerr.NotBuilt("set_config() is not supported here")
	}
	value := ""
	if !a[1].IsNull() {
		value = a[1].Str()
	}
	if err := s.SetSetting(a[0].Str(), value, a[2].IsTrue()); err != nil {
		return datum.Null, err
	}
	return currentSetting(c, a[:1])
}

// random draws from the system's source: local queries only.
func random(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
	if _, err := session(c, "random()"); err != nil {
		return datum.Null, err
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return datum.Null, err
	}
	return datum.Float(float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)), nil
}

func randomUUID(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
	if _, err := session(c, "gen_random_uuid()"); err != nil {
		return datum.Null, err
	}
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return datum.Null, err
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return datum.Bytes(b), nil
}

func pgNotify(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := session(c, "pg_notify()")
	if err != nil {
		return datum.Null, err
	}
	if s.Notify == nil {
		return datum.Null, pgerr.NotBuilt("pg_notify() is not supported here")
	}
	channel, payload := "", ""
	if !a[0].IsNull() {
		channel = a[0].Str()
	}
	if !a[1].IsNull() {
		payload = a[1].Str()
	}
	switch {
	case channel == "":
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "channel name cannot be empty")
	case len(channel) >= 64:
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "channel name too long")
	case len(payload) >= 8000:
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "payload string too long")
	}
	return datum.Int(0), s.Notify(channel, payload)
}

func listeningChannels(c *Ctx, _ []datum.Datum, emit func([]datum.Datum) error) error {
	s, err := session(c, "pg_listening_channels()")
	if err != nil || s.Channels == nil {
		return err
	}
	out := emitter(c, emit)
	for _, ch := range s.Channels() {
		if err := out(datum.Str(ch)); err != nil {
			return err
		}
	}
	return nil
}

// advisoryUnlock: there are no advisory locks, so none can be held.
func advisoryUnlock(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
	if c.Notice != nil {
		c.Notice("WARNING", pgerr.New(pgerr.Warning, "you don't own a lock of type %s", "ExclusiveLock"))
	}
	return datum.Bool(false), nil
}

// encodings are PostgreSQL's encodings by number (pg_enc).
var encodings = strings.Fields(`SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL LATIN1
	LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 WIN866 WIN874 KOI8R WIN1251
	WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 WIN1253 WIN1254 WIN1255 WIN1257 KOI8U SJIS BIG5
	GBK UHC GB18030 JOHAB SHIFT_JIS_2004`)

func encodingToChar(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if n := a[0].Int(); n >= 0 && n < int64(len(encodings)) {
		return datum.Str(encodings[n]), nil
	}
	return datum.Str(""), nil
}

func charToEncoding(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
	if isUTF8Name(a[0].Str()) {
		return datum.Int(6), nil
	}
	for i, e := range encodings {
		if strings.EqualFold(e, a[0].Str()) {
			return datum.Int(int64(i)), nil
		}
	}
	return datum.Int(-1), nil
}

// formatType is format_type(oid, typmod).
func formatType(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	if a[0].IsNull() {
		return datum.Null, nil
	}
	mod := int32(-1)
	if !a[1].IsNull() {
		mod = int32(a[1].Int())
	}
	if a[1].IsNull() && datum.OID(a[0].Int()) == datum.BpCharOID {
		return datum.Str("character"), nil
	}
	return datum.Str(typeNameOf(c, datum.OID(a[0].Int()), mod)), nil
}

func typeNameOf(c *Ctx, oid datum.OID, mod int32) string {
	if oid == 0 {
		return "-"
	}
	d := datum.ByOID(oid)
	if d == nil && c.Format.TypeByOID != nil {
		d = c.Format.TypeByOID(oid)
	}
	if d == nil {
		return "???"
	}
	return datum.FormatType(datum.Type{Desc: d, Mod: mod})
}

func oidVectorTypes(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	var names []string
	for e := range datum.ArrayElems(a[0]) {
		names = append(names, typeNameOf(c, datum.OID(e.Int()), -1))
	}
	return datum.Str(strings.Join(names, ", ")), nil
}

func bindTypeOf(args []datum.Type, _ datum.Type) (Eval, error) {
	v := datum.Int(int64(args[0].OID))
	return func(*Ctx, []datum.Datum) (datum.Datum, error) { return v, nil }, nil
}

// toReg implements to_regclass and its like: null for what does not exist.
func toReg(t *datum.Desc) Eval {
	return func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		if c.Format.RegOID == nil {
			return datum.Null, pgerr.NotBuilt("to_%s() is not supported here", t.Name)
		}
		oid, err := c.Format.RegOID(t, a[0].Str())
		if err != nil {
			if e, ok := pgerr.From(err); ok && strings.HasPrefix(string(e.Code), "42") || ok && strings.HasPrefix(string(e.Code), "3F") {
				return datum.Null, nil
			}
			return datum.Null, err
		}
		return datum.Int(int64(oid)), nil
	}
}

func countNulls(want bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		n := int64(0)
		for _, v := range a {
			if v.IsNull() == want {
				n++
			}
		}
		return datum.Int(n), nil
	}
}

// optionsToTable is pg_options_to_table: name=value texts as rows.
func optionsToTable(_ *Ctx, a []datum.Datum, emit func([]datum.Datum) error) error {
	row := make([]datum.Datum, 2)
	for e := range datum.ArrayElems(a[0]) {
		if e.IsNull() {
			continue
		}
		name, value, ok := strings.Cut(e.Str(), "=")
		row[0], row[1] = datum.Str(name), datum.Str(value)
		if !ok {
			row[1] = datum.Null
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

var systemEvals = evalMap{
	"pgsql_version":    sessionText("version()", func(s *SessionInfo) string { return s.ServerVersion }),
	"current_database": sessionText("current_database()", func(s *SessionInfo) string { return s.Database }),
	"current_user":     sessionText("current_user", func(s *SessionInfo) string { return s.User }),
	"session_user":     sessionText("session_user", func(s *SessionInfo) string { return s.SessionUser }),
	"current_schema":   sessionEval("current_schema()", currentSchema), "current_schemas": currentSchemas,
	"show_config_by_name": currentSetting, "show_config_by_name_missing_ok": currentSetting, "set_config_by_name": setConfig,
	"pg_backend_pid": sessionEval("pg_backend_pid()", func(s *SessionInfo) (datum.Datum, error) { return datum.Int(int64(s.PID)), nil }),
	"pg_postmaster_start_time": sessionEval("pg_postmaster_start_time()", func(s *SessionInfo) (datum.Datum, error) {
		return datum.Int(s.StartTime), nil
	}),
	"inet_client_addr": sessionEval("inet_client_addr()", func(s *SessionInfo) (datum.Datum, error) {
		if s.ClientAddr == "" {
			return datum.Null, nil
		}
		return datum.Inet.Parse(s.ClientAddr, -1, &datum.ContractFormat)
	}),
	"pg_current_xact_id": sessionEval("txid_current()", func(s *SessionInfo) (datum.Datum, error) {
		if s.TxID == 0 {
			return datum.Null, pgerr.NotBuilt("local transactions have no number")
		}
		return datum.Int(s.TxID), nil
	}),
	// There are no temporary schemas.
	"pg_my_temp_schema":       sessionEval("pg_my_temp_schema()", func(*SessionInfo) (datum.Datum, error) { return datum.Int(0), nil }),
	"pg_is_other_temp_schema": func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Bool(false), nil },
	"drandom":                 random, "gen_random_uuid": randomUUID, "pg_notify": pgNotify,
	"pg_is_in_recovery":       func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Bool(false), nil },
	"pg_advisory_unlock_all":  func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Int(0), nil },
	"pg_advisory_unlock_int8": advisoryUnlock, "pg_advisory_unlock_int4": advisoryUnlock,
	"pg_advisory_unlock_shared_int8": advisoryUnlock, "pg_advisory_unlock_shared_int4": advisoryUnlock,
	"PG_encoding_to_char": encodingToChar, "PG_char_to_encoding": charToEncoding,
	"getdatabaseencoding": text0("UTF8"), "pg_client_encoding": text0("UTF8"),
	"format_type": formatType, "oidvectortypes": oidVectorTypes, "text_regclass": textRegclass,
	"to_regclass": toReg(datum.RegClass), "to_regtype": toReg(datum.RegType), "to_regproc": toReg(datum.RegProc),
	"to_regprocedure": toReg(datum.RegProcedure), "to_regoper": toReg(datum.RegOper), "to_regoperator": toReg(datum.RegOperator),
	"to_regnamespace": toReg(datum.RegNamespace), "to_regrole": toReg(datum.RegRole),
	"pg_num_nulls": countNulls(true), "pg_num_nonnulls": countNulls(false),
}

var systemBinds = bindMap{"pg_typeof": bindTypeOf}

var systemSets = setMap{
	"pg_listening_channels": listeningChannels, "pg_options_to_table": optionsToTable,
	"pg_get_keywords": listKeywords,
	// There are no partitions.
	"pg_partition_ancestors": func(*Ctx, []datum.Datum, func([]datum.Datum) error) error { return nil },
}

func text0(s string) Eval {
	return func(*Ctx, []datum.Datum) (datum.Datum, error) { return datum.Str(s), nil }
}

func textRegclass(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	return datum.RegClass.Parse(a[0].Str(), -1, c.Format)
}
