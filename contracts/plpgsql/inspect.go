package plpgsql

import (
	"slices"
	"unicode/utf8"

	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Use says what a function does with the rows of a statement.
type Use uint8

// The uses of a statement's rows: all of them count, or only the first one and
// the others are not looked at (SELECT INTO without STRICT).
const (
	AllRows Use = iota
	FirstRow
)

// Piece is one piece of SQL of a function with its plan: of Plan, Expr, Call
// and Dynamic exactly one is set.
type Piece struct {
	// Offset is the byte offset in the body of the text that Places of the plan
	// refer to; it may be negative, as the planner is given more than the piece.
	// In dynamic SQL there is none: Places refer to the text that is executed.
	Offset int
	// Start is where the piece itself begins in the body.
	Start int
	Use   Use
	Plan  *plan.Plan
	Expr  *plan.ExprPlan
	// Call is the procedure of a CALL.
	Call *catalog.Func
	// Dynamic tells an EXECUTE: what it executes only running shows.
	Dynamic bool
}

// Inspector receives what [Function.Inspect] finds, in the order of the text.
type Inspector struct {
	// Piece is given everything that can be planned.
	Piece func(*Piece)
	// Refused is given what a contract may not use, with its byte offset in the
	// body, and planning goes on.
	Refused func(what plan.Refusal, offset int, e *pgerr.Error)
	// Failed is given what cannot be planned otherwise, with the byte offset of
	// the piece.
	Failed func(offset int, err error)
}

// Inspect plans all SQL of the function anew against a catalog, for tools that
// ask what it reads and does: a trigger function for every table that has it, so
// that the same may be found several times. What the types of RECORD variables leave open is
// skipped.
func (f *Function) Inspect(cat *catalog.Catalog, to *Inspector) error {
	p, err := f.build(cat)
	if err != nil {
		return err
	}
	p.inspected = true
	if !isTrigger(f.def) {
		p.visit(&checker{p: p, to: to})
		return nil
	}
	fired := false
	for _, t := range cat.Tables() {
		if slices.ContainsFunc(t.Triggers, func(x catalog.Trigger) bool { return x.FuncOID == f.def.OID }) {
			p.visit(&checker{p: p, to: to, row: rowOfTable(t)})
			fired = true
		}
	}
	if !fired {
		p.visit(&checker{p: p, to: to})
	}
	return nil
}

// inspecting points the planner's reports at a piece of the body. text is what
// the errors' positions count in.
func (c *checker) inspecting(s *site) {
	if c.to == nil {
		return
	}
	c.p.lead = 0
	c.p.opts.Refused = func(what plan.Refusal, e *pgerr.Error) {
		c.refusals++
		c.to.Refused(what, s.e.pos+byteOffset(s.e.text, e.Position-c.p.lead), e)
	}
}

// byteOffset is where character number pos, from 1, begins in a text.
func byteOffset(text string, pos int) int {
	n := 0
	for ; pos > 1 && n < len(text); pos-- {
		_, size := utf8.DecodeRuneInString(text[n:])
		n += size
	}
	return n
}

// show gives a planned site to the inspector.
func (c *checker) show(s *site, pl *planned) {
	piece := s.piece(pl)
	if c.to != nil && (piece.Plan != nil || piece.Expr != nil) {
		c.to.Piece(piece)
	}
}

func (s *site) piece(pl *planned) *Piece {
	piece := &Piece{Offset: s.e.pos - pl.lead, Start: s.e.pos, Use: s.use, Expr: pl.ep}
	if pl.prog != nil {
		piece.Plan = pl.prog.Plan()
	}
	return piece
}

// checkDynamic tells the inspector of an EXECUTE.
func (b *builder) checkDynamic(text *site) {
	b.check(func(_ *frame, c *checker) {
		if c.to != nil {
			c.to.Piece(&Piece{Start: text.e.pos, Dynamic: true})
		}
	})
}

// verify asks whether a piece may be executed here.
func (p *program) verify(piece *Piece) error {
	if p.fn.verify == nil || p.inspected {
		return nil
	}
	return p.fn.verify(piece)
}
