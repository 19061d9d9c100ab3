package builtin

import (
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
)

// inetText is the cast of an address to text, which always shows the length of
// the network part.
func inetText(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := string(datum.Inet.Append(nil, a[0], c.Format))
	switch {
	case strings.Contains(s, "/"):
	case strings.Contains(s, ":"):
		s += "/128"
	default:
		s += "/32"
	}
	return datum.Str(s), nil
}

var inetEvals = evalMap{"network_show": inetText}
