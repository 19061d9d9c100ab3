package pgwire

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// fatalError ends the connection after it was reported.
type fatalError struct{ report *pgerr.Error }

func (e fatalError) Error() string { return e.report.Error() }
func (e fatalError) Unwrap() error { return e.report }

// The causes of a cancellation are made for each one: whoever reports an error
// may add context to it.

func errUserCancel() error {
	return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
}

func errShutdown() error {
	return fatalError{pgerr.New(pgerr.AdminShutdown, "terminating connection due to administrator command")}
}

// explain turns an error into a report. A statement that merely passes on that
// ctx was canceled is reported with the reason of the cancellation. internal
// tells that err is none that a client caused.
func explain(ctx context.Context, err error) (e *pgerr.Error, internal bool) {
	if e, ok := pgerr.From(err); ok {
		return e, e.Code == pgerr.InternalError
	}
	if errors.Is(err, context.Canceled) {
		if cause, ok := pgerr.From(context.Cause(ctx)); ok {
			return cause, false
		}
	}
	return pgerr.New(pgerr.InternalError, "%s", err.Error()), true
}

// response fills an ErrorResponse or NoticeResponse. Text that a NUL byte would
// cut off or that is not UTF-8 must not leave the server as it is.
func response(severity string, e *pgerr.Error) pgproto3.ErrorResponse {
	return pgproto3.ErrorResponse{
		Severity:            severity,
		SeverityUnlocalized: severity,
		Code:                string(e.Code),
		Message:             clean(e.Message),
		Detail:              clean(e.Detail),
		Hint:                clean(e.Hint),
		Position:            int32(e.Position),
		InternalPosition:    int32(e.InternalPosition),
		InternalQuery:       clean(e.InternalQuery),
		Where:               clean(e.Context),
		SchemaName:          clean(e.Schema),
		TableName:           clean(e.Table),
		ColumnName:          clean(e.Column),
		DataTypeName:        clean(e.DataType),
		ConstraintName:      clean(e.Constraint),
	}
}

func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
