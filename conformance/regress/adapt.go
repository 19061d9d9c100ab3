package main

import (
	"regexp"
	"strings"
)

// The names of PostgreSQL's world and of the node's.
var (
	publicSchema = regexp.MustCompile(`(?i)\bpublic\.|\bschema\s+public\b|'public'|'public\.`)
	publicWord   = regexp.MustCompile(`(?i)\bpublic\b`)
	searchPath   = regexp.MustCompile(`(?i)search_path`)
	database     = regexp.MustCompile(`\bregression\b`)
)

// adaptNames makes a statement of the regression tests one about schema private
// and database tallystick.
func adaptNames(text string) string {
	text = publicSchema.ReplaceAllStringFunc(text, func(m string) string {
		return publicWord.ReplaceAllString(m, "private")
	})
	if searchPath.MatchString(text) {
		text = publicWord.ReplaceAllString(text, "private")
	}
	return database.ReplaceAllString(text, "tallystick")
}

// nodeNames turns what PostgreSQL said into what the node should say. \b keeps
// longer names; the role public stays in GRANT, which nobody reports.
func nodeNames(s string) string {
	if !strings.Contains(s, "public") && !strings.Contains(s, "regression") {
		return s
	}
	return database.ReplaceAllString(publicWord.ReplaceAllString(s, "private"), "tallystick")
}

// serverCopy is a COPY whose data the server would read or write in a file.
var serverCopy = regexp.MustCompile(`(?is)^(\s*copy\s+.*?\s)(from|to)\s+(E?'(?:[^']|'')*')(.*)$`)

// copyFile is such a COPY as the client does it.
type copyFile struct {
	text, file string
	from       bool
}

func fileCopy(text string) (copyFile, bool) {
	m := serverCopy.FindStringSubmatch(text)
	if m == nil {
		return copyFile{}, false
	}
	file := strings.TrimPrefix(m[3], "E")
	file = strings.ReplaceAll(file[1:len(file)-1], "''", "'")
	c := copyFile{file: file, from: strings.EqualFold(m[2], "from")}
	c.text = m[1] + m[2] + " stdout" + m[4]
	if c.from {
		c.text = m[1] + m[2] + " stdin" + m[4]
	}
	return c, true
}
