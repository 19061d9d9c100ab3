package flow

import (
	"context"

	"github.com/tallystick/tallystick/blockstore/block"
)

// offerEvery is after how many blocks a configuration that still waits is handed
// to the ordering service again.
const offerEvery = 64

// offer is the configuration transaction that was handed over last.
type offer struct {
	id block.TxID
	at block.Height
}

// offerConfig hands a configuration that everybody has approved to the ordering
// service. All nodes do: it is the same transaction for all.
func (f *Flow) offerConfig(ctx context.Context, height block.Height) {
	tx := f.opts.Chain.PendingConfig()
	if tx == nil {
		return
	}
	if id := tx.ID(); f.offered.id != id || height >= f.offered.at+offerEvery {
		f.offered = offer{id, height}
	} else {
		return
	}
	f.offers.Go(func() {
		if err := f.opts.Service.Submit(ctx, tx); err != nil && ctx.Err() == nil {
			f.opts.Logger.Warn("flow: submitting a configuration", "configuration", tx.ID(), "error", err)
		}
	})
}
