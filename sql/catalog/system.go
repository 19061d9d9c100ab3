package catalog

import "github.com/tallystick/tallystick/sql/datum"

// The OIDs of the ledger's own relations, below those of users.
const (
	LedgerOID      OID = 10100
	CertsOID       OID = 10110
	BlocksOID      OID = 10120
	DeployOID      OID = 10130
	DeployVotesOID OID = 10140
	FindingsOID    OID = 10150
	ConfigsOID     OID = 10160
	ParametersOID  OID = 10170

	CheckpointsOID     OID = 10180
	CheckpointVotesOID OID = 10190
	VersionsOID        OID = 10250
)

// BlockchainOID and its like are the OIDs of the schemas.
const (
	PgCatalogOID   OID = 11
	BlockchainOID  OID = 2200
	PrivateOID     OID = 10001
	ProvenanceOID  OID = 10002
	InformationOID OID = 13000
)

// SystemOwner owns the schemas and the ledger's relations.
const SystemOwner = "tallystick"

var systemSchemas = []*Schema{
	{OID: PgCatalogOID, Name: PgCatalog, Owner: SystemOwner},
	{OID: BlockchainOID, Name: Blockchain, Owner: SystemOwner},
	{OID: PrivateOID, Name: Private, Owner: SystemOwner},
	{OID: ProvenanceOID, Name: Provenance, Owner: SystemOwner},
	{OID: InformationOID, Name: Information, Owner: SystemOwner},
}

// The ledger's relations (RBC section 4: pgLedger and pgCerts). Every node
// derives their rows from the chain.
var (
	// Ledger has one row per transaction of every block, whatever its status.
	Ledger = systemTable(LedgerOID, "pgledger", []string{"txid"}, []Column{
		col("txid", datum.Int8),             // block * 2^20 + position: xmin and xmax of rows
		col("block", datum.Int8),            //
		col("position", datum.Int4),         // in the block, from 1
		col("id", datum.Bytea),              // transaction id, 32 bytes
		col("org", datum.Text),              //
		col("username", datum.Text),         //
		col("function", datum.Text),         // qualified name
		col("call", datum.Text),             // the call as SQL text
		col("status", datum.Text),           // committed, aborted, failed, rejected
		null("sqlstate", datum.Text),        // why it did not commit
		null("message", datum.Text),         //
		null("detail", datum.Text),          //
		col("snapshot", datum.Int8),         // the height it read
		col("signed_at", datum.TimestampTZ), //
		col("valid_until", datum.Int8),      //
		null("result", datum.Bytea),         // canonical bytes of the result
	})
	// Certs has the users with their keys.
	Certs = systemTable(CertsOID, "pgcerts", []string{"org", "username"}, []Column{
		col("org", datum.Text),
		col("username", datum.Text),
		col("role", datum.Text), // admin, client
		col("public_key", datum.Bytea),
		col("since_block", datum.Int8),
		null("revoked_block", datum.Int8),
	})
	// Blocks has one row per block.
	Blocks = systemTable(BlocksOID, "blocks", []string{"number"}, []Column{
		col("number", datum.Int8),
		col("hash", datum.Bytea),
		col("prev_hash", datum.Bytea),
		col("block_time", datum.TimestampTZ),
		col("transactions", datum.Int4),
		col("committed", datum.Int4),
		col("state_hash", datum.Bytea),
	})
	// Deploy has the proposals: contracts, parameters, configurations.
	Deploy = systemTable(DeployOID, "deploytx", []string{"id"}, []Column{
		col("id", datum.Int8),
		col("kind", datum.Text),    // contract, parameters, configuration
		col("payload", datum.Text), // a DDL script, or the changes as JSON
		col("org", datum.Text),     // of the admin who proposed it
		col("username", datum.Text),
		col("status", datum.Text), // proposed, approved, deployed, rejected, withdrawn
		col("created_block", datum.Int8),
		null("closed_block", datum.Int8),
		null("reason", datum.Text),
		null("config_id", datum.Bytea), // of a configuration: what its approvals name
		null("config", datum.Bytea),    // its canonical bytes; of its transaction once it is approved
	})
	// DeployVotes has approvals, rejections and comments.
	DeployVotes = systemTable(DeployVotesOID, "deploytx_votes", []string{"deploy_id", "txid"}, []Column{
		col("deploy_id", datum.Int8),
		col("txid", datum.Int8), // the signed transaction that cast it
		col("org", datum.Text),
		col("username", datum.Text),
		col("vote", datum.Text), // approve, reject, comment
		null("comment", datum.Text),
		col("block", datum.Int8),
		null("signed", datum.Bytea), // canonical bytes of that transaction, with the signature
	})
	// DeployFindings has what the determinism check said of the functions of an
	// accepted proposal.
	DeployFindings = systemTable(FindingsOID, "deploytx_findings", []string{"deploy_id", "position"}, []Column{
		col("deploy_id", datum.Int8),
		col("position", datum.Int4), // in the report, from 1
		col("function", datum.Text), // with its argument types
		col("line", datum.Int4),     // of the function's body, from 1
		col("col", datum.Int4),      // in characters, from 1
		col("rule", datum.Text),
		col("severity", datum.Text), // warning
		col("message", datum.Text),
		null("hint", datum.Text),
	})
	// Checkpoints has the state hashes that nodes of a majority of the
	// organizations signed.
	Checkpoints = systemTable(CheckpointsOID, "checkpoints", []string{"height"}, []Column{
		col("height", datum.Int8), // the state after this block
		col("state_hash", datum.Bytea),
		col("organizations", datum.Int4), // whose nodes had signed when it was recorded
		col("recorded_block", datum.Int8),
	})
	// CheckpointVotes has what every node signed, whether it agrees or not.
	CheckpointVotes = systemTable(CheckpointVotesOID, "checkpoint_votes", []string{"height", "org", "username"}, []Column{
		col("height", datum.Int8),
		col("org", datum.Text),
		col("username", datum.Text), // the node
		col("state_hash", datum.Bytea),
		col("signature", datum.Bytea),
		col("txid", datum.Int8), // the transaction that submitted it
		col("block", datum.Int8),
	})
)

// ContractVersions has every version of every function, with what changed since the
// one before it. Who approved it, and when, is in deploytx_votes for its deploy_id.
var ContractVersions = systemTable(VersionsOID, "contract_versions", []string{"function", "version"}, []Column{
	col("function", datum.Text), // with its argument types
	col("version", datum.Int8),  // from 1; goes on when it is dropped and made again
	col("deploy_id", datum.Int8),
	col("block", datum.Int8),
	col("action", datum.Text),      // created, replaced, dropped
	null("definition", datum.Text), // as deployed; null for a dropped one
	col("diff", datum.Text),        // from the version before, unified
})

// Configs and Parameters are what governs the network.
var (
	// Configs has every configuration that the chain accepted (block.Config), from
	// that of the genesis on.
	Configs = systemTable(ConfigsOID, "configs", []string{"number"}, []Column{
		col("number", datum.Int8),
		col("id", datum.Bytea),
		col("block", datum.Int8),      // of its transaction
		col("from_block", datum.Int8), // first block that its orderers make
		col("organizations", datum.Int4),
		col("orderers", datum.Int4),
		col("quorum", datum.Int4),
		col("block_txs", datum.Int8),
		col("block_bytes", datum.Int8),
		col("block_timeout", datum.Int8), // microseconds
		col("encoded", datum.Bytea),      // canonical bytes
	})
	// Parameters has what governance changed of the parameters of the genesis.
	Parameters = systemTable(ParametersOID, "network_parameters", []string{"name", "from_block"}, []Column{
		col("name", datum.Text),
		col("from_block", datum.Int8), // first block in which it holds
		col("value", datum.Text),
		col("deploy_id", datum.Int8), // proposal that set it
	})
)

var systemTables = []*Table{Ledger, Certs, Blocks, Deploy, DeployVotes, DeployFindings, Configs, Parameters, Checkpoints, CheckpointVotes, ContractVersions}

func init() {
	Ledger.Indexes = append(Ledger.Indexes, Index{
		OID: LedgerOID + 2, Name: "pgledger_id_key", Unique: false, Keys: []IndexKey{{Column: Ledger.Column("id")}},
	})
}

func col(name string, d *datum.Desc) Column {
	return Column{Name: name, TypeOID: d.OID, TypMod: -1, NotNull: true, Type: datum.T(d)}
}

func null(name string, d *datum.Desc) Column {
	c := col(name, d)
	c.NotNull = false
	return c
}

func systemTable(oid OID, name string, key []string, cols []Column) *Table {
	t := &Table{OID: oid, Schema: Blockchain, Name: name, Kind: OrdinaryTable, Owner: SystemOwner, Columns: cols, System: true}
	pk := Index{OID: oid + 1, Name: name + "_pkey", Unique: true, Primary: true, Constraint: true}
	for _, k := range key {
		pk.Keys = append(pk.Keys, IndexKey{Column: t.Column(k)})
	}
	t.Indexes = []Index{pk}
	return t
}

// SystemLanguage is the language of the system contracts: Go code of this
// project, in package contracts/system.
const SystemLanguage = "system"

// systemFuncs are the contracts that govern contracts and users (RBC section
// 3.7). They run in the system phase of a block.
var systemFuncs = []*Func{
	systemFunc(10200, "create_deploytx", datum.Int8, arg("payload", datum.Text)),
	systemFunc(10201, "approve_deploytx", datum.Void, arg("id", datum.Int8)),
	systemFunc(10202, "reject_deploytx", datum.Void, arg("id", datum.Int8), arg("reason", datum.Text)),
	systemFunc(10203, "comment_deploytx", datum.Void, arg("id", datum.Int8), arg("comment", datum.Text)),
	systemFunc(10204, "submit_deploytx", datum.Void, arg("id", datum.Int8)),
	systemFunc(10205, "withdraw_deploytx", datum.Void, arg("id", datum.Int8), arg("reason", datum.Text)),
	systemFunc(10206, "create_parametertx", datum.Int8, arg("changes", datum.JSONB)),
	systemFunc(10207, "create_configtx", datum.Int8, arg("changes", datum.JSONB)),
	systemFunc(10208, "approve_configtx", datum.Void, arg("id", datum.Int8), arg("config_id", datum.Bytea)),
	systemFunc(10210, "create_user", datum.Void, arg("org", datum.Text), arg("username", datum.Text), arg("role", datum.Text), arg("public_key", datum.Bytea)),
	systemFunc(10211, "update_user", datum.Void, arg("org", datum.Text), arg("username", datum.Text), arg("public_key", datum.Bytea)),
	systemFunc(10212, "delete_user", datum.Void, arg("org", datum.Text), arg("username", datum.Text)),
	systemFunc(10220, "submit_checkpoint", datum.Void, arg("height", datum.Int8), arg("state_hash", datum.Bytea), arg("signature", datum.Bytea)),
}

// SystemFunc finds the system contract of a name.
func SystemFunc(name string) (*Func, bool) {
	for _, f := range systemFuncs {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

func arg(name string, d *datum.Desc) Arg {
	return Arg{Name: name, Mode: In, TypeOID: d.OID, TypMod: -1, Type: datum.T(d)}
}

func systemFunc(oid OID, name string, ret *datum.Desc, args ...Arg) *Func {
	return &Func{
		OID: oid, Schema: Blockchain, Name: name, Kind: Function, Args: args, RetOID: ret.OID, RetMod: -1, Ret: datum.T(ret),
		Language: SystemLanguage, Volatility: "v", Strict: true, Owner: SystemOwner, Version: 1,
	}
}
