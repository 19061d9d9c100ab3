package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress keeps one line about long work on a terminal. It shows nothing for
// the first second, and nothing at all elsewhere.
type progress struct {
	w     io.Writer // nil: no terminal
	next  time.Time
	shown int // width of what stands on the line
}

const (
	progressDelay    = time.Second
	progressInterval = 200 * time.Millisecond
)

func newProgress(w io.Writer) *progress {
	p := &progress{next: time.Now().Add(progressDelay)}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.w = w
		}
	}
	return p
}

// show replaces the line, a few times a second at most.
func (p *progress) show(format string, args ...any) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressInterval)
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(p.w, "\r%-*s", p.shown, text)
	p.shown = max(p.shown, len(text))
}

// done takes the line away.
func (p *progress) done() {
	if p.w == nil || p.shown == 0 {
		return
	}
	fmt.Fprintf(p.w, "\r%*s\r", p.shown, "")
	p.shown = 0
}
