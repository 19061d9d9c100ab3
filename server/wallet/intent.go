package wallet

import (
	"bytes"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/tallystick/tallystick/sql/parse"
)

// intent is a statement that a client has asked for: what a wallet may sign.
type intent struct {
	text string
	call *pg.FuncCall // of a contract; nil if the statement is no call
	ddl  bool         // a definition, which an admin's session deploys
	// Of a statement with parameters: their declared types, formats and values.
	types   []uint32
	formats []int16
	values  [][]byte
	// signed are the functions that were signed for it.
	signed []string
}

// intents follows what a client says, so that each of its statements is signed for
// once at most and nothing else is. The client's side records what it sends
// before the node sees it.
type intents struct {
	mu       sync.Mutex
	units    []*unit // begun and not answered by ReadyForQuery, in order
	prepared map[string]intent
	portals  map[string]*intent
	started  bool // the first ReadyForQuery has come
}

// unit is what the node answers with one ReadyForQuery: a Query, or all extended
// messages up to a Sync.
type unit struct {
	list []*intent
	open bool // extended messages may still be added
}

func newIntents() *intents {
	return &intents{prepared: map[string]intent{}, portals: map[string]*intent{}}
}

// sent notes a message of the client. body is valid until it returns.
func (in *intents) sent(typ byte, body []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch typ {
	case 'Q':
		in.query(body)
	case 'P':
		in.parse(body)
	case 'B':
		in.bind(body)
	case 'E':
		in.execute(body)
	case 'F':
		in.units = append(in.units, &unit{})
	case 'S':
		in.extended().open = false
	}
}

// answered notes ReadyForQuery.
func (in *intents) answered() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.started && len(in.units) > 0 {
		in.units = in.units[1:]
	}
	in.started = true
}

func (in *intents) query(body []byte) {
	u := &unit{}
	var m pgproto3.Query
	if m.Decode(body) == nil {
		u.list = intentsOf(m.String)
	}
	in.units = append(in.units, u)
}

// intentsOf splits a script. What cannot be parsed is no intent: the node will say
// what is wrong with it.
func intentsOf(script string) []*intent {
	statements, err := parse.Statements(script)
	if err != nil {
		return nil
	}
	var list []*intent
	for _, st := range statements {
		i := intentOf(st)
		list = append(list, &i)
	}
	return list
}

func intentOf(st parse.Statement) intent {
	i := intent{text: strings.TrimSpace(st.Text)}
	switch n := st.Node.GetNode().(type) {
	case *pg.Node_CallStmt:
		i.call = n.CallStmt.GetFunccall()
	case *pg.Node_SelectStmt:
		i.call = callOf(n.SelectStmt)
	case nil:
	default:
		i.ddl = true // or anything else that is no call; the node knows
	}
	return i
}

// callOf returns the call that a SELECT is, if it is one and nothing else.
func callOf(s *pg.SelectStmt) *pg.FuncCall {
	if len(s.GetTargetList()) != 1 {
		return nil
	}
	target := s.GetTargetList()[0].GetResTarget().GetVal()
	switch len(s.GetFromClause()) {
	case 0:
		return target.GetFuncCall()
	case 1:
		functions := s.GetFromClause()[0].GetRangeFunction().GetFunctions()
		if len(functions) != 1 || len(functions[0].GetList().GetItems()) == 0 {
			return nil
		}
		return functions[0].GetList().GetItems()[0].GetFuncCall()
	}
	return nil
}

func (in *intents) parse(body []byte) {
	in.extended()
	var m pgproto3.Parse
	if m.Decode(body) != nil {
		return
	}
	delete(in.prepared, m.Name)
	if list := intentsOf(m.Query); len(list) == 1 {
		i := *list[0]
		i.types = m.ParameterOIDs
		in.prepared[m.Name] = i
	}
}

func (in *intents) bind(body []byte) {
	in.extended()
	var m pgproto3.Bind
	if m.Decode(bytes.Clone(body)) != nil {
		return
	}
	delete(in.portals, m.DestinationPortal)
	if i, ok := in.prepared[m.PreparedStatement]; ok {
		i.formats, i.values = m.ParameterFormatCodes, m.Parameters
		in.portals[m.DestinationPortal] = &i
	}
}

func (in *intents) execute(body []byte) {
	u := in.extended()
	var m pgproto3.Execute
	if m.Decode(body) != nil {
		return
	}
	// The same portal again goes on with its rows and signs nothing anew.
	if i := in.portals[m.Portal]; i != nil {
		u.list = append(u.list, i)
	}
}

// extended is the unit that extended messages belong to.
func (in *intents) extended() *unit {
	if n := len(in.units); n > 0 && in.units[n-1].open {
		return in.units[n-1]
	}
	u := &unit{open: true}
	in.units = append(in.units, u)
	return u
}

// current lists the statements that the node may be at.
func (in *intents) current() []*intent {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.units) == 0 {
		return nil
	}
	return append([]*intent(nil), in.units[0].list...)
}
