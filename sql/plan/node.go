package plan

import (
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
)

// Plan is a statement made ready for execution.
type Plan struct {
	Root Node
	// Columns describes the result; nil for a statement without one.
	Columns []Column
	// Out gives, for each result column, the slot that holds it.
	Out []int
	// Slots is the width of the frame.
	Slots int
	// Params are the types of the parameters.
	Params []datum.Type
	// Subqueries is the number of subqueries, CTEs the number of WITH queries.
	Subqueries int
	CTEs       int
	// Command is the first word of the command tag: SELECT, INSERT, UPDATE, DELETE,
	// MERGE.
	Command string
	// Reads are the catalog rows that the plan depends on.
	Reads []rwset.Read
	// Writes tells that the plan modifies a table (in any of its parts).
	Writes bool
	// Order is the ORDER BY of the whole query.
	Order []SortKey
	// Local tells that all tables it modifies are in schema private.
	Local bool
}

// Column is one column of a result, as RowDescription reports it.
type Column struct {
	Name string
	Type datum.Type
	// Table and Attr name the column that the value comes from unchanged; zero
	// otherwise.
	Table datum.OID
	Attr  int16
}

// Node is one operator of a plan. The set of implementations is closed: the
// types of this file, of window.go and of modify.go.
type Node interface{ node() }

// Result makes one row without slots of its own, or none if Cond is not true.
type Result struct {
	Cond Expr // nil = always
}

// Scan reads a stored table through one index.
type Scan struct {
	Table *catalog.Table
	// Index points into Table.Indexes; the first is the primary key.
	Index *catalog.Index
	// Slots gives the slot for each column of the table; -1 where the column is
	// not needed.
	Slots []int
	// Sys gives the slots of the system columns; -1 where not needed.
	Sys SysSlots
	// Ranges are the parts of the index to read, in order, without overlap at
	// run time (the executor sorts and merges those that come from lists). No
	// range reads all.
	Ranges []Range
	// Alias is the name by which the statement calls the table.
	Alias string
	// Filter is what the ranges do not answer; nil = none.
	Filter  Expr
	Reverse bool
	// Policy is what row-level security demands; it is evaluated before Filter.
	Policy Expr
	// Provenance reads all versions instead of the live rows.
	Provenance bool
	// FromBlock and ToBlock bound the creator block of a provenance scan;
	// inclusive; nil = open.
	FromBlock, ToBlock Expr
	At                 Place
	// Through are the views whose text the scan stands in, the outermost first.
	Through []*catalog.Table
}

// Place is where something stands in the text of the statement: the byte offset
// plus 1. The zero Place is unknown, as that of what a view brings in.
type Place int32

// SysSlots are the slots of system columns; -1 where not needed.
type SysSlots struct {
	Xmin, Xmax, CreatorBlock, DeleterBlock, TableOID, Ctid int
}

// Range is a part of an index: values for the leading key columns, then
// optionally a list or bounds for the next one. All expressions are free of
// slots of the scanned table; a null bound makes the range empty.
type Range struct {
	Eq []RangeKey
	// In, if not nil, is an array: the next key column equals one of its elements.
	In     Expr
	Lo, Hi *Bound
}

// RangeKey is an equality with the key column: its value, or IS NULL.
type RangeKey struct {
	Value Expr // nil = IS NULL
}

// Bound is one end of a range.
type Bound struct {
	Value     Expr
	Inclusive bool
}

// VirtualScan reads a relation that is computed: pg_catalog and the like.
type VirtualScan struct {
	Relation *Virtual
	Slots    []int // per column; -1 = not needed
	Filter   Expr
	Alias    string
}

// Virtual is a relation whose rows are computed from the environment.
type Virtual struct {
	OID     datum.OID
	Schema  string
	Name    string
	Columns []VirtualColumn
	// Rows calls emit for every row; emit's slice is copied. env is the value
	// that the session put into exec.Env.Virtual.
	Rows func(env any, emit func(row []datum.Datum) error) error
}

// VirtualColumn is one column of a [Virtual].
type VirtualColumn struct {
	Name string
	Type datum.Type
	// Hidden columns are found by name but are not part of *: tableoid.
	Hidden bool
}

// FuncScan reads the rows of a function in FROM. Exactly one of Builtin and
// User is set; Value is set instead for a function that returns one value.
type FuncScan struct {
	Builtin *builtin.Func
	Set     builtin.SetEval
	User    *catalog.Func
	Value   Expr
	Args    []Expr
	// Slots of the columns. A user function that returns one composite value or
	// SETOF composite fills one slot per field.
	Slots      []int
	Ordinality int // slot of WITH ORDINALITY; -1 = none
	Filter     Expr
	Alias      string
	// Parts are the functions of ROWS FROM, side by side; Slots are those of all
	// of them, and nothing else is set but Ordinality and Filter.
	Parts []*FuncScan
}

// ProjectSet expands set-returning functions in a select list: for every row
// of Child as many rows as the longest set, shorter ones padded with null.
type ProjectSet struct {
	Child Node
	Sets  []SetItem
}

// SetItem is one set-returning function of a [ProjectSet].
type SetItem struct {
	Set  builtin.SetEval
	User *catalog.Func // instead of Set
	Args []Expr
	Out  int
}

// Values makes constant rows.
type Values struct {
	Rows  [][]Expr
	Slots []int
}

// Filter passes the rows for which Cond is true.
type Filter struct {
	Child Node
	Cond  Expr
}

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds of joins. Semi passes an outer row that has a match, Anti one that
// has none.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	SemiJoin
	AntiJoin
)

// NestLoop runs Inner again for every row of Outer. Kinds: Inner, Left, Semi,
// Anti. Inner may read the slots of Outer (an index look-up, LATERAL).
type NestLoop struct {
	Kind         JoinKind
	Outer, Inner Node
	Cond         Expr  // nil = true
	InnerSlots   []int // set to null for an outer row without match
}

// HashJoin hashes Inner by InnerKeys and probes with Outer; rows come in the
// order of Outer, matches in the order of Inner. Equality is that of the key
// types, compared exactly; null keys never match. Inner may not read slots of
// Outer. Unmatched inner rows of Right and Full come last, in their order.
type HashJoin struct {
	Kind                   JoinKind
	Outer, Inner           Node
	OuterKeys, InnerKeys   []Expr // pairwise of one type
	Cond                   Expr   // further condition; nil = true
	InnerSlots, OuterSlots []int  // what each side fills
}

// Project computes expressions into slots.
type Project struct {
	Child Node
	Exprs []Expr
	Out   []int
}

// Aggregate groups rows. Groups come out in the order of their first row.
// Without GroupBy there is exactly one row.
type Aggregate struct {
	Child    Node
	GroupBy  []Expr
	GroupOut []int
	Aggs     []Agg
	// Sets are the grouping sets, as indexes into GroupBy: rows are grouped by
	// each of them, one after the other, and keys that are not in it are null.
	// Nil is one set of all keys.
	Sets      [][]int
	Groupings []Grouping
	// Sorted tells that rows of a group arrive together.
	Sorted bool
}

// Agg is one aggregate of an [Aggregate].
type Agg struct {
	Func     *builtin.Func
	Args     []Expr
	Distinct bool
	OrderBy  []SortKey
	Filter   Expr
	// Direct are the direct arguments of an ordered-set aggregate, which has no
	// Args: it takes the values of OrderBy. They read the keys of the group.
	Direct []Expr
	Type   datum.Type
	Out    int
	At     Place
}

// SortKey is one key of an order.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// Sort sorts, stable in the order of arrival.
type Sort struct {
	Child Node
	Keys  []SortKey
	Slots []int // what to keep of every row
	// Top, if not nil, bounds how many rows are wanted (LIMIT plus OFFSET).
	Top Expr
}

// Limit is LIMIT and OFFSET; nil or a null value = none.
type Limit struct {
	Child         Node
	Count, Offset Expr
	// Ties tells WITH TIES: rows equal to the last one in these keys follow.
	Ties []SortKey
	// Order is the ORDER BY of the query, also where an index saves the sort.
	Order []SortKey
	// Extreme tells that the one row is for min or max, to which any of equal
	// rows gives the same.
	Extreme bool
	At      Place
}

// Unique passes the first row of every distinct combination of Keys, in order
// of arrival (DISTINCT, DISTINCT ON).
type Unique struct {
	Child Node
	Keys  []Expr
	// On tells DISTINCT ON: rows of one combination may differ otherwise.
	On bool
	At Place
}

// Append is UNION ALL: the rows of the children one after the other, their
// slots In[i] moved to Out.
type Append struct {
	Children []Node
	In       [][]int
	Out      []int
}

// SetOpKind selects INTERSECT or EXCEPT.
type SetOpKind uint8

// The set operations; UNION is [Append] under [Unique].
const (
	Intersect SetOpKind = iota
	Except
)

// SetOp is INTERSECT or EXCEPT; rows come in the order of the left side.
type SetOp struct {
	Kind            SetOpKind
	All             bool
	Left, Right     Node
	LeftIn, RightIn []int
	Out             []int
	Types           []datum.Type
}

// With runs Body with WITH queries at hand. Each is run once, when first
// needed, and kept; data-modifying ones run even if nobody reads them.
type With struct {
	CTEs []CTE
	Body Node
}

// CTE is one WITH query.
type CTE struct {
	ID    int
	Name  string
	Node  Node
	Out   []int // slots of Node that are kept
	Types []datum.Type
	// Recursive: Node is the non-recursive term and Step the recursive one,
	// which reads the working table with a [CTEScan] of the same ID.
	Step     Node
	StepOut  []int
	Distinct bool // UNION instead of UNION ALL
	Modifies bool
}

// CTEScan reads the kept rows of a WITH query.
type CTEScan struct {
	ID     int
	Slots  []int // -1 = not needed
	Filter Expr
	// Working reads the working table inside the recursive term.
	Working bool
	Alias   string
}

func (*Result) node()      {}
func (*Scan) node()        {}
func (*VirtualScan) node() {}
func (*FuncScan) node()    {}
func (*ProjectSet) node()  {}
func (*Values) node()      {}
func (*Filter) node()      {}
func (*NestLoop) node()    {}
func (*HashJoin) node()    {}
func (*Project) node()     {}
func (*Aggregate) node()   {}
func (*Sort) node()        {}
func (*Limit) node()       {}
func (*Unique) node()      {}
func (*Append) node()      {}
func (*SetOp) node()       {}
func (*With) node()        {}
func (*CTEScan) node()     {}
