package catalog

// Policy is a row-level security policy: which rows of a table a role may see and
// write (CREATE POLICY).
type Policy struct {
	OID         OID
	Name        string
	Restrictive bool `json:",omitempty"`
	// Command is pg_policy.polcmd: * r a w d.
	Command string
	// Roles are whom it is for, by name, sorted; Public is everyone.
	Roles []string
	// Using is the condition for rows that exist, Check that for new rows, as SQL;
	// "" = none.
	Using string `json:",omitempty"`
	Check string `json:",omitempty"`
}

// The commands of policies.
const (
	PolicyAll    = "*"
	PolicySelect = "r"
	PolicyInsert = "a"
	PolicyUpdate = "w"
	PolicyDelete = "d"
)

// For tells that the policy has a say in a command.
func (p *Policy) For(command string) bool { return p.Command == PolicyAll || p.Command == command }

// Has tells that a role is another one or a member of it: users are members of
// their organizations.
func (r Role) Has(name string) bool { return name == Public || name == r.Org || name == r.String() }

// Owns tells that the role is an owner. Owners of private objects are users of
// the one organization, recorded by their bare names.
func (r Role) Owns(owner string) bool { return r.String() == owner || r.Org != "" && r.User == owner }
