package chain

import (
	"sync"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/mvcc"
	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	// unauthenticated is the SQLSTATE of everything that consumes no id: nobody
	// known has signed this for this network.
	unauthenticated = pgerr.InvalidAuthorizationSpec
	// snapshotTooOld is PostgreSQL's snapshot_too_old.
	snapshotTooOld pgerr.Code = "72000"
)

func errNetwork(tx *block.Tx, network block.Hash) *pgerr.Error {
	return pgerr.New(unauthenticated, "transaction was signed for another network").
		WithDetail("It names network %s, and this is %s.", tx.Network, network)
}

func errUnknownUser(id identity.UserID) *pgerr.Error {
	return pgerr.New(unauthenticated, "role %q does not exist", id.String())
}

func errRevoked(u *User) *pgerr.Error {
	return pgerr.New(unauthenticated, "role %q does not exist", u.ID.String()).
		WithDetail("It was revoked in block %d.", u.Revoked)
}

func errSignature(id identity.UserID) *pgerr.Error {
	return pgerr.New(unauthenticated, "signature of the transaction does not verify with the key of role %q", id.String())
}

// errDuplicate is the error of a repeated id.
func errDuplicate(id block.TxID) *pgerr.Error {
	return pgerr.New(pgerr.DuplicateObject, "transaction %s was ordered before", id)
}

// errTiming checks what the signed transaction says about time: its validity,
// its snapshot and its clock. Height is that of the block that contains it.
func (c *Chain) errTiming(tx *block.Tx, height block.Height, timestamp int64) *pgerr.Error {
	if tx.ValidUntil < height {
		return pgerr.New(pgerr.InvalidTransactionState, "transaction has expired").
			WithDetail("It was valid until block %d and stands in block %d.", tx.ValidUntil, height)
	}
	if tx.ValidUntil > height+c.params.Load().ValidityWindow {
		return pgerr.New(pgerr.InvalidTransactionState, "transaction is valid for too long").
			WithDetail("It is valid until block %d; block %d accepts at most %d.", tx.ValidUntil, height, height+c.params.Load().ValidityWindow)
	}
	if c.speculative() {
		if tx.Snapshot >= height {
			return pgerr.New(pgerr.InvalidTransactionState, "transaction has read a block that did not exist").
				WithDetail("Its snapshot is block %d, and it stands in block %d.", tx.Snapshot, height)
		}
		if err := c.errOld(tx, height); err != nil {
			return err
		}
	}
	if diff := tx.Time - timestamp; diff > int64(c.params.Load().TimeBoundMicros) || -diff > int64(c.params.Load().TimeBoundMicros) {
		return pgerr.New(pgerr.InvalidTransactionState, "signed time of the transaction is too far from the time of its block").
			WithDetail("It is off by %d microseconds; the bound is %d.", diff, c.params.Load().TimeBoundMicros)
	}
	return nil
}

// errOld checks that the snapshot of a transaction is not too old for a block: it
// lies in [b-1-S, b-1].
func (c *Chain) errOld(tx *block.Tx, height block.Height) *pgerr.Error {
	if tx.Snapshot+1+c.params.Load().SnapshotWindow >= height {
		return nil
	}
	return pgerr.New(snapshotTooOld, "snapshot too old").
		WithDetail("The snapshot is block %d; block %d accepts at most %d blocks back.", tx.Snapshot, height, c.params.Load().SnapshotWindow)
}

// CheckSnapshot reports that the next block will not accept the snapshot of a
// transaction because it is too old (72000). It is advice: the block decides.
func (c *Chain) CheckSnapshot(tx *block.Tx) error {
	if c.speculative() {
		if err := c.errOld(tx, c.Height()+1); err != nil {
			return err
		}
	}
	return nil
}

// speculative reports whether transactions read the snapshot that they name.
func (c *Chain) speculative() bool { return c.params.Load().Flow == block.FlowExecuteOrderInParallel }

// snapshot is the height that a transaction of a block reads.
func (c *Chain) snapshot(tx *block.Tx, height block.Height) block.Height {
	if c.speculative() {
		return tx.Snapshot
	}
	return height - 1
}

// Authenticate checks network, user and signature of a transaction as of the
// last block: 28000. That a signature is good is remembered until the block
// that contains it. It is advice: the block decides.
func (c *Chain) Authenticate(tx *block.Tx) error {
	if tx.Network != c.network {
		return errNetwork(tx, c.network)
	}
	if tx.Config != nil {
		return c.authenticateConfig(tx)
	}
	u, ok := c.User(tx.User)
	if !ok {
		return errUnknownUser(tx.User)
	}
	if !u.Active() {
		return errRevoked(&u)
	}
	id := tx.ID()
	if c.checked.good(id, u.Key, tx.Signature) {
		return nil
	}
	if !c.handed.Verify(u.Key, id[:], tx.Signature) {
		return errSignature(tx.User)
	}
	c.checked.add(id, u.Key, tx.Signature)
	return nil
}

// checkedSignatures remembers signatures that were found good outside of a
// block. It only ever saves work.
type checkedSignatures struct {
	mu    sync.Mutex
	known map[block.TxID]signed
}

type signed struct {
	key       identity.PublicKey
	signature identity.Signature
}

// maxChecked bounds what is remembered, some 10 MB.
const maxChecked = 1 << 16

func (s *checkedSignatures) good(id block.TxID, key identity.PublicKey, sig identity.Signature) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.known[id]
	return ok && g == signed{key, sig}
}

func (s *checkedSignatures) add(id block.TxID, key identity.PublicKey, sig identity.Signature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxChecked {
		s.known = make(map[block.TxID]signed)
	}
	s.known[id] = signed{key, sig}
}

// forget drops what a block has settled.
func (s *checkedSignatures) forget(list []execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		delete(s.known, list[i].id)
	}
}

// verify decides which transactions of the block are rejected.
func (c *Chain) verify(r *run) error {
	c.verifySignatures(r)
	seen := make(map[block.TxID]struct{}, len(r.list))
	var ledger *mvcc.Txn
	defer func() {
		if ledger != nil {
			ledger.Close()
		}
	}()
	for i := range r.list {
		x := &r.list[i]
		if x.status != 0 || x.tx.Config != nil {
			continue
		}
		_, repeated := seen[x.id]
		if !repeated {
			known, inLedger := c.ids.has(x.id, x.tx.ValidUntil)
			if repeated = known; inLedger {
				if ledger == nil {
					ledger = c.store.Begin(mvcc.AsOf(r.height()-1), 0)
				}
				old, err := lookup(ledger, x.id)
				if err != nil {
					return err
				}
				repeated = old != nil
			}
		}
		if repeated {
			x.repeated = true
			x.end(Rejected, errDuplicate(x.id))
			continue
		}
		seen[x.id] = struct{}{}
		if err := c.errTiming(x.tx, r.height(), r.block.Timestamp); err != nil {
			x.end(Rejected, err)
		}
	}
	return nil
}

// verifySignatures rejects what no user as of the block before has signed.
func (c *Chain) verifySignatures(r *run) {
	r.items, r.itemOf = r.items[:0], r.itemOf[:0]
	for i := range r.list {
		x := &r.list[i]
		if x.tx.Network != c.network {
			x.end(Rejected, errNetwork(x.tx, c.network))
			continue
		}
		if x.tx.Config != nil {
			if r.refused != nil && r.refused[i] != nil {
				x.end(Rejected, errConfig(r.refused[i]))
			}
			continue
		}
		u := c.users[x.tx.User]
		switch {
		case u == nil:
			x.end(Rejected, errUnknownUser(x.tx.User))
		case !u.Active():
			x.end(Rejected, errRevoked(u))
		case !c.checked.good(x.id, u.Key, x.tx.Signature):
			r.items = append(r.items, identity.Item{Key: u.Key, Message: x.id[:], Signature: x.tx.Signature})
			r.itemOf = append(r.itemOf, i)
		}
	}
	if len(r.items) == 0 {
		return
	}
	good := make([]bool, len(r.items))
	if c.verifier.VerifyBatch(r.items, good) {
		return
	}
	for k, i := range r.itemOf {
		if x := &r.list[i]; !good[k] {
			x.end(Rejected, errSignature(x.tx.User))
		}
	}
}
