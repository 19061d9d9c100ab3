package sql_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// Histories that only a serializable database refuses: what the last commit of
// each has to answer.
func TestPrivateSerializable(t *testing.T) {
	const setup = `create table t (id int primary key, v int);
		create table log (note text);
		insert into t values (1, 10), (2, 20)`
	for _, c := range []struct {
		name, a, b string // each in a block of its own; a commits first
		want       pgerr.Code
	}{
		{"write skew", "update t set v = 0 where id = 1 and (select sum(v) from t) >= 30",
			"update t set v = 0 where id = 2 and (select sum(v) from t) >= 30", pgerr.SerializationFailure},
		{"lost update", "update t set v = v + 1 where id = 1", "update t set v = v + 1 where id = 1", pgerr.SerializationFailure},
		{"phantom", "insert into t values (3, (select count(*) from t))", "insert into t values (4, (select count(*) from t))", pgerr.SerializationFailure},
		{"read of a deleted row", "delete from t where id = 1", "insert into log select v::text from t where id = 1", pgerr.SerializationFailure},
		{"same new key", "insert into t values (5, 0)", "insert into t values (5, 1)", pgerr.SerializationFailure},
		{"changed table", "alter table t add column w int", "insert into t values (6, 0)", pgerr.SerializationFailure},
		{"index over new rows", "create index on t (v)", "insert into t values (7, 0)", pgerr.SerializationFailure},
		{"rows under a new index", "insert into t values (8, 0)", "create index on t (v)", pgerr.SerializationFailure},
		{"dropped table", "drop table log", "insert into log values ('x')", pgerr.SerializationFailure},
		{"read only", "update t set v = 0", "select sum(v) from t", pgerr.SuccessfulCompletion},
		{"other rows", "update t set v = 0 where id = 1", "update t set v = 0 where id = 2", pgerr.SuccessfulCompletion},
		{"rows without key", "insert into log values ('a')", "insert into log values ('b')", pgerr.SuccessfulCompletion},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newPrivateNode(t)
			a, b := n.connect(), n.connect()
			a.must(setup)
			a.must("begin")
			b.must("begin")
			a.must(c.a)
			b.must(c.b)
			a.must("commit")
			_, err := b.exec("commit")
			got := pgerr.SuccessfulCompletion
			if err != nil {
				got = pgerr.CodeOf(err)
			}
			if got != c.want {
				t.Errorf("the second commit answered %s, expected %s", got, c.want)
			}
			if s := b.session.TxStatus(); s != 'I' {
				t.Errorf("status %c after it", s)
			}
		})
	}
}

// Statements by themselves are tried again until they fit.
func TestPrivateAutocommit(t *testing.T) {
	n := newPrivateNode(t)
	n.connect().must("create table counter (n int); insert into counter values (0)")
	const workers, each = 8, 40
	var wg sync.WaitGroup
	for range workers {
		c := n.connect()
		wg.Go(func() {
			for range each {
				if _, err := c.exec("update counter set n = n + 1"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := n.connect().query("select n from counter"), fmt.Sprint(workers*each); got != want {
		t.Errorf("counted %s, expected %s", got, want)
	}
}

// Money moves between accounts in blocks; whoever looks sees all of it.
func TestPrivateTransfers(t *testing.T) {
	n := newPrivateNode(t)
	n.connect().must("create table account (id int primary key, money int); insert into account select i, 100 from generate_series(1, 10) i")
	var wg sync.WaitGroup
	for worker := range 4 {
		c := n.connect()
		r := rand.New(rand.NewPCG(7, uint64(worker)))
		wg.Go(func() {
			for range 30 {
				from, to := 1+r.IntN(10), 1+r.IntN(10)
				for {
					_, err := c.exec(fmt.Sprintf("begin; update account set money = money - 5 where id = %d; update account set money = money + 5 where id = %d; commit", from, to))
					if err == nil {
						break
					}
					if pgerr.CodeOf(err) != pgerr.SerializationFailure {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	reader := n.connect()
	wg.Go(func() {
		for range 50 {
			if got := reader.query("select sum(money) from account"); got != "1000" {
				t.Errorf("a reader saw %s", got)
			}
		}
	})
	wg.Wait()
	if got := reader.query("select sum(money) from account"); got != "1000" {
		t.Errorf("in the end there is %s", got)
	}
}

// What was acknowledged survives a crash at any time, whole; numbers that were
// given out do not come again.
func TestPrivateCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	n := openPrivate(t, fs)
	r := rand.New(rand.NewPCG(3, 4))
	setup := n.connect()
	setup.must(`create table pair (id int primary key, other int); create table heap (id int); create sequence s;
		create table auto (id int generated always as identity, v int)`)
	var mu sync.Mutex
	acknowledged, lastNumber := 0, int64(0)
	type picture struct {
		fs           vfs.FS
		acknowledged int
		number       int64
	}
	var pictures []picture
	take := func(percent int) {
		mu.Lock()
		defer mu.Unlock()
		// First what is known to be there, then the crash.
		a, number := acknowledged, lastNumber
		pictures = append(pictures, picture{fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}), a, number})
	}
	var wg sync.WaitGroup
	c := n.connect()
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := 1; i <= 60; i++ {
			number := c.query("select nextval('s')")
			c.must(fmt.Sprintf("begin; insert into pair values (%d, %d); insert into pair values (%d, %d); insert into heap values (%d); commit", i, -i, -i, i, i))
			mu.Lock()
			acknowledged = i
			_, _ = fmt.Sscan(number, &lastNumber)
			mu.Unlock()
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		take(r.IntN(101))
	}
	wg.Wait()
	for i := 0; i < len(pictures); i += max(1, len(pictures)/20) {
		p := pictures[i]
		again := openPrivate(t, p.fs)
		c := again.connect()
		var rows int
		_, _ = fmt.Sscan(c.query("select count(*) from pair"), &rows)
		if rows%2 != 0 || rows/2 < p.acknowledged {
			t.Errorf("picture %d: %d rows, %d pairs were acknowledged", i, rows, p.acknowledged)
		}
		if got := c.query("select count(*) from pair a where not exists (select 1 from pair b where b.id = a.other)"); got != "0" {
			t.Errorf("picture %d: %s rows without the other of their pair", i, got)
		}
		if got := c.query(fmt.Sprintf("select count(*) = %d from heap", rows/2)); got != "t" {
			t.Errorf("picture %d: the table without key differs", i)
		}
		if got := c.query(fmt.Sprintf("select nextval('s') > %d", p.number)); got != "t" {
			t.Errorf("picture %d: a number was given out twice", i)
		}
		// It goes on: new rows, new objects.
		c.must("insert into heap values (1000); insert into heap values (1001); create table later (x serial); insert into auto (v) values (1)")
		if got := c.query("select string_agg(id::text, ',') from heap where id >= 1000"); got != "1000,1001" {
			t.Errorf("picture %d: new rows %s", i, got)
		}
		c.session.Close()
		again.close()
	}
	n.close()
}

// An orderly end gives back what sequences had set aside.
func TestPrivateRestart(t *testing.T) {
	fs := vfs.NewMem()
	n := openPrivate(t, fs)
	c := n.connect()
	c.must("create sequence s; create table t (a int)")
	c.query("select nextval('s') from generate_series(1, 40)")
	c.must("insert into t values (2), (1)")
	oid := c.query("select max(oid) from pg_class where relnamespace = 'private'::regnamespace")
	c.session.Close()
	n.close()
	n = openPrivate(t, fs)
	defer n.close()
	c = n.connect()
	if got := c.query("select nextval('s')"); got != "41" {
		t.Errorf("nextval %s after a restart", got)
	}
	c.must("insert into t values (0); create table u (a int)")
	if got := strings.ReplaceAll(c.query("select a from t"), "\n", ","); got != "2,1,0" {
		t.Errorf("rows %s", got)
	}
	if got := c.query("select oid > " + oid + " and oid < 1000000 and oid >= 16384 from pg_class where relname = 'u' and relkind = 'r'"); got != "t" {
		t.Error("an object identifier came again")
	}
	c.session.Close()
}
