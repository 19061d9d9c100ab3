package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	dir     = flag.String("dir", "conformance/logictest/testdata", "the `directory` of the scripts")
	verbose = flag.Bool("v", false, "print every script and every record that fails")
)

func main() {
	flag.Parse()
	if err := mainError(); err != nil {
		fmt.Fprintln(os.Stderr, "logictest:", err)
		os.Exit(1)
	}
}

func mainError() error {
	files, err := scripts(*dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no *.test in %s", *dir)
	}
	var total tally
	unread := 0
	for _, path := range files {
		t, err := runFile(path, func(line int, why string) {
			if *verbose {
				fmt.Printf("%s:%d: %s\n\n", path, line, why)
			}
		})
		if err != nil {
			unread++
			fmt.Printf("%s: %v\n", path, err)
		}
		if *verbose {
			fmt.Printf("%s: %d passed, %d failed, %d skipped\n", path, t.passed, t.failed, t.skipped)
		}
		total.add(t)
	}
	fmt.Printf("%d scripts: %d records passed, %d failed, %d skipped\n", len(files), total.passed, total.failed, total.skipped)
	if total.failed > 0 || unread > 0 {
		return errors.New("not all scripts passed")
	}
	return nil
}

// scripts lists the scripts below a directory in the order of their names.
func scripts(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".test") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}
