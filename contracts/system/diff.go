package system

import (
	"fmt"
	"strings"
)

const (
	// diffContext is how many equal lines a hunk shows around what changed.
	diffContext = 3
	// maxDiffCells bounds the table of the comparison. Texts beyond it count as
	// changed from the first to the last line that differs.
	maxDiffCells = 1 << 20
)

// edit is a line of a comparison: ' ' equal, '-' only in the old text, '+' only in
// the new one.
type edit struct {
	kind byte
	line string
}

// unifiedDiff shows what changes from one text to another, in the unified format
// without a heading; "" if nothing does. Of several shortest ones it is always the
// same.
func unifiedDiff(old, now string) string {
	edits := compareLines(splitLines(old), splitLines(now))
	var b strings.Builder
	for i := 0; i < len(edits); {
		if edits[i].kind == ' ' {
			i++
			continue
		}
		end := hunkEnd(edits, i)
		writeHunk(&b, edits, max(0, i-diffContext), min(len(edits), end+diffContext))
		i = end
	}
	return b.String()
}

// hunkEnd is where the changes that begin at i end: before more equal lines than two
// contexts have.
func hunkEnd(edits []edit, i int) int {
	end := i
	for ; i < len(edits) && i-end <= 2*diffContext; i++ {
		if edits[i].kind != ' ' {
			end = i + 1
		}
	}
	return end
}

func writeHunk(b *strings.Builder, edits []edit, from, to int) {
	oldLine, newLine := 1, 1
	for _, e := range edits[:from] {
		if e.kind != '+' {
			oldLine++
		}
		if e.kind != '-' {
			newLine++
		}
	}
	olds, news := 0, 0
	for _, e := range edits[from:to] {
		if e.kind != '+' {
			olds++
		}
		if e.kind != '-' {
			news++
		}
	}
	// A side without lines names the line before it.
	if olds == 0 {
		oldLine--
	}
	if news == 0 {
		newLine--
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", oldLine, olds, newLine, news)
	for _, e := range edits[from:to] {
		b.WriteByte(e.kind)
		b.WriteString(e.line)
		b.WriteByte('\n')
	}
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// compareLines finds a longest common subsequence between the first and the last
// line that differ.
func compareLines(old, now []string) []edit {
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	var edits []edit
	for _, l := range old[:head] {
		edits = append(edits, edit{' ', l})
	}
	edits = append(edits, compareMiddle(old[head:len(old)-tail], now[head:len(now)-tail])...)
	for _, l := range old[len(old)-tail:] {
		edits = append(edits, edit{' ', l})
	}
	return edits
}

func compareMiddle(old, now []string) []edit {
	n, m := len(old), len(now)
	var edits []edit
	i, j := 0, 0
	if n > 0 && m > 0 && n*m <= maxDiffCells {
		// common[i*(m+1)+j] is the length of the longest one of old[i:] and now[j:].
		common := make([]int32, (n+1)*(m+1))
		at := func(i, j int) *int32 { return &common[i*(m+1)+j] }
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				if old[i] == now[j] {
					*at(i, j) = *at(i+1, j+1) + 1
				} else {
					*at(i, j) = max(*at(i+1, j), *at(i, j+1))
				}
			}
		}
		for i < n && j < m {
			switch {
			case old[i] == now[j]:
				edits = append(edits, edit{' ', old[i]})
				i, j = i+1, j+1
			case *at(i+1, j) >= *at(i, j+1):
				edits = append(edits, edit{'-', old[i]})
				i++
			default:
				edits = append(edits, edit{'+', now[j]})
				j++
			}
		}
	}
	for ; i < n; i++ {
		edits = append(edits, edit{'-', old[i]})
	}
	for ; j < m; j++ {
		edits = append(edits, edit{'+', now[j]})
	}
	return edits
}
