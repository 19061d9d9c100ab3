package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/identity"
	"github.com/tallystick/tallystick/server/home"
	"github.com/tallystick/tallystick/server/pgwire"
)

func newPasswd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "passwd --home DIR USER",
		Short: "Give a local user of a node a password",
		Long: `Give a local user of a node a password, which is read from standard input, or a new
one. The file passwd in the node's home gets a SCRAM-SHA-256 verifier, not the
password; a running node sees it at the next connection. Such a user has no key: it
reads, and works in schema private, but signs no calls of contracts.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := home.ReadNode(dir); err != nil {
				return err
			}
			return setPassword(filepath.Join(dir, home.PasswdFile), args[0], cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&dir, "home", "", "`directory` of the node (required)")
	cobra.CheckErr(cmd.MarkFlagRequired("home"))
	return cmd
}

func setPassword(path, user string, stdin io.Reader) error {
	if err := identity.ValidateName(user); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return errors.New("the password is empty")
	}
	v, err := pgwire.MakeVerifier(password)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var lines []string
	for l := range strings.Lines(string(old)) {
		if l = strings.TrimRight(l, "\n"); !strings.HasPrefix(l, user+":") && l != "" {
			lines = append(lines, l)
		}
	}
	lines = append(lines, fmt.Sprintf("%s:%s", user, v))
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
