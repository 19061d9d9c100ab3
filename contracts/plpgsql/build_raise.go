package plpgsql

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// notInHandler is stacked_diagnostics_accessed_without_active_handler.
const notInHandler pgerr.Code = "0Z002"

func (b *builder) raise(s *raiseStmt) runFunc {
	if s.bare {
		return func(fr *frame) (flow, error) {
			if fr.handled == nil {
				return goOn, pgerr.New(notInHandler, "RAISE without parameters cannot be used outside an exception handler")
			}
			c := *fr.handled
			fr.rethrown = true
			return goOn, &c
		}
	}
	args := b.sites(s.args)
	options := make([]*site, len(s.options))
	for i := range s.options {
		options[i] = b.site(s.options[i].value, datum.Type{})
	}
	return func(fr *frame) (flow, error) {
		e := &pgerr.Error{Code: s.code, Message: s.name}
		if s.format != nil {
			msg, err := fr.format(s.format, args)
			if err != nil {
				return goOn, err
			}
			e.Message = msg
		}
		if err := fr.raiseOptions(s, options, e); err != nil {
			return goOn, err
		}
		if e.Code == "" {
			e.Code = defaultCode(s.level)
		}
		if e.Message == "" && s.format == nil {
			e.Message = string(e.Code)
		}
		if s.level == "ERROR" {
			e.Raised = true
			return goOn, e
		}
		if notice := fr.env.Ctx.Notice; notice != nil {
			notice(s.level, e.AddContext(fr.context()))
		}
		return goOn, nil
	}
}

func defaultCode(level string) pgerr.Code {
	switch level {
	case "ERROR":
		return pgerr.RaiseException
	case "WARNING":
		return pgerr.Warning
	}
	return pgerr.SuccessfulCompletion
}

// format fills the placeholders of a format.
func (fr *frame) format(pieces []string, args []*site) (string, error) {
	if len(args) == 0 {
		return pieces[0], nil
	}
	var buf []byte
	for i, piece := range pieces {
		buf = append(buf, piece...)
		if i == len(args) {
			break
		}
		pl, err := args[i].ready(fr)
		if err != nil {
			return "", err
		}
		d, err := args[i].value(fr, pl)
		if err != nil {
			return "", err
		}
		if d.IsNull() {
			buf = append(buf, "<NULL>"...)
			continue
		}
		buf = pl.typ.Append(buf, d, fr.env.Ctx.Format)
	}
	return string(buf), nil
}

// text evaluates an expression and gives its text form.
func (s *site) text(fr *frame) (text string, null bool, err error) {
	pl, err := s.ready(fr)
	if err != nil {
		return "", false, err
	}
	d, err := s.value(fr, pl)
	if err != nil || d.IsNull() {
		return "", true, err
	}
	return string(pl.typ.Append(nil, d, fr.env.Ctx.Format)), false, nil
}

func (fr *frame) raiseOptions(s *raiseStmt, values []*site, e *pgerr.Error) error {
	// An option may be given once; the message also by the format, and the code
	// also by a condition.
	var given [9]bool
	for i, o := range s.options {
		text, null, err := values[i].text(fr)
		if err != nil {
			return err
		}
		if null {
			return pgerr.New(pgerr.NullValueNotAllowed, "RAISE statement option cannot be null")
		}
		var to *string
		k := 0
		switch o.name {
		case "errcode":
			if given[0] || s.code != "" {
				return optionTwice(o.name)
			}
			given[0] = true
			if e.Code, err = codeOf(text); err != nil {
				return err
			}
			if s.format == nil && e.Message == "" {
				e.Message = text
			}
			continue
		case "message":
			to, k = &e.Message, 1
			given[1] = given[1] || s.format != nil
		case "detail":
			to, k = &e.Detail, 2
		case "hint":
			to, k = &e.Hint, 3
		case "column":
			to, k = &e.Column, 4
		case "constraint":
			to, k = &e.Constraint, 5
		case "datatype":
			to, k = &e.DataType, 6
		case "table":
			to, k = &e.Table, 7
		case "schema":
			to, k = &e.Schema, 8
		}
		if given[k] {
			return optionTwice(o.name)
		}
		given[k], *to = true, text
	}
	return nil
}

func optionTwice(name string) error {
	return pgerr.New(pgerr.SyntaxError, "RAISE option already specified: %s", strings.ToUpper(name))
}

// codeOf reads ERRCODE: a SQLSTATE or a condition name.
func codeOf(text string) (pgerr.Code, error) {
	if validCode(text) {
		return pgerr.Code(text), nil
	}
	if codes := conditions[text]; codes != nil {
		return codes[0], nil
	}
	return "", pgerr.New(pgerr.UndefinedObject, "unrecognized exception condition \"%s\"", text)
}

func (b *builder) assert(s *assertStmt) runFunc {
	cond, message := b.site(s.cond, boolean), b.optional(s.message, datum.Type{})
	return func(fr *frame) (flow, error) {
		d, err := cond.eval(fr)
		if err != nil || d.IsTrue() {
			return goOn, err
		}
		text := "assertion failed"
		if message != nil {
			m, null, err := message.text(fr)
			if err != nil {
				return goOn, err
			}
			if !null {
				text = m
			}
		}
		return goOn, pgerr.New(pgerr.AssertFailure, "%s", text)
	}
}

func (b *builder) diagnostics(s *diagStmt) runFunc {
	places := make([]*place, len(s.items))
	for i := range s.items {
		places[i] = b.place(&s.items[i].target)
	}
	int8 := datum.T(datum.Int8)
	return func(fr *frame) (flow, error) {
		if s.stacked && fr.handled == nil {
			return goOn, pgerr.New(notInHandler, "GET STACKED DIAGNOSTICS cannot be used outside an exception handler")
		}
		for i, it := range s.items {
			var d datum.Datum
			t := textual
			switch it.kind {
			case "row_count":
				d, t = datum.Int(fr.rowCount), int8
			case "pg_context":
				d = datum.Str(fr.context())
			default:
				d = datum.Str(stackedItem(fr.handled, it.kind))
			}
			want, err := places[i].typeNow(fr)
			if err == nil {
				d, err = fr.convertType(d, t, want)
			}
			if err == nil {
				err = places[i].store(fr, d)
			}
			if err != nil {
				return goOn, err
			}
		}
		return goOn, nil
	}
}

func stackedItem(e *pgerr.Error, kind string) string {
	switch kind {
	case "returned_sqlstate":
		return string(e.Code)
	case "message_text":
		return e.Message
	case "pg_exception_detail":
		return e.Detail
	case "pg_exception_hint":
		return e.Hint
	case "pg_exception_context":
		return e.Context
	case "column_name":
		return e.Column
	case "constraint_name":
		return e.Constraint
	case "pg_datatype_name":
		return e.DataType
	case "table_name":
		return e.Table
	}
	return e.Schema
}
