package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// session returns the connection of a local query; a function that needs one is
// refused in contracts before it runs, so its absence is a misuse that still
// must not read the node's own state.
func session(c *Ctx, function string) (*SessionInfo, error) {
	if c.Session == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "function %s is not available in a contract", function)
	}
	return c.Session, nil
}

func transactionTime(c *Ctx) (datum.Datum, error) {
	s, err := session(c, "now()")
	if err != nil {
		return datum.Null, err
	}
	return datum.Int(s.TxTime), nil
}

// today is the current date in the session's zone.
func today(c *Ctx) (int32, error) {
	now, err := transactionTime(c)
	if err != nil {
		return 0, err
	}
	return datum.TimestampTZToDate(now.Int(), c.Format.Zone)
}

// valueProcs are what SQL calls without parentheses: the planner turns the key
// words into calls of these. PostgreSQL has no functions for most of them; the
// OIDs are free there.
var valueProcs = []procRow{
	{9020, "current_date() date", "s!", "current_date"},
	{9021, "current_time() timetz", "s!", "current_time"},
	{9022, "current_timestamp() timestamptz", "s!", "now"},
	{9023, "localtime() time", "s!", "localtime"},
	{9024, "localtimestamp() timestamp", "s!", "localtimestamp"},
	{9025, "current_role() name", "s!", "current_user"},
	{9026, "user() name", "s!", "current_user"},
	{9027, "current_catalog() name", "s!", "current_database"},
}

var clockEvals = evalMap{
	"now": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) { return transactionTime(c) },
	"statement_timestamp": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		s, err := session(c, "statement_timestamp()")
		if err != nil {
			return datum.Null, err
		}
		return datum.Int(s.StatementTime), nil
	},
	"clock_timestamp": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		s, err := session(c, "clock_timestamp()")
		if err != nil {
			return datum.Null, err
		}
		return datum.Int(s.Clock()), nil
	},
	"current_date": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		d, err := today(c)
		return datum.Int(int64(d)), err
	},
	"localtimestamp": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		now, err := transactionTime(c)
		if err != nil {
			return datum.Null, err
		}
		us, err := datum.TZToTimestamp(now.Int(), c.Format.Zone)
		return datum.Int(us), err
	},
	"current_time": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		now, err := transactionTime(c)
		if err != nil {
			return datum.Null, err
		}
		return timestamptzTimeTZ(c, []datum.Datum{now})
	},
	"localtime": func(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
		now, err := transactionTime(c)
		if err != nil {
			return datum.Null, err
		}
		return timestamptzTime(c, []datum.Datum{now})
	},
}
