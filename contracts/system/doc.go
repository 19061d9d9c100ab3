// Package system is the contracts that govern contracts and users (RBC section
// 3.7), as Go code over the workspace of a transaction: create_deploytx,
// approve_deploytx, reject_deploytx, comment_deploytx, submit_deploytx,
// create_user, update_user, delete_user and submit_checkpoint.
//
// They are transactions like any other, signed by an admin, but run in the
// system phase of a block: after all other transactions, one after the other,
// each on the state that the ones before it left. Their rows are in the
// relations deploytx, deploytx_votes, pgcerts, checkpoints and checkpoint_votes,
// which nothing else writes.
//
// # Deployment
//
// A proposal is a DDL script. It is proposed until an admin of any organization
// rejects it, or until it is submitted when an admin of every organization has
// approved it; both are final. Who proposes does not approve by that. An admin
// votes once on a proposal and comments as often as they like. An approval
// counts as long as whoever gave it is an admin; an organization counts as long
// as it has one.
//
// A script is applied on trial when it is proposed, and undone: a contract that
// is not deterministic (package determinism) is refused with everything that was
// found, and warnings about one that is accepted are in deploytx_findings. It is
// examined again when it is submitted, for the database may have changed. A
// script that cannot be executed yet is accepted with a warning.
//
// withdraw_deploytx closes a proposal of the caller's organization that nobody has
// closed yet: a mistake, or a script that can no longer be executed. A submission
// that fails is in pgledger as any other transaction that fails, and leaves the
// proposal as it was.
//
// The relation contract_versions has every version of every function with its
// definition and what changed in it, as a unified diff; who approved it and when is
// in deploytx_votes for its deploy_id.
//
// Every vote keeps the signed transaction that cast it (deploytx_votes.signed), so
// that anyone can verify it for ever.
//
// # Parameters
//
// create_parametertx takes a JSON object of parameters with their new values, for
// example {"max_steps": 20000000, "rule": "exact"}, and proposes that: the votes
// are those of a deployment. The values hold from the block after the submission
// on, or from from_block on. They are in the relation network_parameters; what is
// not there is as in the genesis. flow, orderer and ordering_window never change.
// A limit cannot fall so low that governance could not raise it again. A change of
// engine_version stops, at its block, the nodes that do not have it.
//
// # Configurations
//
// What orderers have to know, they cannot read in SQL: organizations with their
// admins, orderers, and how blocks are cut. create_configtx takes a JSON object with
//
//	add_organizations     {"org": {"admin": "public key in hexadecimal", ...}, ...}
//	remove_organizations  ["org", ...]
//	admins                {"org": {"admin": "key", ...}}: all admins of it
//	add_orderers, remove_orderers   ["key", ...]
//	block_txs, block_bytes, block_timeout (microseconds)
//
// and proposes the configuration after the last one (block.Config). It is approved
// with approve_configtx(id, config_id): the signed vote itself is what orderers
// verify. An admin of every organization has to approve, except that who is removed
// is not asked (but more than half have to approve then), and that an organization
// changes its own admins alone. submit_deploytx makes the configuration transaction;
// nodes hand it to the orderers, and once it stands in a block Reconfigure writes it
// down: a row in configs, users of organizations that come and go, the proposal
// deployed, and open proposals of other configurations superseded. Users change from
// the next block on, orderers after the ordering window.
//
// Accounts that create_user and the like change are SQL's business; the admins who
// may approve configurations are those of the last configuration, and the two agree
// only if an organization keeps them so.
//
// # Users
//
// An admin manages the users of the own organization. A name that was revoked
// is never used again, and the last admin of an organization stays. What a
// block changes holds from the next block on: the chain checks signatures
// against the users as of the block before.
//
// # Checkpoints
//
// Nodes submit the state hashes that they have (submit_checkpoint); one that nodes
// of a majority of the organizations agree on becomes a row of checkpoints. What
// a node does that has another one is package chain's.
//
// # Errors
//
// Every error that depends on the call or on the state is a *pgerr.Error of the
// class that becomes a verdict; class 55, which PostgreSQL would use for
// objects in the wrong state, is not in it.
package system
