package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/parse"
)

// database is an engine over stores in memory with a session in schema private.
type database struct {
	chain, store *mvcc.Store
	private      *sql.Private
	session      *sql.Session
}

func openDatabase() (db *database, err error) {
	db = &database{}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	if db.chain, err = mvcc.Open("chain", mvcc.Options{FS: vfs.NewMem()}); err != nil {
		return db, err
	}
	if db.store, err = mvcc.Open("private", mvcc.Options{FS: vfs.NewMem()}); err != nil {
		return db, err
	}
	if db.private, err = sql.NewPrivate(db.store); err != nil {
		return db, err
	}
	engine := sql.NewEngine(db.chain, &exec.Functions{}, sql.EngineOptions{Private: db.private})
	db.session = engine.NewSession(sql.SessionOptions{User: "admin", Database: sql.Database})
	_, _, err = db.run("SET search_path = private")
	return db, err
}

func (db *database) close() error {
	var errs []error
	if db.session != nil {
		db.session.Close()
	}
	if db.private != nil {
		errs = append(errs, db.private.Close())
	}
	for _, s := range []*mvcc.Store{db.store, db.chain} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// errPanic marks what no statement may end with.
var errPanic = errors.New("panic")

// patience ends a statement that takes too long.
const patience = 30 * time.Second

// run runs a statement and returns the number of its columns and its rows.
func (db *database) run(text string) (columns int, rows [][]value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, r, debug.Stack())
		}
		if err != nil {
			db.session.Fail(err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := db.session.Split(text)
	if err != nil {
		return 0, nil, err
	}
	for _, st := range list {
		if columns, rows, err = db.one(ctx, st); err != nil {
			return 0, nil, err
		}
	}
	return columns, rows, nil
}

func (db *database) one(ctx context.Context, st parse.Statement) (columns int, rows [][]value, err error) {
	p, err := db.session.Prepare(ctx, "", st, nil)
	if err != nil {
		return 0, nil, err
	}
	portal, err := db.session.Bind(ctx, p, nil)
	if err != nil {
		return 0, nil, err
	}
	defer portal.Close()
	for {
		row, err := portal.Next(ctx)
		if err != nil {
			return 0, nil, err
		}
		if row == nil {
			return len(p.Columns()), rows, nil
		}
		values := make([]value, len(row))
		for i, d := range row {
			if values[i].null = d.IsNull(); !values[i].null {
				values[i].text = string(p.Columns()[i].Type.Append(nil, d, db.session.Format()))
			}
		}
		rows = append(rows, values)
	}
}
