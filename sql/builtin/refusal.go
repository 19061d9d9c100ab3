package builtin

import "strings"

// The reasons why contracts may not call a function. Every function whose
// result could differ between two nodes, or between now and a replay in ten
// years, has one; TestEveryVolatileFunctionIsRefused keeps it so.
const (
	whyClock   = "it reads the clock of the node"
	whyRandom  = "its result differs between nodes"
	whySession = "it depends on the session"
	whyCatalog = "it describes the catalog or the node"
	whySideWay = "its effect lies outside the transaction"
)

// refusals names the functions that contracts may not call. Those that begin
// with pg_ or has_ are refused unless contractSafe lists them.
var refusals = map[string]Refusal{
	"now":                   {whyClock, "tx_time()"},
	"transaction_timestamp": {whyClock, "tx_time()"},
	"statement_timestamp":   {whyClock, "tx_time()"},
	"clock_timestamp":       {whyClock, "tx_time()"},
	"current_timestamp":     {whyClock, "tx_time()"},
	"localtimestamp":        {whyClock, "tx_time()::timestamp"},
	"current_date":          {whyClock, "tx_time()::date"},
	"current_time":          {whyClock, "tx_time()::timetz"},
	"localtime":             {whyClock, "tx_time()::time"},
	"random":                {whyRandom, "tx_random()"},
	"setseed":               {whySideWay, "tx_random()"},
	"gen_random_uuid":       {whyRandom, "tx_uuid()"},
	"txid_current":          {whyRandom, "tx_id()"},
	"nextval":               {whySideWay, "tx_uuid(), or a key computed from the data"},
	"currval":               {whySession, "tx_uuid(), or a key computed from the data"},
	"setval":                {whySideWay, ""},
	"lastval":               {whySession, "tx_uuid(), or a key computed from the data"},

	"current_user":    {whySession, "tx_user()"},
	"session_user":    {whySession, "tx_user()"},
	"user":            {whySession, "tx_user()"},
	"current_role":    {whySession, "tx_user()"},
	"getpgusername":   {whySession, "tx_user()"},
	"current_catalog": {whySession, ""}, "current_database": {whySession, ""},
	"current_schema": {whySession, ""}, "current_schemas": {whySession, ""},
	"current_setting": {whySession, ""}, "set_config": {whySideWay, ""},
	"current_query": {whySession, ""}, "version": {whyCatalog, ""},
	"inet_client_addr": {whySession, ""}, "inet_client_port": {whySession, ""},
	"inet_server_port":    {whySession, ""},
	"getdatabaseencoding": {whyCatalog, ""},

	"obj_description": {whyCatalog, ""}, "col_description": {whyCatalog, ""}, "shobj_description": {whyCatalog, ""},
	"to_regclass": {whyCatalog, ""}, "to_regtype": {whyCatalog, ""}, "to_regproc": {whyCatalog, ""},
	"to_regprocedure": {whyCatalog, ""}, "to_regoper": {whyCatalog, ""}, "to_regoperator": {whyCatalog, ""},
	"to_regnamespace": {whyCatalog, ""}, "to_regrole": {whyCatalog, ""}, "regclass": {whyCatalog, ""},
	"format_type": {whyCatalog, ""}, "oidvectortypes": {whyCatalog, ""}, "acldefault": {whyCatalog, ""},
}

// contractSafe lists the functions named pg_... that contracts may call.
var contractSafe = map[string]bool{
	"pg_typeof": true, "pg_size_pretty": true, "pg_size_bytes": true,
}

// refusalsByOID refuses single overloads.
var refusalsByOID = map[uint32]Refusal{
	1386: {whyClock, "age(tx_time(), x)"},            // age(timestamptz)
	2059: {whyClock, "age(tx_time()::timestamp, x)"}, // age(timestamp)
	2037: {whyClock, "timezone(interval, x)"},        // timezone(text, timetz)
}

func refusalOf(f *Func) *Refusal {
	r, ok := refusalsByOID[uint32(f.OID)]
	if !ok {
		r, ok = refusals[f.Name]
	}
	if !ok && (strings.HasPrefix(f.Name, "pg_") || strings.HasPrefix(f.Name, "has_")) && !contractSafe[f.Name] {
		r, ok = Refusal{Why: whyCatalog}, true
	}
	if !ok {
		return nil
	}
	return &r
}
