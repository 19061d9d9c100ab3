package contracts

import (
	"github.com/tallystick/tallystick/contracts/plpgsql"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgcatalog"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/sql/plan"
)

// Inspect shows all SQL of a contract to the determinism check: it is
// determinism.Inspect. Computed relations are found, so that a read of them is
// refused for what it is.
func Inspect(fn *catalog.Func, cat *catalog.Catalog, to *plpgsql.Inspector) error {
	fn = validated(fn)
	path := searchPath(fn)
	if fn.Language == "plpgsql" {
		f, err := plpgsql.Compile(fn, plpgsql.Options{SearchPath: path, Contract: true, Virtual: pgcatalog.Find})
		if err != nil {
			return err
		}
		return f.Inspect(cat, to)
	}
	s, err := compileSQL(fn, &plan.Options{SearchPath: path, Contract: true, Virtual: pgcatalog.Find, Format: &datum.ContractFormat}, nil)
	if err != nil {
		return err
	}
	s.inspect(cat, to)
	return nil
}

// inspect plans every statement for an inspector.
func (s *sqlFunction) inspect(cat *catalog.Catalog, to *plpgsql.Inspector) {
	for i := range s.stmts {
		st := &s.stmts[i]
		refusals := 0
		s.opts.Refused = func(what plan.Refusal, e *pgerr.Error) {
			refusals++
			to.Refused(what, byteOffset(s.def.Body, e.Position), e)
		}
		pl, err := s.statement(st, cat, nil)
		switch {
		case err == nil:
			to.Piece(s.piece(i, pl))
		case refusals == 0:
			to.Failed(st.Offset, err)
		}
	}
}

// piece describes a planned statement. Only the first row of the last one
// counts in a function that returns no set.
func (s *sqlFunction) piece(i int, pl *plan.Plan) *plpgsql.Piece {
	p := &plpgsql.Piece{Start: s.stmts[i].Offset, Plan: pl}
	if i == len(s.stmts)-1 && !s.def.RetSet && !s.noResult() {
		p.Use = plpgsql.FirstRow
	}
	return p
}

// byteOffset is where character number pos, from 1, begins.
func byteOffset(text string, pos int) int {
	for i := range text {
		if pos--; pos <= 0 {
			return i
		}
	}
	return len(text)
}
