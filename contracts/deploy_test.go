package contracts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// newLedger is a database of one organization with an admin and two clients,
// whose functions run under the rules for contracts.
func newLedger(t testing.TB) *database {
	d := newDatabase(t)
	d.functions.Verify = contracts.NewFunctions().Verify
	layout, err := catalog.NewLayout(catalog.Certs)
	if err != nil {
		t.Fatal(err)
	}
	key := identity.NewSigner([32]byte{1}).Public()
	for _, u := range []struct {
		name string
		role identity.Role
	}{{"admin", identity.Admin}, {"ann", identity.Client}, {"bob", identity.Client}} {
		err := d.block(func(env *exec.Env) error {
			return layout.EachEntry([]datum.Datum{
				datum.Str("org"), datum.Str(u.name), datum.Str(u.role.String()), datum.Bytes(key[:]), datum.Int(0), datum.Null,
			}, env.Txn.PutInsert)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// system calls a system contract as the admin, in the system phase of a block
// of its own.
func (d *database) system(call block.Call) (out string, err error) {
	d.notices.Reset()
	d.height++
	b := d.store.NewBlockBatch(d.height)
	defer b.Close()
	txn := b.Begin(mvcc.AsOf(d.height-1), block.XID(d.height, 1))
	cat, err := d.engine.Catalog(txn)
	if err != nil {
		d.t.Fatal(err)
	}
	env := d.engine.ContractEnv(txn, txn.XID(), cat, &builtin.TxInfo{User: "admin", Org: "org"})
	env.Ctx.Notice = func(severity string, e *pgerr.Error) {
		fmt.Fprintf(&d.notices, "%s: %s\n", severity, e.Message)
		writeFields(&d.notices, e.Detail, e.Hint)
	}
	res, err := contracts.ExecuteSystem(env, system.New(d.engine, contracts.Inspect), &call)
	if closeErr := txn.Close(); closeErr != nil {
		d.t.Fatal(closeErr)
	}
	if err == nil {
		if err := b.Apply(txn, 1); err != nil {
			d.t.Fatal(err)
		}
	}
	if commitErr := d.store.Commit(b, false); commitErr != nil {
		d.t.Fatal(commitErr)
	}
	if err != nil {
		return "", err
	}
	rows, err := res.Rows()
	if err != nil {
		d.t.Fatal(err)
	}
	return string(res.Columns[0].Type.Append(nil, rows[0][0], &datum.ContractFormat)), nil
}

// deploy proposes, approves and submits a script.
func (d *database) deploy(script string) string {
	var b strings.Builder
	steps := []string{"create_deploytx", "approve_deploytx", "submit_deploytx"}
	id := ""
	for i, name := range steps {
		call := callOf(d.t, name, datum.Int8, id)
		if i == 0 {
			call = callOf(d.t, name, datum.Text, script)
		}
		out, err := d.system(call)
		b.WriteString(d.notices.String())
		if err != nil {
			e, ok := pgerr.From(err)
			if !ok {
				d.t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s: ", name)
			writeError(&b, e)
			return b.String()
		}
		if i == 0 {
			id = out
		}
	}
	return b.String() + "deployed\n"
}

// TestDeploy runs the scripts in determinism/testdata: every construct that
// contracts may not use is refused with its place and a replacement, every
// other one is deployed and runs.
//
//	deploy    a script goes through create_, approve_ and submit_deploytx
//	run       statements, as in the other scripts; as=org/user
func TestDeploy(t *testing.T) {
	datadriven.Walk(t, "determinism/testdata", func(t *testing.T, path string) {
		d := newLedger(t)
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			d.t = t
			switch td.Cmd {
			case "deploy":
				return d.deploy(td.Input)
			case "run":
				owner := ""
				td.MaybeScanArgs(t, "as", &owner)
				if d.role = (catalog.Role{}); owner != "" {
					d.role = catalog.RoleOf(owner)
				}
				out := d.run(td.Input)
				d.role = catalog.Role{}
				return out
			}
			t.Fatalf("unknown directive %s", td.Cmd)
			return ""
		})
	})
}
