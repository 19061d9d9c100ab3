package bench

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

//go:embed workloads/*.sql
var schemas embed.FS

// Op is one operation of a client: the call of a contract or, if Query is set,
// a local query. Args are int64 or string values; Types are their SQL types,
// those of the function's declaration.
type Op struct {
	Name  string // of the contract, or of the query for reports
	Query string
	Types []string
	Args  []any
}

// Source makes the operations of one client.
type Source func() Op

// Workload is something to measure.
type Workload struct {
	Name, About string
	schema      string // file in workloads
	// load returns the calls that fill the tables at a scale, each of at most
	// loadChunk rows.
	load func(scale int) []Op
	// source makes what a client does; rng is the client's own.
	source func(rng *rand.Rand, client, scale int) Source
	// Scale is the number of rows that a scale of 0 means.
	Scale int
	// Check is a query that gives true as long as the contracts kept the
	// invariant of the workload; empty if it has none.
	Check string
	// Queries tells that operations are queries too: they need a connection.
	Queries bool
}

// loadChunk is how many rows a call that fills a table inserts: few enough for
// the default limits of a transaction.
const loadChunk = 10_000

// Schema returns the definitions to deploy.
func (w *Workload) Schema() string {
	b, err := schemas.ReadFile("workloads/" + w.schema + ".sql")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return string(b)
}

// Load returns the calls that fill the tables.
func (w *Workload) Load(scale int) []Op {
	if w.load == nil {
		return nil
	}
	return w.load(w.scale(scale))
}

// Source returns what a client does. The same seed and client give the same
// operations.
func (w *Workload) Source(seed uint64, client, scale int) Source {
	return w.source(rand.New(rand.NewPCG(seed, uint64(client))), client, w.scale(scale))
}

func (w *Workload) scale(n int) int {
	if n > 0 {
		return n
	}
	return w.Scale
}

// Workloads are all there are, in the order of reports.
func Workloads() []Workload { return slices.Clone(workloads) }

// Find returns the workload of a name.
func Find(name string) (*Workload, error) {
	for i := range workloads {
		if workloads[i].Name == name {
			return &workloads[i], nil
		}
	}
	names := make([]string, len(workloads))
	for i := range workloads {
		names[i] = workloads[i].Name
	}
	return nil, fmt.Errorf("bench: no workload %q; there are %s", name, strings.Join(names, ", "))
}

var workloads = []Workload{
	{
		Name: "simple", About: "insert one row of 11 columns", schema: "simple",
		source: simpleSource,
	},
	{
		Name: "complex-join", About: "sum over 500 joined rows, insert one", schema: "complex-join", Scale: 20_000,
		load: func(scale int) []Op {
			return slices.Concat(loadCalls("load_join_a", scale), loadCalls("load_join_b", 5*scale))
		},
		source: groupSource("c_join"),
	},
	{
		Name: "complex-group", About: "group 500 rows, insert the largest group", schema: "complex-group", Scale: 100_000,
		load:   func(scale int) []Op { return loadCalls("load_group", scale) },
		source: groupSource("c_group"),
	},
	{
		Name: "transfer", About: "read two accounts, update two", schema: "transfer", Scale: 100_000,
		load:   func(scale int) []Op { return loadCalls("load_accounts", scale) },
		source: transferSource,
		Check:  "SELECT sum(bal) = 10000 * count(*) FROM accounts_chk",
	},
	{
		Name: "hot-row", About: "all transfers from one account", schema: "transfer", Scale: 1_000,
		load:   func(scale int) []Op { return loadCalls("load_accounts", scale) },
		source: hotSource,
		Check:  "SELECT sum(bal) = 10000 * count(*) FROM accounts_chk",
	},
	{
		Name: "smallbank", About: "SmallBank's six transactions, uniform", schema: "smallbank", Scale: 100_000,
		load:   func(scale int) []Op { return loadCalls("load_bank", scale) },
		source: smallbankSource,
	},
	ycsb('a', "50 % reads, 50 % updates", mix{read: 50, update: 50}),
	ycsb('b', "95 % reads, 5 % updates", mix{read: 95, update: 5}),
	ycsb('c', "reads only", mix{read: 100}),
	ycsb('d', "95 % reads of what is new, 5 % inserts", mix{read: 95, insert: 5, latest: true}),
	ycsb('e', "95 % scans of up to 100 rows, 5 % inserts", mix{scan: 95, insert: 5}),
	ycsb('f', "50 % reads, 50 % read-modify-write", mix{read: 50, modify: 50}),
	{
		Name: "pk-select", About: "read one row by primary key", schema: "kv", Scale: 100_000, Queries: true,
		load:   func(scale int) []Op { return loadCalls("load_kv", scale) },
		source: pkSource,
	},
	{
		Name: "analytic", About: "join and group a million rows", schema: "analytic", Scale: 1_000_000, Queries: true,
		load: func(scale int) []Op {
			return slices.Concat(loadCalls("load_dim", 10_000), loadCalls("load_fact", scale))
		},
		source: analyticSource,
	},
}

// loadCalls are calls of a function that inserts rows from..to.
func loadCalls(name string, rows int) []Op {
	var list []Op
	for from := 1; from <= rows; from += loadChunk {
		to := min(from+loadChunk-1, rows)
		list = append(list, Op{Name: name, Types: []string{"integer", "integer"}, Args: []any{int64(from), int64(to)}})
	}
	return list
}
