package system

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// fixed are the parameters that are chosen with the genesis, and ordering those
// that orderers need, which change with the configuration.
var (
	fixed    = []string{"flow", "orderer", "ordering_window"}
	ordering = []string{"block_txs", "block_bytes", "block_timeout"}
)

// floors are the least values of limits under which governance itself, which keeps
// to them too, can still change them back.
var floors = []struct {
	name  string
	least uint64
}{
	{"max_steps", 100_000},
	{"max_read_bytes", 16 << 20},
	{"max_write_bytes", 4 << 20}, // a script of a megabyte and what it creates
	{"max_block_write_bytes", 4 << 20},
}

// fromBlock is the key of a change that says from which block on it holds.
const fromBlock = "from_block"

// setting is a parameter with its new value.
type setting struct{ name, value string }

// change is what a proposal of parameters says.
type change struct {
	from     block.Height // 0 = from the block after the submission on
	settings []setting    // sorted by name
}

// createParameters proposes a change of parameters: a JSON object of names and
// values, and perhaps from_block.
func (c *call) createParameters() (datum.Datum, error) {
	payload := string(datum.JSONB.Append(nil, c.args[0], &datum.ContractFormat))
	ch, err := parseChange(c.args[0])
	if err != nil {
		return datum.Null, err
	}
	if _, err := c.check(ch); err != nil {
		return datum.Null, err
	}
	row, err := c.newProposal(parametersKind, payload)
	if err != nil {
		return datum.Null, err
	}
	return row[deployID], deploys.insert(c.env, row)
}

// parseChange reads the JSON object. Its keys come sorted and distinct.
func parseChange(d datum.Datum) (*change, error) {
	if datum.JSONBTypeOf(d) != "object" {
		return nil, invalidChange("the changes are a JSON object of parameters and values")
	}
	ch := &change{}
	for name, v := range datum.JSONBPairs(d) {
		text, null := datum.JSONBText(v)
		if kind := datum.JSONBTypeOf(v); null || kind != "number" && kind != "string" {
			return nil, invalidChange("value of %q is neither a number nor a string", name)
		}
		if name == fromBlock {
			from, ok := datum.JSONBNumber(v)
			n, err := heightOf(from, ok)
			if err != nil {
				return nil, err
			}
			ch.from = n
			continue
		}
		if slices.Contains(fixed, name) {
			return nil, invalidChange("parameter %q is chosen with the genesis and never changes", name)
		}
		if slices.Contains(ordering, name) {
			return nil, invalidChange("parameter %q is one of the orderers", name).
				WithHint("Propose it with create_configtx.")
		}
		ch.settings = append(ch.settings, setting{name, text})
	}
	if len(ch.settings) == 0 {
		return nil, invalidChange("the change sets no parameter")
	}
	if err := ch.checkFloors(); err != nil {
		return nil, err
	}
	slices.SortFunc(ch.settings, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return ch, nil
}

func (ch *change) checkFloors() error {
	for _, s := range ch.settings {
		for _, f := range floors {
			if v, err := strconv.ParseUint(s.value, 10, 64); s.name == f.name && err == nil && v < f.least {
				return invalidChange("parameter %s is %d, below %d", s.name, v, f.least).
					WithDetail("Governance keeps to the limits too and could not change them back.")
			}
		}
	}
	return nil
}

func heightOf(d datum.Datum, number bool) (block.Height, error) {
	if number {
		if n, err := datum.NumericToInt64(d); err == nil && n > 0 && uint64(n) <= block.MaxHeight {
			return uint64(n), nil
		}
	}
	return 0, invalidChange("%s is no number of a block", fromBlock)
}

func invalidChange(format string, args ...any) *pgerr.Error {
	return pgerr.New(pgerr.InvalidParameterValue, format, args...)
}

// check reports why the change cannot be made by this transaction, and from
// which block on it would hold.
func (c *call) check(ch *change) (block.Height, error) {
	if c.genesis == nil {
		return 0, errNoGenesis
	}
	now := block.Height(c.height().Int())
	from := ch.from
	if from == 0 {
		from = now + 1
	}
	if from <= now {
		return 0, invalidChange("block %d is not after block %d, which contains this transaction", from, now)
	}
	rows, err := c.parameterRows()
	if err != nil {
		return 0, err
	}
	for _, s := range ch.settings {
		row := parameters.row()
		row[paramName], row[paramFrom], row[paramValue] = datum.Str(s.name), datum.Int(int64(from)), datum.Str(s.value)
		rows = append(rows, row)
	}
	// Changes that were decided on before may meet this one later.
	heights := []block.Height{from}
	for _, row := range rows {
		if h := block.Height(row[paramFrom].Int()); h > from {
			heights = append(heights, h)
		}
	}
	version := ParametersAt(c.genesis, rows, now).EngineVersion
	for _, h := range heights {
		p, err := parametersAt(c.genesis, rows, h)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			return 0, invalidChange("%s", trimPackage(err)).WithDetail("So it would be in block %d.", h)
		}
		if p.EngineVersion < version {
			return 0, invalidChange("engine version cannot go back from %d to %d", version, p.EngineVersion)
		}
	}
	return from, nil
}

// trimPackage takes the name of the package off an error of package block.
func trimPackage(err error) string {
	const prefix = "block: "
	s := err.Error()
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		s = s[len(prefix):]
	}
	return s
}

// parameterRows reads what governance has set, by name and block.
func (c *call) parameterRows() ([][]datum.Datum, error) {
	var rows [][]datum.Datum
	err := parameters.each(c.env, false, func(row []datum.Datum) bool {
		rows = append(rows, row)
		return true
	})
	return rows, err
}

// submitParameters writes the rows of network_parameters.
func (c *call) submitParameters(row []datum.Datum) error {
	d, err := datum.ParseJSONB(row[deployPayload].Str())
	if err != nil {
		return err
	}
	ch, err := parseChange(d)
	if err != nil {
		return err
	}
	from, err := c.check(ch)
	if err != nil {
		return err
	}
	for _, s := range ch.settings {
		p := parameters.row()
		p[paramName], p[paramFrom] = datum.Str(s.name), datum.Int(int64(from))
		p[paramValue], p[paramDeploy] = datum.Str(s.value), row[deployID]
		old, err := parameters.get(c.env, p[paramName], p[paramFrom])
		if err == nil && old != nil {
			err = parameters.update(c.env, p)
		} else if err == nil {
			err = parameters.insert(c.env, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ParametersAt is the parameters that the rows of network_parameters give a
// block; those of the configuration are the genesis'. Rows that do not fit, which
// no system contract writes, are as good as none.
func ParametersAt(g *block.Genesis, rows [][]datum.Datum, height block.Height) block.Params {
	p, _ := parametersAt(g, rows, height)
	return p
}

// parametersAt applies, of each parameter, the row with the largest from_block up
// to height, the last of several.
func parametersAt(g *block.Genesis, rows [][]datum.Datum, height block.Height) (block.Params, error) {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b []datum.Datum) int { return cmp.Compare(a[paramFrom].Int(), b[paramFrom].Int()) })
	p := g.Params
	var first error
	for _, row := range sorted {
		if block.Height(row[paramFrom].Int()) > height {
			break
		}
		if err := p.Set(row[paramName].Str(), row[paramValue].Str()); err != nil && first == nil {
			first = err
		}
	}
	return p, first
}
