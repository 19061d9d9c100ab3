package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// id returns an id that no other client of a run has: the client's number above
// a random part.
func id(rng *rand.Rand, client int) int64 {
	return int64(client)<<44 | rng.Int64N(1<<44)
}

func simpleSource(rng *rand.Rand, client, _ int) Source {
	types := []string{"bigint", "integer", "integer", "integer", "numeric"}
	return func() Op {
		return Op{Name: "c_simple", Types: types, Args: []any{
			id(rng, client), 1 + rng.Int64N(10), 1 + rng.Int64N(100_000), 1 + rng.Int64N(100), "12.50",
		}}
	}
}

// groupSource calls a contract that works on five of a thousand groups.
func groupSource(name string) func(*rand.Rand, int, int) Source {
	types := []string{"bigint", "integer"}
	return func(rng *rand.Rand, client, _ int) Source {
		return func() Op {
			return Op{Name: name, Types: types, Args: []any{id(rng, client), rng.Int64N(996)}}
		}
	}
}

var transferTypes = []string{"integer", "integer", "numeric"}

func transferSource(rng *rand.Rand, _, scale int) Source {
	n := int64(scale)
	return func() Op {
		from := rng.Int64N(n)
		to := (from + 1 + rng.Int64N(n-1)) % n
		return Op{Name: "c_transfer", Types: transferTypes, Args: []any{1 + from, 1 + to, "0.01"}}
	}
}

// hotSource transfers from account 1 to any other.
func hotSource(rng *rand.Rand, _, scale int) Source {
	return func() Op {
		return Op{Name: "c_transfer", Types: transferTypes, Args: []any{int64(1), 2 + rng.Int64N(int64(scale)-1), "0.01"}}
	}
}

// smallbankSource takes each of the six transactions equally often.
func smallbankSource(rng *rand.Rand, _, scale int) Source {
	one := []string{"integer"}
	two := []string{"integer", "numeric"}
	pair := []string{"integer", "integer"}
	n := int64(scale)
	return func() Op {
		a := rng.Int64N(n)
		b := (a + 1 + rng.Int64N(n-1)) % n
		a, b = a+1, b+1
		switch rng.IntN(6) {
		case 0:
			return Op{Name: "sb_balance", Types: one, Args: []any{a}}
		case 1:
			return Op{Name: "sb_deposit_checking", Types: two, Args: []any{a, "1.30"}}
		case 2:
			return Op{Name: "sb_transact_savings", Types: two, Args: []any{a, "20.20"}}
		case 3:
			return Op{Name: "sb_amalgamate", Types: pair, Args: []any{a, b}}
		case 4:
			return Op{Name: "sb_write_check", Types: two, Args: []any{a, "5.00"}}
		default:
			return Op{Name: "sb_send_payment", Types: transferTypes, Args: []any{a, b, "5.00"}}
		}
	}
}

// mix is what a YCSB workload consists of, in per cent.
type mix struct {
	read, update, insert, scan, modify int
	latest                             bool // reads prefer what is new
}

func ycsb(letter byte, about string, m mix) Workload {
	return Workload{
		Name: "ycsb-" + string(letter), About: "YCSB " + strings.ToUpper(string(letter)) + ": " + about,
		schema: "ycsb", Scale: 100_000, Queries: true,
		load: func(scale int) []Op { return loadCalls("load_ycsb", scale) },
		source: func(rng *rand.Rand, client, scale int) Source {
			return ycsbSource(rng, client, scale, m)
		},
	}
}

const (
	ycsbRead = "SELECT f0, f1, f2, f3, f4 FROM usertable WHERE k = $1"
	ycsbScan = "SELECT f0, f1, f2, f3, f4 FROM usertable WHERE k >= $1 ORDER BY k LIMIT $2"
)

// ycsbSource draws keys from the zipfian distribution of the benchmark, with
// hot keys spread over the table.
func ycsbSource(rng *rand.Rand, client, scale int, m mix) Source {
	const theta = 0.99
	zipf := newZipf(rng, scale, theta)
	text := strings.Repeat("x", 100)
	key := []string{"integer"}
	write := []string{"integer", "text"}
	inserted := int64(0)
	hot := func() int64 {
		k := int64(zipf.next())
		if m.latest {
			return int64(scale) - k
		}
		return 1 + (k*0x9E3779B1)%int64(scale)
	}
	return func() Op {
		switch p := rng.IntN(100); {
		case p < m.read:
			return Op{Name: "read", Query: ycsbRead, Types: key, Args: []any{hot()}}
		case p < m.read+m.update:
			return Op{Name: "ycsb_update", Types: write, Args: []any{hot(), text}}
		case p < m.read+m.update+m.modify:
			return Op{Name: "ycsb_read_modify_write", Types: write, Args: []any{hot(), text}}
		case p < m.read+m.update+m.modify+m.scan:
			return Op{Name: "scan", Query: ycsbScan, Types: []string{"integer", "bigint"}, Args: []any{hot(), 1 + rng.Int64N(100)}}
		default:
			inserted++
			return Op{Name: "ycsb_insert", Types: write, Args: []any{int64(scale) + inserted<<10 + int64(client), text}}
		}
	}
}

func pkSource(rng *rand.Rand, _, scale int) Source {
	types := []string{"integer"}
	return func() Op {
		return Op{Name: "pk-select", Query: "SELECT v FROM kv WHERE k = $1", Types: types, Args: []any{1 + rng.Int64N(int64(scale))}}
	}
}

const analyticQuery = `SELECT d.region, d.tier, count(*) AS n, sum(f.qty * f.price) AS revenue, avg(f.price) AS avg_price
FROM fact f JOIN dim d ON d.id = f.dim_id WHERE f.d >= date '2024-06-01'
GROUP BY d.region, d.tier ORDER BY revenue DESC, d.region, d.tier LIMIT 10`

func analyticSource(*rand.Rand, int, int) Source {
	return func() Op { return Op{Name: "analytic", Query: analyticQuery} }
}

// String is the operation as SQL text, for people.
func (o *Op) String() string {
	if o.Query != "" {
		return o.Query
	}
	args := make([]string, len(o.Args))
	for i, a := range o.Args {
		args[i] = fmt.Sprint(a)
	}
	return o.Name + "(" + strings.Join(args, ", ") + ")"
}
