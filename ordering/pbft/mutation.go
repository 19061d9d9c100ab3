package pbft

// mutation plants a bug. Only tests of this package can set one: they show that
// the simulator finds what it is there to find.
type mutation struct {
	shortQuorum        bool // a quorum is one member too small
	forgetAccepted     bool // the accepted value is not persisted before the prepare vote
	forgetPrepared     bool // the prepared certificate is not persisted before the commit vote
	forgetView         bool // the resignation is not persisted before it is sent
	ignoreCertificates bool // a new view re-proposes nothing
	lowestView         bool // a new view prefers the certificate of the lowest view
	hidePrepared       bool // a resignation names no certificate
	mixViews           bool // votes of several views make one certificate
	voteInOldView      bool // votes of other views count
	acceptTwice        bool // a second proposal for a sequence replaces the first
	noDedup            bool // proposals may repeat transactions
	forgetOrdered      bool // what was ordered is not remembered
	loneCheckpoint     bool // a single vote makes a checkpoint stable
	noNull             bool // gaps of a new view stay gaps
	noRelay            bool // transactions are shown to nobody but the primary
	hideBatches        bool // missing batches are not asked for
}
