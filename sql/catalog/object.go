package catalog

import (
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/datum"
)

// OID numbers an object. Objects of users have the top bit set and are counted
// in the system phase (DESIGN: rules that keep replicas equal).
type OID = datum.OID

// FirstPrivateOID is the OID of the first object in schema private.
const FirstPrivateOID OID = 16384

// FirstUserOID is the OID that the first object of a user gets in the replicated
// catalog; those of schema private count from FirstPrivateOID.
const FirstUserOID OID = 1 << 31

// Schema is a namespace.
type Schema struct {
	OID   OID
	Name  string
	Owner string
}

// RelKind is pg_class.relkind.
type RelKind string

// The kinds of relations.
const (
	OrdinaryTable RelKind = "r"
	View          RelKind = "v"
	// MaterializedView is in schema private only: a stored table with a query.
	MaterializedView RelKind = "m"
	Sequence         RelKind = "S" // in schema private only
)

// OnCommit is ON COMMIT of a temporary table; "" preserves its rows.
type OnCommit string

// What ON COMMIT may do to a temporary table.
const (
	DeleteRows OnCommit = "delete"
	DropTable  OnCommit = "drop"
)

// Table is a relation whose rows are stored, or a view.
type Table struct {
	OID     OID
	Schema  string
	Name    string
	Kind    RelKind
	Owner   string
	Columns []Column
	// Indexes holds the primary key's index first; it is never empty for a table.
	Indexes     []Index
	Checks      []Check
	ForeignKeys []ForeignKey
	Triggers    []Trigger `json:",omitempty"`
	// RowSecurity tells that Policies apply; to the owner too with ForceRowSecurity.
	RowSecurity      bool     `json:",omitempty"`
	ForceRowSecurity bool     `json:",omitempty"`
	Policies         []Policy `json:",omitempty"`
	// OnCommit is what becomes of a temporary table when its transaction commits.
	OnCommit OnCommit `json:",omitempty"`
	// Query is the defining SELECT of a view, as text.
	Query string `json:",omitempty"`
	// Unpopulated marks a materialized view WITH NO DATA.
	Unpopulated bool `json:",omitempty"`
	// Path is the search path by which Query finds names; nil = the default one.
	Path []string `json:",omitempty"`
	// Sequence is set for a sequence.
	Sequence *SequenceDef `json:",omitempty"`
	// System marks the ledger's own relations: nobody writes them with DML.
	System bool `json:",omitempty"`
	// ACL is who may read it; nil = everyone.
	ACL *ACL `json:",omitempty"`

	// RowType and RowArray are the OIDs of the type of its rows and of arrays of
	// these; 0 for the ledger's own relations.
	RowType  OID `json:",omitempty"`
	RowArray OID `json:",omitempty"`

	// Row is the type of its rows; nil for the ledger's own relations.
	Row *datum.Desc `json:"-"`

	linked bool         // columns and row type are resolved
	key    []rwset.Read // the catalog rows that this and its types were read from
}

// Column is one column of a table. Dropped columns stay, so that positions in
// stored rows and attribute numbers (index + 1) never change.
type Column struct {
	Name    string
	TypeOID OID
	TypMod  int32
	NotNull bool   `json:",omitempty"`
	Default string `json:",omitempty"` // SQL expression; "" = none
	// Generated is the expression of a GENERATED ALWAYS AS (...) STORED column.
	Generated string `json:",omitempty"`
	// Sequence is the OID of the sequence that an identity or serial column draws
	// from; Identity is pg_attribute.attidentity: a (ALWAYS), d (BY DEFAULT).
	Sequence OID    `json:",omitempty"`
	Identity string `json:",omitempty"`
	// Missing is the text form of the value that rows written before the column
	// was added have; nil means null.
	Missing *string `json:",omitempty"`
	Dropped bool    `json:",omitempty"`

	Type datum.Type `json:"-"` // resolved from TypeOID and TypMod
}

// Index is one index. Its entries hold the primary key of the row.
type Index struct {
	OID     OID
	Name    string
	Unique  bool `json:",omitempty"`
	Primary bool `json:",omitempty"`
	Keys    []IndexKey
	// Include are columns that INCLUDE adds. Entries hold no copies of columns, so
	// they matter to readers of the catalog only.
	Include []int `json:",omitempty"`
	// Constraint tells that a constraint of the same name owns the index.
	Constraint bool `json:",omitempty"`
	// Predicate is the WHERE of a partial index, as ruleutils.c would write it: only
	// rows for which it is true have an entry. "" = every row.
	Predicate string `json:",omitempty"`
	// Hidden marks the index that identifies the rows of a private table without
	// a primary key: over a column that counts as dropped. No client sees it.
	Hidden bool `json:",omitempty"`
}

// SequenceDef is the definition of a sequence. Its state is no part of the
// catalog: it lives under StateOID, outside of all transactions; a sequence that
// has none yet gives Initial next.
type SequenceDef struct {
	TypeOID          OID
	Start, Increment int64
	Min, Max         int64
	Cache            int64
	Cycle            bool `json:",omitempty"`
	Initial          int64
	StateOID         OID
	OwnerTable       OID `json:",omitempty"` // OWNED BY; 0 = none
	OwnerColumn      int `json:",omitempty"`
}

// IndexKey is one key of an index: a column or an expression over columns.
type IndexKey struct {
	Column     int  // position in Table.Columns; -1 for an expression
	Desc       bool `json:",omitempty"`
	NullsFirst bool `json:",omitempty"`
	// Expr is the expression as ruleutils.c would write it, TypeOID and TypMod are
	// those of its value; unset for a column.
	Expr    string `json:",omitempty"`
	TypeOID OID    `json:",omitempty"`
	TypMod  int32  `json:",omitempty"`

	Type datum.Type `json:"-"` // resolved from TypeOID and TypMod
}

// Check is a CHECK constraint; the expression is kept as SQL text.
type Check struct {
	OID  OID
	Name string
	Expr string
}

// ForeignKey is a FOREIGN KEY constraint.
type ForeignKey struct {
	OID        OID
	Name       string
	Columns    []int
	RefSchema  string
	RefTable   string
	RefColumns []int
	OnDelete   string // pg_constraint.confdeltype: a r c n d
	OnUpdate   string
}

// FuncKind is pg_proc.prokind.
type FuncKind string

// The kinds of user functions.
const (
	Function  FuncKind = "f"
	Procedure FuncKind = "p"
)

// ArgMode is pg_proc.proargmodes.
type ArgMode string

// The modes of arguments.
const (
	In       ArgMode = "i"
	Out      ArgMode = "o"
	InOut    ArgMode = "b"
	Variadic ArgMode = "v"
	TableArg ArgMode = "t"
)

// Arg is one declared argument of a function.
type Arg struct {
	Name    string
	Mode    ArgMode
	TypeOID OID
	TypMod  int32
	Default string `json:",omitempty"` // SQL expression; "" = none

	Type datum.Type `json:"-"`
}

// Func is a user-defined function or procedure: a contract, if it stands in
// schema blockchain.
type Func struct {
	OID      OID
	Schema   string
	Name     string
	Kind     FuncKind
	Args     []Arg
	RetOID   OID
	RetMod   int32
	RetSet   bool `json:",omitempty"`
	Language string
	Body     string
	// Source is the CREATE statement as it was deployed.
	Source     string
	Volatility string // i, s, v
	Strict     bool   `json:",omitempty"`
	Definer    bool   `json:",omitempty"` // SECURITY DEFINER
	Owner      string
	// Settings are the SET clauses, name=value.
	Settings []string `json:",omitempty"`
	// Version counts CREATE OR REPLACE, from 1.
	Version int
	// ACL is who may call it; nil = everyone.
	ACL *ACL `json:",omitempty"`

	Ret datum.Type `json:"-"`
	// Shape is not empty for a function as one call sees it, with concrete types
	// in the place of polymorphic ones or known fields in that of record: it
	// names these types.
	Shape string `json:"-"`
	key   []rwset.Read
}

// InArgs returns the arguments that a call passes: IN, INOUT and VARIADIC.
func (f *Func) InArgs() []Arg {
	var in []Arg
	for _, a := range f.Args {
		if a.Mode == In || a.Mode == InOut || a.Mode == Variadic {
			in = append(in, a)
		}
	}
	return in
}

// OutArgs returns the arguments that form the result: OUT, INOUT and TABLE.
func (f *Func) OutArgs() []Arg {
	var out []Arg
	for _, a := range f.Args {
		if a.Mode == Out || a.Mode == InOut || a.Mode == TableArg {
			out = append(out, a)
		}
	}
	return out
}

// Reads is what a transaction that resolved the table has read.
func (t *Table) Reads() []rwset.Read { return t.key }

// Reads is what a transaction that resolved the function has read.
func (f *Func) Reads() []rwset.Read { return f.key }

// HasColumn tells whether a column is among the keys of the index.
func (x *Index) HasColumn(col int) bool {
	for _, k := range x.Keys {
		if k.Column == col {
			return true
		}
	}
	return false
}

// Computed tells that entries of the index depend on more than the values of its
// columns: it is partial or has a key that is an expression.
func (x *Index) Computed() bool { return x.Predicate != "" || x.HasColumn(-1) }

// ComputesKeys tells that the table has such an index.
func (t *Table) ComputesKeys() bool {
	for i := range t.Indexes {
		if t.Indexes[i].Computed() {
			return true
		}
	}
	return false
}

// local tells that an object is of this node alone: it is in schema private, temporary, or in a
// schema that was made beside private, which have a store and a counter of their own.
func local(schema string, oid OID) bool {
	return IsLocal(schema) || schema != Blockchain && oid >= FirstPrivateOID && oid < FirstUserOID
}

// Local tells that the schema is of this node alone: private itself, or one that
// a session made whose new objects go to private.
func (s *Schema) Local() bool { return local(s.Name, s.OID) }

// Local tells that the table is of this node alone, which has a store for it.
func (t *Table) Local() bool { return local(t.Schema, t.OID) }

// Local tells that the function is of this node alone.
func (f *Func) Local() bool { return local(f.Schema, f.OID) }

// Local tells that the type is of this node alone.
func (t *Type) Local() bool { return local(t.Schema, t.OID) }

// HasQuery tells that the relation is defined by a query: a view, materialized or
// not.
func (t *Table) HasQuery() bool { return t.Kind == View || t.Kind == MaterializedView }

// RowIdentity is the position of the column that identifies rows instead of a
// primary key, -1 if there is a primary key.
func (t *Table) RowIdentity() int {
	if len(t.Indexes) > 0 && t.Indexes[0].Hidden {
		return t.Indexes[0].Keys[0].Column
	}
	return -1
}

// PrimaryKey returns the index of the declared primary key, nil if there is none.
func (t *Table) PrimaryKey() *Index {
	for i := range t.Indexes {
		if t.Indexes[i].Primary && !t.Indexes[i].Hidden {
			return &t.Indexes[i]
		}
	}
	return nil
}

// Primary returns the index by which rows are stored: the primary key's, or the
// hidden one.
func (t *Table) Primary() *Index { return &t.Indexes[0] }

// Column finds a live column by name and returns its position, or -1.
func (t *Table) Column(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name && !t.Columns[i].Dropped {
			return i
		}
	}
	return -1
}

// Types returns the types of all columns in storage order, dropped ones too.
func (t *Table) Types() []datum.Type {
	types := make([]datum.Type, len(t.Columns))
	for i := range t.Columns {
		types[i] = t.Columns[i].Type
	}
	return types
}
