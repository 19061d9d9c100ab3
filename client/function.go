package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/blockstore/block"
)

// function is a contract as the node describes it.
type function struct {
	name    string
	types   []string // of the arguments, as a signed call names them
	oids    []uint32
	columns []pgconn.FieldDescription
}

// types knows the built-in types of PostgreSQL. It is only read.
var types = pgtype.NewMap()

// describe returns the function that a name and a number of arguments stand for.
// The name may be followed by the types of its arguments, in parentheses, if
// there are several of the same number.
func (c *Client) describe(ctx context.Context, called string, args int) (*function, error) {
	key := fmt.Sprint(called, "/", args)
	c.mu.Lock()
	f := c.functions[key]
	c.mu.Unlock()
	if f != nil {
		return f, nil
	}
	err := c.any(ctx, func(n *node) (err error) {
		f, err = n.describe(ctx, called, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions[key] = f
	return f, nil
}

// forget drops what is known about functions: one was replaced.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.functions)
}

// describe has the node describe a call without carrying it out.
func (n *node) describe(ctx context.Context, called string, args int) (*function, error) {
	name, list, err := split(called, args)
	if err != nil {
		return nil, err
	}
	conn, err := n.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	target := pgx.Identifier{contractSchema, name}.Sanitize() + "(" + list + ")"
	d, err := conn.Conn().PgConn().Prepare(ctx, "", "SELECT * FROM "+target, nil)
	if State(err) == wrongObjectType { // a procedure
		d, err = conn.Conn().PgConn().Prepare(ctx, "", "CALL "+target, nil)
	}
	if err != nil {
		return nil, err
	}
	f := &function{name: name, oids: d.ParamOIDs}
	for _, field := range d.Fields {
		field.Name = strings.Clone(field.Name)
		f.columns = append(f.columns, field)
	}
	for _, oid := range f.oids {
		var text string
		if err := conn.QueryRow(ctx, "SELECT pg_catalog.format_type($1, NULL)", oid).Scan(&text); err != nil {
			return nil, err
		}
		f.types = append(f.types, text)
	}
	return f, nil
}

const (
	contractSchema  = "blockchain"
	wrongObjectType = "42809"
)

// split takes f or f(type, ...) apart and makes the list of arguments.
func split(called string, args int) (name, list string, err error) {
	name, rest, typed := strings.Cut(called, "(")
	names := make([]string, args)
	if typed {
		inner, ok := strings.CutSuffix(strings.TrimSpace(rest), ")")
		given := strings.Split(inner, ",")
		if strings.TrimSpace(inner) == "" {
			given = nil
		}
		if !ok || len(given) != args {
			return "", "", fmt.Errorf("client: %s does not name the types of %d arguments", called, args)
		}
		for i := range given {
			names[i] = "::" + strings.TrimSpace(given[i])
		}
	}
	for i := range names {
		names[i] = fmt.Sprintf("$%d%s", i+1, names[i])
	}
	return strings.TrimSpace(name), strings.Join(names, ", "), nil
}

// call makes what is to be signed.
func (f *function) call(args []any) (block.Call, error) {
	if len(args) != len(f.oids) {
		return block.Call{}, fmt.Errorf("client: %s takes %d arguments, got %d", f.name, len(f.oids), len(args))
	}
	call := block.Call{Schema: contractSchema, Name: f.name}
	if len(args) == 0 {
		return call, nil
	}
	call.ArgTypes, call.Args = f.types, make([]block.Arg, len(args))
	for i, v := range args {
		raw, err := encode(f.oids[i], v)
		if err != nil {
			return block.Call{}, fmt.Errorf("client: argument %d of %s, a %s: %w", i+1, f.name, f.types[i], err)
		}
		call.Args[i] = block.Arg{Null: raw == nil, Value: raw}
	}
	return call, nil
}

// encode returns the binary form of a value, nil for NULL. Text is taken for any
// type, in the type's own text form.
func encode(oid uint32, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := types.Encode(oid, pgtype.BinaryFormatCode, v, []byte{})
	if err == nil {
		return raw, nil
	}
	text, ok := v.(string)
	if !ok {
		return nil, err
	}
	t, known := types.TypeForOID(oid)
	if !known {
		return nil, errors.New("pass its binary form as []byte: the type is not known here")
	}
	value, err := t.Codec.DecodeValue(types, oid, pgtype.TextFormatCode, []byte(text))
	if err != nil {
		return nil, err
	}
	return types.Encode(oid, pgtype.BinaryFormatCode, value, []byte{})
}
