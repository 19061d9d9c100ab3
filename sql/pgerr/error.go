package pgerr

import (
	"errors"
	"fmt"
)

// Error is one report in PostgreSQL's sense; its fields are those of an
// ErrorResponse message. A nil *Error must not be stored in an error.
type Error struct {
	Code     Code   // SQLSTATE
	Message  string // primary message, lower case, no full stop
	Detail   string // optional
	Hint     string // optional: what to do about it
	Context  string // PL/pgSQL call stack, innermost line first
	Position int    // 1-based character position in the statement; 0 = none

	// Raised tells that a contract raised the error itself: then its code, which
	// the contract chose, says nothing about the node.
	Raised bool

	// InternalQuery and InternalPosition are set when the position refers to
	// a statement that the system or a contract generated.
	InternalQuery    string
	InternalPosition int

	// Unbuilt tells that [NotBuilt] made the error.
	Unbuilt bool

	// Schema, Table, Column, DataType and Constraint name the object of an
	// integrity violation.
	Schema, Table, Column, DataType, Constraint string
}

// New makes an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{Code: code, Message: format}
	}
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NotBuilt reports a part of PostgreSQL that does not exist here yet, by name.
func NotBuilt(format string, args ...any) *Error {
	e := New(FeatureNotSupported, format, args...).
		WithHint("Tallystick does not have this part of PostgreSQL yet.")
	e.Unbuilt = true
	return e
}

// Error returns the message with its SQLSTATE, for logs.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
}

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At sets the position (1-based, in characters) unless one is set already, and
// returns e. Zero or less leaves it unset.
func (e *Error) At(pos int) *Error {
	if e.Position == 0 && pos > 0 {
		e.Position = pos
	}
	return e
}

// AddContext appends one line to the context, as callers further out do.
func (e *Error) AddContext(line string) *Error {
	if e.Context != "" {
		e.Context += "\n"
	}
	e.Context += line
	return e
}

// IsVerdict reports whether e may become the outcome of a transaction: a contract
// raised it, or its code is of the closed class.
func (e *Error) IsVerdict() bool { return e.Raised || e.Code.IsVerdict() }

// From finds the *Error in err's chain, if there is one.
func From(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// CodeOf returns the SQLSTATE of err; an error that carries none is
// [InternalError].
func CodeOf(err error) Code {
	if e, ok := From(err); ok {
		return e.Code
	}
	return InternalError
}
