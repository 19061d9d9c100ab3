package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/ordering"
	"github.com/tallystick/tallystick/ordering/replica"
	"github.com/tallystick/tallystick/server/pki"
)

const (
	// lifeFactor is for how many validity windows of the network orderers take a
	// transaction. A client signs at the height of its node for a whole window, and
	// an orderer that is behind that node, by less than another one, must not refuse
	// it; what lives too long for the chain the chain rejects.
	lifeFactor = 2
	// maxLife is the most that a machine remembers.
	maxLife = 1 << 20
)

// startReplica starts an orderer of a byzantine protocol after the tip.
func startReplica(c *ordererConfig, protocol ordering.Protocol, tip *block.Block) (embedded, error) {
	if err := checkRecords(c.dir, c.schedule.At(tip.Number+1).Config, tip); err != nil {
		return nil, err
	}
	// Size and timeout of blocks are those of the configuration in force.
	limits := c.schedule.At(tip.Number + 1).Config.Ordering
	cut := c.cutter
	cut.MaxTxs, cut.MaxBytes, cut.Timeout = int(limits.BlockTxs), int(limits.BlockBytes), int64(limits.BlockTimeoutMicros)
	o := replica.Options{
		Protocol: protocol, Signer: c.signer, Schedule: c.schedule,
		Tip: tip, Persist: c.blocks.AppendBatch, Source: c.blocks.Get, Dir: c.dir,
		// Admit stays unset: it would have to say the same at all orderers.
		Cutter: cut, IgnoreDone: c.unwatched, Logger: c.log,
	}
	o.Machine.MaxLife = min(lifeFactor*c.genesis.Params.ValidityWindow, maxLife)
	if c.identify != nil {
		o.Listener, o.Dial, o.Identify = c.listener, c.dialKey, c.identify
	}
	return replica.Start(o)
}

// checkRecords refuses to go on where blocks are and the orderer's records are
// not: it has voted on something beyond the blocks, and might now vote otherwise.
// An orderer that is alone has nobody to contradict.
func checkRecords(dir string, config *block.Config, tip *block.Block) error {
	if tip.Number == 0 || len(config.Orderers.Keys) == 1 {
		return nil
	}
	there, err := exists(dir)
	if err == nil && !there {
		err = fmt.Errorf("server: the blocks go to %d, and %s with the orderer's votes is missing: without them it could vote twice. "+
			"Restore it, or have the network replace this orderer by one with another key", tip.Number, dir)
	}
	return err
}

// identifyOrderer tells which orderer is at the other end of an accepted
// connection, by its certificate.
func identifyOrderer(v *pki.Verifier) func(net.Conn) (identity.PublicKey, error) {
	return func(c net.Conn) (identity.PublicKey, error) {
		t, ok := c.(*tls.Conn)
		if !ok {
			return identity.PublicKey{}, errors.New("server: a connection without TLS")
		}
		if err := t.Handshake(); err != nil {
			return identity.PublicKey{}, err
		}
		m, err := v.Check(t.ConnectionState().PeerCertificates, identity.Orderer)
		return m.Key, err
	}
}
