package builtin

import (
	"math/bits"
	"net/netip"
	"strings"

	"github.com/tallystick/tallystick/sql/datum"
	"github.com/tallystick/tallystick/sql/pgerr"
)

// inetText is the cast of an address to text, which always shows the length of
// the network part.
func inetText(c *Ctx, a []datum.Datum) (datum.Datum, error) {
	s := string(datum.Inet.Append(nil, a[0], c.Format))
	switch {
	case strings.Contains(s, "/"):
	case strings.Contains(s, ":"):
		s += "/128"
	default:
		s += "/32"
	}
	return datum.Str(s), nil
}

// inetMask is the mask of a length, as an address of the family of like.
func inetMask(like netip.Addr, n int, host bool) netip.Addr {
	b := like.AsSlice()
	for i := range b {
		b[i] = 0
		for k := range 8 {
			if (i*8+k < n) != host {
				b[i] |= 0x80 >> k
			}
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// inetCombine makes an address byte by byte.
func inetCombine(x, y netip.Addr, op func(a, b byte) byte) netip.Addr {
	a, b := x.AsSlice(), y.AsSlice()
	for i := range a {
		a[i] = op(a[i], b[i])
	}
	out, _ := netip.AddrFromSlice(a)
	return out
}

// inetOf wraps a function of an address and its mask length.
func inetOf(f func(a netip.Addr, n int) (netip.Addr, int)) Eval {
	return func(_ *Ctx, args []datum.Datum) (datum.Datum, error) {
		return datum.MakeInet(f(datum.InetParts(args[0]))), nil
	}
}

func inetNetwork(a netip.Addr, n int) (netip.Addr, int) {
	p, err := a.Prefix(n)
	if err != nil {
		return a, n
	}
	return p.Addr(), n
}

// inetSetMask implements set_masklen: of a cidr it also clears the bits behind.
func inetSetMask(cidr bool) Eval {
	return func(_ *Ctx, args []datum.Datum) (datum.Datum, error) {
		a, _ := datum.InetParts(args[0])
		n := args[1].Int()
		if n == -1 {
			n = int64(a.BitLen())
		}
		if n < 0 || n > int64(a.BitLen()) {
			return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "invalid mask length: %d", n)
		}
		if cidr {
			return datum.MakeInet(inetNetwork(a, int(n))), nil
		}
		return datum.MakeInet(a, int(n)), nil
	}
}

// inetWithin: x lies in the network y.
func inetWithin(x, y datum.Datum, strict bool) bool {
	a, n := datum.InetParts(x)
	b, m := datum.InetParts(y)
	if a.Is4() != b.Is4() || n < m || strict && n == m {
		return false
	}
	p, _ := inetNetwork(a, m)
	q, _ := inetNetwork(b, m)
	return p == q
}

func inetTest(is func(x, y datum.Datum) bool) Eval {
	return func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return datum.Bool(is(a[0], a[1])), nil }
}

func inetBits(name string, op func(a, b byte) byte) Eval {
	return func(_ *Ctx, args []datum.Datum) (datum.Datum, error) {
		a, n := datum.InetParts(args[0])
		b, m := datum.InetParts(args[1])
		if a.Is4() != b.Is4() {
			return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "cannot %s inet values of different sizes", name)
		}
		return datum.MakeInet(inetCombine(a, b, op), max(n, m)), nil
	}
}

// inetAdd adds a signed number to an address.
func inetAdd(x datum.Datum, v int64) (datum.Datum, error) {
	a, n := datum.InetParts(x)
	b := a.AsSlice()
	carry, ext := uint64(v), byte(0)
	if v < 0 {
		ext = 0xff
	}
	over := uint16(0)
	for i := len(b) - 1; i >= 0; i-- {
		add := ext
		if k := len(b) - 1 - i; k < 8 {
			add = byte(carry >> (8 * k))
		}
		sum := uint16(b[i]) + uint16(add) + over
		b[i], over = byte(sum), sum>>8
	}
	fits := over == 0
	if v < 0 {
		fits = over == 1
	}
	if len(b) == 4 && (v > 1<<32-1 || v < -(1<<32-1)) || !fits {
		return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "result is out of range")
	}
	out, _ := netip.AddrFromSlice(b)
	return datum.MakeInet(out, n), nil
}

func inetDifference(_ *Ctx, args []datum.Datum) (datum.Datum, error) {
	a, _ := datum.InetParts(args[0])
	b, _ := datum.InetParts(args[1])
	if a.Is4() != b.Is4() {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "cannot subtract inet values of different sizes")
	}
	x, y := a.AsSlice(), b.AsSlice()
	var high, low, borrow uint64
	for i := range x {
		k := len(x) - 1 - i
		if k < 8 {
			low |= uint64(x[i]) << (8 * k)
		} else {
			high |= uint64(x[i]) << (8 * (k - 8))
		}
	}
	var yHigh, yLow uint64
	for i := range y {
		k := len(y) - 1 - i
		if k < 8 {
			yLow |= uint64(y[i]) << (8 * k)
		} else {
			yHigh |= uint64(y[i]) << (8 * (k - 8))
		}
	}
	low, borrow = bits.Sub64(low, yLow, 0)
	high, _ = bits.Sub64(high, yHigh, borrow)
	if high != uint64(int64(low)>>63) {
		return datum.Null, pgerr.New(pgerr.NumericValueOutOfRange, "result is out of range")
	}
	return datum.Int(int64(low)), nil
}

// inetMerge is the smallest network that holds both.
func inetMerge(_ *Ctx, args []datum.Datum) (datum.Datum, error) {
	a, n := datum.InetParts(args[0])
	b, m := datum.InetParts(args[1])
	if a.Is4() != b.Is4() {
		return datum.Null, pgerr.New(pgerr.InvalidParameterValue, "cannot merge addresses from different families")
	}
	k := min(n, m)
	for ; k > 0; k-- {
		p, _ := inetNetwork(a, k)
		if q, _ := inetNetwork(b, k); p == q {
			break
		}
	}
	return datum.MakeInet(inetNetwork(a, k)), nil
}

// cidrAbbrev leaves out the octets behind the mask.
func cidrAbbrev(c *Ctx, args []datum.Datum) (datum.Datum, error) {
	a, n := datum.InetParts(args[0])
	if !a.Is4() {
		return datum.Str(string(datum.Cidr.Append(nil, args[0], c.Format))), nil
	}
	full := datum.Cidr.Append(nil, args[0], c.Format)
	host, mask, _ := strings.Cut(string(full), "/")
	parts := strings.Split(host, ".")
	return datum.Str(strings.Join(parts[:max(1, (n+7)/8)], ".") + "/" + mask), nil
}

var inetEvals = evalMap{
	"network_show": inetText,
	"network_host": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		ip, _ := datum.InetParts(a[0])
		host, _, _ := strings.Cut(string(datum.Inet.Append(nil, datum.MakeInet(ip, ip.BitLen()), nil)), "/")
		return datum.Str(host), nil
	},
	"network_masklen": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		_, n := datum.InetParts(a[0])
		return datum.Int(int64(n)), nil
	},
	"network_family": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		ip, _ := datum.InetParts(a[0])
		if ip.Is4() {
			return datum.Int(4), nil
		}
		return datum.Int(6), nil
	},
	"network_network": inetOf(inetNetwork), "inet_to_cidr": inetOf(inetNetwork),
	"network_netmask":  inetOf(func(a netip.Addr, n int) (netip.Addr, int) { return inetMask(a, n, false), a.BitLen() }),
	"network_hostmask": inetOf(func(a netip.Addr, n int) (netip.Addr, int) { return inetMask(a, n, true), a.BitLen() }),
	"network_broadcast": inetOf(func(a netip.Addr, n int) (netip.Addr, int) {
		return inetCombine(a, inetMask(a, n, true), func(x, y byte) byte { return x | y }), n
	}),
	"inet_set_masklen": inetSetMask(false), "cidr_set_masklen": inetSetMask(true),
	"inet_abbrev": func(c *Ctx, a []datum.Datum) (datum.Datum, error) {
		return datum.Str(string(datum.Inet.Append(nil, a[0], c.Format))), nil
	},
	"cidr_abbrev":     cidrAbbrev,
	"network_sub":     inetTest(func(x, y datum.Datum) bool { return inetWithin(x, y, true) }),
	"network_subeq":   inetTest(func(x, y datum.Datum) bool { return inetWithin(x, y, false) }),
	"network_sup":     inetTest(func(x, y datum.Datum) bool { return inetWithin(y, x, true) }),
	"network_supeq":   inetTest(func(x, y datum.Datum) bool { return inetWithin(y, x, false) }),
	"network_overlap": inetTest(func(x, y datum.Datum) bool { return inetWithin(x, y, false) || inetWithin(y, x, false) }),
	"inet_same_family": inetTest(func(x, y datum.Datum) bool {
		a, _ := datum.InetParts(x)
		b, _ := datum.InetParts(y)
		return a.Is4() == b.Is4()
	}),
	"inetnot": inetOf(func(a netip.Addr, n int) (netip.Addr, int) {
		return inetCombine(a, a, func(x, _ byte) byte { return ^x }), n
	}),
	"inetand":     inetBits("AND", func(a, b byte) byte { return a & b }),
	"inetor":      inetBits("OR", func(a, b byte) byte { return a | b }),
	"inetpl":      func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return inetAdd(a[0], a[1].Int()) },
	"inetmi_int8": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) { return inetAdd(a[0], -a[1].Int()) },
	"int8pl_inet(int8,inet)": func(_ *Ctx, a []datum.Datum) (datum.Datum, error) {
		return inetAdd(a[1], a[0].Int())
	},
	"inetmi": inetDifference, "inet_merge": inetMerge,
}
