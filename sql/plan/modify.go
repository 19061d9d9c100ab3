package plan

import (
	"github.com/tallystick/tallystick/sql/catalog"
)

// ModifyKind is the kind of a [Modify].
type ModifyKind uint8

// The kinds of data modification.
const (
	Insert ModifyKind = iota
	Update
	Delete
	Merge
)

// Modify inserts, updates, deletes or merges rows of a table.
//
// The rows that Child makes are collected before the first one is written, so
// that a statement never sees its own effects.
//
// For an insert, New gives every column of the table as an expression over the
// slots of Child. For an update, Old holds the slots of the complete old row
// and New the complete new row. For a delete only Old is set.
//
// Then, per row: the new values are put into NewSlots; generated columns are
// computed; NOT NULL, Checks and the keys are verified; the row is written and
// Returning is computed.
type Modify struct {
	Kind  ModifyKind
	Table *catalog.Table
	Child Node
	// Carry are the slots of Child that New and Returning read besides Old.
	Carry []int
	Old   []int
	New   []Expr
	// NewSlots are the slots of the new row, for Checks, Generated, conflict
	// actions and Returning; one per column of the table.
	NewSlots  []int
	Generated []GeneratedColumn
	Checks    []CheckExpr
	// Policies are what row-level security demands of the new row, over NewSlots.
	Policies []PolicyCheck
	Conflict *Conflict // INSERT only
	// Actions are the WHEN clauses of MERGE. Old is the row that matches, all null
	// if none does; New is not used.
	Actions []MergeAction
	// Computed is what the indexes of the table compute of a row: see
	// [IndexExpressions].
	Computed []*ExprPlan
	// ForeignKeys are the constraints of this table to verify after a change of
	// their columns; Referenced those of other tables that refer to this one.
	ForeignKeys []ForeignKeyCheck
	Referenced  []ForeignKeyCheck
	// Triggers is nil if there are none for the statement.
	Triggers *Triggers
	// Changed tells for an update, per column, whether it is assigned.
	Changed []bool
	// Returning, if not nil, makes the statement return rows.
	Returning []Expr
	Out       []int
}

// GeneratedColumn computes a stored generated column from NewSlots.
type GeneratedColumn struct {
	Column int
	Expr   Expr
}

// CheckExpr is a CHECK constraint over NewSlots.
type CheckExpr struct {
	Name string
	Expr Expr
}

// ForeignKeyCheck is a foreign key with both tables resolved. RefIndex is the
// unique index of Ref that the key points to; its key columns in order are the
// columns of Columns. ByIndex is the index of From whose leading columns are
// the key, or nil.
type ForeignKeyCheck struct {
	FK       *catalog.ForeignKey
	From     *catalog.Table
	Ref      *catalog.Table
	RefIndex *catalog.Index
	// Columns are the referring columns in the order of RefIndex's keys.
	Columns []int
	ByIndex *catalog.Index
}

// Conflict is ON CONFLICT.
type Conflict struct {
	// Index is the arbiter; nil = any unique index (DO NOTHING only).
	Index *catalog.Index
	// Set, if not nil, is the complete new row of DO UPDATE: it reads ExistingSlots
	// and the proposed row in NewSlots (excluded). Where filters.
	Set           []Expr
	Where         Expr
	ExistingSlots []int
	Changed       []bool
	// Visible are the conditions of row-level security for the row that is there,
	// Policies those for what becomes of it.
	Visible  []Expr
	Policies []PolicyCheck
}

func (*Modify) node() {}
