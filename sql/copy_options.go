package sql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// copyOptions are the options of COPY (ProcessCopyOptions).
type copyOptions struct {
	csv, binary   bool
	delimiter     byte
	null          string
	header        bool
	matchHeader   bool
	quote, escape byte
	// Columns by name; all tells FORCE_QUOTE *.
	forceQuote, forceNotNull, forceNull []string
	forceQuoteAll                       bool
}

func errCopyOption(code pgerr.Code, format string, args ...any) error {
	return pgerr.New(code, format, args...)
}

// parseCopyOptions reads the options of a COPY from or to the client.
func parseCopyOptions(list []*pg.Node, from bool, script string) (*copyOptions, error) {
	o := &copyOptions{}
	given := map[string]*pg.DefElem{}
	for _, n := range list {
		d := n.GetDefElem()
		if given[d.Defname] != nil {
			return nil, locateAt(pgerr.New(pgerr.SyntaxError, "conflicting or redundant options"), script, d.Location)
		}
		given[d.Defname] = d
		if err := o.option(d, from, script); err != nil {
			return nil, err
		}
	}
	return o, o.complete(given, from)
}

// option reads one option that needs no other.
func (o *copyOptions) option(d *pg.DefElem, from bool, script string) error {
	switch d.Defname {
	case "format":
		switch word := defString(d); word {
		case "text":
		case "csv":
			o.csv = true
		case "binary":
			o.binary = true
		default:
			return locateAt(pgerr.New(pgerr.InvalidParameterValue, "COPY format \"%s\" not recognized", word), script, d.Location)
		}
	case "header":
		if strings.EqualFold(defString(d), "match") {
			if !from {
				return pgerr.New(pgerr.FeatureNotSupported, "cannot use \"%s\" with HEADER in COPY TO", "match")
			}
			o.header, o.matchHeader = true, true
			return nil
		}
		on, err := defBool(d)
		if err != nil {
			return pgerr.New(pgerr.SyntaxError, "%s requires a Boolean value or \"match\"", d.Defname)
		}
		o.header = on
	case "force_quote":
		o.forceQuoteAll = d.Arg.GetAStar() != nil
		o.forceQuote = nameList(d.Arg)
	case "force_not_null":
		o.forceNotNull = nameList(d.Arg)
	case "force_null":
		o.forceNull = nameList(d.Arg)
	case "encoding":
		switch strings.ToLower(defString(d)) {
		case "utf8", "utf-8", "unicode", "sql_ascii":
			return nil
		}
		return pgerr.NotBuilt("COPY ENCODING %s is not supported", defString(d))
	case "delimiter", "null", "quote", "escape":
	case "freeze":
		on, err := defBool(d)
		if err == nil && on {
			err = pgerr.NotBuilt("COPY FREEZE is not supported")
		}
		return err
	default:
		return locateAt(pgerr.New(pgerr.SyntaxError, "option \"%s\" not recognized", d.Defname), script, d.Location)
	}
	return nil
}

func nameList(n *pg.Node) []string {
	var out []string
	for _, item := range n.GetList().GetItems() {
		out = append(out, item.GetString_().GetSval())
	}
	return out
}

// complete fills in defaults and refuses what does not go together.
func (o *copyOptions) complete(given map[string]*pg.DefElem, from bool) error {
	if o.binary && given["delimiter"] != nil {
		return errCopyOption(pgerr.SyntaxError, "cannot specify DELIMITER in BINARY mode")
	}
	if o.binary && given["null"] != nil {
		return errCopyOption(pgerr.SyntaxError, "cannot specify NULL in BINARY mode")
	}
	delimiter, quote := "\t", `"`
	o.null = `\N`
	if o.csv {
		delimiter, o.null = ",", ""
	}
	if d := given["delimiter"]; d != nil {
		delimiter = defString(d)
	}
	if d := given["null"]; d != nil {
		o.null = defString(d)
	}
	if d := given["quote"]; d != nil {
		quote = defString(d)
	}
	escape := quote
	if d := given["escape"]; d != nil {
		escape = defString(d)
	}
	if len(delimiter) != 1 {
		return errCopyOption(pgerr.FeatureNotSupported, "COPY delimiter must be a single one-byte character")
	}
	o.delimiter = delimiter[0]
	if strings.ContainsAny(delimiter, "\r\n") {
		return errCopyOption(pgerr.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	}
	if strings.ContainsAny(o.null, "\r\n") {
		return errCopyOption(pgerr.InvalidParameterValue, "COPY null representation cannot use newline or carriage return")
	}
	if !o.csv && strings.Contains("\\.abcdefghijklmnopqrstuvwxyz0123456789", delimiter) {
		return errCopyOption(pgerr.InvalidParameterValue, "COPY delimiter cannot be \"%s\"", delimiter)
	}
	if o.binary && o.header {
		return errCopyOption(pgerr.FeatureNotSupported, "cannot specify HEADER in BINARY mode")
	}
	return o.completeCSV(given, quote, escape, from)
}

// completeCSV is complete for the options of the CSV format.
func (o *copyOptions) completeCSV(given map[string]*pg.DefElem, quote, escape string, from bool) error {
	if !o.csv {
		for _, opt := range []struct{ name, words string }{{"quote", "quote"}, {"escape", "escape"}, {"force_quote", "force quote"},
			{"force_not_null", "force not null"}, {"force_null", "force null"}} {
			if given[opt.name] != nil {
				return errCopyOption(pgerr.FeatureNotSupported, "COPY %s available only in CSV mode", opt.words)
			}
		}
		if strings.IndexByte(o.null, o.delimiter) >= 0 && !o.binary {
			return errCopyOption(pgerr.FeatureNotSupported, "COPY delimiter must not appear in the NULL specification")
		}
		return nil
	}
	if len(quote) != 1 {
		return errCopyOption(pgerr.FeatureNotSupported, "COPY quote must be a single one-byte character")
	}
	if quote[0] == o.delimiter {
		return errCopyOption(pgerr.InvalidParameterValue, "COPY delimiter and quote must be different")
	}
	if len(escape) != 1 {
		return errCopyOption(pgerr.FeatureNotSupported, "COPY escape must be a single one-byte character")
	}
	o.quote, o.escape = quote[0], escape[0]
	switch {
	case given["force_quote"] != nil && from:
		return errCopyOption(pgerr.FeatureNotSupported, "COPY force quote only available using COPY TO")
	case given["force_not_null"] != nil && !from:
		return errCopyOption(pgerr.FeatureNotSupported, "COPY force not null only available using COPY FROM")
	case given["force_null"] != nil && !from:
		return errCopyOption(pgerr.FeatureNotSupported, "COPY force null only available using COPY FROM")
	case strings.IndexByte(o.null, o.delimiter) >= 0:
		return errCopyOption(pgerr.FeatureNotSupported, "COPY delimiter must not appear in the NULL specification")
	case strings.IndexByte(o.null, o.quote) >= 0:
		return errCopyOption(pgerr.FeatureNotSupported, "CSV quote character must not appear in the NULL specification")
	}
	return nil
}
