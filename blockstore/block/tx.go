package block

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/identity"
)

// Flags are options of a transaction. Unknown bits are refused.
type Flags uint32

const (
	// NoReexecute declines re-execution under the reexecute policy: a loser
	// aborts with 40001 instead.
	NoReexecute Flags = 1 << iota

	knownFlags = NoReexecute
)

// Arg is an argument of a call: NULL, or the canonical binary value of its
// type (the binary format of PostgreSQL's wire protocol).
type Arg struct {
	Null  bool
	Value []byte // empty if Null
}

// Call names a contract and its arguments. What is signed is the qualified
// name, the argument types by name and their binary values: nothing that a
// session setting could read differently.
type Call struct {
	Schema, Name string
	ArgTypes     []string // one for each of Args
	Args         []Arg
}

// Tx is a signed call. See the package comment for when it may be changed.
type Tx struct {
	Network    Hash // id of the network: a transaction is valid on one only
	User       identity.UserID
	Call       Call
	Snapshot   uint64   // height whose state was read (execute-order-in-parallel), else 0
	Nonce      [16]byte // tells equal calls apart
	Time       int64    // signed time, Unix microseconds: tx_time()
	ValidUntil uint64   // last height that may contain the transaction
	Flags      Flags
	Signature  identity.Signature // over SigningDigest

	// Config makes it a configuration transaction: see [NewConfigTx]. User and
	// signature are those of the first approval, and there is nothing
	// to call.
	Config *ConfigTx

	// raw is the encoding as received or signed; nil while the transaction is
	// being built.
	raw     []byte
	id      TxID
	content Hash // of raw
}

const (
	txVersion      = 1
	signatureBytes = len(identity.Signature{})
)

// Sign validates the fields, signs them and fixes the encoding. The transaction
// must not be changed afterwards, except by signing it again.
func (tx *Tx) Sign(signer *identity.Signer) error {
	if tx.Config != nil {
		return errors.New("block: a configuration transaction carries the signatures of its approvals")
	}
	if err := tx.Validate(); err != nil {
		return err
	}
	b := tx.appendSigned(make([]byte, 0, tx.size()))
	id := TxID(identity.Digest(identity.DomainTx, b))
	tx.Signature = signer.Sign(id[:])
	tx.raw = append(b, tx.Signature[:]...)
	tx.id = id
	tx.content = sha256.Sum256(tx.raw)
	return nil
}

// ID returns the hash of all signed fields.
func (tx *Tx) ID() TxID {
	if tx.raw != nil {
		return tx.id
	}
	if tx.Config != nil {
		return TxID(tx.Config.Config.ID())
	}
	return TxID(identity.Digest(identity.DomainTx, tx.appendSigned(make([]byte, 0, tx.size()))))
}

// SigningDigest returns what the user signs: the bytes of the id.
func (tx *Tx) SigningDigest() [32]byte { return tx.ID() }

// Encode returns the canonical bytes, as received for a decoded transaction.
// They are shared: do not modify. For a transaction that does not [Tx.Validate]
// they are bytes that [DecodeTx] refuses.
func (tx *Tx) Encode() []byte {
	if tx.raw != nil {
		return tx.raw
	}
	if tx.Config != nil {
		return tx.Config.encode()
	}
	b := tx.appendSigned(make([]byte, 0, tx.size()))
	return append(b, tx.Signature[:]...)
}

// ContentHash returns the SHA-256 of the transaction's bytes, signature included:
// what orderers know a transaction by, for the id does not cover the signature.
func (tx *Tx) ContentHash() Hash {
	if tx.raw != nil {
		return tx.content
	}
	return sha256.Sum256(tx.Encode())
}

func (tx *Tx) appendSigned(b []byte) []byte {
	b = append(b, txVersion)
	b = append(b, tx.Network[:]...)
	b = appendString(b, tx.User.Org)
	b = appendString(b, tx.User.Name)
	b = appendString(b, tx.Call.Schema)
	b = appendString(b, tx.Call.Name)
	b = binary.AppendUvarint(b, uint64(len(tx.Call.Args)))
	for i := range tx.Call.Args {
		b = appendString(b, tx.Call.ArgTypes[i])
		if a := &tx.Call.Args[i]; a.Null {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(len(a.Value))+1)
			b = append(b, a.Value...)
		}
	}
	b = binary.AppendUvarint(b, tx.Snapshot)
	b = append(b, tx.Nonce[:]...)
	b = appendInt64(b, tx.Time)
	b = binary.AppendUvarint(b, tx.ValidUntil)
	return binary.AppendUvarint(b, uint64(tx.Flags))
}

// size returns the exact length of the encoding.
func (tx *Tx) size() int {
	if tx.Config != nil {
		return len(tx.Config.encode())
	}
	n := 1 + len(tx.Network)
	for _, s := range [...]string{tx.User.Org, tx.User.Name, tx.Call.Schema, tx.Call.Name} {
		n += uvarintLen(uint64(len(s))) + len(s)
	}
	n += uvarintLen(uint64(len(tx.Call.Args)))
	for i := range tx.Call.Args {
		t := tx.Call.ArgTypes[i]
		n += uvarintLen(uint64(len(t))) + len(t)
		if a := &tx.Call.Args[i]; a.Null {
			n++
		} else {
			n += uvarintLen(uint64(len(a.Value))+1) + len(a.Value)
		}
	}
	n += uvarintLen(tx.Snapshot) + len(tx.Nonce) + 8 + uvarintLen(tx.ValidUntil) + uvarintLen(uint64(tx.Flags))
	return n + signatureBytes
}

// Validate reports why the fields are not of the form that a decoder accepts.
func (tx *Tx) Validate() error {
	if tx.Config != nil {
		return tx.Config.validate()
	}
	if err := tx.User.Validate(); err != nil {
		return fmt.Errorf("block: transaction: %w", err)
	}
	if err := tx.Call.validate(); err != nil {
		return fmt.Errorf("block: transaction: %w", err)
	}
	switch {
	case tx.Snapshot > MaxHeight || tx.ValidUntil > MaxHeight:
		return fmt.Errorf("block: transaction: a height exceeds %d", uint64(MaxHeight))
	case tx.Time < 0 || tx.Time > MaxTime:
		return fmt.Errorf("block: transaction: time %d is outside of 1970 to 9999", tx.Time)
	case tx.Flags&^knownFlags != 0:
		return fmt.Errorf("block: transaction: unknown flags %#x", uint32(tx.Flags&^knownFlags))
	}
	if n := tx.size(); n > MaxTxBytes {
		return fmt.Errorf("block: transaction of %d bytes exceeds the limit of %d", n, MaxTxBytes)
	}
	return nil
}

func (c *Call) validate() error {
	if err := checkText(c.Schema, MaxIdentifierBytes); err != nil {
		return fmt.Errorf("schema name %w", err)
	}
	if err := checkText(c.Name, MaxIdentifierBytes); err != nil {
		return fmt.Errorf("function name %w", err)
	}
	if len(c.Args) > MaxArgs || len(c.Args) != len(c.ArgTypes) {
		return fmt.Errorf("%d arguments of %d types (limit %d)", len(c.Args), len(c.ArgTypes), MaxArgs)
	}
	for i := range c.Args {
		if err := checkText(c.ArgTypes[i], MaxTypeNameBytes); err != nil {
			return fmt.Errorf("type name of argument %d %w", i+1, err)
		}
		if c.Args[i].Null && len(c.Args[i].Value) != 0 {
			return fmt.Errorf("argument %d is NULL and has a value", i+1)
		}
	}
	return nil
}

// DecodeTx reads the canonical bytes of a transaction and refuses every other
// form. The transaction keeps b and aliases it; the caller must not change b
// any more.
func DecodeTx(b []byte) (*Tx, error) {
	if len(b) > 0 && b[0] == configTxVersion {
		return decodeConfigTx(b)
	}
	if len(b) > MaxTxBytes {
		return nil, malformed("transaction of %d bytes exceeds the limit of %d", len(b), MaxTxBytes)
	}
	b = b[:len(b):len(b)]
	r := reader{buf: b}
	tx := &Tx{raw: b}
	r.version(txVersion, "transaction")
	copy(tx.Network[:], r.take(len(tx.Network), "network id"))
	tx.decodeNames(&r)
	tx.Call.decodeArgs(&r)
	tx.Snapshot = r.uvarint(MaxHeight, "snapshot height")
	copy(tx.Nonce[:], r.take(len(tx.Nonce), "nonce"))
	tx.Time = r.time("time")
	tx.ValidUntil = r.uvarint(MaxHeight, "valid-until height")
	flags := r.uvarint(1<<32-1, "flags")
	if unknown := Flags(flags) &^ knownFlags; unknown != 0 {
		r.fail("unknown flags %#x", uint32(unknown))
	}
	tx.Flags = Flags(flags)
	signed := r.off
	copy(tx.Signature[:], r.take(signatureBytes, "signature"))
	if err := r.end(); err != nil {
		return nil, err
	}
	tx.id = TxID(identity.Digest(identity.DomainTx, b[:signed]))
	tx.content = sha256.Sum256(b)
	return tx, nil
}

// decodeNames reads user and function. The four names share one string: they
// are next to each other in the encoding.
func (tx *Tx) decodeNames(r *reader) {
	var end [4]int
	start := r.off
	org := r.bytes(identity.MaxNameBytes, "organization")
	end[0] = r.off
	user := r.bytes(identity.MaxNameBytes, "user")
	end[1] = r.off
	schema := r.bytes(MaxIdentifierBytes, "schema name")
	end[2] = r.off
	name := r.bytes(MaxIdentifierBytes, "function name")
	end[3] = r.off
	if r.err != nil {
		return
	}
	all := string(r.buf[start:r.off])
	at := func(i, n int) string { return all[end[i]-start-n : end[i]-start] }
	tx.User = identity.UserID{Org: at(0, len(org)), Name: at(1, len(user))}
	tx.Call.Schema, tx.Call.Name = at(2, len(schema)), at(3, len(name))
	if err := tx.User.Validate(); err != nil {
		r.fail("%v", err)
	}
	if err := checkText(tx.Call.Schema, MaxIdentifierBytes); err != nil {
		r.fail("schema name %v", err)
	}
	if err := checkText(tx.Call.Name, MaxIdentifierBytes); err != nil {
		r.fail("function name %v", err)
	}
}

func (c *Call) decodeArgs(r *reader) {
	n := int(r.uvarint(MaxArgs, "argument count"))
	if n == 0 || r.err != nil {
		return
	}
	c.ArgTypes = make([]string, n)
	c.Args = make([]Arg, n)
	for i := range n {
		t := r.bytes(MaxTypeNameBytes, "type name")
		size := r.uvarint(MaxTxBytes, "argument length")
		if r.err != nil {
			return
		}
		if err := checkText(t, MaxTypeNameBytes); err != nil {
			r.fail("type name of argument %d %v", i+1, err)
			return
		}
		c.ArgTypes[i] = internTypeName(t)
		if size == 0 {
			c.Args[i].Null = true
		} else {
			c.Args[i].Value = r.take(int(size-1), "argument")
		}
	}
}

// internTypeName avoids an allocation for the usual types.
func internTypeName(b []byte) string {
	if s, ok := commonTypes[string(b)]; ok {
		return s
	}
	return string(b)
}

var commonTypes = func() map[string]string {
	m := make(map[string]string)
	for _, s := range [...]string{
		"bool", "boolean", "int2", "smallint", "int4", "integer", "int", "int8", "bigint",
		"float4", "real", "float8", "double precision", "numeric", "text", "varchar",
		"character varying", "bpchar", "character", "name", "bytea", "uuid", "date", "time",
		"timestamp", "timestamp without time zone", "timestamptz", "timestamp with time zone",
		"interval", "json", "jsonb", "int4[]", "integer[]", "int8[]", "bigint[]", "text[]",
		"numeric[]", "uuid[]",
	} {
		m[s] = s
	}
	return m
}()
