package system

import (
	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/sql/catalog"
	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

var (
	checkpoints     = newTable(catalog.Checkpoints)
	checkpointVotes = newTable(catalog.CheckpointVotes)

	pointHeight, pointState = column(catalog.Checkpoints, "height"), column(catalog.Checkpoints, "state_hash")
	pointOrgs, pointBlock   = column(catalog.Checkpoints, "organizations"), column(catalog.Checkpoints, "recorded_block")

	markHeight, markOrg  = column(catalog.CheckpointVotes, "height"), column(catalog.CheckpointVotes, "org")
	markName, markState  = column(catalog.CheckpointVotes, "username"), column(catalog.CheckpointVotes, "state_hash")
	markSignature        = column(catalog.CheckpointVotes, "signature")
	markTx, markRecorded = column(catalog.CheckpointVotes, "txid"), column(catalog.CheckpointVotes, "block")
)

// SubmitCheckpoint is the name of the contract by which nodes say which state
// they have.
const SubmitCheckpoint = "submit_checkpoint"

// nodeCaller reads the row of the caller, who has to be a node.
func (c *call) nodeCaller() ([]datum.Datum, error) {
	row, err := c.cert(c.caller)
	if err != nil {
		return nil, err
	}
	if row == nil || !row[certRevoked].IsNull() || row[certRole].Str() != identity.Node.String() {
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "permission denied for function %s", SubmitCheckpoint).
			WithDetail("%s is no node of its organization.", c.caller)
	}
	return row, nil
}

// submitCheckpoint notes that a node has a state hash at a height (arguments:
// height, state hash, signature of block.CheckpointDigest by the node's key) and
// records a checkpoint once nodes of a majority of the organizations have the
// same. A vote that contradicts a checkpoint is kept: it exposes its node.
//
// A node votes for ascending heights, so that it cannot fill the state with votes
// faster than blocks come.
func (c *call) submitCheckpoint() (datum.Datum, error) {
	cert, err := c.nodeCaller()
	if err != nil {
		return datum.Null, err
	}
	height, state := c.args[0], c.args[1]
	if err := c.checkMark(cert); err != nil {
		return datum.Null, err
	}
	row := checkpointVotes.row()
	row[markHeight], row[markOrg], row[markName] = height, datum.Str(c.caller.Org), datum.Str(c.caller.Name)
	row[markState], row[markSignature] = state, c.args[2]
	row[markTx], row[markRecorded] = datum.Int(int64(c.env.XID)), c.height()
	if err := checkpointVotes.insert(c.env, row); err != nil {
		return datum.Null, err
	}
	recorded, err := checkpoints.get(c.env, height)
	if err != nil || recorded != nil {
		return datum.Null, err
	}
	return datum.Null, c.recordCheckpoint(height, state)
}

// checkMark checks the arguments of a vote.
func (c *call) checkMark(cert []datum.Datum) error {
	height, state, signature := c.args[0].Int(), c.args[1].Bytes(), c.args[2].Bytes()
	if len(state) != len(block.Hash{}) || len(signature) != len(identity.Signature{}) {
		return pgerr.New(pgerr.InvalidParameterValue, "a state hash has %d bytes and a signature %d", len(block.Hash{}), len(identity.Signature{}))
	}
	if now := c.height().Int(); height < 0 || height >= now {
		return pgerr.New(pgerr.InvalidParameterValue, "block %d has no state hash yet", height).
			WithDetail("The vote stands in block %d.", now)
	}
	digest := block.CheckpointDigest(uint64(height), block.Hash(state))
	if !identity.Verify(identity.PublicKey(cert[certKey].Bytes()), digest[:], identity.Signature(signature)) {
		return pgerr.New(pgerr.InvalidAuthorizationSpec, "signature does not fit the checkpoint").
			WithDetail("It is not one of %s over the state hash of block %d.", c.caller, height)
	}
	var refusal error
	err := checkpointVotes.each(c.env, true, func(row []datum.Datum) bool {
		if row[markOrg].Str() != c.caller.Org || row[markName].Str() != c.caller.Name {
			// The newest heights come first: all votes of a height are passed, and
			// then those of the height before, until there is one of the caller or
			// one that the caller's would follow.
			return row[markHeight].Int() >= height
		}
		if last := row[markHeight].Int(); last >= height {
			refusal = pgerr.New(pgerr.DuplicateObject, "%s has voted on the state of block %d already", c.caller, last)
		}
		return false
	})
	if err != nil {
		return err
	}
	return refusal
}

// recordCheckpoint records a checkpoint if a majority of the organizations has
// this state.
func (c *call) recordCheckpoint(height, state datum.Datum) error {
	var agreeing, last string
	orgs := int64(0)
	err := checkpointVotes.each(c.env, false, func(row []datum.Datum) bool {
		if agreeing = row[markOrg].Str(); string(row[markState].Bytes()) == string(state.Bytes()) && agreeing != last {
			orgs, last = orgs+1, agreeing
		}
		return true
	}, height)
	if err != nil {
		return err
	}
	all, err := c.organizations()
	if err != nil || 2*orgs <= all {
		return err
	}
	row := checkpoints.row()
	row[pointHeight], row[pointState], row[pointOrgs], row[pointBlock] = height, state, datum.Int(orgs), c.height()
	return checkpoints.insert(c.env, row)
}

// organizations counts those that have an admin: an organization without one
// takes no part any more.
func (c *call) organizations() (n int64, err error) {
	last := ""
	err = certs.each(c.env, false, func(row []datum.Datum) bool {
		if org := row[certOrg].Str(); activeAdmin(row) && org != last {
			n, last = n+1, org
		}
		return true
	})
	return n, err
}
