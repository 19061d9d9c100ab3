package plan

import pg "github.com/pganalyze/pg_query_go/v6"

// rowsFrom is ROWS FROM (f(...), g(...), ...): functions side by side, shorter
// ones padded with nulls.
func (p *planner) rowsFrom(n *pg.RangeFunction, s *scope) (string, *FuncScan, []column, error) {
	out := &FuncScan{}
	var cols []column
	name := ""
	for _, f := range n.Functions {
		items := f.GetList().Items
		var defs []*pg.Node
		if len(items) > 1 {
			defs = items[1].GetList().GetItems()
		}
		one, scan, more, err := p.functionScan(items[0], s, defs)
		if err != nil {
			return "", nil, nil, err
		}
		if name == "" {
			name = one
		}
		scan.Ordinality = -1
		out.Parts, out.Slots, cols = append(out.Parts, scan), append(out.Slots, scan.Slots...), append(cols, more...)
	}
	return name, out, cols, nil
}
