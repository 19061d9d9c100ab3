package sql

// forensicsSetting is the run-time parameter with which a session reads the data
// of a node whose state was found to differ from that of the network.
const forensicsSetting = "tallystick.forensics"

// halted refuses a statement if this node must not be believed, unless the session
// has asked for forensics: EngineOptions.Halted says why. Settings can always be
// changed and shown.
func (s *Session) halted(p *Prepared) error {
	if s.engine.opts.Halted == nil || p.kind == kindUtility {
		return nil
	}
	if on, _ := s.settings.get(forensicsSetting); on == "on" {
		return nil
	}
	return s.engine.opts.Halted()
}
