package catalog

import "slices"

// Trigger is a trigger of a table.
type Trigger struct {
	OID     OID
	Name    string
	FuncOID OID
	Before  bool     `json:",omitempty"` // else AFTER
	Row     bool     `json:",omitempty"` // FOR EACH ROW, else STATEMENT
	Events  []string // INSERT, UPDATE, DELETE
	// Columns of UPDATE OF; nil = any.
	Columns  []int    `json:",omitempty"`
	When     string   `json:",omitempty"` // SQL expression over old and new
	Args     []string `json:",omitempty"`
	Disabled bool     `json:",omitempty"`
}

// On tells whether the trigger is for an event.
func (t *Trigger) On(event string) bool { return slices.Contains(t.Events, event) }

// Trigger finds a trigger by name: its position, or -1.
func (t *Table) Trigger(name string) int {
	return slices.IndexFunc(t.Triggers, func(x Trigger) bool { return x.Name == name })
}
