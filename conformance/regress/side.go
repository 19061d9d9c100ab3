package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tallystick/tallystick/conformance/wire"
)

const connectTimeout = 30 * time.Second

// side is one of the two servers with the session and the psql variables that
// a script has there.
type side struct {
	network, address, database string
	options                    string // of the startup packet
	timeout                    time.Duration
	dir                        string // PG_ABS_BUILDDIR: where COPY TO puts files
	node                       bool   // Tallystick: statements are adapted

	user string
	conn *wire.Conn
	vars map[string]string
}

// open begins a session as psql does for each script.
func (s *side) open(script, user string) error {
	s.close()
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	conn, err := wire.Connect(ctx, s.network, s.address, map[string]string{
		"user": user, "database": s.database, "application_name": "pg_regress/" + script,
		"TimeZone": "PST8PDT", "DateStyle": "Postgres, MDY", "client_encoding": "UTF8",
		"options": s.options,
	})
	if err != nil {
		return err
	}
	s.conn, s.user = conn, user
	return nil
}

func (s *side) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// value is a psql variable.
func (s *side) value(name string) (string, bool) {
	v, ok := s.vars[name]
	return v, ok
}

// environment is what \getenv finds.
func (s *side) environment(name, sources string) (string, bool) {
	switch name {
	case "PG_ABS_SRCDIR":
		return sources, true
	case "PG_ABS_BUILDDIR":
		return s.dir, true
	case "PG_LIBDIR":
		return "/nowhere", true // there is no regress.so
	case "PG_DLSUFFIX":
		return ".so", true
	}
	return "", false
}

// run executes a statement. lost tells that the session is gone; the answer
// then has an error of class 08 or 57 that says so.
func (s *side) run(text string, data func() string) (a wire.Answer, lost bool) {
	if s.conn == nil {
		return lostAnswer("08003", "there is no connection"), true
	}
	var err error
	if s.node {
		a, err = s.runAdapted(text, data)
	} else {
		a, err = s.conn.Query(text, s.timeout, data)
	}
	switch {
	case err == nil:
		return a, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		return lostAnswer("57014", "no answer in time"), true
	default:
		return lostAnswer("08006", "the connection was lost: "+err.Error()), true
	}
}

func lostAnswer(code, text string) wire.Answer {
	return wire.Answer{Err: &wire.Message{Severity: "FATAL", Code: code, Text: text}}
}

// runAdapted executes a statement on the node; files of COPY are the client's.
func (s *side) runAdapted(text string, data func() string) (wire.Answer, error) {
	text = adaptNames(text)
	c, ok := fileCopy(text)
	if !ok {
		return s.conn.Query(text, s.timeout, data)
	}
	if c.from {
		return s.conn.Query(c.text, s.timeout, func() string {
			content, err := os.ReadFile(c.file)
			if err != nil {
				return fmt.Sprintf("%v\n", err)
			}
			return string(content)
		})
	}
	a, err := s.conn.Query(c.text, s.timeout, data)
	for i := range a.Results {
		if a.Results[i].Out == nil || err != nil {
			continue
		}
		err = os.WriteFile(c.file, a.Results[i].Out, 0o644)
		a.Results[i].Out = nil
	}
	return a, err
}

// makeDir makes a directory that any server may write to.
func makeDir(parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	results := filepath.Join(dir, "results")
	if err := os.MkdirAll(results, 0o755); err != nil {
		return "", err
	}
	for _, d := range []string{parent, dir, results} {
		if err := os.Chmod(d, 0o777); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// standardStrings tells how the session reads plain strings.
func (s *side) standardStrings() bool {
	return s.conn == nil || !strings.EqualFold(s.conn.Parameter("standard_conforming_strings"), "off")
}
