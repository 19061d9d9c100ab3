package plpgsql

import (
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// checkTriggerSignature refuses arguments of a trigger function: it gets them in
// TG_ARGV.
func checkTriggerSignature(f *catalog.Func) error {
	if len(f.Args) > 0 {
		return pgerr.New(pgerr.InvalidFunctionDefinition, "trigger functions cannot have declared arguments").
			WithHint("The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.")
	}
	return nil
}
