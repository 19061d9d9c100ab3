package main_test

import (
	"testing"

	"github.com/tallystick/tallystick/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestTranscripts replays psql sessions against a new network each.
func TestTranscripts(t *testing.T) { e2e.Transcripts(t, "testdata/transcripts") }
