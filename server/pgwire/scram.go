package pgwire

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tallystick/tallystick/sql/pgerr"
)

const (
	scramName = "SCRAM-SHA-256"
	// scramIterations is PostgreSQL's scram_iterations.
	scramIterations    = 4096
	maxSCRAMIterations = 10_000_000
	scramSaltBytes     = 16
	scramNonceBytes    = 18
)

// SCRAMVerifier is what a server keeps of a password (RFC 5803): enough to check
// it, not enough to pass for the user elsewhere.
type SCRAMVerifier struct {
	Iterations           int
	Salt                 []byte
	StoredKey, ServerKey []byte // 32 bytes each
	unknown              bool   // nobody has this password
}

// MakeVerifier makes the verifier of a password with a random salt.
func MakeVerifier(password string) (*SCRAMVerifier, error) {
	salt := make([]byte, scramSaltBytes)
	_, _ = rand.Read(salt) // never fails
	return makeVerifier(password, salt, scramIterations)
}

func makeVerifier(password string, salt []byte, iterations int) (*SCRAMVerifier, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("pgwire: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return &SCRAMVerifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: mac(salted, "Server Key")}, nil
}

// UnknownVerifier is what a user who does not exist is asked by: always the same
// for a name, so that the answer does not tell who exists.
func UnknownVerifier(user string) *SCRAMVerifier {
	salt := mac(unknownSecret, user)[:scramSaltBytes]
	return &SCRAMVerifier{Iterations: scramIterations, Salt: salt, StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size), unknown: true}
}

// unknownSecret makes salts that cannot be told from real ones.
var unknownSecret = func() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return b
}()

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// String is PostgreSQL's form, as in pg_authid.rolpassword:
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func (v *SCRAMVerifier) String() string {
	e := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", scramName, v.Iterations, e(v.Salt), e(v.StoredKey), e(v.ServerKey))
}

// ParseVerifier reads PostgreSQL's form.
func ParseVerifier(s string) (*SCRAMVerifier, error) {
	bad := fmt.Errorf("pgwire: %.20q... is no verifier of the form %s$iterations:salt$StoredKey:ServerKey", s, scramName)
	parts := strings.Split(s, "$")
	if len(parts) != 3 || parts[0] != scramName {
		return nil, bad
	}
	n, salt, ok1 := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	v := &SCRAMVerifier{}
	var err error
	if v.Iterations, err = strconv.Atoi(n); err != nil || !ok1 || !ok2 || v.Iterations < 1 || v.Iterations > maxSCRAMIterations {
		return nil, bad
	}
	for _, f := range []struct {
		text string
		to   *[]byte
	}{{salt, &v.Salt}, {stored, &v.StoredKey}, {server, &v.ServerKey}} {
		if *f.to, err = base64.StdEncoding.DecodeString(f.text); err != nil {
			return nil, bad
		}
	}
	if len(v.Salt) == 0 || len(v.StoredKey) != sha256.Size || len(v.ServerKey) != sha256.Size {
		return nil, bad
	}
	return v, nil
}

// scram carries out the exchange of RFC 5802 without channel binding: the TLS
// connection below it is authenticated by the node's certificate.
func (c *conn) scram(user string, v *SCRAMVerifier) error {
	c.out.send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{scramName}})
	if err := c.out.flush(); err != nil {
		return err
	}
	body, err := c.password()
	if err != nil {
		return err
	}
	mechanism, rest, ok := cstring(body)
	if !ok || mechanism != scramName || len(rest) < 4 {
		return scramMalformed()
	}
	x, err := newSCRAMExchange(string(rest[4:]), v)
	if err != nil {
		return err
	}
	c.out.send(&pgproto3.AuthenticationSASLContinue{Data: []byte(x.serverFirst)})
	if err := c.out.flush(); err != nil {
		return err
	}
	if body, err = c.password(); err != nil {
		return err
	}
	final, err := x.finish(string(body))
	if err != nil {
		return err
	}
	if final == "" {
		return pgerr.New(pgerr.InvalidPassword, "password authentication failed for user \"%s\"", user)
	}
	c.out.send(&pgproto3.AuthenticationSASLFinal{Data: []byte(final)})
	return nil
}

// password reads a message of type 'p'.
func (c *conn) password() ([]byte, error) {
	c.in.passwords = true
	typ, body, err := c.in.next()
	c.in.passwords = false
	if err == nil && typ != 'p' {
		err = pgerr.New(pgerr.ProtocolViolation, "expected SASL response, got message type %d", typ)
	}
	return bytes.Clone(body), err
}

func scramMalformed() error {
	return pgerr.New(pgerr.ProtocolViolation, "malformed SCRAM message")
}

// scramExchange is the server's side, between its first message and its last.
type scramExchange struct {
	v                  *SCRAMVerifier
	gs2, clientFirst   string
	nonce, serverFirst string
}

// newSCRAMExchange reads the client's first message: gs2-header, n=user,r=nonce.
// The name in it is not looked at, as in PostgreSQL: the startup packet has it.
func newSCRAMExchange(first string, v *SCRAMVerifier) (*scramExchange, error) {
	parts := strings.SplitN(first, ",", 3)
	if len(parts) != 3 || parts[0] != "n" && parts[0] != "y" || parts[1] != "" {
		return nil, scramMalformed()
	}
	x := &scramExchange{v: v, gs2: parts[0] + ",,", clientFirst: parts[2]}
	fields := strings.Split(parts[2], ",")
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "n=") || !strings.HasPrefix(fields[1], "r=") || len(fields[1]) < 3 {
		return nil, scramMalformed()
	}
	random := make([]byte, scramNonceBytes)
	_, _ = rand.Read(random) // never fails
	x.nonce = fields[1][2:] + base64.StdEncoding.EncodeToString(random)
	x.serverFirst = fmt.Sprintf("r=%s,s=%s,i=%d", x.nonce, base64.StdEncoding.EncodeToString(v.Salt), v.Iterations)
	return x, nil
}

// finish reads the client's last message and returns the server's; "" for a wrong
// password.
func (x *scramExchange) finish(last string) (string, error) {
	at := strings.LastIndex(last, ",p=")
	if at < 0 {
		return "", scramMalformed()
	}
	proof, err := base64.StdEncoding.DecodeString(last[at+3:])
	if err != nil || len(proof) != sha256.Size {
		return "", scramMalformed()
	}
	binding := "c=" + base64.StdEncoding.EncodeToString([]byte(x.gs2))
	if last[:at] != binding+",r="+x.nonce {
		return "", scramMalformed()
	}
	message := x.clientFirst + "," + x.serverFirst + "," + last[:at]
	key := mac(x.v.StoredKey, message)
	subtle.XORBytes(key, key, proof)
	stored := sha256.Sum256(key)
	if subtle.ConstantTimeCompare(stored[:], x.v.StoredKey) != 1 || x.v.unknown {
		return "", nil
	}
	return "v=" + base64.StdEncoding.EncodeToString(mac(x.v.ServerKey, message)), nil
}
