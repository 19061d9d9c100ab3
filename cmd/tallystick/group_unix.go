//go:build unix

package main

import "syscall"

// processGroup puts a process into a group of its own.
func processGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
