package chain

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/contracts"
	"github.com/tallystick/tallystick/contracts/system"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/mvcc/rwset"
	"github.com/tallystick/tallystick/sql/builtin"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/exec"
	"github.com/tallystick/tallystick/sql/pgerr"
	"github.com/tallystick/tallystick/ssi"
)

var (
	deployTable     = newRowTable(catalog.Deploy)
	parametersTable = newRowTable(catalog.Parameters)
	parametersFrom  = columnOf(catalog.Parameters, "from_block")
	configsTable    = newRowTable(catalog.Configs)
	configsColumns  = struct{ number, block, encoded int }{
		columnOf(catalog.Configs, "number"), columnOf(catalog.Configs, "block"), columnOf(catalog.Configs, "encoded"),
	}
)

// governance is what the chain knows of the rules that it works under. Chain.mu
// guards it; Process replaces what it changes.
type governance struct {
	schedule   *block.Schedule
	parameters [][]datum.Datum // rows of network_parameters
	pending    *block.Tx       // approved configuration that waits to be ordered; nil = none
	changed    bool            // the parameters did with the last block
}

// load reads it as of the tip.
func (c *Chain) loadGovernance(height block.Height) error {
	g := &c.governance
	g.schedule = block.NewSchedule(c.genesis)
	err := c.eachRow(configsTable, height, func(row []datum.Datum) error {
		config, err := block.DecodeConfig(bytes.Clone(row[configsColumns.encoded].Bytes()))
		if err != nil {
			return fmt.Errorf("chain: corruption: configuration %d: %w", row[configsColumns.number].Int(), err)
		}
		return g.schedule.Restore(config, block.Height(row[configsColumns.block].Int()))
	})
	if err != nil {
		return err
	}
	g.schedule.Skip(height + 1)
	g.parameters = nil
	if err := c.eachRow(parametersTable, height, func(row []datum.Datum) error {
		g.parameters = append(g.parameters, row)
		return nil
	}); err != nil {
		return err
	}
	if err := c.eachRow(deployTable, height, func(row []datum.Datum) error {
		tx, err := system.PendingConfig(row)
		if tx != nil {
			g.pending = tx
		}
		return err
	}); err != nil {
		return err
	}
	return c.govern(height + 1)
}

// eachRow calls f with the rows of a table as of a block, which are f's to keep.
func (c *Chain) eachRow(t *rowTable, height block.Height, f func([]datum.Datum) error) error {
	txn := c.store.Begin(mvcc.AsOf(height), 0)
	defer txn.Close()
	prefix := t.layout.IndexPrefix(0)
	it := txn.Scan(rwset.Span{Start: prefix, End: rwset.PrefixEnd(prefix)}, false, mvcc.ReadUnrecorded)
	defer it.Close()
	for it.Next() {
		row := t.newRow()
		err := t.decoder.Decode(bytes.Clone(it.Value()), row)
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
	return it.Err()
}

// govern sets the parameters that hold in a block, the one after the tip. What was
// executed ahead of it had others if they changed, and must be forgotten before
// it is processed.
func (c *Chain) govern(height block.Height) error {
	p := system.ParametersAt(c.genesis, c.governance.parameters, height)
	o := &c.governance.schedule.At(height).Config.Ordering
	p.BlockTxs, p.BlockBytes, p.BlockTimeoutMicros = o.BlockTxs, o.BlockBytes, o.BlockTimeoutMicros
	if old := c.params.Load(); old != nil && *old == p {
		return nil
	}
	rule, err := ssi.ParseRule(p.Rule)
	if err != nil {
		return err
	}
	c.rule = rule
	c.params.Store(&p)
	c.governance.changed = true
	return nil
}

// longestValidity is the largest validity window that ever held: ids have to be
// known for as long.
func (c *Chain) longestValidity() uint64 {
	longest := c.genesis.Params.ValidityWindow
	for _, row := range c.governance.parameters {
		p := system.ParametersAt(c.genesis, c.governance.parameters, block.Height(row[parametersFrom].Int()))
		longest = max(longest, p.ValidityWindow)
	}
	return longest
}

// errEngine stops a node that does not compute what the network does from here on.
func (c *Chain) errEngine() error {
	if v := c.params.Load().EngineVersion; v != engineVersion {
		return fmt.Errorf("chain: from block %d on the network computes with engine version %d, this program with %d", c.tip.height+1, v, engineVersion)
	}
	return nil
}

// checkConfig checks that a block names the configuration in force and was made by
// its orderers, and takes the configurations that it brings.
func (c *Chain) checkConfig(b *block.Block) (*block.Schedule, []error, error) {
	if err := c.governance.schedule.Certify(b, c.tip.timestamp); err != nil {
		return nil, nil, err
	}
	next := c.governance.schedule
	for _, tx := range b.Txs {
		if tx.Config != nil {
			next = next.Clone()
			break
		}
	}
	refused, err := next.Advance(b)
	return next, refused, err
}

// errConfig is the error of a configuration transaction without effect. Like one
// that nobody has signed it consumes no id.
func errConfig(err error) *pgerr.Error {
	return pgerr.New(unauthenticated, "configuration is not accepted").WithDetail("%s", err.Error())
}

// configure carries out the configuration transaction x, which the schedule has
// accepted. Nothing may fail and no limit holds: orderers have switched too.
func (c *Chain) configure(r *run, x *execution) error {
	entries := r.schedule.Entries()
	i := 1
	for ; i < len(entries) && block.TxID(entries[i].ID) != x.id; i++ {
	}
	if i >= len(entries) {
		return fmt.Errorf("chain: configuration %s is not in the schedule", x.id)
	}
	txn := r.batch.Begin(mvcc.Snapshot{Height: r.height(), Seq: r.seq}, x.xid)
	defer txn.Close()
	cat, err := c.engine.Catalog(txn)
	if err != nil {
		return err
	}
	env := c.engine.ContractEnv(txn, x.xid, cat, &builtin.TxInfo{ID: x.id})
	if err := c.system.Reconfigure(env, entries[i-1].Config, &entries[i]); err != nil {
		return err
	}
	if err := txn.Close(); err != nil {
		return err
	}
	x.end(Committed, nil)
	if x.digest, err = r.digest.of(txn); err != nil {
		return err
	}
	if err := r.noteWrites(txn); err != nil {
		return err
	}
	return r.applyOne(x, txn)
}

// system executes what a transaction of the system phase calls.
func (c *Chain) systemContract(x *execution) func(*exec.Env) (*contracts.Result, error) {
	return func(env *exec.Env) (*contracts.Result, error) {
		env.Ctx.Tx.Signed = x.tx.Encode()
		return contracts.ExecuteSystem(env, c.system, &x.tx.Call)
	}
}

// governed takes over a write of a system contract that concerns governance.
func (g *governance) governed(w *userWrite) error {
	switch {
	case bytes.HasPrefix(w.key, parametersTable.layout.IndexPrefix(0)):
		row := parametersTable.newRow()
		if err := parametersTable.decoder.Decode(w.value, row); err != nil {
			return err
		}
		g.parameters = append(g.parameters[:len(g.parameters):len(g.parameters)], row)
	case bytes.HasPrefix(w.key, deployTable.layout.IndexPrefix(0)):
		row := deployTable.newRow()
		if err := deployTable.decoder.Decode(w.value, row); err != nil {
			return err
		}
		tx, err := system.PendingConfig(row)
		if err != nil || tx == nil {
			return err
		}
		g.pending = tx
	}
	return nil
}

// isGovernance tells the keys of the tables that the chain follows.
func isGovernance(key []byte) bool {
	for _, t := range []*rowTable{certsTable, parametersTable, deployTable} {
		if bytes.HasPrefix(key, t.layout.IndexPrefix(0)) {
			return true
		}
	}
	return false
}

// Schedule returns the configurations of the chain up to its tip, for the caller
// to advance.
func (c *Chain) Schedule() *block.Schedule {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.governance.schedule.Clone()
}

// PendingConfig is the configuration transaction that all have approved and that
// waits to be ordered; nil if there is none. Whoever runs the node hands it to the
// ordering service: equal bytes from several nodes are one transaction.
func (c *Chain) PendingConfig() *block.Tx {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.governance.pending
}

// authenticateConfig is Authenticate for configuration transactions.
func (c *Chain) authenticateConfig(tx *block.Tx) error {
	c.mu.RLock()
	schedule := c.governance.schedule
	c.mu.RUnlock()
	if err := schedule.Check(tx.Config); err != nil {
		return errConfig(err)
	}
	return nil
}
