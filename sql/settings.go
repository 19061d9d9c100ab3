package sql

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// setting is one run-time parameter.
type setting struct {
	name   string // canonical spelling
	value  string // default
	report bool   // sent as ParameterStatus
	fixed  bool   // cannot be changed
	hidden bool   // in no list (GUC_NO_SHOW_ALL)
	// check canonicalizes a value and, where the session has state for it,
	// applies it.
	check func(s *Session, value string) (string, error)
}

// known lists the run-time parameters in the order in which they are reported.
var known = []setting{
	{name: "server_version", value: ServerVersion, report: true, fixed: true},
	{name: "server_version_num", value: "150000", fixed: true},
	{name: "server_encoding", value: "UTF8", report: true, fixed: true},
	{name: "client_encoding", value: "UTF8", report: true, check: checkEncoding},
	{name: "application_name", value: "", report: true},
	{name: "default_transaction_read_only", value: "off", report: true, check: checkBool},
	{name: "in_hot_standby", value: "off", report: true, fixed: true},
	{name: "is_superuser", value: "off", report: true, fixed: true},
	{name: "session_authorization", value: "", report: true, check: checkAuthorization},
	{name: "role", value: "none", hidden: true, check: checkRole},
	{name: "DateStyle", value: "ISO, MDY", report: true, check: checkDateStyle},
	{name: "IntervalStyle", value: "postgres", report: true, check: checkIntervalStyle},
	{name: "TimeZone", value: "UTC", report: true, check: checkTimeZone},
	{name: "integer_datetimes", value: "on", report: true, fixed: true},
	{name: "standard_conforming_strings", value: "on", report: true, check: checkConforming},
	{name: "search_path", value: "blockchain, private", check: checkSearchPath},
	{name: "extra_float_digits", value: "1", check: checkFloatDigits},
	{name: "bytea_output", value: "hex", check: checkBytea},
	{name: "client_min_messages", value: "notice"},
	{name: "statement_timeout", value: "0", check: checkStatementTimeout},
	{name: "work_mem", value: "64MB", check: checkWorkMem},
	{name: "lock_timeout", value: "0", check: checkNumber},
	{name: "idle_in_transaction_session_timeout", value: "0", check: checkNumber},
	{name: "transaction_isolation", value: "serializable"},
	{name: "default_transaction_isolation", value: "serializable"},
	{name: "transaction_read_only", value: "off", check: checkReadOnly},
	{name: "row_security", value: "on", check: checkBool},
	{name: "check_function_bodies", value: "on", check: checkBool},
	{name: "xmloption", value: "content"},
	{name: "synchronize_seqscans", value: "on", check: checkBool},
	{name: "max_identifier_length", value: "63", fixed: true},
	{name: "max_index_keys", value: "32", fixed: true},
	{name: "block_size", value: "8192", fixed: true},
	{name: "lc_collate", value: "C", fixed: true},
	{name: "lc_ctype", value: "C.UTF-8", fixed: true},
	{name: "lc_messages", value: "C"},
	{name: "lc_monetary", value: "C"},
	{name: "tallystick.height", value: "", check: checkHeight},
	{name: forensicsSetting, value: "off", check: checkBool},
	{name: "tallystick.network", value: "", fixed: true},
}

// settingIndex finds a parameter in known by its lower-case name.
var settingIndex = map[string]int{}

func init() {
	known = append(known, tuningSettings()...)
	for i := range known {
		settingIndex[strings.ToLower(known[i].name)] = i
	}
}

// settings are the run-time parameters of one session.
type settings struct {
	session *Session
	values  map[string]string // by lower-case name; only those that differ
	path    []string
	height  int64 // tallystick.height; -1 = newest
	workMem int64 // bytes
	timeout int64 // statement_timeout in microseconds; 0 = none
	version int   // counts changes that plans depend on
	// initial are the values of the startup packet, by name.
	initial map[string]string
}

// savedSetting is what the end of a transaction block has to put back: always
// if SET LOCAL changed it, at ROLLBACK if SET did.
type savedSetting struct {
	name, value string
	local       bool
}

func (st *settings) init(s *Session) {
	st.session = s
	st.values = map[string]string{"session_authorization": s.opts.User, "application_name": s.opts.ApplicationName, "tallystick.network": s.opts.Network}
	st.height, st.workMem = -1, defaultWorkMem
	st.path = slices.Clone(SearchPath)
	s.format = datum.ContractFormat
	s.format.NoNow = false
}

func findSetting(name string) *setting {
	if i, ok := settingIndex[strings.ToLower(name)]; ok {
		return &known[i]
	}
	return nil
}

// get answers current_setting.
func (st *settings) get(name string) (string, bool) {
	if v, ok := st.values[strings.ToLower(name)]; ok {
		return v, true
	}
	if d := findSetting(name); d != nil {
		return d.value, true
	}
	return "", false
}

// on tells whether a boolean setting is on.
func (st *settings) on(name string) bool {
	v, _ := st.get(name)
	return v == "on"
}

func (st *settings) searchPath() []string { return st.path }

// ReportedSettings lists what a client is told at the start, in order.
func (s *Session) ReportedSettings() [][2]string {
	var out [][2]string
	for _, d := range known {
		if d.report {
			v, _ := s.settings.get(d.name)
			out = append(out, [2]string{d.name, v})
		}
	}
	return out
}

// SetStartup applies a parameter of the startup packet; unknown ones are
// ignored, bad values are not.
func (s *Session) SetStartup(name, value string) error {
	d := findSetting(name)
	if d == nil || d.fixed {
		return nil
	}
	if err := s.setSetting(name, value, false); err != nil {
		return err
	}
	if s.settings.initial == nil {
		s.settings.initial = map[string]string{}
	}
	s.settings.initial[d.name], _ = s.settings.get(name)
	return nil
}

// resetValue is what RESET gives a parameter: the value that the client began
// with, or the default.
func (st *settings) resetValue(d *setting) string {
	if v, ok := st.initial[d.name]; ok {
		return v
	}
	if d.name == "session_authorization" {
		return st.session.opts.User
	}
	return d.value
}

// setSetting is SET, and set_config.
func (s *Session) setSetting(name, value string, local bool) error {
	d := findSetting(name)
	switch {
	case d == nil && !strings.Contains(name, "."):
		return pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
	case d != nil && d.fixed:
		return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter \"%s\" cannot be changed", d.name)
	}
	wasReadOnly := s.block.readOnly && s.block.private != nil
	if err := s.changeSetting(d, name, value, local); err != nil {
		return err
	}
	if wasReadOnly && !s.block.readOnly {
		return pgerr.New(pgerr.ActiveSQLTransaction, "transaction read-write mode must be set before any query")
	}
	return nil
}

// changeSetting stores a value so that the end of the transaction block can put
// the old one back. A local change outside a block is over at once.
func (s *Session) changeSetting(d *setting, name, value string, local bool) error {
	old, _ := s.settings.get(name)
	if err := s.storeSetting(d, name, value); err != nil {
		return err
	}
	if !s.block.open {
		if local {
			return s.storeSetting(d, name, old)
		}
		return nil
	}
	if !local { // outlives what SET LOCAL did to the same parameter before
		for i := range s.block.saved {
			if strings.EqualFold(s.block.saved[i].name, name) {
				s.block.saved[i].local = false
			}
		}
	}
	s.block.saved = append(s.block.saved, savedSetting{name, old, local})
	return nil
}

// restoreSettings puts back what was changed after the first keep changes:
// all of it, or only what was local.
func (s *Session) restoreSettings(keep int, all bool) error {
	list := s.block.saved
	for i := len(list) - 1; i >= keep; i-- {
		if all || list[i].local {
			if err := s.storeSetting(findSetting(list[i].name), list[i].name, list[i].value); err != nil {
				return err
			}
		}
	}
	s.block.saved = list[:keep]
	return nil
}

func (s *Session) storeSetting(d *setting, name, value string) error {
	if d != nil && d.check != nil {
		v, err := d.check(s, value)
		if err != nil {
			return err
		}
		value = v
	}
	s.settings.values[strings.ToLower(name)] = value
	s.settings.version++
	if d != nil && d.report && s.opts.Parameter != nil {
		s.opts.Parameter(d.name, value)
	}
	return nil
}

// reset puts a parameter back to its default.
func (s *Session) reset(name string) error {
	d := findSetting(name)
	if d == nil {
		if !strings.Contains(name, ".") {
			return pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
		}
		delete(s.settings.values, strings.ToLower(name))
		return nil
	}
	if d.fixed {
		return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter \"%s\" cannot be changed", d.name)
	}
	return s.changeSetting(d, d.name, s.settings.resetValue(d), false)
}

// resetAll is RESET ALL, which leaves who the session is (GUC_NO_RESET_ALL).
func (st *settings) resetAll() {
	for _, d := range known {
		if d.name == "role" || d.name == "session_authorization" {
			continue
		}
		if _, changed := st.values[strings.ToLower(d.name)]; changed && !d.fixed && d.name != "application_name" {
			// A default always passes its own check.
			_ = st.session.changeSetting(&d, d.name, st.resetValue(&d), false)
		}
	}
}

func invalidValue(name, value string) error {
	return pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": \"%s\"", name, value)
}

// checkAuthorization is for SET SESSION AUTHORIZATION: a session is who its
// certificate or password says from beginning to end.
func checkAuthorization(s *Session, v string) (string, error) {
	if v != s.opts.User {
		return "", pgerr.New(pgerr.InsufficientPrivilege, "permission denied to set session authorization").
			WithHint("Connect as that user.")
	}
	return v, nil
}

// checkRole is for SET ROLE: nobody is a member of another role.
func checkRole(s *Session, v string) (string, error) {
	if v != "none" && v != s.opts.User {
		return "", pgerr.New(pgerr.InsufficientPrivilege, "permission denied to set role \"%s\"", v).
			WithHint("Connect as that user.")
	}
	return v, nil
}

func checkEncoding(_ *Session, v string) (string, error) {
	switch strings.ToLower(strings.Trim(v, "' ")) {
	case "utf8", "utf-8", "unicode", "sql_ascii":
		return "UTF8", nil
	}
	return "", pgerr.New(pgerr.FeatureNotSupported, "conversion between %s and UTF8 is not supported", v).
		WithHint("Set client_encoding to UTF8.")
}

func checkBool(_ *Session, v string) (string, error) {
	switch strings.ToLower(v) {
	case "on", "true", "yes", "1", "t":
		return "on", nil
	case "off", "false", "no", "0", "f":
		return "off", nil
	}
	return "", pgerr.New(pgerr.InvalidParameterValue, "parameter requires a Boolean value")
}

// checkReadOnly applies transaction_read_only to the block that is open.
func checkReadOnly(s *Session, v string) (string, error) {
	b, err := checkBool(s, v)
	if err == nil && s.block.open {
		s.block.readOnly = b == "on"
	}
	return b, err
}

func checkConforming(s *Session, v string) (string, error) {
	b, err := checkBool(s, v)
	if err == nil && b == "off" {
		return "", pgerr.NotBuilt("standard_conforming_strings = off is not supported")
	}
	return b, err
}

func checkNumber(_ *Session, v string) (string, error) {
	num := strings.TrimRight(v, "minsdhu ")
	if _, err := strconv.ParseFloat(num, 64); err != nil {
		return "", pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter: \"%s\"", v)
	}
	return v, nil
}

func checkDateStyle(s *Session, v string) (string, error) {
	f := s.format
	names := map[datum.DateStyle]string{datum.ISO: "ISO", datum.SQL: "SQL", datum.Postgres: "Postgres", datum.German: "German"}
	orders := map[datum.DateOrder]string{datum.MDY: "MDY", datum.DMY: "DMY", datum.YMD: "YMD"}
	for _, w := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch strings.ToLower(w) {
		case "iso":
			f.DateStyle = datum.ISO
		case "sql":
			f.DateStyle = datum.SQL
		case "postgres", "postgresql":
			f.DateStyle = datum.Postgres
		case "german":
			f.DateStyle, f.DateOrder = datum.German, datum.DMY
		case "mdy", "us", "noneuro", "noneuropean":
			f.DateOrder = datum.MDY
		case "dmy", "euro", "european":
			f.DateOrder = datum.DMY
		case "ymd":
			f.DateOrder = datum.YMD
		default:
			return "", invalidValue("DateStyle", v)
		}
	}
	s.format.DateStyle, s.format.DateOrder = f.DateStyle, f.DateOrder
	return names[f.DateStyle] + ", " + orders[f.DateOrder], nil
}

func checkIntervalStyle(s *Session, v string) (string, error) {
	styles := map[string]datum.IntervalStyle{
		"postgres": datum.IntervalPostgres, "postgres_verbose": datum.IntervalPostgresVerbose,
		"sql_standard": datum.IntervalSQLStandard, "iso_8601": datum.IntervalISO8601,
	}
	st, ok := styles[strings.ToLower(v)]
	if !ok {
		return "", invalidValue("IntervalStyle", v).(*pgerr.Error).
			WithHint("Available values: postgres, postgres_verbose, sql_standard, iso_8601.")
	}
	s.format.IntervalStyle = st
	return strings.ToLower(v), nil
}

func checkTimeZone(s *Session, v string) (string, error) {
	zone, err := datum.LoadZone(v)
	if err != nil {
		return "", invalidValue("TimeZone", v)
	}
	s.format.Zone, s.format.ZoneName = zone, zone.String()
	return zone.String(), nil
}

func checkFloatDigits(s *Session, v string) (string, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < -15 || n > 3 {
		return "", invalidValue("extra_float_digits", v)
	}
	s.format.FloatDigits = n
	return v, nil
}

func checkBytea(s *Session, v string) (string, error) {
	switch strings.ToLower(v) {
	case "hex":
		s.format.ByteaEscape = false
	case "escape":
		s.format.ByteaEscape = true
	default:
		return "", invalidValue("bytea_output", v)
	}
	return strings.ToLower(v), nil
}

func checkHeight(s *Session, v string) (string, error) {
	if v == "" {
		s.settings.height = -1
		return v, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return "", invalidValue("tallystick.height", v).(*pgerr.Error).
			WithHint("A block number; RESET tallystick.height reads the newest block.")
	}
	s.settings.height = n
	return v, nil
}

func checkSearchPath(s *Session, v string) (string, error) {
	var path []string
	for _, w := range strings.Split(v, ",") {
		w = strings.Trim(strings.TrimSpace(w), "\"'")
		if w == "" || w == "$user" || slices.Contains(path, w) {
			continue
		}
		if w == "public" {
			w = SearchPath[0]
		}
		path = append(path, w)
	}
	s.settings.path = path
	return v, nil
}

// runSet is SET and RESET.
func (s *Session) runSet(n *pg.VariableSetStmt) (rowSource, error) {
	switch n.Kind {
	case pg.VariableSetKind_VAR_RESET_ALL:
		s.settings.resetAll()
		return done("RESET"), nil
	case pg.VariableSetKind_VAR_RESET:
		return done("RESET"), s.reset(n.Name)
	case pg.VariableSetKind_VAR_SET_DEFAULT:
		return done("SET"), s.reset(n.Name)
	case pg.VariableSetKind_VAR_SET_MULTI:
		return done("SET"), s.setCharacteristics(n)
	case pg.VariableSetKind_VAR_SET_CURRENT:
		v, _ := s.settings.get(n.Name)
		return done("SET"), s.setSetting(n.Name, v, n.IsLocal)
	}
	var words []string
	for _, a := range n.Args {
		w, err := settingWord(a)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	if n.IsLocal && !s.block.open {
		s.notice("WARNING", pgerr.New(pgerr.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
		return done("SET"), nil
	}
	return done("SET"), s.setSetting(n.Name, strings.Join(words, ", "), n.IsLocal)
}

func settingWord(n *pg.Node) (string, error) {
	if tc := n.GetTypeCast(); tc != nil { // SET TIME ZONE INTERVAL ...
		n = tc.Arg
	}
	c := n.GetAConst()
	if c == nil {
		return "", pgerr.New(pgerr.SyntaxError, "SET takes constants only")
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return strconv.Itoa(int(v.Ival.Ival)), nil
	case *pg.A_Const_Fval:
		return v.Fval.Fval, nil
	case *pg.A_Const_Sval:
		return v.Sval.Sval, nil
	case *pg.A_Const_Boolval:
		return strconv.FormatBool(v.Boolval.Boolval), nil
	}
	return "0", nil
}

func showColumns(name string) []plan.Column {
	text := func(n string) plan.Column { return plan.Column{Name: n, Type: datum.T(datum.Text)} }
	if name == "all" {
		return []plan.Column{text("name"), text("setting"), text("description")}
	}
	if d := findSetting(name); d != nil {
		name = d.name
	}
	return []plan.Column{text(name)}
}

func (s *Session) runShow(name string) (rowSource, error) {
	if name == "all" {
		sorted := slices.SortedFunc(slices.Values(known), func(a, b setting) int {
			return cmp.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
		})
		var list [][]datum.Datum
		for _, d := range sorted {
			if d.hidden {
				continue
			}
			v, _ := s.settings.get(d.name)
			list = append(list, []datum.Datum{datum.Str(d.name), datum.Str(v), datum.Str("")})
		}
		return &rows{list: list, tag: "SHOW"}, nil
	}
	v, ok := s.settings.get(name)
	if !ok {
		return nil, pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter \"%s\"", name)
	}
	return &rows{list: [][]datum.Datum{{datum.Str(v)}}, tag: "SHOW"}, nil
}

// Settings lists name and value of all run-time parameters by name, for
// pg_settings.
func (s *Session) Settings() [][2]string {
	out := make([][2]string, 0, len(known))
	for _, d := range known {
		if d.hidden {
			continue
		}
		v, _ := s.settings.get(d.name)
		out = append(out, [2]string{d.name, v})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	return out
}
