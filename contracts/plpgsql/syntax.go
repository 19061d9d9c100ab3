package plpgsql

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/parse"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// stmt is a node of the syntax tree. The set of implementations is closed: the
// types of this file.
type stmt interface {
	// line is the line of the body that the statement begins on, from 1.
	line() int
	// title is how CONTEXT names the statement.
	title() string
}

type at int

func (a at) line() int { return int(a) }

// label is a name in front of a block or loop, and the target of EXIT and
// CONTINUE; loops without a name have a label with an empty one.
type label struct {
	name string
	loop bool
}

// variable is a variable of a function: declared, an argument, or implicit.
type variable struct {
	name     string
	id       int // position in Function.vars
	lineNo   int
	typ      typeRef
	constant bool
	notNull  bool
	init     *expr // DEFAULT; nil = null
	cursor   *cursorDecl
}

// typeRef is a type as declared.
type typeRef struct {
	kind typeKind
	// text is a type name for namedType, else the name before %TYPE or %ROWTYPE.
	text  string
	parts []string  // of a %TYPE or %ROWTYPE reference
	of    *variable // %TYPE of a variable, perhaps followed by a field
	field string
	pos   int // byte offset in the body
	given datum.Type
}

type typeKind uint8

const (
	namedType   typeKind = iota
	copyType             // %TYPE
	rowOf                // %ROWTYPE
	recordType           // RECORD
	cursorType           // refcursor, or a bound cursor
	dynamicType          // of a CASE: whatever the expression gives
	givenType            // of an argument: typeRef.given
)

// cursorDecl is the query of a bound cursor.
type cursorDecl struct {
	args  []*variable
	query *expr
}

// name is one entry of the chain of names that are visible at a place: a
// variable, or the label that separates one scope from the next outer one.
type name struct {
	outer *name
	text  string
	v     *variable // nil for a label
	label *label    // nil for the label of a scope that has none
}

// expr is a piece of SQL: an expression or a statement.
type expr struct {
	text  string
	pos   int // byte offset in the body
	ns    *name
	mode  exprMode
	whole parse.Statement // of a statement
	// assign is the text of the whole assignment that the expression is the
	// right side of.
	assign string
}

type exprMode uint8

const (
	exprValue exprMode = iota
	exprStatement
)

// target is what can be assigned to.
type target struct {
	v    *variable
	path []step
}

// step is one step into a variable: a field, or a subscript.
type step struct {
	field  string
	index  *expr // element
	slice  bool
	lo, hi *expr // slice; nil = omitted
}

// into is the INTO clause: one record variable, or a list of scalars.
type into struct {
	targets []target
	strict  bool
}

type (
	block struct {
		at
		label    *label
		decls    []*variable
		body     []stmt
		handlers []handler
		// of the handlers
		sqlstate, sqlerrm *variable
	}
	handler struct {
		conditions []condition
		body       []stmt
	}
	// condition matches errors; others is OTHERS.
	condition struct {
		others bool
		codes  []pgerr.Code
	}
	assignStmt struct {
		at
		target target
		value  *expr
	}
	ifStmt struct {
		at
		arms     []arm
		elseBody []stmt
	}
	arm struct {
		cond *expr
		body []stmt
	}
	caseStmt struct {
		at
		arg      *expr // nil for the searched form
		argVar   *variable
		arms     []arm
		hasElse  bool
		elseBody []stmt
	}
	loopStmt struct {
		at
		label *label
		cond  *expr // nil for LOOP
		body  []stmt
	}
	forIntStmt struct {
		at
		label              *label
		v                  *variable
		lower, upper, step *expr // step may be nil
		reverse            bool
		body               []stmt
	}
	forQueryStmt struct {
		at
		label *label
		into  *into
		query *expr // SELECT, or an expression that gives the text
		dyn   bool
		using []*expr
		body  []stmt
	}
	forCursorStmt struct {
		at
		label  *label
		v      *variable // the record of the loop
		cursor *variable
		args   []*expr
		body   []stmt
	}
	foreachStmt struct {
		at
		label  *label
		target target
		slice  int
		array  *expr
		body   []stmt
	}
	exitStmt struct {
		at
		again bool // CONTINUE
		label *label
		cond  *expr
	}
	returnStmt struct {
		at
		value *expr // nil: none
		v     *variable
	}
	returnNextStmt struct {
		at
		value *expr
		v     *variable
	}
	returnQueryStmt struct {
		at
		query *expr
		dyn   bool
		using []*expr
	}
	raiseStmt struct {
		at
		level   string
		code    pgerr.Code // from a condition name or SQLSTATE
		name    string     // how the condition was given
		format  []string   // pieces between the placeholders; nil = none
		args    []*expr
		options []raiseOption
		bare    bool
	}
	raiseOption struct {
		name  string
		value *expr
	}
	assertStmt struct {
		at
		cond, message *expr
	}
	sqlStmt struct {
		at
		query *expr
		into  *into
	}
	performStmt struct {
		at
		query *expr
	}
	callStmt struct {
		at
		query *expr
	}
	executeStmt struct {
		at
		query *expr
		into  *into
		using []*expr
	}
	diagStmt struct {
		at
		stacked bool
		items   []diagItem
	}
	diagItem struct {
		target target
		kind   string
	}
	openStmt struct {
		at
		cursor *variable
		query  *expr
		dyn    bool
		using  []*expr
		args   []*expr
	}
	fetchStmt struct {
		at
		cursor *variable
		into   *into // nil for MOVE
		count  *expr // nil = 1
		all    bool
	}
	closeStmt struct {
		at
		cursor *variable
	}
)

func (*block) title() string      { return "statement block" }
func (*assignStmt) title() string { return "assignment" }
func (*ifStmt) title() string     { return "IF" }
func (*caseStmt) title() string   { return "CASE" }
func (s *loopStmt) title() string {
	if s.cond != nil {
		return "WHILE"
	}
	return "LOOP"
}
func (*forIntStmt) title() string { return "FOR with integer loop variable" }
func (s *forQueryStmt) title() string {
	if s.dyn {
		return "FOR over EXECUTE statement"
	}
	return "FOR over SELECT rows"
}
func (*forCursorStmt) title() string { return "FOR over cursor" }
func (*foreachStmt) title() string   { return "FOREACH over array" }
func (s *exitStmt) title() string {
	if s.again {
		return "CONTINUE"
	}
	return "EXIT"
}
func (*returnStmt) title() string      { return "RETURN" }
func (*returnNextStmt) title() string  { return "RETURN NEXT" }
func (*returnQueryStmt) title() string { return "RETURN QUERY" }
func (*raiseStmt) title() string       { return "RAISE" }
func (*assertStmt) title() string      { return "ASSERT" }
func (*sqlStmt) title() string         { return "SQL statement" }
func (*performStmt) title() string     { return "PERFORM" }
func (*callStmt) title() string        { return "CALL" }
func (*executeStmt) title() string     { return "EXECUTE" }
func (s *diagStmt) title() string {
	if s.stacked {
		return "GET STACKED DIAGNOSTICS"
	}
	return "GET DIAGNOSTICS"
}
func (*openStmt) title() string { return "OPEN" }
func (s *fetchStmt) title() string {
	if s.into == nil {
		return "MOVE"
	}
	return "FETCH"
}
func (*closeStmt) title() string { return "CLOSE" }
