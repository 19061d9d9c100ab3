package wallet

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tallystick/tallystick/blockstore/block"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// A wallet in a process of its own has two connections to a node for each of its
// clients: the one that carries what the client says, with SignerSetting in its
// startup packet, and a control connection, with ControlSetting; both have the same
// token as value and are made by the same user. When the session comes to a call,
// it makes the transaction and sends it, unsigned, in the detail of a notice with
// SQLSTATE SignatureWanted, in hexadecimal. The wallet answers on the control
// connection, by SELECT tallystick_submit($1) with an [Answer]. So the first
// connection stays an ordinary one, however its client pipelines.
const (
	SignerSetting  = "tallystick.signer"
	ControlSetting = "tallystick.signer_control"
	// TokenChars is the least length of a token: 16 random bytes in hexadecimal.
	TokenChars = 32
	// SignatureWanted is the SQLSTATE of the notice, of a class that PostgreSQL
	// does not use.
	SignatureWanted pgerr.Code = "TS001"
)

// Answer is what a wallet answers to the wish for a signature: the transaction,
// signed, or why it does not sign.
type Answer struct {
	Tx      *block.Tx
	Refusal *pgerr.Error
}

const (
	answerSigned  = 1
	answerRefused = 2
)

type answerRefusal struct{ Code, Message, Detail, Hint string }

// Encode is the form on the wire: a byte, and the transaction's canonical bytes or
// the refusal in JSON.
func (a *Answer) Encode() []byte {
	if a.Refusal == nil {
		return append([]byte{answerSigned}, a.Tx.Encode()...)
	}
	r := a.Refusal
	b, err := json.Marshal(answerRefusal{string(r.Code), r.Message, r.Detail, r.Hint})
	if err != nil {
		panic(fmt.Sprintf("wallet: encoding a refusal: %v", err)) // strings have an encoding
	}
	return append([]byte{answerRefused}, b...)
}

// DecodeAnswer reads an answer; it keeps raw.
func DecodeAnswer(raw []byte) (Answer, error) {
	if len(raw) == 0 {
		return Answer{}, errors.New("wallet: an empty answer")
	}
	switch raw[0] {
	case answerSigned:
		tx, err := block.DecodeTx(raw[1:])
		return Answer{Tx: tx}, err
	case answerRefused:
		var r answerRefusal
		if err := json.Unmarshal(raw[1:], &r); err != nil {
			return Answer{}, err
		}
		if len(r.Code) != 5 {
			return Answer{}, errors.New("wallet: a refusal without SQLSTATE")
		}
		e := pgerr.New(pgerr.Code(r.Code), "%s", r.Message)
		e.Detail, e.Hint = r.Detail, r.Hint
		return Answer{Refusal: e}, nil
	}
	return Answer{}, fmt.Errorf("wallet: an answer of kind %d", raw[0])
}
