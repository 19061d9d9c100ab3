package raft

import (
	"context"
	"errors"
	"fmt"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/tallystick/tallystick/identity"
)

// ErrNotLeader is returned where the leader has to be asked: see
// [Orderer.Leader].
var ErrNotLeader = errors.New("raft: this orderer does not lead")

// Leader returns who leads, as far as this orderer knows; false if nobody.
func (o *Orderer) Leader() (Peer, bool) {
	id, address, _ := o.leader.get()
	key, err := identity.ParsePublicKey(string(id))
	return Peer{key, address}, err == nil && address != ""
}

// Leads reports whether this orderer is the leader and takes transactions.
func (o *Orderer) Leads() bool { return o.reign.Load() != nil }

// Peers returns the orderers that agree, by the last configuration in the log.
func (o *Orderer) Peers() ([]Peer, error) {
	var peers []Peer
	for _, s := range o.raft.GetConfiguration().Configuration().Servers {
		key, err := identity.ParsePublicKey(string(s.ID))
		if err != nil {
			return nil, fmt.Errorf("raft: orderer %q of the configuration: %w", s.ID, err)
		}
		peers = append(peers, Peer{key, string(s.Address)})
	}
	return peers, nil
}

// AddOrderer admits an orderer that was started without Bootstrap, or changes
// the address of one. It returns when a majority has that in its log. The key has
// to be one of Options.Orderers for its blocks to count.
func (o *Orderer) AddOrderer(ctx context.Context, p Peer) error {
	if p.Address == "" {
		return errors.New("raft: an orderer without an address")
	}
	return changed(o.raft.AddVoter(serverID(p.Key), hraft.ServerAddress(p.Address), 0, timeout(ctx)).Error())
}

// RemoveOrderer dismisses an orderer, which is to be closed afterwards. The leader
// may dismiss itself: the others elect another one.
func (o *Orderer) RemoveOrderer(ctx context.Context, key identity.PublicKey) error {
	return changed(o.raft.RemoveServer(serverID(key), 0, timeout(ctx)).Error())
}

// TransferLeadership hands over to another orderer that is up to date.
func (o *Orderer) TransferLeadership(to Peer) error {
	return changed(o.raft.LeadershipTransferToServer(serverID(to.Key), hraft.ServerAddress(to.Address)).Error())
}

// changed names the library's errors.
func changed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, hraft.ErrNotLeader), errors.Is(err, hraft.ErrLeadershipLost):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	default:
		return fmt.Errorf("raft: changing the orderers: %w", err)
	}
}

// timeout is what is left of ctx; 0 is no limit.
func timeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), time.Millisecond)
}
