package pgwire

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestSCRAM replays the exchange of RFC 7677, section 3, with its nonces.
func TestSCRAM(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	v, err := makeVerifier("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseVerifier(v.String()); err != nil || again.String() != v.String() {
		t.Errorf("%v, %v", again, err)
	}
	nonce := "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	x := &scramExchange{v: v, gs2: "n,,", clientFirst: "n=user,r=rOprNGfwEbeRWgbNEkqO", nonce: nonce,
		serverFirst: "r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"}
	final, err := x.finish("c=biws,r=" + nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	if err != nil || final != "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("%q, %v", final, err)
	}
	if final, err := x.finish("c=biws,r=" + nonce + ",p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="); err != nil || final != "" {
		t.Errorf("a wrong proof: %q, %v", final, err)
	}
	for _, last := range []string{"", "p=", ",p=", "c=biws,r=" + nonce + ",p=AAAA", "c=biws,r=" + nonce + "x,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
		"c=eSws,r=" + nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="} {
		if final, err := x.finish(last); err == nil {
			t.Errorf("%q gives %q", last, final)
		}
	}
	for _, first := range []string{"", "n", "n,,", "p=tls-exporter,,n=,r=x", "n,a=me,n=,r=x", "n,,n=,r=", "n,,m=x,n=,r=y"} {
		if _, err := newSCRAMExchange(first, v); err == nil {
			t.Errorf("%q begins an exchange", first)
		}
	}
}

func TestVerifierForms(t *testing.T) {
	good, err := MakeVerifier("secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "md5abc", strings.Replace(good.String(), "4096", "0", 1), strings.Replace(good.String(), "4096", "99999999999", 1),
		good.String()[:len(good.String())-5], strings.Replace(good.String(), "$4096:", "$4096", 1)} {
		if _, err := ParseVerifier(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	if a, b := UnknownVerifier("x"), UnknownVerifier("x"); a.String() != b.String() {
		t.Error("a user who does not exist is asked with changing salts")
	}
}
