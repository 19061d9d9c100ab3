package sql

import (
	"context"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Deploy has a whole script of definitions deployed at once, as a single
// statement that an admin types is.
func (s *Session) Deploy(ctx context.Context, script string) error {
	if err := CheckScript(script); err != nil {
		return err
	}
	if s.opts.Script == nil {
		return pgerr.New(pgerr.InsufficientPrivilege, "definitions in schema blockchain are deployed by approval")
	}
	_, err := s.opts.Script(ctx, script)
	return err
}
