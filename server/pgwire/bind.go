package pgwire

import (
	"strconv"
	"unsafe"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// checkBind refuses a Bind whose counts contradict the statement.
func checkBind(m *pgproto3.Bind, params int) error {
	formats, values := len(m.ParameterFormatCodes), len(m.Parameters)
	if formats > 1 && formats != values {
		return pgerr.New(pgerr.ProtocolViolation, "bind message has %d parameter formats but %d parameters", formats, values)
	}
	if values != params {
		return pgerr.New(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement \"%s\" requires %d",
			values, m.PreparedStatement, params)
	}
	return nil
}

// checkOutput refuses result formats that the columns cannot have; it also
// makes sure that rows can be encoded without looking for errors.
func checkOutput(cols []plan.Column, codes []int16) error {
	if len(codes) > 1 && len(codes) != len(cols) {
		return pgerr.New(pgerr.ProtocolViolation, "bind message has %d result formats but query has %d columns", len(codes), len(cols))
	}
	for i := range cols {
		t := cols[i].Type
		switch code := formatOf(codes, i); code {
		case pgproto3.TextFormat:
			if t.Append == nil {
				return pgerr.New(pgerr.UndefinedFunction, "no output function available for type %s", t.Name)
			}
		case pgproto3.BinaryFormat:
			if t.AppendBinary == nil {
				return pgerr.New(pgerr.UndefinedFunction, "no binary output function available for type %s", t.Name)
			}
		default:
			return errFormatCode(code)
		}
	}
	return nil
}

func errFormatCode(code int16) error {
	return pgerr.New(pgerr.InvalidParameterValue, "unsupported format code: %d", code)
}

// bindArgs reads the arguments of a Bind, which checkBind has seen. The datums
// live as long as anybody wants: they refer to one copy of the values, because
// the message does not outlive the next one.
func bindArgs(m *pgproto3.Bind, params []datum.Type, f *datum.Format) ([]datum.Datum, error) {
	if len(params) == 0 {
		return nil, nil
	}
	size := 0
	for _, p := range m.Parameters {
		size += len(p)
	}
	args, values := make([]datum.Datum, len(params)), make([]byte, 0, size)
	for i, p := range m.Parameters {
		if p == nil {
			args[i] = datum.Null
			continue
		}
		start := len(values)
		values = append(values, p...)
		var err error
		args[i], err = bindArg(values[start:len(values):len(values)], params[i], formatOf(m.ParameterFormatCodes, i), f)
		if err != nil {
			return nil, bindError(err, m, i)
		}
	}
	return args, nil
}

func bindArg(value []byte, t datum.Type, code int16, f *datum.Format) (datum.Datum, error) {
	switch code {
	case pgproto3.TextFormat:
		text := unsafe.String(unsafe.SliceData(value), len(value))
		if err := datum.CheckText(text); err != nil {
			return datum.Null, err
		}
		if t.Parse == nil {
			return datum.Null, pgerr.New(pgerr.UndefinedFunction, "no input function available for type %s", t.Name)
		}
		return t.Parse(text, t.Mod, f)
	case pgproto3.BinaryFormat:
		if t.ParseBinary == nil {
			return datum.Null, pgerr.New(pgerr.UndefinedFunction, "no binary input function available for type %s", t.Name)
		}
		return t.ParseBinary(value, t.Mod)
	}
	return datum.Null, errFormatCode(code)
}

// bindError says which argument an error is about (bind_param_error_callback).
// The three dots are what PostgreSQL shows of the value of a text argument
// unless log_parameter_max_length_on_error allows more.
func bindError(err error, m *pgproto3.Bind, i int) error {
	e, ok := pgerr.From(err)
	if !ok {
		return err
	}
	where := "unnamed portal"
	if m.DestinationPortal != "" {
		where = "portal \"" + m.DestinationPortal + "\""
	}
	where += " parameter $" + strconv.Itoa(i+1)
	switch {
	case e.Code == pgerr.InvalidBinaryRepresentation:
		e.Message += " in bind parameter " + strconv.Itoa(i+1)
	case formatOf(m.ParameterFormatCodes, i) == pgproto3.TextFormat && e.Code != pgerr.CharacterNotInRepertoire:
		where += " = '...'"
	}
	return e.AddContext(where)
}
