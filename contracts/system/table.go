package system

import (
	"fmt"

	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
)

// table reads and writes one of the ledger's own relations in a transaction.
// They have a primary key and no other index.
type table struct {
	layout  *catalog.Layout
	decoder *datum.RowDecoder
	width   int
	keys    []int // positions of the key columns
}

func newTable(t *catalog.Table) *table {
	layout, err := catalog.NewLayout(t)
	if err != nil {
		panic(err) // a fixed table
	}
	if len(t.Indexes) != 1 {
		panic(fmt.Sprintf("system: relation %s has secondary indexes", t.Name))
	}
	slots := make([]int, len(t.Columns))
	for i := range slots {
		slots[i] = i
	}
	tab := &table{layout: layout, decoder: layout.Decoder(slots), width: len(slots)}
	for _, k := range t.Primary().Keys {
		tab.keys = append(tab.keys, k.Column)
	}
	return tab
}

var (
	certs   = newTable(catalog.Certs)
	deploys = newTable(catalog.Deploy)
	votes   = newTable(catalog.DeployVotes)

	findings = newTable(catalog.DeployFindings)

	configs    = newTable(catalog.Configs)
	parameters = newTable(catalog.Parameters)
	versions   = newTable(catalog.ContractVersions)
)

// The columns that the code below names, by position.
var (
	certOrg, certName, certRole     = column(catalog.Certs, "org"), column(catalog.Certs, "username"), column(catalog.Certs, "role")
	certKey, certSince, certRevoked = column(catalog.Certs, "public_key"), column(catalog.Certs, "since_block"), column(catalog.Certs, "revoked_block")
	deployKind                      = column(catalog.Deploy, "kind")
	deployConfigID, deployConfig    = column(catalog.Deploy, "config_id"), column(catalog.Deploy, "config")
	deployID, deployPayload         = column(catalog.Deploy, "id"), column(catalog.Deploy, "payload")
	deployOrg, deployName           = column(catalog.Deploy, "org"), column(catalog.Deploy, "username")
	deployStatus, deployCreated     = column(catalog.Deploy, "status"), column(catalog.Deploy, "created_block")
	deployClosed, deployReason      = column(catalog.Deploy, "closed_block"), column(catalog.Deploy, "reason")
	voteDeploy, voteTx              = column(catalog.DeployVotes, "deploy_id"), column(catalog.DeployVotes, "txid")
	voteOrg, voteName, voteVote     = column(catalog.DeployVotes, "org"), column(catalog.DeployVotes, "username"), column(catalog.DeployVotes, "vote")
	voteComment, voteBlock          = column(catalog.DeployVotes, "comment"), column(catalog.DeployVotes, "block")
	voteSigned                      = column(catalog.DeployVotes, "signed")
	configEncoded                   = column(catalog.Configs, "encoded")
	versionNumber                   = column(catalog.ContractVersions, "version")
	versionDefinition               = column(catalog.ContractVersions, "definition")
	paramName, paramFrom            = column(catalog.Parameters, "name"), column(catalog.Parameters, "from_block")
	paramValue, paramDeploy         = column(catalog.Parameters, "value"), column(catalog.Parameters, "deploy_id")
)

func column(t *catalog.Table, name string) int {
	i := t.Column(name)
	if i < 0 {
		panic(fmt.Sprintf("system: relation %s has no column %s", t.Name, name))
	}
	return i
}

// row makes a row of nulls.
func (t *table) row() []datum.Datum {
	r := make([]datum.Datum, t.width)
	for i := range r {
		r[i] = datum.Null
	}
	return r
}

// prefix is the key of the rows that begin with these values of the primary
// key.
func (t *table) prefix(values ...datum.Datum) []byte {
	key := append([]byte(nil), t.layout.IndexPrefix(0)...)
	for i, v := range values {
		key = t.layout.AppendKeyColumn(key, 0, i, v)
	}
	return key
}

// get reads the row with a primary key; nil if there is none.
func (t *table) get(env *exec.Env, key ...datum.Datum) ([]datum.Datum, error) {
	if err := env.Ctx.Budget.Spend(1); err != nil {
		return nil, err
	}
	value, _, ok, err := env.Txn.Get(t.prefix(key...), mvcc.ReadRecorded)
	if err != nil || !ok {
		return nil, err
	}
	row := t.row()
	return row, t.decoder.Decode(value, row)
}

// each calls f for the rows whose primary key begins with these values, in its
// order or backwards, until f returns false. The row is f's to keep.
func (t *table) each(env *exec.Env, backwards bool, f func(row []datum.Datum) bool, key ...datum.Datum) error {
	prefix := t.prefix(key...)
	it := env.Txn.Scan(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, backwards, mvcc.ReadRecorded)
	defer it.Close()
	for it.Next() {
		if err := env.Ctx.Budget.Spend(1); err != nil {
			return err
		}
		row := t.row()
		if err := t.decoder.Decode(append([]byte(nil), it.Value()...), row); err != nil {
			return err
		}
		if !f(row) {
			break
		}
	}
	return it.Err()
}

// insert writes a row that is known not to exist.
func (t *table) insert(env *exec.Env, row []datum.Datum) error {
	return t.layout.EachEntry(row, env.Txn.PutInsert)
}

// update replaces the row with the same primary key.
func (t *table) update(env *exec.Env, row []datum.Datum) error {
	return env.Txn.PutUpdate(t.layout.PrimaryKey(nil, row), t.layout.EncodeRow(nil, row))
}

// delete removes the row with this primary key.
func (t *table) delete(env *exec.Env, row []datum.Datum) error {
	return env.Txn.Delete(t.layout.PrimaryKey(nil, row))
}
