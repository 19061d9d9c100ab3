package server

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql"
)

// privateStore is the store of schema private. Its blocks are local commits, and
// it is their only log: every commit is synced.
type privateStore struct {
	store   *mvcc.Store
	private *sql.Private
}

func openPrivate(dir string, log *slog.Logger) (*privateStore, error) {
	store, err := mvcc.Open(dir, mvcc.Options{Sync: true, Logger: log})
	if err != nil {
		return nil, err
	}
	private, err := sql.NewPrivate(store)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: schema private: %w", err), store.Close())
	}
	return &privateStore{store, private}, nil
}

// schema is what the engine gets; nil for none.
func (p *privateStore) schema() *sql.Private {
	if p == nil {
		return nil
	}
	return p.private
}

func (p *privateStore) close() error { return errors.Join(p.private.Close(), p.store.Close()) }
