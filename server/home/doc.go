// Package home is the directories in which the processes of a network have their
// keys, certificates and configuration, and how they come about.
//
// # A network's directory
//
// Every organization has a directory, and in it one for each of its processes and
// users, their homes:
//
//	net/bank/public.toml       what others need to know of bank: no secrets
//	net/bank/ca/               the authority: ca.pem and its key, key.pem
//	net/bank/node1/            a node: node.toml
//	net/bank/orderer1/         an orderer: orderer.toml
//	net/bank/users/alice/      a user: wallet.toml
//
// Every home has
//
//	key.pem, cert.pem          private key, and certificate by the authority
//	genesis                    canonical bytes of the genesis: which network this is
//	network.toml               authorities and addresses of all organizations
//	revoked                    keys that this machine refuses (optional)
//	data/                      what the process keeps
//
// # How it comes about
//
// [MakeOrg] makes the keys of one organization and what it publishes. [Combine]
// makes a genesis and a network.toml of what all organizations have published, the
// same one whoever does it with the same parameters and time. [Join] gives it to
// the homes of an organization, after it has checked that the genesis has the very
// keys that are there. So no secret leaves its organization; one that trusts nobody
// compares the network id that the others have before it starts.
//
// Addresses are not trusted and in no genesis: they may be changed in network.toml
// at any time. Whom a process talks to is told by certificate and key.
package home
