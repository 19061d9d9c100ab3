package builtin

import (
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// sequences finds the sequences of the call's environment.
func sequences(c *Ctx, function string) (*Sequences, error) {
	if c == nil || c.Sequences == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "%s works in schema private only", function)
	}
	return c.Sequences, nil
}

func nextval(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := sequences(c, "nextval()")
	if err != nil {
		return datum.Null, err
	}
	v, err := s.Next(datum.OID(a[0].Int()))
	return datum.Int(v), err
}

func currval(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := sequences(c, "currval()")
	if err != nil {
		return datum.Null, err
	}
	v, err := s.Current(datum.OID(a[0].Int()))
	return datum.Int(v), err
}

func lastval(c *Ctx, _ []datum.Datum) (datum.Datum, error) {
	s, err := sequences(c, "lastval()")
	if err != nil {
		return datum.Null, err
	}
	v, err := s.Last()
	return datum.Int(v), err
}

func setval(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s, err := sequences(c, "setval()")
	if err != nil {
		return datum.Null, err
	}
	called := len(a) < 3 || a[2].Bool()
	return a[1], s.Set(datum.OID(a[0].Int()), a[1].Int(), called)
}

var sequenceEvals = evalMap{
	"nextval_oid": nextval, "currval_oid": currval, "lastval": lastval, "setval_oid": setval, "setval3_oid": setval,
}
