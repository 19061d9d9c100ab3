package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// loopbackAddr resolves a listen address (host:port) to one on the loopback
// interface, and refuses every other: a development network signs for whoever
// connects.
func loopbackAddr(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", addr, err)
	}
	if host == "" {
		return "", notLoopback(addr, "it names all interfaces of this machine")
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", addr, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("--listen %s: %w", addr, err)
	}
	var chosen netip.Addr
	for _, ip := range ips {
		ip = ip.Unmap()
		if !ip.IsLoopback() {
			return "", notLoopback(addr, fmt.Sprintf("it stands for %s", ip))
		}
		// As Go and libpq do, IPv4 first: clients that are told "localhost"
		// find it either way.
		if !chosen.IsValid() || ip.Is4() && !chosen.Is4() {
			chosen = ip
		}
	}
	// The address that was checked, not the name: it could resolve to another
	// one a moment later.
	return net.JoinHostPort(chosen.String(), strconv.Itoa(number)), nil
}

func notLoopback(addr, why string) error {
	return fmt.Errorf("--listen %s is refused: %s, and a development network signs for whoever connects; use a loopback address such as 127.0.0.1:6432", addr, why)
}
