package datum

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// inet and cidr values are PostgreSQL's binary form without the cidr flag and
// the length: address family (2 or 3), bits of the mask, address.
const (
	inetV4 = 2
	inetV6 = 3
)

func makeInet(a netip.Addr, bits int) Datum {
	family := byte(inetV6)
	if a.Is4() {
		family = inetV4
	}
	return Bytes(append([]byte{family, byte(bits)}, a.AsSlice()...))
}

// inetParts reads a value; corrupt bytes read as 0.0.0.0/0.
func inetParts(d Datum) (a netip.Addr, bits int) {
	b := d.Bytes()
	if len(b) >= 2 {
		if a, ok := netip.AddrFromSlice(b[2:]); ok && int(b[1]) <= a.BitLen() && a.Is4() == (b[0] == inetV4) {
			return a, int(b[1])
		}
	}
	return netip.IPv4Unspecified(), 0
}

func parseInet(s string, _ int32, _ *Format) (Datum, error) {
	a, bits, ok := scanInet(s)
	if !ok {
		return Null, errSyntax("inet", s)
	}
	return makeInet(a, bits), nil
}

func parseCidr(s string, _ int32, _ *Format) (Datum, error) {
	a, bits, ok := scanInet(padCidr(s))
	if !ok {
		return Null, errSyntax("cidr", s)
	}
	if !hostBitsClear(a, bits) {
		return Null, pgerr.New(pgerr.InvalidTextRepresentation, `invalid cidr value: "%s"`, s).
			WithDetail("Value has bits set to right of mask.")
	}
	return makeInet(a, bits), nil
}

// padCidr completes an IPv4 network written with fewer than four numbers, as in
// 10.1/16; without a mask its class and the numbers given decide the length
// (inet_cidr_pton_ipv4).
func padCidr(s string) string {
	host, mask, masked := strings.Cut(s, "/")
	parts := strings.Split(host, ".")
	if len(parts) > 4 || strings.Contains(host, ":") {
		return s
	}
	first, err := strconv.Atoi(parts[0])
	if err != nil || first < 0 || first > 255 {
		return s
	}
	bits := 8
	switch {
	case first >= 240:
		bits = 32
	case first >= 224:
		bits = 8
	case first >= 192:
		bits = 24
	case first >= 128:
		bits = 16
	}
	bits = max(bits, 8*len(parts))
	if bits == 8 && first == 224 {
		bits = 4
	}
	if !masked {
		mask = strconv.Itoa(bits)
	}
	return host + strings.Repeat(".0", 4-len(parts)) + "/" + mask
}

func scanInet(s string) (netip.Addr, int, bool) {
	host, mask, masked := strings.Cut(s, "/")
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" {
		return a, 0, false
	}
	bits := a.BitLen()
	if masked {
		n, ok := plainDigits(mask)
		if !ok || mask == "" || len(mask) > 3 || n > bits {
			return a, 0, false
		}
		bits = n
	}
	return a, bits, true
}

func hostBitsClear(a netip.Addr, bits int) bool {
	p, err := a.Prefix(bits)
	return err == nil && p.Addr() == a
}

// appendAddr writes an address. As in PostgreSQL, the last four bytes of an IPv6
// address that begins with twelve zeros (but not fourteen) look like IPv4.
func appendAddr(dst []byte, a netip.Addr) []byte {
	if b := a.AsSlice(); len(b) == 16 && !bytes.ContainsFunc(b[:12], func(r rune) bool { return r != 0 }) && (b[12] != 0 || b[13] != 0) {
		v4, _ := netip.AddrFromSlice(b[12:])
		return v4.AppendTo(append(dst, "::"...))
	}
	return a.AppendTo(dst)
}

func appendInet(dst []byte, d Datum, _ *Format) []byte {
	a, bits := inetParts(d)
	dst = appendAddr(dst, a)
	if bits != a.BitLen() {
		dst = strconv.AppendInt(append(dst, '/'), int64(bits), 10)
	}
	return dst
}

func appendCidr(dst []byte, d Datum, _ *Format) []byte {
	a, bits := inetParts(d)
	return strconv.AppendInt(append(appendAddr(dst, a), '/'), int64(bits), 10)
}

func parseBinaryInet(cidr bool) func([]byte, int32) (Datum, error) {
	return func(b []byte, _ int32) (Datum, error) {
		if len(b) < 4 {
			return Null, errShort()
		}
		a, ok := netip.AddrFromSlice(b[4:])
		if !ok || int(b[3]) != len(b)-4 || int(b[1]) > a.BitLen() || b[0] != inetV4 && b[0] != inetV6 || a.Is4() != (b[0] == inetV4) ||
			cidr && !hostBitsClear(a, int(b[1])) {
			name := "inet"
			if cidr {
				name = "cidr"
			}
			return Null, pgerr.New(pgerr.InvalidBinaryRepresentation, `invalid address family in external "%s" value`, name)
		}
		return makeInet(a, int(b[1])), nil
	}
}

func appendBinaryInet(cidr byte) func([]byte, Datum) []byte {
	return func(dst []byte, d Datum) []byte {
		a, bits := inetParts(d)
		b := a.AsSlice()
		family := byte(inetV6)
		if a.Is4() {
			family = inetV4
		}
		return append(append(dst, family, byte(bits), cidr, byte(len(b))), b...)
	}
}

// compareInet is network_cmp: family, network part, mask, whole address.
func compareInet(x, y Datum) int { return bytes.Compare(keyInet(nil, x), keyInet(nil, y)) }

// keyInet spells the network part bit by bit, so that a network sorts before
// those within it.
func keyInet(dst []byte, d Datum) []byte {
	a, bits := inetParts(d)
	b := a.AsSlice()
	dst = append(dst, byte(len(b)))
	for i := range bits {
		dst = append(dst, 1+b[i/8]>>(7-i%8)&1)
	}
	return append(append(dst, 0), b...)
}

func skipInetKey(b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, errBadKey()
	}
	end := bytes.IndexByte(b[1:], 0)
	if end < 0 {
		return nil, errBadKey()
	}
	return skipFixed(int(b[0]))(b[end+2:])
}

// InetParts takes an address apart: the address and the length of its network
// part. [MakeInet] makes one.
func InetParts(d Datum) (a netip.Addr, bits int) { return inetParts(d) }

// MakeInet makes an inet or cidr value.
func MakeInet(a netip.Addr, bits int) Datum { return makeInet(a, bits) }
