package raft

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	hraft "github.com/hashicorp/raft"
)

// openTestLog opens a log that may only fail where the test says so.
func openTestLog(t *testing.T, fs vfs.FS, failed func(error)) *logStore {
	t.Helper()
	if failed == nil {
		failed = func(err error) { t.Error(err) }
	}
	s, err := openLog(fs, "log", slog.New(slog.DiscardHandler), failed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entries are those of a term.
func entries(term, from, to uint64) []*hraft.Log {
	var logs []*hraft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, &hraft.Log{
			Index: i, Term: term, Type: hraft.LogType(i % 6),
			Data:       []byte(fmt.Sprintf("entry %d of term %d", i, term)),
			AppendedAt: time.Unix(1_700_000_000, int64(i)).UTC(),
		})
	}
	return logs
}

// checkLog compares the log with what it must contain, which ascends.
func checkLog(t *testing.T, s *logStore, want []*hraft.Log) {
	t.Helper()
	first, err := s.FirstIndex()
	check(t, err)
	last, err := s.LastIndex()
	check(t, err)
	if len(want) == 0 {
		if first != 0 || last != 0 {
			t.Fatalf("an empty log has entries %d to %d", first, last)
		}
		return
	}
	if first != want[0].Index || last != want[len(want)-1].Index {
		t.Fatalf("the log has entries %d to %d, want %d to %d", first, last, want[0].Index, want[len(want)-1].Index)
	}
	rest := want
	for i := first - 1; i <= last+1; i++ {
		var got hraft.Log
		err := s.GetLog(i, &got)
		if len(rest) == 0 || rest[0].Index != i {
			if err != hraft.ErrLogNotFound { // the library compares it like this
				t.Fatalf("entry %d that is not there: %v, %v", i, got, err)
			}
			continue
		}
		check(t, err)
		if !reflect.DeepEqual(&got, rest[0]) {
			t.Fatalf("entry %d is %+v, want %+v", i, got, *rest[0])
		}
		rest = rest[1:]
	}
}

// TestLogCutsAndRestarts cuts both ends of the log, and opens it again after each
// step.
func TestLogCutsAndRestarts(t *testing.T) {
	fs := vfs.NewMem()
	s := openTestLog(t, fs, nil)
	var want []*hraft.Log
	for _, step := range []struct {
		name string
		do   func() error
		want []*hraft.Log
	}{
		{"nothing", func() error { return s.StoreLogs(nil) }, nil},
		{"append", func() error { return s.StoreLogs(entries(1, 1, 40)) }, entries(1, 1, 40)},
		{"cut the tail", func() error { return s.DeleteRange(31, 40) }, entries(1, 1, 30)},
		{"append other entries", func() error { return s.StoreLogs(entries(2, 31, 50)) }, append(entries(1, 1, 30), entries(2, 31, 50)...)},
		{"cut the head", func() error { return s.DeleteRange(1, 20) }, append(entries(1, 21, 30), entries(2, 31, 50)...)},
		{"cut nothing", func() error { return s.DeleteRange(60, 59) }, append(entries(1, 21, 30), entries(2, 31, 50)...)},
		{"one entry", func() error { return s.StoreLog(entries(3, 51, 51)[0]) }, append(append(entries(1, 21, 30), entries(2, 31, 50)...), entries(3, 51, 51)...)},
		{"cut all but one", func() error { return s.DeleteRange(0, 50) }, entries(3, 51, 51)},
		{"after a gap", func() error { return s.StoreLogs(entries(4, 300, 310)) }, append(entries(3, 51, 51), entries(4, 300, 310)...)},
		{"cut up to the gap", func() error { return s.DeleteRange(51, 200) }, entries(4, 300, 310)},
		{"cut all", func() error { return s.DeleteRange(0, math.MaxUint64) }, nil},
		{"begin anew", func() error { return s.StoreLogs(entries(5, 1, 3)) }, entries(5, 1, 3)},
	} {
		t.Log(step.name)
		check(t, step.do())
		want = step.want
		checkLog(t, s, want)
		check(t, s.Close())
		s = openTestLog(t, fs, nil)
		checkLog(t, s, want)
	}
}

// TestLogRefuses what would overwrite entries, and everything once it is closed.
func TestLogRefuses(t *testing.T) {
	var failures []error
	s := openTestLog(t, vfs.NewMem(), func(err error) { failures = append(failures, err) })
	check(t, s.StoreLogs(entries(1, 1, 5)))
	for _, logs := range [][]*hraft.Log{entries(2, 5, 6), append(entries(2, 6, 7), entries(2, 7, 7)...)} {
		if err := s.StoreLogs(logs); err == nil || !strings.Contains(err.Error(), "after entry") {
			t.Errorf("an entry is overwritten: %v", err)
		}
	}
	checkLog(t, s, entries(1, 1, 5))
	check(t, s.Close())
	check(t, s.Close())
	_, err := s.Get([]byte("x"))
	for _, err := range []error{err, s.StoreLogs(entries(1, 6, 6)), s.DeleteRange(1, 2), s.Set(nil, nil), s.GetLog(1, new(hraft.Log))} {
		if !errors.Is(err, errLogClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if len(failures) != 5 {
		t.Errorf("told about %v", failures)
	}
}

// TestStableValues: what the library compares is as it wants it.
func TestStableValues(t *testing.T) {
	fs := vfs.NewMem()
	s := openTestLog(t, fs, nil)
	if _, err := s.Get([]byte("vote")); err == nil || err.Error() != "not found" {
		t.Errorf("a value that is not there: %v", err)
	}
	if n, err := s.GetUint64([]byte("term")); n != 0 || err == nil || err.Error() != "not found" {
		t.Errorf("a number that is not there: %d, %v", n, err)
	}
	check(t, s.Set([]byte("vote"), []byte("me")))
	check(t, s.Set([]byte("vote"), []byte("you")))
	check(t, s.SetUint64([]byte("term"), math.MaxUint64-1))
	check(t, s.StoreLogs(entries(1, 1, 2)))
	check(t, s.DeleteRange(0, math.MaxUint64)) // of entries, not of these
	check(t, s.Close())
	s = openTestLog(t, fs, nil)
	if v, err := s.Get([]byte("vote")); string(v) != "you" || err != nil {
		t.Errorf("vote is %q: %v", v, err)
	}
	if n, err := s.GetUint64([]byte("term")); n != math.MaxUint64-1 || err != nil {
		t.Errorf("term is %d: %v", n, err)
	}
	if n, err := s.GetUint64([]byte("vote")); !errors.Is(err, errMalformed) {
		t.Errorf("a number of three bytes is %d: %v", n, err)
	}
}

// TestLogSurvivesCrashes works at random on a file system that forgets some or all
// of what was not synced. Everything that returned is there afterwards.
func TestLogSurvivesCrashes(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		fs := vfs.NewCrashableMem()
		s := openTestLog(t, fs, nil)
		var want []*hraft.Log
		next := uint64(1)
		for round := range uint64(60) {
			switch n := len(want); {
			case rng.IntN(4) == 0 && n > 1: // a new leader
				keep := rng.IntN(n)
				check(t, s.DeleteRange(want[keep].Index, want[n-1].Index))
				next, want = want[keep].Index, want[:keep:keep]
			case rng.IntN(4) == 0 && n > 0: // a snapshot
				drop := rng.IntN(n)
				check(t, s.DeleteRange(want[0].Index, want[drop].Index))
				want = want[drop+1:]
			default:
				logs := entries(round, next, next+rng.Uint64N(20))
				logs[0].Data = bytes.Repeat(logs[0].Data, 1+rng.IntN(2000))
				check(t, s.StoreLogs(logs))
				next, want = next+uint64(len(logs)), append(want, logs...)
			}
			check(t, s.SetUint64([]byte("term"), round))
			if rng.IntN(6) != 0 {
				continue
			}
			crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			check(t, s.Close())
			fs = crashed
			s = openTestLog(t, fs, nil)
			checkLog(t, s, want)
			if term, err := s.GetUint64([]byte("term")); term != round || err != nil {
				t.Fatalf("term %d, want %d: %v", term, round, err)
			}
		}
		check(t, s.Close())
	}
}

// TestLogDiskFails: a write that the disk refuses is an error, later writes are
// too, the owner is told, and Close returns.
func TestLogDiskFails(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var broken, told atomic.Bool
	s := openTestLog(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			return errors.New("disk on fire")
		}
		return nil
	})), func(error) { told.Store(true) })
	check(t, s.StoreLogs(entries(1, 1, 5)))
	broken.Store(true)
	for range 2 {
		if err := s.StoreLogs(entries(1, 6, 9)); err == nil || !strings.Contains(err.Error(), "disk on fire") {
			t.Fatalf("stored: %v", err)
		}
	}
	if !told.Load() {
		t.Error("nobody is told")
	}
	if err := s.Close(); err == nil {
		t.Error("closing says nothing about it")
	}
	checkLog(t, openTestLog(t, fs.CrashClone(vfs.CrashCloneCfg{}), nil), entries(1, 1, 5))
}

func TestLogEncoding(t *testing.T) {
	for _, want := range []hraft.Log{
		{},
		{Term: math.MaxUint64, Type: hraft.LogConfiguration, Data: []byte{1}, AppendedAt: time.Unix(1, 999_999_999).UTC()},
		{Term: 7, Extensions: []byte("ext")},
		{Term: 8, Extensions: []byte("ext"), Data: []byte("data")},
	} {
		raw := appendLog(nil, &want)
		var got hraft.Log
		check(t, decodeLog(raw, &got))
		if !got.AppendedAt.Equal(want.AppendedAt) {
			t.Errorf("appended at %v, want %v", got.AppendedAt, want.AppendedAt)
		}
		got.AppendedAt = want.AppendedAt
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if again := appendLog(nil, &got); !bytes.Equal(again, raw) {
			t.Errorf("%x, want %x", again, raw)
		}
	}
	good := appendLog(nil, &hraft.Log{Extensions: []byte("ext")})
	for name, spoil := range map[string]func([]byte) []byte{
		"short":       func(b []byte) []byte { return b[:logHead-1] },
		"version":     func(b []byte) []byte { b[0]++; return b },
		"nanoseconds": func(b []byte) []byte { b[18] = 0xff; return b },
		"extensions":  func(b []byte) []byte { return b[:len(b)-1] },
	} {
		if err := decodeLog(spoil(bytes.Clone(good)), new(hraft.Log)); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
