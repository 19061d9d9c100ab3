// Package system is the contracts that govern contracts and users (RBC section
// 3.7), as Go code over the workspace of a transaction: create_deploytx,
// approve_deploytx, reject_deploytx, comment_deploytx, submit_deploytx,
// create_user, update_user and delete_user.
//
// They are transactions like any other, signed by an admin, but run in the
// system phase of a block: after all other transactions, one after the other,
// each on the state that the ones before it left. Their rows are in the
// relations deploytx, deploytx_votes and pgcerts, which nothing else writes.
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
// # Users
//
// An admin manages the users of the own organization. A name that was revoked
// is never used again, and the last admin of an organization stays. What a
// block changes holds from the next block on: the chain checks signatures
// against the users as of the block before.
//
// # Errors
//
// Every error that depends on the call or on the state is a *pgerr.Error of the
// class that becomes a verdict; class 55, which PostgreSQL would use for
// objects in the wrong state, is not in it.
package system
