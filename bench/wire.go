package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Wire carries operations out over a PostgreSQL connection a client, with
// prepared statements.
type Wire struct{ conns []*pgx.Conn }

// Dial connects every client to the same server.
func Dial(ctx context.Context, url string, clients int) (*Wire, error) {
	w := &Wire{}
	for range clients {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %w", err), w.Close())
		}
		w.conns = append(w.conns, c)
	}
	return w, nil
}

// Close ends the connections.
func (w *Wire) Close() error {
	var err error
	for _, c := range w.conns {
		err = errors.Join(err, c.Close(context.Background()))
	}
	return err
}

// Prepare implements [Target]: what is signed is signed by the other side.
func (w *Wire) Prepare(int, *Op) (any, error) { return nil, nil }

// Do implements [Target].
func (w *Wire) Do(ctx context.Context, client int, op *Op, _ any) (Outcome, error) {
	query := op.Query
	if query == "" {
		query = callText(op)
	}
	rows, err := w.conns[client].Query(ctx, query, op.Args...)
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
	}
	var e *pgconn.PgError
	switch {
	case err == nil:
		return Outcome{}, nil
	case !errors.As(err, &e):
		return Outcome{}, err
	case e.Code == "40001" || e.Code == "40P01":
		return Outcome{Abort: e.Code}, nil
	default:
		return Outcome{Failed: e.Code}, nil
	}
}

// callText is the statement that calls a contract.
func callText(op *Op) string {
	var b strings.Builder
	b.WriteString("SELECT " + op.Name + "(")
	for i, t := range op.Types {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d::%s", i+1, t)
	}
	b.WriteString(")")
	return b.String()
}

// Setup deploys a workload over a connection of somebody who may define
// things, and fills it over one of somebody who may call them. show hears how
// far it is, in per cent.
func Setup(ctx context.Context, w *Workload, admin, user string, scale int, show func(percent int)) error {
	a, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer a.Close(ctx)
	if _, err := a.Exec(ctx, w.Schema(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("bench: deploying %s: %w", w.Name, err)
	}
	u, err := pgx.Connect(ctx, user)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer u.Close(ctx)
	calls := w.Load(scale)
	for i := range calls {
		if _, err := u.Exec(ctx, callText(&calls[i]), calls[i].Args...); err != nil {
			return fmt.Errorf("bench: %s: %w", &calls[i], err)
		}
		show(100 * (i + 1) / len(calls))
	}
	return nil
}

// Check runs the query that tells whether the workload's invariant holds.
func Check(ctx context.Context, w *Workload, url string) error {
	if w.Check == "" {
		return nil
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer c.Close(ctx)
	var holds bool
	if err := c.QueryRow(ctx, w.Check).Scan(&holds); err != nil {
		return fmt.Errorf("bench: checking %s: %w", w.Name, err)
	}
	if !holds {
		return fmt.Errorf("bench: the invariant of %s does not hold: %s", w.Name, w.Check)
	}
	return nil
}
