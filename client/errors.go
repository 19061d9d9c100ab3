package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/blockstore/block"
)

// OutcomeUnknown is the error of a transaction that was handed over and of whose
// outcome nothing was heard. It may commit until its validity ends. Submitting
// it again has no second effect.
type OutcomeUnknown struct {
	ID    block.TxID
	Cause error
}

// Error implements error.
func (e *OutcomeUnknown) Error() string {
	return fmt.Sprintf("client: the outcome of transaction %s is not known: %v", e.ID, e.Cause)
}

// Unwrap returns the cause.
func (e *OutcomeUnknown) Unwrap() error { return e.Cause }

// State returns the SQLSTATE of an error that a node answered with, "" for any
// other.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// again reports whether the same call may succeed if it is signed anew: it lost a
// conflict, or its snapshot is too old.
func again(err error) bool { return slices.Contains([]string{"40001", "72000"}, State(err)) }

// busy reports whether a node had no room.
func busy(err error) bool { return strings.HasPrefix(State(err), "53") }

// elsewhere reports whether another node may do better: no answer at all, or one
// that says that this node is not able to serve.
func elsewhere(err error) bool {
	if errors.As(err, new(userError)) {
		return false
	}
	state := State(err)
	return state == "" || strings.HasPrefix(state, "57P") || strings.HasPrefix(state, "08") || strings.HasPrefix(state, "58")
}
