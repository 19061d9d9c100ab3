// Package solo is the ordering service of one orderer, embedded in a node: the
// default of development networks, and the measure of what agreement among
// several orderers costs.
//
// It keeps no log of its own. A block counts as ordered when the node's block
// store has it on disk, so the orderer is given that store as two functions, one
// that appends blocks with one sync and one that reads a block, and resumes from
// its tip. Nothing is delivered before it is durable.
//
// Three kinds of goroutines work on an [Orderer]:
//
//	Submit --queue--> sequencer --blocks--> persister --tip--> Deliver
//
// The sequencer drops what it has seen, lets the cutter decide where a block
// ends, numbers, links, stamps and signs it. The persister appends whatever was
// sealed while the last sync ran with one more sync. Every subscriber reads at
// its own pace, from the last blocks in memory or else from the block store, so
// that nothing is kept for those who are slow. The queue is bounded, and with
// [cutter.Config.MaxInFlight] so is what waits for processing: when the node
// falls behind, Submit waits.
//
// The certificate of a block is the vote of the single orderer in view 0.
package solo
