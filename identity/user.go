package identity

import (
	"errors"
	"fmt"
	"strings"
)

// Role is what a user of an organization may do. The zero value is no role.
type Role uint8

// The roles. Their numbers are part of the canonical encoding of a genesis.
const (
	Admin   Role = 1 // governs: deployments, users, configuration
	Client  Role = 2 // calls contracts
	Node    Role = 3 // a database node: signs checkpoints
	Orderer Role = 4 // an ordering node: signs blocks
)

var roleNames = [...]string{Admin: "admin", Client: "client", Node: "node", Orderer: "orderer"}

// Valid reports whether r is one of the declared roles.
func (r Role) Valid() bool { return r >= Admin && r <= Orderer }

// String returns the lower-case name of the role.
func (r Role) String() string {
	if !r.Valid() {
		return fmt.Sprintf("role(%d)", uint8(r))
	}
	return roleNames[r]
}

// ParseRole is the inverse of [Role.String]; it accepts the exact names only.
func ParseRole(s string) (Role, error) {
	for r := Admin; r <= Orderer; r++ {
		if roleNames[r] == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("identity: unknown role %q", s)
}

// MaxNameBytes is the longest name of an organization or a user, PostgreSQL's
// limit for identifiers.
const MaxNameBytes = 63

// UserID names a user of an organization, written org/name.
type UserID struct {
	Org, Name string
}

// String returns "org/name".
func (u UserID) String() string { return u.Org + "/" + u.Name }

// Validate reports why u is not a well-formed name.
func (u UserID) Validate() error {
	if err := ValidateName(u.Org); err != nil {
		return fmt.Errorf("organization: %w", err)
	}
	if err := ValidateName(u.Name); err != nil {
		return fmt.Errorf("user: %w", err)
	}
	return nil
}

// Compare orders by organization, then by name, bytewise.
func (u UserID) Compare(v UserID) int {
	if c := strings.Compare(u.Org, v.Org); c != 0 {
		return c
	}
	return strings.Compare(u.Name, v.Name)
}

// ParseUserID reads "org/name" and validates both halves.
func ParseUserID(s string) (UserID, error) {
	org, name, found := strings.Cut(s, "/")
	if !found {
		return UserID{}, fmt.Errorf("identity: user %q is not of the form org/name", s)
	}
	u := UserID{Org: org, Name: name}
	if err := u.Validate(); err != nil {
		return UserID{}, fmt.Errorf("identity: user %q: %w", s, err)
	}
	return u, nil
}

var (
	errNameLength = fmt.Errorf("identity: a name has 1 to %d bytes", MaxNameBytes)
	errNameFirst  = errors.New("identity: a name starts with a lower-case letter a-z")
	errNameByte   = errors.New("identity: a name consists of a-z, 0-9, _ and -")
)

// ValidateName reports why s cannot name an organization or a user: 1 to 63
// bytes of a-z, 0-9, '_' and '-', the first one a letter.
func ValidateName(s string) error {
	if len(s) == 0 || len(s) > MaxNameBytes {
		return errNameLength
	}
	if s[0] < 'a' || s[0] > 'z' {
		return errNameFirst
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return errNameByte
		}
	}
	return nil
}
