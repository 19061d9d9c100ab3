package contracts

import (
	"unicode/utf8"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// MakeCall makes what is to be signed: the call of a function with arguments
// of these types, which must be those of its declaration.
func MakeCall(schema, name string, types []datum.Type, args []datum.Datum) (block.Call, error) {
	if len(types) != len(args) {
		return block.Call{}, pgerr.New(pgerr.ProtocolViolation, "%d arguments of %d types", len(args), len(types))
	}
	if len(args) > block.MaxArgs {
		return block.Call{}, pgerr.New(pgerr.TooManyArguments, "cannot pass more than %d arguments to a function", block.MaxArgs)
	}
	c := block.Call{Schema: schema, Name: name}
	if len(args) == 0 {
		return c, nil
	}
	c.ArgTypes, c.Args = make([]string, len(args)), make([]block.Arg, len(args))
	for i, t := range types {
		c.ArgTypes[i] = TypeName(t.Desc)
		if args[i].IsNull() {
			c.Args[i].Null = true
			continue
		}
		c.Args[i].Value = t.AppendBinary(nil, args[i])
	}
	return c, nil
}

// maxCallText bounds the text of a call in the ledger; the call itself is in
// the block store.
const maxCallText = 8 << 10

// CallText is a call as SQL text, for people: blockchain.transfer('a', 'b',
// 10). Arguments that cannot be read are shown as bytes; a text beyond 8 KiB is
// cut.
func CallText(call *block.Call) string {
	var b []byte
	b = append(append(b, QualifiedName(call)...), '(')
	for i := range call.Args {
		if i > 0 {
			b = append(b, ", "...)
		}
		if len(b) > maxCallText {
			break
		}
		b = appendArg(b, call.ArgTypes[i], &call.Args[i])
	}
	if len(b) < maxCallText {
		return string(append(b, ')'))
	}
	return string(clip(b)) + "..."
}

// clip cuts a longer text to maxCallText, between characters.
func clip(b []byte) []byte {
	if len(b) <= maxCallText {
		return b
	}
	cut := maxCallText
	for cut > 0 && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return b[:cut:cut]
}

// QualifiedName is the name of the function that is called, quoted as needed.
func QualifiedName(call *block.Call) string {
	return builtin.QuoteIdent(call.Schema) + "." + builtin.QuoteIdent(call.Name)
}

func appendArg(b []byte, typeName string, a *block.Arg) []byte {
	if a.Null {
		return append(b, "NULL"...)
	}
	if t, err := typeByName(typeName); err == nil {
		value := a.Value
		if t.Desc == datum.Text {
			value = clip(value) // the rest would be cut anyway
		}
		if d, err := t.ParseBinary(value, -1); err == nil {
			return appendLiteral(b, t, d)
		}
	}
	b = append(b, '\'')
	b = datum.Bytea.Append(b, datum.Bytes(a.Value[:min(len(a.Value), maxCallText)]), &datum.ContractFormat)
	return append(append(b, "'::"...), typeName...)
}

// appendLiteral appends a value that is not null, with a cast unless the
// literal alone has the type or comes close.
func appendLiteral(b []byte, t datum.Type, d datum.Datum) []byte {
	text := t.Append(nil, d, &datum.ContractFormat)
	switch t.Category {
	case 'B':
		if d.Bool() {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case 'N':
		if len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && text[len(text)-1] != 'y' {
			return append(b, text...)
		}
	}
	b = append(b, builtin.QuoteLiteral(string(text))...)
	if t.Category == 'S' {
		return b
	}
	return append(append(b, "::"...), TypeName(t.Desc)...)
}
