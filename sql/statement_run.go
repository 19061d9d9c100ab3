package sql

import (
	"context"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// analyzeRun analyzes the statements that bring their own way of running;
// found is false for any other.
func (s *Session) analyzeRun(ctx context.Context, p *Prepared) (found bool, err error) {
	switch n := p.Statement.Node.Node.(type) {
	case *pg.Node_SelectStmt:
		err = s.analyzeEnvelope(ctx, p, envelopeArg(n.SelectStmt))
	case *pg.Node_ExplainStmt:
		err = s.analyzeExplain(ctx, p, n.ExplainStmt)
	case *pg.Node_DeclareCursorStmt:
		err = s.analyzeDeclare(ctx, p, n.DeclareCursorStmt)
	case *pg.Node_FetchStmt:
		s.analyzeFetch(p, n.FetchStmt)
	case *pg.Node_ClosePortalStmt:
		s.analyzeClose(p, n.ClosePortalStmt)
	case *pg.Node_CopyStmt:
		err = s.analyzeCopy(ctx, p, n.CopyStmt)
	case *pg.Node_ListenStmt:
		err = s.analyzeNote(p, note{kind: noteListen, channel: n.ListenStmt.Conditionname}, "LISTEN")
	case *pg.Node_UnlistenStmt:
		err = s.analyzeNote(p, unlistenNote(n.UnlistenStmt), "UNLISTEN")
	case *pg.Node_NotifyStmt:
		err = s.analyzeNote(p, note{kind: noteNotify, channel: n.NotifyStmt.Conditionname, payload: n.NotifyStmt.Payload}, "NOTIFY")
	default:
		return false, nil
	}
	p.kind = kindRun
	return true, err
}

// atSnapshot calls f with a local transaction on what the next statement reads
// and the catalog there.
func (s *Session) atSnapshot(f func(w *work) error) error {
	w, err := s.openWork()
	if err != nil {
		return err
	}
	defer w.close()
	return f(w)
}

// atCommit is what a block does that is about to commit: an error makes it a
// rollback.
func (s *Session) atCommit() error {
	if err := s.holdCursors(context.Background()); err != nil {
		return err
	}
	if l := s.block.private; l != nil {
		if err := s.commitPrivate(l); err != nil {
			return err
		}
	}
	s.sendNotes()
	return nil
}

// atRollback drops what the block brought about.
func (s *Session) atRollback() {
	s.closeCursors((*cursor).ofBlock)
	s.notes = nil
}

// atRelease gives what belongs to savepoint i, and later ones, to the one around.
func (s *Session) atRelease(i int) {
	for _, c := range s.cursors {
		c.depth = min(c.depth, i)
	}
	for k := range s.notes {
		s.notes[k].depth = min(s.notes[k].depth, i)
	}
}

// atRollbackTo drops what the block brought about since savepoint i.
func (s *Session) atRollbackTo(i int) {
	s.closeCursors(func(c *cursor) bool { return c.depth > i })
	s.notes = slices.DeleteFunc(s.notes, func(n note) bool { return n.depth > i })
}
