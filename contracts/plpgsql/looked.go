package plpgsql

import (
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/exec"
)

// looked collects the catalog rows that planning looks at, found or not. A plan
// that comes about names them among its reads, and whoever runs it notes them. If
// none does, the transaction has read them all the same: it fails, or goes on in
// a handler, because of what is there or is not. Failures are not cached, so the
// footprint does not depend on what other transactions planned before.
type looked struct{ reads []rwset.Read }

// note implements plan.Options.Note.
func (l *looked) note(reads []rwset.Read) { l.reads = append(l.reads, reads...) }

// failed puts what was looked at into the footprint.
func (l *looked) failed(env *exec.Env) {
	if env != nil {
		env.NoteShared(l.reads)
	}
}
