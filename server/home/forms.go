package home

// The commented configuration files.
const (
	nodeForm = `# Node {{.Name}} of organization {{.Org}}.

# Who this is: the user of role node whose key is key.pem.
org = {{quote .Org}}
name = {{quote .Name}}

# Directory of blocks, state and schema private, relative to this file's.
data = "data"

# Goroutines that verify and execute transactions; 0 is one a processor.
workers = 0

# What is logged to standard error: debug, info, warn or error.
log_level = "info"

# Minutes between two scrubs, which read all rows at rest, slowly, and compare them
# with the digests in the state hash; the first one begins at the start. A node
# with a row that the chain did not write answers no more queries. 0 is never.
scrub_minutes = 60

# File with the passphrase of key.pem, if it is encrypted.
# passphrase_file = "passphrase"

# Other nodes, and tallystick status, connect here (gRPC over mutual TLS 1.3).
# network.toml tells them the address.
[mesh]
listen = {{quote .Mesh}}

# PostgreSQL clients and wallets connect here.
[sql]
listen = {{quote .SQL}}

# Sessions at a time.
max_connections = 100

# Who may come in, and by which proof. The first rule that fits decides; if none
# does, the connection is refused. This is what pg_hba.conf is in PostgreSQL.
#
#   type      hostssl (with TLS), hostnossl, host (either)
#   database  all, or a name
#   user      all, a name, or @passwd: who stands in the file passwd beside this one
#   address   all, or a range such as "10.0.0.0/8"
#   method    cert: a client certificate of this organization, whose user is the one
#                   who connects and is registered in the chain
#             scram-sha-256: the password of the file passwd (tallystick passwd);
#                   for local users of schema private, who sign nothing
#             reject: nobody
[[sql.hba]]
type = "hostssl"
database = "all"
user = "@passwd"
address = "all"
method = "scram-sha-256"

[[sql.hba]]
type = "hostssl"
database = "all"
user = "all"
address = "all"
method = "cert"
`

	ordererForm = `# Orderer {{.Name}} of organization {{.Org}}.

# Who this is: the user of role orderer whose key is key.pem. It signs blocks.
org = {{quote .Org}}
name = {{quote .Name}}

# Directory of blocks and of the log of the orderers' agreement, relative to this
# file's. An orderer that lost it has to join anew under another key.
data = "data"

# What is logged to standard error: debug, info, warn or error.
log_level = "info"

# File with the passphrase of key.pem, if it is encrypted.
# passphrase_file = "passphrase"

# Nodes connect here (gRPC over mutual TLS 1.3): they submit transactions and read
# blocks. network.toml tells them the address.
[service]
listen = {{quote .Service}}

# Other orderers connect here (mutual TLS 1.3). Its address in network.toml stands in
# the log of the orderers' agreement: it cannot be changed there alone.
[cluster]
listen = {{quote .Cluster}}
`

	walletForm = `# Wallet of {{.User}} of organization {{.Org}}: a signing endpoint on this machine.
# PostgreSQL clients connect to it as they would to a node; the calls of contracts
# that they make are signed here, with key.pem, which never leaves this machine.

# Who signs.
org = {{quote .Org}}
user = {{quote .User}}

# Loopback address for PostgreSQL clients. Whoever can connect to it signs as {{.User}}.
listen = {{quote .Listen}}

# The node of the organization that everything is passed on to (its sql address).
node = {{quote .Node}}

# The wallet evaluates the arguments of calls itself and signs what the client has
# written. true signs what the node has understood instead, unchecked: for arguments
# of types that the network has defined itself, for example.
trust_node = false

# What is logged to standard error: debug, info, warn or error.
log_level = "info"

# File with the passphrase of key.pem, if it is encrypted; without it tallystick wallet
# asks for it.
# passphrase_file = "passphrase"
`
)
