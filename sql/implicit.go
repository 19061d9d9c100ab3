package sql

// implicitBlock is the transaction of a script of several statements in one
// simple query: what they do in schema private is committed together, unless
// the script has blocks of its own. Everything else of it is statement by
// statement: a call of a contract commits when it is made.
type implicitBlock struct {
	on      bool
	private *localTxn
}

// alone tells that the next statement is a local transaction by itself.
func (s *Session) alone() bool { return !s.block.open && !s.implicit.on }

// BeginScript begins the transaction of a script.
func (s *Session) BeginScript() { s.implicit.on = true }

// EndScript ends it: with a commit, which may answer 40001, or without.
func (s *Session) EndScript(commit bool) error {
	s.implicit.on = false
	return s.endScript(commit)
}

// endScript ends what the script did so far.
func (s *Session) endScript(commit bool) error {
	l := s.implicit.private
	s.implicit.private = nil
	if l == nil {
		return nil
	}
	defer l.drop()
	if !commit {
		return nil
	}
	return s.commitPrivate(l)
}
